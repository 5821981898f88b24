#!/usr/bin/env bash
# Packs what a machine with a GPU needs to check inferstat: programs, GPU tests and
# benchmarks, with the shared libraries they need, for a machine that has a driver and
# no more.
#
#   scripts/gpu_bundle.sh [--build DIR] [--models DIR] OUT
#
#   --build DIR    a whole build with the CUDA back end (default build/release, which
#                  scripts/build.sh is asked to finish first)
#   --models DIR   models for the tests of generation, which go along: those who run the
#                  bundle may have them then (default: none)
#   OUT            a folder that does not exist yet; run OUT/gpu_check.sh there.  OUT.tar.gz
#                  has the same in one file
#
# The C library, the loader and the driver's libraries are the machine's own, and so is
# cuBLAS where something opens it; all else goes along, for these programs alone: each is
# started by a script that sets LD_LIBRARY_PATH.  The driver has to know the CUDA that the
# build was made with: 580 or later for CUDA 13, 525 or later for CUDA 12.
set -euo pipefail

say() {
  printf 'gpu_bundle.sh: %s\n' "$*" >&2
}

build=
models=
out=
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  --build | --models)
    [ -n "${2-}" ] || { say "$1 needs a folder (see --help)"; exit 2; }
    [ "$1" = --build ] && build=$2 || models=$2
    shift 2
    ;;
  -*)
    say "unknown option: $1 (see --help)"
    exit 2
    ;;
  *)
    [ -z "$out" ] || { say "more than one place to put it (see --help)"; exit 2; }
    out=$1
    shift
    ;;
  esac
done
[ -n "$out" ] || { say "where to? (see --help)"; exit 2; }
out=${out%/}
[ ! -e "$out" ] || { say "$out: already exists (remove it, or name another)"; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)

if [ -z "$build" ]; then
  build=$here/build/release
  say "building all of inferstat with its CUDA back end: many minutes the first time, then seconds"
  "$here/scripts/build.sh" release >&2 || { say "no build to pack"; exit 2; }
fi
[ -d "$build" ] || { say "--build: $build: no such folder (see --help)"; exit 2; }
rest="build all of it, where nvcc is found: scripts/build.sh release -DINFERSTAT_CUDA=ON"
for program in bin/{inferstat,inferstatd,inferstat-worker} tests/bench/bench_{pipeline,device,encode} \
  tests/support/zoo/zoo_probe; do
  [ -x "$build/$program" ] || { say "$build/$program: not there ($rest)"; exit 2; }
done
shopt -s nullglob
tests=("$build"/tests/unit/*_gpu)
[ ${#tests[@]} -gt 0 ] || { say "$build: no tests for a GPU there ($rest)"; exit 2; }

# What cannot be finished does not stay.
finished=
trap '[ -n "$finished" ] || rm -rf "$out" "$out.tar.gz"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$out"/{bin,tests/bench,tests/support/zoo,lib,programs,gpu,scripts/zoo,server/workload/zoo}

# pack FOLDER PROGRAM...: what stands in FOLDER of the bundle starts the program with its libraries.
pack() {
  local folder=$1 program name up
  shift
  up=$(realpath -ms --relative-to="/$folder" /)
  for program in "$@"; do
    name=$(basename "$program")
    cp "$program" "$out/programs/"
    cat >"$out/$folder/$name" <<END
#!/bin/sh
bundle=\$(dirname "\$0")/$up
export LD_LIBRARY_PATH="\$bundle/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
exec "\$bundle/programs/$name" "\$@"
END
    chmod +x "$out/$folder/$name"
  done
}
pack bin "$build"/bin/{inferstat,inferstatd,inferstat-worker}
pack tests "${tests[@]}"
pack tests/bench "$build"/tests/bench/bench_{pipeline,device,encode}
pack tests/support/zoo "$build"/tests/support/zoo/zoo_probe
cp "$here"/scripts/{gpu_check.sh,bench_pipeline.sh,bench_torch_encode.py} "$out/"
cp "$here"/scripts/gpu/{measure,judge,report}.py "$out/gpu/"
cp "$here"/scripts/zoo/{race,torch_twin,zoo_text,zoo_values}.py "$out/scripts/zoo/"
cp -r "$here/server/workload/zoo/models" "$out/server/workload/zoo/"
git -C "$here" rev-parse --short=12 HEAD >"$out/COMMIT" 2>/dev/null || echo unknown >"$out/COMMIT"

# The libraries that programs need, and those these need, without what has to be the machine's.
programs=("$out"/programs/*)
strip --strip-unneeded "${programs[@]}" 2>/dev/null || true
needed=$(ldd "${programs[@]}" 2>&1 | sort -u) || { say "ldd fails: $(grep -v '=>' <<<"$needed" | tail -n 1)"; exit 1; }
missing=$(sed -n 's/^[[:space:]]*\(.*\) => not found$/\1/p' <<<"$needed" | paste -sd ' ')
if [ -n "$missing" ]; then
  say "not found here: $missing (set LD_LIBRARY_PATH to where they are)"
  exit 1
fi
own='/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|util|resolv|anl|nsl|cuda|nvidia[^/]*))[.]so'
awk -v own="$own" '$2 == "=>" && $3 !~ own { print $3 }' <<<"$needed" | sort -u |
  xargs -r cp -L -t "$out/lib"

if [ -n "$models" ]; then
  mkdir -p "$out/models"
  cp -r "$models"/stories260K*.gguf "$models/expected" "$models/tokenizer" "$models/vocab" \
    "$models"/stories3M*.gguf "$out/models/" 2>/dev/null || say "$models: not all models are there"
fi
size=$(du -sm "$out" | cut -f1)
say "$out: $size MB"
if [ "$size" -ge 60 ]; then
  say "$out: 60 MB or more: too large to carry"
  exit 1
fi
tar -czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")"
finished=yes
