#!/usr/bin/env python3
"""Writes tensor_blocks.txt: blocks of each quantised type, and the elements that they stand for
by the package gguf of PyPI (0.19 wrote the committed file; needs numpy).

    tests/unit/device/tensor_blocks.py > tests/unit/device/tensor_blocks.txt

A line has the type, the bytes of two blocks, and the bits of their elements as floats, in
hexadecimal digits.
"""

import gguf
import numpy

# The places of the halves in a block; every other byte may have any value.
TYPES = {"Q8_0": (0,), "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2),
         "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def main():
    random = numpy.random.default_rng(1)
    for name, halves in TYPES.items():
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        blocks = random.integers(0, 256, (2, size), dtype=numpy.uint8)
        for place in halves:
            scales = random.normal(0, 0.1, 2).astype(numpy.float16)
            blocks[:, place:place + 2] = scales.view(numpy.uint8).reshape(2, 2)
        elements = gguf.dequantize(blocks.reshape(1, -1), kind).astype(numpy.float32).reshape(-1)
        bits = "".join(f"{number:08x}" for number in elements.view(numpy.uint32))
        print(name, blocks.tobytes().hex(), bits)


if __name__ == "__main__":
    main()
