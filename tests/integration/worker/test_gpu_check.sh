#!/usr/bin/env bash
# scripts/gpu_check.sh with tests that pass, fail and skip in place of those for a GPU, and
# the real worker on the CPU in place of a device: what it says, how it exits, and that its
# report can be read.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/inferstat-gpu-check.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export PATH="$folder/path:$PATH"
unset INFERSTAT_TEST_MODELS

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# A program that prints TEXT and exits with CODE.
program() { # PATH CODE TEXT
  mkdir -p "$(dirname "$1")"
  printf '#!/bin/sh\nprintf "%%s\\n" '"'%s'"'\nexit %s\n' "$3" "$2" >"$1"
  chmod +x "$1"
}

# A worker that starts, and can do nothing.
broken_worker() { # TEXT
  program "$folder/bundle/bin/inferstat-worker" 1 "$1"
  # shellcheck disable=SC2016 # a word of that script
  sed -i '1a [ "$1" = --version ] && exit 0' "$folder/bundle/bin/inferstat-worker"
}

# A bundle, as scripts/gpu_bundle.sh lays it out.
bundle() {
  rm -rf "${folder:?}/bundle"
  mkdir -p "$folder/bundle"/{bin,tests/bench,lib,models}
  cp -r "$root"/scripts/{gpu_check.sh,bench_pipeline.sh,bench_torch_encode.py,gpu} "$folder/bundle/"
  mkdir -p "$folder/bundle/scripts/zoo"
  cat >"$folder/bundle/scripts/zoo/race.py" <<'END'
import json
print(json.dumps({"models": [{"name": "ds-cnn", "torch_ratio": 1.5}],
                  "geometric_means": {"torch_ratio": 1.5}}))
END
  program "$folder/bundle/tests/support/zoo/zoo_probe" 1 'nothing works'
  ln -s "$INFERSTATD" "$folder/bundle/bin/inferstatd"
  broken_worker 'nothing works'
  program "$folder/bundle/tests/bench/bench_pipeline" 1 'nothing works'
  program "$folder/bundle/tests/bench/bench_device" 1 'nothing works'
  echo 0123456789ab >"$folder/bundle/COMMIT"
  program "$folder/path/nvidia-smi" 0 'A device'
  program "$folder/path/compute-sanitizer" 0 'no errors'
  printf '#!/bin/sh\nprintf "\\tlibcudart.so.13 => /lib/libcudart.so.13\\n\\tlibcuda.so.1 => /lib/libcuda.so.1\\n"\n' \
    >"$folder/path/ldconfig"
  chmod +x "$folder/path/ldconfig"
}

# The real worker and benchmark, for which the CPU is the device.
worker_on_cpu() {
  local name
  for name in bin/inferstat-worker tests/bench/bench_pipeline tests/bench/bench_device \
    tests/support/zoo/zoo_probe; do
    cat >"$folder/bundle/$name" <<END
#!/usr/bin/env bash
exec "$INFERSTAT_BUILD/$name" "\${@/#cuda/cpu}"
END
  done
  "$WORKER" make-model --shape tiny "$folder/bundle/models/stories260K.gguf" >/dev/null
}

check() { # EXPECTED CODE, ARGUMENT...
  local expected=$1 code=0
  shift
  "$folder/bundle/gpu_check.sh" --out "$folder/out" "$@" >"$folder/said" 2>&1 || code=$?
  [ "$code" -eq "$expected" ] || fail "exit code $code, not $expected: $(cat "$folder/said")"
}

