"""The dashboard beside a fleet to which known things happen at known moments, read from its screen:
each shows within its time, and nothing else lights up.

Hosts are simulated (fleet_engine, fake_nvml); collector, samplers and dashboards are real.  A store
with five days of the same requests says what is usual.  One round takes about two minutes;
INFERSTAT_TEST_SECONDS=3600 repeats it for an hour.  Each round, by its seconds:

    5   device of host-001 throttles, of host-002 has 8 lanes, of host-003 reports an XID;
        requests of host-005 begin to fail, those of host-006 take twice as long
   10   the engine of host-004 is killed; at 50 it is started again
   35   requests of host-005 are as before, and the devices too; at 80 those of host-006
   95   the collector stops for 6 seconds; then it is killed, and started again
"""

import os
import pathlib
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from programs import check, skip  # noqa: E402

BUILD = pathlib.Path(os.environ["INFERSTAT_BUILD"])
SUPPORT = BUILD / "tests/support"
NVML = SUPPORT / "nvml/libfake_nvml.so"
SECONDS = float(os.environ.get("INFERSTAT_TEST_SECONDS", "0"))
ROUND = 120
HOSTS = [f"host-{number:03d}" for number in range(7)]
XID = 101                 # of the first round: it stays on the screen for ten minutes
USUAL, SLOW = 250.0, 1.5  # tokens a second of the store's history; as common/store/query/now.h
WINDOW_NS = 60 * 10**9    # of the dashboard
# Seconds between the moment and its place on the screen.  A device is sampled every second; a
# screen is redrawn every two seconds; what the machine's load adds.
LOAD = float(os.environ.get("INFERSTAT_TEST_LOAD", "1.5"))
STATE, DEATH, DEVICE = 2 + LOAD, 5 + LOAD, 1 + 2 + LOAD
SILENT = 2 + 1 + LOAD     # the interval, and a second
GIVEN_UP = 12 + LOAD      # a query of 3 s, asked again
STATES = "down silent errors slow loading ok idle ended".split()


class Screen:
    """A dashboard in a terminal."""

    def __init__(self, name, folder, keys):
        self.socket = folder / f"{name}.tmux"
        self.tmux("new-session", "-d", "-x", "120", "-y", "40",
                  f"{os.environ['INFERSTAT']} top --no-color --interval 2s")
        self.wait_for("live", 20)
        for key in keys:
            self.tmux("send-keys", key)

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], check=True,
                              capture_output=True, text=True).stdout

    def text(self):
        return self.tmux("capture-pane", "-p")

    def wait_for(self, text, seconds):
        deadline = time.monotonic() + seconds
        while text not in self.text():
            check(time.monotonic() < deadline, f"no {text!r} on:\n{self.text()}")
            time.sleep(0.1)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False)


class Fleet:
    def __init__(self, folder):
        self.folder, self.processes, self.screens = folder, {}, []
        self.store = folder / "fleet.db"
        os.environ.update(INFERSTAT_COLLECTOR=f"ipc://{folder}/c", TZ="UTC", LC_ALL="C.UTF-8",
                          SHELL="/bin/sh", XDG_CONFIG_HOME=str(folder), HOME=str(folder))
        os.environ.pop("TMUX", None)
        os.mkdir(folder / "c", 0o750)
        subprocess.run([SUPPORT / "make_history", self.store, "--inferences", "20000", "--models",
                        "1", "--hosts", "7", "--days", "5"], check=True, capture_output=True)

    def start(self, name, command, **environment):
        log = open(self.folder / f"{name}.log", "a")
        self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log,
                                                stdin=subprocess.DEVNULL,
                                                env={**os.environ, **environment})

    def start_collector(self):
        self.start("collector", [os.environ["INFERSTATD"], "--listen",
                                 os.environ["INFERSTAT_COLLECTOR"], "--db", self.store])
        ping = [os.environ["INFERSTAT"], "ping"]
        deadline = time.monotonic() + 20
        while subprocess.run(ping, capture_output=True, check=False).returncode:
            check(time.monotonic() < deadline, "the collector does not answer")
            time.sleep(0.1)

    def of_host(self, host):
        folder = self.folder / host
        folder.mkdir(mode=0o700, exist_ok=True)
        return {"INFERSTAT_HOST": host, "INFERSTAT_RUN_DIR": str(folder),
                "INFERSTAT_SPOOL": str(folder / "spool"),
                "INFERSTAT_TEST_NVML": str(NVML), "INFERSTAT_TEST_NVML_SCRIPT": str(folder / "devices")}

    def start_engine(self, host, *options):
        number = HOSTS.index(host)
        self.start(f"engine {host}", [SUPPORT / "fleet_engine", "--model", "model-00", "--devices",
                                      "2", "--token-ms", str(1000 / USUAL), "--tokens", "125",
                                      "--uuid", f"GPU-{number:08x}-0000-0000-0000-", "--cycle",
                                      str(ROUND), *options],
                   **self.of_host(host))

    def start_host(self, host, devices=(), engine=()):
        number = HOSTS.index(host)
        environment = self.of_host(host)
        pathlib.Path(environment["INFERSTAT_TEST_NVML_SCRIPT"]).write_text("\n".join([
            "gpus 2", f"uuid GPU-{number:08x}-0000-0000-0000-", "gpu all util 60",
            "gpu all memory_used 30000000000", "gpu all power 400", "gpu all temperature 60",
            *devices, ""]))
        self.start_engine(host, *engine)
        self.start(f"watch {host}", [os.environ["WORKER"], "watch"], **environment)

    def end(self):
        for screen in self.screens:
            screen.close()
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def watch(fleet, state):
    """Notes what the screens show: (host, word) -> since when, and the moments of conditions that
    hold over a window, found in the store."""
    now = time.monotonic()
    for screen in fleet.screens:
        host = None
        for line in screen.text().splitlines()[3:]:
            host = (re.findall(r"host-\d\d\d", line) or [host])[0]
            words = set(re.findall(r"[a-z]+", line)) & set(STATES)
            words |= {name for name, text in (("throttled", "throttl"), ("lanes", "x8!"),
                                              ("xid", state["xid"])) if text in line.lower()}
            if not host or "trouble" in line:  # before the rows
                continue
            for word in words - {"ok", "idle", "ended", "loading"}:
                state["seen"].setdefault((host, word), now)
    state["title"] = fleet.screens[0].text().splitlines()[0]
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        since = time.time_ns() - WINDOW_NS
        for host, word in (("host-005", "errors"), ("host-006", "slow")):
            rows = store.execute("SELECT finish, tokens_per_second FROM v_inference WHERE host = ? "
                                 "AND started_ns >= ?", (host, since)).fetchall()
            failed = sum(row[0] == "error" for row in rows)
            speeds = [row[1] for row in rows if row[1]]
            holds = (failed >= 3 and failed >= 0.05 * len(rows) if word == "errors" else
                     len(speeds) >= 10 and statistics.median_low(speeds) * SLOW < USUAL)
            if holds:
                state["holds"].setdefault((host, word), now)


