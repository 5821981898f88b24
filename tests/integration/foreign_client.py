#!/usr/bin/env python3
"""A client that shares nothing with inferstat but proto/inferstat.proto.

It is a producer, then a reader, of the real inferstatd over ipc and TCP, written after
the comments of the .proto alone, and makes every mistake.  What it sent is then counted in
the store with plain SQL.

Without python3-zmq, python3-protobuf or protoc it says so and exits with 77.
"""

import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import check, free_ports, has_report, skip  # noqa: E402

PATIENCE_S = 20

try:
    import google.protobuf  # noqa: F401
    import zmq
except ImportError as missing:
    skip(f"{missing} (install python3-zmq and python3-protobuf)")
if not shutil.which("protoc"):
    skip("no protoc (install protobuf-compiler)")

COLLECTOR = os.environ.get("INFERSTATD", "inferstatd")
PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto" / "inferstat.proto"

# Positions of columns in their kinds, as `inferstat metrics --columns` lists them.
OPERATION, PROCESS_SAMPLE = 8, 11
OPERATION_NAME, OPERATION_DEVICE, OPERATION_DURATION, OPERATION_EXTRA = 0, 1, 2, 6
CPU_RATIO, HOST_MEMORY = 0, 1


def compile_proto(folder):
    subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--python_out={folder}", str(PROTO)],
                   check=True)
    sys.path.insert(0, folder)
    import inferstat_pb2
    return inferstat_pb2


class Peer:
    """A DEALER without a routing id: one frame, one Envelope.  `keys`: of the collector, and
    the pair of this peer."""

    def __init__(self, pb, context, endpoint, keys=None):
        self.pb = pb
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        if keys:
            self.socket.curve_serverkey, (self.socket.curve_publickey,
                                          self.socket.curve_secretkey) = keys
        self.socket.connect(endpoint)

    def send(self, envelope):
        self.socket.send(envelope.SerializeToString())

    def receive(self, body, patience_s=PATIENCE_S):
        check(self.socket.poll(patience_s * 1000), f"no {body} within {patience_s} s")
        parts = self.socket.recv_multipart()
        check(len(parts) == 1, "an answer is one frame")
        envelope = self.pb.Envelope.FromString(parts[0])
        check(envelope.WhichOneof("body") == body, f"{envelope.WhichOneof('body')} is no {body}")
        return getattr(envelope, body)

    def close(self):
        self.socket.close()


def zero_first(values):
    """The first value as it is, then each less the one before."""
    return [value - before for value, before in zip(values, [0, *values[:-1]])]


