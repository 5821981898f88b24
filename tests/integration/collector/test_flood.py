#!/usr/bin/env python3
"""A peer with a key that sends as many names, runs and records as it can, while the store has a
limit of bytes.  The file stays within it, and another key's records are stored, each once.
"""

import json
import os
import pathlib
import sys
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fleet"), str(HERE.parents[1] / "support")]
from foreign_client import Producer  # noqa: E402
from honest import endpoint, keys_of  # noqa: E402
from programs import check  # noqa: E402
from scene import Scene  # noqa: E402

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
    answered(producer, producer.hello_message(2))
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
    context = zmq.Context()
    producers = [Producer(pb, context, endpoint(settings, "ingest"), "flooder", keys_of(settings))
                 for _ in range(3)]
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


def run(scene, context):
    where = scene.how_to_reach("tcp", "honest")
    honest = Producer(scene.pb, context, endpoint(where, "ingest"), "honest", keys_of(where))
    honest.hello(2)
    child = scene.start_child(__file__,
                              scene.how_to_reach("tcp", "flooder") | {"store": scene.store})
    flooder = child.process
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
    check(flooder.returncode == 0, f"the flooder cannot flood: {child.words()}")
    check(largest > LIMIT // 2, f"a flood of {largest} bytes is none")
    check(honest.produced >= 1000, f"only {honest.produced} honest records in {SECONDS} s")
    check(largest <= MOST, f"the file had {largest} bytes, the limit is {LIMIT}")
    deadline = time.monotonic() + 60
    while not honest.goodbye().closed:
        check(time.monotonic() < deadline, "the honest run closes")
    print(f"largest {largest}, honest {honest.produced}, unanswered {missed}")
    scene.check_healthy_end()
    check(any("key " in line and "quota" in line for _, line in scene.log_lines),
          f"no warning of the flooder: {scene.last_words()}")
    scene.check_run(str(uuid.UUID(bytes=honest.run)), honest.produced)


def main():
    scene = Scene("--retention", f"bytes={LIMIT >> 20}MB", names=("honest", "flooder"))
    context = zmq.Context()
    try:
        run(scene, context)
    finally:
        context.destroy(0)
        scene.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        flood(json.loads(sys.argv[1]))
    else:
        main()
