"""Workers that are killed in the middle of something: what they had recorded arrives,
under their own run, with what they were doing; sent by the next worker, or by hand.

Where the programs are: INFERSTATD, WORKER, INFERSTAT.
"""

import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from faults import KILLED, FaultCase  # noqa: E402

WORKER = os.environ.get("WORKER", "inferstat-worker")


class ReplayTest(FaultCase):
    @classmethod
    def setUpClass(cls):
        cls.models = tempfile.mkdtemp(prefix="inferstat-replay-", dir="/tmp")
        cls.tiny = cls.make_model("tiny")
        # Slow enough to be killed while it reads a long prompt, or answers at length.
        cls.slow = cls.make_model("42m")

    @classmethod
    def make_model(cls, shape):
        path = os.path.join(cls.models, shape + ".gguf")
        subprocess.run([WORKER, "make-model", "--shape", shape, "--type", "f32", path],
                       check=True, capture_output=True, timeout=120)
        return path

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.models)

    def start_worker(self, *options, **environment):
        return self.start(WORKER, "--collector", self.address, "--log-level", "info", "llm",
                          *options, environment=dict(self.environment, **environment))

    def run_worker(self):
        """A whole one, that has nothing to do with those before it."""
        worker = self.start_worker("--model", self.tiny, "--requests", "30", "--rate", "15")
        self.assertEqual(worker.wait(timeout=60), 0, self.words(worker))
        return self.words(worker)

    def kill_in(self, stage):
        """Starts a worker and kills it there; how many requests it had answered."""
        if stage == "load":
            worker = self.start_worker("--model", self.tiny,
                                       INFERSTAT_TEST_STAGE_DELAY="tokenizer_init:60000")
            time.sleep(1.5)  # the stage lasts a minute
        else:
            # Two short requests, which are answered, and one that takes its time.
            prompts = os.path.join(self.folder, "prompts")
            words = {"prefill": "Once upon a time " * 50, "decode": "Once upon a time"}[stage]
            with open(prompts, "w", encoding="utf-8") as out:
                out.write("Once\nupon\n" + words + "\n")
            tokens = {"prefill": "3", "decode": "900"}[stage]
            worker = self.start_worker("--model", self.slow, "--prompt-file", prompts,
                                       "--tokens", tokens)
            # It says itself what it is doing.
            doing = "%s 42m request %d" % (stage, {"prefill": 3, "decode": 1}[stage])
            self.wait_until(lambda: self.sql('SELECT 1 FROM run WHERE "end" = 0 AND '
                                             'last_activity = ?', doing), seconds=120)
        self.assertIsNone(worker.poll(), self.words(worker))
        done = self.words(worker).count("[INFER]")
        self.kill(worker)
        return done

    def killed_run(self):
        rows = self.sql('SELECT run, last_activity, ended_ns, started_ns, produced FROM run '
                        'WHERE "end" = ?', KILLED)
        self.assertEqual(len(rows), 1)
        return rows[0]

    def check_killed(self, stage, done):
        run, activity, ended, started, produced = self.killed_run()
        expected = {"load": "load tokenizer_init", "prefill": "prefill 42m request %d",
                    "decode": "decode 42m request %d"}[stage]
        if "%d" in expected:
            expected %= done + 1
        self.assertRegex(activity, r"(^|; )stream \d+: " + re.escape(expected) + "(;|$)")
        self.assertTrue(0 < ended - started < 120e9, (started, ended))
        self.assertGreater(produced, 0)
        self.assertEqual(self.sql("SELECT count(*) FROM inference WHERE run = ?", run), [(done,)])
        self.check_audit()
        self.assertEqual(self.left_behind(), [])

    # ---- Tests ------------------------------------------------------------------------

    def test_next_worker(self):
        """Killed at different moments; the next one sends what was left."""
        for stage in ("load", "prefill", "decode"):
            with self.subTest(stage):
                self.start_collector()
                done = self.kill_in(stage)
                self.assertEqual(self.states(), ["dead"])
                self.assertIn("sent to", self.run_worker())
                self.check_killed(stage, done)
                self.end(self.collector)
                for name in os.listdir(self.folder):
                    if name.startswith("store.db"):
                        os.remove(os.path.join(self.folder, name))

    def test_by_hand(self):
        """Killed with its collector away; sent by hand once that is back."""
        done = self.kill_in("load")
        words = self.client("spool", "flush", code=4, source=[])
        self.assertIn("stay: no answer from " + self.address, words.stdout)
        self.assertEqual(len(self.left_behind()), 1)
        self.start_collector()
        self.assertIn("sent to " + self.address, self.client("spool", "flush", source=[]).stdout)
        self.check_killed("load", done)
        self.client("spool", "flush", code=3, source=[])
        self.client("spool", "list", code=3, source=[])

    def states(self):
        return [row["state"] for row in self.spool_rows()]

    def test_states(self):
        """`spool list` says where the records of a dead run wait, or that they were given up."""
        worker = self.start_worker("--model", self.tiny,
                                   INFERSTAT_TEST_STAGE_DELAY="tokenizer_init:60000")
        self.wait_until(lambda: glob.glob(os.path.join(self.spool, "*", "*.seg")))
        self.assertEqual(self.states(), ["live"])
        self.kill(worker)
        self.assertEqual(self.states(), ["on disk"])
        path, = glob.glob(os.path.join(self.run_folder, "*.run"))
        with open(path, "r+b") as file:
            streams_at, = struct.unpack("=Q", os.pread(file.fileno(), 8, 40))
            os.pwrite(file.fileno(), struct.pack("=Q", 1), streams_at + 40)  # given_up
        self.assertEqual(self.states(), ["given up"])

    def test_another_collector(self):
        """Its own collector is gone for good: another one takes it."""
        own, self.address = self.address, "ipc://" + self.folder + "/gone"
        done = self.kill_in("load")
        self.address = own
        self.start_collector()
        self.client("spool", "flush")
        self.check_killed("load", done)

    def test_container(self):
        """A worker in a PID namespace of its own, where it is process 1: its lock says
        that it lives, and that it died."""
        unshare = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        if subprocess.run(unshare + ["true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no PID namespaces here")
        self.start_collector()
        outer = self.start(*unshare, WORKER, "--collector", self.address, "llm", "--model",
                           self.tiny, environment=dict(
                               self.environment, INFERSTAT_TEST_STAGE_DELAY="read_header:60000"))
        self.wait_until(lambda: self.sql("SELECT count(*) FROM run") == [(1,)]
                        if os.path.exists(self.db) else False)
        self.client("spool", "flush", code=3, source=[])  # it lives
        self.assertEqual(self.states(), ["live"])
        outer.send_signal(signal.SIGKILL)
        outer.wait(timeout=30)
        self.wait_until(lambda: self.states() == ["dead"])
        self.client("spool", "flush", source=[])
        self.assertIn("load read_header", self.killed_run()[1])
        self.check_audit()


if __name__ == "__main__":
    unittest.main(verbosity=2)
