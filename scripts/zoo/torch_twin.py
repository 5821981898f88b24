"""The twin of a small model in PyTorch, from the same text and the same weights.

    network = torch_twin.Twin(model, weights, dtype=torch.float64)
    outputs = network(*inputs)      # inputs and outputs in the order of the text
"""

import math

import torch
from torch import nn
from torch.nn import functional

EPSILON = 1e-5
ACTIVATIONS = {
    "": lambda x: x,
    "relu": functional.relu,
    "relu6": functional.relu6,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softmax": lambda x: torch.softmax(x, dim=1),
}


def padding_of(layer):
    """As functional.pad wants it: the last axis first."""
    return [size for axis in reversed(layer.padding) for size in axis]


class Convolution(nn.Module):
    def __init__(self, layer, shape):
        super().__init__()
        axes = len(shape) - 1
        kind = nn.Conv1d if axes == 1 else nn.Conv2d
        even = all(before == after for before, after in layer.padding)
        self.padding = [] if even else padding_of(layer)
        self.inner = kind(shape[0], layer.out, layer.kernel[-axes:], layer.stride[-axes:],
                          tuple(before for before, _ in layer.padding) if even else 0,
                          layer.dilation[-axes:], layer.groups, layer.bias)

    def forward(self, x):
        return self.inner(functional.pad(x, self.padding) if self.padding else x)


class Pool(nn.Module):
    def __init__(self, layer, shape):
        super().__init__()
        axes = len(shape) - 1
        self.layer, self.dims = layer, tuple(range(2, 2 + axes))
        self.window = (layer.kernel[-axes:], layer.stride[-axes:])
        self.maximum = functional.max_pool1d if axes == 1 else functional.max_pool2d
        self.average = functional.avg_pool1d if axes == 1 else functional.avg_pool2d
        self.padding = padding_of(layer) if any(map(any, layer.padding)) else []

    def forward(self, x):
        largest = self.layer.kind == "maxpool"
        if self.layer.everywhere:
            return torch.amax(x, self.dims) if largest else torch.mean(x, self.dims)
        if largest:
            x = functional.pad(x, self.padding, value=-math.inf) if self.padding else x
            return self.maximum(x, *self.window)
        if not self.padding:
            return self.average(x, *self.window)
        inside = functional.pad(torch.ones_like(x[:1, :1]), self.padding)
        return (self.average(functional.pad(x, self.padding), *self.window) /
                self.average(inside, *self.window))


class Gru(nn.Module):
    def __init__(self, layer, shape):
        super().__init__()
        self.inner = nn.GRU(shape[0], layer.out, batch_first=True)
        self.last = layer.last

    def forward(self, x):
        states, _ = self.inner(x.flatten(2).transpose(1, 2))
        return states[:, -1] if self.last else states.transpose(1, 2)


class Embedding(nn.Module):
    def __init__(self, layer, vocabulary):
        super().__init__()
        self.inner = nn.Embedding(vocabulary, layer.out)

    def forward(self, x):
        return self.inner(x).transpose(1, 2)


class Dense(nn.Module):
    def __init__(self, layer, shape):
        super().__init__()
        self.inner = nn.Linear(math.prod(shape), layer.out, layer.bias)

    def forward(self, x):
        return self.inner(torch.flatten(x, 1))


def norm_of(channels, shape):
    return (nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d)(channels, eps=EPSILON)


def make(layer, source):
    """The module of a layer that has weights or a window; None for others."""
    makers = {"conv": Convolution, "depthwise": Convolution, "dense": Dense, "gru": Gru,
              "maxpool": Pool, "avgpool": Pool}
    if layer.kind in makers:
        return makers[layer.kind](layer, source.shape)
    if layer.kind == "embed":
        return Embedding(layer, source.vocabulary)
    return None


def merge(kind, values):
    if kind == "concat":
        return torch.cat(values, dim=1)
    first, second = values
    if kind == "add":
        return first + second
    if first.dim() != second.dim():  # a vector for all pixels
        second = second.reshape(*second.shape[:2], *([1] * (first.dim() - 2)))
    return first * second


class Twin(nn.Module):
    """All layers in their order; those with `like` share the modules of another line."""

    def __init__(self, model, weights, dtype=torch.float32):
        super().__init__()
        self.model = model
        self.parts, self.norms = nn.ModuleDict(), nn.ModuleDict()
        for layer in model.layers:
            if layer.kind == "input":
                continue
            key = self.key(layer)
            part = make(layer, model.layers[layer.sources[0]])
            if key in self.parts or key in self.norms:
                continue
            if part:
                self.parts[key] = part
            if layer.norm:
                self.norms[key] = norm_of(layer.shape[0], layer.shape)
        self.load(weights)
        self.to(dtype)
        self.eval()

    @staticmethod
    def key(layer):
        return layer.weights_of.replace(".", "/")

    def load(self, weights):
        names = {"weight_ih": "weight_ih_l0", "weight_hh": "weight_hh_l0", "bias_ih": "bias_ih_l0",
                 "bias_hh": "bias_hh_l0", "mean": "running_mean", "variance": "running_var"}
        with torch.no_grad():
            for layer in self.model.layers:
                for part in layer.tensors:
                    owner = (self.norms[self.key(layer)] if part.startswith("norm.")
                             else self.parts[self.key(layer)].inner)
                    last = part.removeprefix("norm.")
                    tensor = getattr(owner, names.get(last, last))
                    value = torch.from_numpy(weights[f"{layer.weights_of}.{part}"])
                    if tensor.shape != value.shape:
                        raise ValueError(f"{layer.name}.{part}: {tuple(value.shape)}")
                    tensor.copy_(value)

    def compute(self, layer, values):
        key = self.key(layer)
        if layer.kind in ("add", "multiply", "concat"):
            x = merge(layer.kind, values)
        elif key in self.parts:
            x = self.parts[key](values[0])
        elif layer.kind == "upsample":
            x = values[0]
            for axis, factor in enumerate(layer.kernel[-(x.dim() - 2):], 2):
                x = torch.repeat_interleave(x, factor, dim=axis)
        else:
            x = values[0]
        if key in self.norms:
            x = self.norms[key](x)
        return ACTIVATIONS[layer.activation](x)

    def forward(self, *inputs):
        values = [None] * len(self.model.layers)
        given = iter(inputs)
        for index, layer in enumerate(self.model.layers):
            values[index] = (next(given) if layer.kind == "input" else
                             self.compute(layer, [values[i] for i in layer.sources]))
        return tuple(values[index] for index in self.model.outputs)


def run(model, weights, inputs, dtype=torch.float64):
    """Outputs as arrays of numpy; `inputs` by name, ids as int64."""
    given = [torch.from_numpy(inputs[model.layers[index].name]) for index in model.inputs]
    given = [x.to(dtype) if x.is_floating_point() else x for x in given]
    with torch.inference_mode():
        return [x.numpy() for x in Twin(model, weights, dtype)(*given)]
