#!/usr/bin/env python3
"""Runs the same encodings in inferstat-worker and in what can be imported here of NumPy,
PennyLane, Qiskit and PyTorch, and prints one table.

    scripts/bench_encode_peers.py [--build DIR] [--qubits N] [--samples N] [--seconds S]
                                  [--encoders E,E] [--json]

Inputs are made beforehand, in a .npy file that everyone reads.  "Encode only" begins with
the inputs in memory and ends with the states in memory; "end to end" also reads the file.
Starting a program, importing and one-time set-up are not counted for any library.

Simulators run the circuit that makes the state, each sample with numbers of its own:
PennyLane by its fastest simulator sample by sample, and by its default one with all samples
of a slice in one call; Qiskit by its state vectors.  (Its circuit that prepares any state
takes a matrix of 4^n numbers: for amplitude it is given the normalised vector as a state,
which it checks and copies.)  NumPy and PyTorch compute the formula for a slice at once.

Every peer is checked against the formula before it is timed, and inferstat by its --check.
There are N samples of amplitude (default 2048) and eight times as many of the others, whose
inputs are small.  A peer is timed for S seconds (default 5), or over all of them where that is
less; inferstat is the median of five runs, between which the peers have their turn.
NumPy must be there.  Peers that cannot be imported are listed as such.  Exits 2 where an
option is wrong, 4 without NumPy or where inferstat-worker fails.
"""

import argparse
import importlib
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time


# ---- Formulas ---------------------------------------------------------------

ENCODERS = ("amplitude", "angle", "basis", "phase", "iqp-z", "iqp")


def inputs_of(encoder, qubits):
    """Numbers of a sample."""
    return {"amplitude": 2**qubits, "basis": 1, "iqp": qubits * (qubits + 1) // 2}.get(encoder, qubits)


def make_inputs(np, encoder, qubits, samples):
    rng = np.random.default_rng(1)
    if encoder == "basis":
        return rng.integers(0, 2**qubits, (samples, 1)).astype(float)
    return rng.uniform(-1, 1, (samples, inputs_of(encoder, qubits)))


def pair_at(qubits, i, k):
    """Where the number of qubits i < k lies in a sample of iqp."""
    return qubits + i * qubits - i * (i + 1) // 2 + k - i - 1


def factors(xp, encoder, x):
    """What a qubit's two values put into a product state."""
    if encoder == "angle":
        return xp.cos(x), xp.sin(x)
    turned = xp.exp(1j * x)
    if encoder == "phase":
        return (turned * 0 + 1) / 2**0.5, turned / 2**0.5
    return (1 + turned) / 2, (1 - turned) / 2


def product(xp, cat, encoder, rows, qubits):
    states = cat(factors(xp, encoder, rows[:, :1]))
    for k in range(1, qubits):
        zero, one = factors(xp, encoder, rows[:, k : k + 1])
        states = cat((states * zero, states * one))
    return states


def iqp(xp, cat, rows, qubits):
    theta = rows[:, :1] * 0
    for k in range(qubits):
        more = theta[:, :1] + rows[:, k : k + 1]
        for i in range(k):
            at = pair_at(qubits, i, k)
            more = cat((more, more + rows[:, at : at + 1]))
        theta = cat((theta, theta + (more - theta[:, :1])))
    states = xp.exp(1j * theta) / 2**qubits
    for k in range(qubits):  # Walsh-Hadamard
        halves = states.reshape(len(rows), -1, 2, 2**k)
        a, b = halves[:, :, :1], halves[:, :, 1:]
        states = xp.concatenate((a + b, a - b), 2).reshape(len(rows), -1)
    return states


# ---- Everyone: a function of many rows that returns their states ------------


def numpy_peer(np, encoder, qubits):
    def cat(parts):
        return np.concatenate(parts, axis=1)

    def basis(rows):
        states = np.zeros((len(rows), 2**qubits), complex)
        states[np.arange(len(rows)), rows[:, 0].astype(int)] = 1
        return states

    if encoder == "amplitude":
        return lambda rows: (rows / np.linalg.norm(rows, axis=1)[:, None]).astype(complex)
    if encoder == "basis":
        return basis
    if encoder == "iqp":
        return lambda rows: iqp(np, cat, rows, qubits)
    return lambda rows: product(np, cat, encoder, rows, qubits).astype(complex)


def torch_peer(np, encoder, qubits):
    torch = importlib.import_module("torch")

    def cat(parts):
        return torch.cat(parts, dim=1)

    def amplitude(x):
        return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)

    def basis(x):
        states = torch.zeros(len(x), 2**qubits, dtype=torch.complex128)
        states[torch.arange(len(x)), x[:, 0].long()] = 1
        return states

    makers = {"amplitude": amplitude, "basis": basis, "iqp": lambda x: iqp(torch, cat, x, qubits)}
    make = makers.get(encoder, lambda x: product(torch, cat, encoder, x, qubits))
    return lambda rows: make(torch.from_numpy(rows)).to(torch.complex128).numpy()


