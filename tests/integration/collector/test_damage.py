"""Stores that are damaged, copied halfway, somebody else's, or no stores at all.

Whatever lies behind --db: every command answers, or fails with a message and an exit code
that is documented.  None dies of a signal, none hangs, no sanitizer has anything to say.

INFERSTAT_TEST_VOLUME  times 24 damaged copies
INFERSTAT_TEST_SEED    repeats the choices of a run that failed
"""

import concurrent.futures
import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from programs import VOLUME, has_report  # noqa: E402

INFERSTAT = os.environ.get("INFERSTAT", "inferstat")
INFERSTATD = os.environ.get("INFERSTATD", "inferstatd")
MAKE_HISTORY = os.environ.get("MAKE_HISTORY", "make_history")
SANITIZED = bool(os.environ.get("INFERSTAT_SANITIZE"))
FLIPS = 24 * VOLUME
SEED = int(os.environ.get("INFERSTAT_TEST_SEED", "20260321"))
TIMEOUT_S = 120 if SANITIZED else 60
UNTIL_NS = 1790000000 * 10**9  # the end of the history; a fixed time
PAGE = 4096

DONE, CHECK_FAILED, USAGE, NO_DATA, UNREACHABLE, UNDECIDED = range(6)
CODES = {DONE, CHECK_FAILED, USAGE, NO_DATA, UNREACHABLE, UNDECIDED}

# What the commands want to be told; {model} and {folder} are filled in.  A command that is
# not here is run as it is.
ARGUMENTS = {
    "now": [[], ["--json"]],
    "summary": [[], ["--json"]],
    "avg": [["ttft_ns", "--by", "model"], ["tokens_per_second", "--by", "host,device", "--json"],
            ["load.duration_ns", "--since", "2026-09-01", "--csv"],
            ["e2e_ns", "--step", "1d", "--json"]],
    "loads": [[], ["--json"], ["--average"]],
    "inferences": [["--json"], ["--slowest", "5"]],
    "runs": [[], ["--json"]],
    "export": [["--format", "jsonl"], ["inference", "--format", "csv"]],
    "fleet": [[], ["ttft_ns", "--json"]],
    "devices": [[], ["--since", "2026-09-01", "--json"]],
    "hosts": [["--json"]],
    "events": [[], ["--json"]],
    "samples": [[], ["device", "--json"], ["host"]],
    "errors": [[], ["--by", "model,host", "--json"]],
    "query": [["avg ttft_ns by model"], ["inferences where host=host-001 limit 5"]],
    "baseline": [["list"], ["save", "again"], ["delete", "before"]],
    "compare": [["before", "after"], ["--against", "before", "--json"]],
    "backup": [["{folder}/backup.db"]],
    "clear": [["--yes", "--model", "model-01"]],
    "forget": [["--yes", "--key", "user:1000"]],
    "audit": [[], ["--json"]],
}
# Other tests have these, or they have nothing to do with a store.
WITHOUT_STORE = {"top", "tail", "completion", "help", "spool", "keygen", "authorize", "revoke",
                 "keys", "trust", "import", "restore", "ping", "metrics"}


