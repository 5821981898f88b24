"""The twin of a small model as an ONNX graph, from the same text and the same weights.

    graph = onnx_twin.build(model, weights, batch)     # an onnx.ModelProto

Batch norms are nodes of their own, so that the runtime that reads the graph folds them itself;
with `folded` those of convolutions and dense layers are folded into the weights beforehand.
"""

import math

import numpy
from onnx import TensorProto, checker, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
EPSILON = 1e-5
NODES = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}


class Builder:
    def __init__(self, model, weights, folded):
        self.model, self.weights, self.folded = model, weights, folded
        self.nodes, self.constants = [], {}
        self.results = {}  # of layers: names of values

    def constant(self, name, value):
        self.constants.setdefault(name, numpy_helper.from_array(value, name))
        return name

    def node(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def weight(self, layer, part):
        name = f"{layer.weights_of}.{part}"
        return self.constant(name, self.weights[name])

    def folded_weights(self, layer):
        """Weight and bias with the layer's batch norm in them."""
        values = {part: self.weights[f"{layer.weights_of}.{part}"].astype(numpy.float64)
                  for part in layer.tensors}
        scale = values["norm.weight"] / numpy.sqrt(values["norm.variance"] + EPSILON)
        weight = values["weight"] * scale.reshape(-1, *([1] * (values["weight"].ndim - 1)))
        bias = (values.get("bias", 0.0) - values["norm.mean"]) * scale + values["norm.bias"]
        return [self.constant(f"{layer.weights_of}.{part}.folded", value.astype(numpy.float32))
                for part, value in (("weight", weight), ("bias", bias))]

    def parameters(self, layer):
        if self.folded and layer.norm:
            return self.folded_weights(layer)
        return [self.weight(layer, part) for part in ("weight", "bias") if part in layer.tensors]

    def norm(self, layer, x):
        parts = ("norm.weight", "norm.bias", "norm.mean", "norm.variance")
        return self.node("BatchNormalization", [x, *(self.weight(layer, part) for part in parts)],
                         f"{layer.name}.norm", epsilon=EPSILON)

    def activate(self, layer, x):
        name = f"{layer.name}.{layer.activation}"
        if layer.activation == "softmax":
            return self.node("Softmax", [x], name, axis=1)
        if layer.activation == "relu6":
            bounds = [self.constant(f"relu6.{bound}", numpy.float32(bound)) for bound in (0, 6)]
            return self.node("Clip", [x, *bounds], name)
        return self.node(NODES[layer.activation], [x], name)

    def convolve(self, layer, x):
        axes = len(layer.padding)
        return self.node("Conv", [x, *self.parameters(layer)], layer.name,
                         kernel_shape=layer.kernel[-axes:], strides=layer.stride[-axes:],
                         dilations=layer.dilation[-axes:], group=layer.groups,
                         pads=[pads[side] for side in (0, 1) for pads in layer.padding])

    def dense(self, layer, x, shape):
        if len(shape) > 1:
            x = self.node("Flatten", [x], f"{layer.name}.flat", axis=1)
        return self.node("Gemm", [x, *self.parameters(layer)], layer.name, transB=1)

    def pool(self, layer, x):
        kind = "MaxPool" if layer.kind == "maxpool" else "AveragePool"
        if layer.everywhere:
            x = self.node(f"Global{kind}", [x], f"{layer.name}.pixel")
            return self.node("Flatten", [x], layer.name, axis=1)
        axes = len(layer.padding)
        return self.node(kind, [x], layer.name, kernel_shape=layer.kernel[-axes:],
                         strides=layer.stride[-axes:],
                         pads=[pads[side] for side in (0, 1) for pads in layer.padding])

    def gru(self, layer, x, shape):
        """ONNX has the gates in the order update, reset, new."""
        def ordered(part):
            value = self.weights[f"{layer.weights_of}.{part}"]
            reset, update, new = numpy.split(value, 3)
            return numpy.concatenate((update, reset, new))
        name = layer.weights_of
        both = numpy.concatenate((ordered("bias_ih"), ordered("bias_hh")))
        if len(shape) > 2:
            height = self.constant("axis.2", numpy.array([2], numpy.int64))
            x = self.node("Squeeze", [x, height], f"{layer.name}.sequence")
        x = self.node("Transpose", [x], f"{layer.name}.steps", perm=(2, 0, 1))
        inputs = [x, self.constant(f"{name}.W", ordered("weight_ih")[None]),
                  self.constant(f"{name}.R", ordered("weight_hh")[None]),
                  self.constant(f"{name}.B", both[None])]
        states, last = f"{layer.name}.states", f"{layer.name}.last"
        self.nodes.append(helper.make_node("GRU", inputs, ["" if layer.last else states, last],
                                           name=layer.name, hidden_size=layer.out,
                                           linear_before_reset=1))
        axis = self.constant(f"axis.{0 if layer.last else 1}",
                             numpy.array([0 if layer.last else 1], numpy.int64))
        if layer.last:
            return self.node("Squeeze", [last, axis], f"{layer.name}.state")
        flat = self.node("Squeeze", [states, axis], f"{layer.name}.flat")
        return self.node("Transpose", [flat], f"{layer.name}.out", perm=(1, 2, 0))

    def embed(self, layer, x):
        rows = self.node("Gather", [self.weight(layer, "weight"), x], f"{layer.name}.rows")
        return self.node("Transpose", [rows], layer.name, perm=(0, 2, 1))

    def upsample(self, layer, x, shape):
        factors = (1, 1, *layer.kernel[-(len(shape) - 1):])
        scales = self.constant(f"{layer.name}.scales", numpy.array(factors, numpy.float32))
        return self.node("Resize", [x, "", scales], layer.name, mode="nearest",
                         coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def merge(self, layer, values, shapes):
        if layer.kind == "concat":
            return self.node("Concat", values, layer.name, axis=1)
        if layer.kind == "multiply" and len(shapes[0]) != len(shapes[1]):
            shape = numpy.array([-1, *shapes[1], *([1] * (len(shapes[0]) - len(shapes[1])))],
                                numpy.int64)
            form = self.constant(f"{layer.name}.form", shape)
            values[1] = self.node("Reshape", [values[1], form], f"{layer.name}.pixel")
        return self.node({"add": "Add", "multiply": "Mul"}[layer.kind], values, layer.name)

    def add(self, index):
        layer = self.model.layers[index]
        values = [self.results[source] for source in layer.sources]
        shapes = [self.model.layers[source].shape for source in layer.sources]
        folds = self.folded and layer.kind in ("conv", "depthwise", "dense")
        if layer.kind == "input":
            x = layer.name
        elif layer.kind in ("conv", "depthwise"):
            x = self.convolve(layer, values[0])
        elif layer.kind == "dense":
            x = self.dense(layer, values[0], shapes[0])
        elif layer.kind in ("maxpool", "avgpool"):
            x = self.pool(layer, values[0])
        elif layer.kind in ("add", "multiply", "concat"):
            x = self.merge(layer, values, shapes)
        elif layer.kind == "gru":
            x = self.gru(layer, values[0], shapes[0])
        elif layer.kind == "embed":
            x = self.embed(layer, values[0])
        elif layer.kind == "upsample":
            x = self.upsample(layer, values[0], shapes[0])
        else:
            x = values[0]
        if layer.norm and not folds:
            x = self.norm(layer, x)
        self.results[index] = self.activate(layer, x) if layer.activation else x


def build(model, weights, batch=1, folded=False):
    """The graph for batches of `batch` items, or of any number with a text such as "items"."""
    builder = Builder(model, weights, folded)
    for index in range(len(model.layers)):
        builder.add(index)
    given = []
    for index in model.inputs:
        layer = model.layers[index]
        kind = TensorProto.INT64 if layer.vocabulary else TensorProto.FLOAT
        shape = layer.shape[1:] if layer.vocabulary else layer.shape
        given.append(helper.make_tensor_value_info(layer.name, kind, [batch, *shape]))
    results = [helper.make_tensor_value_info(builder.results[index], TensorProto.FLOAT,
                                             [batch, *model.layers[index].shape])
               for index in model.outputs]
    graph = helper.make_graph(builder.nodes, model.name, given, results,
                              list(builder.constants.values()))
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                              ir_version=IR_VERSION)
    checker.check_model(found, full_check=True)
    return found


def session(model, weights, batch=1, threads=1, folded=False, device="cpu"):
    """A session of ONNX Runtime with all optimisations of graphs."""
    import onnxruntime  # a graph is built without it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    graph = build(model, weights, batch, folded)
    provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}[device]
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=[provider])


def run(model, weights, inputs):
    """Outputs as arrays of numpy; `inputs` by name, ids as int64."""
    return session(model, weights, "items").run(None, inputs)
