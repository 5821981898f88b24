#!/usr/bin/env python3
"""Peers that mean harm, at every socket of the real inferstatd.

They speak ZMTP 3 (ZeroMQ RFC 23) and CURVE (RFC 26) by hand, and break both.
While each is at it an honest producer's records are stored; afterwards the
collector has no descriptor left over and no more memory than it may, and in the
end every record of the honest one is there, once.

  hostile_peers.py ipc|tcp|curve

Without python3-zmq, python3-protobuf, protoc or libsodium it says so and exits
with 77.
"""

import os
import pathlib
import random
import socket
import struct
import sys
import threading
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "fleet"), str(HERE.parent / "support")]
import scene as fleet  # noqa: E402
from honest import Honest  # noqa: E402
from programs import check  # noqa: E402
from zmtp_hands import (  # noqa: E402
    PATIENCE_S, CurveHands, Sodium, Wire, command, frame, greeting, metadata, ready, short_nonce)

import zmq  # noqa: E402
from zmq.utils import z85  # noqa: E402

SERVICES = ("ingest", "query", "live", "admin")
PLACES = 64         # connections a socket may have in these tests
MIB = 1 << 20
ENDLESS_S = 3 * float(os.environ.get("INFERSTAT_TEST_VOLUME", "1"))
RSS_MAX = 150 * MIB  # whatever peers send
HANDSHAKE_S = 5     # the collector's patience with a peer that does not get on
HELLO_NULL = greeting() + ready((b"Identity", b""))


# ---- The collector and the honest one ----------------------------------------------


class Scene(fleet.Scene):
    """A collector, an honest producer over the transport under attack, and one over
    ipc."""

    def __init__(self, transport):
        names = ("honest", "insider") if transport == "curve" else ()
        super().__init__("--max-connections", str(PLACES), names=names, tcp=transport == "tcp")
        self.transport, self.sodium, self.random = transport, Sodium(), random.Random(17)
        self.context = zmq.Context()
        self.slowest_s = 0
        self.producers = [
            Honest(self.pb, self.context, "ipc://" + self.sockets + "/ingest", "local")]
        if transport != "ipc":
            self.producers.append(Honest(self.pb, self.context, f"tcp://127.0.0.1:{self.port}",
                                         "remote", self.keys_of("honest")))
        for producer in self.producers:
            check(not producer.hello(2).error, "an honest Hello is welcome")
        self.produce()

    def keys_of(self, name):
        """The collector's key and the pair of one that it knows."""
        keys = [key.encode() for key in (self.server_key, *self.keys[name])] if self.keys else None
        return keys and (keys[0], keys[1:])

    def place(self, service):
        """Where a raw peer connects."""
        if self.transport == "ipc":
            return os.path.join(self.sockets, service)
        return ("127.0.0.1", self.port + SERVICES.index(service))

    def open_services(self):
        """Those where somebody hostile may speak: on ipc all are the owner's."""
        return SERVICES[:3] if self.transport == "curve" else SERVICES

    def wire(self, service="ingest"):
        return Wire(self.place(service))

    def curve(self, service="ingest", own=None):
        return CurveHands(self.sodium, self.place(service), z85.decode(self.server_key.encode()),
                          own)

    def insider_hands(self, service):
        """Of one that may produce and read, and is hostile."""
        return self.curve(service, [z85.decode(key) for key in self.keys_of("insider")[1]])

    def produce(self):
        for producer in self.producers:
            self.slowest_s = max(self.slowest_s, producer.produce(50))

    # ---- What may not grow ----

    def status(self, key):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) * 1024
        raise AssertionError(key)

    def is_instrumented(self):
        """Sanitizers have memory of their own."""
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8") as file:
            return any(word in line for line in file for word in ("libasan", "libtsan", "libubsan"))

    def settle(self, descriptors):
        """Waits until the collector has let go of what the attack took; it answers all
        that was asked, whoever has left."""
        deadline = time.monotonic() + 3 * PATIENCE_S
        # Each look counts alone: connections that came and went may still wait to be
        # accepted, some at a time.
        left = len(self.descriptors()) - descriptors
        while left > 0 and time.monotonic() < deadline:
            time.sleep(0.05)
            left = len(self.descriptors()) - descriptors
        check(left <= 0, f"{left} descriptors are left over")

    def suffer(self, name, attack):
        """Runs an attack while the honest ones go on."""
        descriptors, before = len(self.descriptors()), self.producers[0].produced
        self.slowest_s, failures = 0, []

        def run():
            try:
                attack(self)
            except BaseException as failure:  # told by the thread that started this one
                failures.append(failure)

        began = time.monotonic()
        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive() and self.process.poll() is None:
            self.produce()
        thread.join()
        if failures:
            raise AssertionError(name) from failures[0]
        self.produce()
        check(self.process.poll() is None, f"{name}: the collector died")
        self.settle(descriptors)
        rss = self.status("VmRSS")
        print(f"{name}: {time.monotonic() - began:.1f} s, "
              f"{(self.producers[0].produced - before) // 50} batches, slowest "
              f"{self.slowest_s:.2f} s, "
              f"{rss / MIB:.0f} MiB, at most {self.status('VmHWM') / MIB:.0f} MiB", flush=True)
        check(self.is_instrumented() or self.status("VmHWM") <= RSS_MAX,
              f"{name}: the collector took more memory than it may")

    def await_word(self, word):
        """Waits until the log has it: whoever does harm is named."""
        deadline = time.monotonic() + 10
        while word not in self.words():
            check(time.monotonic() < deadline, f"the log names nobody who {word}")
            time.sleep(0.1)

    # ---- The end ----

    def finish(self):
        for producer in self.producers:
            check(producer.goodbye().closed, "the honest run closes")
            producer.peer.close()
        self.check_healthy_end()
        for service in ("messages", "queries"):
            check(f": sends {service} that cannot be decoded" in self.words(), "they are named")
        for producer in self.producers:
            self.check_run(str(uuid.UUID(bytes=producer.run)), producer.produced)

    def words(self):
        self.read_log()
        return "\n".join(line for _, line in self.log_lines)

    def close(self):
        self.context.destroy(0)
        super().close()


