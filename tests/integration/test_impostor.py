"""A stranger who made the folder of the collector's sockets first: nobody connects to him.

Where the programs are: INFERSTATD, WORKER, INFERSTAT.
"""

import contextlib
import fcntl
import os
import pty
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from faults import (CLIENT, COLLECTOR, NOT_PERMITTED, WORKER, FaultCase,  # noqa: E402
                    leave_world, main, mount)
from programs import VOLUME, free_ports, skip  # noqa: E402
from zmtp_hands import command, frame, greeting, metadata  # noqa: E402

STRANGER = 65534
REFUSAL = "belongs to user"
PING = command(b"PING", b"\0\0")


# What it sends to one who connected: a burst, heartbeats, goodbye; or as much as it can; each an
# Envelope with an empty Reply, or nothing that can be read.
REPLY, GARBAGE = frame(b"\x22\x02\x08\x02"), frame(b"\xff" * 200)


def answer(connection, told):
    with contextlib.suppress(OSError):
        os.write(told, b"c")
        connection.settimeout(5)
        connection.sendall(greeting())
        connection.recv(64, socket.MSG_WAITALL)
        connection.sendall(command(b"READY", metadata((b"Socket-Type", b"ROUTER"))))
        if connection.recv(65536):
            os.write(told, b"m")
        kind = random.choice(["burst", "burst", "burst", "replies", "garbage"])
        if kind == "burst":
            connection.sendall(REPLY * random.choice([70, 100, 200, 400]) +
                               PING * random.choice([1, 3]))
        until = time.monotonic() + 3
        while kind != "burst" and time.monotonic() < until:
            connection.sendall((REPLY if kind == "replies" else GARBAGE) * 1000)
        # Over TCP: a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def accept(listener, told):
    listener.listen(50)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0], told), daemon=True).start()


def impostor(place, port, told):
    """Listens in the folder and at four ports until it is killed, and writes a byte for each that
    connects."""
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)
    os.mkdir(place, 0o755)
    for i, name in enumerate(("ingest", "query", "live", "admin")):
        local, remote = socket.socket(socket.AF_UNIX), socket.socket()
        local.bind(os.path.join(place, name))
        os.chmod(os.path.join(place, name), 0o777)
        remote.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        remote.bind(("127.0.0.1", port + i))
        for listener in (local, remote):
            threading.Thread(target=accept, args=(listener, told), daemon=True).start()
    os.write(told, b"r")
    time.sleep(600)


class Dashboard:
    """The dashboard in a terminal."""

    def __init__(self, address, environment):
        self.shown = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(CLIENT, [CLIENT, "--collector", address, "top"],
                       dict(environment, TERM="xterm"))
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 250, 0, 0))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError):  # it has ended
            while True:
                self.shown += os.read(self.terminal, 65536).decode(errors="replace")

    def end(self):
        """Leaves it as a user does; its exit code, negative for a signal."""
        with contextlib.suppress(OSError):
            os.write(self.terminal, b"q")
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status)


