#!/usr/bin/env python3
"""Prints distillation losses computed by PyTorch, the table of tests/unit/workload/test_zoo_distillation.c.

    scripts/zoo/distillation.py
"""

import torch
from torch.nn import functional

CASES = [
    # teacher, student, temperature, alpha
    ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 4.0, 0.7),
    ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], 4.0, 0.7),
    ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], 1.0, 1.0),
    ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], 4.0, 0.0),
    ([-0.5, 0.25, 4.0, -7.0], [0.5, 0.0, 3.5, -2.0], 2.0, 0.3),
    ([10000.0, -10000.0, 0.0], [-10000.0, 10000.0, 0.0], 4.0, 0.7),
]


def loss(teacher, student, temperature, alpha):
    soft = functional.kl_div(functional.log_softmax(student / temperature, dim=0),
                             functional.log_softmax(teacher / temperature, dim=0),
                             log_target=True, reduction="sum")
    hard = functional.cross_entropy(student.unsqueeze(0), teacher.argmax().unsqueeze(0))
    return alpha * temperature ** 2 * soft + (1 - alpha) * hard


def main():
    for teacher, student, temperature, alpha in CASES:
        value = loss(torch.tensor(teacher, dtype=torch.float64),
                     torch.tensor(student, dtype=torch.float64), temperature, alpha)
        numbers = [", ".join(f"{x:.1f}F" if x == round(x, 1) else f"{x}F" for x in row)
                   for row in (teacher, student)]
        print(f"    {{{{{numbers[0]}}}, {{{numbers[1]}}}, {len(teacher)}, {temperature}, {alpha}, "
              f"{float(value):.17g}}},")


if __name__ == "__main__":
    main()
