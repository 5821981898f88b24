#!/usr/bin/env python3
"""Times small models in this project's engine beside ONNX Runtime and PyTorch.

    scripts/zoo/race.py [--models A,B] [--threads N] [--batch N] [--rounds N] [--json] [--processor]
                        [--program build/release/tests/support/zoo/zoo_probe]
                        [--device cpu|cuda] [--without ours,onnx,torch] [--compile]

The same network, weights, batch and threads in one run: each round times every contender in
turn for some milliseconds.  A time is the median of the inferences of a round, then of the
rounds; a ratio (above 1: this engine is faster) is the median of the rounds' ratios.

ours      zoo_probe's own clock around device_network_run, inputs and outputs in host memory
onnx      ONNX Runtime, bound inputs, all graph optimisations, batch norms as nodes
folded    the same with batch norms folded into the weights before; ratios are to the faster one
torch     PyTorch in inference mode, eager or, with --compile, compiled; on CUDA a captured graph
          with copies from and to pinned host memory

Calls of ONNX Runtime pass through Python.  Each round times a bound method that does nothing as
well: "call" is its time, and "net" ratios are without it.  On a busy machine inferences longer than
a time slice, such as PyTorch's, also wait for the processor: their ratios are too high.  --processor, for one
thread, measures the thread's time on the processor in place of the time that passes, as a mean.
Exits 77 where neither ONNX Runtime nor PyTorch can be imported.
"""

import argparse
import contextlib
import importlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = 1
ROUND_NS = 15_000_000  # of one contender
WARMUPS, MOST = 5, 2000  # inferences of a round


def on_processor(call, count):
    start = time.thread_time_ns()
    for _ in range(count):
        call()
    return (time.thread_time_ns() - start) / count


def clocked(call, count):
    clock, times = time.perf_counter_ns, []
    for _ in range(count):
        start = clock()
        call()
        times.append(clock() - start)
    return statistics.median(times)


def affordable(first_ns):
    """Inferences of a round, at least one."""
    return max(1, min(MOST, int(ROUND_NS / max(first_ns, 1))))


class Called:
    """A contender that Python calls."""

    def __init__(self, call, processor):
        self.call, self.clock = call, on_processor if processor else clocked
        self.call()
        self.count = affordable(clocked(call, 3))

    def time(self):
        clocked(self.call, min(WARMUPS, self.count))
        return self.clock(self.call, self.count)

    def close(self):
        pass


