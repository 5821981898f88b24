"""Runs the checks of gpu_check.sh, which says how it is called and what comes out."""

import argparse
import filecmp
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import report

PARTS = ("tests", "llm", "device", "pipeline", "zoo", "sanitizer")
COMMAND_MAX_S = 480
FINISH_S = 10  # for the last report and the archive
SKIPPED, LEFT_OUT = 77, 124
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# The tests with kernels; the others would say nothing there, or take too long.
SANITIZED = ("test_cuda_encode_gpu", "test_cuda_network_gpu", "test_cuda_tensors_gpu")
TOOLS = (("memcheck", ["--report-api-errors", "no"]), ("racecheck", []), ("synccheck", []))
ENCODERS = ("amplitude", "angle", "basis", "phase", "iqp-z", "iqp")

HERE = pathlib.Path(__file__).resolve().parent.parent  # scripts/, or the bundle


def say(text):
    print(f"gpu_check.sh: {text}", file=sys.stderr, flush=True)


def usage_error(text):
    say(f"{text} (see --help)")
    sys.exit(2)


class Ended(Exception):
    """A signal asked for the end; its number is the argument."""


def end(number, _frame):
    for other in SIGNALS:  # the report is not ended as well
        signal.signal(other, signal.SIG_IGN)
    raise Ended(number)


def read_options():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = usage_error
    parser.add_argument("--build")
    parser.add_argument("--out", default=time.strftime("gpu-check-%Y%m%dT%H%M%SZ", time.gmtime()))
    parser.add_argument("--parts", default=" ".join(PARTS))
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.parts = options.parts.replace(",", " ").split()
    for part in options.parts:
        if part not in PARTS:
            usage_error(f"--parts: '{part}' is none of {', '.join(PARTS)}")
    if not options.parts:
        usage_error("--parts: none is named")
    if not 0 < options.minutes < 1e6:
        usage_error(f"--minutes: {options.minutes:g} are none")
    return options


