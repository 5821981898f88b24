#!/usr/bin/env python3
"""The metrics of a real collector with records of real engines: what Prometheus scrapes from it
is what SQLite and `inferstat avg` say, also over a restart, every query of the Grafana dashboard
has an answer, and neither clearing nor an import nor a scraper that hangs makes them wrong.

Without Debian's `prometheus` the parts that need it are skipped, with a notice at the end.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "support")]
from programs import check, free_ports, has_report, skip  # noqa: E402

BUILD = pathlib.Path(os.environ["INFERSTAT_BUILD"])
SOURCE = pathlib.Path(os.environ["INFERSTAT_SOURCE"])
COLLECTOR, WORKER, CLIENT = (os.environ[name] for name in ("INFERSTATD", "WORKER", "INFERSTAT"))
ENGINE = BUILD / "tests/support/fleet_engine"
NVML = BUILD / "tests/support/nvml/libfake_nvml.so"
HOSTILE = 'gpu "01"\\x'  # a host's name
TOKEN = "0123456789abcdef0123456789abcdef"
UTILISATION = "inferstat_device_gpu_util_ratio{host='alpha',device='cuda:0'}"
# Panels that are empty while nothing is wrong.
MAY_BE_EMPTY = {"Alerts", "PCIe lanes missing", "Uncorrected ECC errors", "Left out of the metrics",
                "Records lost by reason", "Records lost by host"}


class Scene:
    """A folder, and the programs that run in it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.db = self.folder / "store.db"
        (self.folder / "c").mkdir(mode=0o750)
        self.address = f"ipc://{self.folder}/c"
        self.port = free_ports(2)
        self.running = {}
        self.tls = None

    def start(self, name, *command, **environment):
        run = self.folder / ("run-" + re.sub(r"\W", "_", name))
        run.mkdir(mode=0o700, exist_ok=True)
        with open(self.folder / f"{len(self.running)}.log", "ab") as log:
            self.running[name] = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "INFERSTAT_COLLECTOR": self.address, "HOME": str(self.folder),
                     "XDG_RUNTIME_DIR": str(self.folder), "INFERSTAT_RUN_DIR": str(run),
                     "INFERSTAT_SPOOL": f"{run}-spool", **environment})

    def stop(self, name):
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
        check(code == 0 or name == "prometheus", f"{name} ended with {code}")

    def end(self):
        for process in self.running.values():
            process.kill()
            process.wait()
        for log in self.folder.glob("*.log"):
            check(not has_report(log.read_text(errors="replace")), f"a sanitizer's report: {log}")

    def start_collector(self, *options):
        self.start("collector", COLLECTOR, "--listen", self.address, "--db", self.db, "--metrics",
                   f"127.0.0.1:{self.port}", *options)
        wait_until(20, lambda: self.get("/health")[0] == 200, "the collector is healthy")

    def get(self, path, **headers):
        """The status and text of a page; (0, why) where nobody answers."""
        scheme = "https" if self.tls else "http"
        request = urllib.request.Request(f"{scheme}://127.0.0.1:{self.port}{path}",
                                         headers={key.replace("_", "-"): value
                                                  for key, value in headers.items()})
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.tls) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def sql(self, statement):
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True, timeout=20) as db:
            return db.execute(statement).fetchone()[0]

    def client(self, *words):
        return subprocess.run([CLIENT, "--collector", self.address, *words], text=True, check=True,
                              capture_output=True, timeout=60).stdout


def wait_until(seconds, holds, what):
    deadline = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < deadline, f"not within {seconds} s: {what}")
        time.sleep(0.1)


def total(page, family):
    """The sum of a family's samples."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
               if re.match(re.escape(family) + r"[ {]", line))


def page_of(scene, **headers):
    code, page = scene.get("/metrics", **headers)
    check(code == 200, f"/metrics: {code}: {page[:200]}")
    return page


def make_records(scene):
    """Two simulated hosts, one of them with devices, and a real worker's models."""
    for name in ("alpha", HOSTILE):
        scene.start(f"engine {name}", ENGINE, "--token-ms", 5, "--tokens", 8, "--devices", 2,
                    INFERSTAT_HOST=name)
    if NVML.exists():
        (scene.folder / "devices").write_text("gpu all util 90\ngpu 0 throttle 4\n")
        scene.start("watch", WORKER, "watch", INFERSTAT_HOST="alpha", INFERSTAT_TEST_NVML=str(NVML),
                    INFERSTAT_TEST_NVML_SCRIPT=str(scene.folder / "devices"))
    model = scene.folder / "tiny.gguf"
    subprocess.run([WORKER, "make-model", "--shape", "tiny", "--type", "f32", model], check=True,
                   capture_output=True)
    scene.start("llm", WORKER, "llm", "--model", model, "--prompt", "a", "--tokens", 8, "--requests",
                40, "--rate", 5)
    scene.start("zoo", WORKER, "zoo", "--model", "ds-cnn", "--trials", 200)


