#!/usr/bin/env python3
"""Runs the same encodings in inferstat and in what can be imported here of NumPy, PennyLane,
Qiskit and PyTorch, and prints one table.

    scripts/bench_encode_peers.py [--build DIR] [--qubits N] [--batch N] [--batches N]
                                  [--seconds S] [--encoders E,E] [--json]

Everyone gets the same batches: N samples (default: as many as make 64 MiB of states, more than
most caches hold), in one array of doubles.  Everyone has one thread.

"Encode only" begins with a batch in memory and ends with its states in memory.  inferstat's
kernels are called in this process, without its pipeline, in turn with the peer.  Turns go on for
S seconds (default 5), or until there are three of them, but for 3 S seconds at most; the ratios,
by wall time and by processor time, are medians over the turns.  Peers that can write into an array
that is given ("given") do, into the array that inferstat writes into as well, whose pages have
been touched.  Others return a new array ("new"); then inferstat writes into a new array, too.

"End to end" also reads the batches, by default 16, from a .npy file: inferstat-worker with its
pipeline and one thread for kernels, and the peer in a loop.  The worker has its turn before each
peer, five runs in the same buffers, of which the median counts: as for the peer, touching new
memory is not part of it.  The file is in the page cache.
Starting a program, importing and one-time set-up are not counted for any library.

Simulators run the circuit that makes the state, each sample with numbers of its own:
PennyLane by its fastest simulator sample by sample, and by its default one with all samples
of a batch in one call; Qiskit by its state vectors.  (Its circuit that prepares any state
takes a matrix of 4^n numbers: for amplitude it is given the normalised vector as a state,
which it checks and copies.)  NumPy and PyTorch compute the formula for a batch at once.
NumPy's basis in new arrays (np.zeros) takes pages that the system has just zeroed and writes no
zero itself; inferstat is slower there, as it writes its zeros into memory that it is given.

Every peer is checked against the formula before it is timed, and inferstat by its --check.
NumPy must be there.  Peers that cannot be imported are listed as such.  Exits 2 where an
option is wrong, 4 where inferstat fails, 77 without NumPy.
"""

import argparse
import ctypes
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


def product(xp, cat, encoder, rows, qubits, out):
    states = rows[:, :1] * 0 + 1
    for k in range(qubits):
        zero, one = factors(xp, encoder, rows[:, k : k + 1])
        if k + 1 < qubits:
            states = cat((states * zero, states * one))
    xp.multiply(states, zero, out=out[:, : 2**k])
    xp.multiply(states, one, out=out[:, 2**k :])


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


# ---- Everyone: a function of a batch that returns its states, in `out` if it can ----


def numpy_peer(np, encoder, qubits):
    def cat(parts):
        return np.concatenate(parts, axis=1)

    def amplitude(rows, out):
        np.multiply(rows, 1 / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None], out=out)
        return out

    def basis(rows, out):
        out.fill(0)
        out[np.arange(len(rows)), rows[:, 0].astype(int)] = 1
        return out

    def by_qubit(rows, out):
        product(np, cat, encoder, rows, qubits, out)
        return out

    makers = {"amplitude": amplitude, "basis": basis, "iqp": lambda rows, out: iqp(np, cat, rows, qubits)}
    return makers.get(encoder, by_qubit)


def numpy_new_peer(np, encoder, qubits):
    def basis(rows, out):
        states = np.zeros((len(rows), 2**qubits), complex)
        states[np.arange(len(rows)), rows[:, 0].astype(int)] = 1
        return states

    if encoder == "amplitude":
        return lambda rows, out: (rows / np.linalg.norm(rows, axis=1)[:, None]).astype(complex)
    if encoder == "basis":
        return basis
    raise NotImplementedError("as the other one")


def torch_peer(np, encoder, qubits):
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)

    def cat(parts):
        return torch.cat(parts, dim=1)

    def amplitude(x, out):
        torch.multiply(x, 1 / torch.linalg.vector_norm(x, dim=1, keepdim=True), out=out)

    def basis(x, out):
        out.zero_()
        out[torch.arange(len(x)), x[:, 0].long()] = 1

    makers = {"amplitude": amplitude, "basis": basis}
    make = makers.get(encoder, lambda x, out: product(torch, cat, encoder, x, qubits, out))

    def states(rows, out):
        if encoder == "iqp":
            return iqp(torch, cat, torch.from_numpy(rows), qubits).numpy()
        make(torch.from_numpy(rows), torch.from_numpy(out))
        return out

    return states


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
        return lambda rows, out: np.array([circuit(int(row[0])) for row in rows])
    return lambda rows, out: np.array([circuit(row) for row in rows])