def environment(folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    kept.pop("INFERSTAT_COLLECTOR", None)
    return {**kept, "HOME": folder, "XDG_RUNTIME_DIR": folder, "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8", "TERM": "xterm"}


class Ended:
    """A program that has ended: its words and its exit code."""

    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    def __str__(self):
        return f"{' '.join(self.command)}: exit code {self.code}\n{self.out[-2000:]}\n{self.err}"


class DamageCase(unittest.TestCase):
    """A folder of its own, and the client."""

    def setUp(self):
        base = tempfile.gettempdir()
        self.folder = tempfile.mkdtemp(prefix="inferstat-test.", dir=base if len(base) < 60
                                       else "/tmp")
        self.db = os.path.join(self.folder, "store.db")
        self.random = random.Random(SEED)
        self.addCleanup(self.clean_up)

    def clean_up(self):
        for root, folders, _ in os.walk(self.folder):
            for name in folders:
                os.chmod(os.path.join(root, name), 0o755)
        shutil.rmtree(self.folder)

    def run_program(self, *command, timeout=TIMEOUT_S, **options):
        try:
            done = subprocess.run(command, capture_output=True, timeout=timeout, check=False,
                                  stdin=subprocess.DEVNULL, env=environment(self.folder),
                                  **options)
        except subprocess.TimeoutExpired:
            self.fail(f"hangs: {' '.join(command)}")
        return Ended(command, done.returncode, done.stdout.decode(errors="replace"),
                     done.stderr.decode(errors="replace"))

    def ask(self, db, *words, **options):
        """What any command may answer to anything."""
        ended = self.run_program(INFERSTAT, "--db", db, *words, **options)
        self.assertIn(ended.code, CODES, ended)
        self.assertFalse(has_report(ended.err), ended)
        if ended.code != DONE:
            self.assertRegex(ended.err, r"(?m)^inferstat: \S", ended)
            self.assertNotIn("out of memory", ended.err, ended)
        elif "--json" in words:
            json.loads(ended.out)
        return ended

    def make_history(self, path, *words):
        made = self.run_program(MAKE_HISTORY, path, "--until", str(UNTIL_NS), *words)
        self.assertEqual(made.code, 0, made)

    def start_collector(self, db):
        """Ready, or ended; its words go to a file."""
        place = tempfile.mkdtemp(dir=self.folder)
        os.chmod(place, 0o750)
        log = os.path.join(place, "log")
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen([INFERSTATD, "--listen", f"ipc://{place}", "--db", db],
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                       env=environment(self.folder))
        process.place, process.log = place, log
        deadline = time.monotonic() + TIMEOUT_S
        while "ready" not in self.words_of(process) and process.poll() is None:
            self.assertLess(time.monotonic(), deadline, "the collector is never ready")
            time.sleep(0.01)
        return process

    def words_of(self, process):
        with open(process.log, encoding="utf-8") as file:
            return file.read()

    def stop_collector(self, process, codes=(0,)):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=TIMEOUT_S)
        words = self.words_of(process)
        self.assertIn(code, codes, words)
        self.assertFalse(has_report(words), words)
        return words

    def commands(self):
        """The words of every command that a store can be asked with."""
        told = self.run_program(INFERSTAT, "--help").out
        names = re.findall(r"(?m)^  ([a-z]+) ", told.split("\nOptions")[0])
        self.assertIn("summary", names)
        return [[name, *words] for name in names if name not in WITHOUT_STORE
                for words in ARGUMENTS.get(name, [[]])]


def integrity(path):
    """Whether SQLite finds the file whole; None where it cannot even look."""
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        try:
            db.text_factory = bytes
            return db.execute("PRAGMA integrity_check(1)").fetchone()[0] == b"ok"
        finally:
            db.close()
    except (sqlite3.Error, UnicodeDecodeError):  # its words have bytes of the file in them
        return None