def end_engines(scene):
    for name in ("llm", "zoo"):
        check(scene.running.pop(name).wait(60) == 0, f"{name} failed")
    for name in [name for name in scene.running if name.startswith(("engine", "watch"))]:
        scene.stop(name)


def expect_sqlite(scene):
    """Waits until the page has all records, and compares it with the store."""
    wait_until(20, lambda: total(page_of(scene), "inferstat_requests_total") ==
               scene.sql("SELECT count(*) FROM inference"), "all requests are counted")
    page = page_of(scene)
    for family, statement in {
            "inferstat_output_tokens_total": "SELECT total(generated_tokens) FROM inference",
            "inferstat_prompt_tokens_total": "SELECT total(prompt_tokens) FROM inference",
            "inferstat_items_total": "SELECT total(items) FROM inference",
            "inferstat_request_errors_total": "SELECT count(*) FROM inference WHERE finish = 3",
            "inferstat_loads_total": "SELECT count(*) FROM load",
            "inferstat_request_duration_seconds_count": "SELECT count(*) FROM inference",
            "inferstat_request_time_to_first_token_seconds_count":
                "SELECT count(ttft_ns) FROM inference",
            "inferstat_request_time_per_output_token_seconds_count":
                "SELECT count(tpot_ns) FROM v_inference"}.items():
        check(total(page, family) == scene.sql(statement), f"{family}: {total(page, family)}")
    for family, column in {"inferstat_request_duration_seconds_sum": "e2e_ns",
                           "inferstat_request_time_to_first_token_seconds_sum": "ttft_ns",
                           "inferstat_request_time_per_output_token_seconds_sum": "tpot_ns"}.items():
        expected = scene.sql(f"SELECT total({column}) / 1e9 FROM v_inference")
        check(abs(total(page, family) - expected) < 1e-6 * expected, f"{family}: {expected}")
    return page


# ---- Prometheus ---------------------------------------------------------------------------------


class Prometheus:
    """Debian's Prometheus, which scrapes the collector each second."""

    def __init__(self, scene):
        self.port = scene.port + 1
        config = scene.folder / "prometheus.yml"
        config.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: inferstat\n"
                          f"    static_configs: [{{targets: ['127.0.0.1:{scene.port}']}}]\n")
        scene.start("prometheus", "prometheus", f"--config.file={config}",
                    f"--storage.tsdb.path={scene.folder}/tsdb",
                    f"--web.listen-address=127.0.0.1:{self.port}")
        wait_until(60, lambda: self.value("up") == 1, "Prometheus scrapes the collector")

    def ask(self, query, at=None):
        words = {"query": query} if at is None else {"query": query, "time": at}
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode(words)
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                raise  # it is not ready yet
            raise AssertionError(f"{query}: {error.read().decode()}") from error

    def time_of(self, name):
        """The time of the newest scrape that has the metric."""
        return float(self.ask(f"{name}[1m]")[0]["values"][-1][0])

    def value(self, query, at=None):
        """The value of the only series; None where there is none."""
        try:
            result = self.ask(query, at)
        except OSError:
            return None
        return float(result[0]["value"][1]) if len(result) == 1 else None