def pennylane_gates(qml, encoder, qubits, wires, x):
    """`x` is one sample, or has the samples last."""
    if encoder == "angle":
        for k in range(qubits):
            qml.RY(2 * x[k], wires[k])
        return
    for k in range(qubits):
        qml.Hadamard(wires[k])
    for k in range(qubits):
        qml.PhaseShift(x[k], wires[k])
    if encoder == "iqp":
        for i in range(qubits):
            for k in range(i + 1, qubits):
                qml.ControlledPhaseShift(x[pair_at(qubits, i, k)], (wires[i], wires[k]))
    if encoder != "phase":
        for k in range(qubits):
            qml.Hadamard(wires[k])


def pennylane_circuit(encoder, qubits, name):
    qml = importlib.import_module("pennylane")
    wires = list(reversed(range(qubits)))  # its first wire is the highest bit

    @qml.qnode(qml.device(name, wires=qubits))
    def circuit(x):
        if encoder == "amplitude":
            qml.AmplitudeEmbedding(x, wires=range(qubits), normalize=True)
        elif encoder == "basis":
            qml.BasisEmbedding(x, wires=range(qubits))
        else:
            pennylane_gates(qml, encoder, qubits, wires, x)
        return qml.state()

    return circuit


def pennylane_peer(np, encoder, qubits):
    circuit = pennylane_circuit(encoder, qubits, "lightning.qubit")
    if encoder == "basis":
        return lambda rows: np.array([circuit(int(row[0])) for row in rows])
    return lambda rows: np.array([circuit(row) for row in rows])


def pennylane_batch_peer(np, encoder, qubits):
    circuit = pennylane_circuit(encoder, qubits, "default.qubit")
    if encoder == "basis":
        raise NotImplementedError("one sample a call")
    if encoder == "amplitude":
        return circuit
    return lambda rows: circuit(rows.T)


def qiskit_circuit(qiskit, encoder, qubits, row):
    circuit = qiskit.QuantumCircuit(qubits)
    if encoder == "basis":
        for k in range(qubits):
            if int(row[0]) >> k & 1:
                circuit.x(k)
        return circuit
    if encoder == "angle":
        for k in range(qubits):
            circuit.ry(2 * row[k], k)
        return circuit
    circuit.h(range(qubits))
    for k in range(qubits):
        circuit.p(row[k], k)
    if encoder == "iqp":
        for i in range(qubits):
            for k in range(i + 1, qubits):
                circuit.cp(row[pair_at(qubits, i, k)], i, k)
    if encoder != "phase":
        circuit.h(range(qubits))
    return circuit


def qiskit_peer(np, encoder, qubits):
    qiskit = importlib.import_module("qiskit")
    info = importlib.import_module("qiskit.quantum_info")

    def one(row):
        if encoder == "amplitude":
            return info.Statevector(row / np.linalg.norm(row)).data
        return info.Statevector.from_instruction(qiskit_circuit(qiskit, encoder, qubits, row)).data

    return lambda rows: np.array([one(row) for row in rows])


PEERS = {
    "PennyLane (lightning.qubit)": pennylane_peer,
    "PennyLane (default.qubit, batched)": pennylane_batch_peer,
    "Qiskit": qiskit_peer,
    "PyTorch": torch_peer,
    "NumPy": numpy_peer,
}


# ---- Timing -----------------------------------------------------------------


SLICE = 8  # samples of one call


def timed(work, samples, seconds):
    """Samples a second of work(first, last), in slices until time or samples are over."""
    done, began = 0, time.perf_counter()
    while done < samples and time.perf_counter() - began < seconds:
        work(done, min(done + SLICE, samples))
        done = min(done + SLICE, samples)
    return done / (time.perf_counter() - began)


def measure_peer(np, make, encoder, qubits, path, seconds):
    rows = np.load(path)
    states = make(np, encoder, qubits)
    got = np.asarray(states(rows[:2]))
    if abs(got - numpy_peer(np, encoder, qubits)(rows[:2])).max() > 1e-6:
        raise ValueError("its states are others")
    only = timed(lambda first, last: states(rows[first:last]), len(rows), seconds)

    def end_to_end(first, last):
        states(np.load(path, mmap_mode="r")[first:last].copy())

    return only, timed(end_to_end, len(rows), seconds)


