#!/usr/bin/env python3
"""Alerts from a record to the hooks' calls: real collectors, commands, web servers and Debian's
Alertmanager.

    test_hooks.py CLASS
"""

import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from programs import check, free_ports, has_report, skip  # noqa: E402
from web_server import WebServer  # noqa: E402

HOSTILE = "h\"'\\\x1b[31m$(touch x)`touch x`;%s<!channel>"
RULE = "alert loaded: avg load.duration_ns by model,host over 10m when count > 0\n"
NO_OTHER = "".join(f"disable {name}\n" for name in ("slow_load", "records_dropped", "run_killed", "host_silent"))


class Lateness:
    """How late the machine is with what a call needs: waits for 20 ms, syncs a file and runs a command, again and
    again.  What such a round takes beyond 50 ms, twice of what it takes where nothing else runs, is late."""

    def __init__(self, path):
        self.rounds = []
        self.ends = False
        self.thread = threading.Thread(target=self.watch, args=(path,))
        self.thread.start()

    def watch(self, path):
        with open(path, "wb", buffering=0) as file:
            while not self.ends:
                before = time.time()
                time.sleep(0.02)
                file.write(b"0123456789")
                os.fsync(file.fileno())
                subprocess.run(["true"], check=True)
                self.rounds.append((before, time.time()))

    def between(self, since, until):
        """By how many seconds it was late between two times."""
        return sum(end - begin - 0.05 for begin, end in self.rounds
                   if begin < until and since < end and end - begin > 0.05)

    def close(self):
        self.ends = True
        self.thread.join()


class HooksTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="inferstat-hooks.", dir="/tmp")
        self.rules = f"{self.folder}/rules"
        self.db = f"{self.folder}/store.db"
        self.collector = self.engine = None
        self.servers = []
        self.metrics = free_ports(1)
        os.mkdir(f"{self.folder}/run", 0o700)
        self.environment = {**os.environ, "INFERSTAT_COLLECTOR": f"ipc://{self.folder}/c",
                            "INFERSTAT_RUN_DIR": f"{self.folder}/run", "INFERSTAT_SPOOL": f"{self.folder}/spool",
                            "INFERSTAT_HOST": HOSTILE}

    def tearDown(self):
        for process in (self.engine, self.collector):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        for server in self.servers:
            server.close()
        log = pathlib.Path(self.folder, "log")
        words = log.read_text() if log.exists() else ""
        if sys.exc_info()[0] or has_report(words):
            print(words)
        self.assertFalse(has_report(words), words)
        shutil.rmtree(self.folder)

    def serve(self, *arguments):
        self.servers.append(WebServer(*arguments))
        return self.servers[-1]

    def script(self, name, text, shell="sh"):
        path = pathlib.Path(self.folder, name)
        path.write_text(f"#!/bin/{shell}\n{text}\n")
        path.chmod(0o700)
        return path

    def start(self, text=None, every="1s"):
        if text is not None:
            pathlib.Path(self.rules).write_text(text)
            os.chmod(self.rules, 0o600)
        with open(f"{self.folder}/log", "a", encoding="utf-8") as log:
            self.collector = subprocess.Popen(
                [os.environ["INFERSTATD"], "--listen", f"ipc://{self.folder}/c", "--db", self.db, "--alerts",
                 self.rules, "--alerts-every", every, "--log-level", "info", "--metrics", f"127.0.0.1:{self.metrics}"], stderr=log, env=self.environment)
        self.wait(20, lambda: os.path.exists(f"{self.folder}/c/query") or self.collector.poll() is not None)
        self.assertIsNone(self.collector.poll(), pathlib.Path(self.folder, "log").read_text())

    def stop(self):
        """Ends the collector; how many seconds that took."""
        began = time.monotonic()
        self.collector.send_signal(signal.SIGTERM)
        self.assertEqual(self.collector.wait(20), 0)
        return time.monotonic() - began

    def load(self, *models):
        if not self.engine:
            self.engine = subprocess.Popen([os.environ["LOAD_MODELS"]], stdin=subprocess.PIPE, text=True,
                                           env=self.environment)
        for model in models:
            self.engine.stdin.write(f"{model}\n")
        self.engine.stdin.flush()

    def end_engine(self):
        self.engine.stdin.close()
        self.assertEqual(self.engine.wait(20), 0)
        self.engine = None

    def wait(self, seconds, holds):
        until = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > until:
                self.fail(f"waited in vain\n{pathlib.Path(self.folder, 'log').read_text()}")
            time.sleep(0.05)

    def rows(self, sql):
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as db:
            return db.execute(sql).fetchall()

    def lines(self, name):
        """The JSON objects that a command has added to the file."""
        path = pathlib.Path(self.folder, name)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def said(self, words):
        return words in pathlib.Path(self.folder, "log").read_text()

    # ---- Cases ------------------------------------------------------------------------

    def test_one_hook_holds_up_no_other(self):
        """Each way to fail, at the same time as hooks that work."""
        web = self.serve()
        good = self.script("good", f"cat >>{self.folder}/good.json")
        bad = self.script("bad", "echo it broke >&2; exit 3")
        stuck = self.script("stuck", f"(sleep 300 & echo $! >{self.folder}/child; wait) & sleep 300")
        flood = self.script("flood", "while :; do echo flood; echo flood >&2; done")
        hooks = {"good": f"command {good} $(touch x) 'a `touch x`'", "bad": f"command {bad}", "stuck": f"command {stuck}",
                 "flood": f"command {flood}", "none": "command /nowhere/hook",
                 "ok": f"webhook {web.url('/ok')}", "slack": f"webhook {web.url('/slack')} as slack",
                 "hang": f"webhook {web.url('/hang')}", "huge": f"webhook {web.url('/huge')}",
                 "later": f"webhook {web.url('/then/500,200')}", "redirect": f"webhook {web.url('/redirect')}",
                 "missing": f"webhook {web.url('/404')}", "close": f"webhook {web.url('/close')}"}
        self.start(NO_OTHER + RULE + "".join(f"hook {name}: {what}\n" for name, what in hooks.items()))
        self.load("m")
        self.wait(20, lambda: self.lines("good.json") and web.bodies("/ok") and web.bodies("/slack"))
        self.wait(20, lambda: len(web.bodies("/then/500,200")) == 2)
        # Killed after 10 seconds, with what they started, or given up by the client.
        self.wait(30, lambda: [name for name, in self.rows("SELECT hook FROM alert_delivery WHERE attempts > 0"
                                                           " ORDER BY hook")] ==
                  ["bad", "close", "flood", "hang", "none", "stuck"])
        errors = dict(self.rows("SELECT hook, error FROM alert_delivery"))
        for name, words in (("bad", "it ended with code 3: it broke"), ("close", "no answer"),
                            ("flood", "took too long"), ("hang", "within the time"), ("none", "No such file"),
                            ("stuck", "took too long")):
            self.assertIn(words, errors[name])
        child = int(pathlib.Path(self.folder, "child").read_text())
        self.wait(5, lambda: not os.path.exists(f"/proc/{child}") or
                  ") Z" in pathlib.Path(f"/proc/{child}/stat").read_text())
        self.wait(5, lambda: self.rows("SELECT count FROM refusal WHERE reason = 'undelivered'") == [(2,)])
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=5) as page:
            self.assertIn('inferstat_collector_rejected_total{reason="undelivered"} 2\n', page.read().decode())
        self.assertTrue(self.said("hook redirect: alert 1 (loaded, firing) is not delivered: the answer has the code 302"))
        self.assertTrue(self.said("hook missing: alert 1 (loaded, firing) is not delivered: the answer has the code 404"))
        self.assertEqual(web.bodies("/ok")[0], web.bodies("/huge")[0])
        self.assertEqual(len(web.bodies("/huge")), 1)
        told, = self.lines("good.json")
        self.assertEqual(told, json.loads(web.bodies("/ok")[0]))
        self.assertEqual((told["event"], told["rule"], told["model"], told["host"], told["severity"]),
                         ("firing", "loaded", "m", HOSTILE, "warning"))
        self.assertIn("&lt;!channel&gt;", json.loads(web.bodies("/slack")[0])["text"])
        self.assertNotIn("\x1b", json.loads(web.bodies("/slack")[0])["text"])
        for _, headers, _, _ in web.requests:
            self.assertEqual(set(headers), {"Host", "User-Agent", "Accept", "Content-Type", "Content-Length"})
        self.assertFalse(os.path.exists("x") or os.path.exists(f"{self.folder}/x"))
        self.assertLess(self.stop(), 5)

    def test_restart(self):
        """Calls that hang when the collector ends are made again, others are not."""
        web = self.serve()
        good = self.script("good", f"cat >>{self.folder}/good.json")
        slow = self.script("slow", f"cat >>{self.folder}/slow.json; test -e {self.folder}/go || sleep 300")
        text = NO_OTHER + RULE + f"hook good: command {good}\nhook slow: command {slow}\n"
        self.start(text + f"hook web: webhook {web.url('/hang')}\nhook gone: webhook {web.url('/hang')}\n")
        self.load("m")
        self.wait(20, lambda: self.lines("good.json") and self.lines("slow.json") and len(web.requests) == 2)
        self.wait(5, lambda: len(self.rows("SELECT hook FROM alert_delivery")) == 3)
        self.assertLess(self.stop(), 5)
        self.assertEqual(self.rows("SELECT DISTINCT attempts FROM alert_delivery"), [(0,)])
        pathlib.Path(self.folder, "go").touch()
        self.start(text + f"hook web: webhook {web.url('/ok')}\n", every="1h")  # nothing is evaluated
        self.wait(20, lambda: len(self.lines("slow.json")) == 2 and web.bodies("/ok"))
        self.wait(5, lambda: not self.rows("SELECT hook FROM alert_delivery"))
        first, second = self.lines("slow.json")
        self.assertEqual(first, second)
        self.assertEqual(self.lines("good.json"), [first])
        self.assertEqual(json.loads(web.bodies("/ok")[0]), first)
        self.collector.kill()  # however it ends
        self.collector.wait()
        self.start(every="1s")
        time.sleep(3)
        self.assertEqual(len(self.lines("good.json")), 1)

    def test_reload(self):
        """After SIGHUP the hooks are those of the file."""
        one = self.script("one", f"cat >>{self.folder}/one.json")
        two = self.script("two", f"cat >>{self.folder}/two.json")
        self.start(NO_OTHER + RULE + f"hook one: command {one}\n")
        self.load("m1")
        self.wait(20, lambda: self.lines("one.json"))
        pathlib.Path(self.rules).write_text(NO_OTHER + RULE + f"hook two: command {two}\n")
        self.collector.send_signal(signal.SIGHUP)
        self.wait(20, lambda: self.said("were read again"))
        time.sleep(1.5)
        self.load("m2")
        self.wait(20, lambda: self.lines("two.json"))
        self.assertEqual([told["model"] for told in self.lines("one.json")], ["m1"])
        self.assertEqual([told["model"] for told in self.lines("two.json")], ["m2"])

    def test_from_the_condition_to_the_call(self):
        """Each of 240 alerts that begin at any time is told once, at most an interval and a second after its
        condition has held for its `for` at p99, less what the machine was late by in this time."""
        every, margin, held = 2, 1, 4
        command = self.script("timed", f"IFS= read -r told; printf '%s %s\\n' $EPOCHREALTIME \"$told\" "
                              f">>{self.folder}/calls", "bash")
        lateness = Lateness(f"{self.folder}/late")
        self.servers.append(lateness)  # ended with them
        self.start(NO_OTHER + RULE + RULE.replace("loaded", "held").replace("> 0", f"> 0 for {held}s") +
                   f"hook timed: command {command}\n", every=f"{every}s")
        began = {}
        for i in range(120):
            began["loaded", f"m{i}"] = time.time()
            began["held", f"m{i}"] = time.time() + held
            self.load(f"m{i}")
            time.sleep(0.12 + 0.01 * (i % 7))
        calls = pathlib.Path(self.folder, "calls")
        self.wait(60, lambda: calls.exists() and len(calls.read_text().splitlines()) >= len(began))
        took = {"loaded": [], "held": []}
        for line in calls.read_text().splitlines():
            at, _, told = line.partition(" ")
            alert = json.loads(told)
            since = began.pop((alert["rule"], alert["model"]))
            took[alert["rule"]].append((float(at) - since, lateness.between(since, float(at))))
        self.assertEqual(began, {})
        for rule, times in took.items():
            whole = sorted(seconds for seconds, _ in times)
            net = sorted(seconds - late for seconds, late in times)
            p99 = len(times) * 99 // 100
            print(f"{rule}, every {every} s: to the call p50 {whole[len(times) // 2]:.2f} s, p99 {whole[p99]:.2f} s"
                  f" ({net[p99]:.2f} s less what the machine was late by), least {whole[0]:.2f} s")
            self.assertLessEqual(net[p99], every + margin)

    def test_alertmanager(self):
        program = shutil.which("prometheus-alertmanager")
        if not program:
            skip("no prometheus-alertmanager (scripts/setup.sh --ci)")
        port = free_ports(1)
        config = pathlib.Path(self.folder, "alertmanager.yml")
        config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
        with open(f"{self.folder}/alertmanager.log", "w", encoding="utf-8") as log:
            manager = subprocess.Popen([program, f"--config.file={config}", f"--storage.path={self.folder}/am",
                                        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
                                       stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}/api/v2/alerts"

        def listed():
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    return json.load(answer)
            except OSError:
                return None
        try:
            self.wait(30, lambda: listed() is not None)
            self.start(NO_OTHER + RULE + f"hook am: webhook {url} as alertmanager\n")
            self.load("m", "other")
            self.wait(20, lambda: len(listed()) == 2)
            alert = next(alert for alert in listed() if alert["labels"]["model"] == "m")
            self.assertEqual(alert["labels"], {"alertname": "loaded", "severity": "warning", "model": "m",
                                               "host": HOSTILE})
            self.assertEqual(alert["status"]["state"], "active")
            # It ends there by itself in four minutes, and is told again each minute.
            ends = datetime.datetime.fromisoformat(alert["endsAt"][:19] + "+00:00").timestamp() - time.time()
            self.assertTrue(180 < ends <= 240, ends)
            self.assertTrue(re.match(r"warning: loaded of model m, host h", alert["annotations"]["summary"]))
            firing, = self.rows("SELECT firing_ns FROM alert WHERE model = 'm'")[0]
            self.assertIn(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(firing // 10**9)), alert["startsAt"])
            # A hook that comes later, or comes up again, is told all open alerts at once.
            web = self.serve()
            pathlib.Path(self.rules).write_text(NO_OTHER + RULE + f"hook am: webhook {url} as alertmanager\n"
                                                f"hook late: webhook {web.url('/ok')} as alertmanager\n")
            self.collector.send_signal(signal.SIGHUP)
            self.wait(20, lambda: web.bodies("/ok"))
            told = json.loads(web.bodies("/ok")[0])
            self.assertEqual(sorted(alert["labels"]["model"] for alert in told), ["m", "other"])
            # A rule that is gone ends its alerts, here as there.
            pathlib.Path(self.rules).write_text(NO_OTHER + f"hook am: webhook {url} as alertmanager\n")
            self.collector.send_signal(signal.SIGHUP)
            self.wait(20, lambda: listed() == [])
            self.assertFalse(self.said("am: alert"))
            # The delivery ends once its answer has been read, soon after it shows there.
            self.wait(20, lambda: self.rows("SELECT * FROM alert_delivery") == [])
        finally:
            manager.kill()
            manager.wait()


if __name__ == "__main__":
    check(os.path.exists(os.environ["INFERSTATD"]), "no collector")
    unittest.main()
