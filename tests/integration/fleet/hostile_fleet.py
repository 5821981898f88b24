#!/usr/bin/env python3
"""Twenty hostile peers against one collector, beside an honest producer and an honest dashboard.

A seed (INFERSTAT_TEST_SEED) deals roles and transports: ipc, with a user id of its own for each
where the test is root, and CURVE, with a key and an address of its own for each.  It takes a minute
times INFERSTAT_TEST_VOLUME; under a sanitizer ten seconds, and then figures do not count.  The
collector lives throughout and stays within its memory and disk, the honest ones wait as long as
they may, lose nothing, and every hostile peer is named in the log within ten seconds.

Without python3-zmq, python3-protobuf, protoc or libsodium it says so and exits with 77.
"""

import os
import random
import re
import sys
import time
from collections import Counter

from scene import HOSTILE_UID, MIB, SANITIZED, Scene, check, p99_ms, size_of
from hostile import ROLES
from programs import VOLUME

PEERS = 20
SECONDS = (10 if SANITIZED else 60) * VOLUME
NAMED_S = 10
BYTES_MAX = 64 * MIB  # --retention bytes
PRELOAD = 12000       # records, so that a listing of them has 2 MB
ACK_P99_MS, QUERY_P99_MS, RSS_MAX = 200, 500, 150 * MIB
# Beyond its size: a sixteenth and one group of records.  The log stays within a bound although
# snapshots of readers overlap, and is smaller once they have gone.
FILE_MAX = BYTES_MAX * 17 // 16 + 10 * MIB
LOG_MAX, LOG_LAST = 64 * MIB, 17 * MIB + MIB
FLOODS = {"names", "runs", "times", "reconnect_storm"}  # at full pace; all others are slowed down


class Dealt:
    """One of the fleet."""

    def __init__(self, number, role, transport):
        self.number, self.role, self.transport = number, role, transport
        self.name = f"hostile-{number:02}"
        self.source = f"127.0.1.{number + 1}"
        self.uid = HOSTILE_UID + 1 + number if os.getuid() == 0 else os.getuid()
        self.child = self.begun_at = self.named_after_s = self.line = None

    def start(self, scene, seed):
        scratch = os.path.join(scene.folder, self.name)
        os.mkdir(scratch, 0o700)
        settings = scene.how_to_reach(self.transport, self.name, self.source)
        settings |= {"role": self.role, "seed": seed, "scratch": scratch,
                     "pace": 1 if self.role in FLOODS else 0.5}
        if os.getuid() == 0:
            os.chown(scratch, self.uid, HOSTILE_UID)
            settings |= {"uid": self.uid, "gid": HOSTILE_UID}
        self.child = scene.start_child("hostile.py", settings)
        if self.transport == "curve":
            key = re.escape(scene.keys[self.name][0])
            self.pattern = re.compile(rf"{self.name}\b|{key}|{re.escape(self.source)}\b")
        else:
            process = rf"process {self.child.process.pid}\b"  # its own, not its engines'
            is_alone = os.getuid() == 0 or self.role == "crash_loop"
            self.pattern = re.compile(rf"\b{self.uid}\b" if is_alone else process)

    def look(self, lines):
        """Among new lines of the log."""
        if self.begun_at is None:
            for line in self.child.lines():
                self.begun_at = float(line.split()[1])
        for seen_at, line in lines:
            if self.begun_at and self.line is None and "warning" in line and \
                    self.pattern.search(line):
                self.line, self.named_after_s = line, seen_at - self.begun_at

    def fault(self):
        """What is wrong with how it was named; None where nothing is."""
        if self.begun_at is None:
            # A machine may be too slow to connect more often than a peer may.
            words = self.child.words()
            slow = self.role == "reconnect_storm" and not words.strip()
            return None if slow else "never began: " + words
        if self.line is None:
            return "not named"
        return f"named after {self.named_after_s:.1f} s" if self.named_after_s > NAMED_S else None

    def row(self):
        after = "-" if self.named_after_s is None else f"{self.named_after_s:.1f} s"
        begun = "never began" if self.begun_at is None else after
        who = str(self.uid) if self.transport == "ipc" else self.name
        return f"  {self.role:<16} {self.transport:<6} {who:<11} {begun:>11}  {self.line or ''}"


