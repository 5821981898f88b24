"""Faults of what the programs stand on, with the real ones: disks that fill up or turn
read-only, a network that loses frames or is cut, memory that ends.  After each, what is
stored lies between what the engines counted, and the audit balances.

Disks and networks are made in namespaces of the test's own; where that is not permitted,
the test says so and is skipped.

INFERSTAT_TEST_SEED    repeats the choices of a run that failed
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from faults import (CLOSED, COLLECTOR, MS_BIND, MS_RDONLY, MS_REMOUNT,  # noqa: E402
                    NOT_PERMITTED, SANITIZED, SPOOL_FULL, FaultCase, leave_world, main,
                    mount, unmount)
from lossy_wire import Hosts  # noqa: E402
from zmtp_hands import Wire, frame, greeting, ready  # noqa: E402

MEGABYTE = 1 << 20
CUT_SECONDS = 20


class DiskCase(FaultCase):
    """Has small disks."""

    @classmethod
    def setUpClass(cls):
        if not leave_world():
            raise unittest.SkipTest("mounts of its own: " + NOT_PERMITTED)

    def small_disk(self, name, size):
        path = self.make_folder(name)
        mount("none", path, "tmpfs", options="size=%d,mode=0700" % size)
        self.addCleanup(self.drop_disk, path)
        self.addCleanup(self.clean_up)  # first: who stands on a disk keeps it
        return path

    @staticmethod
    def drop_disk(path):
        """After the programs have ended; what is still busy goes with the namespace."""
        try:
            unmount(path)
        except OSError:
            pass

    @staticmethod
    def fill(disk):
        """Takes what is left of it, to the last page."""
        with open(os.path.join(disk, "ballast"), "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 16, 1 << 12):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError:
                    pass

    @staticmethod
    def empty(disk):
        os.remove(os.path.join(disk, "ballast"))

    def record_some(self, count=200):
        stored = self.stored()
        self.wait_until(lambda: self.stored() > stored + count)


class StoreDiskTest(DiskCase):
    """The collector's disk."""

    def setUp(self):
        super().setUp()
        self.disk = self.small_disk("disk", 16 * MEGABYTE)
        self.db = os.path.join(self.disk, "store.db")

    def complaints(self):
        return self.words(self.collector).count("nothing is acknowledged until")

    def store_error(self):
        said = [json.loads(self.client(command, "--json").stdout)["store_error"]
                for command in ("ping", "summary")]
        self.assertEqual(said[0], said[1])
        return said[0]

    def wait_until_while_full(self, condition):
        """The log has room in the pages that it had, and gives some back when it is cut."""
        def holds():
            self.fill(self.disk)
            return condition()
        self.wait_until(holds)

    def test_disk_is_full_and_has_room_again(self):
        self.start_collector()
        self.start_engine(300, 4)
        self.start_engine(50, 2)
        for _ in range(3):
            self.record_some()
            before = self.complaints()
            self.wait_until_while_full(lambda: self.complaints() > before)
            self.let(1)
            self.assertTrue(self.collector_answers(), "it still answers questions")
            # And says that it cannot write.
            self.wait_until_while_full(lambda: "full" in (self.store_error() or ""))
            self.empty(self.disk)
        self.record_some()
        self.wait_until(lambda: self.store_error() is None)
        self.finish(ends=(CLOSED,))

    def test_killed_and_started_on_a_full_disk(self):
        self.start_collector()
        engine = self.start_engine(300, 4)
        self.record_some()
        self.fill(self.disk)
        self.let(1)
        self.kill(self.collector)
        self.start_collector(wait=False)
        self.let(1)
        self.kill(engine.process)
        self.empty(self.disk)
        if self.collector.poll() is None:
            self.wait_for_collector()
        else:
            self.assertIn(self.collector.returncode, (1, 4), self.words(self.collector))
            self.start_collector()
        self.start_engine(300, 2)
        self.record_some()
        self.finish()

    def test_file_is_read_only_at_the_start(self):
        self.start_collector()
        engine = self.start_engine(100, 2)
        self.record_some()
        self.end(self.collector)
        mount(self.disk, self.disk, flags=MS_BIND)
        mount("none", self.disk, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)
        self.start_collector(wait=False)
        self.assertEqual(self.collector.wait(timeout=30), 4, self.words(self.collector))
        self.assertIn("store.db", self.words(self.collector))
        self.let(1)
        unmount(self.disk)
        self.start_collector()
        self.record_some()
        self.assertTrue(engine.alive())
        self.finish(ends=(CLOSED,))

    def test_a_mount_of_the_file_is_another_name(self):
        self.start_collector()
        other = os.path.join(self.folder, "other.db")
        with open(other, "wb"):
            pass
        mount(self.db, other, flags=MS_BIND)
        self.addCleanup(self.drop_disk, other)
        second = self.start(COLLECTOR, "--listen", self.address + "-2", "--db", other)
        self.assertEqual(second.wait(timeout=30), 4, self.words(second))
        self.assertIn("under another name", self.words(second))
        self.start_engine(300, 2)
        self.record_some()
        self.finish()


