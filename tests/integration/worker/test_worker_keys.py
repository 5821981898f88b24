"""Workers whose collector wants keys: refused ones wait and come in without a restart,
revoked ones too, and what one leaves belongs to its key.

Where the programs are: INFERSTATD, WORKER, INFERSTAT.
"""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from faults import CLOSED, KILLED, FaultCase, main  # noqa: E402
from programs import free_ports  # noqa: E402

WORKER = os.environ.get("WORKER", "inferstat-worker")


class WorkerKeysTest(FaultCase):
    def setUp(self):
        super().setUp()
        self.owner = self.address  # asked over ipc
        self.remote = "tcp://127.0.0.1:%d" % free_ports(4)
        self.server = self.make_key("server", "--server")
        self.model = os.path.join(self.folder, "tiny.gguf")
        subprocess.run([WORKER, "make-model", "--shape", "tiny", "--type", "f32", self.model],
                       check=True, capture_output=True, timeout=60)

    def make_key(self, name, *options):
        path = os.path.join(self.folder, name + ".key")
        self.client("keygen", path, *options, source=[])
        return path

    def start_with_keys(self, server=None):
        self.start_collector("--listen", self.remote, "--key", server or self.server)

    def authorize(self, key, *options):
        self.client("authorize", key + ".pub", "--role", "producer", "--name",
                    os.path.basename(key), *options)

    def start_worker(self, key, requests="forever"):
        keys = ["--key", key] if key else []
        return self.start(WORKER, "--collector", self.remote, *keys, "--server-key",
                          self.server + ".pub", "--log-level", "info", "llm", "--model", self.model,
                          "--tokens", "3", "--rate", "20", "--requests", requests)

    def says(self, worker, words, times=1):
        self.wait_until(lambda: self.words(worker).count(words) >= times or
                        worker.poll() is not None)
        self.assertGreaterEqual(self.words(worker).count(words), times, self.words(worker))

    def inferences(self):
        return self.sql("SELECT count(*) FROM inference")[0][0]

    def test_refused_and_let_in(self):
        """Not known, then let in, then out, then in again: one run, nothing missing."""
        key = self.make_key("worker")
        self.start_with_keys()
        worker = self.start_worker(key)
        self.says(worker, "it refuses this key")
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(0,)])
        self.authorize(key)
        self.says(worker, " answers")
        self.wait_until(lambda: self.inferences() > 50)
        self.client("revoke", key + ".pub")
        self.says(worker, "does not answer", 2)
        before = self.inferences()
        self.let(1)
        self.assertEqual(self.inferences(), before)
        self.authorize(key)
        self.wait_until(lambda: self.inferences() > before + 50)
        self.end(worker)
        self.check_audit(ends=(CLOSED,))
        self.assertEqual(self.sql("SELECT count(*), sum(produced) - sum(stored) FROM run"),
                         [(1, 0)])
        self.assertEqual(self.left_behind(), [])

    def test_no_keys_at_all(self):
        """Nothing is known of keys here: what is missing is said, not that one is wrong."""
        self.start_with_keys()
        worker = self.start(WORKER, "--collector", self.remote, "llm", "--model", self.model,
                            "--tokens", "3", "--rate", "20", "--requests", "forever")
        self.says(worker, "it wants keys, and there are none here (inferstat keygen, and trust "
                  "its key;")
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(0,)])
        self.end(worker)

    def test_replay_by_another_key(self):
        """What a killed worker leaves is taken under its own key alone."""
        own, other = self.make_key("own"), self.make_key("other")
        self.start_with_keys()
        self.authorize(own)
        self.authorize(other)
        worker = self.start_worker(own)
        self.wait_until(lambda: os.path.exists(self.db) and self.inferences() > 10)
        self.kill(worker)
        done = self.client("spool", "flush", "--key", other, "--server-key", self.server + ".pub",
                           source=[], code=4)
        self.assertIn("another key", done.stderr)
        self.assertNotIn("no answer", done.stdout + done.stderr)
        self.assertNotEqual(self.left_behind(), [])
        self.client("spool", "flush", "--key", own, "--server-key", self.server + ".pub",
                    source=[])
        self.check_audit(ends=(KILLED,))
        self.assertEqual(self.left_behind(), [])

    def test_flush_of_a_refused_key(self):
        """What stays because the collector refuses the key is said to, as ping says it."""
        key = self.make_key("worker")
        self.start_with_keys()
        worker = self.start_worker(key)
        self.says(worker, "it refuses this key")
        self.kill(worker)
        keys = ["--key", key, "--server-key", self.server + ".pub"]
        ping = self.client("ping", *keys, source=["--collector", self.remote], code=4)
        self.assertIn("it refuses this key (", ping.stderr)
        done = self.client("spool", "flush", *keys, source=[], code=4)
        self.assertIn("stay: %s: it refuses this key (" % self.remote, done.stdout)
        self.assertIn("records of 1 run were not sent: it refuses this key (", done.stderr)
        self.assertNotIn("no answer", done.stdout + done.stderr)
        self.authorize(key)
        self.client("spool", "flush", *keys, source=[])
        self.check_audit(ends=(KILLED,))
        self.assertEqual(self.left_behind(), [])

    def test_server_key_is_changed(self):
        """The newer one is made known beside the older while a worker runs, and is tried
        where that fails."""
        key, newer = self.make_key("worker"), self.make_key("newer", "--server")
        both = os.path.join(self.folder, "both.pub")
        shutil.copy(self.server + ".pub", both)
        self.start_with_keys()
        self.authorize(key)
        worker = self.start(WORKER, "--collector", self.remote, "--key", key, "--server-key", both,
                            "--log-level", "info", "llm", "--model", self.model, "--tokens", "3",
                            "--rate", "20", "--requests", "forever")
        self.says(worker, " answers")
        with open(newer + ".pub", encoding="utf-8") as text, \
                open(both, "a", encoding="utf-8") as out:
            out.write(text.read())
        self.end(self.collector)
        before = self.inferences()
        self.start_with_keys(newer)
        self.wait_until(lambda: self.inferences() > before + 20)
        self.end(worker)
        self.check_audit(ends=(CLOSED,))

    def test_no_key(self):
        """Without a key of its own, or with one that others can read, a worker says so."""
        absent = self.start_worker(None, "1")
        self.assertEqual(absent.wait(timeout=30), 4)
        self.assertIn("keygen", self.words(absent))
        key = self.make_key("worker")
        os.chmod(key, 0o644)
        readable = self.start_worker(key, "1")
        self.assertEqual(readable.wait(timeout=30), 2)
        self.assertIn("chmod", self.words(readable))


if __name__ == "__main__":
    main()
