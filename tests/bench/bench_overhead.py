#!/usr/bin/env python3
"""What reporting costs the worker: its throughput with and without.

    tests/bench/bench_overhead.py [--json] [--bin FOLDER] [--model FILE.gguf]
                                  [--pairs N] [--seconds S] [--goal RATIO] [--quick]

Runs `inferstat-worker llm` in pairs, one run with --no-report and one that
reports to a real inferstatd, in a random order within each pair, so that what
disturbs the machine meets both.  The model is a synthetic one that is as small
as they get (the tokens follow each other fastest, which is where reporting
costs most), unless one is given; each run answers so many requests as take S
seconds (default 2).

A pair's difference is that of the time a token takes.  Of all pairs' (default
40) the median counts, with its 90 % interval by resampling the pairs (a fixed
seed): its upper end is the upper 95 % bound.  The verdict is BELOW when that is
under the goal (default 1 %), ABOVE when the lower end is over it, else UNDECIDED (more pairs, or a
quieter machine, would tell; fewer than 20 pairs never do).  Beside it, and less
easily disturbed: the processor time that a token takes of all the worker's threads.

--quick is three short pairs, to see that it works.

Exit codes: 0 BELOW (or --quick), 1 ABOVE, 5 UNDECIDED, 4 a program does not run.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

TOKENS = 64  # of a request
WARM_UPS = 2
RESAMPLES = 4000
PAIRS_MIN = 20  # for a verdict
READY_LIMIT_S = 20
VERDICTS = {"BELOW": 0, "ABOVE": 1, "UNDECIDED": 5}


class Failure(Exception):
    """A program did not do what it has to."""


def private_environment(work):
    """A place of its own for all that the programs keep of a user."""
    names = ("INFERSTAT_RUN_DIR", "INFERSTAT_SPOOL", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
             "XDG_STATE_HOME")
    for name in names:
        os.makedirs(f"{work}/{name}", mode=0o700)
    return {name: f"{work}/{name}" for name in names}


def run_worker(worker, model, requests, report):
    """Returns the nanoseconds a token takes, and those of processor time."""
    command = [worker, *report, "--threads", "1", "llm", "--model", model,
               "--requests", str(requests), "--tokens", str(TOKENS), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise Failure(f"{worker}: exit code {done.returncode}: {done.stderr.strip()}")
    figures = json.loads(done.stdout.splitlines()[-1])
    if "--no-report" not in report and figures["records_acknowledged"] < requests:
        raise Failure(f"{worker}: the collector did not take its records")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tokens = figures["generated_tokens"]
    return figures["duration_ns"] / tokens, processor * 1e9 / tokens


def wait_until_ready(collector, folder):
    deadline = time.monotonic() + READY_LIMIT_S
    while not all(os.path.exists(f"{folder}/{name}") for name in ("ingest", "query", "live")):
        if collector.poll() is not None or time.monotonic() > deadline:
            raise Failure("inferstatd does not start (start it by hand to see why)")
        time.sleep(0.02)


def measure_pairs(worker, model, address, pairs, seconds):
    """Returns of each pair what run_worker returns without and with reporting."""
    chance = random.Random(1)
    ways = (["--no-report"], ["--collector", address, "--spool", ""])
    ns_a_token, _ = run_worker(worker, model, 8, ways[0])
    requests = max(1, round(seconds * 1e9 / (ns_a_token * TOKENS)))
    for _ in range(WARM_UPS):
        for way in ways:
            run_worker(worker, model, requests, way)
    results = []
    for _ in range(pairs):
        order = [0, 1]
        chance.shuffle(order)
        pair = [None, None]
        for which in order:
            pair[which] = run_worker(worker, model, requests, ways[which])
        results.append(pair)
    return results


def bounds(differences):
    """The 5th and 95th percentiles of the medians of resampled pairs."""
    chance = random.Random(2)
    medians = sorted(statistics.median(chance.choices(differences, k=len(differences)))
                     for _ in range(RESAMPLES))
    return medians[int(RESAMPLES * 0.05)], medians[int(RESAMPLES * 0.95) - 1]


def judge(results, goal):
    differences = [reported[0] / silent[0] - 1 for silent, reported in results]
    processor = [reported[1] / silent[1] - 1 for silent, reported in results]
    lower, upper = bounds(differences)
    verdict = "UNDECIDED"
    if len(results) >= PAIRS_MIN and (upper < goal or lower > goal):
        verdict = "BELOW" if upper < goal else "ABOVE"
    return {
        "pairs": len(results),
        "tokens_per_second_without": 1e9 / statistics.median(r[0][0] for r in results),
        "tokens_per_second_with": 1e9 / statistics.median(r[1][0] for r in results),
        "difference_ratio": statistics.median(differences),
        "lower_95_ratio": lower,
        "upper_95_ratio": upper,
        "processor_difference_ratio": statistics.median(processor),
        "processor_upper_95_ratio": bounds(processor)[1],
        "verdict": verdict,
    }


def measure(options):
    build = pathlib.Path(options.bin)
    worker, daemon = str(build / "inferstat-worker"), str(build / "inferstatd")
    with tempfile.TemporaryDirectory(prefix="inferstat-") as work:
        os.environ.update(private_environment(work))
        model = options.model
        if not model:
            model = f"{work}/model.gguf"
            subprocess.run([worker, "make-model", "--shape", "tiny", model], check=True,
                           stdout=subprocess.DEVNULL)
        os.mkdir(f"{work}/c", 0o750)
        command = [daemon, "--listen", f"ipc://{work}/c", "--db", f"{work}/store.db"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as collector:
            try:
                wait_until_ready(collector, f"{work}/c")
                return judge(measure_pairs(worker, model, f"ipc://{work}/c", options.pairs,
                                           options.seconds), options.goal)
            finally:
                collector.terminate()


def read_options():
    default_bin = pathlib.Path(__file__).resolve().parents[2] / "build/release/bin"
    parser = argparse.ArgumentParser(description="What reporting costs the worker.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bin", default=str(default_bin))
    parser.add_argument("--model")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--goal", type=float, default=0.01, help="ratio (default 0.01)")
    parser.add_argument("--quick", action="store_true", help="few short pairs: does it work?")
    options = parser.parse_args()
    if options.quick:
        options.pairs, options.seconds = 3, 0.1
    if options.pairs < 1 or options.seconds <= 0:
        parser.error("at least one pair of more than no time")
    return options


def main():
    options = read_options()
    try:
        result = measure(options)
    except (Failure, OSError, subprocess.CalledProcessError) as failure:
        print(f"bench_overhead: {failure}", file=sys.stderr)
        return 4
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{result['pairs']} pairs: {result['tokens_per_second_without']:.0f} tokens/s "
              f"without reporting, {result['tokens_per_second_with']:.0f} with it\n"
              f"a token takes {result['difference_ratio']:+.2%} with it, 90 % interval "
              f"{result['lower_95_ratio']:+.2%} to {result['upper_95_ratio']:+.2%} "
              f"(goal: under {options.goal:.1%})\n"
              f"processor time {result['processor_difference_ratio']:+.2%}, upper bound "
              f"{result['processor_upper_95_ratio']:+.2%}\n{result['verdict']}")
    return 0 if options.quick else VERDICTS[result["verdict"]]


if __name__ == "__main__":
    sys.exit(main())