class ImmutableStoreTest(FaultCase):
    """The store's file turns read-only under a collector that has it open."""

    def set_immutable(self, on):
        files = [self.db + end for end in ("", "-wal") if os.path.exists(self.db + end)]
        return subprocess.run(["chattr", "+i" if on else "-i", *files],
                              capture_output=True, check=False).returncode == 0

    def clean_up(self):
        try:
            self.set_immutable(False)
        except OSError:
            pass  # without chattr nothing was made immutable
        finally:
            super().clean_up()

    def test_file_turns_read_only_and_back(self):
        if not shutil.which("chattr"):
            self.skipTest("to make a file immutable: there is no chattr (e2fsprogs)")
        self.start_collector()
        self.start_engine(300, 2)
        self.wait_until(lambda: self.stored() > 100)
        if not self.set_immutable(True):
            self.end(self.engines[0].process)
            self.skipTest("to make a file immutable: " + NOT_PERMITTED)
        self.let(3)
        stored = self.stored()
        self.let(1)
        self.assertEqual(self.stored(), stored)
        self.set_immutable(False)
        self.wait_until(lambda: self.stored() > stored + 100)
        self.finish(ends=(CLOSED,))


class SpoolDiskTest(DiskCase):
    """The engines' disk."""

    def setUp(self):
        super().setUp()
        self.spool = self.small_disk("spool", MEGABYTE)

    def test_spool_is_full(self):
        """Engines lose what fits nowhere, which is counted; and no more than that."""
        self.start_collector()
        engines = [self.start_engine(2000, 4, "--ring", "256") for _ in range(2)]
        self.wait_until(lambda: self.stored() > 500)
        self.kill(self.collector)
        for engine in engines:
            engine.may_overrun = True
            engine.allowed = (SPOOL_FULL,)
        before = sum(engine.ended() for engine in engines)
        self.let(6)
        self.assertGreater(sum(engine.ended() for engine in engines), before)
        self.assertGreater(os.statvfs(self.spool).f_bavail, 0, "never filled to the brim")
        self.kill(engines[0].process)
        self.start_collector()
        self.let(1)
        self.finish()
        self.assertGreater(self.sql("SELECT sum(unnumbered) FROM stream")[0][0], 0)

    def test_disk_of_the_spool_has_no_room_at_all(self):
        self.fill(self.spool)
        self.start_engine(500, 2, "--ring", "1024")
        self.let(3)
        self.engines[0].may_overrun = True
        self.empty(self.spool)
        self.let(1)
        self.start_collector()
        self.finish(ends=(CLOSED,))


