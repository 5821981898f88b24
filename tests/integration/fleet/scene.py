"""A collector under attack, an honest producer and dashboard beside it that measure how long
they wait, and hostile peers.  Every peer is a process of its own.

Where the programs are: INFERSTATD, INFERSTAT, FAULT_ENGINE.
"""

import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "support")]

from foreign_client import COLLECTOR, compile_proto  # noqa: E402
from programs import check, free_ports, has_report  # noqa: E402

import zmq  # noqa: E402

CLIENT = os.environ.get("INFERSTAT", "inferstat")
SANITIZED = bool(os.environ.get("INFERSTAT_SANITIZE"))
SERVICES = ("ingest", "query", "live")
HOSTILE_UID = 60000  # the first user id of hostile peers, and the group that may connect
HONEST_UID = 59999
MIB = 1 << 20


def p99_ms(waits_s):
    """Milliseconds; waits_s is not empty."""
    return 1e3 * sorted(waits_s)[math.ceil(0.99 * len(waits_s)) - 1]


def place_for_store():
    """In memory if there is room, so that waits are those that the attack causes, and not those
    for a disk that others use; TMPDIR says otherwise."""
    with contextlib.suppress(OSError):
        space = os.statvfs("/dev/shm")
        if "TMPDIR" not in os.environ and space.f_bavail * space.f_frsize > 1 << 30:
            return "/dev/shm"
    return None


