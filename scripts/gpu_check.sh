#!/usr/bin/env bash
# Runs the tests and benchmarks there are for a CUDA device, and writes one report: tests of
# its kernels, encodings, texts and small models of the real worker, and how near encoders, copies
# and the pipeline come to what the device itself reaches.
#
#   scripts/gpu_check.sh [--build DIR] [--out DIR] [--parts LIST] [--minutes N] [--quick]
#   scripts/gpu_check.sh --gate [--write]
#
#   --build DIR   a whole build with the CUDA back end (default build/release, which
#                 scripts/build.sh is asked to finish first); in a bundle of
#                 scripts/gpu_bundle.sh its own programs
#   --out DIR     where report.md, report.json and the logs go (default gpu-check-DATE); all but
#                 recorded data is also packed into DIR.tar.gz
#   --parts LIST  some of tests, llm, device, pipeline, zoo and sanitizer, which run in this order
#                 (default all)
#   --minutes N   the time there is, 8 minutes unless given: what does not fit is left out, and
#                 the report says so.  No command may take longer than 8 minutes.
#   --quick       small benchmarks, to see that they work: what they say is no figure
#   --gate        needs nvcc and no device: compiles the kernels for several devices, and compares
#                 registers, spills, stack and double-precision instructions with the limits in
#                 scripts/gpu/limits.csv; --write makes what it finds the limits
#
# Needs Python 3 and a driver, and no network: 580 or later for a build with CUDA 13, 525 or
# later with CUDA 12.  Where no device answers it says where it looked and exits 3; 1 where a
# test fails, 2 where there is nothing to run.  compute-sanitizer, and PyTorch with CUDA
# to compare with, are used where they are found.  The card's settings are left as they are.
# A goal that is missed is in the report; it fails nothing.  The report is written after every
# check; TERM or INT ends the check that runs, writes the report and exits with 128 + signal.
#
# report.json is one object, whose keys stay:
#   format      2; a change of what follows counts it up
#   date, commit, device, driver
#   emulated    true: the CUDA runtime was emulated on a CPU, and no time means anything
#   quick       whether it was asked for
#   minutes     the time there was
#   ended       true: it was ended before all checks had run, or still runs
#   checks      name, outcome (passed, skipped, "failed with CODE", "left out: WHY") and
#               seconds of each
#   goals       name, value, goal, bound (least or most) and verdict (reached, missed) of each
#   encode      what bench_device --json printed; null where it did not run, as the next seven
#   copies      bench_pipeline --json
#   timeline    test_cupti_gpu: the overlap timeline beside CUPTI's records
#   torch       bench_torch_encode.py
#   llm         the worker's own figures of the same text on each device
#   zoo         inferstat-worker zoo --json: small models one by one and in batches of 256
#   zoo_torch   scripts/zoo/race.py --json: the same batches beside graphs of PyTorch
#   gemm        inferstat-worker gemm --json
#   benchmarks  the cells of scripts/bench_pipeline.sh, with the name of their benchmark
set -euo pipefail

case ${1-} in
--help | -h)
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 0
  ;;
--gate)
  shift
  [ ! -f "$(dirname "$0")/COMMIT" ] || { echo 'gpu_check.sh: --gate needs the sources' >&2; exit 2; }
  set -- "$(dirname "$0")/gpu/gate.py" "$@"
  ;;
*) set -- "$(dirname "$0")/gpu/measure.py" "$@" ;;
esac
command -v python3 >/dev/null || { echo 'gpu_check.sh: python3 is needed' >&2; exit 2; }
exec python3 "$@"
