"""One hostile peer: plays one role against a collector until it is killed.

    hostile.py SETTINGS    as JSON: see Scene.how_to_reach, with "role", "seed", "pace" (1: as
                           fast as the role says), "scratch" (a folder of its own), "uid" and "gid"

Says "begun TIME" (CLOCK_MONOTONIC) when it does the first thing that a collector should name.
"""

import contextlib
import json
import os
import pathlib
import random
import select
import socket
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "support")]

from foreign_client import Peer, Producer, cells  # noqa: E402
from honest import RUN, become, endpoint, keys_of  # noqa: E402
from programs import check  # noqa: E402
from zmtp_hands import CurveHands, Sodium, Wire, frame, greeting, ready  # noqa: E402

import zmq  # noqa: E402
from zmq.utils import z85  # noqa: E402

SERVICES = ("ingest", "query", "live")
OPERATION_KIND = 8
KIB, MIB = 1 << 10, 1 << 20
YEAR_NS = 365 * 86400 * 10**9
PATIENCE_S = 5


class Line:
    """A connection after its handshake, with or without CURVE."""

    def __init__(self, peer, service):
        if peer.keys:
            self.hands = CurveHands(peer.sodium, peer.place(service), z85.decode(peer.keys[0]),
                                    [z85.decode(key) for key in peer.keys[1]], peer.source)
            self.wire = self.hands.wire
            self.wire.socket.settimeout(PATIENCE_S)
            check(self.hands.join() == b"READY", "the collector lets me in")
            return
        self.hands, self.wire = None, peer.wire(service)
        self.wire.send(greeting() + ready((b"Identity", b"")))
        check(len(self.wire.read(64)) == 64 and self.wire.read_frame(), "the collector lets me in")

    def packed(self, message, more=False, is_command=False):
        if self.hands:
            return self.hands.message(message, more | 2 * is_command)
        return frame(message, more | 4 * is_command)

    def ping(self):
        return self.packed(b"\4PING" + struct.pack(">H", 10) + b"ctx", is_command=True)


def reset(wire):
    """Goes without a farewell: over TCP the collector sees a reset."""
    if wire.socket.family == socket.AF_INET:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.close()


class Hostile:
    def __init__(self, settings, pb):
        self.settings, self.pb = settings, pb
        self.random = random.Random(settings["seed"])
        self.keys, self.sodium = keys_of(settings), Sodium()
        self.source = settings.get("source")
        self.context = zmq.Context()
        self.due, self.has_begun = time.monotonic(), False

    def place(self, service):
        if "folder" in self.settings:
            return os.path.join(self.settings["folder"], service)
        return "127.0.0.1", self.settings["port"] + SERVICES.index(service)

    def wire(self, service):
        wire = Wire(self.place(service), self.source)
        wire.socket.settimeout(PATIENCE_S)
        return wire

    def peer(self, service):
        """One that libzmq speaks for."""
        return Peer(self.pb, self.context, endpoint(self.settings, service), self.keys)

    def producer(self):
        return Producer(self.pb, self.context, endpoint(self.settings, "ingest"),
                        self.settings["name"], self.keys)

    def begin(self):
        if not self.has_begun:
            print(f"begun {time.monotonic()}", flush=True)
        self.has_begun = True

    def pace(self, times_a_second):
        """Waits until the next time is due; what was missed is not caught up with."""
        self.due = max(self.due + 1 / (times_a_second * self.settings["pace"]), time.monotonic())
        time.sleep(max(0, self.due - time.monotonic()))


def tell(peer, envelope):
    """Sends it and forgets what was answered."""
    with contextlib.suppress(zmq.Again):
        peer.socket.send(envelope.SerializeToString(), zmq.NOBLOCK)
    with contextlib.suppress(zmq.Again):
        while True:
            peer.socket.recv(zmq.NOBLOCK)


# ---- The roles; each goes on until it is killed, and begins again after an error -----------


def ping(me):
    """Small messages, heartbeats, gone."""
    while True:
        service = me.random.choice(SERVICES)
        line = Line(me, service)
        small = b"\x0a\x02\x08\x01" if service == "ingest" else b"\x32\x02\x08\x01"
        count, pings = me.random.choice((9, 12, 16, 24, 40, 100, 300)), me.random.choice((1, 3, 20))
        me.begin()
        line.wire.send(b"".join([line.packed(small) for _ in range(count)] +
                                [line.ping() for _ in range(pings)]))
        if me.random.random() < 0.5:
            time.sleep(me.random.random() * 0.002)
        reset(line.wire)
        me.pace(60 if me.keys else 300)