def dashboard_queries():
    """Each panel's title and queries, as Grafana sends them with nothing chosen."""
    dashboard = json.loads((SOURCE / "scripts/grafana_dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$host", ".*").replace("$model", ".*")
            query = query.replace("$__rate_interval", "1m")
            check("$" not in query, f"a variable that the test does not know: {query}")
            yield panel["title"], query
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            yield variable["name"], f"count by ({match[2]}) ({match[1]})"


def check_dashboard(prometheus):
    seen = {}
    for title, query in dashboard_queries():
        seen[title] = seen.get(title, 0) + len(prometheus.ask(query))
    devices = {"Utilisation", "Memory", "Temperature", "Kelvin below slowdown", "Power",
               "Output tokens per joule", "Throttled", "SM clock", "Processors busy",
               "Memory available", "Memory pressure"}
    may_be_empty = MAY_BE_EMPTY if NVML.exists() else MAY_BE_EMPTY | devices
    empty = {title for title, count in seen.items() if count == 0} - may_be_empty
    check(len(seen) > 45 and not empty, f"panels without data: {empty}")


def mean_ns(scene, metric, *words):
    rows = json.loads(scene.client("--json", "avg", metric, *words))["rows"]
    return rows[0]["mean"], rows[0]["count"]


def check_prometheus(scene, prometheus):
    """What Prometheus has stored is what the store has."""
    wait_until(30, lambda: prometheus.value("sum(inferstat_requests_total)") ==
               scene.sql("SELECT count(*) FROM inference"), "Prometheus has all requests")
    for metric, family in {"ttft_ns": "request_time_to_first_token_seconds",
                           "e2e_ns": "request_duration_seconds",
                           "tpot_ns": "request_time_per_output_token_seconds"}.items():
        mean, count = mean_ns(scene, metric)
        found = prometheus.value(f"sum(inferstat_{family}_sum) / sum(inferstat_{family}_count)")
        check(abs(found * 1e9 - mean) < 1e-6 * mean, f"{metric}: {found} and {mean}")
        check(prometheus.value(f"sum(inferstat_{family}_bucket{{le='+Inf'}})") == count, family)
    mean, count = mean_ns(scene, "e2e_ns", "--host", HOSTILE)
    host = json.dumps(HOSTILE)
    check(prometheus.value(f"sum(inferstat_requests_total{{host={host}}})") == count, "hostile host")
    p95 = json.loads(scene.client("--json", "avg", "ttft_ns"))["rows"][0]["p95"] / 1e9
    edges = [0, 0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5]
    found = prometheus.value("histogram_quantile(0.95, sum by (le)"
                             " (inferstat_request_time_to_first_token_seconds_bucket))")
    # Of the bucket that has it, or beside an edge of two: avg is within 1 %.
    below, above = (max(edge for edge in edges if edge <= p95 * 0.99),
                    min(edge for edge in edges if edge >= p95 * 1.01))
    check(below <= found <= above, f"p95 {found}, of avg {p95}")
    wait_until(20, lambda: prometheus.value("sum(inferstat_stored_records_total)") ==
               scene.sql("SELECT sum(stored) FROM run"), "stored records")
    check(prometheus.value("min(inferstat_coverage_ratio)") == 1, "coverage")
    for name in ("inference", "load", "device_sample"):
        check(prometheus.value(f"inferstat_collector_records_total{{kind='{name}'}}") ==
              scene.sql(f"SELECT count(*) FROM {name}"), name)
    wait_until(20, lambda: not prometheus.ask(UTILISATION), "an ended sampler says nothing of now")


def check_devices(scene, prometheus):
    """While its sampler runs, a device has the figures of a sample."""
    wait_until(20, lambda: prometheus.ask(UTILISATION), "utilisation")
    check(scene.sql("SELECT count(*) FROM v_device_sample WHERE device = 'cuda:0' AND gpu_util_ratio"
                    f" = {prometheus.value(UTILISATION)}") > 0, "utilisation of a sample")
    check(prometheus.value("inferstat_device_throttled{device='cuda:0'}") == 1, "throttled")


def check_restart(scene, prometheus, seconds):
    """What increases over a restart of the collector is what was stored after it, exactly."""
    families = {"requests_total": "count(*)", "output_tokens_total": "total(generated_tokens)",
                "request_duration_seconds_count": "count(*)",
                "collector_records_total{kind='inference'}": "count(*)"}
    last = scene.sql("SELECT max(id) FROM inference")
    began = prometheus.time_of("process_start_time_seconds")
    scene.stop("collector")
    scene.start_collector()
    run_engine(scene, seconds)
    for family, statement in families.items():
        stored = scene.sql(f"SELECT {statement} FROM inference WHERE id > {last}")
        name = f"inferstat_{family}"
        wait_until(20, lambda: prometheus.value(f"sum({name})") == stored, f"{name} is {stored}")
        # From one scrape to another, so that Prometheus has nothing to extrapolate.
        ended = prometheus.time_of("process_start_time_seconds")
        found = prometheus.value(f"sum(increase({name}[{round((ended - began) * 1000)}ms]))", ended)
        check(stored > 0 and abs(found - stored) < 1e-6, f"{name}: {found} and {stored}")


def check_promtool(page):
    """Prometheus's own rules for metrics."""
    done = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, capture_output=True)
    check(done.returncode == 0 and not done.stderr, f"promtool: {done.stdout}{done.stderr}")


