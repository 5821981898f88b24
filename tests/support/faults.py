"""What the fault tests share: engines that count what they record, programs to kill,
and the comparison of what is stored with what was counted.

Where the programs are: INFERSTATD, WORKER, INFERSTAT, FAULT_ENGINE, SHIFT_CLOCK.
"""

import ctypes
import json
import mmap
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest

from programs import has_report

COLLECTOR = os.environ.get("INFERSTATD", "inferstatd")
WORKER = os.environ.get("WORKER", "inferstat-worker")
CLIENT = os.environ.get("INFERSTAT", "inferstat")
ENGINE = os.environ.get("FAULT_ENGINE", "fault_engine")
SHIFT_CLOCK = os.environ.get("SHIFT_CLOCK")
SANITIZED = bool(os.environ.get("INFERSTAT_SANITIZE"))

# DropReason of the protocol.
SPOOL_FULL, REFUSED, ACKNOWLEDGED_ELSEWHERE, RING_FULL, SPOOL_DAMAGED = 1, 2, 3, 4, 5
# How a run ended.
OPEN, CLOSED, KILLED, SILENT = 0, 1, 2, 3

FLAT_OUT = 1000001  # a rate of the engine: as fast as it can
NOT_PERMITTED = "not permitted here"


# ---- Worlds of our own ----------------------------------------------------------

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind=None, flags=0, options=None):
    texts = [None if text is None else os.fsencode(text) for text in
             (source, target, kind, options)]
    if libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) != 0:
        raise OSError(ctypes.get_errno(), "mount", target)


def unmount(target):
    if libc.umount2(os.fsencode(target), 0) != 0:
        raise OSError(ctypes.get_errno(), "umount", target)


def leave_world(network=False):
    """Takes this process and its children into mounts (and a network) of their own,
    which go with the last of them.  False where that is not permitted."""
    flags = CLONE_NEWNS | (CLONE_NEWNET if network else 0)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(flags) != 0:
        if libc.unshare(flags | CLONE_NEWUSER) != 0:
            return False
        try:
            for name, text in (("setgroups", "deny"), ("uid_map", "0 %d 1" % user),
                               ("gid_map", "0 %d 1" % group)):
                with open("/proc/self/" + name, "w") as file:
                    file.write(text)
        except OSError:
            return False
    try:
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
    except OSError:
        return False
    return True


# ---- An engine --------------------------------------------------------------------

class Engine:
    """A fault_engine and the counts it leaves in its file (see fault_engine.c)."""

    HEADER, THREAD = 128, 64
    STARTING, RUNNING, ENDED, UNFINISHED, BLIND = range(5)

    def __init__(self, process, path, program):
        self.process, self.path, self.program = process, path, program
        self.memory = None
        self.allowed = ()      # reasons for which it may lose records
        self.may_overrun = False  # its rings may be full: records without a number
        self.is_torn = False   # its host went down: the last records are gone untold

    def mapped(self):
        if self.memory is None and os.path.exists(self.path):
            with open(self.path, "r+b") as file:
                self.memory = mmap.mmap(file.fileno(), 0)
        return self.memory is not None

    def word(self, offset):
        return struct.unpack_from("<Q", self.memory, offset)[0] if self.mapped() else 0

    @property
    def state(self):
        return self.word(24)

    def set_rate(self, rate):
        struct.pack_into("<Q", self.memory, 16, rate)

    def totals(self):
        """What the library said at its end: produced, acknowledged, dropped."""
        return self.word(32), self.word(40), self.word(48)

    def threads(self):
        """For each: calls of end() that returned, that began, whether of inferences."""
        for thread in range(self.word(8)):
            at = self.HEADER + thread * self.THREAD
            ended = self.word(at + 8)  # before the other: it is never above it
            yield ended, self.word(at), self.word(at + 16) != 0

    def ended(self):
        return sum(thread[0] for thread in self.threads())

    def alive(self):
        return self.process.poll() is None


