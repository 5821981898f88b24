#!/usr/bin/env python3
"""What the dashboard costs that is left open: bytes to its terminal, processor time, memory.

    tests/bench/dashboard/bench_top.py [--json] [--quick] [--build FOLDER] [--seconds N] [--hosts N]

A collector, and N hosts (default 8) with 8 simulated devices and an engine each; `inferstat top` at
its interval of 2 s in terminals of 80x24 and 200x60, each for a minute, then without load.  htop and
btop are measured in the same minute where they are installed.  Goals: 1.2 KB/s at 80x24 and 4 KB/s at
200x60 under load; 1 % of a processor under load and 0.2 % without; 30 MB resident; the first data after
60 ms.  The exit code is 1 when one is missed.  `first_data_ns` is the time from the start until figures
are on the terminal, the median of some starts.
"""

import argparse
import fcntl
import json
import os
import pathlib
import pty
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

HERE = pathlib.Path(__file__).resolve().parent
GOALS = {"bytes_80x24": 1200, "bytes_200x60": 4000, "cpu_load_ratio": 0.01, "cpu_idle_ratio": 0.002,
         "resident_bytes": 30 << 20, "first_data_ns": 60e6}
TICK = os.sysconf("SC_CLK_TCK")
WARM_UP_S = 4


class Terminal:
    """A program in a terminal of its own, and what it has written."""

    def __init__(self, command, columns, rows, environment):
        self.began_ns = time.monotonic_ns()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(environment, TERM="xterm-256color", LANG="C.UTF-8")
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, until):
        """Reads until that time (monotonic); how many bytes there were."""
        count = 0
        while (left := until - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                count += len(os.read(self.fd, 65536))
        return count

    def wait_for(self, text, seconds):
        """Nanoseconds from the start until the text was written."""
        seen, deadline = b"", time.monotonic() + seconds
        while text not in seen:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {text} in {seen[-2000:]}")
            if select.select([self.fd], [], [], 0.1)[0]:
                seen += os.read(self.fd, 65536)
        return time.monotonic_ns() - self.began_ns

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def close(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def measure(terminals, seconds):
    """Bytes a second and the share of a processor of each, over the same time."""
    for terminal in terminals:
        terminal.read_until(time.monotonic() + WARM_UP_S / len(terminals))
    before = [terminal.cpu_seconds() for terminal in terminals]
    counts, end = [0] * len(terminals), time.monotonic() + seconds
    while time.monotonic() < end:
        for place, terminal in enumerate(terminals):
            counts[place] += terminal.read_until(time.monotonic() + 0.05)
    return [(count / seconds, (terminal.cpu_seconds() - cpu) / seconds)
            for count, terminal, cpu in zip(counts, terminals, before)]


def start_fleet(build, folder, hosts, environment):
    """The engines and samplers of the hosts; their processes."""
    support, processes = build / "tests/support", []
    for number in range(hosts):
        own = {**environment, "INFERSTAT_HOST": f"gpu-{number}", "INFERSTAT_RUN_DIR": f"{folder}/{number}",
               "INFERSTAT_SPOOL": f"{folder}/{number}/spool",
               "INFERSTAT_TEST_NVML": str(support / "nvml/libfake_nvml.so"),
               "INFERSTAT_TEST_NVML_SCRIPT": f"{folder}/{number}/devices"}
        os.mkdir(f"{folder}/{number}", 0o700)
        uuid = f"GPU-{number:08x}-0000-0000-0000-"
        pathlib.Path(f"{folder}/{number}/devices").write_text(
            f"gpus 8\nuuid {uuid}\nnoise 0.04\ngpu all util 88\ngpu all power 540\n"
            "gpu all temperature 64\ngpu all memory_used 61000000000\n")
        for command in ([support / "fleet_engine", "--devices", "8", "--token-ms", "40", "--uuid", uuid,
                         "--model", f"model-{number % 4}"], [build / "bin/inferstat-worker", "watch"]):
            processes.append(subprocess.Popen(command, env=own, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    return processes


def end(processes):
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def run(build, folder, arguments):
    environment = {**os.environ, "INFERSTAT_COLLECTOR": f"ipc://{folder}/c", "XDG_CONFIG_HOME": folder,
                   "XDG_RUNTIME_DIR": folder}
    os.mkdir(f"{folder}/c", 0o750)
    top = [str(build / "bin/inferstat"), "top"]
    collector = subprocess.Popen([build / "bin/inferstatd", "--listen", environment["INFERSTAT_COLLECTOR"],
                                  "--db", f"{folder}/store.db"], stderr=subprocess.DEVNULL)
    fleet, terminals, figures = [], [], {}
    try:
        fleet = start_fleet(build, folder, arguments.hosts, environment)
        time.sleep(2 if arguments.quick else 30)  # until charts have something to show
        starts = []
        for _ in range(3 if arguments.quick else 15):
            one = Terminal(top, 80, 24, environment)
            starts.append(one.wait_for(b"req/s", 20))
            one.close()
        figures["first_data_ns"] = statistics.median(starts)
        terminals = [Terminal(top, 80, 24, environment), Terminal(top, 200, 60, environment)]
        peers = [name for name in ("htop", "btop") if shutil.which(name)]
        terminals += [Terminal([name], 80, 24, environment) for name in peers]
        names = ["80x24", "200x60"] + peers
        for name, (rate, cpu) in zip(names, measure(terminals, arguments.seconds)):
            figures[f"bytes_{name}"] = round(rate, 1)
            figures[f"cpu_{name}_ratio"] = round(cpu, 5)
        figures["cpu_load_ratio"] = max(figures["cpu_80x24_ratio"], figures["cpu_200x60_ratio"])
        end(fleet)
        fleet = []
        idle = measure(terminals[:2], arguments.seconds)
        figures["cpu_idle_ratio"] = round(max(cpu for _, cpu in idle), 5)
        figures["resident_bytes"] = max(one.resident_bytes() for one in terminals[:2])
    finally:
        for one in terminals:
            one.close()
        end(fleet + [collector])
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[2] / "build/release")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--hosts", type=int)
    arguments = parser.parse_args()
    arguments.seconds = arguments.seconds or (2 if arguments.quick else 60)
    arguments.hosts = arguments.hosts or (2 if arguments.quick else 8)
    with tempfile.TemporaryDirectory(prefix="inferstat-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        figures = run(arguments.build.resolve(), folder, arguments)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            goal = f"   goal {GOALS[name]:g}" if name in GOALS else ""
            print(f"{name:24} {value:>14,g}{goal}")
    missed = any(figures[name] > goal for name, goal in GOALS.items())
    return 1 if missed and not arguments.quick else 0


sys.exit(main())