# A PyTorch of two kinds of vectors that says how long its kernels took: a thousand samples
# of f64 a second, two thousand of f32.
make_torch() {
  mkdir -p "$folder/site"
  cat >"$folder/site/torch.py" <<'END'
import math, types

__version__ = "0"


class dtype:
    def __init__(self, bits):
        self.bits = bits


float64, float32, complex128, complex64 = dtype(64), dtype(32), dtype(128), dtype(64)


def finfo(real):
    return real


class Rows:
    def __init__(self, rows, kind):
        self.rows, self.kind, self.real = rows, kind, self

    def to(self, kind):
        if kind in (complex128, complex64):
            cuda.took += len(self.rows) / (1.0 if kind is complex128 else 2.0)
        return Rows(self.rows, kind)

    def per(self, other, what):
        other = other.rows if isinstance(other, Rows) else [[other]] * len(self.rows)
        pick = lambda row, i: row[i] if len(row) > 1 else row[0]
        return Rows([[what(x, pick(b, i)) for i, x in enumerate(a)]
                     for a, b in zip(self.rows, other)], self.kind)

    def __mul__(self, other):
        return self.per(other, lambda a, b: a * b)

    def __sub__(self, other):
        return self.per(other, lambda a, b: a - b)

    def __truediv__(self, other):
        return self.per(other, lambda a, b: a / b)

    def __getitem__(self, i):
        return Rows([self.rows[i]], self.kind)

    def square(self):
        return self * self

    def sum(self):
        return Rows([[sum(row)] for row in self.rows], self.kind)

    def sqrt(self):
        return Rows([[math.sqrt(x) for x in row] for row in self.rows], self.kind)

    def abs(self):
        return Rows([[abs(x) for x in row] for row in self.rows], self.kind)

    def max(self):
        return max(x for row in self.rows for x in row)


def rand(samples, columns, dtype, device):
    assert device == "cuda"
    return Rows([[(7 * i + 3 * j) % 10 / 10 + 0.05 for j in range(columns)] for i in range(samples)], dtype)


linalg = types.SimpleNamespace(vector_norm=lambda rows, dim, keepdim: rows.square().sum().sqrt())


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = cuda.took

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return end.at - self.at


cuda = types.SimpleNamespace(took=0.0, is_available=lambda: True, Event=Event,
                             get_device_name=lambda: "A device")
END
}

# What the report says of a check.
outcome() { # NAME
  python3 -c 'import json, sys
print({check["name"]: check["outcome"] for check in json.load(open(sys.argv[1]))["checks"]}[sys.argv[2]])' \
    "$folder/out/report.json" "$1"
}

bundle
program "$folder/bundle/tests/test_a_gpu" 0 ok
broken_worker 'inferstat-worker: device cuda: no device answers: none'
check 3
grep -q 'no device answers: none: nothing to check here' "$folder/said" || fail "says not why"
grep -q 'libcuda.so: libcuda.so.1 => /lib/libcuda.so.1$' "$folder/said" || fail "says not which libraries there are"
grep -q 'nvidia-smi -L: A device' "$folder/said" || fail "says not which devices there are"
program "$folder/bundle/bin/inferstat-worker" 127 'it wants a newer C library'
check 2
grep -q 'does not start here: it wants a newer C library' "$folder/said" || fail "says not what fails"

bundle
program "$folder/bundle/tests/test_a_gpu" 0 ok
program "$folder/bundle/tests/test_b_gpu" 77 'skipped: no models'
program "$folder/bundle/tests/test_cuda_encode_gpu" 0 ok
# shellcheck disable=SC2016 # words of that script
printf '#!/bin/sh\nprintf "%%s " "$@"\n' >"$folder/path/compute-sanitizer"
worker_on_cpu
make_torch
cat >"$folder/path/nvidia-smi" <<'END'
#!/bin/sh
case $1 in
--query-gpu=driver_version) printf '570.86\n570.86\n' ;;
*) printf 'A device, 570.86\nA device, 570.86\n' ;;
esac
END
PYTHONPATH=$folder/site check 0 --quick
python3 - "$folder/out/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["commit"] == "0123456789ab" and report["device"] == "A device;A device", report
outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
assert outcomes == {"test_a_gpu": "passed", "test_b_gpu": "skipped",
                    "test_cuda_encode_gpu": "passed", "test_cuda_encode_gpu.memcheck": "passed",
                    "test_cuda_encode_gpu.racecheck": "passed",
                    "test_cuda_encode_gpu.synccheck": "passed", "worker_encode": "passed", "worker_encode_devices": "passed",
                    "worker_text": "passed", "worker_llm": "passed",
                    "device_encode": "passed", "torch_encode": "passed",
                    "pipeline_copies": "passed", "pipeline_amplitude": "passed",
                    "pipeline_amplitude_f32": "passed", "pipeline_iqp": "passed",
                    "zoo_models": "passed", "zoo_outputs": "passed", "zoo_torch": "passed", "gemm": "passed"}, outcomes