class Producer:
    """One run with one stream."""

    def __init__(self, pb, context, endpoint, host, keys=None):
        self.pb = pb
        self.peer = Peer(pb, context, endpoint, keys)
        self.run = os.urandom(16)
        self.host = host
        self.sequence = 0
        self.produced = 0

    def hello_message(self, protocol=1):
        envelope = self.pb.Envelope()
        envelope.hello.protocol = protocol
        envelope.hello.run = self.run
        about = envelope.hello.description
        about.host, about.pid, about.started_ns = self.host, os.getpid(), time.time_ns()
        about.worker_version, about.os, about.kernel = "1", "any", "any"
        about.cpu, about.cpu_count, about.host_memory_bytes = "any", 2, 1 << 30
        state = envelope.hello.streams.add()
        state.produced = self.produced
        return envelope

    def hello(self, protocol=1):
        self.peer.send(self.hello_message(protocol))
        return self.peer.receive("ack")

    def batch(self, first, last, names=(), names_first=1):
        """An envelope with the addressing of a batch, to be filled."""
        self.sequence += 1
        self.produced = max(self.produced, last)
        envelope = self.pb.Envelope()
        batch = envelope.batch
        batch.run, batch.sequence, batch.sent_ns = self.run, self.sequence, time.time_ns()
        batch.first, batch.last = first, last
        batch.names_first = names_first if names else 0
        batch.names.extend(names)
        state = batch.streams.add()
        state.produced = self.produced
        return envelope

    def operations(self, envelope, numbers, started_ns=None, extra=False):
        """Adds a table of operations, 1000 ns times their number long."""
        table = envelope.batch.tables.add()
        table.kind = OPERATION
        table.number_deltas.extend(zero_first(numbers))
        table.started_ns_deltas.extend(
            zero_first(started_ns or [time.time_ns() + number for number in numbers]))
        column = table.columns.add(index=OPERATION_NAME)
        column.names.extend([1] * len(numbers))
        column = table.columns.add(index=OPERATION_DEVICE)  # every other record has one
        column.names.extend([2 if number % 2 else 0 for number in numbers])
        present = bytearray((len(numbers) + 7) // 8)
        for row, number in enumerate(numbers):
            present[row // 8] |= (number % 2) << row % 8
        column.present = bytes(present)
        column = table.columns.add(index=OPERATION_DURATION)
        column.ints.extend([1000 * number for number in numbers])
        if extra:
            column = table.columns.add(index=OPERATION_EXTRA)
            column.texts.extend([b"{}"] * len(numbers))
        return table

    def samples(self, envelope, numbers, ratio=0.5):
        table = envelope.batch.tables.add()
        table.kind = PROCESS_SAMPLE
        table.number_deltas.extend(zero_first(numbers))
        table.started_ns_deltas.extend(zero_first([time.time_ns()] * len(numbers)))
        table.columns.add(index=CPU_RATIO).reals.extend([ratio] * len(numbers))
        table.columns.add(index=HOST_MEMORY).ints.extend([1 << 20] * len(numbers))

    def exchange(self, envelope):
        self.peer.send(envelope)
        ack = self.peer.receive("ack")
        check(ack.run == self.run, "the Ack is for this run")
        check(not envelope.HasField("batch") or ack.sequence == envelope.batch.sequence,
              f"the Ack answers message {ack.sequence}")
        return ack

    def next_after(self, envelope):
        """The number wanted next of stream 0 after this message."""
        ack = self.exchange(envelope)
        check(not ack.error, f"refused: {ack.error}")
        check(len(ack.next) == 1 and ack.next[0].stream == 0, "the stream touched is named")
        return ack.next[0].next, ack

    def goodbye(self):
        self.sequence += 1
        envelope = self.pb.Envelope()
        envelope.goodbye.run, envelope.goodbye.sequence = self.run, self.sequence
        envelope.goodbye.ended_ns = time.time_ns()
        envelope.goodbye.streams.add().produced = self.produced
        return self.exchange(envelope)


# ---- What has to be true ---------------------------------------------------------


def produce(pb, context, endpoint, host):
    """A run with all the faults a producer can make; returns its expectations."""
    producer = Producer(pb, context, endpoint, host)

    # Without Hello the run is not known.
    stranger = producer.batch(1, 1, ["decode", "cpu"])
    producer.operations(stranger, [1])
    check(producer.exchange(stranger).hello_wanted, "an unknown run has to say Hello")

    welcome = producer.hello()
    check(welcome.protocol >= 1 and len(welcome.store) == 16, "the Ack names the store")
    check(welcome.run == producer.run and welcome.sequence == 0, "the Ack answers the Hello")
    check(welcome.credit > 0 and not welcome.closed, "there is credit")
    check(all(item.next == 1 for item in welcome.next), "nothing is stored yet")

    # Two kinds in one batch, numbers interleaved; then the same again.
    both = producer.batch(1, 20, ["decode", "cpu"])
    producer.operations(both, list(range(1, 21, 2)))
    producer.samples(both, list(range(2, 21, 2)))
    wanted, ack = producer.next_after(both)
    check(wanted == 21 and ack.names_known == 2, "the batch is stored, names too")
    check(ack.echo_sent_ns == both.batch.sent_ns and ack.sent_ns > 0, "clocks are told")
    wanted, _ = producer.next_after(both)
    check(wanted == 21, "repeating a batch changes nothing")

    # A part known, a part new; a hole; the hole filled.
    overlap = producer.batch(15, 25)
    producer.operations(overlap, list(range(15, 26)), extra=True)
    wanted, _ = producer.next_after(overlap)
    check(wanted == 26, "what is new in a batch is stored")
    ahead = producer.batch(30, 31)
    producer.operations(ahead, [30, 31])
    wanted, _ = producer.next_after(ahead)
    check(wanted == 26, "a batch beyond what is wanted is ignored")

    # A dropped range moves on what is wanted, in front of the batch it comes with.
    dropped = producer.batch(30, 31)
    producer.operations(dropped, [30, 31])
    dropped.batch.dropped.add(first=26, last=29, reason=pb.DROP_SPOOL_FULL, detail="full",
                              since_ns=1, until_ns=2)
    wanted, _ = producer.next_after(dropped)
    check(wanted == 32, "dropped numbers are passed, and the batch after them is stored")

    refused = spoil(producer, 32)

    # What is no message: the connection lives on.
    producer.peer.socket.send(b"\xff\xff\xff\xff not an Envelope")
    check(producer.peer.receive("ack").error, "nonsense is answered with an error")

    # Implausible clocks are stored.
    first = 32 + refused
    clocks = producer.batch(first, first + 2)
    producer.operations(clocks, [first, first + 1, first + 2],
                        started_ns=[1, -(1 << 62), (1 << 62) - 1])
    wanted, _ = producer.next_after(clocks)
    check(wanted == first + 3, "implausible clocks are taken")

    # A heartbeat has no records; columns of the future are ignored.
    check(not producer.exchange(producer.batch(0, 0)).error, "a heartbeat is answered")
    future = producer.batch(first + 3, first + 3)
    table = producer.operations(future, [first + 3])
    table.columns.add(index=60).reals.append(1.5)
    wanted, ack = producer.next_after(future)
    check(wanted == first + 4 and not ack.refused, "a column not known yet is no fault")

    # Hello again says where to go on.
    check(producer.hello().next[0].next == first + 4, "Hello says what is wanted next")
    check(producer.goodbye().closed, "the run closes")
    producer.peer.close()
    samples = 10
    dropped = 4 + refused
    return {"run": producer.run, "produced": producer.produced, "dropped": dropped,
            "unknown_columns": 1,
            "samples": samples, "operations": producer.produced - dropped - samples}


def spoil(producer, first):
    """Batches that can never be taken, one number each; returns how many."""
    def unequal(envelope, number):
        producer.operations(envelope, [number]).columns[2].ints.append(5)

    def unknown_kind(envelope, number):
        producer.operations(envelope, [number]).kind = 99

    def other_number(envelope, number):
        producer.operations(envelope, [number + 1])

    def not_a_number(envelope, number):
        producer.samples(envelope, [number], ratio=float("nan"))

    def negative(envelope, number):
        producer.operations(envelope, [number]).columns[2].ints[0] = -1

    def missing_column(envelope, number):
        del producer.operations(envelope, [number]).columns[2]

    def name_never_told(envelope, number):
        producer.operations(envelope, [number]).columns[0].names[0] = 999

    def not_utf8(envelope, number):
        producer.operations(envelope, [number], extra=True).columns[3].texts[0] = b"\xff"

    faults = [unequal, unknown_kind, other_number, not_a_number, negative, missing_column,
              name_never_told, not_utf8]
    for place, fault in enumerate(faults):
        number = first + place
        envelope = producer.batch(number, number)
        fault(envelope, number)
        if fault is name_never_told:  # the store might be an older copy: asked once
            check(producer.exchange(envelope).hello_wanted, "the names are to be told again")
            check(not producer.hello().error, "Hello again")
        wanted, ack = producer.next_after(envelope)
        check(wanted == number + 1, f"{fault.__name__}: its number is passed")
        check([(item.stream, item.first, item.last) for item in ack.refused]
              == [(0, number, number)] and ack.refused[0].reason,
              f"{fault.__name__}: refused with a reason")
    return len(faults)


def cells(reply):
    """The rows of a Reply or LiveRecords as dictionaries."""
    columns = []
    for column in reply.columns:
        check(len(column.types) == reply.row_count, "a column has a type for every row")
        values = {1: iter(column.ints), 2: iter(column.reals),
                  3: iter([text.decode() for text in column.texts])}
        columns.append((column.key, [next(values[kind]) if kind else None
                                     for kind in column.types]))
        check(all(next(rest, None) is None for rest in values.values()), "no value is left over")
    return [{key: values[row] for key, values in columns} for row in range(reply.row_count)]


def ask(pb, peer, number, **what):
    envelope = pb.Envelope()
    envelope.query.id, envelope.query.protocol = number, 1
    host = what.pop("host", "")
    for key, value in what.items():
        if isinstance(value, list):
            getattr(envelope.query, key).extend(value)
        else:
            setattr(envelope.query, key, value)
    envelope.query.filter.host = host
    peer.send(envelope)
    reply = peer.receive("reply")
    check(reply.id == number, "the Reply answers this Query")
    return reply


def read(pb, context, endpoint, host, expected):
    peer = Peer(pb, context, endpoint)
    reply = ask(pb, peer, 7, kind=pb.QUERY_PING)
    check(reply.status == pb.STATUS_OK and cells(reply)[0]["protocol"] >= 1, "the collector answers")

    reply = ask(pb, peer, 8, kind=pb.QUERY_AVERAGE, metric="operation.duration_ns",
                group_by=[pb.DIMENSION_HOST], host=host)
    check(reply.status == pb.STATUS_OK, f"average: {reply.error}")
    row = cells(reply)[0]
    check(row["host"] == host and row["count"] == expected["operations"], f"average: {row}")

    # Questions that make no sense are answered, with their id, and so is the next.
    reply = ask(pb, peer, 50, kind=pb.QUERY_AVERAGE, metric="no such metric")
    check(reply.status == pb.STATUS_INVALID and reply.error, "a metric that is none")
    reply = ask(pb, peer, 51, kind=pb.QUERY_RECORDS, record_kind=77)
    check(reply.status == pb.STATUS_INVALID and reply.error, "a kind that is none")
    reply = ask(pb, peer, 52, kind=pb.QUERY_SUMMARY, host="h" * 5000)
    check(reply.status == pb.STATUS_INVALID and reply.error, "a host's name without end")
    reply = ask(pb, peer, 53, kind=pb.QUERY_CLEAR)
    check(reply.status == pb.STATUS_DENIED, "clearing is for the admin socket")
    check(ask(pb, peer, 54, kind=pb.QUERY_SUMMARY).status == pb.STATUS_OK, "summary")
    peer.close()


def count(store, expected):
    """The same with plain SQL."""
    database = sqlite3.connect(f"file:{store}?mode=ro", uri=True)

    def value(sql, *arguments):
        return database.execute(sql, arguments).fetchone()[0]

    text = expected["run"].hex()
    uuid = "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])
    run = value("SELECT run FROM run WHERE uuid = ?", uuid)
    for kind in ("operations", "samples"):
        table = {"operations": "operation", "samples": "process_sample"}[kind]
        rows = value(f"SELECT count(*) FROM {table} WHERE run = ?", run)
        check(rows == expected[kind], f"{table}: {rows} rows instead of {expected[kind]}")
    check(value("SELECT produced FROM run WHERE run = ?", run) == expected["produced"], "produced")
    check(value("SELECT unknown_columns FROM run WHERE run = ?", run) == expected["unknown_columns"],
          "columns of the future are counted")
    covered = value("SELECT sum(last - first + 1) FROM range WHERE run = ?", run)
    check(covered == expected["produced"], f"ranges cover {covered} of {expected['produced']}")
    check(value("SELECT balanced FROM v_ledger WHERE id = ?", run) == 1, "the ledger balances")
    database.close()


def wait_for_collector(process, pb, context, endpoint):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        check(process.poll() is None, "inferstatd runs")
        peer = Peer(pb, context, endpoint)
        try:
            ask_again = pb.Envelope()
            ask_again.query.kind = pb.QUERY_PING
            peer.send(ask_again)
            if peer.socket.poll(500):
                return
        finally:
            peer.close()
    raise AssertionError("inferstatd is not ready")


def run(folder):
    pb = compile_proto(folder)
    place = os.path.join(folder, "c")
    os.mkdir(place, 0o750)
    port = free_ports(4)
    store = os.path.join(folder, "store.db")
    with open(os.path.join(folder, "inferstatd.log"), "wb") as log:
        process = subprocess.Popen([COLLECTOR, "--listen", f"ipc://{place}", "--listen",
                                    f"tcp://127.0.0.1:{port}", "--db", store],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        with zmq.Context() as context:
            wait_for_collector(process, pb, context, f"ipc://{place}/query")
            for kind, ingest, query in (
                    ("ipc", f"ipc://{place}/ingest", f"ipc://{place}/query"),
                    ("tcp", *(f"tcp://127.0.0.1:{port + i}" for i in range(2)))):
                expected = produce(pb, context, ingest, f"foreign-{kind}")
                read(pb, context, query, f"foreign-{kind}", expected)
                count(store, expected)
                print(f"{kind}: {expected['produced']} records produced, "
                      f"{expected['dropped']} dropped, the rest stored and read back")
        process.send_signal(signal.SIGTERM)
        check(process.wait(PATIENCE_S) == 0, "inferstatd ends well")
        with open(os.path.join(folder, "inferstatd.log"), encoding="utf-8") as log:
            check(not has_report(log.read()), "inferstatd has no sanitizer's report")
    except BaseException:
        with open(os.path.join(folder, "inferstatd.log"), encoding="utf-8",
                  errors="replace") as log:
            sys.stderr.write(log.read())
        raise
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def main():
    base = os.environ.get("TMPDIR", "/tmp")
    with tempfile.TemporaryDirectory(prefix="inferstat-foreign-",
                                     dir=base if len(base) <= 60 else "/tmp") as folder:
        run(folder)


if __name__ == "__main__":
    main()