# ---- The rest --------------------------------------------------------------------------------------


def check_formats(scene):
    plain = page_of(scene)
    openmetrics = page_of(scene, Accept="application/openmetrics-text; version=1.0.0")
    check(openmetrics.endswith("# EOF\n") and "# EOF" not in plain, "only OpenMetrics has an end")
    names = [sorted(line.rsplit(" ", 1)[0] for line in page.splitlines() if not line.startswith("#"))
             for page in (plain, openmetrics)]
    check(names[0] == names[1], "the series of both formats have the same names")
    check(scene.get("/")[0] == 404 and scene.get("/metrics/x")[0] == 404, "other pages")


def run_engine(scene, seconds=2):
    subprocess.run([ENGINE, "--seconds", str(seconds), "--token-ms", "5", "--tokens", "8", "--devices", "2"],
                   check=True, timeout=60,
                   env={**os.environ, "INFERSTAT_COLLECTOR": scene.address, "INFERSTAT_HOST": "alpha",
                        "INFERSTAT_RUN_DIR": str(scene.folder / "run-llm"),
                        "INFERSTAT_SPOOL": str(scene.folder / "run-llm-spool")})


def open_slow_connections(scene, request):
    """More than may be open, from several addresses."""
    slow = []
    for number in range(40):
        source = (f"127.0.0.{2 + number % 5}", 0)
        slow.append(socket.create_connection(("127.0.0.1", scene.port), source_address=source))
        slow[-1].sendall(request + b"\r\n" * (number % 2))
    return slow


def check_hung_scrapers(scene):
    """Scrapers that do not read, or never end their requests, hold up no other, nor ingest."""
    hung = open_slow_connections(scene, b"GET /metrics HTTP/1.1\r\nHost: a\r\n")
    began = time.monotonic()
    page_of(scene)
    check(time.monotonic() - began < 5, "a scrape waits for others")
    before = scene.sql("SELECT count(*) FROM inference")
    run_engine(scene)
    wait_until(10, lambda: scene.sql("SELECT count(*) FROM inference") > before + 10, "ingest goes on")
    expect_sqlite(scene)
    for one in hung:
        one.close()


def check_import(scene):
    """Imported records are not counted."""
    other = scene.folder / "other.db"
    subprocess.run([BUILD / "tests/support/make_history", other, "--hosts", "2", "--models", "2",
                    "--inferences", "100"], check=True, capture_output=True)
    scene.client("import", str(other))
    own = "FROM inference JOIN run USING(run) WHERE run.owner <> 0"
    check(scene.sql("SELECT count(*) FROM inference") > scene.sql(f"SELECT count(*) {own}") + 50,
          "there is something imported")
    time.sleep(7)  # until everything is read again
    page = page_of(scene)
    check(total(page, "inferstat_requests_total") == scene.sql(f"SELECT count(*) {own}"), "requests")
    check(total(page, "inferstat_stored_records_total") ==
          scene.sql("SELECT sum(stored) FROM run WHERE owner <> 0"), "stored records")


def check_parts(scene):
    """Where hosts and losses cannot be read, the rest still is."""
    with sqlite3.connect(scene.db, timeout=20) as db:
        index = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'range_dropped'").fetchone()[0]
        db.execute("DROP INDEX range_dropped")
    time.sleep(7)
    before = page_of(scene)
    run_engine(scene)
    wait_until(10, lambda: total(page_of(scene), "inferstat_collector_commits_total") >
               total(before, "inferstat_collector_commits_total"), "the collector's figures go on")
    stopped = "inferstat_collector_refreshed_timestamp_seconds"
    check(total(page_of(scene), stopped) == total(before, stopped), "not all was read")
    with sqlite3.connect(scene.db, timeout=20) as db:
        db.execute(index)
    wait_until(10, lambda: total(page_of(scene), stopped) > total(before, stopped), "all is read")
    with sqlite3.connect(scene.db, timeout=20) as db:  # the same of requests and loads
        db.execute("ALTER TABLE load RENAME TO hidden")
        db.execute("UPDATE run SET kernel = 'renamed'")
    wait_until(15, lambda: 'kernel="renamed"' in page_of(scene),
               "hosts are read")
    with sqlite3.connect(scene.db, timeout=20) as db:
        db.execute("ALTER TABLE hidden RENAME TO load")