# ---- Attacks on any transport --------------------------------------------------------


def hold(scene, services, *data, seconds=0.3):
    """Sends each of the data over a connection of its own and stays for a while."""
    wires = []
    for service in services:
        for bytes_sent in data:
            wire = scene.wire(service)
            wires.append(wire)
            wire.send(bytes_sent)
    time.sleep(seconds)
    for wire in wires:
        wire.close()


def garbage_greetings(scene):
    hold(scene, SERVICES,
         b"", b"\0", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
         b"\xff" * 4096, bytes(4096), scene.random.randbytes(4096), b"\xff" + bytes(8) + b"\x7e",
         greeting(version=(0, 0)), greeting(version=(255, 255)), greeting(version=(3, 9)),
         greeting(signature=b"\xff" + bytes(9)))


def old_versions(scene):
    """Peers of ZMTP 1 and 2, which knew no mechanisms."""
    version_1 = b"\x01\x00"
    version_2 = b"\xff" + bytes(8) + b"\x7f\x01\x05\x00\x00"
    hold(scene, SERVICES, version_1, version_1 + b"\x05\x00text", version_2,
         version_2 + frame(b"text"), b"\xff" + bytes(7) + b"\x01\x7f\x01\x05\x00\x00" + frame(b"x"))


def half_greetings(scene):
    """Ten times as many as there are places, all held open."""
    wires = [scene.wire() for _ in range(500)]
    for wire in wires:
        wire.send(greeting()[:12])
    time.sleep(0.5)
    check(any(wire.is_ended(0.05) for wire in wires[:20]), "the oldest had to go")
    for wire in wires:
        wire.close()