def stop(process):
    """Ends a command and whatever it started."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            pass


def run(argv, log, limit_s, stdout=None):
    """Runs a command, its output to `log`; returns its code, or LEFT_OUT after `limit_s`."""
    try:
        process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL,
                                   stdout=stdout or log, stderr=log, start_new_session=True)
    except OSError as error:
        log.write(f"{argv[0]}: {error.strerror}\n".encode())
        return 126
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        stop(process)
        return LEFT_OUT
    except Ended:
        stop(process)
        raise
    return code if code >= 0 else 128 - code


class Programs:
    """Where the programs are, and of which commit."""

    def __init__(self, build):
        bundled = HERE / "COMMIT"
        self.rest = "build all of it, where nvcc is found: scripts/build.sh release -DINFERSTAT_CUDA=ON"
        if not build and bundled.is_file():
            self.commit = bundled.read_text(encoding="utf-8").strip()
            self.build, self.tests, self.race = HERE, HERE / "tests", HERE / "scripts/zoo/race.py"
            self.rest = "the bundle is not whole: make another one with scripts/gpu_bundle.sh"
            if (HERE / "models").is_dir():
                os.environ["INFERSTAT_TEST_MODELS"] = str(HERE / "models")
        else:
            git = subprocess.run(["git", "-C", HERE, "rev-parse", "--short=12", "HEAD"], check=False,
                                 capture_output=True, text=True) if shutil.which("git") else None
            self.commit = git.stdout.strip() if git and git.returncode == 0 else "unknown"
            self.build = pathlib.Path(build) if build else self.make()
            if not self.build.is_dir():
                usage_error(f"--build: {self.build}: no such folder")
            self.build = self.build.resolve()
            self.tests, self.race = self.build / "tests/unit", HERE / "zoo/race.py"
        self.worker = self.build / "bin/inferstat-worker"
        bench = self.build / "tests/bench"
        self.device, self.pipeline = bench / "bench_device", bench / "bench_pipeline"
        self.zoo_probe = self.build / "tests/support/zoo/zoo_probe"
        for program in (self.worker, self.build / "bin/inferstatd", self.device, self.pipeline,
                        self.zoo_probe):
            if not os.access(program, os.X_OK):
                say(f"{program}: not there ({self.rest})")
                sys.exit(2)
        self.gpu_tests = sorted(self.tests.glob("*_gpu"))
        if not self.gpu_tests:
            say(f"{self.tests}: no tests for a GPU there ({self.rest})")
            sys.exit(2)

    @staticmethod
    def make():
        say("building all of inferstat with its CUDA back end: many minutes the first time, then seconds")
        if subprocess.run([HERE / "build.sh", "release"], stdout=sys.stderr, check=False).returncode:
            say("no build to check")
            sys.exit(2)
        return HERE.parent / "build/release"


def output_of(argv):
    """Returns the code and all output of a small command; 127 where there is none such."""
    try:
        done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              check=False)
    except FileNotFoundError:
        return 127, f"{argv[0]}: not there"
    except (OSError, subprocess.TimeoutExpired) as error:
        return 126, str(error)
    return done.returncode, done.stdout.strip()


def say_where_the_driver_was_looked_for():
    ldconfig = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    code, libraries = output_of([ldconfig or "ldconfig", "-p"])
    found = [line.strip() for line in libraries.splitlines() if "libcuda.so" in line]
    say(f"ldconfig -p | grep libcuda.so: {'; '.join(found) or ('nothing' if code == 0 else libraries)}")
    _, devices = output_of(["nvidia-smi", "-L"])
    say(f"nvidia-smi -L: {devices or 'nothing'}")
    say(f"LD_LIBRARY_PATH: {os.environ.get('LD_LIBRARY_PATH') or 'not set'}; "
        f"CUDA_VISIBLE_DEVICES: {os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')}")


def open_device(programs, device):
    """Returns what the smallest thing says that has to open it."""
    code, said = output_of([programs.worker, "--no-report", "--device", device, "encode", "--encoder",
                            "basis", "--qubits", "1", "--batch-size", "1", "--batches", "1"])
    return "" if code == 0 else said or "failed"


def find_device(programs):
    """Returns the facts of the report that a device tells, and how many there are up to two."""
    code, said = output_of([programs.worker, "--version"])
    if code != 0:
        say(f"{programs.worker} does not start here: {said.splitlines()[0] if said else code}")
        sys.exit(2)
    why = re.search("no device answers.*", open_device(programs, "cuda"))
    if why:
        say_where_the_driver_was_looked_for()
        say(f"{why.group()}: nothing to check here")
        sys.exit(3)
    device, driver = "unknown", "unknown"
    # nvidia-smi knows cards; which of them are to be used, or which part, the runtime alone does.
    devices = 1 if "numbered from 0" in open_device(programs, "cuda:1") else 2
    code, said = output_of(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    if code == 0:
        cards = [line.rpartition(", ") for line in said.splitlines()]
        device = ";".join(card[0] or card[2] for card in cards)
        driver = cards[0][2] if cards and cards[0][0] else driver
    elif code != 127:
        say(f"nvidia-smi fails: {said.splitlines()[0] if said else code}")
    _, said = output_of([programs.device, "--device", "cuda", "--quick", "--json"])
    quick = re.search(r'^\{.*"product": "([^"]*)".*$', said, re.M)
    product = quick.group(1) if quick else ""
    emulated = product.startswith("Emulated device")
    if emulated:
        found = re.search(r'"driver": "([^"]*)"', quick.group())
        driver = found.group(1) if found else driver
    if emulated or (product and (devices == 1 or device == "unknown")):
        device = product
    say(f"{device}, driver {driver}")
    if emulated:
        say("emulated on a CPU: no time below means anything")
    return {"device": device, "driver": driver, "emulated": emulated}, devices


class Session:
    """The checks of one run, within the time there is."""

    def __init__(self, options, programs, facts, out, began):
        self.quick, self.programs, self.facts, self.out = options.quick, programs, facts, out
        self.end = began + 60 * options.minutes - FINISH_S
        self.checks, self.failed = [], False

    def report(self, ended):
        report.write(self.out, self.facts, self.checks, ended)

    def note(self, name, outcome, seconds):
        self.checks.append({"name": name, "outcome": outcome, "seconds": round(seconds)})
        say(f"{name}: {outcome}")
        self.report(True)

    def check(self, name, estimate_s, commands, after=None):
        """Runs commands until one fails, then `after`, which returns what is wrong or None.

        A command is a list of words, or a pair of one and the file its output goes to.
        """
        left = self.end - time.monotonic()
        if left < (1 if self.quick else estimate_s):
            self.note(name, f"left out: some {estimate_s} s are needed, {max(0, left):.0f} are left", 0)
            return
        began, code, ended = time.monotonic(), 0, None
        limit = min(left, COMMAND_MAX_S)
        with open(self.out / f"{name}.log", "wb") as log:
            try:
                for command in commands:
                    argv, to = command if isinstance(command, tuple) else (command, None)
                    rest = max(1, began + limit - time.monotonic())
                    if to:
                        with open(to, "wb") as file:
                            code = run(argv, log, rest, file)
                    else:
                        code = run(argv, log, rest)
                    if code != 0:
                        break
                wrong = after() if code == 0 and after else None
                if wrong:
                    log.write(f"{wrong}\n".encode())
                    code = 1
            except Ended as signalled:
                ended = signalled
        seconds = time.monotonic() - began
        if ended:
            self.note(name, f"left out: ended after {seconds:.0f} s", seconds)
            raise ended
        self.note(name, self.outcome(name, code, limit), seconds)

    def outcome(self, name, code, limit):
        if code == SKIPPED:
            return "skipped"
        if code == 0:
            return "passed"
        if code == LEFT_OUT and limit < COMMAND_MAX_S:
            return f"left out: not done in the {limit:.0f} s that were left"
        self.failed = True
        text = (self.out / f"{name}.log").read_text(errors="replace").splitlines()
        print("\n".join(text[-20:]), file=sys.stderr)
        return f"failed with {code}" + (f": not done in {limit} s" if code == LEFT_OUT else "")


def worker(session, device, *words):
    return [session.programs.worker, "--no-report", "--device", device, *words]


def encode_all(session, device):
    """Through the pipeline to what the reference says."""
    size = ["--qubits", "5", "--batch-size", "7", "--batches", "3"] if session.quick else [
        "--qubits", "12", "--batch-size", "20", "--batches", "10"]
    return [worker(session, device, "encode", "--encoder", encoder, "--type", kind, "--from", source,
                   *size, "--check")
            for encoder in ENCODERS for kind in ("f64", "f32")
            for source in ("generator", "pageable", "pinned")]


def texts(session, model, tokens):
    """What the worker makes of a model on each device, and its figures."""
    requests = "1" if session.quick else "5"
    commands = []
    for device in ("cpu", "cuda"):
        llm = worker(session, device, "llm", "--model", model, "--tokens", str(tokens))
        commands.append((llm, session.out / f"text.{device}"))
        commands.append(([*llm, "--requests", requests, "--json"], session.out / f"llm.{device}.json"))
    return commands


def check_tests(session, devices):
    for test in session.programs.gpu_tests:
        session.check(test.name, 20, [[test]])
    session.check("worker_encode", 40, encode_all(session, "cuda"))
    if devices > 1:
        session.check("worker_encode_devices", 40, encode_all(session, "cuda:0,1"))
    trained = pathlib.Path(os.environ.get("INFERSTAT_TEST_MODELS", "/nowhere")) / "stories260K.gguf"
    if trained.is_file():  # of a trained model greedy choices do not hang on the last bit

        def same():
            cpu, cuda = session.out / "text.cpu", session.out / "text.cuda"
            if cpu.stat().st_size > 0 and filecmp.cmp(cpu, cuda, shallow=False):
                return None
            return f"{cpu} and {cuda} differ, or are empty"

        session.check("worker_text", 10, texts(session, trained, 60), same)


def check_llm(session):
    """Loads and tokens a second, of a model of random weights: 84 MB, more than a cache has."""
    model = session.out / "random.gguf"
    shape, tokens = ("tiny", 4) if session.quick else ("42m", 200)
    make = [session.programs.worker, "make-model", "--force", "--shape", shape, "--type", "f16", model]
    try:
        session.check("worker_llm", 40, [make, *texts(session, model, tokens)])
    finally:
        model.unlink(missing_ok=True)


def quick_of(session):
    return ["--quick"] if session.quick else []


def check_device(session):
    """Encoders beside a copy within the device, and beside PyTorch's where that is."""
    session.check("device_encode", 40,
                  [[session.programs.device, "--device", "cuda", "--json", *quick_of(session)]])
    session.check("torch_encode", 40,
                  [[sys.executable, HERE / "bench_torch_encode.py", *quick_of(session)]])