class FlipTest(DamageCase):
    """Bytes of a store, changed at places of every kind."""

    def setUp(self):
        super().setUp()
        self.make_history(self.db, "--inferences", "3000", "--models", "3", "--hosts", "4",
                          "--days", "40", "--all-kinds", "--seed", str(SEED))
        commands = {words[0] for words in self.commands()}
        if "baseline" in commands:
            for name in ("before", "after"):
                self.assertEqual(self.ask(self.db, "baseline", "save", name).code, DONE)
        # Leaves pages free, and gaps.
        cleared = self.ask(self.db, "clear", "--yes", "--model", "model-02", "--until",
                           "2026-08-25")
        self.assertEqual(cleared.code, DONE, cleared)
        db = sqlite3.connect(self.db)
        db.execute("CREATE TABLE filler(x)")
        db.executemany("INSERT INTO filler VALUES(?)", ((bytes(900),) for _ in range(40)))
        db.commit()
        db.execute("DROP TABLE filler")  # auto_vacuum is incremental: the pages stay
        db.commit()
        self.assertEqual(db.execute("PRAGMA page_size").fetchone()[0], PAGE)
        self.assertGreater(db.execute("PRAGMA freelist_count").fetchone()[0], 2)
        self.pages = {}
        for name, page in db.execute("SELECT name, pageno FROM dbstat"):
            self.pages.setdefault(name, []).append(page)
        count = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        known = {page for pages in self.pages.values() for page in pages}
        self.pages["free and map"] = sorted(set(range(1, count + 1)) - known)
        with open(self.db, "rb") as file:
            self.bytes = file.read()

    def damage(self, number):
        """A copy with some bytes changed, and where."""
        chance = random.Random(f"{SEED} {number}")
        data = bytearray(self.bytes)
        names = sorted(self.pages)
        kind = number % 6
        if kind == 0:  # the file's header
            first, size, what = 0, 100, "header"
        elif kind == 1:  # the schema's text
            first, size, what = (chance.choice(self.pages["sqlite_schema"]) - 1) * PAGE, PAGE, \
                "schema"
        else:
            what = "free and map" if kind == 2 and number % 12 == 2 else \
                "rollup" if kind == 4 else chance.choice(names)
            first, size = (chance.choice(self.pages[what]) - 1) * PAGE, PAGE
            if kind in (2, 3):  # the page's own header and its cells' places
                size = 32
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = first + chance.randrange(size)
            if chance.random() < 0.5:
                data[at] ^= 1 << chance.randrange(8)
            else:
                data[at] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
        if chance.random() < 0.05:  # a whole page, as a disk does it
            at = first - first % PAGE
            data[at:at + PAGE] = bytes(PAGE)
        return bytes(data), what

    def words_for(self, number):
        """Some of the commands, so that a few copies see all."""
        return [words for place, words in enumerate(self.list)
                if words[0] in ("summary", "avg", "audit") or place % 3 == number % 3]

    def one_copy(self, number):
        """Whether SQLite finds the copy whole, and what the audit's exit code is."""
        data, what = self.damage(number)
        verdict = DONE
        folder = os.path.join(self.folder, str(number))
        os.mkdir(folder)
        path = os.path.join(folder, "damaged.db")
        with open(path, "wb") as file:
            file.write(data)
        try:
            whole = integrity(path)
            for words in self.words_for(number):
                changes = words[0] in ("clear", "baseline", "backup")
                if changes:  # what went before must not hide anything from the others
                    with open(path, "wb") as file:
                        file.write(data)
                words = [word.format(folder=folder) for word in words]
                ended = self.ask(path, *words)
                if words[0] == "audit":
                    verdict = ended.code
                    self.assertTrue(whole or verdict, f"not found: {ended}")
        except AssertionError as error:
            raise AssertionError(f"copy {number} ({what}): {error}") from error
        finally:
            shutil.rmtree(folder)
        return whole, verdict

    def test_flipped_bytes(self):
        self.list = self.commands()
        # The changing ones last: they make the file anew.
        self.list.sort(key=lambda words: words[0] in ("clear", "baseline", "backup"))
        for words in self.list:
            ended = self.ask(self.db, *[word.format(folder=self.folder) for word in words])
            self.assertNotEqual(ended.code, UNREACHABLE, ended)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            ends = [done.result() for done in
                    [pool.submit(self.one_copy, number) for number in range(FLIPS)]]
        damaged = [code for whole, code in ends if not whole]
        print(f"{FLIPS} copies: {len(damaged)} with a damaged structure, all found;"
              f" {sum(code != DONE for whole, code in ends if whole)} others found")
        self.assertGreater(len(damaged), FLIPS // 4)
        self.assertLess(len(damaged), FLIPS)

    def test_what_the_message_advises(self):
        """The command that is named saves the kinds whose pages are whole."""
        path = os.path.join(self.folder, "one-page.db")
        data = bytearray(self.bytes)
        at = (self.pages["inference"][len(self.pages["inference"]) // 2] - 1) * PAGE
        data[at:at + PAGE] = self.random.randbytes(PAGE)
        with open(path, "wb") as file:
            file.write(data)
        told = self.ask(path, "audit")
        advice = re.search(r"inferstat (--db \S+ export) KIND\)", told.err)
        self.assertTrue(told.code == UNREACHABLE and advice, told)
        whole = self.ask(self.db, "export", "load", "--csv")
        self.assertGreater(len(whole.out.splitlines()), 2)
        words = advice.group(1).split()
        saved = self.run_program(INFERSTAT, *words, "load", "--csv")
        self.assertEqual((saved.code, saved.out), (DONE, whole.out), saved)
        # Of the kind that is hit, what stands before the damage, and an exit code that says so.
        whole = self.ask(self.db, "export", "inference", "--csv")
        saved = self.run_program(INFERSTAT, *words, "inference", "--csv")
        self.assertEqual(saved.code, UNREACHABLE, saved)
        self.assertIn("damaged", saved.err)
        self.assertTrue(whole.out.startswith(saved.out), saved)
        self.assertGreater(len(saved.out.splitlines()), 2)

    def test_collector_on_flipped_bytes(self):
        for number in range(0, FLIPS, 10):
            data, what = self.damage(number)
            path = os.path.join(self.folder, f"collector-{number}.db")
            with open(path, "wb") as file:
                file.write(data)
            collector = self.start_collector(path)
            if collector.poll() is None:
                self.run_program(INFERSTAT, "--collector", f"ipc://{collector.place}", "summary")
            words = self.stop_collector(collector, CODES)
            self.assertIn("inferstatd: ", words, what)

    def test_import_of_flipped_bytes(self):
        """What is brought in from a damaged store never harms the one that takes it."""
        into = os.path.join(self.folder, "into.db")
        for number in range(2, FLIPS, 5):
            self.make_history(into, "--inferences", "20", "--models", "1", "--hosts", "1",
                              "--days", "2", "--seed", "7")
            data, what = self.damage(number)
            path = os.path.join(self.folder, "bundle.db")
            with open(path, "wb") as file:
                file.write(data)
            ended = self.ask(into, "import", path)
            self.assertIsNot(integrity(into), False, f"copy {number} ({what}): {ended}")
            self.assertEqual(self.ask(into, "summary").code, DONE)
            audit = self.ask(into, "audit")
            self.assertIn(audit.code, (DONE, CHECK_FAILED), f"copy {number} ({what}): {audit}")
            for ending in ("", "-wal", "-shm"):
                if os.path.exists(into + ending):
                    os.remove(into + ending)

    def test_dashboard_on_flipped_bytes(self):
        for number in range(1, FLIPS, max(FLIPS // 8, 1)):
            data, what = self.damage(number)
            path = os.path.join(self.folder, f"top-{number}.db")
            with open(path, "wb") as file:
                file.write(data)
            self.assertIn(self.run_dashboard(path), CODES, f"copy {number} ({what})")

    def run_dashboard(self, path):
        """Starts it on a terminal, lets it draw, leaves it with q: its exit code."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(INFERSTAT, [INFERSTAT, "--db", path, "top"], environment(self.folder))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        said = b""
        pressed = time.monotonic() + 1
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            self.assertLess(time.monotonic(), deadline, "the dashboard hangs")
            try:
                if select.select([terminal], [], [], 0.1)[0]:
                    said += os.read(terminal, 65536)
                if time.monotonic() > pressed:
                    os.write(terminal, b"q")
                    pressed += 1
            except OSError:
                break  # it has closed the terminal
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
        self.assertFalse(has_report(said.decode(errors="replace")), said)
        return code


class ChecksumTest(DamageCase):
    """What has checksums of ours, changed behind SQLite's back: its structure is whole."""

    METRIC = 256 * 6 + 9  # inference.ttft_ns

    def setUp(self):
        super().setUp()
        self.make_history(self.db, "--inferences", "3000", "--models", "3", "--hosts", "4",
                          "--days", "40")

    def change(self, sql):
        """A copy of the store, changed so."""
        path = os.path.join(self.folder, "changed.db")
        shutil.copyfile(self.db, path)
        db = sqlite3.connect(path)
        self.assertGreater(db.execute(sql).rowcount, 0, sql)
        db.commit()
        db.close()
        return path

    def test_rollups(self):
        whole = self.ask(self.db, "avg", "ttft_ns", "--json")
        self.assertEqual(whole.code, DONE, whole)
        self.assertGreater(json.loads(whole.out)["rows"][0]["sketches"], 0, whole)
        for change in ("count = count + 1", "sum = sum + 1", "carry = 1", "min = min - 1",
                       "max = max + 1", "sum = 1.5", "sum = 'x'", "series = series + 100000",
                       "sketch = x'00'", "sketch = x''", "sketch = substr(sketch, 1, 4)",
                       "sketch = substr(sketch, 1, length(sketch) - 1)",
                       "sketch = sketch || x'00'", "sketch = zeroblob(length(sketch))",
                       "sketch = zeroblob(100000)", "denominator = 1.0"):
            # All of the metric's: whichever a query reads.
            path = self.change(f"UPDATE rollup SET {change} WHERE metric = {self.METRIC}")
            audit = self.ask(path, "audit")
            self.assertEqual(audit.code, UNREACHABLE, f"{change}: {audit}")
            self.assertIn("rollup", audit.err, f"{change}: {audit}")
            if "series" not in change:  # who asks for other series meets none of these
                for words in (["avg", "ttft_ns"], ["summary"], ["query", "overview"]):
                    met = self.ask(path, *words)
                    self.assertEqual(met.code, UNREACHABLE, f"{change}: {met}")
                    self.assertIn("damaged", met.err, f"{change}: {met}")
                    self.assertIn("inferstat audit", met.err, f"{change}: {met}")
            self.assertEqual(self.ask(path, "avg", "e2e_ns").code, DONE)

    def test_baselines(self):
        saved = self.ask(self.db, "baseline", "save", "before")
        self.assertEqual(saved.code, DONE, saved)
        for change in ("samples = zeroblob(8)", "samples = x''", "samples = zeroblob(13)",
                       "count = count + 1", "count = -1", "count = 1 << 60",
                       "samples = substr(samples, 1, 3) || x'5a' || substr(samples, 5)",
                       "samples = 'text'", "metric = 'nothing'", "model = 999999"):
            path = self.change(f"UPDATE OR REPLACE baseline_sample SET {change}")
            self.ask(path, "compare", "--against", "before")
            self.ask(path, "baseline", "list", "--json")


class CopyTest(DamageCase):
    """Copies of a store that a collector has open."""

    WORDS = "copied from a store that was open, without its log"

    def setUp(self):
        super().setUp()
        self.make_history(self.db, "--inferences", "200", "--models", "2", "--hosts", "2",
                          "--days", "10")
        self.collector = self.start_collector(self.db)
        # A commit that stays in the log as long as an older state is read.
        self.reader = sqlite3.connect(self.db, isolation_level=None)
        self.reader.execute("PRAGMA wal_autocheckpoint=0")
        self.reader.execute("BEGIN")
        self.reader.execute("SELECT count(*) FROM meta").fetchall()
        other = sqlite3.connect(self.db, timeout=30, isolation_level=None)
        other.execute("PRAGMA wal_autocheckpoint=0")
        other.execute("UPDATE run SET cpu_count = 77")
        other.close()
        self.addCleanup(self.reader.close)
        self.addCleanup(self.collector.wait)
        self.addCleanup(self.collector.kill)

    def copy(self, name, *endings, read_only=False):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        for ending in endings:
            shutil.copyfile(self.db + ending, os.path.join(folder, "copy.db" + ending))
            os.chmod(os.path.join(folder, "copy.db" + ending), 0o444 if read_only else 0o644)
        if read_only:
            os.chmod(folder, 0o555)
        return os.path.join(folder, "copy.db")

    def see(self, path, **options):
        """How many processors the runs have, and whether the log is missed."""
        ended = self.ask(path, "runs", "--json", **options)
        self.assertEqual(ended.code, DONE, ended)
        values = {row["cpu_count"] for row in json.loads(ended.out)["rows"]}
        self.assertEqual(len(values), 1, ended)
        return values.pop(), self.WORDS in ended.err

    def as_nobody(self):
        """Options for a program that may not write where root might."""
        if os.geteuid() != 0:
            return {}
        os.chmod(self.folder, 0o755)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        try:
            self.assertEqual(self.run_program(INFERSTAT, "--version", **nobody).code, DONE)
        except OSError as error:
            self.skipTest(f"as another user the client does not start: {error}")
        return nobody

    def test_store_itself(self):
        self.assertEqual(self.see(self.db), (77, False))

    def test_file_alone(self):
        path = self.copy("alone", "")
        self.assertEqual(self.see(path), (16, True))
        self.assertEqual(self.see(path), (16, True))  # the first left an empty log beside it
        for command in ("summary", "audit", "export"):
            self.assertIn(self.WORDS, self.ask(path, command).err, command)

    def test_file_alone_on_read_only_ground(self):
        path = self.copy("alone", "", read_only=True)
        self.assertEqual(self.see(path, **self.as_nobody()), (16, True))

    def test_with_its_log(self):
        self.assertEqual(self.see(self.copy("both", "", "-wal")), (77, False))

    def test_with_its_log_on_read_only_ground(self):
        path = self.copy("both", "", "-wal", read_only=True)
        self.assertEqual(self.see(path, **self.as_nobody()), (77, False))
        self.assertEqual(sorted(os.listdir(os.path.dirname(path))), ["copy.db", "copy.db-wal"])

    def test_copies_by_sqlite_are_whole(self):
        backup = os.path.join(self.folder, "backup.db")
        vacuumed = os.path.join(self.folder, "vacuumed.db")
        other = sqlite3.connect(backup)
        self.reader.execute("COMMIT")
        self.reader.backup(other)
        other.close()
        self.reader.execute("VACUUM INTO ?", (vacuumed,))
        self.assertEqual(self.see(backup), (77, False))
        self.assertEqual(self.see(vacuumed), (77, False))

    def test_closed_in_order(self):
        self.reader.close()
        self.stop_collector(self.collector)
        self.assertEqual(self.see(self.copy("closed", "")), (77, False))

    def test_killed(self):
        self.reader.close()
        self.collector.kill()
        self.collector.wait()
        self.assertEqual(self.see(self.db), (77, False))

    def test_collector_takes_a_copy_over(self):
        path = self.copy("alone", "")
        other = self.start_collector(path)
        self.assertIn(self.WORDS, self.stop_collector(other))
        self.assertEqual(self.see(path), (16, False))


class ForeignTest(DamageCase):
    """What is no store, or none of this version."""

    def write(self, data):
        with open(self.db, "wb") as file:
            file.write(data)

    def refused(self, *words, path=None):
        path = path or self.db
        for command in (["summary"], ["avg", "ttft_ns"], ["audit"], ["export"],
                        ["clear", "--yes"]):
            ended = self.ask(path, *command)
            self.assertEqual(ended.code, UNREACHABLE, ended)
            for word in words:
                self.assertIn(word, ended.err, ended)
            self.assertEqual(ended.out, "", ended)
        self.assertEqual(self.stop_collector(self.start_collector(path), (UNREACHABLE,))
                         .count("\n"), 1)

    def test_other_programs_database(self):
        db = sqlite3.connect(self.db)
        db.execute("PRAGMA application_id=1196444487")
        db.execute("CREATE TABLE run(run, uuid)")
        db.commit()
        db.close()
        with open(self.db, "rb") as file:
            before = file.read()
        self.refused("another program", "1196444487")
        with open(self.db, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_views_that_never_end(self):
        """Where a store has tables, and triggers that never end."""
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
        whole = os.path.join(self.folder, "whole.db")
        self.make_history(whole, "--inferences", "200", "--hosts", "2", "--days", "2")
        changes = [f"DROP TABLE {table}; CREATE VIEW {table} AS {endless} SELECT x AS key FROM n"
                   for table in ("meta", "run", "name", "inference")]
        changes.append("DROP TABLE range; CREATE VIRTUAL TABLE range USING rtree(id, a, b)")
        for change in changes:
            shutil.copy(whole, self.db)
            db = sqlite3.connect(self.db)
            db.executescript(change)
            db.close()
            with open(self.db, "rb") as file:
                before = file.read()
            self.refused("not a store")
            for command in (["backup", self.folder + "/b"], ["import", whole],
                            ["export", "--bundle", self.folder + "/b"]):
                ended = self.ask(self.db, *command, timeout=20)
                self.assertEqual(ended.code, UNREACHABLE, ended)
            ended = self.ask(whole, "import", self.db, timeout=20)
            self.assertEqual(ended.code, UNREACHABLE, ended)
            with open(self.db, "rb") as file:
                self.assertEqual(file.read(), before, change)

    def test_triggers_that_never_end(self):
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
        self.make_history(self.db, "--inferences", "200", "--hosts", "2", "--days", "2")
        db = sqlite3.connect(self.db)
        for table in ("meta", "inference"):
            for event in ("INSERT", "DELETE"):
                db.execute(f"CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN"
                           f" INSERT INTO meta {endless} SELECT x, x FROM n; END")
        db.close()
        for command in (["summary"], ["backup", self.folder + "/b"], ["clear", "--yes"]):
            ended = self.ask(self.db, *command, timeout=20)
            self.assertEqual(ended.code, DONE, ended)
        self.stop_collector(self.start_collector(self.db))

    def test_no_database(self):
        for data in (b"SQLite", b"hello\n", b"\x7fELF" + bytes(5000), b"x" * 100000,
                     b"SQLite format 3\0" + b"\xff" * 84):
            self.write(data)
            self.refused("store.db")

    def test_empty(self):
        self.write(b"")
        for command in ("summary", "audit", "runs"):
            ended = self.ask(self.db, command)
            self.assertEqual(ended.code, UNREACHABLE, ended)
            self.assertIn("an empty file", ended.err)
        # A collector makes it a store.
        self.stop_collector(self.start_collector(self.db))
        self.assertIn(self.ask(self.db, "summary").code, (DONE, NO_DATA))

    def test_cut_off(self):
        whole = os.path.join(self.folder, "whole.db")
        self.make_history(whole, "--inferences", "2000", "--models", "2", "--hosts", "2",
                          "--days", "4")
        with open(whole, "rb") as file:
            data = file.read()
        for size in (1, 15, 16, 99, 100, 511, 4095, 4096, 4097, 8192, len(data) // 2,
                     len(data) - 4096, len(data) - 1):
            self.write(data[:size])
            for words in (["summary"], ["avg", "e2e_ns", "--by", "model"], ["audit"],
                          ["inferences", "--json"]):
                ended = self.ask(self.db, *words)
                if words[0] == "audit" and size < len(data) - 1:  # a byte of a value may be 0
                    self.assertEqual(ended.code, UNREACHABLE, f"{size} bytes: {ended}")

    def test_newer_version(self):
        self.make_history(self.db, "--inferences", "10", "--days", "1", "--hosts", "1")
        db = sqlite3.connect(self.db)
        ours = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute("PRAGMA user_version=99")
        db.close()
        self.refused("version 99", f"up to {ours}")
        other = os.path.join(self.folder, "other.db")
        self.make_history(other, "--inferences", "10", "--days", "1", "--hosts", "1")
        ended = self.ask(other, "import", self.db)
        self.assertEqual(ended.code, UNREACHABLE, ended)
        self.assertIn("version 99", ended.err)

    def test_no_file(self):
        folder = os.path.join(self.folder, "folder")
        fifo = os.path.join(self.folder, "fifo")
        end = os.path.join(self.folder, "socket")
        loop = os.path.join(self.folder, "loop")
        nowhere = os.path.join(self.folder, "nowhere")
        os.mkdir(folder)
        os.mkfifo(fifo)
        os.symlink(loop, loop)
        os.symlink("not-there", nowhere)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(end)
            for path in (folder, fifo, end, loop, "/dev/null", "/dev/zero"):
                self.refused(path=path)
        for path in (nowhere, os.path.join(self.folder, "missing"), os.path.join(fifo, "x"), ""):
            ended = self.ask(path, "summary")
            self.assertIn(ended.code, (USAGE, UNREACHABLE), ended)

    def test_links_lead_to_the_store(self):
        self.make_history(self.db, "--inferences", "10", "--days", "1", "--hosts", "1")
        link = os.path.join(self.folder, "link.db")
        os.symlink("store.db", link)
        self.assertEqual(self.ask(link, "summary").code, DONE)
        self.assertEqual(self.ask(link, "audit").code, DONE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
