"""Weights and inputs of small models: seeded by the formula of server/workload/zoo/weights.h,
or weights read from a GGUF file.  Values are float32 arrays of numpy."""

import math

import numpy

GOLDEN = 0x9e3779b97f4a7c15


def start_of(name, seed):
    value = 0xcbf29ce484222325  # FNV-1a
    for byte in name.encode("ascii"):
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return (value + seed) % 2**64


def units(name, seed, count):
    """`count` numbers from 0 to 1 (not reached), in double precision."""
    with numpy.errstate(over="ignore"):
        bits = numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(GOLDEN)
        bits += numpy.uint64(start_of(name, seed))
        bits = (bits ^ bits >> numpy.uint64(30)) * numpy.uint64(0xbf58476d1ce4e5b9)
        bits = (bits ^ bits >> numpy.uint64(27)) * numpy.uint64(0x94d049bb133111eb)
        bits ^= bits >> numpy.uint64(31)
    return (bits >> numpy.uint64(40)).astype(numpy.float64) / 2**24


def range_of(layer, part, dims):
    """Lowest value and width of the range of a tensor."""
    if part in ("norm.weight", "norm.variance"):
        return 0.5, 1.0
    if layer.kind == "gru":
        bound = 1.0 / math.sqrt(layer.out)
    elif part != "weight":
        bound = 0.1
    elif layer.kind == "embed":
        bound = 1.0
    else:
        bound = math.sqrt(6.0 / math.prod(dims[1:]))
    return -bound, 2.0 * bound


def seeded(model, seed):
    """Weight tensors by name."""
    values = {}
    for layer in model.layers:
        if layer.weights_of != layer.name:
            continue
        for part, dims in layer.tensors.items():
            name = f"{layer.name}.{part}"
            low, width = range_of(layer, part, dims)
            numbers = low + units(name, seed, math.prod(dims)) * width
            values[name] = numbers.astype(numpy.float32).reshape(dims)
    return values


def from_gguf(model, path):
    """Weight tensors by name from a GGUF file, which must have all of them and no others."""
    import gguf  # needed here alone

    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    tensors = model.tensors()
    if stored.keys() != tensors.keys():
        raise ValueError(f"{path}: not the weights of {model.name}: "
                         f"{', '.join(sorted(stored.keys() ^ tensors.keys()))}")
    return {name: numpy.asarray(stored[name].data, dtype=numpy.float32).reshape(dims)
            for name, dims in tensors.items()}


def inputs(model, items, seed):
    """Inputs of items 0..items - 1 by name, (items, shape...); ids as int64 (items, length)."""
    found = {}
    for index in model.inputs:
        layer = model.layers[index]
        rows = []
        for item in range(items):
            numbers = units(f"input.{layer.name}.{item}", seed, math.prod(layer.shape))
            if layer.vocabulary:
                rows.append(numpy.floor(numbers * layer.vocabulary).astype(numpy.int64))
            else:
                rows.append((2.0 * numbers - 1.0).astype(numpy.float32).reshape(layer.shape))
        found[layer.name] = numpy.stack(rows)
    return found