assert report["emulated"] is False and report["encode"]["device"] == "cpu", report
goals = {goal["name"]: goal for goal in report["goals"]}
for name, kind in (("f64", 1000.0), ("f32", 2000.0)):
    ours = report["encode"][f"amplitude_{name}_states_per_second"]
    goal = goals[f"amplitude_{name}_ratio_to_torch"]
    assert abs(goal["value"] - ours / kind) < 1e-3 * goal["value"], goal
assert report["copies"]["ratio_to_bare_loop"] > 0, report
assert [batch["batch_size"] for batch in report["zoo"]["models"][0]["batches"]] == [1, 4], report
assert goals["zoo_ratio_to_torch"]["value"] == 1.5 and report["gemm"]["gemm"], report
cells = [(cell["benchmark"], cell["qubits"], cell["sync"]) for cell in report["benchmarks"]]
assert cells == [(name, qubits, sync)
                 for name in ("pipeline_amplitude", "pipeline_amplitude_f32", "pipeline_iqp")
                 for qubits in (8, 10) for sync in ("periodic", "events")], cells
assert all(cell["median_items_per_second"] > 0 for cell in report["benchmarks"]), report
assert {cell["commit"] for cell in report["benchmarks"]} == {"0123456789ab"}, report
assert {cell["driver"] for cell in report["benchmarks"]} == {"570.86"}, report
PY
grep -qx '| commit | 0123456789ab |' "$folder/out/pipeline_amplitude/report.md" ||
  fail "the pipeline's report does not name the bundle's commit"
grep -q '^| test_a_gpu | passed |' "$folder/out/report.md" || fail "no row in report.md"
grep -q '^| ds-cnn | 4 | [0-9]* | [0-9]* | 1.5 |$' "$folder/out/report.md" || fail "no small model in report.md"
grep -q '^| 10 | 4 | 8 | events |' "$folder/out/report.md" || fail "no benchmark in report.md"

grep -q -- '--tool memcheck .*--report-api-errors no .*test_cuda_encode_gpu $' \
  "$folder/out/test_cuda_encode_gpu.memcheck.log" || fail "memcheck reports calls that fail on purpose"
tar -tzf "$folder/out.tar.gz" >"$folder/said" || fail "no archive"
for name in report.md report.json test_a_gpu.log pipeline_iqp/cells.csv; do
  grep -qx "out/$name" "$folder/said" || fail "$name is not in the archive"
done
if grep -q '\.db' "$folder/said"; then fail "recorded data is in the archive"; fi

# What fails fails the check: a test, and a worker that does nothing, also where it does
# the same nothing on both devices.
bundle
program "$folder/bundle/tests/test_b_gpu" 1 'element 3 differs'
touch "$folder/bundle/models/stories260K.gguf"
check 1
grep -q 'element 3 differs' "$folder/said" || fail "does not show what failed"
for name in worker_encode worker_text worker_llm device_encode pipeline_copies pipeline_amplitude pipeline_iqp; do
  [ "$(outcome "$name")" = "failed with 1" ] || fail "$name: $(outcome "$name")"
done

# ---- Time ----

# A test that hangs, and one after it; eight seconds and the ten that the end takes.
bundle
printf '#!/bin/sh\necho hangs\nsleep 300\n' >"$folder/bundle/tests/test_a_gpu"
chmod +x "$folder/bundle/tests/test_a_gpu"
program "$folder/bundle/tests/test_b_gpu" 0 ok
worker_on_cpu
check 0 --quick --parts tests --minutes 0.3
grep -q '^left out: not done in the [0-9]* s that were left$' <<<"$(outcome test_a_gpu)" ||
  fail "a test that hangs: $(outcome test_a_gpu)"