def slow_greeting(scene):
    """One byte a second: cut off in the middle."""
    wire, began = scene.wire(), time.monotonic()
    for byte in greeting():
        if not wire.send(bytes([byte])) or wire.is_ended(1):
            break
    waited = time.monotonic() - began
    check(waited < HANDSHAKE_S + PATIENCE_S / 2, f"cut off after {waited:.0f} s only")
    wire.close()


def other_mechanisms(scene):
    mechanisms = [b"PLAIN", b"GSSAPI", b"", b"null", b"\xff" * 20, b"NULL\0x", b"CURVE\0NULL"]
    mechanisms.append(b"NULL" if scene.transport == "curve" else b"CURVE")
    for service in SERVICES:
        for mechanism in mechanisms:
            for server in (0, 1):
                wire = scene.wire(service)
                wire.send(greeting(mechanism, server=server) + ready() + frame(b"x"))
                check(wire.is_ended(), f"{mechanism} at {service} is refused")
                wire.close()


def comings_and_goings(scene):
    for i in range(1500):
        wire = scene.wire(SERVICES[i % 4])
        if i % 3:
            wire.send(greeting()[:i % 64])
        if i % 5 == 0:
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()


# ---- Attacks after a NULL handshake ------------------------------------------------------


def null_wire(scene, service="ingest", *properties):
    wire = scene.wire(service)
    wire.send(greeting() + ready(*(properties or ((b"Identity", b""),))))
    return wire


def shake_hands(scene, service="ingest", *properties):
    wire = null_wire(scene, service, *properties)
    check(len(wire.read(64)) == 64 and wire.read_frame() is not None, "the handshake is done")
    return wire


def huge_metadata(scene):
    many = metadata(*((b"X-%d" % i, b"v") for i in range(20000)))
    data = [ready((b"X", bytes(60000))), ready((b"X", bytes(5 * MIB))),
            command(b"READY", many), command(b"READY", b"\0" + struct.pack(">I", 0)),
            command(b"READY", b"\1X" + struct.pack(">I", 0xffffffff)),
            command(b"READY", b"\1X" + struct.pack(">I", 0x7fffffff) + b"v"),
            command(b"READY", b"\xffX"), command(b"READY", b"\1"), command(b"READY"),
            ready(*[(b"Socket-Type", b"DEALER")] * 100),
            command(b"READY", metadata((b"Socket-Type", b"SUB"))),
            command(b"READY", metadata((b"Socket-Type", bytes(300)))),
            ready((b"Identity", b"\0zero")), ready((b"Identity", bytes(256))),
            command(b"READY", b"", size=1 << 40), ready() * 50]
    hold(scene, SERVICES, *(greeting() + one for one in data))


def odd_frames(scene):
    sizes = [(1 << 63) + 1, 1 << 63, (1 << 63) - 1, (1 << 64) - 1, 1 << 32, 1 << 31, 17 * MIB]
    announced = [HELLO_NULL + frame(b"begin", size=size) for size in sizes]
    hold(scene, SERVICES, *announced, HELLO_NULL + frame(bytes(100), size=200),
         HELLO_NULL + b"\x02\x00\x00", HELLO_NULL + b"\xf8\x01x", HELLO_NULL + frame(b"") * 2000,
         HELLO_NULL + frame(b"", flags=1) * 500 + frame(b"end"))
    for size in sizes:  # beyond any limit: the connection ends
        wire = shake_hands(scene)
        wire.send(frame(b"begin", size=size))
        check(wire.is_ended(), f"a frame of {size} bytes ends the connection")
        wire.close()


def commands(scene):
    """Commands that a ROUTER has no use for, and malformed ones."""
    some = [command(b"PING", struct.pack(">H", 10) + b"context"), command(b"PING"),
            command(b"PING", b"\0"), command(b"PING", struct.pack(">H", 65535) + bytes(60000)),
            command(b"PONG", bytes(70000)), command(b"SUBSCRIBE", b"all"), command(b"CANCEL"),
            command(b"JOIN", b"group"), command(b"ERROR", b"\3why"), command(b"HELLO"),
            command(b"MESSAGE", bytes(33)), command(b"NONSENSE", bytes(200)), command(b""),
            frame(b"", flags=4), frame(b"\xff", flags=4), frame(b"\1x", flags=5),
            ready()]
    hold(scene, SERVICES, *(HELLO_NULL + one for one in some), HELLO_NULL + some[0] * 5000,
         HELLO_NULL + frame(b"\1topic") * 200)


