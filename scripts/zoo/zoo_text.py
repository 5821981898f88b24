"""Reads the descriptions of small models: a second reader of the form that
server/workload/zoo/zoo_model.h describes, which shares no code with the product.

    model = zoo_text.read(path)

Shapes are tuples: (channels, height, width), (channels, length), or (features,).  Plain Python.
"""

import dataclasses
import math
import pathlib
import re

MODELS = pathlib.Path(__file__).resolve().parents[2] / "server/workload/zoo/models"
ACTIVATIONS = ("relu", "relu6", "sigmoid", "tanh", "softmax")
MERGES = ("add", "multiply", "concat")
WINDOWED = ("conv", "depthwise", "maxpool", "avgpool", "upsample")
WEIGHTED = ("conv", "depthwise", "dense")
WORD = re.compile(r"->|[,=()*:]|(?:(?!->)[^\s,=()*:])+")


class TextError(ValueError):
    """A description that cannot be read, with its line."""


@dataclasses.dataclass
class Layer:
    kind: str  # "input", "conv" ... as in the text, or "activate"
    name: str
    sources: list  # indices of earlier layers
    shape: tuple = ()
    activation: str = ""
    out: int = 0
    kernel: tuple = (1, 1)
    stride: tuple = (1, 1)
    dilation: tuple = (1, 1)
    pad: object = "same"  # or (height, width), on both sides
    padding: tuple = ()  # ((above, below), ...), one pair an axis
    groups: int = 1
    bias: bool = True
    norm: bool = False
    last: bool = False
    everywhere: bool = False  # a pool over the whole input
    vocabulary: int = 0
    weights_of: str = ""  # the layer with the weights
    tensors: dict = dataclasses.field(default_factory=dict)  # "weight": its dimensions
    macs: int = 0


@dataclasses.dataclass
class Model:
    name: str = ""
    category: str = "other"
    task: str = ""
    stated: float = 0.0
    exactly: bool = False
    layers: list = dataclasses.field(default_factory=list)
    inputs: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)

    def tensors(self):
        """Names of all weight tensors with their dimensions, in order."""
        return {f"{layer.name}.{part}": dims for layer in self.layers
                if layer.weights_of == layer.name for part, dims in layer.tensors.items()}

    def parameters(self):
        return sum(math.prod(dims) for dims in self.tensors().values())

    def macs(self):
        return sum(layer.macs for layer in self.layers)


def pair(text):
    sizes = [int(size) for size in text.split("x")]
    return (sizes[0], sizes[-1])