class RunDiskTest(DiskCase):
    """The file system of the run files, such as the /dev/shm of a container."""

    THREADS = 64

    def use_disk(self, megabytes):
        self.disk = self.small_disk("run", megabytes * MEGABYTE)

    def start_many(self):
        return self.start_engine(100, self.THREADS)

    def check_no_loss(self):
        self.finish()
        self.assertEqual(self.sql("SELECT coalesce(sum(unnumbered), 0) FROM stream"), [(0,)])

    def test_rings_are_smaller(self):
        """They fit, something stays free, and they are large enough."""
        self.use_disk(16)
        engine = self.start_many()
        self.let(2)
        space = os.statvfs(self.disk)
        self.assertGreater(space.f_bavail * space.f_frsize, MEGABYTE)
        self.start_collector()
        self.wait_until(lambda: self.stored() > 100 * self.THREADS)
        self.kill(engine.process)
        self.check_no_loss()

    def test_rings_are_on_disk(self):
        self.use_disk(4)
        engine = self.start_many()
        self.assertEqual(os.listdir(self.disk), [])
        self.assertIn("are buffered in " + self.spool, self.words(engine.process))
        self.let(1)
        self.kill(engine.process)
        self.start_many()
        self.start_collector()
        self.wait_until(lambda: self.stored() > 100 * self.THREADS)
        self.check_no_loss()

    def test_room_of_a_dead_engine(self):
        """Nothing is free but what the dead one does not need."""
        self.use_disk(24)
        engine = self.start_engine(20, self.THREADS)
        self.wait_until(lambda: all(ended > 0 for ended, _, _ in engine.threads()))  # all have rings
        self.fill(self.disk)
        self.kill(engine.process)
        self.start_engine(20, 1)
        self.assertEqual(len(os.listdir(self.disk)), 3, "two run files and the ballast")
        self.empty(self.disk)
        self.start_collector()
        self.check_no_loss()

    def test_no_room_at_all(self):
        """Not on the disk of the spool either: the loss has its reason."""
        self.use_disk(1)
        self.spool_disk = self.small_disk("spool", MEGABYTE)
        self.fill(self.spool_disk)
        engine = self.start_many()
        engine.may_overrun = True
        self.let(2)
        self.start_collector()
        self.let(3)
        self.end(engine.process)
        self.assertIn("has no room for more", self.words(engine.process))
        self.empty(self.spool_disk)
        self.finish()
        summary = json.loads(self.client("summary", "--json").stdout)
        unnumbered, no_room = self.sql("SELECT sum(unnumbered), sum(no_room) FROM stream")[0]
        self.assertGreater(no_room, 0)
        self.assertEqual(summary["dropped_no_room"], no_room)
        self.assertEqual(summary["dropped_ring_full"], unnumbered - no_room)

    def test_crashes(self):
        """What they leave goes to the disk; the next engine finds room."""
        self.use_disk(32)
        for _ in range(6):
            engine = self.start_engine(1000, self.THREADS, "--ring", "1024")
            engine.may_overrun = True
            self.let(0.5)
            self.kill(engine.process)
        self.start_engine(1000, self.THREADS, "--ring", "1024").may_overrun = True

        def moved():
            return [name for name in os.listdir(self.spool) if name.endswith(".run")]

        self.wait_until(moved)
        self.start_collector()
        self.finish()