# ---- Attacks by those who get in ---------------------------------------------------------


def check_growth(scene, before, most_mib):
    grown = scene.status("VmRSS") - before
    check(scene.is_instrumented() or grown <= most_mib * MIB, f"grown by {grown} bytes")


def get_in(scene, service, identity):
    """A connection of one that may speak, under the id that it wishes."""
    if scene.transport != "curve":
        return null_wire(scene, service, (b"Identity", identity))
    hands = scene.insider_hands(service)
    hands.greet()
    hands.wire.send(hands.hello())
    check(hands.welcome(), "WELCOME comes")
    properties = metadata((b"Socket-Type", b"DEALER"), (b"Identity", identity))
    hands.wire.send(hands.initiate(properties=properties))
    return hands.wire


def routing_ids(scene):
    """An id of their own, the same or one that a libzmq would give out: refused, so that
    nobody holds the id of another."""
    before = scene.status("VmRSS")
    for service in scene.open_services():
        for i in range(200 // len(scene.open_services())):
            wire = get_in(scene, service, b"the same" if i % 2 else b"\0" + struct.pack(">I", i))
            wire.send(frame(bytes(MIB)))
            check(wire.is_ended(), "a peer with an id of its own has to go")
            wire.close()
    check_growth(scene, before, 8)
    scene.await_word("sets a routing id")


def endless_frames(scene):
    """Messages of frames without end, at full speed, before, in and after the handshake."""
    before, deadline, sent = scene.status("VmRSS"), time.monotonic() + ENDLESS_S, 0
    block, is_curve = bytes(60000), scene.transport == "curve"
    while time.monotonic() < deadline:
        for service in ("ingest", "query", "live"):
            early = [scene.wire(service) for _ in range(2)]
            early[1].send(greeting(b"CURVE" if is_curve else b"NULL"))
            for wire in early:
                wire.send(frame(block, flags=1) * 3)
            hands = scene.insider_hands(service) if is_curve else None
            check(not hands or hands.join() == b"READY", "the insider gets in")
            late = hands.wire if hands else get_in(scene, service, b"")
            while late.send(hands.message(block, flags=1) if hands else frame(block, flags=1)):
                sent += 1
            check(late.is_ended(), "frames without end end the connection")
            for wire in (*early, late):
                wire.close()
            time.sleep(0.02)  # else it connects too often
    check(sent > 0, "some frames go through")
    check_growth(scene, before, 20)
    scene.await_word("sends messages of several frames")


# ---- Attacks with messages, plain or by an insider ------------------------------------------


def speak(scene, service, *messages):
    """A connection of one that may speak; sends what it can of the messages."""
    if scene.transport != "curve":
        wire = shake_hands(scene, service)
        for message in messages:
            wire.send(frame(message))
        return wire
    hands = scene.insider_hands(service)
    check(hands.join() == b"READY", "the insider gets in")
    for message in messages:
        hands.wire.send(hands.message(message))
    return hands.wire


def speak_and_go(scene, service, *messages, seconds=0.2):
    wire = speak(scene, service, *messages)
    time.sleep(seconds)
    wire.close()


def envelope_of(body, size):
    """A message of one long field: what it says it is, filled with what `body` repeats."""
    filled = body * (size // len(body))
    length, varint = len(filled), b""
    while length > 127:
        varint += bytes([length & 127 | 128])
        length >>= 7
    return b"\x12" + varint + bytes([length]) + filled


def garbage_messages(scene):
    """Frames that are no messages, and such as would take many times their size."""
    for service in scene.open_services():
        room = 7 * MIB if service == "ingest" else 60000
        speak_and_go(scene, service, b"", b"\xff", b"\0" * 1000, scene.random.randbytes(room),
                     scene.random.randbytes(1000), bytes(room), envelope_of(b"\x42\x00", room),
                     envelope_of(b"\x4a\x00", room), envelope_of(b"\x52\x00", room),
                     envelope_of(b"\x5a\x00", room), b"\x12\xff\xff\xff\xff\x07")
    for service in scene.open_services():  # more than any socket takes
        speak_and_go(scene, service, scene.random.randbytes(16 * MIB))


def wrong_sockets(scene):
    pb = scene.pb
    query, credit, hello, batch, ack, goodbye = (pb.Envelope() for _ in range(6))
    query.query.kind, query.query.protocol = pb.QUERY_CLEAR, 2
    credit.live_credit.messages, credit.live_credit.protocol = 4294967295, 2
    hello.hello.protocol = 2
    batch.batch.run, batch.batch.first, batch.batch.last = os.urandom(16), 1, 1 << 60
    ack.ack.run, ack.ack.store = os.urandom(16), os.urandom(16)
    goodbye.goodbye.run, goodbye.goodbye.killed = scene.producers[0].run[:15] + b"x", True
    messages = [one.SerializeToString() for one in (query, credit, hello, batch, ack, goodbye)]
    for service in SERVICES:
        if service != "admin":
            speak_and_go(scene, service, *messages * 20)
    if scene.transport != "curve":
        return
    hands = scene.insider_hands("admin")  # no role for it: asked nothing, told nothing
    check(hands.join() in (b"ERROR", b"READY"), "the handshake is answered")
    hands.wire.send(frame(b"x"))
    hands.wire.close()


def deaf_readers(scene):
    """They ask and ask and never read."""
    pb = scene.pb
    wires = []
    for kind in (pb.QUERY_SUMMARY, pb.QUERY_RECORDS, pb.QUERY_OVERVIEW):
        query = pb.Envelope()
        query.query.kind, query.query.protocol, query.query.id = kind, 2, 9
        query.query.record_kind = 11
        wires.append(speak(scene, "query", *[query.SerializeToString()] * 60))
    credit = pb.Envelope()
    credit.live_credit.messages, credit.live_credit.protocol = 100000, 2
    wires += [speak(scene, "live", *[credit.SerializeToString()] * 20) for _ in range(5)]
    for _ in range(20):
        time.sleep(0.1)
    for wire in wires:
        wire.close()


# ---- Attacks on CURVE --------------------------------------------------------------


def ends(wire, what):
    check(wire.is_ended(), f"{what} ends the connection")
    wire.close()


def broken_hellos(scene):
    for service in SERVICES:
        cases = [("a wrong signature", {"signature": bytes(80)}),
                 ("another's signature", {"public": scene.sodium.keypair()[0]}),
                 ("a wrong version", {"version": b"\2\0"}),
                 ("a key of zeroes", {"public": bytes(32)})]
        for what, options in cases:
            hands = scene.curve(service)
            hands.greet()
            hands.wire.send(hands.hello(**options))
            ends(hands.wire, what)
    for what, data in [("a short HELLO", command(b"HELLO", bytes(10))),
                       ("a long HELLO", command(b"HELLO", bytes(5000))),
                       ("an INITIATE before HELLO", command(b"INITIATE", bytes(300))),
                       ("a MESSAGE before HELLO", frame(b"\7MESSAGE" + bytes(40))),
                       ("a READY of NULL", ready()),
                       ("a frame of 5 MiB", command(b"HELLO", bytes(5 * MIB))),
                       ("a message", frame(b"text"))]:
        hands = scene.curve()
        hands.greet()
        hands.wire.send(data)
        ends(hands.wire, what)


def broken_initiates(scene):
    foreign = scene.curve()
    foreign.greet()
    foreign.wire.send(foreign.hello())
    check(foreign.welcome(), "WELCOME comes")
    cases = [("a cookie of zeroes", {"cookie": bytes(96)}),
             ("another connection's cookie", {"cookie": foreign.cookie}),
             ("a vouch of zeroes", {"vouch": bytes(96)}),
             ("malformed metadata", {"properties": b"\xff" * 100}),
             ("metadata beyond its end",
              {"properties": b"\1X" + struct.pack(">I", 1 << 31) + b"v"}),
             ("huge metadata", {"properties": metadata((b"X", bytes(100000)))}),
             ("the same INITIATE twice", {"nonce": 1000})]
    for what, options in cases:
        hands = scene.insider_hands("ingest") if what != "huge metadata" else scene.curve()
        hands.greet()
        hands.wire.send(hands.hello())
        check(hands.welcome(), "WELCOME comes")
        initiate = hands.initiate(**options)
        hands.wire.send(initiate)
        if "nonce" in options:
            check(hands.wire.read_frame()[1].startswith(b"\5READY"), "the first gets in")
            hands.wire.send(initiate)
        ends(hands.wire, what)
    foreign.wire.close()


def strangers_with_sound_keys(scene):
    """All right but for the list: an error, and the end."""
    for service in SERVICES:
        for _ in range(5):
            hands = scene.curve(service)
            check(hands.join() == b"ERROR", "a stranger is told so")
            hands.wire.send(hands.message(b"text") + frame(b"text"))
            ends(hands.wire, "a stranger")


def strangers_send_without_end(scene):
    """What an authorised peer might do for ever nobody else can: frames of one message,
    before, within and instead of the handshake."""
    before = scene.status("VmRSS")
    block = frame(bytes(100000), flags=1) * 10
    for begin in ("greeting", "hello", "initiate"):
        hands = scene.curve()
        hands.greet()
        if begin != "greeting":
            hands.wire.send(hands.hello())
            check(hands.welcome(), "WELCOME comes")
        if begin == "initiate":
            hands.wire.send(hands.initiate())
        sent = 0
        while sent < 100 and hands.wire.send(block):
            sent += 1
        check(sent < 100, "nobody takes 100 MB from a stranger")
        hands.wire.close()
    check_growth(scene, before, 32)


def insiders_who_break_boxes(scene):
    for what in ("a repeated nonce", "a box of zeroes", "a short box", "plain text"):
        hands = scene.insider_hands("ingest")
        check(hands.join() == b"READY", "the insider gets in")
        hands.wire.send(hands.message(b"text", nonce=1000))
        hands.wire.send({"a repeated nonce": hands.message(b"text", nonce=1000),
                         "a box of zeroes": frame(b"\7MESSAGE" + short_nonce(2000) + bytes(64)),
                         "a short box": frame(b"\7MESSAGE" + short_nonce(2000) + bytes(3)),
                         "plain text": frame(b"text")}[what])
        ends(hands.wire, what)


ANYWHERE = [routing_ids, endless_frames, garbage_greetings, old_versions, half_greetings, slow_greeting, other_mechanisms,
            comings_and_goings, garbage_messages, wrong_sockets, deaf_readers]
AFTER_NULL = [huge_metadata, odd_frames, commands]
ON_CURVE = [broken_hellos, broken_initiates, strangers_with_sound_keys,
            strangers_send_without_end, insiders_who_break_boxes]
ATTACKS = {"ipc": ANYWHERE + AFTER_NULL, "tcp": ANYWHERE + AFTER_NULL,
           "curve": ANYWHERE + ON_CURVE}


def main(arguments):
    scene = Scene(arguments[0])
    try:
        for attack in ATTACKS[arguments[0]]:
            if not arguments[1:] or attack.__name__ in arguments[1:]:
                scene.suffer(attack.__name__.replace("_", " "), attack)
        scene.finish()
    except BaseException:
        print(scene.words()[-4000:], f"exit {scene.process.poll()}", file=sys.stderr)
        raise
    finally:
        scene.close()


if __name__ == "__main__":
    main(sys.argv[1:])
