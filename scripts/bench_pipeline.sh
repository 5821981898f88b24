#!/usr/bin/env bash
# Measures the streaming pipeline by the encode workload: waiting for whole streams now
# and then (before) against reusing slots behind their own events (after).
#
#   scripts/bench_pipeline.sh [OPTION]...
#
#   --build DIR     a build (default build/release, which scripts/build.sh is asked to
#                   finish first); in a bundle of scripts/gpu_bundle.sh its own programs
#   --out DIR       where report.md, cells.csv, trials.csv and store.db go
#                   (default bench-pipeline-DATE)
#   --encoder E     default amplitude
#   --type T        f64 (default) or f32
#   --from F        where samples come from: pageable (default; memory, copied into the pool's
#                   slots), generator (computed into them), file (a .npy file of at most 1 GB,
#                   written before, in the page cache, read into them; needs python3) or pinned
#                   (memory that is copied from directly: the pool has nothing to do, and its
#                   columns are empty)
#   --device D      default auto
#   --qubits LIST   default "12 16 20 24"
#   --batch LIST    default "16 64 256 1024"
#   --prefetch LIST default "8 64"
#   --batches N     launches of a trial, default 200; from a file at most as many as it has
#   --trials N      of each cell at least, default 5, before and after in turn
#   --most N        of each cell at most, default 15, or as many as --trials where that is
#                   more: trials end when the medians of both are known to 3 % (half the
#                   interval of the median, 1.57 IQR / sqrt(trials))
#   --full          run also cells that take more than 1/8 of the host's memory or, by
#                   what the warm-up shows, more than 60 seconds a trial; otherwise they
#                   are listed as left out
#   --quick         two small cells, to see that it works
#
# Lines of the CSV files end with what they hold for: date, commit, device, driver, cuda,
# encoder, type and where samples come from.  Every trial is a process of its own whose records are in store.db, of host "before" or
# "after", for inferstat compare and export.  Yardsticks of the same run: the speed of a
# copy (bench_encode).
set -euo pipefail

say() {
  printf 'bench_pipeline.sh: %s\n' "$*" >&2
}

usage_error() {
  say "$* (see --help)"
  exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
build=
out=bench-pipeline-$(date -u +%Y%m%dT%H%M%SZ)
encoder=amplitude type=f64 from=pageable device=auto
qubits_list="12 16 20 24" batch_list="16 64 256 1024" prefetch_list="8 64"
batches=200 trials=5 most='' usual_most=15 full=
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  --full) full=yes ;;
  --quick) qubits_list="8 10" batch_list=4 prefetch_list=8 batches=5 trials=2 usual_most=3 ;;
  --build | --out | --encoder | --type | --from | --device | --qubits | --batch | --prefetch | \
    --batches | --trials | --most)
    [ $# -gt 1 ] || usage_error "$1 needs a value"
    case $1 in
    --build) build=$2 ;;
    --out) out=$2 ;;
    --encoder) encoder=$2 ;;
    --type) type=$2 ;;
    --from) from=$2 ;;
    --device) device=$2 ;;
    --qubits) qubits_list=$2 ;;
    --batch) batch_list=$2 ;;
    --prefetch) prefetch_list=$2 ;;
    --batches) batches=$2 ;;
    --trials) trials=$2 ;;
    --most) most=$2 ;;
    esac
    shift
    ;;
  *) usage_error "unknown option: $1" ;;
  esac
  shift
done
case $from in
generator | pageable | pinned) ;;
file) command -v python3 >/dev/null || usage_error "--from file: python3, which writes it, is not there" ;;
*) usage_error "--from $from: it is generator, pageable, pinned or file" ;;
esac
if [ -z "$most" ]; then
  most=$((trials > usual_most ? trials : usual_most))
elif [ "$most" -lt "$trials" ]; then
  usage_error "--most $most: fewer than --trials $trials"
fi

# A bundle has no history, but the name of its commit beside this script.
commit=$(cat "$here/COMMIT" 2>/dev/null || git -C "$here" rev-parse --short HEAD 2>/dev/null || true)
if [ -z "$build" ] && [ -f "$here/COMMIT" ]; then # a bundle
  build=$here
elif [ -z "$build" ]; then
  build=$here/../build/release
  say "building inferstat: some minutes the first time, then seconds"
  INFERSTAT_TARGET="inferstat inferstatd inferstat-worker bench_encode" "$here/build.sh" release >&2
fi
[ -d "$build" ] || usage_error "--build: $build: no such folder"
for program in inferstat-worker inferstatd; do
  [ -x "$build/bin/$program" ] || usage_error "--build: $build/bin/$program: not there"