def deal(seed):
    chance = random.Random(seed)
    roles = [*ROLES, *chance.choices(list(ROLES), k=PEERS - len(ROLES))]
    chance.shuffle(roles)
    return [Dealt(number, role, chance.choice(("ipc", "curve")))
            for number, role in enumerate(roles)]


def attack(scene, fleet, seed, honest):
    """Lets them loose, and watches."""
    chance = random.Random(seed)
    for peer in fleet:
        peer.start(scene, chance.getrandbits(32))
    end = time.monotonic() + SECONDS
    seen = len(scene.log_lines)
    while time.monotonic() < end:
        scene.watch()
        for peer in fleet:
            peer.look(scene.log_lines[seen:])
        seen = len(scene.log_lines)
        for child in honest:
            check(child.process.poll() is None, f"an honest peer failed: {child.words()}")
        time.sleep(0.1)
    for peer in fleet:
        peer.child.kill()


def settle(scene, descriptors):
    """Waits until the collector has let go of what the fleet took; what is left over."""
    deadline = time.monotonic() + 30
    while True:
        scene.watch()
        left_over = Counter(scene.descriptors()) - Counter(descriptors)
        is_settled = not left_over and size_of(scene.store + "-wal") <= LOG_LAST
        if is_settled or time.monotonic() > deadline:
            return dict(left_over)
        time.sleep(0.1)


def report(scene, fleet, waits):
    """Prints the table and the figures; returns what is wrong."""
    print("  role             over   who               named  by")
    for peer in fleet:
        print(peer.row())
    wrong = [f"{peer.role} ({peer.name}, {peer.transport}): {peer.fault()}"
             for peer in fleet if peer.fault()]
    figures = [("acknowledgements p99", p99_ms(waits[0]), ACK_P99_MS, "ms"),
               ("queries p99", p99_ms(waits[1]), QUERY_P99_MS, "ms"),
               ("memory", scene.rss_max / MIB, RSS_MAX / MIB, "MiB"),
               ("file", scene.file_max / MIB, FILE_MAX / MIB, "MiB"),
               ("its log", scene.log_max / MIB, LOG_MAX / MIB, "MiB"),
               ("its log afterwards", size_of(scene.store + "-wal") / MIB, LOG_LAST / MIB, "MiB")]
    for what, is_value, may_be, unit in figures:
        print(f"  {what:<22} {is_value:8.1f} {unit}, at most {may_be:.0f}")
        if is_value > may_be:
            wrong.append(f"{what}: {is_value:.1f} {unit}")
    return wrong


def run(scene, seed):
    # Where all are the same user only keys tell the honest ones from the others.
    transports = ("ipc", "curve") if os.getuid() == 0 else ("curve",)
    chosen = random.Random(seed).choices(transports, k=2)
    print("producer over %s, dashboard over %s" % tuple(chosen), flush=True)
    producer = scene.start_honest("producer", chosen[0], PRELOAD)
    producer.wait_for_line(60)
    dashboard = scene.start_honest("dashboard", chosen[1])
    dashboard.wait_for_line(20)
    fleet = deal(seed)
    descriptors = scene.descriptors()
    attack(scene, fleet, seed, (producer, dashboard))
    left_over = settle(scene, descriptors)
    looked, produced = dashboard.finish(), producer.finish()
    wrong = report(scene, fleet, (produced["waits_s"], looked["waits_s"]))
    if left_over:
        wrong.append(f"descriptors left over: {left_over}")
    scene.check_healthy_end()
    scene.check_run(produced["run"], produced["produced"])
    check(SANITIZED or not wrong, "\n".join(wrong))


def main():
    seed = int(os.environ.get("INFERSTAT_TEST_SEED", random.randrange(1 << 32)))
    print(f"INFERSTAT_TEST_SEED={seed}, {SECONDS} s", flush=True)
    names = ["honest-producer", "honest-dashboard", *(peer.name for peer in deal(seed))]
    scene = Scene("--retention", f"bytes={BYTES_MAX // MIB}MB", names=names)
    try:
        run(scene, seed)
    except BaseException:
        print(scene.last_words(), f"\nexit {scene.process.poll()}", file=sys.stderr)
        raise
    finally:
        scene.close()


if __name__ == "__main__":
    main()
