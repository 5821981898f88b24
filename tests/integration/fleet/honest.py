"""An honest producer (100 records a second) or dashboard (nine queries a second) that measures
how long it waits for each answer.

    honest.py SETTINGS    as JSON: see Scene.how_to_reach, with "kind", "preload" and, where
                       it is to be another user, "uid" and "gid"

Says a line when it has begun.  At the end of its input it ends, and its last line is JSON.
"""

import ctypes
import json
import os
import pathlib
import select
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "support")]

from foreign_client import Peer, Producer, ask  # noqa: E402
from programs import check  # noqa: E402

import zmq  # noqa: E402

PR_SET_PDEATHSIG = 1
BATCH, PRELOAD_BATCH = 10, 1000
PATIENCE_S = 60 if os.environ.get("INFERSTAT_SANITIZE") else 20
INFERENCE, RUN, LOAD, LOAD_STAGE, PIPELINE = 6, 0, 4, 5, 9  # enum Kind


def endpoint(settings, service):
    if "folder" in settings:
        return f"ipc://{settings['folder']}/{service}"
    port = settings["port"] + ("ingest", "query", "live").index(service)
    return f"tcp://{settings['source']}:0;127.0.0.1:{port}"


def keys_of(settings):
    keys = [key.encode() for key in settings.get("keys", ())]
    return (keys[0], keys[1:]) if keys else None


class Honest(Producer):
    def produce(self, count):
        """One batch; returns how long its acknowledgement took, in seconds."""
        first = self.produced + 1
        envelope = self.batch(first, first + count - 1, ["decode", "cpu"])
        self.operations(envelope, list(range(first, first + count)))
        began = time.monotonic()
        ack = self.exchange_surely(envelope)
        wait_s = time.monotonic() - began
        check(not ack.error and not ack.hello_wanted, f"an honest batch is refused: {ack.error}")
        check(not ack.refused and ack.next[0].next == first + count,
              f"an honest batch is not stored: {ack}")
        return wait_s

    def exchange_surely(self, envelope):
        """As exchange, but sent again where a connection took it along."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.peer.send(envelope)
            while self.peer.socket.poll(1000):
                ack = self.peer.receive("ack")
                if ack.sequence == envelope.batch.sequence:
                    return ack
        raise AssertionError(f"no Ack within {PATIENCE_S} s")

    def end(self):
        for _ in range(PATIENCE_S):
            if self.goodbye().closed:
                return
            time.sleep(1)
        raise AssertionError("the honest run does not close")


def become(settings):
    """Takes the user and group of the settings; from now on ends with its parent."""
    if settings.get("uid"):
        os.setgroups([])
        os.setgid(settings["gid"])
        os.setuid(settings["uid"])
    check(ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0, "prctl works")


def repeat(seconds, work):
    """Calls it every so many seconds until the input ends; all that it returned."""
    done, due = [], time.monotonic()
    while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
        done += work()
        due = max(due + seconds, time.monotonic())
    return done


def produce(pb, context, settings):
    producer = Honest(pb, context, endpoint(settings, "ingest"), "honest", keys_of(settings))
    check(not producer.hello(2).error, "an honest Hello is welcome")
    while producer.produced < settings["preload"]:
        producer.produce(PRELOAD_BATCH)
    print("begun", flush=True)
    waits = repeat(BATCH / 100, lambda: [producer.produce(BATCH)])
    producer.end()
    run = producer.run.hex()
    uuid = "-".join((run[:8], run[8:12], run[12:16], run[16:20], run[20:]))
    return {"waits_s": waits, "run": uuid, "produced": producer.produced}


def look(pb, context, settings):
    peer = Peer(pb, context, endpoint(settings, "query"), keys_of(settings))
    queries = [{"kind": pb.QUERY_PING}, {"kind": pb.QUERY_SUMMARY}, {"kind": pb.QUERY_OVERVIEW},
               {"kind": pb.QUERY_AVERAGE, "metric": "operation.duration_ns"}]
    queries += [{"kind": pb.QUERY_RECORDS, "record_kind": kind, "limit": limit} for kind, limit in
                ((LOAD, 1), (LOAD_STAGE, 256), (INFERENCE, 240), (RUN, 200), (PIPELINE, 200))]
    number = 0

    def ask_one(query):
        """Asks again where too much came in meanwhile."""
        nonlocal number
        began = time.monotonic()
        while True:
            number += 1
            reply = ask(pb, peer, number, **query)
            if reply.status in (pb.STATUS_OK, pb.STATUS_NO_DATA):
                return time.monotonic() - began
            check("log grew" in reply.error and time.monotonic() < began + PATIENCE_S,
                  f"{query}: {reply.error}")

    ask_one(queries[0])
    print("begun", flush=True)
    return {"waits_s": repeat(1, lambda: [ask_one(query) for query in queries])}


def main():
    settings = json.loads(sys.argv[1])
    sys.path.insert(0, settings["protocol"])
    import inferstat_pb2
    become(settings)
    context = zmq.Context()
    kinds = {"producer": produce, "dashboard": look}
    print(json.dumps(kinds[settings["kind"]](inferstat_pb2, context, settings)), flush=True)
    os._exit(0)  # whatever libzmq still waits for


if __name__ == "__main__":
    main()