def check_pipeline(session):
    """Beside a bare loop of copies, in one process; then before and after, from pinned memory."""
    session.check("pipeline_copies", 20,
                  [[session.programs.pipeline, "--device", "cuda", "--json", *quick_of(session)]])
    cells = ["--batch", "64", "--prefetch", "16", "--batches", "50", "--trials", "3", "--most", "5"]
    for name, words in (("amplitude", ("--encoder", "amplitude", "--qubits", "12 16")),
                        ("iqp", ("--encoder", "iqp", "--qubits", "12 16")),
                        ("amplitude_f32", ("--encoder", "amplitude", "--type", "f32", "--qubits", "16"))):
        out = session.out / f"pipeline_{name}"
        session.check(out.name, 40, [[
            HERE / "bench_pipeline.sh", "--build", session.programs.build, "--device", "cuda", *words,
            "--from", "pinned", *(quick_of(session) or cells), "--out", out]])


def check_zoo(session):
    """Small models: their outputs, batches of 256 beside PyTorch's graphs, and products of matrices."""
    few = ["--trials", "2", "--warmups", "1"] if session.quick else ["--trials", "20"]
    model = ["--model", "ds-cnn"] if session.quick else []
    batches = "1,4" if session.quick else "1,256"
    session.check("zoo_models", 60, [worker(session, "cuda", "zoo", "--batch-size", batches, *model,
                                            *few, "--json")])
    session.check("zoo_outputs", 60, [[session.programs.zoo_probe, "check", batches.split(",")[1],
                                       "cuda", *model[1:]]])
    race = [sys.executable, session.programs.race, "--device", "cuda", "--without", "onnx",
            "--program", session.programs.zoo_probe, "--batch", batches.split(",")[1], "--json"]
    session.check("zoo_torch", 60, [[*race, "--rounds", "1", "--models", "ds-cnn"] if session.quick
                                    else [*race, "--rounds", "5"]])
    sizes = ["--sizes", "64"] if session.quick else ["--sizes", "256,1000,1024,4096"]
    session.check("gemm", 60, [worker(session, "cuda", "gemm", "--type", "all", *sizes, *few, "--json")])


