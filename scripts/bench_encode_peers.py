#!/usr/bin/env python3
"""Runs the same encodings in inferstat-worker and in what can be imported here of NumPy,
PennyLane, Qiskit and PyTorch, and prints one table.

    scripts/bench_encode_peers.py [--build DIR] [--qubits N] [--samples N] [--seconds S] [--json]

Inputs are made beforehand, in a .npy file that everyone reads.  "Encode only" begins with
the inputs in memory and ends with the states in memory; "end to end" also reads the file.
Peers are checked against the formula before they are timed, and inferstat by its --check in
the warm-up.  A peer is timed over all N samples (default 256), or for S seconds (default 5)
where that is less; inferstat is the median of three runs.  NumPy must be there.  Peers that
cannot be imported are listed as such.
"""

import argparse
import importlib
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time


def formula(np, encoder, row, qubits):
    """The state of one sample, bit k of the index being qubit k."""
    if encoder == "amplitude":
        return (row / np.linalg.norm(row)).astype(complex)
    state = np.ones(1)
    for x in row:
        state = np.concatenate([state * np.cos(x), state * np.sin(x)])
    return state.astype(complex)


# ---- Everyone: a function of many rows that returns their states ------------


def numpy_peer(np, encoder, qubits):
    def amplitude(rows):
        return (rows / np.linalg.norm(rows, axis=1)[:, None]).astype(complex)

    def angle(rows):
        states = np.ones((len(rows), 1))
        for k in range(qubits):
            c, s = np.cos(rows[:, k : k + 1]), np.sin(rows[:, k : k + 1])
            states = np.concatenate([states * c, states * s], axis=1)
        return states.astype(complex)

    return {"amplitude": amplitude, "angle": angle}[encoder]


def torch_peer(np, encoder, qubits):
    torch = importlib.import_module("torch")

    def amplitude(rows):
        x = torch.from_numpy(rows)
        return (x / torch.linalg.vector_norm(x, dim=1, keepdim=True)).to(torch.complex128).numpy()

    def angle(rows):
        x = torch.from_numpy(rows)
        states = torch.ones(len(rows), 1, dtype=torch.float64)
        for k in range(qubits):
            c, s = torch.cos(x[:, k : k + 1]), torch.sin(x[:, k : k + 1])
            states = torch.cat([states * c, states * s], dim=1)
        return states.to(torch.complex128).numpy()

    return {"amplitude": amplitude, "angle": angle}[encoder]


def pennylane_peer(np, encoder, qubits):
    qml = importlib.import_module("pennylane")
    wires = list(reversed(range(qubits)))  # its first wire is the highest bit
    try:
        device = qml.device("lightning.qubit", wires=qubits)
    except Exception:  # that plug-in is apart
        device = qml.device("default.qubit", wires=qubits)

    @qml.qnode(device)
    def circuit(x):
        if encoder == "amplitude":
            qml.AmplitudeEmbedding(x, wires=range(qubits), normalize=True)
        else:
            qml.AngleEmbedding(2 * x, wires=wires, rotation="Y")
        return qml.state()

    return lambda rows: np.array([circuit(row) for row in rows])


def qiskit_peer(np, encoder, qubits):
    qiskit = importlib.import_module("qiskit")
    info = importlib.import_module("qiskit.quantum_info")

    def one(row):
        # Its circuit that prepares any state takes a matrix of 4^n numbers: it is given the
        # state instead.
        if encoder == "amplitude":
            return info.Statevector(row / np.linalg.norm(row)).data
        circuit = qiskit.QuantumCircuit(qubits)
        for k, x in enumerate(row):
            circuit.ry(2 * x, k)
        return info.Statevector.from_instruction(circuit).data

    return lambda rows: np.array([one(row) for row in rows])


PEERS = {"NumPy": numpy_peer, "PyTorch": torch_peer, "PennyLane": pennylane_peer, "Qiskit": qiskit_peer}


