#!/usr/bin/env python3
"""States a second that plain PyTorch encodes on a CUDA device: x / norm, then complex.

    scripts/bench_torch_encode.py [--qubits N] [--megabytes M] [--rounds N] [--quick]

What bench_device times is timed alike: vectors of 2^N numbers in the device's memory, M
megabytes of states, events of the device around each round, warm-up, the median.  Prints
one JSON object.  Exits 77, saying why, where PyTorch or a device is not there.
"""

import argparse
import importlib
import json
import statistics
import sys


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def encode(torch, rows, kind):
    """As one writes it down: a kernel for each step."""
    return (rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True)).to(kind)


def seconds_of(torch, rows, kind):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    states = encode(torch, rows, kind)
    end.record()
    end.synchronize()
    del states
    return start.elapsed_time(end) / 1e3


def measure(torch, options, real, kind):
    """States a second: the median of the rounds."""
    bytes_of_state = 2 * torch.finfo(real).bits // 8 << options.qubits
    samples = max(1, (options.megabytes << 20) // bytes_of_state)
    rows = torch.rand(samples, 1 << options.qubits, dtype=real, device="cuda") * 2 - 1
    want = rows[0].to(torch.float64) / rows[0].to(torch.float64).square().sum().sqrt()
    got = encode(torch, rows, kind)[0]
    if not float((got.real.to(torch.float64) - want).abs().max()) < 1e-6:
        sys.exit("bench_torch_encode.py: its state is another one")
    times = [seconds_of(torch, rows, kind) for _ in range(3 + options.rounds)][3:]
    return samples / statistics.median(times)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qubits", type=int, default=16)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.qubits, options.megabytes, options.rounds = 10, 1, 2
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        skip(f"PyTorch: {error} (pip install torch)")
    if not torch.cuda.is_available():
        skip("PyTorch sees no CUDA device")
    figures = {"program": f"PyTorch {torch.__version__}", "product": torch.cuda.get_device_name(),
               "qubits": options.qubits}
    for name, real, kind in (("f64", torch.float64, torch.complex128),
                             ("f32", torch.float32, torch.complex64)):
        rate = measure(torch, options, real, kind)
        figures[f"amplitude_{name}_states_per_second"] = round(rate, 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