def pennylane_batch_peer(np, encoder, qubits):
    circuit = pennylane_circuit(encoder, qubits, "default.qubit")
    if encoder == "basis":
        raise NotImplementedError("one sample a call")
    if encoder == "amplitude":
        return lambda rows, out: circuit(rows)
    return lambda rows, out: circuit(rows.T)


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

    return lambda rows, out: np.array([one(row) for row in rows])


PEERS = {
    "PennyLane (lightning.qubit)": pennylane_peer,
    "PennyLane (default.qubit, batched)": pennylane_batch_peer,
    "Qiskit": qiskit_peer,
    "PyTorch": torch_peer,
    "NumPy": numpy_peer,
    "NumPy (new arrays)": numpy_new_peer,
}


# ---- Timing -----------------------------------------------------------------


class Failed(Exception):
    """inferstat did not do what it was asked."""


class Kernels:
    """inferstat's kernels alone, from the build's library."""

    def __init__(self, np, build, encoder, qubits):
        self.np, self.encoder, self.qubits = np, encoder.encode(), qubits
        self.encode = ctypes.CDLL(str(library_of(build))).bench_encode
        self.encode.argtypes = (ctypes.c_char_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t,
                                ctypes.c_void_p, ctypes.c_void_p)

    def states(self, rows, out):
        if out is None:
            out = self.np.empty((len(rows), 2**self.qubits), complex)
        if self.encode(self.encoder, self.qubits, *rows.shape, rows.ctypes.data, out.ctypes.data) != 0:
            raise Failed(f"{self.encoder.decode()}: a sample was refused, or there is no memory")
        return out


class Worker:
    """inferstat-worker's runs on one input, some of them between everyone else's."""

    def __init__(self, build, encoder, qubits, batch, path):
        self.command = [worker_of(build), "encode", "--no-report", "--device", "cpu", "--threads", "1",
                        "--encoder", encoder, "--qubits", str(qubits), "--batch-size", str(batch),
                        "--json", "--input", str(path)]
        self.rates = []
        self.ask("--check", "--batches", "1")

    def ask(self, *options):
        done = subprocess.run([*self.command, *options], capture_output=True, check=False)
        if done.returncode != 0:
            words = done.stderr.decode(errors="replace").strip()
            raise Failed(f"{self.command[0]}: exit code {done.returncode}: {words}")
        return json.loads(done.stdout)

    def run(self):
        figures = self.ask("--until-steady", "0.05", "--repeats", "5")
        self.rates.append(figures["items_per_second_median"])


def aligned(np, samples, states):
    """An array of states at the address of a page, touched."""
    page = 4096
    memory = np.ones(samples * states * 16 + page, np.uint8)
    first = -memory.ctypes.data % page
    return memory[first : len(memory) - page + first].view(complex).reshape(samples, states)


def timed(work, rows, out):
    """Seconds of wall and of processor time of a call.  What it returned is freed after them."""
    wall, processor = time.perf_counter(), time.process_time()
    states = work(rows, out)
    took = time.perf_counter() - wall, time.process_time() - processor
    del states
    return took


def encode_only(peer, kernels, rows, out, seconds):
    """The peer and inferstat in turn: states a second of both, and ratios of their times."""
    given = peer(rows[:1], out[:1]).ctypes.data == out.ctypes.data
    kernels.states(rows, out)
    turns, began = [], time.perf_counter()
    while time.perf_counter() - began < (seconds if len(turns) >= 3 else 3 * seconds) or not turns:
        ours = timed(kernels.states, rows, out if given else None)
        turns.append((timed(peer, rows, out), ours))

    def median(figure):
        return statistics.median(figure(theirs, ours) for theirs, ours in turns)

    return {"memory": "given" if given else "new", "turns": len(turns),
            "encode_states_per_second": len(rows) / median(lambda theirs, _: theirs[0]),
            "inferstat_encode_states_per_second": len(rows) / median(lambda _, ours: ours[0]),
            "encode_ratio": median(lambda theirs, ours: theirs[0] / ours[0]),
            "encode_processor_ratio": median(lambda theirs, ours: theirs[1] / ours[1])}


def end_to_end(np, peer, path, out, seconds):
    """States a second, from the file, in batches until time or samples are over."""
    done, samples, began = 0, len(np.load(path, mmap_mode="r")), time.perf_counter()
    while done < samples and time.perf_counter() - began < seconds:
        rows = np.load(path, mmap_mode="r")[done : done + len(out)].copy()
        peer(rows, out[: len(rows)])
        done += len(rows)
    return done / (time.perf_counter() - began)


