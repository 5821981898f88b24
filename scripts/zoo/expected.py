#!/usr/bin/env python3
"""Computes what small models answer, in double precision with PyTorch.

    scripts/zoo/expected.py [--models A,B] >tests/unit/workload/zoo_expected.txt

The unit test test_zoo_models reads the file; run this by hand after a change of the models.
Each output of each seeded item has a line `MODEL OUTPUT ITEM ELEMENTS LARGEST MEAN MAGNITUDE`
(the largest absolute value, the mean, the mean absolute value), and a line of at most 64 elements:
the k-th of n is element k * ELEMENTS / n.
"""

import sys

import numpy

import torch_twin
import zoo_text
import zoo_values

SEED, ITEMS, SHOWN = 1, 2, 64


def main():
    print("# Made by scripts/zoo/expected.py, which explains it: seed 1, double precision.")
    names = sys.argv[2].split(",") if sys.argv[1:2] == ["--models"] else ()
    for model in zoo_text.named(names):
        weights = zoo_values.seeded(model, SEED)
        outputs = torch_twin.run(model, weights, zoo_values.inputs(model, ITEMS, SEED))
        for head, output in enumerate(outputs):
            for item, values in enumerate(output.reshape(ITEMS, -1)):
                count = min(SHOWN, values.size)
                sizes = numpy.abs(values)
                print(model.name, head, item, values.size,
                      *(f"{x:.8g}" for x in (sizes.max(), values.mean(), sizes.mean())))
                print(*(f"{values[k * values.size // count]:.8g}" for k in range(count)))


if __name__ == "__main__":
    main()