def raise_file_limit():
    """For processes with hundreds of connections."""
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Child:
    """A program of this folder that takes its settings as JSON."""

    def __init__(self, program, settings, **options):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / program), json.dumps(settings)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, text=True, preexec_fn=os.setpgrp, **options)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.said = ""

    def lines(self):
        """What it has said so far."""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.process.stdout.fileno(), 65536):
                self.said += part.decode()
        return self.said.splitlines()

    def wait_for_line(self, seconds):
        deadline = time.monotonic() + seconds
        while not self.lines():
            check(self.process.poll() is None and time.monotonic() < deadline,
                  f"an honest peer cannot begin: {self.words()}")
            time.sleep(0.02)

    def finish(self, seconds=60):
        """Ends it by the end of its input; its last line, as JSON."""
        self.process.stdin.close()
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self.lines()  # a pipe takes 64 KB, and what it says may be more
            time.sleep(0.02)
        check(self.process.poll() == 0, f"an honest peer failed: {self.words()}")
        return json.loads(self.lines()[-1])

    def words(self):
        """Its last errors, also after its end."""
        if not self.errors.closed:
            self.errors.seek(0)
            self.failures = self.errors.read()[-3000:]
        return self.failures

    def kill(self):
        """With everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.words()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            file.close()


class Scene:
    """`names`: of the keys for CURVE, all of them producers and readers; none: TCP without
    keys, and only if `tcp`."""

    def __init__(self, *options, names=(), tcp=False):
        raise_file_limit()
        # Others have to get to the sockets, and to read what was made of the .proto.
        self.folder = tempfile.mkdtemp(prefix="inferstat-fleet-", dir=place_for_store())
        os.chmod(self.folder, 0o755)
        self.protocol = os.path.join(self.folder, "protocol")
        os.mkdir(self.protocol)
        self.pb = compile_proto(self.protocol)
        self.sockets = os.path.join(self.folder, "sockets")
        self.store = os.path.join(self.folder, "store.db")
        self.address = "ipc://" + self.sockets
        self.children, self.log_lines, self.keys = [], [], {}
        self.rss_max = self.file_max = self.log_max = 0
        arguments = ["--listen", self.address, "--db", self.store, *options]
        self.port = free_ports(4) if tcp or names else None
        if self.port:
            arguments += ["--listen", f"tcp://127.0.0.1:{self.port}"]
        if names:
            arguments += self.write_keys(names)
        self.log = open(os.path.join(self.folder, "log"), "w+b")
        self.rest_of_line = b""
        group = {"group": HOSTILE_UID, "umask": 0o007} if os.getuid() == 0 else {}
        self.process = subprocess.Popen([COLLECTOR, *arguments], stdout=self.log, stderr=self.log,
                                        env=dict(os.environ, HOME=self.folder), **group)
        while not os.path.exists(os.path.join(self.sockets, "admin")):
            self.watch()
            time.sleep(0.02)

    def write_keys(self, names):
        public, secret = (key.decode() for key in zmq.curve_keypair())
        server = os.path.join(self.folder, "server.key")
        write_private(server, f"inferstat-secret-key 1\npublic {public}\nsecret {secret}\n")
        self.server_key = public
        self.keys = {name: [key.decode() for key in zmq.curve_keypair()] for name in names}
        allowed = os.path.join(self.folder, "authorized_keys")
        write_private(allowed, "".join(f"{keys[0]} producer,reader {name}\n"
                                       for name, keys in self.keys.items()))
        return ["--key", server, "--authorized-keys", allowed]

    def how_to_reach(self, transport, name=None, source="127.0.0.1"):
        """Settings of a child: where the sockets are, and the keys of `name`."""
        where = {"protocol": self.protocol, "name": name}
        if transport == "ipc":
            return where | {"folder": self.sockets}
        where |= {"port": self.port, "source": source}
        return where | ({"keys": [self.server_key, *self.keys[name]]} if self.keys else {})

    def start_child(self, program, settings, **options):
        child = Child(program, settings, **options)
        self.children.append(child)
        return child

    def start_honest(self, kind, transport, preload=0):
        settings = self.how_to_reach(transport, "honest-" + kind)
        settings |= {"kind": kind, "preload": preload}
        if os.getuid() == 0:
            settings |= {"uid": HONEST_UID, "gid": HOSTILE_UID}
        return self.start_child("honest.py", settings)

    # ---- What is watched ----

    def watch(self):
        """To be called several times a second.  Fails when the collector has ended."""
        code = self.process.poll()
        self.read_log()
        check(code is None, f"THE COLLECTOR ENDED with {code}: {self.last_words()}")
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            pages = file.read().split()  # empty once it has ended
        self.rss_max = max(self.rss_max, int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0)
        self.file_max = max(self.file_max, size_of(self.store))
        self.log_max = max(self.log_max, size_of(self.store + "-wal"))

    def read_log(self):
        """Its new lines, with the time when they were seen."""
        with open(self.log.name, "rb") as file:
            file.seek(getattr(self, "log_at", 0))
            text = file.read()
            self.log_at = file.tell()
        *lines, self.rest_of_line = (self.rest_of_line + text).split(b"\n")
        now = time.monotonic()
        self.log_lines += [(now, line.decode("utf-8", "replace")) for line in lines]

    def last_words(self):
        return "\n".join(line for _, line in self.log_lines[-12:])

    def descriptors(self):
        """What is open: a list of kinds and paths."""
        folder, found = f"/proc/{self.process.pid}/fd", []
        for number in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                found.append(re.sub(r":\[\d+\]", "", os.readlink(os.path.join(folder, number))))
        return found

    def check_healthy_end(self):
        """The collector ends well, and soon."""
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(timeout=60) == 0, "the collector ends well")
        self.read_log()
        words = "\n".join(line for _, line in self.log_lines)
        check(not has_report(words), words[-4000:])

    def check_run(self, run, produced):
        """Every record of the honest run is stored once, and its ledger balances.  After the end."""
        done = subprocess.run([CLIENT, "--db", self.store, "audit", "--json"], timeout=120,
                              capture_output=True, text=True)
        rows = [row for row in json.loads(done.stdout)["rows"] if row["run"] == run]
        check(len(rows) == 1, f"{len(rows)} rows of the honest run {run}: {done.stderr}")
        row = rows[0]
        check(row["verdict"] == "balanced" and row["produced"] == produced == row["stored"],
              f"{produced} honest records, and the audit says {row}")

    def close(self):
        for child in self.children:
            child.kill()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def write_private(path, text):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(text)


def size_of(path):
    with contextlib.suppress(FileNotFoundError):
        return os.stat(path).st_size
    return 0
