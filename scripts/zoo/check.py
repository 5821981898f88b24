#!/usr/bin/env python3
"""Compares small models in this project's engine with their twins in PyTorch, or ONNX Runtime.

    scripts/zoo/check.py [--models A,B] [--items N] [--seed S] [--device cpu|cuda]
                         [--against torch|onnx|text] [--program build/.../zoo/zoo_probe]

For each model: the layers, shapes, weights and multiplications that zoo_text.py and the engine
read from the description are the same; a GGUF file that the engine saved has the weights that
zoo_values.py makes (where the package gguf is there); and outputs of seeded items, also with the
weights of that file, differ from those of the twin in double precision by at most 1e-4: the
largest difference relative to the largest output of the head, and the norm of the differences
relative to the norm of the outputs.  Without --against it takes PyTorch, else ONNX Runtime, else
compares the texts alone.
"""

import argparse
import importlib
import math
import pathlib
import subprocess
import sys
import tempfile

import zoo_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = 1e-4
PACKAGES = {"torch": "torch_twin", "onnx": "onnx_twin"}


def importable(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def dims_text(dims):
    return "x".join(map(str, dims))


def described(model):
    """What `zoo_probe layers` prints, from this reader."""
    for layer in model.layers:
        sources = [model.layers[index].name for index in layer.sources]
        yield " ".join(["layer", layer.name, dims_text(layer.shape), str(layer.macs), *sources])
    for name, dims in model.tensors().items():
        yield f"tensor {name} {dims_text(dims)}"
    for index in model.outputs:
        yield f"output {model.layers[index].name}"


def probe(options, *arguments):
    return subprocess.run([options.program, *map(str, arguments)], check=True,
                          stdout=subprocess.PIPE).stdout


def text_faults(options, model):
    ours = probe(options, "layers", model.name).decode().splitlines()
    mine = list(described(model))
    if ours != mine:
        different = [pair for pair in zip(ours, mine) if pair[0] != pair[1]]
        yield f"read as {different[:3] or (len(ours), len(mine))}"


def outputs_of(options, numpy, model, *weights):
    raw = probe(options, "outputs", model.name, options.items, options.seed, options.device,
                *weights)
    values, found = numpy.frombuffer(raw, numpy.float32), []
    for index in model.outputs:
        shape = (options.items, *model.layers[index].shape)
        count = math.prod(shape)
        found.append(values[:count].reshape(shape))
        values = values[count:]
    if values.size:
        raise ValueError(f"{model.name}: {values.size} more outputs than expected")
    return found


def weight_faults(options, numpy, model, weights, path):
    probe(options, "save", model.name, options.seed, path)
    stored = importlib.import_module("zoo_values").from_gguf(model, path)
    for name, value in weights.items():
        if not numpy.array_equal(stored[name], value):
            yield f"weights {name} differ"


def difference(numpy, ours, truth):
    """The larger of both relative differences."""
    apart = ours.astype(numpy.float64) - truth
    if not numpy.isfinite(apart).all():
        return math.inf
    return max(float(numpy.abs(apart).max() / numpy.abs(truth).max()),
               float(numpy.linalg.norm(apart) / numpy.linalg.norm(truth)))


def value_faults(options, numpy, twin, model, folder):
    """Faults of weights and outputs; the first element is the largest difference."""
    values = importlib.import_module("zoo_values")
    weights = values.seeded(model, options.seed)
    inputs = values.inputs(model, options.items, options.seed)
    truth = twin.run(model, weights, inputs)
    files = [[]]
    faults = []
    if importable("gguf"):
        path = pathlib.Path(folder) / "weights.gguf"
        faults += weight_faults(options, numpy, model, weights, path)
        files.append([path])
    largest = 0.0
    for file in files:
        for head, (ours, wanted) in enumerate(zip(outputs_of(options, numpy, model, *file), truth)):
            apart = difference(numpy, ours, wanted)
            largest = max(largest, apart)
            if not apart <= ALLOWED:
                faults.append(f"output {head} differs by {apart:.2e}")
    return largest, faults


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: [name for name in text.split(",") if name],
                        default=[])
    parser.add_argument("--items", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--against", choices=("torch", "onnx", "text"))
    parser.add_argument("--program", default=ROOT / "build/release/tests/support/zoo/zoo_probe")
    options = parser.parse_args()
    if not options.against:
        found = {"torch": importable("numpy") and importable("torch"),
                 "onnx": importable("onnx") and importable("onnxruntime")}
        options.against = next((name for name, there in found.items() if there), "text")
    return options


def main():
    options = parse_options()
    numpy = twin = None
    if options.against != "text":
        numpy = importlib.import_module("numpy")
        twin = importlib.import_module(PACKAGES[options.against])
    failed = False
    print(f"against {options.against}, {options.items} items, seed {options.seed}")
    for model in zoo_text.named(options.models):
        faults, note = list(text_faults(options, model)), f"{len(model.layers)} layers"
        if twin:
            with tempfile.TemporaryDirectory(prefix="inferstat-zoo-") as folder:
                largest, more = value_faults(options, numpy, twin, model, folder)
            faults, note = faults + more, f"{note}, difference {largest:.1e}"
        print(f"{model.name:<24} {note}", *faults, sep="; " if faults else "", flush=True)
        failed = failed or bool(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