class Ours:
    """zoo_probe, which runs and times as many inferences as a line of its input says."""

    def __init__(self, options, name):
        self.child = subprocess.Popen(
            [options.program, "time", name, str(options.batch), str(options.threads), str(SEED),
             options.device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.used = pathlib.Path(f"/proc/{self.child.pid}/schedstat") if options.processor else None
        self.count = affordable(self.ask(3))

    def ask(self, count):
        self.child.stdin.write(f"{count}\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"zoo_probe ended with {self.child.wait()}")
        return statistics.median(map(int, line.split()))

    def time(self):
        self.ask(min(WARMUPS, self.count))
        if not self.used:
            return self.ask(self.count)
        start = self.processor_ns()
        self.ask(self.count)
        return (self.processor_ns() - start) / self.count

    def processor_ns(self):
        return int(self.used.read_text().split()[0])

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def onnx_contender(onnx_twin, model, weights, inputs, options, folded):
    session = onnx_twin.session(model, weights, options.batch, options.threads, folded,
                                options.device)
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_cpu_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    # The methods behind the wrappers in Python, which would add to the time.
    bound, run = binding._iobinding, session._sess.run_with_iobinding
    contender = Called(lambda: run(bound, None), options.processor)
    contender.kept = session, binding, inputs
    contender.nothing = bound.synchronize_inputs if options.device == "cpu" else lambda: None
    return contender


def captured(torch, network, inputs):
    """A replay of the network's CUDA graph, between copies from and to pinned memory."""
    hosts = [x.pin_memory() for x in inputs]
    static = [x.cuda() for x in inputs]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            network(*static)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = network(*static)
    back = [torch.empty_like(x, device="cpu").pin_memory() for x in results]

    def call():
        for device, host in zip(static, hosts):
            device.copy_(host, non_blocking=True)
        graph.replay()
        for host, device in zip(back, results):
            host.copy_(device, non_blocking=True)
        torch.cuda.synchronize()
    return call


def torch_contender(torch, torch_twin, model, weights, inputs, options):
    torch.set_num_threads(options.threads)
    network = torch_twin.Twin(model, weights)
    given = [torch.from_numpy(inputs[model.layers[index].name]) for index in model.inputs]
    mode = torch.inference_mode()
    with mode:
        if options.device == "cuda":
            contender = Called(captured(torch, network.cuda(), given), options.processor)
        else:
            used = torch.compile(network) if options.compile else network

            def call():
                with torch.inference_mode():
                    used(*given)
            contender = Called(call, options.processor)
    return contender


def contenders_of(parts, model, options):
    """The contenders of a model by name."""
    weights = parts.values.seeded(model, SEED)
    inputs = parts.values.inputs(model, options.batch, SEED)
    found = {}
    if parts.ours:
        found["ours"] = Ours(options, model.name)
    if parts.onnx:
        for name, folded in (("onnx", False), ("folded", True)):
            found[name] = onnx_contender(parts.onnx, model, weights, inputs, options, folded)
    if parts.torch:
        found["torch"] = torch_contender(parts.torch, parts.torch_twin, model, weights, inputs,
                                         options)
    return found


def race(model, contenders, rounds):
    times = {name: [] for name in contenders}
    calls = []
    for _ in range(rounds):
        for name, contender in contenders.items():
            time.sleep(0.002)  # threads of the one before may still wait actively
            times[name].append(contender.time())
        if "onnx" in contenders:
            calls.append(clocked(contenders["onnx"].nothing, 100))
    row = {"name": model.name, "category": model.category}
    row.update({f"{name}_ns": round(statistics.median(found)) for name, found in times.items()})
    if "onnx" in times:
        best = [min(pair) for pair in zip(times["onnx"], times["folded"])]
        row["call_ns"] = round(statistics.median(calls))
        ratios(row, "onnx_ratio", best, times)
        ratios(row, "onnx_net_ratio", [a - b for a, b in zip(best, calls)], times)
        ratios(row, "onnx_nodes_ratio", times["onnx"], times)
    if "torch" in times:
        ratios(row, "torch_ratio", times["torch"], times)
    return row


def ratios(row, key, theirs, times):
    if "ours" in times:
        row[key] = round(statistics.median(a / b for a, b in zip(theirs, times["ours"])), 3)


def geometric_means(rows):
    found = {}
    for key in ("onnx_ratio", "onnx_net_ratio", "onnx_nodes_ratio", "torch_ratio"):
        values = [row[key] for row in rows if key in row]
        if values:
            found[key] = round(math.exp(statistics.fmean(map(math.log, values))), 3)
    return found


COLUMNS = (("ours_ns", "ours us", 1e3), ("onnx_ns", "onnx us", 1e3),
           ("folded_ns", "folded us", 1e3), ("torch_ns", "torch us", 1e3),
           ("onnx_ratio", "onnx/ours", 1), ("onnx_net_ratio", "net", 1),
           ("torch_ratio", "torch/ours", 1))


def print_row(row):
    cells = [f"{row[key] / unit:>11.2f}" if key in row else f"{'-':>11}"
             for key, _, unit in COLUMNS]
    print(f"{row['name']:<24}", *cells, flush=True)


def importable(name, without):
    if name in without:
        return None
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"race: {name}: {error} (pip install {name})", file=sys.stderr)
        return None


class Parts:
    """Modules of what takes part; None for the others."""

    def __init__(self, options):
        without = {{"onnx": "onnxruntime"}.get(name, name) for name in options.without}
        self.ours = "ours" not in without
        self.onnxruntime = importable("onnxruntime", without)
        self.torch = importable("torch", without)
        if not self.onnxruntime and not self.torch:
            print("race: skipped: neither ONNX Runtime nor PyTorch takes part")
            sys.exit(77)
        self.values = importlib.import_module("zoo_values")
        self.onnx = importlib.import_module("onnx_twin") if self.onnxruntime else None
        self.torch_twin = importlib.import_module("torch_twin") if self.torch else None
        if self.ours and not pathlib.Path(options.program).exists():
            sys.exit(f"race: {options.program} is not built (ninja zoo_probe), see --program")

    def versions(self):
        return {module.__name__: module.__version__
                for module in (self.onnxruntime, self.torch) if module}


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: [name for name in text.split(",") if name]
    parser.add_argument("--models", type=names, default=[])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--program", default=ROOT / "build/release/tests/support/zoo/zoo_probe")
    parser.add_argument("--without", type=names, default=[])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--processor", action="store_true")
    return parser.parse_args()


def main():
    options = parse_options()
    parts = Parts(options)
    models = importlib.import_module("zoo_text").named(options.models)
    rows = []
    if not options.json:
        print(f"{'model':<24}", *(f"{title:>11}" for _, title, _ in COLUMNS))
    for model in models:
        with contextlib.ExitStack() as closing:
            contenders = contenders_of(parts, model, options)
            for contender in contenders.values():
                closing.callback(contender.close)
            rows.append(race(model, contenders, options.rounds))
        if not options.json:
            print_row(rows[-1])
    means = geometric_means(rows)
    if options.json:
        print(json.dumps({"device": options.device, "batch": options.batch,
                          "threads": options.threads, "rounds": options.rounds,
                          "versions": parts.versions(), "models": rows,
                          "geometric_means": means}))
    else:
        print_row({"name": "geometric mean", **means})


if __name__ == "__main__":
    main()
