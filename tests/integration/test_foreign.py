"""proto/inferstat.proto is all that a program in another language needs.

The producer, the reader and the administrator of tests/support/foreign use ZeroMQ and what protoc
makes of the .proto, nothing of inferstat.  Here they meet the real collector, over ipc and CURVE.
The table of columns in the .proto is compared with the programs' own; INFERSTAT_GOLDEN_UPDATE=1
writes it.
"""

import ast
import csv
import io
import json
import math
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from faults import CLIENT, FaultCase, main  # noqa: E402
from programs import free_ports, skip  # noqa: E402

try:
    import google.protobuf  # noqa: F401
    import zmq
except ImportError as missing:
    skip(f"{missing} (install python3-zmq and python3-protobuf)")
if not shutil.which("protoc"):
    skip("no protoc (install protobuf-compiler)")

PROTO = ROOT / "proto" / "inferstat.proto"
PROGRAMS = ROOT / "tests" / "support" / "foreign"
LINES_MAX = 70
BATCHES, SIZE = 60, 21  # of the producer; the last record of a batch is one of gaps


# ---- What they are ---------------------------------------------------------------


def table_of_columns():
    """What the .proto says about columns, from the programs' tables."""
    def read(*options):
        text = subprocess.run([CLIENT, "metrics", *options, "--csv"], check=True,
                              capture_output=True, text=True).stdout
        return list(csv.DictReader(io.StringIO(text)))

    def describe(name, row, *words):
        kind = ", ".join(word for word in words if word)
        lines.extend(textwrap.wrap(f"{name} ({kind}): {row['meaning']}", 98,
                                   initial_indent="//     ", subsequent_indent="//         "))

    lines, kind, columns = [], None, [row for row in read("--columns") if row["kind"] != "run"]
    for row in columns:
        if row["kind"] != kind:
            kind = row["kind"]
            lines.append(f"//   {kind}")
        describe(row["index"].rjust(2) + " " + row["column"] + "?" * (row["presence"] == "maybe"),
                 row, row["type"], row["unit"])
    lines += ["//", "// Metrics that the collector computes from them:"]
    stored = {(row["kind"], row["column"]) for row in columns}
    for row in read():
        if (row["kind"], row["metric"]) not in stored:
            describe(f"{row['kind']}.{row['metric']}", row, row["unit"])
    return "\n".join(lines) + "\n"


class ContractTest(unittest.TestCase):
    def test_columns(self):
        text = PROTO.read_text(encoding="utf-8")
        begin, end = "// ---- begin of columns\n", "// ---- end of columns\n"
        before, rest = text.split(begin)
        found, after = rest.split(end)
        if os.environ.get("INFERSTAT_GOLDEN_UPDATE"):
            PROTO.write_text(before + begin + table_of_columns() + end + after, encoding="utf-8")
        else:
            self.assertEqual(found, table_of_columns())

    def test_programs(self):
        """They are short, and import nothing but ZeroMQ, the .proto and the language."""
        programs = sorted(PROGRAMS.glob("*.py"))
        self.assertEqual([path.stem for path in programs], ["admin", "producer", "reader"])
        for path in programs:
            text = path.read_text(encoding="utf-8")
            self.assertLessEqual(text.count("\n"), LINES_MAX, path)
            self.assertLessEqual(max(map(len, text.split("\n"))), 100, path)
            nodes = list(ast.walk(ast.parse(text)))
            self.assertFalse([node for node in nodes if isinstance(node, ast.ImportFrom)], path)
            imported = {name.name for node in nodes if isinstance(node, ast.Import)
                        for name in node.names}
            self.assertLessEqual(imported, sys.stdlib_module_names | {"zmq", "inferstat_pb2"}, path)


# ---- What they do ----------------------------------------------------------------