class Failed(Exception):
    """inferstat-worker did not do what it was asked."""


class Ours:
    """inferstat-worker's runs on one input, some of them between everyone else's."""

    def __init__(self, worker, encoder, qubits, path):
        self.command = [worker, "encode", "--no-report", "--device", "cpu", "--encoder", encoder,
                        "--qubits", str(qubits), "--batch-size", "16", "--json", "--input", str(path)]
        self.runs = []
        self.ask("--check", "--batches", "2")

    def ask(self, *options):
        done = subprocess.run([*self.command, *options], capture_output=True, check=False)
        if done.returncode != 0:
            words = done.stderr.decode(errors="replace").strip()
            raise Failed(f"{self.command[0]}: exit code {done.returncode}: {words}")
        return json.loads(done.stdout)

    def run(self):
        self.runs.append(self.ask())

    def figures(self):
        return (statistics.median(run["items"] * 1e9 / run["compute_busy_ns"] for run in self.runs),
                statistics.median(run["items_per_second"] for run in self.runs))


def measure_encoder(np, options, encoder, path):
    rows = []
    samples = options.samples * (1 if encoder == "amplitude" else 8)
    np.save(path, make_inputs(np, encoder, options.qubits, samples))
    ours = Ours(worker_of(options.build), encoder, options.qubits, path)
    for name, make in PEERS.items():
        ours.run()
        try:
            only, whole = measure_peer(np, make, encoder, options.qubits, path, options.seconds)
            rows.append((encoder, name, only, whole, None))
        except NotImplementedError:
            continue  # it has no such way
        except ImportError as error:
            rows.append((encoder, name, None, None, f"not here ({error})"))
        except Exception as error:  # a peer's fault is a line, not the end
            rows.append((encoder, name, None, None, f"failed: {error}"))
    while len(ours.runs) < 5:
        ours.run()
    return [(encoder, "inferstat", *ours.figures(), None), *rows]


def worker_of(build):
    return pathlib.Path(build) / "bin" / "inferstat-worker"


def measure(np, options):
    rows = []
    with tempfile.TemporaryDirectory(prefix="inferstat-peers.") as folder:
        for encoder in options.encoders.split(","):
            rows += measure_encoder(np, options, encoder, pathlib.Path(folder) / "input.npy")
    return rows


def report(rows, options):
    ours = {encoder: (only, whole) for encoder, name, only, whole, _ in rows if name == "inferstat"}
    print(f"{options.qubits} qubits, f64, {os.cpu_count()} processors, "
          f"{platform.machine()}\n")
    print("| encoder | | encode only, states/s | inferstat is | end to end, states/s | inferstat is |")
    print("|---|---|---:|---:|---:|---:|")
    for encoder, name, only, whole, why in rows:
        if why:
            print(f"| {encoder} | {name} | {why} | | | |")
            continue
        a, b = ours[encoder][0] / only, ours[encoder][1] / whole
        print(f"| {encoder} | {name} | {only:.0f} | {a:.1f} x | {whole:.0f} | {b:.1f} x |")


def fail(text):
    print(f"bench_encode_peers.py: {text}", file=sys.stderr)
    sys.exit(4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--build", default=root / "build" / "release")
    parser.add_argument("--qubits", type=int, default=16)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--encoders", default=",".join(ENCODERS), help="some of them, by commas")
    parser.add_argument("--json", action="store_true", help="print one object")
    options = parser.parse_args()
    unknown = set(options.encoders.split(",")) - set(ENCODERS)
    if unknown:
        parser.error("--encoders: no such encoder: " + ", ".join(sorted(unknown)))
    if not pathlib.Path(options.build).is_dir():
        parser.error(f"--build: {options.build}: no such folder (scripts/build.sh makes build/release)")
    if not os.access(worker_of(options.build), os.X_OK):
        parser.error(f"--build: {worker_of(options.build)}: not there (scripts/build.sh makes it)")
    try:
        np = importlib.import_module("numpy")
    except ImportError as error:
        fail(f"NumPy: {error} (pip install numpy)")
    try:
        rows = measure(np, options)
    except (Failed, OSError) as error:
        fail(str(error))
    if not options.json:
        report(rows, options)
        return
    keys = ("encoder", "program", "encode_states_per_second", "end_to_end_states_per_second", "why")
    print(json.dumps({"qubits": options.qubits, "samples": options.samples,
                      "rows": [dict(zip(keys, row)) for row in rows]}))


if __name__ == "__main__":
    main()