grep -q '^left out: some 20 s are needed, 0 are left$' <<<"$(outcome test_b_gpu)" ||
  fail "no time left: $(outcome test_b_gpu)"
check 0 --parts tests --minutes 0.4
grep -q '^left out: some 20 s are needed, 1\?[0-9] are left$' <<<"$(outcome test_b_gpu)" ||
  fail "too little time: $(outcome test_b_gpu)"
check 2 --minutes 0
grep -q 'minutes: 0 are none' "$folder/said" || fail "takes no time at all for a time"

# Ended from outside: the report has what was done, and the test does not run on.
printf '#!/bin/sh\necho "$$" >%s/pid\nsleep 300\n' "$folder" >"$folder/bundle/tests/test_b_gpu"
program "$folder/bundle/tests/test_a_gpu" 0 ok
rm -rf "$folder/out" "$folder/out.tar.gz"
"$folder/bundle/gpu_check.sh" --out "$folder/out" --quick >"$folder/said" 2>&1 &
check_pid=$!
for _ in $(seq 200); do
  [ ! -s "$folder/pid" ] || break
  sleep 0.1
done
grep -q '^| test_a_gpu | passed |' "$folder/out/report.md" || fail "no report after the first check"
grep -q 'Ended before all checks had run' "$folder/out/report.md" || fail "passes for a whole report"
kill -TERM "$check_pid"
code=0
wait "$check_pid" || code=$?
[ "$code" -eq 143 ] || fail "exit code $code, not 143, after TERM: $(cat "$folder/said")"
for _ in $(seq 50); do # it is killed, and may take a moment to end
  kill -0 "$(cat "$folder/pid")" 2>/dev/null || break
  sleep 0.1
done
if kill -0 "$(cat "$folder/pid")" 2>/dev/null; then fail "a test runs on after the end"; fi
[ "$(outcome test_a_gpu)" = passed ] || fail "the report lost a check"
grep -q '^left out: ended after' <<<"$(outcome test_b_gpu)" || fail "ended: $(outcome test_b_gpu)"
tar -tzf "$folder/out.tar.gz" | grep -x out/report.json >"$folder/found" || fail "no archive after TERM"

# One device for the runtime, whatever nvidia-smi would say, which cannot.
bundle
program "$folder/bundle/tests/test_a_gpu" 0 ok
worker_on_cpu
# shellcheck disable=SC2016 # words of that script
sed -i '1a case "$*" in *cuda:1* | *cuda:0,1*) echo "device cuda:1: there is only 1 (numbered from 0)"; exit 4 ;; esac' \
  "$folder/bundle/bin/inferstat-worker"
program "$folder/path/nvidia-smi" 18 'Failed to initialize NVML'
rm "$folder/path/compute-sanitizer"
check 0 --quick --parts tests,sanitizer
grep -q 'nvidia-smi fails: Failed to initialize NVML' "$folder/said" || fail "says not that nvidia-smi fails"
grep -q worker_encode_devices "$folder/out/report.md" && fail "wants two devices where there is one"
command -v compute-sanitizer >/dev/null || [ "$(outcome sanitizer)" = skipped ] ||
  fail "says not that compute-sanitizer is not there"
check 2 --parts ,
grep -q 'none is named' "$folder/said" || fail "checks nothing and says nothing"

# ---- What is not there ----

# says COMMAND... WORDS: it exits with 2, and says so.
says() {
  local words=${*: -1} code=0
  "${@:1:$#-1}" >"$folder/said" 2>&1 || code=$?
  [ "$code" -eq 2 ] || fail "exit code $code, not 2, for: $words: $(cat "$folder/said")"
  grep -qF -- "$words" "$folder/said" || fail "says not '$words': $(cat "$folder/said")"
}