def slide(layer, axis, size):
    """Padding and size of the result along one axis."""
    covered = (layer.kernel[axis] - 1) * layer.dilation[axis] + 1
    stride = layer.stride[axis]
    if layer.pad == "same":
        total = max(0, (-(-size // stride) - 1) * stride + covered - size)
        before, after = total // 2, total - total // 2
    else:
        before = after = layer.pad[axis]
    if size + before + after < covered:
        raise TextError(f"{layer.name}: a kernel over {covered} in {size}")
    return (before, after), (size + before + after - covered) // stride + 1


def slide_all(layer, shape):
    """Sets the padding of each axis and returns the sizes of the result."""
    sizes = shape[1:]
    if layer.everywhere:
        layer.kernel = layer.stride = (1, *sizes)[-2:]
        layer.padding = ((0, 0),) * len(sizes)
        return ()
    axes = (1,) if len(sizes) == 1 else (0, 1)
    found = [slide(layer, axis, size) for axis, size in zip(axes, sizes)]
    layer.padding = tuple(padding for padding, _ in found)
    return tuple(size for _, size in found)


def merged(layer, shapes):
    first = shapes[0]
    for other in shapes[1:]:
        pixel = layer.kind == "multiply" and math.prod(other[1:]) == 1
        if (first[1:] != other[1:] and not pixel) or (layer.kind != "concat" and
                                                      first[0] != other[0]):
            raise TextError(f"{layer.name}: {first} and {other}")
    if layer.kind == "concat":
        return (sum(shape[0] for shape in shapes), *first[1:])
    return first


def infer(layer, shapes, vocabulary):
    """Sets the shape, the weight tensors and the multiplications of a layer."""
    shape = shapes[0]
    ranks = {"gru": (2, 3), "embed": (2,), **dict.fromkeys(WINDOWED, (2, 3))}
    if len(shape) not in ranks.get(layer.kind, (1, 2, 3)) or bool(vocabulary) != (
            layer.kind == "embed"):
        raise TextError(f"{layer.name}: {layer.kind} does not read {shape}")
    window = layer.kernel[-(len(shape) - 1):] if len(shape) > 1 else ()
    if layer.kind in ("conv", "depthwise"):
        if layer.kind == "depthwise":
            layer.groups = layer.out = shape[0]
        if shape[0] % layer.groups or layer.out % layer.groups:
            raise TextError(f"{layer.name}: {layer.groups} groups")
        layer.shape = (layer.out, *slide_all(layer, shape))
        layer.tensors["weight"] = (layer.out, shape[0] // layer.groups, *window)
        layer.macs = math.prod(layer.shape) * math.prod(layer.tensors["weight"][1:])
    elif layer.kind == "dense":
        layer.shape = (layer.out,)
        layer.tensors["weight"] = (layer.out, math.prod(shape))
        layer.macs = layer.out * math.prod(shape)
    elif layer.kind == "embed":
        layer.shape = (layer.out, *shape[1:])
        layer.tensors["weight"] = (vocabulary, layer.out)
    elif layer.kind == "gru":
        if math.prod(shape[1:]) != shape[-1]:
            raise TextError(f"{layer.name}: gru over a map of height {shape[1]}")
        layer.shape = (layer.out,) if layer.last else (layer.out, shape[-1])
        layer.tensors.update(weight_ih=(3 * layer.out, shape[0]),
                             weight_hh=(3 * layer.out, layer.out),
                             bias_ih=(3 * layer.out,), bias_hh=(3 * layer.out,))
        layer.macs = 3 * layer.out * (shape[0] + layer.out) * shape[-1]
    elif layer.kind in ("maxpool", "avgpool"):
        layer.shape = (shape[0], *slide_all(layer, shape))
    elif layer.kind == "upsample":
        layer.shape = (shape[0], *(size * factor for size, factor in zip(shape[1:], window)))
    elif layer.kind in MERGES:
        layer.shape = merged(layer, shapes)
    else:
        layer.shape = shape
    if layer.kind in WEIGHTED and layer.bias:
        layer.tensors["bias"] = (layer.out,)
    if layer.norm:
        for part in ("weight", "bias", "mean", "variance"):
            layer.tensors[f"norm.{part}"] = (layer.shape[0],)


class Reader:
    def __init__(self):
        self.model = Model()
        self.lines = {}  # name: its layers, in order
        self.first_sources = {}
        self.words = []

    def next(self, wanted=None):
        word = self.words.pop(0) if self.words else ""
        if wanted and word != wanted:
            raise TextError(f"expected {wanted}, not {word}")
        return word

    def peek(self):
        return self.words[0] if self.words else ""

    def source(self, name):
        if name not in self.lines:
            raise TextError(f"{name} is no line above")
        return self.lines[name][-1]

    def append(self, line, layer):
        layer.name = layer.name or f"{line}.{len(self.lines[line]) + 1}"
        layer.weights_of = layer.weights_of or layer.name
        if layer.sources:
            sources = [self.model.layers[index] for index in layer.sources]
            infer(layer, [source.shape for source in sources], sources[0].vocabulary)
        self.lines[line].append(len(self.model.layers))
        self.model.layers.append(layer)

    def options(self, layer):
        while self.peek() not in ("", "->", ")"):
            word = self.next()
            if word in ("stride", "dilate"):
                setattr(layer, "stride" if word == "stride" else "dilation", pair(self.next()))
            elif word == "groups":
                layer.groups = int(self.next())
            elif word == "pad":
                value = self.next()
                layer.pad = {"same": value, "valid": (0, 0)}.get(value) or pair(value)
            elif word in ("norm", "last"):
                setattr(layer, word, True)
            elif word == "nobias":
                layer.bias = False
            elif word in ACTIVATIONS:
                layer.activation = word
            else:
                raise TextError(f"{layer.kind}: unknown option {word}")

    def like(self, line, flow):
        """The layers of another line behind another source, with the same weights."""
        name = self.next()
        layers, old = list(self.lines[name]), self.first_sources[name]
        moved = {old[0]: flow[0]}
        for index in layers:
            template = self.model.layers[index]
            layer = dataclasses.replace(
                template, name="", tensors={}, weights_of=template.weights_of,
                sources=[moved.get(source, source) for source in template.sources])
            self.append(line, layer)
            moved[index] = self.lines[line][-1]

    def layer(self, line, flow):
        kind = self.next()
        if kind == "like":
            self.like(line, flow)
            return
        layer = Layer(kind, "", list(flow))
        if kind in ACTIVATIONS:
            layer.kind, layer.activation = "activate", kind
        elif kind in ("conv", "dense", "embed", "gru"):
            layer.out = int(self.next())
        elif kind in MERGES:
            while self.peek() not in ("", "->", ")"):
                layer.sources.append(self.source(self.next()))
        elif kind not in WINDOWED:
            raise TextError(f"unknown layer {kind}")
        if kind in ("maxpool", "avgpool") and self.peek() == "global":
            layer.everywhere = bool(self.next())
        elif kind in WINDOWED:
            layer.kernel = pair(self.next())
        if kind in ("maxpool", "avgpool"):
            layer.stride, layer.pad = layer.kernel, (0, 0)
        self.options(layer)
        self.append(line, layer)

    def chain(self, line, flow):
        """LAYER -> LAYER ..., up to a parenthesis or the end of the line."""
        while True:
            if self.peek().isdigit():
                times, _, _ = int(self.next()), self.next("*"), self.next("(")
                start = list(self.words)
                for _ in range(times):
                    self.words = list(start)
                    flow = self.chain(line, flow)
                self.next(")")
            else:
                self.layer(line, flow)
                flow = [self.lines[line][-1]]
            if self.peek() != "->":
                return flow
            self.next()

    def assign(self, line):
        flow = [self.source(self.next())]
        while self.peek() == ",":
            self.next()
            flow.append(self.source(self.next()))
        self.next("->")
        self.lines[line] = []
        self.first_sources[line] = flow
        self.chain(line, flow)

    def input(self):
        layer = Layer("input", self.next(), [])
        size = self.next()
        if size == "ids":
            layer.shape = (1, int(self.next()))
            self.next("of")
            layer.vocabulary = int(self.next())
        else:
            layer.shape = tuple(int(part) for part in size.split("x"))
        self.lines[layer.name] = []
        self.append(layer.name, layer)
        self.model.inputs.append(self.lines[layer.name][-1])

    def key(self, key, rest):
        if key == "input":
            self.input()
        elif key == "output":
            names, self.words = self.words, []
            self.model.outputs = [self.source(name) for name in names if name != ","]
        elif key == "parameters":
            self.model.stated = float(self.next())
            self.model.exactly = self.peek() == "exactly" and bool(self.next())
        elif key in ("name", "category", "task"):
            setattr(self.model, key, rest.strip())
            self.words = []
        else:
            raise TextError(f"unknown key {key}")

    def read(self, text):
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0]
            self.words = WORD.findall(line)
            try:
                if self.words:
                    name, mark = self.next(), self.next()
                    if mark == ":":
                        self.key(name, line.split(":", 1)[1])
                    elif mark == "=":
                        self.assign(name)
                    else:
                        raise TextError(f"neither KEY: VALUE nor NAME = SOURCE: {line}")
                if self.words:
                    raise TextError(f"unexpected {self.peek()}")
            except (TextError, ValueError, IndexError, KeyError) as error:
                raise TextError(f"line {number}: {error}") from error
        if not self.model.outputs:
            self.model.outputs = [len(self.model.layers) - 1]
        return self.model


def parse(text):
    return Reader().read(text)


def read(path):
    try:
        return parse(pathlib.Path(path).read_text(encoding="ascii"))
    except ValueError as error:
        raise TextError(f"{path}: {error}") from error


def named(names=()):
    """The compiled-in models of these names, or all, by category and name."""
    found = [read(path) for path in sorted(MODELS.glob("*.model"))]
    unknown = set(names) - {model.name for model in found}
    if unknown:
        raise TextError(f"no model {', '.join(sorted(unknown))} in {MODELS}")
    found.sort(key=lambda model: (model.category, model.name))
    return [model for model in found if not names or model.name in names]
