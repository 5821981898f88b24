"""The dashboard beside a fleet to which known things happen at known moments, read from its screen:
each shows within its time, goes within its time, and nothing else lights up.

Hosts are simulated (fleet_engine, fake_nvml); collector, samplers and dashboards are real.  A store
with five days of the same requests says what is usual.  One round takes about two minutes;
INFERSTAT_TEST_SECONDS=3600 repeats it for an hour.  Each round, by its seconds:

    5   of host-001 a device throttles and one has a foreign process; of host-002 a device has 8
        lanes; of host-003 a device reports an XID, and the host is short of memory;
        requests of host-005 begin to fail, those of host-006 take twice as long;
        in the first round a device of host-002 has memory errors, which it keeps
   10   the engine of host-004 is killed; at 50 it is started again
   20   in the first round an engine of host-000 loses records
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
import threading
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
TEXTS = {"throttled": "throttl", "foreign": "foreign process", "lanes": "x8!", "ecc": "ecc uncorr",
         "pressure": "memory pressure"}
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total={:012d}\n"
# What has memory pressure of its own: a process that sees another file instead of the kernel's.
PRESSED = ["unshare", "-rm", "sh", "-c", 'mount --bind "$0" /proc/pressure/memory && exec "$@"']


class Screen:
    """A dashboard in a terminal."""

    def __init__(self, name, folder, keys):
        self.name, self.socket = name, folder / f"{name}.tmux"
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
        self.has_pressure = subprocess.run([*PRESSED, os.devnull, "true"], capture_output=True,
                                           check=False).returncode == 0
        os.mkdir(folder / "c", 0o750)
        subprocess.run([SUPPORT / "make_history", self.store, "--inferences", "60000", "--models",
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

    def set_pressure(self, host, waited_s):
        """Tasks of the host have waited so long for memory; in place, as the kernel counts."""
        with open(self.folder / host / "pressure", "r+" if waited_s else "w") as file:
            file.write(PRESSURE.format(int(1e6 * waited_s)))

    def start_host(self, host, devices=(), engine=()):
        number = HOSTS.index(host)
        environment = self.of_host(host)
        self.set_pressure(host, 0)
        own = [*PRESSED, self.folder / host / "pressure"] if self.has_pressure else []
        pathlib.Path(environment["INFERSTAT_TEST_NVML_SCRIPT"]).write_text("\n".join([
            "gpus 2", f"uuid GPU-{number:08x}-0000-0000-0000-", "gpu all util 60",
            "gpu all memory_used 30000000000", "gpu all power 400", "gpu all temperature 60",
            *devices, ""]))
        self.start_engine(host, *engine)
        self.start(f"watch {host}", [*own, os.environ["WORKER"], "watch"], **environment)

    def start_losses(self, host):
        """An engine with more records at once than its ring holds."""
        self.start("losses", [os.environ["FAULT_ENGINE"], "--shared", self.folder / host / "counts",
                              "--threads", "1", "--mix", "operations", "--rate", "2000000",
                              "--count", "20000", "--ring", "64"], **self.of_host(host))

    def end(self):
        for screen in self.screens:
            screen.close()
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def find_trouble(screen, texts):
    """(host, word) of all that is on a screen."""
    host, found = None, set()
    for line in screen.text().splitlines()[3:]:
        host = (re.findall(r"host-\d\d\d", line) or [host])[0]
        if not host or "trouble" in line:  # before the rows
            continue
        if screen.name == "ledger":
            row = line.strip(" >").split()  # before the losses: host, pid, started, ..., in flight
            words = {"lost"} if row[:1] == [host] and row[7:9] != ["0", "0"] else set()
        else:
            words = set(re.findall(r"[a-z]+", line)) & set(STATES) - {"ok", "idle", "ended", "loading"}
            words |= {word for word, text in texts.items() if text in line.lower()}
        found |= {(host, word) for word in words}
    return found


def watch(fleet, state):
    """Notes what the screens show: (host, word) -> the moments when it was first and last there; and
    the same of conditions that hold over a window, found in the store."""
    now = time.monotonic()

    def note(place, key):
        state[place][key] = (state[place].get(key, (now, now))[0], now)

    for screen in fleet.screens:
        for key in find_trouble(screen, state["texts"]):
            note("seen", key)
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
                note("holds", (host, word))


def run_round(fleet, number, began):
    state = {"seen": {}, "holds": {}, "texts": {**TEXTS, "xid": f"xid {XID + number}"}}

    def until(second, step=0.2):
        while time.monotonic() < began + second:
            watch(fleet, state)
            time.sleep(step)

    def press():  # half of the time, also while this machine is slow to look at the screens
        while (passed := time.monotonic() - began) < 36:
            fleet.set_pressure("host-003", (30 * number + min(max(passed - 5, 0), 30)) / 2)
            time.sleep(0.1)

    threading.Thread(target=press, daemon=True).start()
    until(10)
    killed = time.monotonic()
    fleet.processes["engine host-004"].kill()
    fleet.processes["engine host-004"].wait()
    until(20)
    if number == 0:
        fleet.start_losses("host-000")
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
    time.sleep(STATE)  # what they show is still of before: nobody has watched what held meanwhile
    until(ROUND - 2)
    seen, holds = state["seen"], state["holds"]
    # When each came and went, and how soon that shows: the sampler waits for some good readings.
    came, went = began + 5, began + 35
    expected = {("host-001", "throttled"): (came, DEVICE, went, DEVICE + 5),
                ("host-001", "foreign"): (came, DEVICE, went, DEVICE + 3),
                ("host-002", "lanes"): (came, DEVICE, went, DEVICE),
                ("host-003", "xid"): (came, DEVICE, None, 0),
                ("host-004", "down"): (killed, DEATH, began + 50, DEATH)}
    if fleet.has_pressure:
        expected["host-003", "pressure"] = (came, DEVICE + 3, went, DEVICE + 5)
    for key in (("host-005", "errors"), ("host-006", "slow")):
        check(key in holds, f"the test's condition never held: {key}")
        expected[key] = (holds[key][0], STATE, holds[key][1], STATE)
    stays = {("host-002", "ecc"): (came, DEVICE, None, 0),
             ("host-000", "lost"): (began + 20, DEVICE, None, 0)}
    expected |= stays if number == 0 else {}
    for key, (since, limit, until_, limit_gone) in expected.items():
        check(key in seen, f"never shown: {key}; shown: {seen}\n" +
              "\n".join(screen.text() for screen in fleet.screens))
        took, stayed = seen[key][0] - since, seen[key][1] - (until_ or seen[key][1])
        print(f"{key[0]} {key[1]}: {took:+.1f} s" + (f", gone {stayed:+.1f} s" if until_ else ""))
        check(-1.5 < took <= limit, f"{key} took {took:.1f} s of {limit}")
        check(stayed <= limit_gone, f"{key} was still shown after {stayed:.1f} s of {limit_gone}")
    causeless = set(seen) - set(expected) - set(stays)
    check(not causeless, f"shown without cause: {causeless}")


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
        mine, other = os.getpid(), os.getppid()
        again = {  # device by device: what comes at second 5 and goes at 35
            "host-001": ("gpu 1 throttle 32", "gpu 1 throttle 0",
                         f"process 0 {other} 2000000000", f"process 0 {other} 0"),
            "host-002": ("gpu 0 pcie_width 8", "gpu 0 pcie_width 16")}
        devices = {host: [f"at {at + (35 if line % 2 else 5)} {text}" for at in cycles
                          for line, text in enumerate(texts)] for host, texts in again.items()}
        devices["host-001"] += [f"process 0 {mine} 30000000000"]
        devices["host-002"] += [f"at {cycles[0] + 5} gpu 1 ecc_uncorrected 2"]
        devices["host-003"] = [f"at {at + 5} xid 1 {XID + number}"
                               for number, at in enumerate(cycles)]
        fails, slow = f"{lead + 5}:{lead + 35}", f"{lead + 5}:{lead + 80}:2"
        engine = {"host-005": ["--fail", f"0:{fails}", "--fail", f"1:{fails}"],
                  "host-006": ["--slow", f"0:{slow}", "--slow", f"1:{slow}"]}
        began = time.monotonic()
        for host in HOSTS:
            fleet.start_host(host, devices.get(host, ()), engine.get(host, ()))
        for name, keys in (("now", "+"), ("devices", "+2"), ("ledger", "8")):
            fleet.screens.append(Screen(name, folder, keys))
        fleet.screens[0].wait_for("model-00 7/7", 10)
        for number, at in enumerate(cycles):
            run_round(fleet, number, began + at)
    except BaseException:
        for screen in fleet.screens:
            print(screen.text())
        raise
    finally:
        fleet.end()
        shutil.rmtree(folder, ignore_errors=True)
    print("ok")


main()