bundle
says "$folder/bundle/gpu_check.sh" "no tests for a GPU there (the bundle is not whole: make another one"
rm "$folder/bundle/tests/bench/bench_device"
says "$folder/bundle/gpu_check.sh" "bench_device: not there (the bundle is not whole"
mkdir "$folder/empty"
for script in gpu_check.sh "gpu_bundle.sh $folder/new" bench_pipeline.sh; do
  read -ra words <<<"$script"
  says "$root/scripts/${words[0]}" --build "$folder/typo" "${words[@]:1}" "--build: $folder/typo: no such folder"
  says "$root/scripts/${words[0]}" --build "$folder/empty" "${words[@]:1}" ": not there"
done
says python3 "$root/scripts/bench_encode_peers.py" --build "$folder/typo" "--build: $folder/typo: no such folder"
says python3 "$root/scripts/bench_encode_peers.py" --build "$folder/empty" "bin/inferstat-worker: not there"
[ ! -e "$folder/typo" ] || fail "a build where there was none"
# As scripts/run.sh leaves a build: programs, and no more.
mkdir -p "$folder"/empty/{bin,tests/bench,tests/unit}
for name in inferstat inferstatd inferstat-worker; do
  cp "$(type -P true)" "$folder/empty/bin/$name"
done
for script in gpu_check.sh "gpu_bundle.sh $folder/new"; do
  read -ra words <<<"$script"
  says "$root/scripts/${words[0]}" --build "$folder/empty" "${words[@]:1}" \
    "(build all of it, where nvcc is found: scripts/build.sh release -DINFERSTAT_CUDA=ON)"
done
mkdir -p "$folder/empty/tests/support/zoo"
for name in bench/bench_pipeline bench/bench_device bench/bench_encode support/zoo/zoo_probe; do
  cp "$(type -P true)" "$folder/empty/tests/$name"
done
says "$root/scripts/gpu_bundle.sh" --build "$folder/empty" "$folder/new" "no tests for a GPU there (build all of it"
says "$root/scripts/gpu_bundle.sh" --build "$folder/empty" "$folder/empty" "already exists"
[ ! -e "$folder/new" ] || fail "leaves half a bundle behind"

# Without --build, what is not whole is built: here by a script that copies one.
mkdir -p "$folder/tree/scripts" "$folder/tree/server/workload/zoo"
cp -r "$root"/scripts/{gpu_check.sh,gpu_bundle.sh,bench_pipeline.sh,bench_torch_encode.py,gpu,zoo} "$folder/tree/scripts/"
cp -r "$root/server/workload/zoo/models" "$folder/tree/server/workload/zoo/"
cp "$(type -P true)" "$folder/empty/tests/unit/test_a_gpu"
cat >"$folder/tree/scripts/build.sh" <<END
#!/usr/bin/env bash
[ "\$*" = release ] && mkdir -p "$folder/tree/build" && cp -r "$folder/empty" "$folder/tree/build/release"
END
chmod +x "$folder/tree/scripts/build.sh"
"$folder/tree/scripts/gpu_bundle.sh" "$folder/new" >"$folder/said" 2>&1 || fail "no bundle: $(cat "$folder/said")"
[ -x "$folder/new/tests/test_a_gpu" ] || fail "what was built is not in the bundle"
grep -q 'building all of inferstat' "$folder/said" || fail "builds, and says nothing"
rm -rf "$folder/tree/build"
"$folder/tree/scripts/gpu_check.sh" --out "$folder/out3" --parts tests --quick >"$folder/said" 2>&1 || true
grep -qF '| test_a_gpu | passed |' "$folder/out3/report.md" || fail "what was built is not checked: $(cat "$folder/said")"
program "$folder/tree/scripts/build.sh" 1 'broken'
says "$folder/tree/scripts/gpu_check.sh" "no build to check"
says "$folder/tree/scripts/gpu_bundle.sh" "$folder/new2" "no build to pack"
echo ok