def names(me):
    """Runs with as many names as a run may have."""
    while True:
        producer = me.producer()
        check(not producer.hello(2).error, "refused")
        for first in range(1, 65536, 4096):
            me.begin()
            texts = [f"name-{me.random.getrandbits(64):x}" for _ in range(min(4096, 65536 - first))]
            tell(producer.peer, producer.batch(0, 0, texts, first))
            me.pace(6)
        producer.peer.close()


def runs(me):
    """Runs without records, described at length."""
    peer = me.peer("ingest")
    while True:
        envelope = me.pb.Envelope()
        hello = envelope.hello
        hello.protocol, hello.run = 2, me.random.randbytes(16)
        hello.description.host, hello.description.started_ns = me.settings["name"], time.time_ns()
        for text in ("worker_version", "os", "kernel", "cpu", "container", "driver"):
            setattr(hello.description, text, "x" * 4000)
        for stream in range(64):
            hello.streams.add(stream=stream)
        me.begin()
        tell(peer, envelope)
        me.pace(200)


def times(me):
    """Records of any time from 1700 to 2250, and of any day of the last year, of many operations."""
    producer = me.producer()
    check(not producer.hello(2).error, "refused")
    operations = [f"operation-{i}" for i in range(300)]
    while True:
        first = producer.produced + 1
        numbers = list(range(first, first + 500))
        envelope = producer.batch(first, first + 499, ["spread", "cpu", *operations])
        now = time.time_ns()
        table = producer.operations(envelope, numbers, sorted(
            [me.random.randint(-270 * YEAR_NS, 280 * YEAR_NS) for _ in numbers[::2]] +
            [me.random.randint(now - YEAR_NS, now) for _ in numbers[1::2]]))
        table.columns[0].names[:] = [me.random.randrange(3, 303) for _ in numbers]
        me.begin()
        tell(producer.peer, envelope)
        me.pace(10)


def forged_ranges(me):
    """What it says of other peers' runs: 10^9 records that they never made, or their end."""
    reader, sender, number = me.peer("query"), me.peer("ingest"), 0
    while True:
        number += 1
        query = me.pb.Envelope()
        query.query.id, query.query.protocol, query.query.kind = number, 2, me.pb.QUERY_RECORDS
        query.query.record_kind, query.query.limit = RUN, 200
        query.query.filter.host = "honest"
        reader.send(query)
        found = [bytes.fromhex(row["uuid"].replace("-", "")) for row in cells(reader.receive("reply"))]
        check(found, "no runs yet")
        for _ in range(500):
            me.begin()
            tell(sender, forgery(me, me.random.choice(found)))
            me.pace(100)


def forgery(me, run):
    envelope, billion = me.pb.Envelope(), 10**9
    kind = me.random.randrange(4)
    if kind == 0:
        envelope.hello.protocol, envelope.hello.run, envelope.hello.replay = 2, run, True
        envelope.hello.description.host = "honest"
        envelope.hello.streams.add(produced=billion)
    elif kind == 1:
        envelope.goodbye.run, envelope.goodbye.sequence = run, billion
        envelope.goodbye.killed, envelope.goodbye.ended_ns = True, time.time_ns()
        envelope.goodbye.streams.add(produced=billion)
    else:
        batch = envelope.batch
        batch.run, batch.sequence = run, me.random.randrange(1, billion)
        batch.streams.add(produced=billion, unnumbered=billion if kind == 2 else 0)
        batch.dropped.add(first=1, last=billion, reason=me.pb.DROP_SPOOL_FULL, since_ns=1,
                          until_ns=2)
    return envelope


def deaf_reader(me):
    """400 connections that ask for 2 MB each, and do not read."""
    query = me.pb.Envelope()
    query.query.id, query.query.protocol, query.query.kind = 9, 2, me.pb.QUERY_RECORDS
    query.query.record_kind = OPERATION_KIND
    lines = []
    while True:
        line = Line(me, "query")
        line.wire.socket.settimeout(0.2)
        me.begin()
        line.wire.send(b"".join(line.packed(query.SerializeToString()) for _ in range(20)))
        lines.append(line)
        if len(lines) > 400:
            lines.pop(0).wire.close()
        me.pace(20)


