"""The whole path with the real programs: a worker runs a model, the collector
stores, and what is stored equals what was counted independently, whatever is
killed, restarted or swapped on the way.

Where the programs are: INFERSTATD, WORKER, INFERSTAT.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from faults import ACKNOWLEDGED_ELSEWHERE, CLOSED, SILENT, WORKER, FaultCase, main  # noqa: E402
from programs import free_ports, has_report  # noqa: E402

KINDS = ("device model startup load load_stage inference itl operation pipeline "
         "device_sample process_sample host_sample device_process event").split()


class PathTest(FaultCase):
    @classmethod
    def setUpClass(cls):
        cls.model_folder = tempfile.mkdtemp(prefix="inferstat-path-", dir="/tmp")
        cls.model = cls.make_model("tiny.gguf", "1")
        # Each of the tokens that it answers our prompt with is text at once.
        cls.plain_model = cls.make_model("plain.gguf", "5")

    @classmethod
    def make_model(cls, name, seed):
        path = os.path.join(cls.model_folder, name)
        subprocess.run([WORKER, "make-model", "--shape", "tiny", "--type", "f32", "--seed", seed,
                        path], check=True, capture_output=True, timeout=60)
        return path

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.model_folder)

    def tearDown(self):
        for process in reversed(self.started):
            if process.poll() is None:
                self.end(process)

    # ---- Programs -----------------------------------------------------------

    def start_worker(self, *arguments):
        """Its output goes to a file: it never waits for a reader."""
        out = tempfile.TemporaryFile("w+", dir=self.folder)
        process = self.start(*self.worker_command(*arguments), out=out)
        process.out = out
        return process

    def output(self, process):
        """Waits for it to end well; its output."""
        self.assertEqual(process.wait(timeout=60), 0, self.words(process))
        with process.out as out:
            out.seek(0)
            return out.read()

    def run_program(self, *command, code=0):
        """Runs it to its end; `code` is what it must end with, None anything."""
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        self.assertFalse(has_report(done.stderr), done.stderr)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        return done

    def worker_command(self, requests, *more, model=None):
        return [WORKER, "--collector", self.address, "llm", "--model", model or self.model,
                "--prompt", "Once upon a time", "--tokens", "12", "--requests", str(requests),
                *more]

    def run_worker(self, requests, *more):
        return json.loads(self.run_program(*self.worker_command(requests, "--json", *more)).stdout)

    def settled(self, figure, seconds=1):
        """What the figure is once it has not moved for that long."""
        seen = []

        def still():
            now = time.monotonic()
            value = figure()
            if not seen or seen[0] != value:
                seen[:] = [value, now]
            return now - seen[1] >= seconds

        self.wait_until(still)
        return seen[0]

    # ---- What the store says, in plain SQL --------------------------------------

    def count(self, table, db=None):
        return self.sql("SELECT count(*) FROM %s" % table, db=db)[0][0]

    def inferences(self, db=None):
        return self.count("inference", db) if os.path.exists(db or self.db) else 0

    def check_ledger(self, db=None):
        """Nothing twice; ranges disjoint; rows are what the ranges say; closed runs cover all."""
        rows = {}
        for kind in KINDS:
            for run, stream, number in self.sql(
                    "SELECT run, stream, number FROM %s" % kind, db=db):
                numbers = rows.setdefault((run, stream), set())
                self.assertNotIn(number, numbers, "stored twice")
                numbers.add(number)
        ends = dict(self.sql('SELECT run, "end" FROM run', db=db))
        for run, stream, upto, produced in self.sql(
                "SELECT run, stream, next, produced FROM stream", db=db):
            covered = 0
            stored = set()
            for first, last, state in self.sql(
                    "SELECT first, last, state FROM range WHERE run = %d AND stream = %d "
                    "ORDER BY first" % (run, stream), db=db):
                self.assertEqual(first, covered + 1, "a hole or an overlap")
                covered = last
                if state == 0:
                    stored.update(range(first, last + 1))
            self.assertEqual(covered + 1, upto)
            self.assertEqual(rows.get((run, stream), set()), stored)
            if ends[run] == CLOSED:
                self.assertEqual(covered, produced)
        return ends

    # ---- The tests ----------------------------------------------------------------

    def test_counts_are_true(self):
        self.start_collector()
        figures = [self.run_worker(requests) for requests in (1, 7)]
        requests = sum(figure["requests"] for figure in figures)
        tokens = sum(figure["generated_tokens"] for figure in figures)
        self.assertEqual(requests, 8)
        self.assertEqual(self.inferences(), requests)
        self.assertEqual(self.sql("SELECT sum(generated_tokens) FROM inference")[0][0], tokens)
        self.assertEqual(self.count("load"), 2)
        self.assertEqual(self.count("load_stage WHERE parent IN (SELECT number FROM load)") >= 10,
                         True)
        self.assertEqual(set(self.check_ledger().values()), {CLOSED}, "both runs closed")
        for source in (None, ["--db", self.db]):
            summary = json.loads(self.client("summary", "--json", source=source).stdout)
            self.assertEqual(summary["inferences"], requests)
            self.assertEqual(summary["generated_tokens"], tokens)
            self.assertEqual(summary["loads"], 2)
            self.assertEqual(summary["dropped"], 0)
            self.assertEqual(summary["coverage_ratio"], 1)
            self.assertEqual(summary["runs_open"], 0)
        self.end(self.collector)

    def answers(self, requests):
        """The pieces of text that a worker writes, one a token and a line break an answer."""
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, tempfile.TemporaryFile("w+") as errors:
            worker = subprocess.Popen(self.worker_command(requests, model=self.plain_model),
                                      env=self.environment, stdin=subprocess.DEVNULL,
                                      stdout=its.fileno(), stderr=errors)
            its.close()
            try:
                pieces = list(iter(lambda: ours.recv(1 << 16), b""))
                self.assertEqual(worker.wait(timeout=60), 0)
            finally:
                worker.kill()
                worker.wait()
            errors.seek(0)
            self.assertFalse(has_report(errors.read()))
        return pieces

    def test_counts_are_what_was_printed(self):
        """Counted at the far end of standard output, without the worker's own figures."""
        self.start_collector()
        one = self.answers(1)
        several = self.answers(6)
        self.assertEqual(several, one * 6, "the likeliest tokens are the same each time")
        self.assertEqual((one[-1], one.count(b"\n")), (b"\n", 1))
        self.assertEqual(self.sql("SELECT run, count(*), sum(generated_tokens) FROM inference "
                                  "GROUP BY run ORDER BY count(*)"),
                         [(run, pieces.count(b"\n"), len(pieces) - pieces.count(b"\n"))
                          for (run,), pieces in zip(
                              self.sql("SELECT run FROM inference GROUP BY run ORDER BY count(*)"),
                              (one, several))])

    def test_stages_fill_the_load(self):
        self.start_collector()
        self.run_worker(1)
        stages = self.sql("SELECT s.stage, s.duration_ns, l.duration_ns FROM v_load_stage s JOIN "
                          "v_load l ON l.run = s.run AND l.stream = s.stream "
                          "AND l.number = s.parent ORDER BY s.ordinal")
        self.assertEqual([stage[0] for stage in stages],
                         "device_selection file_opening read_header tokenizer_init "
                         "model_building".split())
        self.assertLessEqual(sum(stage[1] for stage in stages), stages[0][2])

    def test_averages_equal_sql(self):
        self.start_collector()
        for seed in ("1", "2"):
            self.run_worker(9, "--temperature", "0.9", "--seed", seed)
        metrics = ["ttft_ns", "prefill_ns", "decode_ns", "e2e_ns", "generated_tokens",
                   "tokens_per_second", "tpot_ns", "output_tokens_per_second"]
        for source in (None, ["--db", self.db]):
            for metric in metrics:
                answer = json.loads(self.client("avg", metric, "--by", "model,run", "--json",
                                                source=source).stdout)["rows"]
                exact = self.sql("SELECT run, count(x), sum(x) / count(x), min(x), max(x) FROM "
                                 "(SELECT run, CAST(%s AS REAL) AS x FROM v_inference) "
                                 "WHERE x IS NOT NULL GROUP BY run" % metric)
                self.assertEqual(len(answer), len(exact))
                for row, (_, count, mean, least, most) in zip(
                        sorted(answer, key=lambda r: r["mean"]), sorted(exact, key=lambda r: r[2])):
                    self.assertEqual(row["count"], count)
                    self.assertAlmostEqual(row["mean"] / mean, 1, delta=1e-12)
                    self.assertEqual((row["min"], row["max"]), (least, most))
                    self.assertTrue(least <= row["p50"] <= row["p99"] <= most)

    def test_worker_starts_first(self):
        worker = self.start_worker(40, "--rate", "20")
        time.sleep(1)
        self.start_collector()
        self.output(worker)
        self.assertEqual(self.inferences(), 40)
        self.assertEqual(list(self.check_ledger().values()), [CLOSED])

    def test_worker_is_killed(self):
        self.start_collector()
        worker = self.start_worker(100000)
        self.wait_until(lambda: self.inferences() > 20)
        self.kill(worker)
        stored = self.settled(self.inferences)
        self.check_ledger()
        self.wait_until(lambda: self.sql('SELECT "end" FROM run')[0][0] == SILENT)
        self.assertEqual(self.inferences(), stored)
        balanced = json.loads(self.client("runs", "--json").stdout)["rows"][0]
        self.assertIsNone(balanced["balanced"], "a dead run is unknown, never balanced")
        self.assertEqual(balanced["end"], "down")  # as in now
        # What was produced and not stored is held in the dead run's file.
        self.assertTrue([name for name in os.listdir(self.run_folder) if name.endswith(".run")])

    def test_collector_is_killed_and_restarted(self):
        self.start_collector()
        worker = self.start_worker(150, "--rate", "30", "--json")
        for _ in range(3):
            before = self.inferences()
            self.wait_until(lambda: self.inferences() > before + 10)
            self.kill(self.collector)
            acknowledged = self.inferences()
            time.sleep(0.3)
            self.start_collector()
            self.assertGreaterEqual(self.inferences(), acknowledged)
        figures = json.loads(self.output(worker))
        self.assertEqual(self.inferences(), figures["requests"])
        self.assertEqual(self.sql("SELECT sum(generated_tokens) FROM inference")[0][0],
                         figures["generated_tokens"])
        self.assertEqual(list(self.check_ledger().values()), [CLOSED])

    def test_store_is_swapped(self):
        self.start_collector()
        worker = self.start_worker(90, "--rate", "30", "--json")
        self.wait_until(lambda: self.inferences() > 20)
        self.end(self.collector)
        first_db, self.db = self.db, os.path.join(self.folder, "second.db")
        self.start_collector()
        figures = json.loads(self.output(worker))
        # Every request is in one store or the other.  In both is only what the first
        # committed and could not acknowledge any more.
        identities = "SELECT stream, number FROM inference"
        first, second = self.sql(identities, db=first_db), self.sql(identities)
        self.assertEqual(len(set(first)), len(first))
        self.assertEqual(len(set(second)), len(second))
        self.assertEqual(len(set(first) | set(second)), figures["requests"])
        self.assertLess(len(set(first) & set(second)), 10)
        self.check_ledger(first_db)
        self.assertEqual(list(self.check_ledger().values()), [CLOSED])
        reasons = self.sql("SELECT DISTINCT reason FROM range WHERE state = 1")
        self.assertEqual(reasons, [(ACKNOWLEDGED_ELSEWHERE,)])

    def test_no_collector(self):
        done = self.run_program(*self.worker_command(3))
        self.assertTrue(done.stdout.strip(), "it serves on")
        told = [line for line in done.stderr.splitlines() if "does not answer" in line]
        self.assertEqual(len(told), 1, done.stderr)
        started = time.monotonic()
        self.client("--timeout", "1s", "summary", code=4)
        self.assertLess(time.monotonic() - started, 5)

    def test_failed_load_is_recorded(self):
        self.start_collector()
        bad = os.path.join(self.folder, "bad.gguf")
        with open(self.model, "rb") as whole, open(bad, "wb") as cut:
            cut.write(whole.read()[:5000])
        done = self.run_program(*self.worker_command(1, model=bad), code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("bad.gguf", done.stderr)
        rows = json.loads(self.client("loads", "--json").stdout)["rows"]
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]["status"], "error")
        self.assertTrue(rows[0]["error"])

    def test_clear_keeps_the_ledger(self):
        self.start_collector()
        self.run_worker(5)
        self.client("clear", code=2)  # asks, and nobody is there to answer
        self.assertEqual(self.inferences(), 5)
        self.client("clear", "--yes")
        self.assertEqual(self.inferences(), 0)
        self.assertEqual(self.count("run"), 1)
        self.assertGreater(self.count("range"), 0)
        summary = json.loads(self.client("summary", "--json").stdout)
        self.assertGreater(summary["cleared"], 0)
        self.run_worker(2)
        self.assertEqual(self.inferences(), 2)


class TcpPathTest(PathTest):
    """The same over TCP on loopback."""

    def setUp(self):
        super().setUp()
        self.address = "tcp://127.0.0.1:%d" % free_ports(4)

    def test_clear_keeps_the_ledger(self):
        """Whoever reaches a port is not the owner: clearing is for the ipc socket."""
        self.start_collector()
        self.run_worker(5)
        refused = self.client("clear", "--yes", code=4)
        self.assertIn("ipc", refused.stderr)
        self.assertEqual(self.inferences(), 5)


if __name__ == "__main__":
    main()
