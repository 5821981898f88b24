"""Faults of programs, with the real ones: killed, stopped, restarted, rebooted under,
their clocks set, their store swapped.  After each, what is stored lies between what the
engines counted, and the audit balances.

INFERSTAT_TEST_VOLUME  times 24 rounds of killing; from 10 on stops last a minute
INFERSTAT_TEST_SEED    repeats the choices of a run that failed
"""

import json
import os
import shutil
import struct
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from faults import (ACKNOWLEDGED_ELSEWHERE, CLOSED, KILLED, OPEN, SANITIZED,  # noqa: E402
                    SHIFT_CLOCK, SILENT, WORKER, FaultCase, main)
from programs import VOLUME  # noqa: E402

ROUNDS = 24 * VOLUME
ROUNDS_BETWEEN_CHECKS = 25
STOP_SECONDS = 60 if VOLUME >= 10 else 15  # beyond the collector's ten for silence and all of ours
HOUR_NS = 3600 * 10**9


class KillTest(FaultCase):
    """SIGKILL of engines, of a worker, of the collector, of several at once, at any time."""

    ENGINES = 3

    def make_model(self):
        path = os.path.join(self.folder, "tiny.gguf")
        made = self.start(WORKER, "make-model", "--shape", "tiny", "--type", "f32", path)
        self.assertEqual(made.wait(timeout=60), 0, self.words(made))
        return path

    def start_worker(self):
        self.worker = self.start(WORKER, "--collector", self.address, "llm", "--model",
                                 self.model, "--prompt", "Once upon a time", "--tokens", "4",
                                 "--requests", "1000000", "--rate", "50")

    def start_in(self, slot):
        """An engine slow enough to lose nothing, or, now and then, one that overruns its
        small ring."""
        if self.random.random() < 0.2:
            engine = self.start_engine(20000, 1, "--ring", "64", "--mix", "operations",
                                       wait=False)
            engine.may_overrun = True
        else:
            engine = self.start_engine(self.random.choice((20, 100, 400)),
                                       self.random.choice((1, 2, 4)), wait=False)
        self.slots[slot] = engine

    def let_live(self, seconds):
        self.let(self.random.uniform(0, seconds))

    def one_round(self):
        self.let_live(0.5)
        engines = self.random.sample(range(self.ENGINES), self.random.choice((0, 1, 1, 2)))
        worker = self.random.random() < 0.3
        collector = self.random.random() < 0.4 or not engines and not worker
        dying = [self.slots[slot].process for slot in engines]
        dying += [self.worker] if worker else []
        dying += [self.collector] if collector else []
        self.random.shuffle(dying)
        for process in dying:
            process.kill()
        for process in dying:
            self.assertEqual(process.wait(timeout=20), -9, self.words(process))
            self.forget(process)
        if self.random.random() < 0.3:
            self.let_live(1)
        self.revive(engines, worker, collector)

    def revive(self, engines, worker, collector):
        revivals = [lambda slot=slot: self.start_in(slot) for slot in engines]
        if worker:
            revivals.append(self.start_worker)
        if collector:
            revivals.append(lambda: self.start_collector(wait=False))
        self.random.shuffle(revivals)
        for revive in revivals:
            revive()

    def one_phase(self, rounds):
        self.start_collector()
        self.slots = {}
        self.revive(range(self.ENGINES), True, False)
        for _ in range(rounds):
            self.one_round()
        self.wait_for_collector()
        self.wait_until(lambda: self.sql("SELECT 1 FROM run WHERE pid = ?", self.worker.pid))
        self.end(self.worker)
        self.forget(self.worker)
        self.finish()
        for engine in self.slots.values():
            self.forget(engine.process)
        self.end(self.collector)
        self.forget(self.collector)

    def test_kills(self):
        self.model = self.make_model()
        began, left = time.monotonic(), ROUNDS
        while left:
            rounds = min(left, ROUNDS_BETWEEN_CHECKS)
            self.one_phase(rounds)
            left -= rounds
        ended = sum(engine.ended() for engine in self.engines)
        self.assertGreater(ended, ROUNDS)
        ends = dict(self.sql('SELECT "end", count(*) FROM run GROUP BY 1'))
        self.assertGreater(ends.get(KILLED, 0), 0)
        self.assertEqual([], self.sql('SELECT worker_version, produced, ended_ns, last_activity '
                                      'FROM run WHERE "end" = ? AND (ended_ns IS NULL OR '
                                      "last_activity IS NULL)", KILLED),
                         "killed without a word of when and at what")
        print("%d rounds in %.0f s: %d engines ended %d records, %d stored, runs by end %s"
              % (ROUNDS, time.monotonic() - began, len(self.engines), ended, self.stored(), ends),
              flush=True)