# ---- Timing -----------------------------------------------------------------


def timed(work, samples, seconds):
    """Samples a second of work(first, last), in slices until time or samples are over."""
    slice_size = max(1, samples // 16)
    done, began = 0, time.perf_counter()
    while done < samples and time.perf_counter() - began < seconds:
        work(done, min(done + slice_size, samples))
        done = min(done + slice_size, samples)
    return done / (time.perf_counter() - began)


def measure_peer(np, make, encoder, qubits, path, seconds):
    rows = np.load(path)
    states = make(np, encoder, qubits)
    got = np.asarray(states(rows[:1]))[0]
    if abs(got - formula(np, encoder, rows[0], qubits)).max() > 1e-6:
        raise ValueError("its state is another one")
    only = timed(lambda first, last: states(rows[first:last]), len(rows), seconds)

    def end_to_end(first, last):
        states(np.load(path, mmap_mode="r")[first:last].copy())

    return only, timed(end_to_end, len(rows), seconds)


def measure_ours(worker, encoder, qubits, path, samples):
    command = [worker, "encode", "--no-report", "--encoder", encoder, "--qubits", str(qubits),
               "--batch-size", str(min(64, samples)), "--json", "--input", str(path)]
    subprocess.run(command + ["--check"], check=True, capture_output=True)
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(3)]
    return (statistics.median(run["items"] * 1e9 / run["compute_busy_ns"] for run in runs),
            statistics.median(run["items_per_second"] for run in runs))


def measure(np, options):
    rows = []
    with tempfile.TemporaryDirectory(prefix="inferstat-peers.") as folder:
        for encoder in ("amplitude", "angle"):
            columns = 2**options.qubits if encoder == "amplitude" else options.qubits
            path = pathlib.Path(folder) / f"{encoder}.npy"
            rng = np.random.default_rng(1)
            np.save(path, rng.uniform(-1, 1, (options.samples, columns)))
            worker = pathlib.Path(options.build) / "bin" / "inferstat-worker"
            ours = measure_ours(worker, encoder, options.qubits, path, options.samples)
            rows.append((encoder, "inferstat", *ours, None))
            for name, make in PEERS.items():
                try:
                    rows.append((encoder, name, *measure_peer(np, make, encoder, options.qubits, path,
                                                              options.seconds), None))
                except ImportError as error:
                    rows.append((encoder, name, None, None, f"not here ({error})"))
                except Exception as error:  # a peer's fault is a line, not the end
                    rows.append((encoder, name, None, None, f"failed: {error}"))
    return rows


def report(rows, options):
    ours = {encoder: (only, whole) for encoder, name, only, whole, _ in rows if name == "inferstat"}
    print(f"{options.qubits} qubits, f64, {options.samples} samples, {platform.processor() or platform.machine()}\n")
    print("| encoder | | encode only, states/s | inferstat is | end to end, states/s | inferstat is |")
    print("|---|---|---:|---:|---:|---:|")
    for encoder, name, only, whole, why in rows:
        if why:
            print(f"| {encoder} | {name} | {why} | | | |")
            continue
        a, b = ours[encoder][0] / only, ours[encoder][1] / whole
        print(f"| {encoder} | {name} | {only:.0f} | {a:.1f} x | {whole:.0f} | {b:.1f} x |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--build", default=root / "build" / "release")
    parser.add_argument("--qubits", type=int, default=16)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true", help="print one object")
    options = parser.parse_args()
    try:
        np = importlib.import_module("numpy")
    except ImportError:
        sys.exit("bench_encode_peers.py: NumPy is not here (pip install numpy)")
    rows = measure(np, options)
    if not options.json:
        report(rows, options)
        return
    keys = ("encoder", "program", "encode_states_per_second", "end_to_end_states_per_second", "why")
    print(json.dumps({"qubits": options.qubits, "samples": options.samples,
                      "rows": [dict(zip(keys, row)) for row in rows]}))


if __name__ == "__main__":
    main()
