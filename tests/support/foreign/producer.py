"""A producer, written from proto/inferstat.proto alone: sends inferences and the gaps between their
tokens, batch by batch, until the collector has acknowledged all of them.

producer.py ADDRESS HOST BATCHES        over CURVE: COLLECTOR_KEY, PUBLIC_KEY, SECRET_KEY as Z85"""
import collections, json, os, random, struct, sys, time, uuid  # noqa: E401
import zmq, inferstat_pb2 as pb  # noqa: E401

(address, host), batches = sys.argv[1:3], int(sys.argv[3])
REQUESTS, TOKENS, NAMES = 20, 10, ["story", "cpu"]  # requests a batch, tokens a request
SIZE = REQUESTS + 1  # records of a batch: its inferences, and one with all their gaps
run, began_ns = uuid.uuid4(), time.time_ns()
gaps = [[[random.randrange(10**6, 10**8) for _ in range(TOKENS - 1)] for _ in range(REQUESTS)]
        for _ in range(batches)]

def leb128(number):
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + leb128(number >> 7)

def sketch(values):
    counts = collections.Counter(
        (struct.unpack("<Q", struct.pack("<d", value))[0] >> 46) - 959 * 64 for value in values)
    encoded, before = b"\1" + leb128(0) + leb128(len(counts)), 0
    for bucket in sorted(counts):
        encoded, before = encoded + leb128(bucket - before) + leb128(counts[bucket]), bucket
    return encoded + leb128(0)

def table(kind, first, count, **fields):  # a column: a list, or one value for all records
    columns = [pb.Column(index=index, **{field: value if type(value) is list else [value] * count})
               for field, columns in fields.items() for index, value in columns.items()]
    return pb.Table(kind=kind, number_deltas=[first] + [1] * (count - 1), columns=columns,
                    started_ns_deltas=[began_ns + first * 10**6] + [10**6] * (count - 1))

def tables(batch):
    first, decode_ns = batch * SIZE + 1, [sum(request) for request in gaps[batch]]
    yield table(pb.KIND_INFERENCE, first, REQUESTS, names={0: 1, 1: 2}, ints={
        2: list(range(first, first + REQUESTS)), 3: pb.FINISH_LENGTH, 4: 16, 5: 0, 6: TOKENS, 7: 0,
        8: 10**6, 9: 10**6, 10: decode_ns, 11: [10**6 + ns for ns in decode_ns], 14: 1 << 20})
    yield table(pb.KIND_ITL, first + REQUESTS, 1, names={0: 1, 1: 2}, ints={2: sum(decode_ns)},
                texts={3: [sketch(sum(gaps[batch], []))]})

def message():  # Hello; then the batch with the number that is wanted next; in the end Goodbye
    common = {"run": run.bytes, "streams": [pb.StreamState(produced=batches * SIZE)]}
    if not greeted:
        about = pb.RunDescription(host=host, pid=os.getpid(), started_ns=began_ns)
        return pb.Envelope(hello=pb.Hello(protocol=2, description=about, **common))
    batch, common["sequence"] = (wanted - 1) // SIZE, sequence
    if batch == batches:
        return pb.Envelope(goodbye=pb.Goodbye(ended_ns=time.time_ns(), **common))
    return pb.Envelope(batch=pb.Batch(
        first=batch * SIZE + 1, last=batch * SIZE + SIZE, tables=tables(batch),
        names=NAMES[known:], names_first=known + 1, sent_ns=time.time_ns(), **common))

socket = zmq.Context().socket(zmq.DEALER)
if "SECRET_KEY" in os.environ:
    socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = (
        os.environ[name].encode() for name in ("COLLECTOR_KEY", "PUBLIC_KEY", "SECRET_KEY"))
socket.connect(address + "/ingest" if address.startswith("ipc:") else address)
greeted, wanted, known, store, sequence, patience_s, ack = False, 1, 0, b"", 0, 1, pb.Ack()
while not ack.closed:  # one message at a time; without an Ack for a second Hello again
    sequence += greeted
    socket.send(message().SerializeToString())
    if not socket.poll(1000 * patience_s):
        greeted, patience_s = False, min(2 * patience_s, 8)
        continue
    ack, patience_s = pb.Envelope.FromString(socket.recv()).ack, 1
    if ack.error or ack.refused:
        sys.exit(ack.error or ack.refused[0].reason)
    greeted = not ack.hello_wanted and (ack.sequence == 0 or greeted and ack.store == store)
    wanted = ack.next[0].next if ack.next else 1 if ack.sequence == 0 else wanted
    known, store = ack.names_known, ack.store
print(json.dumps({"run": str(run), "gaps": sorted(sum(sum(gaps, []), []))}))