class CrashLoopTest(FaultCase):
    """An engine with many threads that is killed again and again while nobody collects."""

    CRASHES, THREADS = 14, 64
    LEFT_MAX = 16 << 20

    def allocated(self):
        """By all run files."""
        return sum(entry.stat().st_blocks * 512 for entry in os.scandir(self.run_folder))

    def test_what_crashes_leave_takes_little_memory(self):
        for _ in range(self.CRASHES):
            engine = self.start_engine(20, self.THREADS)
            self.let(0.3)
            self.kill(engine.process)
        self.start_engine(20, 1)
        self.wait_until(lambda: self.allocated() <= self.LEFT_MAX, 10)
        self.assertEqual(len(self.spool_rows()), self.CRASHES + 1)
        self.start_collector()
        self.finish()


class StopTest(FaultCase):
    """SIGSTOP: a program that is there and does nothing."""

    def test_collector_stands_still(self):
        self.start_collector()
        self.start_engine(500, 4)
        self.wait_until(lambda: self.stored() > 100)
        self.collector.send_signal(19)
        engine = self.engines[0]
        before = engine.ended()
        self.let(STOP_SECONDS)
        # The engine never waited: it went on at its pace, or a good part of it.
        self.assertGreater(engine.ended(), before)
        self.collector.send_signal(18)
        self.finish()

    def test_engine_stands_still(self):
        self.start_collector()
        engine = self.start_engine(200, 2)
        self.wait_until(lambda: self.stored() > 50)
        engine.process.send_signal(19)
        self.wait_until(lambda: self.ends() == [SILENT], STOP_SECONDS + 30)
        engine.process.send_signal(18)
        self.wait_until(lambda: self.ends() == [OPEN])
        self.finish(ends=(CLOSED,))

    def ends(self):
        return [end for end, in self.sql('SELECT "end" FROM run')]


