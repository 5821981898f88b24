#!/usr/bin/env python3
"""A peer with a key that sends as many names, runs and records as it can, while the store has a
limit of bytes.  The file stays within it, and another key's records are stored, each once.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "support")]
import test_forgery  # noqa: E402
from foreign_client import Producer  # noqa: E402
from programs import check  # noqa: E402

import zmq  # noqa: E402

LIMIT = 32 << 20
# 1/16 more, and what had been admitted before: a group's records and the writer's inbox.
MOST = LIMIT * 17 // 16 + (14 << 20)
SECONDS = 20
DAY_NS = 86400 * 10**9


def answered(producer, envelope, patience_s=0.3):
    """Whether the message is answered; one that is not is to be sent again."""
    producer.peer.send(envelope)
    if not producer.peer.socket.poll(int(patience_s * 1000)):
        return False
    producer.peer.receive("ack")
    return True


def flood_names(producer, step):
    first = 1 + step * 4000
    envelope = producer.batch(0, 0, [f"name {first + i} of {producer.run.hex()}"
                                     for i in range(4000)], first)
    answered(producer, envelope)


def flood_runs(producer, step):
    producer.run = os.urandom(16)
    producer.produced = 0
    producer.hello(2)
    answered(producer, producer.batch(0, 0, [f"{step}-{i}" for i in range(30)]))


def flood_records(producer, step):
    """Of thirty days, so that retention may take them."""
    del step
    first, count = producer.produced + 1, 4000
    envelope = producer.batch(first, first + count - 1, [] if first > 1 else ["flood", "cpu"])
    since_ns = time.time_ns() - 30 * DAY_NS
    producer.operations(envelope, list(range(first, first + count)),
                        [since_ns + number * 10**9 % (29 * DAY_NS)
                         for number in range(first, first + count)])
    if not answered(producer, envelope):
        producer.produced = first - 1  # again


def flood(settings):
    """The program of the flooder."""
    sys.path.insert(0, settings["protocol"])
    import inferstat_pb2 as pb
    keys = (settings["keys"][0].encode(), [key.encode() for key in settings["keys"][1]])
    context = zmq.Context()
    producers = [Producer(pb, context, settings["ingest"], "flooder", keys) for _ in range(3)]
    for producer in producers:
        producer.hello(2)
    start = time.monotonic()
    step = 0
    while (time.monotonic() < start + SECONDS
           or os.path.getsize(settings["store"]) < LIMIT * 3 // 4
           and time.monotonic() < start + 6 * SECONDS):
        for producer, act in zip(producers, (flood_names, flood_runs, flood_records)):
            if act is flood_records or step < 500:
                act(producer, step)
        step += 1
    context.destroy(linger=0)


class Scene(test_forgery.Scene):
    def start_flooder(self):
        endpoint, keys = self.reach("ingest", 2)
        settings = {"protocol": self.protocol, "ingest": endpoint, "store": self.store,
                    "keys": (keys[0].decode(), [key.decode() for key in keys[1]])}
        return subprocess.Popen([sys.executable, __file__, json.dumps(settings)])


def main():
    scene = Scene(True, ["--retention", f"bytes={LIMIT >> 20}MB"])
    endpoint, own = scene.reach("ingest", 1)
    honest = Producer(scene.pb, scene.context, endpoint, "honest", own)
    honest.hello(2)
    flooder = scene.start_flooder()
    largest = missed = 0
    while flooder.poll() is None:
        first = honest.produced + 1
        envelope = honest.batch(first, first + 9, [] if first > 1 else ["decode", "cpu"])
        honest.operations(envelope, list(range(first, first + 10)))
        if not answered(honest, envelope, 1):
            honest.produced = first - 1
            missed += 1
        largest = max(largest, os.path.getsize(scene.store))
        time.sleep(0.02)
    check(flooder.returncode == 0, "the flooder can flood")
    check(largest > LIMIT // 2, f"a flood of {largest} bytes is none")
    check(honest.produced >= 1000, f"only {honest.produced} honest records in {SECONDS} s")
    check(largest <= MOST, f"the file had {largest} bytes, the limit is {LIMIT}")
    deadline = time.monotonic() + 60
    while not honest.goodbye().closed:
        check(time.monotonic() < deadline, "the honest run closes")
    print(f"largest {largest}, honest {honest.produced}, unanswered {missed}")
    words = scene.end()
    check("key " in words and "quota" in words, f"no warning of the flooder: {words}")
    audit = subprocess.run([test_forgery.CLIENT, "audit", "--db", scene.store, "--json", "--host",
                            "honest"], capture_output=True, text=True)
    rows = json.loads(audit.stdout)["rows"]
    check(audit.returncode == 0 and len(rows) == 1 and rows[0]["verdict"] == "balanced",
          f"audit: {audit}")
    check(rows[0]["stored"] == honest.produced, f"{rows} of {honest.produced}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        flood(json.loads(sys.argv[1]))
    else:
        main()