done
worker=$build/bin/inferstat-worker
mkdir -p "$out"
sockets=$(mktemp -d /tmp/inferstat-bench.XXXXXX)
collector=
input=$out/input.npy
leave() {
  if [ -n "$collector" ] && kill "$collector" 2>/dev/null; then
    wait "$collector" || true
  fi
  rm -rf "$sockets"
  rm -f "$input"
}
trap leave EXIT
trap 'exit 130' INT TERM

"$build/bin/inferstatd" --listen "ipc://$sockets" --db "$out/store.db" >"$out/inferstatd.log" 2>&1 &
collector=$!

# value NAME PATTERN FILE: the first of that name in a JSON object, which is that of all
# devices: those of each follow it.
value() {
  awk -v key="\"$1\": " -v pattern="^$2" '{
    at = index($0, key)
    rest = substr($0, at + length(key))
    if (at && match(rest, pattern)) print substr(rest, 1, RLENGTH)
    if (at) exit
  }' "$3"
}

# figure NAME FILE: that number; empty for null.
figure() {
  value "$1" '[0-9.e+-]+' "$2"
}

word() {
  value "$1" '"[^"]*"' "$2" | tr -d '"'
}

# encode SYNC QUBITS BATCH PREFETCH BATCHES [HOST]: one run, its object in
# $sockets/run.json.
encode() {
  local host=after source=(--from "$from")
  [ "$1" = events ] || host=before
  [ "$from" != file ] || source=(--input "$input")
  # A private cache: device bandwidth measured while other runs disturb it must not be reused.
  INFERSTAT_HOST=${6-$host} XDG_CACHE_HOME="$sockets/cache" "$worker" --collector "ipc://$sockets" --spool "$sockets/spool" \
    --device "$device" encode --encoder "$encoder" --type "$type" "${source[@]}" --sync "$1" \
    --qubits "$2" --batch-size "$3" --prefetch "$4" --batches "$5" --json \
    >"$sockets/run.json" 2>"$sockets/run.err"
}

host_memory=$(awk '/^MemTotal:/ {print $2 * 1024}' /proc/meminfo)
real=8
[ "$type" = f64 ] || real=4

# inputs_of QUBITS: the numbers of a sample.
inputs_of() {
  case $encoder in
  amplitude) echo $((1 << $1)) ;;
  basis) echo 1 ;;
  iqp) echo $(($1 * ($1 + 1) / 2)) ;;
  *) echo "$1" ;;
  esac
}

# Why a cell is left out, by its size; empty: it is not.
too_large() {
  awk -v q="$1" -v b="$2" -v real="$real" -v inputs="$(inputs_of "$1")" -v memory="$host_memory" 'BEGIN {
    need = 2 * b * real * (inputs + 2 * 2 ^ q)
    if (need > memory / 8) printf "%.1f GB, more than 1/8 of memory", need / 1e9
  }'
}

# write_input QUBITS BATCH: the file of a cell, and $launches, the batches that it has.  Its
# numbers are random, since file systems may compress those that are alike.
write_input() {
  local inputs fit
  inputs=$(inputs_of "$1")
  fit=$(((1 << 30) / ($2 * real * inputs)))
  launches=$((fit < 1 ? 1 : fit < batches ? fit : batches))
  python3 - "$input" "$encoder" "$1" "$real" $(($2 * launches)) "$inputs" <<'PYTHON'
import array, os, random, sys
path, encoder, qubits, real, samples, inputs = *sys.argv[1:3], *map(int, sys.argv[3:])
shape = {"descr": f"<f{real}", "fortran_order": False, "shape": (samples, inputs)}
header = str(shape).ljust(117).encode() + b"\n"
left, block = samples * inputs, 1 << 20
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    while left > 0:
        count = min(left, block)
        if encoder == "basis":  # indices of states that both types represent
            indices = random.choices(range(2 ** min(qubits, 24)), k=count)
            numbers = array.array("d" if real == 8 else "f", indices)
        else:  # the highest byte 0x3f: positive, and less than 2
            numbers = bytearray(os.urandom(count * real))
            numbers[real - 1 :: real] = b"\x3f" * count
        file.write(numbers)
        left -= count
    file.flush()
    os.fsync(file.fileno())
PYTHON
}

too_slow() {
  local rate
  encode events "$1" "$2" "$3" 4 warm-up || return 0
  rate=$(figure items_per_second "$sockets/run.json")
  awk -v rate="${rate:-0}" -v items="$(($2 * launches))" 'BEGIN {
    if (rate > 0 && items / rate > 60) printf "%.0f s a trial", items / rate
  }'
}

columns="qubits,batch,prefetch,sync,trial,items_per_second,item_p50_ns,item_p95_ns,item_p99_ns"
columns+=",pool_starvation_ratio,overlap_ratio,exposed_copy_ns,copy_starved_ns,copy_busy_ns"
columns+=",compute_busy_ns,fill_ns,bytes_h2d,duration_ns"
held=",date,commit,device,driver,cuda,encoder,type,from"
printf '%s\n' "$columns$held" >"$out/trials.csv"

