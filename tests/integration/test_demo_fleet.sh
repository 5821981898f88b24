#!/usr/bin/env bash
# scripts/demo_fleet.sh: what its simulated hosts go through is seen by the client's commands, and
# nothing of it stays.
. "$(dirname "$0")/../support/lib.sh"

[ -f "$INFERSTAT_BUILD/tests/support/nvml/libfake_nvml.so" ] || skip "no simulated devices"
export INFERSTAT_BIN=$INFERSTAT_BUILD/bin TMPDIR=$WORK

expect_exit 2 "$INFERSTAT_SOURCE/scripts/demo_fleet.sh" 17
expect_exit 2 "$INFERSTAT_SOURCE/scripts/demo_fleet.sh" --seconds
expect_exit 0 "$INFERSTAT_SOURCE/scripts/demo_fleet.sh" 3 --seconds 40
for host in 1 2 3; do
  [ "$(grep -c "^gpu-$host  cuda:" "$WORK/out")" -ge 8 ] || fail "devices of gpu-$host are missing"
done
grep -q '^gpu-2 .*cuda:3 .* throttling: software thermal' "$WORK/out" || fail "no device throttles"
grep -q '^gpu-3 .*cuda:0 .* x8! .* PCIe downgrade: x8 of x16' "$WORK/out" || fail "no device has fewer lanes"
[ "$(grep -cE '^gpu-[123] .* C  .*(throttling|PCIe downgrade)' "$WORK/out")" -eq 2 ] || fail "trouble that nobody has"
grep -q 'gpu-2 .*throttling: software thermal .*so far .* -[456][0-9]\.' "$WORK/out" || fail "the event costs nothing"
grep -q 'gpu-3 .*PCIe downgrade: generation 5 of 5, 8 of 16 lanes .*so far' "$WORK/out" ||
  fail "fewer lanes are no event"
[ -z "$(find "$WORK" -name 'inferstat.*' -type d)" ] || fail "its folder stays"
echo ok
