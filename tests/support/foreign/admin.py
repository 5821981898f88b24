"""An administrator, written from proto/inferstat.proto alone: sends one query, and prints the rows
of the answer as JSON.

admin.py ADDRESS COMMAND ARGUMENT...    over CURVE: COLLECTOR_KEY, PUBLIC_KEY, SECRET_KEY as Z85

authorize KEY NAME ROLE... | revoke KEY_OR_NAME | keys | clear HOST | forget RUN | log"""
import json, os, sys  # noqa: E401
import zmq, inferstat_pb2 as pb  # noqa: E401

address, command, *arguments = sys.argv[1:]

def authorize(key, name, *roles):
    bits = sum(1 << pb.Role.Value("ROLE_" + role.upper()) for role in roles)
    return pb.Query(kind=pb.QUERY_AUTHORIZE, key=key, name=name, roles=bits)

def revoke(key):
    return pb.Query(kind=pb.QUERY_REVOKE, key=key)

def keys():
    return pb.Query(kind=pb.QUERY_KEYS)

def clear(host):
    return pb.Query(kind=pb.QUERY_CLEAR, filter=pb.Filter(host=host))

def forget(run):
    return pb.Query(kind=pb.QUERY_FORGET, filter=pb.Filter(run=run))

def log():
    return pb.Query(kind=pb.QUERY_ADMIN_LOG)

def rows(answer):
    columns = {}
    for column in answer.columns:
        values = [None, iter(column.ints), iter(column.reals), map(bytes.decode, column.texts)]
        columns[column.key] = [next(values[kind]) if kind else None for kind in column.types]
    return [{key: columns[key][row] for key in columns} for row in range(answer.row_count)]

query = {"authorize": authorize, "revoke": revoke, "keys": keys, "clear": clear, "forget": forget,
         "log": log}[command](*arguments)
query.id, query.protocol = 1, 2
socket = zmq.Context().socket(zmq.DEALER)
if "SECRET_KEY" in os.environ:
    socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = (
        os.environ[name].encode() for name in ("COLLECTOR_KEY", "PUBLIC_KEY", "SECRET_KEY"))
start, _, port = address.rpartition(":")
socket.connect(address + "/admin" if start == "ipc" else f"{start}:{int(port) + 3}")
socket.send(pb.Envelope(query=query).SerializeToString())
if not socket.poll(20000):
    sys.exit("no Reply within 20 s")
reply = pb.Envelope.FromString(socket.recv()).reply
if reply.status != pb.STATUS_OK:
    sys.exit(f"{pb.Status.Name(reply.status)}: {reply.error}")
print(json.dumps(rows(reply)))
