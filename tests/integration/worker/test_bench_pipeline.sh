#!/usr/bin/env bash
# scripts/bench_pipeline.sh: with several devices its figures are those of all of them; how
# many trials there are; samples go through the pool, also those of a file.
. "$(dirname "$0")/../../support/lib.sh"

source=${INFERSTAT_SOURCE-$(dirname "$0")/../../..}

measure() {
  "$source/scripts/bench_pipeline.sh" --build "$INFERSTAT_BUILD" --out "$WORK/bench" "$@"
}

# through_pool LINES BATCHES: each run had that many batches of 4 states, copied what was needed
# for them and took slots from the pool.
through_pool() {
  awk -F, -v expected="$1" -v batches="$2" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    {
      lines++
      states = $at["items_per_second"] * $at["duration_ns"] / 1e9
      inputs = $at["encoder"] == "basis" ? 1 : 2 ^ $at["qubits"]
      bytes = batches * 4 * ($at["type"] == "f32" ? 4 : 8) * inputs
      waits = $at["pool_starvation_ratio"]
      if (states < 4 * batches - 0.1 || states > 4 * batches + 0.1 || $at["bytes_h2d"] != bytes || waits == "") {
        printf "%s states, %s bytes of %s, pool waits \"%s\"\n", states, $at["bytes_h2d"], bytes, waits
        exit 1
      }
    }
    END { if (lines != expected) exit 1 }' "$WORK/bench/trials.csv" || fail "not the figures of all states through the pool"
}

expect_exit 0 measure --quick --device cpu:0,1 --trials 4
expect_text "$WORK/bench/report.md" "| device | cpu:0,1 |"
expect_text "$WORK/bench/report.md" "5 batches, 4 to 4 trials in turn"
through_pool 16 5 # two cells, both ways, four times
# Each line says what it holds for.
for name in trials cells; do
  head -n 1 "$WORK/bench/$name.csv" | grep -q ',date,commit,device,driver,cuda,encoder,type,from$' || fail "$name: columns"
  awk -F, 'NR == 1 { fields = NF } NF != fields { exit 1 }' "$WORK/bench/$name.csv" || fail "$name: fields"
  [ "$(sed 1d "$WORK/bench/$name.csv" | grep -cvE ',20[0-9-]+T[0-9:]+Z,[0-9a-f]*,cpu:0;1,[^,]*,[^,]*,amplitude,f64,pageable$')" -eq 0 ] ||
    fail "$name: not what it holds for"
done

# A copy that was not measured has a reason.  Of a bundle it names the commit, and the
# programs are those beside it.
mkdir -p "$WORK/bundle/bin" "$WORK/bundle/tests/bench"
cp "$source/scripts/bench_pipeline.sh" "$WORK/bundle/"
ln -s "$WORKER" "$INFERSTATD" "$WORK/bundle/bin/"
echo 0123456789ab >"$WORK/bundle/COMMIT"
bundled() {
  rm -rf "$WORK/bench"
  expect_exit 0 "$WORK/bundle/bench_pipeline.sh" --quick --device cpu --trials 1 --most 1 --qubits 8 --out "$WORK/bench"
}
bundled
expect_text "$WORK/bench/report.md" "| commit | 0123456789ab |"
expect_text "$WORK/bench/report.md" "| a copy on the host | not measured: $WORK/bundle/tests/bench/bench_encode is not there |"
printf '#!/bin/sh\necho "bench_encode: out of memory" >&2\nexit 4\n' >"$WORK/bundle/tests/bench/bench_encode"
chmod +x "$WORK/bundle/tests/bench/bench_encode"
bundled
expect_text "$WORK/bench/report.md" "| not measured: bench_encode failed: bench_encode: out of memory |"

for of in "amplitude f64" "basis f32"; do
  rm -rf "$WORK/bench"
  # shellcheck disable=SC2086
  set -- $of
  expect_exit 0 measure --quick --device cpu --from file --encoder "$1" --type "$2" --trials 1 --most 1 --qubits 8
  expect_text "$WORK/bench/report.md" "$of, samples from file, at most 5 batches"
  through_pool 2 5
  [ ! -e "$WORK/bench/input.npy" ] || fail "the file is still there"
done

expect_exit 2 measure --from memory
expect_text "$WORK/err" "--from memory: it is generator, pageable, pinned or file"
expect_exit 2 measure --trials 6 --most 4
expect_text "$WORK/err" "--most 4: fewer than --trials 6"
echo ok
