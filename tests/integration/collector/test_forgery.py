#!/usr/bin/env python3
"""Peers that report losses, counts and the end of other peers' live runs, whose ids they learn
from a query: over ipc as another process of the same user and (by root only) as another user,
over TCP with another key.  The honest run keeps every record, and the log names the others.
"""

import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fleet"), str(HERE.parents[1] / "support")]
from foreign_client import Peer, Producer, ask, cells  # noqa: E402
from honest import RUN, become, endpoint, keys_of  # noqa: E402
from programs import check  # noqa: E402
from scene import CLIENT, HOSTILE_UID, Scene  # noqa: E402

import zmq  # noqa: E402

SECONDS = 5
COUNTS = (10**6, 10**9)  # the first is plausible


def forgeries(pb, run, count):
    """What would end or empty a run."""
    for replay in (False, True):
        hello = pb.Envelope()
        hello.hello.protocol, hello.hello.run, hello.hello.replay = 2, run, replay
        hello.hello.description.host = "honest"
        hello.hello.streams.add(produced=count)
        yield hello
    batch = pb.Envelope()
    batch.batch.run, batch.batch.sequence = run, count
    batch.batch.streams.add(produced=count, unnumbered=count)
    batch.batch.dropped.add(first=1, last=count, reason=pb.DROP_SPOOL_FULL, since_ns=1,
                            until_ns=2)
    yield batch
    goodbye = pb.Envelope()
    goodbye.goodbye.run, goodbye.goodbye.sequence = run, count
    goodbye.goodbye.killed, goodbye.goodbye.ended_ns = True, time.time_ns()
    yield goodbye


def forge(settings):
    """The program of a forger."""
    become(settings)
    sys.path.insert(0, settings["protocol"])
    import inferstat_pb2 as pb
    context = zmq.Context()
    reader = Peer(pb, context, endpoint(settings, "query"), keys_of(settings))
    sender = Peer(pb, context, endpoint(settings, "ingest"), keys_of(settings))
    reply = ask(pb, reader, 1, kind=pb.QUERY_RECORDS, record_kind=RUN, host="honest")
    runs = [bytes.fromhex(row["uuid"].replace("-", "")) for row in cells(reply)]
    check(runs, "a query tells the ids of runs")
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for run in runs:
            for count in COUNTS:
                for envelope in forgeries(pb, run, count):
                    sender.send(envelope)
        time.sleep(0.01)
    context.destroy(linger=0)


def expect_all(scene, produced, reasons, names):
    scene.check_healthy_end()
    audit = subprocess.run([CLIENT, "audit", "--db", scene.store], capture_output=True, text=True)
    check(audit.returncode == 0 and "balanced" in audit.stdout, f"audit: {audit}")
    database = sqlite3.connect(f"file:{scene.store}?mode=ro", uri=True)
    found = database.execute("SELECT stored, produced, \"end\","
                             " (SELECT count(*) FROM operation o WHERE o.run = run.run),"
                             " (SELECT sum(unnumbered) FROM stream s WHERE s.run = run.run),"
                             " (SELECT count(*) FROM range r WHERE r.run = run.run AND state = 1)"
                             " FROM run").fetchall()
    check(found == [(produced, produced, 1, produced, 0, 0)], f"the honest run: {found}")
    counts = dict(database.execute("SELECT reason, count FROM refusal").fetchall())
    for reason in reasons:
        check(counts.get(reason, 0) > 100, f"refused: {counts}")
    for name in names:
        check(any("warning" in line.lower() and name in line for _, line in scene.log_lines),
              f"no warning names {name}: {scene.last_words()}")


def attack(scene, context):
    """With keys over TCP, else over ipc."""
    transport = "tcp" if scene.keys else "ipc"
    where = scene.how_to_reach(transport, "honest")
    producer = Producer(scene.pb, context, endpoint(where, "ingest"), "honest", keys_of(where))
    producer.hello(2)

    def produce():
        first = producer.produced + 1
        envelope = producer.batch(first, first + 9, ["decode", "cpu"])
        producer.operations(envelope, list(range(first, first + 10)))
        wanted, _ = producer.next_after(envelope)
        check(wanted == first + 10, f"{wanted} instead of {first + 10} is wanted next")

    produce()
    users = [{}]  # as this process
    if not scene.keys and os.getuid() == 0:
        users.append({"uid": HOSTILE_UID, "gid": HOSTILE_UID})
    forgers = [scene.start_child(__file__, scene.how_to_reach(transport, "forger") | user).process
               for user in users]
    while any(forger.poll() is None for forger in forgers):
        produce()
        time.sleep(0.01)
    check([forger.returncode for forger in forgers] == [0] * len(forgers), "the forgers can forge")
    check(producer.goodbye().closed, "the honest run closes")
    if scene.keys:
        expect_all(scene, producer.produced, ["wrong_owner"], [scene.keys["forger"][0]])
        return
    names = [f"process {forger.pid}" for forger in forgers]
    reasons = ["busy_run"] + ["wrong_owner"] * (len(users) > 1)
    expect_all(scene, producer.produced, reasons, names)


def main():
    for names in ((), ("honest", "forger")):
        scene, context = Scene(names=names), zmq.Context()
        try:
            attack(scene, context)
        finally:
            context.destroy(0)
            scene.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        forge(json.loads(sys.argv[1]))
    else:
        main()
