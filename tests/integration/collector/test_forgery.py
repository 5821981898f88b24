#!/usr/bin/env python3
"""Peers that report losses, counts and the end of other peers' live runs, whose ids they learn
from a query: over ipc as another process of the same user and (by root only) as another user,
over TCP with another key.  The honest run keeps every record, and the log names the others.
"""

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "support")]
from foreign_client import COLLECTOR, Peer, Producer, ask, cells, compile_proto  # noqa: E402
from programs import check, free_ports, has_report  # noqa: E402

import zmq  # noqa: E402

CLIENT = os.environ.get("INFERSTAT", "inferstat")
SECONDS = 5
RUN_KIND = 0
COUNTS = (10**6, 10**9)  # the first is plausible
OTHER_UID = 60000


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
    if settings["uid"]:
        os.setgroups([])
        os.setgid(OTHER_UID)
        os.setuid(settings["uid"])
    sys.path.insert(0, settings["protocol"])
    import inferstat_pb2 as pb
    keys = settings["keys"]
    keys = keys and (keys[0].encode(), [key.encode() for key in keys[1]])
    context = zmq.Context()
    reader = Peer(pb, context, settings["query"], keys)
    sender = Peer(pb, context, settings["ingest"], keys)
    reply = ask(pb, reader, 1, kind=pb.QUERY_RECORDS, record_kind=RUN_KIND, host="honest")
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


class Scene:
    def __init__(self, keys, options=()):
        self.folder = tempfile.mkdtemp(prefix="inferstat-forgery-")
        os.chmod(self.folder, 0o755)
        self.protocol = os.path.join(self.folder, "protocol")
        os.mkdir(self.protocol)
        self.pb = compile_proto(self.protocol)
        self.store = os.path.join(self.folder, "store.db")
        self.context = zmq.Context()
        self.keys = [zmq.curve_keypair() for _ in range(3)] if keys else None
        self.address = f"ipc://{self.folder}/sockets"
        arguments = ["--listen", self.address, "--db", self.store, *options]
        if keys:
            self.port = free_ports(4)
            arguments += ["--listen", f"tcp://127.0.0.1:{self.port}", *self.write_keys()]
        group = {"group": OTHER_UID, "umask": 0o007} if os.getuid() == 0 else {}
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.process = subprocess.Popen([COLLECTOR, *arguments], stdout=self.log, stderr=self.log,
                                        env=dict(os.environ, HOME=self.folder), **group)

    def write_keys(self):
        """The collector's are the first pair."""
        texts = {"server.key": "inferstat-secret-key 1\npublic {}\nsecret {}\n".format(
                     *(key.decode() for key in self.keys[0])),
                 "authorized_keys": "".join(
                     f"{pair[0].decode()} producer,reader {name}\n"
                     for name, pair in zip(("honest", "forger"), self.keys[1:]))}
        paths = []
        for name, text in texts.items():
            paths.append(os.path.join(self.folder, name))
            with open(os.open(paths[-1], os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(text)
        return ["--key", paths[0], "--authorized-keys", paths[1]]

    def reach(self, service, who):
        """The endpoint of a service, and the keys of peer `who` (1: honest)."""
        if not self.keys:
            return f"{self.address}/{service}", None
        port = self.port + ("ingest", "query").index(service)
        return f"tcp://127.0.0.1:{port}", (self.keys[0][0], self.keys[who])

    def start_forger(self, uid):
        keys = self.reach("query", 2)[1]
        settings = {"uid": uid, "protocol": self.protocol, "query": self.reach("query", 2)[0],
                    "ingest": self.reach("ingest", 2)[0],
                    "keys": keys and (keys[0].decode(), [key.decode() for key in keys[1]])}
        return subprocess.Popen([sys.executable, __file__, json.dumps(settings)])

    def end(self):
        self.context.destroy(linger=0)
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        self.log.seek(0)
        words = self.log.read()
        check(code == 0 and not has_report(words), f"the collector ended with {code}: {words}")
        return words


def expect_all(scene, produced, reasons, names):
    words = scene.end()
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
        check(any("warning" in line.lower() and name in line for line in words.splitlines()),
              f"no warning names {name}: {words}")


def attack(keys):
    """With `keys` over TCP, else over ipc."""
    scene = Scene(keys)
    endpoint, own = scene.reach("ingest", 1)
    producer = Producer(scene.pb, scene.context, endpoint, "honest", own)
    producer.hello(2)

    def produce():
        first = producer.produced + 1
        envelope = producer.batch(first, first + 9, ["decode", "cpu"])
        producer.operations(envelope, list(range(first, first + 10)))
        wanted, _ = producer.next_after(envelope)
        check(wanted == first + 10, f"{wanted} instead of {first + 10} is wanted next")

    produce()
    uids = [0]  # as this process
    if not keys and os.getuid() == 0:
        uids.append(OTHER_UID)
    forgers = [scene.start_forger(uid) for uid in uids]
    while any(forger.poll() is None for forger in forgers):
        produce()
        time.sleep(0.01)
    check([forger.returncode for forger in forgers] == [0] * len(forgers), "the forgers can forge")
    check(producer.goodbye().closed, "the honest run closes")
    if keys:
        expect_all(scene, producer.produced, ["wrong_owner"], [scene.keys[2][0].decode()])
        return
    names = [f"process {forger.pid}" for forger in forgers]
    reasons = ["busy_run"] + ["wrong_owner"] * (len(uids) > 1)
    expect_all(scene, producer.produced, reasons, names)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        forge(json.loads(sys.argv[1]))
    else:
        attack(False)
        attack(True)
