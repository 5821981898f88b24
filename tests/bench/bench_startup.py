#!/usr/bin/env python3
"""How soon the programs are there, and how big they are.

    tests/bench/bench_startup.py [--json] [--bin FOLDER] [--trials N] [--db FILE]

Times `inferstat-worker --help`, a run of the worker with two inferences of a small
model and `inferstat --version` from start to end, and `inferstatd` from start until its three sockets take connections, each the
median of N trials (default 21) after three warm-ups, beside the start of
/bin/true timed in the same run.  Sizes are those of stripped copies.  The goals
are 45 ms and 3 MB; the exit code is 1 when one is missed.  With --db also
`inferstat --db FILE summary`, for a store that is there (bench_query --keep
makes large ones); its goal is 50 ms.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

GOAL_NS = 45_000_000
GOAL_SUMMARY_NS = 50_000_000
GOAL_BYTES = 3 * 1024 * 1024
WARM_UPS = 3
READY_LIMIT_S = 20
SOCKETS = ("ingest", "query", "live")
# A small model from the process's start to its end, with one inference more than the first.
ONE_INFERENCE = ("--no-report", "--device", "cpu", "--threads", "1", "zoo", "--model", "ds-cnn",
                 "--warmups", "0", "--trials", "1")
SILENT = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def time_to_end(command):
    began = time.monotonic_ns()
    subprocess.run(command, check=True, **SILENT)
    return time.monotonic_ns() - began


def takes_connections(path):
    with socket.socket(socket.AF_UNIX) as end:
        try:
            end.connect(path)
        except OSError:
            return False
    return True


def time_to_ready(program):
    """Starts a collector with a new store in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="inferstat-") as work:
        paths = [f"{work}/c/{name}" for name in SOCKETS]
        os.mkdir(f"{work}/c", 0o750)
        command = [program, "--listen", f"ipc://{work}/c", "--db", f"{work}/store.db"]
        began = time.monotonic_ns()
        with subprocess.Popen(command, **SILENT) as collector:
            try:
                while not all(takes_connections(path) for path in paths):
                    if collector.poll() is not None:
                        raise SystemExit(f"bench_startup: {program} ended early: exit code "
                                         f"{collector.returncode} (start it by hand to see why)")
                    if time.monotonic_ns() - began > READY_LIMIT_S * 1_000_000_000:
                        raise SystemExit(f"bench_startup: {program} is not ready after "
                                         f"{READY_LIMIT_S} s")
                    time.sleep(0.0002)
                return time.monotonic_ns() - began
            finally:
                collector.terminate()


def median_of(trials, measure, argument):
    for _ in range(WARM_UPS):
        measure(argument)
    return int(statistics.median(measure(argument) for _ in range(trials)))


def stripped_bytes(program):
    with tempfile.TemporaryDirectory() as work:
        copy = shutil.copy(program, work)
        subprocess.run(["strip", copy], check=True)
        return os.path.getsize(copy)


def measure_all(folder, trials, db):
    worker, collector, client = (str(folder / name)
                                 for name in ("inferstat-worker", "inferstatd", "inferstat"))
    bare = median_of(trials, time_to_end, ["/bin/true"])
    times = {
        "worker_help_ns": median_of(trials, time_to_end, [worker, "--help"]),
        "worker_first_inference_ns": median_of(trials, time_to_end, [worker, *ONE_INFERENCE]),
        "client_version_ns": median_of(trials, time_to_end, [client, "--version"]),
        "collector_ready_ns": median_of(trials, time_to_ready, collector),
    }
    goals = dict.fromkeys(times, GOAL_NS)
    if db:
        times["summary_ns"] = median_of(trials, time_to_end, [client, "--db", db, "summary"])
        goals["summary_ns"] = GOAL_SUMMARY_NS
    sizes = {f"{pathlib.Path(program).name.replace('-', '_')}_stripped_bytes":
             stripped_bytes(program) for program in (worker, collector, client)}
    ratios = {name.replace("_ns", "_ratio_to_bare_start"): round(value / bare, 3)
              for name, value in times.items()}
    met = all(value < goals[name] for name, value in times.items()) and \
        all(value < GOAL_BYTES for value in sizes.values())
    return {**times, "bare_start_ns": bare, **ratios, **sizes, "goal_ns": GOAL_NS,
            "goal_bytes": GOAL_BYTES, "trials": trials, "goals_met": met}


def main():
    source = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--bin", type=pathlib.Path, default=source / "build" / "release" / "bin",
                        help="where the programs are (default build/release/bin)")
    parser.add_argument("--trials", type=int, default=21)
    parser.add_argument("--db", help="a store to summarise, too")
    options = parser.parse_args()
    if options.trials < 1 or not (options.bin / "inferstatd").is_file():
        parser.error(f"no programs in {options.bin}, or no trials (scripts/build.sh builds them)")
    result = measure_all(options.bin, options.trials, options.db)
    if options.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            unit = f"{value / 1e6:.2f} ms" if name.endswith("_ns") else \
                f"{value / 1048576:.2f} MB" if name.endswith("_bytes") else str(value)
            print(f"{name:42} {unit}")
    return 0 if result["goals_met"] else 1


if __name__ == "__main__":
    sys.exit(main())