class NetworkTest(FaultCase):
    """The network between the engines' host and the collector's."""

    @classmethod
    def setUpClass(cls):
        if not leave_world(network=True):
            raise unittest.SkipTest("networks of its own: " + NOT_PERMITTED)
        try:
            Hosts(0).close()
        except (OSError, subprocess.CalledProcessError) as error:
            raise unittest.SkipTest("networks of its own: %s: %s"
                                    % (NOT_PERMITTED, error)) from error

    def setUp(self):
        super().setUp()
        self.hosts = Hosts(self.seed)
        self.addCleanup(self.hosts.close)
        self.addCleanup(self.clean_up)
        self.wire = self.hosts.wire
        self.place = self.hosts.place("near")
        self.collector_place = self.hosts.place("far")
        self.engines_address = "tcp://%s:5571" % Hosts.FAR
        self.secure()

    def secure(self):
        """Keys for both sides, as between any two hosts."""
        self.client("keygen", os.path.join(self.folder, "server.key"), "--server", source=[])
        self.client("keygen", os.path.join(self.folder, "engine.key"), source=[])
        self.collector_options = ("--listen", "tcp://%s:5571" % Hosts.FAR, "--key",
                                  os.path.join(self.folder, "server.key"))
        self.environment.update(
            INFERSTAT_KEY=os.path.join(self.folder, "engine.key"),
            INFERSTAT_SERVER_KEY=os.path.join(self.folder, "server.key.pub"))

    def start_collector(self, *options, **settings):
        super().start_collector(*options, **settings)
        self.client("authorize", os.path.join(self.folder, "engine.key.pub"), "--role",
                    "producer", "--name", "near")

    def record_some(self, count=200, seconds=60):
        stored = self.stored()
        self.wait_until(lambda: self.stored() > stored + count, seconds)

    def test_frames_are_lost_late_and_repeated(self):
        self.wire.loss, self.wire.repeat, self.wire.delay = 0.05, 0.02, (0.0, 0.03)
        self.start_collector()
        self.start_engine(200, 2)
        self.start_engine(50, 4)
        self.record_some(2000)
        self.assertGreater(self.wire.lost, 20)
        self.kill(self.engines[1].process)
        self.start_engine(100, 2)
        self.record_some(500)
        self.wire.loss = 0.0
        self.finish()

    def test_network_is_cut(self):
        self.start_collector()
        self.start_engine(500, 4)
        victim = self.start_engine(100, 2)
        self.record_some()
        self.wire.cut = True
        self.let(CUT_SECONDS)
        self.kill(victim.process)
        self.wire.cut = False
        self.record_some()
        for _ in range(3):
            self.hosts.link("far", "down")
            self.let(self.random.uniform(0.1, 2))
            self.hosts.link("far", "up")
            self.record_some()
        self.finish()

    def test_collector_is_restarted_behind_the_cut(self):
        self.start_collector()
        self.start_engine(300, 2)
        self.record_some()
        self.wire.cut = True
        self.let(2)
        self.kill(self.collector)
        self.start_collector()
        self.let(2)
        self.wire.cut = False
        self.record_some()
        self.finish(ends=(CLOSED,))


@unittest.skipIf(SANITIZED, "a sanitizer's own memory knows no bounds")
class MemoryTest(FaultCase):
    """An authorised peer sends frames of one message without end, again and again.  The collector,
    whose memory is capped, ends each connection at the first frame; nothing is lost."""

    CAP = 192 * MEGABYTE

    def resident(self):
        with open("/proc/%d/statm" % self.collector.pid, encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def test_endless_frames(self):
        self.start_collector()
        resource.prlimit(self.collector.pid, resource.RLIMIT_DATA, (self.CAP, self.CAP))
        self.start_engine(300, 4)
        self.start_engine(50, 2)
        self.wait_until(lambda: self.stored() > 200)
        part = frame(bytes(1 << 18), flags=1)
        refused = largest = 0
        deadline = time.monotonic() + 8
        while time.monotonic() < deadline:
            wire = Wire(os.path.join(self.folder, "sockets", "ingest"))
            wire.socket.settimeout(1)
            taken = wire.send(greeting() + ready((b"Identity", b"")))
            for _ in range(16):
                taken = taken and wire.send(part)
                largest = max(largest, self.resident())
            refused += not taken
            wire.close()
            time.sleep(0.05)
        stored = self.stored()
        self.wait_until(lambda: self.stored() > stored + 100)
        print("%d connections ended, %d MB resident at most"
              % (refused, largest // MEGABYTE), flush=True)
        self.assertLess(largest, self.CAP // 2)
        self.finish(ends=(CLOSED,))
        self.assertGreater(refused, 10, "the attacker was not cut off each time")


if __name__ == "__main__":
    main()