def measure_peer(np, make, kernels, encoder, path, out, options):
    rows = np.load(path, mmap_mode="r")[: len(out)].copy()
    peer = make(np, encoder, options.qubits)
    right = numpy_peer(np, encoder, options.qubits)(rows[:2], np.empty((2, out.shape[1]), complex))
    for work in (peer, kernels.states):
        if abs(np.asarray(work(rows[:2], out[:2])) - right).max() > 1e-6:
            raise ValueError("its states are others")
    figures = encode_only(peer, kernels, rows, out, options.seconds)
    figures["end_to_end_states_per_second"] = end_to_end(np, peer, path, out, options.seconds)
    return figures


def measure_encoder(np, options, encoder, path):
    rows = []
    np.save(path, make_inputs(np, encoder, options.qubits, options.batch * options.batches))
    kernels = Kernels(np, options.build, encoder, options.qubits)
    worker = Worker(options.build, encoder, options.qubits, options.batch, path)
    out = aligned(np, options.batch, 2**options.qubits)
    for name, make in PEERS.items():
        worker.run()
        row = {"encoder": encoder, "program": name}
        try:
            rows.append({**row, **measure_peer(np, make, kernels, encoder, path, out, options)})
        except NotImplementedError:
            continue  # it has no such way
        except Failed:
            raise
        except ImportError as error:
            rows.append({**row, "why": f"not here ({error})"})
        except Exception as error:  # a peer's fault is a line, not the end
            rows.append({**row, "why": f"failed: {error}"})
    ours = {"encoder": encoder, "program": "inferstat",
            "end_to_end_states_per_second": statistics.median(worker.rates)}
    for row in rows:
        if "why" not in row:
            row["end_to_end_ratio"] = (ours["end_to_end_states_per_second"]
                                       / row["end_to_end_states_per_second"])
    return [ours, *rows]


def library_of(build):
    return pathlib.Path(build) / "tests" / "bench" / "libbench_encode_library.so"


def worker_of(build):
    return pathlib.Path(build) / "bin" / "inferstat-worker"


def measure(np, options):
    rows = []
    with tempfile.TemporaryDirectory(prefix="inferstat-peers.") as folder:
        for encoder in options.encoders.split(","):
            rows += measure_encoder(np, options, encoder, pathlib.Path(folder) / "input.npy")
    return rows


def report(rows, options):
    print(f"{options.qubits} qubits, f64, batches of {options.batch}, {options.batches} of them end to end; "
          f"one thread of {os.cpu_count()} processors, {platform.machine()}\n")
    print("| encoder | | memory | encode only, states/s | inferstat | inferstat is | by processor time "
          "| end to end, states/s | inferstat is |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        cells = [row["encoder"], row["program"]]
        if "why" in row:
            cells += [row["why"]] + [""] * 6
        elif "encode_ratio" not in row:
            cells += [""] * 5 + [f"{row['end_to_end_states_per_second']:.0f}", ""]
        else:
            cells += [row["memory"], f"{row['encode_states_per_second']:.0f}",
                      f"{row['inferstat_encode_states_per_second']:.0f}", f"{row['encode_ratio']:.2f} x",
                      f"{row['encode_processor_ratio']:.2f} x",
                      f"{row['end_to_end_states_per_second']:.0f}", f"{row['end_to_end_ratio']:.2f} x"]
        print("| " + " | ".join(cells) + " |")


def fail(text, code=4):
    print(f"bench_encode_peers.py: {text}", file=sys.stderr)
    sys.exit(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--build", default=root / "build" / "release")
    parser.add_argument("--qubits", type=int, default=16)
    parser.add_argument("--batch", type=int, help="samples of a batch (default: 64 MiB of states)")
    parser.add_argument("--batches", type=int, default=16, help="of the file")
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
    if not library_of(options.build).is_file():
        parser.error(f"--build: {library_of(options.build)}: not there (scripts/build.sh makes it)")
    if options.batch is None:
        options.batch = max(1, 2**26 // (16 * 2**options.qubits))
    if options.batch < 1 or options.batches < 1:
        parser.error("--batch and --batches: at least 1")
    # Everyone has one thread; libraries read these when they are imported.
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
    try:
        np = importlib.import_module("numpy")
    except ImportError as error:
        fail(f"NumPy: {error} (pip install numpy)", 77)
    try:
        rows = measure(np, options)
    except (Failed, OSError) as error:
        fail(str(error))
    if not options.json:
        report(rows, options)
        return
    print(json.dumps({"qubits": options.qubits, "batch": options.batch, "batches": options.batches,
                      "rows": rows}))


if __name__ == "__main__":
    main()