@unittest.skipIf(not SHIFT_CLOCK or SANITIZED, "a sanitizer wants to be loaded first")
class ClockTest(FaultCase):
    """Someone sets the clock, of the engines' host or of the collector's, by hours."""

    def setUp(self):
        super().setUp()
        self.clocks = {}

    def shifted(self, name):
        """The environment of programs on a host of that name, whose clock can be set."""
        path = os.path.join(self.folder, name + ".clock")
        if not os.path.exists(path):
            self.set_clock(name, 0)
        return dict(self.environment, LD_PRELOAD=SHIFT_CLOCK, INFERSTAT_TEST_CLOCK=path)

    def set_clock(self, name, hours):
        path = os.path.join(self.folder, name + ".clock")
        with open(path, "r+b" if os.path.exists(path) else "wb") as file:
            file.write(struct.pack("<q", hours * HOUR_NS))

    def has_difference(self, hours):
        """Whether the last record's clocks, its host's and the collector's, differ by so much."""
        rows = self.sql("SELECT started_ns - received_ns FROM operation ORDER BY id DESC LIMIT 1")
        return rows and abs(rows[0][0] - hours * HOUR_NS) < HOUR_NS // 60

    def has_estimate(self, hours):
        """Whether the run's offset is known, and as well as its bound says."""
        (offset, error), = self.sql("SELECT clock_offset_ns, clock_error_ns FROM run")
        return offset is not None and error < HOUR_NS // 60 and \
            abs(offset - hours * HOUR_NS) <= error

    def test_clocks_are_set(self):
        self.start_collector(environment=self.shifted("collector"))
        engine = self.start_engine(200, 2, environment=self.shifted("host"))
        hours = {"host": 0, "collector": 0}
        for place, hour in (("host", -7), ("host", 5), ("collector", -30), ("collector", 9),
                            ("host", 0), ("collector", 0)):
            self.set_clock(place, hour)
            hours[place] = hour
            self.wait_until(lambda: self.has_difference(hours["host"] - hours["collector"]))
            self.wait_until(lambda: self.has_estimate(hours["host"] - hours["collector"]))
        # Nothing that lasts is measured with this clock.
        self.assertLess(self.sql("SELECT max(e2e_ns) FROM inference")[0][0], HOUR_NS)
        self.assertGreaterEqual(self.sql("SELECT min(duration_ns) FROM operation")[0][0], 0)
        self.assertEqual(self.sql('SELECT "end" FROM run'), [(OPEN,)])
        self.end(engine.process)
        self.finish(ends=(CLOSED,))

    def test_clock_is_set_while_the_collector_is_away(self):
        self.start_collector(environment=self.shifted("collector"))
        victim = self.start_engine(200, 2, environment=self.shifted("host"))
        self.wait_until(lambda: self.stored() > 50)
        self.kill(self.collector)
        self.set_clock("host", -12)
        self.let(3)
        self.kill(victim.process)
        self.set_clock("host", 2)
        self.start_collector(environment=self.shifted("collector"))
        self.start_engine(200, 2, environment=self.shifted("host"))
        self.let(1)
        self.finish()


class StoreTest(FaultCase):
    """The store under the collector becomes another."""

    def copy_store(self, name):
        """The file as it is when the collector has ended."""
        path = os.path.join(self.folder, name)
        shutil.copyfile(self.db, path)
        return path

    def put_store(self, path):
        for end in ("", "-wal", "-shm"):
            if os.path.exists(self.db + end):
                os.remove(self.db + end)
        if path:
            shutil.copyfile(path, self.db)

    def record_some(self):
        stored = self.stored()
        self.wait_until(lambda: self.stored() > stored + 200)

    def allow_elsewhere(self):
        for engine in self.engines:
            engine.allowed = (ACKNOWLEDGED_ELSEWHERE,)

    def test_store_is_restored_from_a_copy(self):
        self.start_collector()
        self.start_engine(300, 2)
        self.start_engine(50, 4)
        self.record_some()
        self.end(self.collector)
        old = self.copy_store("old.db")
        self.start_collector()
        self.record_some()
        late = self.start_engine(100, 2)
        self.record_some()
        self.kill(self.collector)
        self.kill(late.process)  # what it left is of records that the copy never knew of
        self.put_store(old)
        self.allow_elsewhere()
        self.start_collector()
        self.let(1)
        self.finish()
        elsewhere = self.sql("SELECT count(*) FROM range WHERE state = 1 AND reason = ?",
                             ACKNOWLEDGED_ELSEWHERE)[0][0]
        self.assertGreater(elsewhere, 0)

    def test_runs_are_forgotten(self):
        """What a liar reported goes, with what it still sends and what it left on disk."""
        self.start_collector()
        liar, honest = self.start_engine(300, 2), self.start_engine(100, 2)
        self.record_some()
        run = self.sql("SELECT uuid FROM run WHERE worker_version = ?", liar.program)[0][0]
        said = json.loads(self.client("forget", "--run", run, "--yes", "--json").stdout)
        self.assertEqual(said["runs"], 1)
        self.assertGreater(said["cleared"], 100)
        self.wait_until(lambda: "has removed this run" in self.words(liar.process))
        self.record_some()  # the honest one's
        self.assertEqual(self.sql("SELECT count(*) FROM run")[0][0], 1)
        self.kill(liar.process)
        self.engines.remove(liar)
        self.client("forget", "--run", run, "--yes", code=3)
        self.finish(ends=(CLOSED,))  # nothing of the liar is left on disk either
        stored = self.stored()
        self.assertGreater(self.sql("SELECT sum(replays) FROM forgotten")[0][0], 0)
        summary = json.loads(self.client("summary", "--json").stdout)
        self.assertEqual((summary["forgotten_runs"], summary["forgotten_on_request"]), (1, 1))
        self.assertGreaterEqual(summary["forgotten_stored"], said["cleared"])
        self.assertIn("1 runs (1 by inferstat forget)", self.client("summary").stdout)
        self.end(self.collector)
        self.client("forget", "--key", "user:%d" % os.getuid(), "--yes", source=["--db", self.db])
        self.assertEqual(self.stored(), 0)
        runs, cleared = self.sql("SELECT runs, cleared FROM forgotten WHERE why = 1")[0]
        self.assertEqual(runs, 2)
        self.assertGreaterEqual(cleared, said["cleared"] + stored)

    def test_store_is_replaced_by_a_new_one(self):
        self.start_collector()
        engine = self.start_engine(300, 4)
        self.record_some()
        self.kill(self.collector)
        first = os.path.join(self.folder, "first.db")
        os.rename(self.db, first)
        if os.path.exists(self.db + "-wal"):
            os.rename(self.db + "-wal", first + "-wal")
        self.put_store(None)
        self.let(1.5)
        self.allow_elsewhere()
        self.start_collector()
        self.record_some()
        self.finish(ends=(CLOSED,))
        self.check_between_stores(engine, first)

    def check_between_stores(self, engine, first):
        """Each record is in the one store or the other."""
        numbers = {}
        for db in (first, self.db):
            for name, number in self.sql(
                    "SELECT n.text, t.number FROM (SELECT operation AS name, items AS number "
                    "FROM operation UNION ALL SELECT model, request FROM inference) t "
                    "JOIN name n ON n.id = t.name", db=db):
                numbers.setdefault(name, set()).add(number)
        for thread, (ended, begun, _) in enumerate(engine.threads()):
            here = numbers["fault-%d" % thread]
            self.assertEqual(set(range(1, len(here) + 1)), here)
            self.assertTrue(ended <= len(here) <= begun)