cuda=$(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p' || true)
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null) || driver=
driver=${driver%%$'\n'*}
date=$(date -u +%FT%TZ)

# What a line holds for: no field has a comma, which several devices have.
held_for() {
  local device
  device=$(word device "$sockets/run.json")
  printf ',%s' "$date" "$commit" "${device//,/;}" "${driver//,/;}" "$cuda" "$encoder" "$type" "$from"
}
: >"$sockets/left_out"

# keep SYNC QUBITS BATCH PREFETCH TRIAL: the run as a line of trials.csv.
keep() {
  local line="$2,$3,$4,$1,$5" name
  for name in $(cut -d, -f6- <<<"$columns" | tr , ' '); do
    line+=",$(figure "$name" "$sockets/run.json")"
  done
  printf '%s\n' "$line$(held_for)" >>"$out/trials.csv"
}

# steady QUBITS BATCH PREFETCH: whether the throughput of both ways is known to 3 %.
steady() {
  awk -F, -v q="$1" -v b="$2" -v p="$3" '
    $1 == q && $2 == b && $3 == p { values[$4, ++count[$4]] = $6 + 0 }
    function at(sync, n, share,   place, below, above) {
      place = 1 + share * (n - 1)
      below = int(place)
      above = below < n ? below + 1 : below
      return values[sync, below] + (values[sync, above] - values[sync, below]) * (place - below)
    }
    END {
      for (sync in count) {
        n = count[sync]
        for (i = 2; i <= n; i++)
          for (j = i; j > 1 && values[sync, j] < values[sync, j - 1]; j--) {
            swap = values[sync, j]; values[sync, j] = values[sync, j - 1]; values[sync, j - 1] = swap
          }
        median = at(sync, n, 0.5)
        if (median <= 0 || 1.57 * (at(sync, n, 0.75) - at(sync, n, 0.25)) / sqrt(n) > 0.03 * median)
          exit 1
      }
    }' "$out/trials.csv"
}

run_cell() {
  local trial sync
  encode events "$1" "$2" "$3" 4 warm-up || true
  for trial in $(seq "$most"); do
    if [ "$trial" -gt "$trials" ] && steady "$1" "$2" "$3"; then
      return 0
    fi
    for sync in periodic events; do
      if ! encode "$sync" "$1" "$2" "$3" "$launches"; then
        printf '%s qubits, batch %s, prefetch %s: %s\n' "$1" "$2" "$3" \
          "$(tail -n 1 "$sockets/run.err")" >>"$sockets/left_out"
        return 0
      fi
      keep "$sync" "$1" "$2" "$3" "$trial"
    done
  done
}

for qubits in $qubits_list; do
  for batch in $batch_list; do
    launches=$batches
    large=
    [ -n "$full" ] || large=$(too_large "$qubits" "$batch")
    [ "$from" != file ] || [ -n "$large" ] || write_input "$qubits" "$batch"
    for prefetch in $prefetch_list; do
      why=$large
      [ -n "$full$why" ] || why=$(too_slow "$qubits" "$batch" "$prefetch")
      if [ -n "$why" ]; then
        printf '%s qubits, batch %s, prefetch %s: %s\n' "$qubits" "$batch" "$prefetch" "$why" \
          >>"$sockets/left_out"
        continue
      fi
      say "$qubits qubits, batch $batch, prefetch $prefetch"
      run_cell "$qubits" "$batch" "$prefetch"
    done
  done
done

# ---- Report ----

