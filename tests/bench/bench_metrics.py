#!/usr/bin/env python3
"""What a scrape of the collector's metrics costs, with 50,000 series and records coming in.

    tests/bench/bench_metrics.py [--json] [--quick] [--build FOLDER] [--scrapes N]

A generated store of 200 hosts and 30 models, and engines that give 640 models on devices some requests
each; others send some 1,000 requests a second meanwhile.
`scrape_cpu_ns` is the collector's processor time of a scrape but for sending the page, as it says
itself; its goal is 50 ms, and the exit code is 1 when the median misses it.  `wall_ns` is the time
at the scraper, beside `copy_ns`, that of sending as many bytes through a socket without a collector.
`commit_p99_ns` is that of the collector while it is scraped without a pause, beside the same
without scrapes.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from programs import free_ports  # noqa: E402

GOAL_NS = 50_000_000
ENGINES, RATE_SECONDS = 4, 10
MODELS, DEVICES, AT_ONCE = 40, 16, 8


def get(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.read()


def metric(page, name):
    return float(re.search(rf"^{name} (\S+)$", page.decode(), re.M)[1])


def copy_ns(size):
    """Sends so many bytes through a socket on loopback, and reads them."""
    server = socket.create_server(("127.0.0.1", 0))
    payload = b"x" * size

    def send():
        peer, _ = server.accept()
        with peer:
            peer.sendall(payload)

    sender = threading.Thread(target=send)
    began = time.monotonic_ns()
    sender.start()
    with socket.create_connection(server.getsockname()) as client:
        with client.makefile("rb") as stream:
            stream.read()
    sender.join()
    server.close()
    return time.monotonic_ns() - began


def commit_p99_ns(port, seconds, scrapes):
    """Of a while with engines at work, scraped without a pause or hardly at all."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if scrapes:
            get(port)
        else:
            time.sleep(0.1)
    time.sleep(5)  # until the figure is read again
    return metric(get(port), "inferstat_collector_commit_p99_seconds") * 1e9


def measure(build, folder, arguments):
    db, port = f"{folder}/store.db", free_ports(1)
    hosts, models, inferences = (20, 5, 2000) if arguments.quick else (200, 30, 60000)
    subprocess.run([build / "tests/support/make_history", db, "--hosts", str(hosts), "--models",
                    str(models), "--inferences", str(inferences), "--all-kinds"], check=True,
                   capture_output=True)
    os.mkdir(f"{folder}/c", 0o750)
    address = f"ipc://{folder}/c"
    environment = {**os.environ, "INFERSTAT_COLLECTOR": address, "INFERSTAT_RUN_DIR": folder,
                   "INFERSTAT_SPOOL": f"{folder}/spool", "XDG_RUNTIME_DIR": folder}
    running = [subprocess.Popen([build / "bin/inferstatd", "--listen", address, "--db", db, "--metrics",
                                 f"127.0.0.1:{port}", "--metrics-series", "110000"], env=environment,
                                stderr=subprocess.DEVNULL)]
    try:
        ready_at = time.monotonic() + 60
        while True:
            try:
                get(port, "/health")
                break
            except OSError:
                if time.monotonic() > ready_at:
                    raise
                time.sleep(0.1)
        def start_engine(*words):
            return subprocess.Popen([build / "tests/support/fleet_engine", "--devices", str(DEVICES),
                                     "--token-ms", "8", "--tokens", "4", *words], env=environment,
                                    stderr=subprocess.DEVNULL)

        for first in range(0, AT_ONCE if arguments.quick else MODELS, AT_ONCE):
            for engine in [start_engine("--seconds", "1", "--model", f"served-{first + number}")
                           for number in range(AT_ONCE)]:
                engine.wait()
        running += [start_engine() for _ in range(ENGINES)]
        seconds = 1 if arguments.quick else RATE_SECONDS
        quiet = commit_p99_ns(port, seconds, False)
        scraped = commit_p99_ns(port, seconds, True)
        cpu, wall, before = [], [], 0
        for _ in range(arguments.scrapes + 1):
            began = time.monotonic_ns()
            page = get(port)
            wall.append(time.monotonic_ns() - began)
            spent = metric(page, "inferstat_collector_scrape_cpu_seconds_total") * 1e9
            cpu.append(spent - before)
            before = spent
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()
    copies = [copy_ns(len(page)) for _ in range(arguments.scrapes)]
    cpu = sorted(cpu[1:])  # the first page has that of all scrapes before
    return {"series": sum(1 for line in page.splitlines() if not line.startswith(b"#")),
            "bytes": len(page), "scrapes": arguments.scrapes,
            "scrape_cpu_ns": statistics.median(cpu), "scrape_cpu_p99_ns": cpu[len(cpu) * 99 // 100],
            "wall_ns": statistics.median(wall), "copy_ns": statistics.median(copies),
            "ratio_to_bare_copy": statistics.median(wall) / statistics.median(copies),
            "refresh_ns": metric(page, "inferstat_collector_refresh_seconds") * 1e9,
            "commit_p99_ns": scraped, "commit_p99_without_scrapes_ns": quiet}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build/release")
    parser.add_argument("--scrapes", type=int)
    arguments = parser.parse_args()
    arguments.scrapes = arguments.scrapes or (3 if arguments.quick else 50)
    with tempfile.TemporaryDirectory(prefix="inferstat-", dir="/tmp") as folder:
        figures = measure(arguments.build, folder, arguments)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:30} {value / 1e6:.2f} ms" if name.endswith("_ns") else f"{name:30} {value:.6g}")
    return 0 if arguments.quick or figures["scrape_cpu_ns"] <= GOAL_NS else 1


if __name__ == "__main__":
    sys.exit(main())