def check_sanitizer(session):
    found = shutil.which("compute-sanitizer")
    if not found:
        session.check("sanitizer", 0, [["sh", "-c", "echo compute-sanitizer is not there; exit 77"]])
        return
    for tool, words in TOOLS:
        for test in session.programs.gpu_tests:
            if test.name in SANITIZED:
                session.check(f"{test.name}.{tool}", 60,
                              [[found, "--tool", tool, "--target-processes", "all",
                                "--error-exitcode", "1", *words, test]])


def pack(out):
    """Everything but recorded data, as one file beside the folder."""
    archive = out.with_name(out.name + ".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(out, out.name, filter=lambda info: None if ".db" in info.name else info)
    say(f"{out / 'report.md'}, all of it in {archive}")


def main():
    began = time.monotonic()
    for number in SIGNALS:
        signal.signal(number, end)
    options = read_options()
    code, session = 0, None
    try:
        programs = Programs(options.build)
        facts, devices = find_device(programs)
        out = pathlib.Path(options.out)
        out.mkdir(parents=True, exist_ok=True)
        out = out.resolve()
        session = Session(options, programs, {"commit": programs.commit, **facts,
                                              "quick": options.quick, "minutes": options.minutes},
                          out, began)
        session.report(True)
        for part, work in (("tests", lambda: check_tests(session, devices)),
                           ("llm", lambda: check_llm(session)),
                           ("device", lambda: check_device(session)),
                           ("pipeline", lambda: check_pipeline(session)),
                           ("zoo", lambda: check_zoo(session)),
                           ("sanitizer", lambda: check_sanitizer(session))):
            if part in options.parts:
                work()
        session.report(False)
        code = 1 if session.failed else 0
    except Ended as ended:
        code = 128 + ended.args[0]
        say(f"ended by signal {ended.args[0]}")
    if session:
        pack(session.out)
    sys.exit(code)


if __name__ == "__main__":
    main()