class ImpostorTest(FaultCase):
    def setUp(self):
        if os.geteuid() != 0:
            skip("only root can be another user")
        super().setUp()
        os.chmod(self.folder, 0o711)
        self.open = self.make_folder("open")
        os.chmod(self.open, 0o1777)  # as /tmp
        self.sockets = os.path.join(self.open, "inferstat")
        self.address = "ipc://" + self.sockets
        self.model = os.path.join(self.folder, "tiny.gguf")
        subprocess.run([WORKER, "make-model", "--shape", "tiny", "--type", "f32", self.model],
                       check=True, capture_output=True, timeout=60)
        self.port = free_ports(4)
        self.told, telling = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            with contextlib.suppress(BaseException):
                impostor(self.sockets, self.port, telling)
            os._exit(1)
        os.close(telling)
        self.addCleanup(self.end_impostor)
        self.assertEqual(os.read(self.told, 1), b"r")
        os.set_blocking(self.told, False)

    def end_impostor(self):
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
        self.child = None

    def contacts(self):
        """A letter for each connection, and one for each first message."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self.told, 65536).decode()
        return ""

    def start_worker(self, address=None):
        return self.start(WORKER, "--collector", address or self.address, "--log-level", "info",
                          "llm", "--model", self.model, "--tokens", "3", "--rate", "20",
                          "--requests", "forever")

    def says(self, process, words):
        self.wait_until(lambda: words in self.words(process) or process.poll() is not None)
        self.assertIn(words, self.words(process))
        self.assertIsNone(process.poll())

    def test_an_engine(self):
        """It refuses, goes on, and connects once the right collector is there."""
        worker = self.start_worker()
        self.says(worker, REFUSAL)
        time.sleep(2)
        self.assertEqual(self.contacts(), "")
        self.end_impostor()
        shutil.rmtree(self.sockets)
        self.start_collector()
        self.says(worker, "the collector at " + self.address + " answers")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(60), 0, self.words(worker))
        self.assertGreater(self.sql("SELECT count(*) FROM inference")[0][0], 0)

    def test_clients(self):
        for arguments in (["summary"], ["ping"], ["keys"], ["tail"]):
            done = subprocess.run([CLIENT, "--collector", self.address, *arguments],
                                  env=self.environment, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 4, (arguments, done.stderr))
            self.assertIn(REFUSAL, done.stderr)
            self.assertIn("--collector-user", done.stderr)
        self.assertEqual(self.contacts(), "")

    def test_a_dashboard(self):
        dashboard = Dashboard(self.address, self.environment)
        self.wait_until(lambda: REFUSAL in dashboard.shown)
        self.assertEqual(dashboard.end(), 0)
        self.assertEqual(self.contacts(), "")

    def test_a_collector(self):
        """It does not listen where the stranger could take its place."""
        for place in (self.sockets, self.open):
            done = subprocess.run([COLLECTOR, "--listen", "ipc://" + place, "--db", self.db],
                                  env=self.environment, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn(REFUSAL if place == self.sockets else "any user may write", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.open, "lock")))

    def outlive(self, address):
        """An engine and a client that the impostor may answer."""
        worker = self.start_worker(address)
        dashboard = Dashboard(address, self.environment)
        until = time.monotonic() + 10 * VOLUME
        while time.monotonic() < until:
            done = subprocess.run([CLIENT, "--collector", address, "--timeout", "500ms", "summary"],
                                  env=self.environment, capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIsNone(worker.poll(), self.words(worker))
        self.assertGreater(self.contacts().count("c"), 20)
        self.says(worker, "the connection to the collector at " + address + " was closed: ")
        self.assertEqual(dashboard.end(), 0)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(60), 0, self.words(worker))

    def test_a_port(self):
        self.outlive("tcp://127.0.0.1:%d" % self.port)

    def test_a_named_user(self):
        """Named, he is connected to."""
        self.environment["INFERSTAT_COLLECTOR_USER"] = str(STRANGER)
        self.outlive(self.address)
        self.environment["INFERSTAT_COLLECTOR_USER"] = "no such user"
        done = subprocess.run([CLIENT, "--collector", self.address, "summary"],
                              env=self.environment, capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no such user", done.stderr)


class DefaultFolderTest(FaultCase):
    """Without any address, in a /run of our own: root, a user, and a service with its user."""

    SERVICE, USER = 65533, 65534

    def setUp(self):
        if os.geteuid() != 0 or not leave_world():
            skip(NOT_PERMITTED)
        super().setUp()
        os.chmod(self.folder, 0o755)
        mount("none", "/run", "tmpfs", options="mode=755")  # it goes with this process
        self.programs = {}
        for program in (COLLECTOR, CLIENT):  # where every user may run them
            self.programs[program] = shutil.copy(program, self.folder)
        for user in (0, self.USER):
            self.make_folder_of(user, "/run/user/%d" % user)
        for name in ("XDG_RUNTIME_DIR", "INFERSTAT_COLLECTOR"):
            self.environment.pop(name, None)

    @staticmethod
    def make_folder_of(user, path, mode=0o700):
        os.makedirs(path)
        os.chmod(path, mode)
        os.chown(path, user, user)

    def listen(self, user):
        home = os.path.join(self.folder, "home-%d" % len(self.started))
        self.make_folder_of(user, home)
        errors = tempfile.TemporaryFile("w+", dir="/tmp")
        process = subprocess.Popen([self.programs[COLLECTOR], "--db", home + "/store.db"],
                                   env=self.environment, stdin=subprocess.DEVNULL, stdout=errors,
                                   stderr=errors, user=user, group=user, extra_groups=[])
        process.errors = errors
        self.started.append(process)
        return process

    def asks(self, user, runtime=None, groups=()):
        """What a ping says that is answered, within ten seconds."""
        environment = dict(self.environment, **({"XDG_RUNTIME_DIR": runtime} if runtime else {}))
        until = time.monotonic() + 10
        while True:
            done = subprocess.run([self.programs[CLIENT], "ping"], env=environment, text=True,
                                  capture_output=True, timeout=60, check=False, user=user,
                                  group=user, extra_groups=list(groups))
            if done.returncode == 0:
                return done.stdout
            self.assertLess(time.monotonic(), until, done.stderr)

    def test_root(self):
        """A login's folder is not root's: it goes when root logs out."""
        self.environment["XDG_RUNTIME_DIR"] = "/run/user/0"
        self.listen(0)
        self.environment.pop("XDG_RUNTIME_DIR")
        for runtime in (None, "/run/user/0", "/run/user/%d" % self.USER):
            self.assertIn("ipc:///run/inferstat", self.asks(0, runtime))

    def test_a_user(self):
        own = "/run/user/%d" % self.USER
        self.environment["XDG_RUNTIME_DIR"] = own
        self.listen(self.USER)
        self.environment.pop("XDG_RUNTIME_DIR")
        for runtime in (None, own, "/run/user/0"):
            self.assertIn("ipc://%s/inferstat" % own, self.asks(self.USER, runtime))

    def test_a_service(self):
        """Its manager made the folder for it; members of its group may ask."""
        self.make_folder_of(self.SERVICE, "/run/inferstat", 0o750)
        self.listen(self.SERVICE)
        own = "/run/user/%d" % self.USER
        for user, runtime in ((0, None), (self.USER, own), (self.SERVICE, None)):
            self.assertIn("ipc:///run/inferstat", self.asks(user, runtime, [self.SERVICE]))


if __name__ == "__main__":
    main()
