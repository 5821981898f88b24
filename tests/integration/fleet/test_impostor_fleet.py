#!/usr/bin/env python3
"""False collectors against a real engine (inferstat-worker) and a real dashboard (inferstat top).

They answer with garbage, floods, endless frames, half greetings, small messages with heartbeats
before they leave, or not at all.  (After a frame beyond libzmq's limit it does not connect again:
left out.)  Engine and dashboard live, the engine's memory stays, its log names who sends too much or
what cannot be read within ten seconds, and once the real collector is there it gets every record.
It takes 15 seconds a class times INFERSTAT_TEST_VOLUME.
"""

import os
import pty
import re
import select
import signal
import subprocess
import time

from scene import HOSTILE_UID, MIB, SANITIZED, Child
from faults import CLOSED, CLIENT, WORKER, FaultCase, main
from impostor import ROLES
from programs import VOLUME, free_ports

SECONDS = (5 if SANITIZED else 15) * VOLUME
GROWN_MAX = 64 * MIB
NAMED_S = 10
# Those that send something that an engine can tell from what a collector sends.
NOISY = ("ping", "garbage", "flood")
NAMED = re.compile("(?i)flood|too many|cannot be read")


class Dashboard:
    """`inferstat top` in a terminal of its own; what it showed is kept."""

    def __init__(self, address, environment):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(CLIENT, [CLIENT, "--collector", address, "top"],
                      dict(environment, TERM="xterm", COLUMNS="120", LINES="40"))
        self.shown, self.code = b"", None

    def look(self):
        """Whether it lives.  Reads what it showed."""
        while self.code is None and select.select([self.terminal], [], [], 0)[0]:
            try:
                self.shown = (self.shown + os.read(self.terminal, 65536))[-1 << 20:]
            except OSError:
                break  # it has ended
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is None

    def quit(self, seconds=20):
        """Its exit code."""
        deadline = time.monotonic() + seconds
        while self.look() and time.monotonic() < deadline:
            os.write(self.terminal, b"q")
            time.sleep(0.1)
        self.kill()
        return self.code

    def kill(self):
        if self.look():
            os.kill(self.pid, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class ImpostorFleetTest(FaultCase):
    def setUp(self):
        super().setUp()
        self.model = os.path.join(self.folder, "tiny.gguf")
        subprocess.run([WORKER, "make-model", "--shape", "tiny", "--type", "f32", self.model],
                       check=True, capture_output=True, timeout=60)
        self.impostor = None
        self.addCleanup(lambda: self.impostor and self.impostor.kill())

    def memory(self, process):
        with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def warnings(self, worker):
        """What it says beside the text that it generates."""
        return "\n".join(line for line in self.words(worker).splitlines()
                         if line.startswith(("inferstat-worker:", "Assertion"))) or "no words"

    def start_worker(self):
        return self.start(WORKER, "--collector", self.address, "--log-level", "warning", "llm", "--model",
                          self.model, "--tokens", "3", "--rate", "100", "--requests", "forever")

    def suffer(self, settings):
        """Worker and dashboard at the false collectors; then at the real one, which gets all."""
        self.impostor = Child("impostor.py", settings | {
            "seed": self.seed, "roles": [role for role in ROLES if role != "huge_frame"]})
        self.impostor.wait_for_line(10)
        worker, began = self.start_worker(), time.monotonic()
        dashboard = Dashboard(self.address, self.environment)
        self.addCleanup(dashboard.kill)
        self.let(0.5)
        least, most, named_at = self.memory(worker), 0, None
        while time.monotonic() < began + SECONDS:
            self.assertIsNone(worker.poll(), "THE ENGINE ENDED: " + self.warnings(worker))
            self.assertTrue(dashboard.look(), f"THE DASHBOARD ENDED with {dashboard.code}: "
                            f"{dashboard.shown[-500:]}")
            least, most = min(least, self.memory(worker)), max(most, self.memory(worker))
            if named_at is None and NAMED.search(self.warnings(worker)):
                named_at = time.monotonic()
            self.let(0.1)
        played = [line.split()[1:] for line in self.impostor.lines() if line.startswith("playing")]
        # The dashboard meets others than the engine does, and is not who names them.
        noisy_at = min((float(at) for role, at, service in played
                        if role in NOISY and service == "ingest"), default=None)
        print("%s: %d connections, engine grown by %.1f MiB, named after %s s" % (
            self.id(), len(played), (most - least) / MIB,
            noisy_at and named_at and round(named_at - noisy_at, 1)), flush=True)
        self.impostor.kill()
        self.impostor = None
        self.recover(worker, dashboard)
        self.assertTrue(SANITIZED or most - least <= GROWN_MAX, "the engine's memory has grown")
        if noisy_at and noisy_at < began + SECONDS - NAMED_S:
            self.assertIsNotNone(named_at, "not named: " + self.warnings(worker))
            self.assertLessEqual(named_at - noisy_at, NAMED_S)

    def recover(self, worker, dashboard):
        self.start_collector()
        self.wait_until(lambda: self.stored() > 0 or worker.poll() is not None, 60)
        self.assertIsNone(worker.poll(), "THE ENGINE ENDED: " + self.warnings(worker))
        self.assertEqual(dashboard.quit(), 0, dashboard.shown[-500:])
        self.end(worker)
        self.flush()
        self.check_audit(ends=(CLOSED,))
        self.assertEqual(self.sql("SELECT count(*), sum(produced) - sum(stored) FROM run"), [(1, 0)])


class LoopbackTest(ImpostorFleetTest):
    """Whoever has the port first is the collector there."""

    def test_loopback(self):
        port = free_ports(4)
        self.address = self.engines_address = f"tcp://127.0.0.1:{port}"
        self.suffer({"port": port})


class LocalTest(ImpostorFleetTest):
    """A user whom engine and dashboard were told to trust; without root, their own."""

    def test_local(self):
        folder = self.make_folder("public")
        sockets = os.path.join(folder, "sockets")
        self.address = self.engines_address = "ipc://" + sockets
        settings = {"folder": sockets}
        if os.getuid() == 0:
            os.chmod(self.folder, 0o755)
            os.chmod(folder, 0o1777)
            self.environment["INFERSTAT_COLLECTOR_USER"] = str(HOSTILE_UID)
            settings["uid"] = HOSTILE_UID
        self.suffer(settings)

    def recover(self, worker, dashboard):
        os.rename(os.path.join(self.folder, "public"), os.path.join(self.folder, "was"))
        self.make_folder("public")
        super().recover(worker, dashboard)


if __name__ == "__main__":
    main()