class FaultCase(unittest.TestCase):
    """A folder, a store, a collector, engines.  Whatever is started is ended by its id."""

    address = None
    place = ()   # what starts the engines' side in another place ("ip netns exec NAME")
    collector_place = ()
    collector_options = ()
    flush_options = []  # of `inferstat spool flush`

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="inferstat-fault-", dir="/tmp")
        self.run_folder = self.make_folder("run")
        self.spool = os.path.join(self.folder, "spool")
        self.address = "ipc://" + self.folder + "/sockets"
        self.engines_address = self.address
        self.db = os.path.join(self.folder, "store.db")
        self.environment = dict(os.environ, INFERSTAT_RUN_DIR=self.run_folder,
                                INFERSTAT_SPOOL=self.spool, HOME=self.folder, LC_ALL="C.UTF-8",
                                XDG_CACHE_HOME=self.folder, XDG_CONFIG_HOME=self.folder,
                                XDG_STATE_HOME=self.folder)
        self.environment.pop("INFERSTAT_COLLECTOR", None)
        self.started = []
        self.engines = []
        self.collector = None
        self.seed = int(os.environ.get("INFERSTAT_TEST_SEED", random.randrange(1 << 32)))
        self.random = random.Random(self.seed)
        print("%s: INFERSTAT_TEST_SEED=%d" % (self.id(), self.seed), flush=True)
        self.addCleanup(self.clean_up)

    def clean_up(self):
        """Ends what still runs, also after a failure."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        reports = [self.words(process) for process in self.started
                   if has_report(self.words(process))]
        for process in self.started:
            process.errors.close()
        self.started = []
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertFalse(reports, reports)

    def make_folder(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    # ---- Programs -------------------------------------------------------------------

    def start(self, *command, environment=None, out=None):
        """Its words go to a file, and with `out` its standard output to that one."""
        errors = tempfile.TemporaryFile("w+", dir="/tmp", errors="replace")
        process = subprocess.Popen(command, env=environment or self.environment,
                                   stdin=subprocess.DEVNULL, stdout=out or errors, stderr=errors)
        process.errors = errors
        self.started.append(process)
        return process

    def forget(self, process):
        """Of one that ended: nothing of it is needed any more."""
        words = self.words(process)
        self.assertFalse(has_report(words), words)
        process.errors.close()
        self.started.remove(process)

    @staticmethod
    def words(process):
        process.errors.seek(0)
        return process.errors.read()

    def start_collector(self, *options, wait=True, environment=None):
        self.collector = self.start(*self.collector_place, COLLECTOR, "--listen", self.address,
                                    "--db", self.db, *self.collector_options, *options,
                                    environment=environment)
        if wait:
            self.wait_for_collector()
        return self.collector

    def wait_for_collector(self, seconds=30):
        self.wait_until(self.collector_answers, seconds)

    def collector_answers(self):
        if self.collector.poll() is not None:
            self.fail("the collector ended early: " + self.words(self.collector))
        return self.client("ping", code=None).returncode == 0

    def start_engine(self, rate=100, threads=2, *options, environment=None, wait=True):
        number = len(self.engines)
        program = "fault-engine-%d" % number
        path = os.path.join(self.folder, program)
        command = [*self.place, ENGINE, "--shared", path, "--program", program,
                   "--rate", str(rate), "--threads", str(threads), *options]
        process = self.start(*command, environment=dict(environment or self.environment,
                                                        INFERSTAT_COLLECTOR=self.engines_address))
        engine = Engine(process, path, program)
        self.engines.append(engine)
        if wait:
            self.wait_until(lambda: engine.state != Engine.STARTING or not engine.alive())
            self.assertEqual(engine.state, Engine.RUNNING, self.words(process))
        return engine

    def client(self, *arguments, code=0, source=None, seconds=60):
        if source is None:
            source = ["--collector", self.address]
        done = subprocess.run([*self.place, CLIENT, *source, *arguments], env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=seconds)
        self.assertFalse(has_report(done.stderr), done.stderr)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def end(self, process, number=signal.SIGTERM, seconds=60):
        if process.poll() is None:
            process.send_signal(number)
        code = process.wait(timeout=seconds)
        self.assertEqual(code, -number if number == signal.SIGKILL else 0, self.words(process))

    def kill(self, process):
        self.end(process, signal.SIGKILL)

    def wait_until(self, condition, seconds=30, step=0.02):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, "waited in vain")
            time.sleep(step)

    def let(self, seconds):
        """Lets things happen for so long."""
        time.sleep(seconds)

    # ---- What is left of the dead ---------------------------------------------------

    def left_behind(self):
        """Run files and spools that still lie there."""
        files = [name for name in os.listdir(self.run_folder) if name.endswith(".run")]
        spools = os.listdir(self.spool) if os.path.isdir(self.spool) else []
        return files + spools

    def spool_rows(self):
        """What `spool list` says."""
        done = self.client("spool", "list", "--json", code=None, source=[])
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return json.loads(done.stdout)["rows"] if done.returncode == 0 else []

    def flush(self, seconds=60):
        """Replays what the dead left, by hand, until nothing is left."""
        deadline = time.monotonic() + seconds
        while True:
            done = self.client("spool", "flush", *self.flush_options, code=None, source=[],
                               seconds=seconds)
            if done.returncode in (0, 3) and not self.left_behind():
                return
            self.assertIn(done.returncode, (0, 3, 4), done.stdout + done.stderr)
            self.assertLess(time.monotonic(), deadline,
                            "still there: %s\n%s%s" % (self.left_behind(), done.stdout,
                                                       done.stderr))
            time.sleep(0.1)

    # ---- What the store says --------------------------------------------------------

    def sql(self, text, *values, db=None):
        connection = sqlite3.connect("file:%s?mode=ro" % (db or self.db), uri=True, timeout=30)
        try:
            return connection.execute(text, values).fetchall()
        finally:
            connection.close()

    def stored(self):
        """Records of engines in the store; 0 while there is none."""
        try:
            return self.sql("SELECT (SELECT count(*) FROM operation) + "
                            "(SELECT count(*) FROM inference)")[0][0]
        except sqlite3.OperationalError:
            return 0

    def audit(self, code=0, source=None):
        """The audit's rows; it must end with `code`."""
        done = self.client("audit", "--json", code=code, source=source, seconds=180)
        return json.loads(done.stdout)["rows"]

    def check_audit(self, ends=(CLOSED, KILLED), source=None):
        """Every run balances, and each has ended in one of these ways."""
        words = {OPEN: "open", CLOSED: "closed", KILLED: "killed", SILENT: "silent"}
        for row in self.audit(source=source):
            if row["verdict"] == "forgotten":  # the sum of runs that were removed
                continue
            self.assertIn(row["end"], [words[end] for end in ends], row)
            if row["end"] in ("closed", "killed"):
                self.assertEqual(row["verdict"], "balanced", row)

    def check_counts(self, engines=None, db=None):
        """What is stored of each engine lies between its counts: nothing twice, nothing
        that was not begun, and all that had returned, but for losses with a reason."""
        rows = {}
        for version, name, count, distinct, least, most, streams, stream in self.sql(
                "SELECT r.worker_version, n.text, count(*), count(DISTINCT t.number), "
                "min(t.number), max(t.number), count(DISTINCT t.stream), min(t.stream) FROM "
                "(SELECT run, stream, operation AS name, items AS number FROM operation "
                " UNION ALL SELECT run, stream, model, request FROM inference) t "
                "JOIN run r ON r.run = t.run JOIN name n ON n.id = t.name "
                "WHERE r.worker_version LIKE 'fault-engine-%' GROUP BY t.run, t.name", db=db):
            self.assertNotIn((version, name), rows, "a run that is stored as two")
            rows[version, name] = (count, distinct, least, most, streams, stream)
        for engine in engines or self.engines:
            for thread, counts in enumerate(engine.threads()):
                self.check_thread(engine, counts, db,
                                  rows.get((engine.program, "fault-%d" % thread)))

    def check_thread(self, engine, counts, db, row):
        ended, begun, is_inference = counts
        count, distinct, least, most, streams, stream = row or (0, 0, 1, 0, 1, None)
        about = "%s: %s of %s (ended, begun, inferences)" % (engine.program, row, counts)
        self.assertEqual(count, distinct, "twice: " + about)
        self.assertTrue(least >= 1 and most <= begun, "never begun: " + about)
        self.assertEqual(streams, 1, about)
        if not engine.allowed and not engine.may_overrun:
            self.assertEqual(count, most, "one is missing: " + about)
            if not engine.is_torn:
                self.assertGreaterEqual(count, ended, "lost: " + about)
            return
        reasons, lost = self.losses(engine, stream, db)
        self.assertLessEqual(set(reasons), set(engine.allowed), about)
        if not engine.may_overrun:
            self.assertEqual(reasons.get(RING_FULL, 0), 0, about)
        # A stream of operations holds nothing else, so its losses are exact.
        self.assertGreaterEqual(count + lost, ended, "lost without a word: %s %s" % (about, reasons))
        if stream is not None and not is_inference:
            self.assertLessEqual(count + lost, begun, "said to be lost: %s %s" % (about, reasons))

    def losses(self, engine, stream, db=None):
        """Numbers dropped by reason, and all that is lost, of a stream or of the run."""
        where = "FROM %s x JOIN run r ON r.run = x.run WHERE r.worker_version = ?"
        if stream is not None:
            where += " AND x.stream = %d" % stream
        reasons = dict(self.sql("SELECT x.reason, sum(x.last - x.first + 1) " + where % "range" +
                                " AND x.state = 1 GROUP BY x.reason", engine.program, db=db))
        unnumbered = self.sql("SELECT coalesce(sum(x.unnumbered), 0) " + where % "stream",
                              engine.program, db=db)[0][0]
        lost = sum(reasons.values()) + unnumbered
        if unnumbered and not engine.may_overrun:
            reasons[RING_FULL] = reasons.get(RING_FULL, 0) + unnumbered
        return reasons, lost

    def finish(self, ends=(CLOSED, KILLED), engines=None):
        """All engines end, what the dead left is replayed, and everything adds up."""
        for engine in self.engines:
            if engine.alive():
                self.wait_until(lambda: engine.state != Engine.STARTING)
                self.end(engine.process)
                self.assertIn(engine.state, (Engine.ENDED, Engine.UNFINISHED), engine.program)
        self.flush()
        self.check_audit(ends)
        self.check_counts(engines)


def main():
    """Runs the classes named; 77 where all of it had to be skipped."""
    program = unittest.main(module="__main__", exit=False, verbosity=1)
    result = program.result
    for _, reason in result.skipped:
        print("SKIPPED: " + reason, flush=True)
    if not result.wasSuccessful():
        raise SystemExit(1)
    raise SystemExit(77 if result.skipped and len(result.skipped) >= result.testsRun else 0)