class RebootTest(FaultCase):
    """The host goes down: what lay on tmpfs is gone, what lay on disk stays."""

    def spooled(self):
        """Records that lie in spools."""
        return sum(row["records"] for row in self.spool_rows())

    def record_without_collector(self):
        self.start_collector()
        engines = [self.start_engine(300, 2), self.start_engine(50, 4)]
        self.wait_until(lambda: self.stored() > 200)
        # At rest, so that nothing is stored and, unacknowledged, in a spool as well.
        self.set_rates(engines, 0)
        self.wait_until(lambda: self.stored() == sum(engine.ended() for engine in engines))
        self.let(0.5)
        self.end(self.collector)
        self.set_rates(engines, 200)
        self.let(4)
        return engines

    @staticmethod
    def set_rates(engines, rate):
        for engine in engines:
            engine.set_rate(rate)

    def reboot(self, engines):
        for engine in engines:
            self.kill(engine.process)
        shutil.rmtree(self.run_folder)
        self.make_folder("run")
        self.flush_options = ["--force"]  # the host has been up all the time
        self.start_collector()

    def test_reboot(self):
        """Without a collector all goes to the disk, once the engines rest."""
        engines = self.record_without_collector()
        self.set_rates(engines, 0)
        self.wait_until(lambda: self.stored() + self.spooled() >=
                        sum(engine.ended() for engine in engines))
        self.reboot(engines)
        self.finish(ends=(KILLED,))

    def test_reboot_while_recording(self):
        """What lay in rings is gone, and nobody can know of the last of it."""
        engines = self.record_without_collector()
        safe = self.stored() + self.spooled()
        self.reboot(engines)
        self.flush()
        self.check_audit(ends=(KILLED,))
        self.assertGreaterEqual(self.sql("SELECT sum(stored) FROM run")[0][0], safe)
        for engine in engines:
            engine.is_torn = True
        self.check_counts()


if __name__ == "__main__":
    main()
