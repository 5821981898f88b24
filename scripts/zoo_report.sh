#!/usr/bin/env bash
# Runs all small models of inferstat-worker zoo, and writes the table of all as Markdown: every
# figure measured, beside the targets and the claims of the guide that they are made after.
#
#   scripts/zoo_report.sh [OPTION]...
#
#   --build DIR       a build (default build/release, which scripts/build.sh is asked to finish first)
#   --out DIR         where report.md, the objects that it is made of and store.db go
#                     (default zoo-report-DATE)
#   --collector ADDR  send the records to this collector, instead of one started for the run
#   --db FILE         store of the collector that is started (default store.db in --out)
#   --device D        default cpu
#   --threads N       default 2, or 1 where there is one processor
#   --batch LIST      batch sizes; the first is that of the times (default 1,8,32)
#   --python PROGRAM  for the times of ONNX Runtime and PyTorch, where it can import them
#                     (default python3)
#   --compress LIST   compressions (default "int8 int4 lowrank:0.9 prune:0.5"; "": none)
#   --quick           three models and few trials, to see that it works
#
# Every inference and load is in the store, and the table's rows as operations:
#   inferstat --db DIR/store.db operations --json
set -euo pipefail

say() {
  printf 'zoo_report.sh: %s\n' "$*" >&2
}

usage_error() {
  say "$* (see --help)"
  exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
build='' collector='' db='' device=cpu python=python3 quick=''
out=zoo-report-$(date -u +%Y%m%dT%H%M%SZ)
threads=$(nproc)
[ "$threads" -le 2 ] || threads=2
batch=1,8,32
compress="int8 int4 lowrank:0.9 prune:0.5"
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  --quick) quick=yes ;;
  --build | --out | --collector | --db | --device | --threads | --batch | --python | --compress)
    [ $# -ge 2 ] || usage_error "$1: a value is missing"
    declare "${1#--}=$2"
    shift
    ;;
  *) usage_error "$1: unknown option" ;;
  esac
  shift
done
[ -z "$collector" ] || [ -z "$db" ] || usage_error "--db: not with --collector"
[[ $threads =~ ^[1-9][0-9]*$ ]] || usage_error "--threads $threads: not a number"

if [ -z "$build" ]; then
  build=$root/build/release
  INFERSTAT_TARGET="inferstat-worker inferstatd zoo_probe" "$here/build.sh" release >&2
fi
worker=$build/bin/inferstat-worker
[ -x "$worker" ] || usage_error "$worker: is not there"
mkdir -p "$out"
out=$(cd "$out" && pwd)

private=$(mktemp -d)
pid=
leave() {
  local code=$?
  trap - EXIT
  if [ -n "$pid" ] && kill "$pid" 2>/dev/null; then
    wait "$pid" || true
  fi
  rm -rf "$private"
  exit "$code"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- The collector ----

if [ -z "$collector" ]; then
  collector=ipc://$private/c
  mkdir -m 0700 "$private/c"
  "$build/bin/inferstatd" --listen "$collector" --db "${db:-$out/store.db}" >"$out/collector.log" 2>&1 &
  pid=$!
  for _ in $(seq 200); do
    [ ! -S "$private/c/live" ] || break
    kill -0 "$pid" 2>/dev/null || {
      tail -n 3 "$out/collector.log" >&2
      say "the collector ended early"
      exit 4
    }
    sleep 0.05
  done
fi

# ---- The runs ----

# zoo NAME [OPTION]...: a run whose object is $out/NAME.json.
zoo() {
  local name=$1
  shift
  "$worker" --collector "$collector" --device "$device" --threads "$threads" zoo --json "$@" \
    >"$out/$name.json" 2>"$private/err" || {
    tail -n 1 "$private/err" >&2
    return 1
  }
}

few=() race=()
if [ -n "$quick" ]; then
  some="ds-cnn,FallDetect,GestureNet-Micro"
  few=(--model "$some" --trials 5 --warmups 1)
  race=(--rounds 2 --models "$some")
fi
say "models, batch sizes $batch"
zoo zoo "${few[@]}" --batch-size "$batch"
rm -f "$out"/compress-*.json
for how in $compress; do
  say "compression $how"
  zoo "compress-${how/:/-}" "${few[@]}" --compress "$how" || {
    say "compression $how is left out"
    rm -f "$out/compress-${how/:/-}.json"
  }
done

# The same networks in other programs, where the interpreter has them.
left_out() {
  say "times of ONNX Runtime and PyTorch are left out: $*"
  rm -f "$out/race.json"
}
probe=$build/tests/support/zoo/zoo_probe
if [ ! -x "$probe" ]; then
  left_out "$probe is not there"
else
  say "ONNX Runtime and PyTorch"
  code=0
  "$python" "$here/zoo/race.py" --program "$probe" --device "${device%%:*}" --threads "$threads" \
    --batch "${batch%%,*}" "${race[@]}" --json >"$out/race.json" 2>"$private/err" || code=$?
  case $code in
  0) ;;
  77) left_out "$python imports neither" ;;
  *) left_out "$(tail -n 1 "$private/err")" ;;
  esac
fi

commit=$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null) || commit=unknown
"$python" "$here/zoo/report.py" --commit "$commit" "$out" >"$out/report.md"
say "$out/report.md"