def run_round(fleet, began, state):
    def until(second, step=0.2):
        while time.monotonic() < began + second:
            watch(fleet, state)
            time.sleep(step)

    until(10)
    killed = time.monotonic()
    fleet.processes["engine host-004"].kill()
    fleet.processes["engine host-004"].wait()
    until(50)
    fleet.start_engine("host-004")
    until(94)
    # The collector says nothing: the age of the data is on the screen; back, it is live.
    collector = fleet.processes["collector"]
    collector.send_signal(signal.SIGSTOP)
    stopped = time.monotonic()
    while not re.search(r"\ds old|no answer", fleet.screens[0].text()):
        check(time.monotonic() < stopped + SILENT, "no age:\n" + fleet.screens[0].text())
        time.sleep(0.05)
    print(f"age of silent data after {time.monotonic() - stopped:.1f} s")
    time.sleep(max(0, stopped + 6 - time.monotonic()))
    collector.send_signal(signal.SIGCONT)
    fleet.screens[0].wait_for("● live", 2 + STATE)
    collector.kill()
    collector.wait()
    fleet.screens[0].wait_for("no answer", GIVEN_UP)
    time.sleep(3)
    fleet.start_collector()
    fleet.screens[0].wait_for("● live", 2 + STATE)
    until(ROUND - 2)
    seen, holds = state["seen"], state["holds"]
    expected = {("host-001", "throttled"): (began + 5, DEVICE),
                ("host-002", "lanes"): (began + 5, DEVICE),
                ("host-003", "xid"): (began + 5, DEVICE),
                ("host-004", "down"): (killed, DEATH)}
    for key in (("host-005", "errors"), ("host-006", "slow")):
        check(key in holds, f"the test's condition never held: {key}")
        expected[key] = (holds[key], STATE)
    for key, (moment, limit) in expected.items():
        check(key in seen, f"never shown: {key}; shown: {seen}\n" +
              "\n".join(screen.text() for screen in fleet.screens))
        took = seen[key] - moment
        print(f"{key[0]} {key[1]}: {took:+.1f} s")
        check(-1.5 < took <= limit, f"{key} took {took:.1f} s of {limit}")
    check(set(seen) <= set(expected), f"shown without cause: {set(seen) - set(expected)}")


def main():
    if not NVML.is_file() or not shutil.which("tmux"):
        skip("no simulated devices, or no tmux")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inferstat-screen-"))
    fleet = Fleet(folder)
    try:
        fleet.start_collector()
        rounds = max(1, int(SECONDS // ROUND))
        lead = 8  # seconds until all is there
        cycles = [lead + ROUND * number for number in range(rounds)]
        devices = {"host-001": [line for at in cycles for line in (
                       f"at {at + 5} gpu 1 throttle 32", f"at {at + 35} gpu 1 throttle 0")],
                   "host-002": [line for at in cycles for line in (
                       f"at {at + 5} gpu 0 pcie_width 8", f"at {at + 35} gpu 0 pcie_width 16")],
                   "host-003": [f"at {at + 5} xid 1 {XID + number}"
                                for number, at in enumerate(cycles)]}
        fails, slow = f"{lead + 5}:{lead + 35}", f"{lead + 5}:{lead + 80}:2"
        engine = {"host-005": ["--fail", f"0:{fails}", "--fail", f"1:{fails}"],
                  "host-006": ["--slow", f"0:{slow}", "--slow", f"1:{slow}"]}
        began = time.monotonic()
        for host in HOSTS:
            fleet.start_host(host, devices.get(host, ()), engine.get(host, ()))
        for name, keys in (("now", "+"), ("devices", "+2")):
            fleet.screens.append(Screen(name, folder, keys))
        fleet.screens[0].wait_for("model-00 7/7", 10)
        for number, at in enumerate(cycles):
            run_round(fleet, began + at, {"seen": {}, "holds": {}, "xid": f"xid {XID + number}"})
    except BaseException:
        for screen in fleet.screens:
            print(screen.text())
        raise
    finally:
        fleet.end()
        shutil.rmtree(folder, ignore_errors=True)
    print("ok")


main()