class IpcTest(FaultCase):
    keys = {}  # of a program by its name: the collector's key, and its own pair
    actor, actions = "user " + pwd.getpwuid(os.getuid()).pw_name, ("clear", "forget")

    def setUp(self):
        super().setUp()
        made = self.make_folder("made")
        subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--python_out={made}",
                        str(PROTO)], check=True)
        self.environment["PYTHONPATH"] = made
        self.there = self.address  # where the programs connect

    def program(self, name, *arguments, address=None):
        keys = self.keys.get(name, ()) if address is None else ()
        environment = dict(self.environment, **dict(
            zip(("COLLECTOR_KEY", "PUBLIC_KEY", "SECRET_KEY"), keys)))
        process = subprocess.Popen([sys.executable, str(PROGRAMS / f"{name}.py"),
                                    address or self.there, *map(str, arguments)],
                                   env=environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def result(self, process, code=0):
        """The rows that it printed last, or its complaint."""
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, code, out + err)
        return err.strip() if code else json.loads(out.strip().split("\n")[-1])

    def administer(self, *arguments, code=0, address=None):
        return self.result(self.program("admin", *arguments, address=address), code)

    def check_reader(self, told, made):
        """What was read is what was made: gaps exactly by bucket, averages within 1 %."""
        gaps, average = sorted(made["gaps"]), told["average"][0]
        read = sorted((float(value), count) for value, count in told["gaps"].items())
        self.assertEqual(sum(count for _, count in read), len(gaps))
        place = 0
        for value, count in read:
            for gap in gaps[place:place + count]:
                self.assertAlmostEqual(gap / value, 1, delta=1 / 128)
            place += count
        self.assertEqual(average["count"], len(gaps))
        self.assertAlmostEqual(average["mean"] / (sum(gaps) / len(gaps)), 1, delta=0.01)
        for name, q in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
            rank, place = math.ceil(q * len(gaps)), 0
            for value, count in read:
                place += count
                if place >= rank:
                    break
            self.assertAlmostEqual(average[name] / value, 1, delta=1e-9)
        rows = sorted(told["inferences"], key=lambda row: row["number"])
        self.assertEqual([row["number"] for row in rows],
                         [n for n in range(1, BATCHES * SIZE + 1) if n % SIZE])
        for row in rows:
            self.assertEqual((row["run"], row["model"], row["device"], row["finish"]),
                             (made["run"], "story", "cpu", "length"))
            self.assertEqual(row["request"], row["number"])

    def test_live(self):
        self.start_collector()
        last = BATCHES * SIZE - 1
        reader = self.program("reader", "live", last)
        pong = json.loads(reader.stdout.readline())[0]
        self.assertEqual(pong["protocol"], 2)
        made = self.result(self.program("producer", "live", BATCHES))
        told = self.result(reader)
        self.check_reader(told, made)
        # Its subscription may have begun a little after the first records.
        wanted = [n for n in range(told["live"][0], last + 1) if n % SIZE]
        self.assertEqual((told["live"], told["missed"]), (wanted, 0))
        self.assertEqual(self.audit()[0]["verdict"], "balanced")

    def test_a_collector_that_is_killed(self):
        self.start_collector()
        producer = self.program("producer", "killed", 3 * BATCHES)
        self.wait_until(lambda: self.stored() > SIZE)
        self.kill(self.collector)
        self.assertIsNone(producer.poll())
        self.start_collector()
        made = self.result(producer)
        self.assertEqual(len(made["gaps"]), 3 * BATCHES * 180)
        row = self.audit()[0]
        self.assertEqual((row["verdict"], row["end"], row["stored"], row["lost"]),
                         ("balanced", "closed", 3 * BATCHES * SIZE, 0))

    def test_an_administrator(self):
        self.start_collector()
        made = self.result(self.program("producer", "liar", BATCHES))
        self.assertEqual(self.administer("clear", "liar"), [{"cleared": BATCHES * SIZE}])
        self.assertIn("NO_DATA", self.result(self.program("reader", "liar", 0), code=1))
        self.assertEqual(self.administer("forget", made["run"])[0]["runs"], 1)
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(0,)])

        # One that still sends learns of it.
        producer = self.program("producer", "liar", 50 * BATCHES)
        self.wait_until(self.stored)
        run = self.sql("SELECT uuid FROM run")[0][0]
        self.assertEqual(self.administer("forget", run)[0]["runs"], 1)
        self.assertIn("removed", self.result(producer, code=1))
        self.administer_keys()
        for action in self.actions:
            self.wait_until(lambda act=(self.actor, action, "ok"): act in self.acts())

    def acts(self):
        return [(row["actor"], row["action"], row["outcome"]) for row in self.administer("log")]

    def administer_keys(self):
        self.assertIn("INVALID", self.administer("keys", code=1))


class CurveTest(IpcTest):
    """The same over TCP with keys, which the administrator authorizes over ipc."""

    actor, actions = "key foreign.admin", ("clear", "forget", "authorize", "revoke")

    def setUp(self):
        super().setUp()
        server = os.path.join(self.folder, "server.key")
        self.client("keygen", "--server", server, source=[])
        with open(server + ".pub", encoding="utf-8") as file:
            public = file.readline().split()[0]
        self.there = "tcp://127.0.0.1:%d" % free_ports(4)
        self.collector_options = ("--listen", self.there, "--key", server,
                                  "--authorized-keys", os.path.join(self.folder, "authorized"))
        self.keys = {name: (public, *(half.decode() for half in zmq.curve_keypair()))
                     for name in ("producer", "reader", "admin")}

    def start_collector(self, *options, **more):
        super().start_collector(*options, **more)
        for name, keys in self.keys.items():
            rows = self.administer("authorize", keys[1], f"foreign.{name}", name,
                                   address=self.address)
            self.assertEqual((rows[0]["key"], rows[0]["roles"]), (keys[1], name))

    def administer_keys(self):
        key = zmq.curve_keypair()[0].decode()
        self.administer("authorize", key, "gpu07", "producer", "reader")
        rows = {row["name"]: (row["key"], row["roles"]) for row in self.administer("keys")}
        self.assertEqual(rows["gpu07"], (key, "producer,reader"))
        self.assertEqual(len(rows), 4)
        self.administer("revoke", "gpu07")
        self.assertEqual(len(self.administer("keys")), 3)


if __name__ == "__main__":
    main()