def check_clear(scene):
    """Clearing lowers no counter."""
    before = page_of(scene)
    subprocess.run([CLIENT, "--collector", scene.address, "clear", "--host", HOSTILE, "--yes"], check=True,
                   capture_output=True, timeout=60)
    check(scene.sql("SELECT count(*) FROM v_inference WHERE host LIKE 'gpu%'") == 0, "cleared")
    time.sleep(1.5)
    after = page_of(scene)
    for family in ("inferstat_requests_total", "inferstat_output_tokens_total", "inferstat_loads_total"):
        check(total(after, family) == total(before, family), f"{family} was lowered")


def make_secrets(scene, token, name):
    """Files for options --metrics-token, -certificate and -key."""
    secret, certificate, key = (scene.folder / file for file in ("token", "cert.pem", "key.pem"))
    for path in (secret, key):
        path.touch(0o600)
    secret.write_text(token + "\n")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
                    f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                    certificate], check=True, capture_output=True)
    return secret, certificate, key


def answer_to(scene, token):
    return scene.get("/metrics", Authorization=f"Bearer {token}")[0]


def check_protected(scene):
    """A token and TLS, and that SIGHUP replaces them, all or none."""
    secret, certificate, key = make_secrets(scene, TOKEN, "first")
    scene.stop("collector")
    scene.tls = ssl.create_default_context(cafile=certificate)
    scene.start_collector("--metrics-token", secret, "--metrics-certificate", certificate,
                          "--metrics-key", key)
    check(scene.get("/metrics")[0] == 401, "without a token")
    check(answer_to(scene, TOKEN[:-1] + "x") == 401, "a wrong token")
    check(answer_to(scene, TOKEN) == 200, "the token")
    context, scene.tls = scene.tls, None
    check(scene.get("/health")[0] == 0, "plain HTTP on a port with TLS")
    scene.tls = context
    check(scene.get("/health") == (200, "ok\n"), "health needs no token")
    began = time.monotonic()
    slow = open_slow_connections(scene, b"\x16\x03\x01")
    check(answer_to(scene, TOKEN) == 200 and time.monotonic() - began < 5, "slow handshakes")
    for one in slow:
        one.close()

    first = key.read_text()
    make_secrets(scene, TOKEN[::-1], "second")
    right = key.read_text()
    for wrong in "nonsense", first:
        key.write_text(wrong)
        scene.running["collector"].send_signal(signal.SIGHUP)
        time.sleep(2)
        check(answer_to(scene, TOKEN) == 200, "a wrong key changes nothing")
    key.write_text(right)
    scene.running["collector"].send_signal(signal.SIGHUP)
    wait_until(10, lambda: scene.get("/health")[0] == 0, "the old certificate is gone")
    scene.tls = ssl.create_default_context(cafile=certificate)
    check(answer_to(scene, TOKEN) == 401 and answer_to(scene, TOKEN[::-1]) == 200, "the new token")


def main():
    has_prometheus = shutil.which("prometheus") and shutil.which("promtool")
    with tempfile.TemporaryDirectory(prefix="inferstat-", dir="/tmp") as folder:
        scene = Scene(folder)
        try:
            scene.start_collector()
            prometheus = Prometheus(scene) if has_prometheus else None
            make_records(scene)
            time.sleep(10)
            if prometheus:
                check_dashboard(prometheus)
            if prometheus and NVML.exists():
                check_devices(scene, prometheus)
            end_engines(scene)
            page = expect_sqlite(scene)
            if prometheus:
                check_promtool(page)
                check_prometheus(scene, prometheus)
            check_formats(scene)
            check_hung_scrapers(scene)
            check_import(scene)
            check_parts(scene)
            check_clear(scene)
            if prometheus:
                check_restart(scene, prometheus, 1)
                check_restart(scene, prometheus, 5)  # counters end above those of before
            check_protected(scene)
            scene.stop("collector")
        finally:
            scene.end()
    if not has_prometheus:
        skip("no prometheus here: all but what Prometheus makes of the metrics was tested")


if __name__ == "__main__":
    main()