def half_greetings(me):
    """500 connections that say 12 bytes; those that are cut come again."""
    poll, wires = select.poll(), {}
    while True:
        while len(wires) < 500:
            wire = me.wire(me.random.choice(SERVICES))
            wire.send(greeting()[:12])
            wires[wire.socket.fileno()] = wire
            poll.register(wire.socket, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
            me.begin()
            me.pace(200)
        for number, _ in poll.poll(1000):
            poll.unregister(number)
            wires.pop(number).close()


def endless_frames(me):
    """Frames of one message without an end: before, in and after the handshake."""
    block = 64 * KIB
    while True:
        where = me.random.choice(("greeting", "handshake", "message"))
        service = me.random.choice(SERVICES)
        if where == "message":
            line = Line(me, service)
            wire, data = line.wire, lambda: line.packed(bytes(block), more=True)
        else:
            wire = me.wire(service)
            begin = greeting(b"CURVE" if me.keys else b"NULL") if where == "handshake" else b""
            wire.send(begin)
            piece = frame(bytes(block), flags=1) if where == "handshake" else greeting() * 1024
            data = lambda: piece  # noqa: E731
        wire.socket.settimeout(1)
        for _ in range(1000):
            me.begin()
            if not wire.send(data()):
                break
            me.pace(300)
        wire.close()


def garbage(me):
    """Frames without sense up to 5 MiB, and messages with some bits turned."""
    producer = me.producer()
    envelope = producer.batch(1, 50, ["spoilt", "cpu"])
    producer.operations(envelope, list(range(1, 51)))
    producer.peer.close()
    sound = envelope.SerializeToString()
    while True:
        line = Line(me, me.random.choice(SERVICES))
        for _ in range(me.random.randrange(1, 50)):
            spoilt = bytearray(sound)
            for _ in range(me.random.randrange(1, 20)):
                spoilt[me.random.randrange(len(spoilt))] ^= 1 << me.random.randrange(8)
            size = me.random.choice((0, 1, 10, 1000, 60000, 300 * KIB, 5 * MIB)) \
                if me.random.random() < 0.1 else 0
            me.begin()
            if not line.wire.send(line.packed(me.random.randbytes(size) if size else bytes(spoilt))):
                break
            me.pace(60)
        line.wire.close()


def reconnect_storm(me):
    """Connects, greets and goes.  What it did wrong begins when that is more often than a peer may:
    1,000 times at once, then 1,000 times a second (with keys 200)."""
    permitted, last_at = 1000.0, time.monotonic()
    while True:
        wire = me.wire(me.random.choice(SERVICES))
        now = time.monotonic()
        permitted = min(1000, permitted + (now - last_at) * (200 if me.keys else 1000)) - 1
        last_at = now
        if permitted < 0:
            me.begin()
        wire.send(greeting(b"CURVE") if me.keys else greeting() + ready((b"Identity", b"")))
        reset(wire)
        me.pace(400 if me.keys else 1500)


def crash_loop(me):
    """An engine that is killed again and again.  What it did wrong is the tenth time."""
    scratch, lives = me.settings["scratch"], 0
    environment = {"HOME": scratch, "INFERSTAT_RUN_DIR": scratch, "LC_ALL": "C.UTF-8",
                   "INFERSTAT_SPOOL": os.path.join(scratch, "spool")}
    if "folder" in me.settings:
        environment["INFERSTAT_COLLECTOR"] = "ipc://" + me.settings["folder"]
    else:
        environment["INFERSTAT_COLLECTOR"] = f"tcp://127.0.0.1:{me.settings['port']}"
        key = os.path.join(scratch, "key")
        server, public, secret = me.settings["keys"]
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(f"inferstat-secret-key 1\npublic {public}\nsecret {secret}\n")
        environment |= {"INFERSTAT_KEY": key, "INFERSTAT_SERVER_KEY": server}
    while True:
        engine = subprocess.Popen([os.environ["FAULT_ENGINE"], "--shared", scratch + "/counts",
                                   "--threads", "8", "--rate", "20", "--close-ms", "0"],
                                  env=environment, stderr=subprocess.DEVNULL)
        time.sleep(0.6 * me.random.uniform(0.5, 1.5))
        check(engine.poll() is None, "the engine ended by itself")
        engine.kill()
        engine.wait()
        lives += 1
        if lives == 10:
            me.begin()


ROLES = {role.__name__: role for role in (
    ping, names, runs, times, forged_ranges, deaf_reader, half_greetings, endless_frames, garbage,
    reconnect_storm, crash_loop)}


def main():
    settings = json.loads(sys.argv[1])
    from scene import raise_file_limit
    raise_file_limit()
    sys.path.insert(0, settings["protocol"])
    import inferstat_pb2
    os.nice(10)
    become(settings)
    me = Hostile(settings, inferstat_pb2)
    while True:
        try:
            ROLES[settings["role"]](me)
        except (AssertionError, OSError, zmq.ZMQError, TypeError) as failure:
            print(f"{settings['role']}: {failure!r}", file=sys.stderr, flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
