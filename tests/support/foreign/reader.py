"""A reader, written from proto/inferstat.proto alone: follows the inferences of a host live up to
the one with the number LAST (0: not at all), then asks for an average and for the records.

reader.py ADDRESS HOST LAST             over CURVE: COLLECTOR_KEY, PUBLIC_KEY, SECRET_KEY as Z85"""
import collections, json, os, sys  # noqa: E401
import zmq, inferstat_pb2 as pb  # noqa: E401

(address, host), last = sys.argv[1:3], int(sys.argv[3])

def connect(name, place):
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.rcvtimeo = 20000  # milliseconds
    if "SECRET_KEY" in os.environ:
        socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = (
            os.environ[key].encode() for key in ("COLLECTOR_KEY", "PUBLIC_KEY", "SECRET_KEY"))
    start, _, port = address.rpartition(":")
    socket.connect(f"{address}/{name}" if start == "ipc" else f"{start}:{int(port) + place}")
    return socket

def receive(socket, body):
    return getattr(pb.Envelope.FromString(socket.recv()), body)

def rows(answer):
    columns = {}
    for column in answer.columns:
        values = [None, iter(column.ints), iter(column.reals), map(bytes.decode, column.texts)]
        columns[column.key] = [next(values[kind]) if kind else None for kind in column.types]
    return [{key: columns[key][row] for key in columns} for row in range(answer.row_count)]

def ask(**query):
    query = pb.Query(id=1, protocol=2, filter=pb.Filter(host=host), **query)
    queries.send(pb.Envelope(query=query).SerializeToString())
    reply = receive(queries, "reply")
    if reply.status != pb.STATUS_OK:
        sys.exit(f"{pb.Status.Name(reply.status)}: {reply.error}")
    return rows(reply), reply.next_cursor

def records(kind):
    found, cursor = [], None
    while cursor != 0:  # page by page
        page, cursor = ask(kind=pb.QUERY_RECORDS, record_kind=kind, cursor=cursor, limit=50)
        found += page
    return found

def numbers(leb128):
    number = shift = 0
    for byte in leb128:
        number, shift = number | byte % 128 << shift, shift + 7
        if byte < 128:
            yield number
            number = shift = 0

queries, live, seen = connect("query", 1), connect("live", 2), []
credit = pb.LiveCredit(protocol=2, messages=10, kinds=[pb.KIND_INFERENCE])
credit, missed, gaps = pb.Envelope(live_credit=credit).SerializeToString(), 0, collections.Counter()
live.send(credit)
print(json.dumps(ask(kind=pb.QUERY_PING)[0]), flush=True)
while last > max(seen, default=0):
    news = receive(live, "live_records")
    seen, missed = seen + [row["number"] for row in rows(news) if row["host"] == host], news.missed
    live.send(credit)
for row in records(pb.KIND_ITL):
    encoded, bucket = numbers(bytes.fromhex(row["sketch"])[2:]), 0  # version 1, no zeros
    for _ in range(next(encoded)):
        bucket += next(encoded)
        low, high = (2.0 ** (b // 64 - 64) * (1 + b % 64 / 64) for b in (bucket, bucket + 1))
        gaps[2 * low * high / (low + high)] += next(encoded)
average = ask(kind=pb.QUERY_AVERAGE, metric="itl_ns", group_by=[pb.DIMENSION_HOST])[0]
print(json.dumps({"live": seen, "missed": missed, "gaps": gaps, "average": average,
                  "inferences": records(pb.KIND_INFERENCE)}))