# The median over the trials of each cell and way, and the throughput of the slowest 5 %.
awk -F, -v OFS=, -v held="$held" -v held_for="$(held_for)" \
  -v rest=,item_p50_ns,item_p95_ns,item_p99_ns,pool_starvation_ratio,overlap_ratio,exposed_copy_ns,copy_starved_ratio,interval_ratio '
  NR == 1 {
    print "qubits,batch,prefetch,sync,trials,median_items_per_second,slow_items_per_second" rest held
    next
  }
  {
    key = $1 OFS $2 OFS $3 OFS $4
    if (!(key in count)) order[++cells] = key
    n = ++count[key]
    for (i = 6; i <= 12; i++) values[key, i, n] = $i
    values[key, 13, n] = $13 != "" && $18 > 0 ? $13 / $18 : ""
  }
  # Between the two that a share of the way from the first to the last falls between.
  function between(sorted, n, share,   place, below, above) {
    place = 1 + share * (n - 1)
    below = int(place)
    above = below < n ? below + 1 : below
    return sorted[below] + (sorted[above] - sorted[below]) * (place - below)
  }
  # share "interval": half the interval of the median, relative.
  function ranked(key, column, share,   n, i, j, swap, sorted) {
    n = 0
    for (i = 1; i <= count[key]; i++)
      if (values[key, column, i] != "") sorted[++n] = values[key, column, i] + 0
    if (n == 0) return ""
    for (i = 2; i <= n; i++)
      for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--) {
        swap = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = swap
      }
    if (share == "interval") {
      i = between(sorted, n, 0.5)
      if (n < 2 || i <= 0) return ""
      return 1.57 * (between(sorted, n, 0.75) - between(sorted, n, 0.25)) / sqrt(n) / i
    }
    if (share == 0.5) return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
    i = int(share * n + 0.999999)
    return sorted[i < 1 ? 1 : i]
  }
  END {
    for (c = 1; c <= cells; c++) {
      line = order[c] OFS count[order[c]] OFS ranked(order[c], 6, 0.5) OFS ranked(order[c], 6, 0.05)
      for (i = 7; i <= 13; i++) line = line OFS ranked(order[c], i, 0.5)
      print line OFS ranked(order[c], 6, "interval") held_for
    }
  }' "$out/trials.csv" >"$out/cells.csv"

# The speed of a copy on the host, or why it is unknown.
copy_speed() {
  local bench=$build/tests/bench/bench_encode
  if [ ! -x "$bench" ]; then
    printf 'not measured: %s is not there' "$bench"
  elif ! "$bench" --json --quick >"$sockets/bench.json" 2>"$sockets/bench.err"; then
    printf 'not measured: bench_encode failed: %s' "$(tail -n 1 "$sockets/bench.err")"
  else
    awk -v r="$(figure copy_bytes_per_second "$sockets/bench.json")" 'BEGIN {
      if (r > 0) printf "%.1f GB/s read and written", r / 1e9
      else print "not measured: bench_encode names no copy_bytes_per_second"
    }'
  fi
}
copy_speed=$(copy_speed)

{
  printf '# The pipeline, before and after\n\n'
  printf '| | |\n|---|---|\n'
  printf '| date | %s |\n| version | %s |\n| commit | %s |\n' "$date" \
    "$("$worker" --version)" "${commit:-unknown}"
  printf '| device | %s |\n' "$(word device "$sockets/run.json")"
  printf '| processor | %s, %s threads |\n' \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)"
  printf '| driver, CUDA | %s, %s |\n' "${driver:-none}" "${cuda:-none}"
  printf '| workload | %s %s, samples from %s, %s%s batches, %s to %s trials in turn |\n' "$encoder" "$type" \
    "$from" "$([ "$from" != file ] || echo "at most ")" "$batches" "$trials" "$most"
  printf '| a copy on the host | %s |\n\n' "$copy_speed"
  printf '"periodic" waits for whole streams now and then, "events" for the slot alone. Medians of the\n'
  printf 'trials; "slow" is the throughput that 95 %% of the trials reach, "+-" half the interval of its\n'
  printf 'median; "starved" the share of time in which no copy ran as no filled slot was ready.\n\n'
  printf '| qubits | batch | prefetch | sync | trials | states/s | +- | slow | p50 ms | p95 ms | p99 ms | pool waits | overlap | exposed copy ms | starved |\n'
  printf '|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n'
  awk -F, 'NR > 1 {
    printf "| %s | %s | %s | %s | %s | %.0f | %s | %.0f | %.2f | %.2f | %.2f | %s | %s | %.2f | %s |\n", $1, $2, $3,
      $4, $5, $6, $15 == "" ? "-" : sprintf("%.1f %%", 100 * $15), $7, $8 / 1e6, $9 / 1e6, $10 / 1e6,
      $11 == "" ? "-" : sprintf("%.3f", $11), $12 == "" ? "-" : sprintf("%.3f", $12), $13 / 1e6,
      $14 == "" ? "-" : sprintf("%.3f", $14)
  }' "$out/cells.csv"
  printf '\n| qubits | batch | prefetch | events / periodic |\n|---:|---:|---:|---:|\n'
  awk -F, 'NR > 1 {
    key = $1 " | " $2 " | " $3
    if ($4 == "periodic") before[key] = $6
    else if (before[key] > 0) printf "| %s | %.3f |\n", key, $6 / before[key]
  }' "$out/cells.csv"
  if [ -s "$sockets/left_out" ]; then
    printf '\nLeft out%s:\n\n' "${full:+ (they failed)}"
    sed 's/^/- /' "$sockets/left_out"
  fi
} >"$out/report.md"
say "$out/report.md"
[ "$(wc -l <"$out/cells.csv")" -gt 1 ] || {
  say "no cell was measured"
  exit 1
}
