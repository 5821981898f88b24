#!/usr/bin/env bash
# scripts/parquet_to_npy.py: what it makes of a Parquet file, encode reads; what it refuses.
# Skips, saying so, where pyarrow is not there.
. "$(dirname "$0")/../../support/lib.sh"

source=${INFERSTAT_SOURCE-$(dirname "$0")/../../..}
python=$(command -v "${INFERSTAT_PARQUET_PYTHON-python3}")

convert() {
  "$python" "$source/scripts/parquet_to_npy.py" "$@"
}

# Without pyarrow it says what to do.
mkdir "$WORK/none"
echo 'raise ImportError("not here")' >"$WORK/none/pyarrow.py"
PYTHONPATH=$WORK/none expect_exit 4 convert "$WORK/a.parquet" "$WORK/a.npy"
expect_text "$WORK/err" "pip install pyarrow"

if ! "$python" -c 'import pyarrow.parquet' 2>/dev/null; then
  echo "skipped: pyarrow is not there"
  exit 77
fi

"$python" - "$WORK" <<'PYTHON'
import sys
import pyarrow as pa, pyarrow.parquet as parquet
folder = sys.argv[1]
def write(name, **columns):
    parquet.write_table(pa.table(columns), f"{folder}/{name}.parquet", row_group_size=700)
lists = [[1.0, 2.0, 2.0], [-3e200, 4e200, 0.0]]
write("lists", x=pa.array(lists, pa.list_(pa.float64())), id=pa.array([1, 2]))
write("fixed", x=pa.array([[3, 4], [0.5, 0]], pa.list_(pa.float32(), 2)))
write("apart", a=pa.array([0.1, 0.2]), b=pa.array([1, 2]), c=pa.array(["u", "v"]))
write("many", x=pa.array([[i / 7, 1.0] for i in range(3000)], pa.large_list(pa.float64())))
kept, lost = 2**53, 2**53 + 1  # f64 has no odd numbers beyond
write("large", x=pa.array([[kept, 1], [-kept, 2**62], [5, -lost]], pa.list_(pa.int64())),
      kept=pa.array([0, 2**63, 2**53 + 2], pa.uint64()), lost=pa.array([0, 2**64 - 1, 1], pa.uint64()))
write("null", x=pa.array([[1.0, 2.0], [1.0, None]], pa.list_(pa.float64())))
write("ragged", x=pa.array([[1.0, 2.0], [1.0]], pa.list_(pa.float64())))
write("empty", x=pa.array([], pa.list_(pa.float64())))
PYTHON

# shape FILE: type and shape, then the numbers of the first and the last row.
shape() {
  "$python" - "$1" <<'PYTHON'
import ast, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<H", data[8:10])[0]
head = ast.literal_eval(data[10:10 + length].decode())
assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0 and not head["fortran_order"]
rows, columns = head["shape"]
numbers = struct.unpack(f"<{rows * columns}{'d' if head['descr'] == '<f8' else 'f'}", data[10 + length:])
print(head["descr"], rows, columns, *numbers[:columns], *numbers[-columns:])
PYTHON
}

expect_shape() { # FILE TEXT
  local got
  got=$(shape "$1")
  [ "$got" = "$2" ] || fail "$1: $got"
}

expect_exit 0 convert "$WORK/lists.parquet" "$WORK/lists.npy" --column x
expect_text "$WORK/out" "2 samples of 3 numbers, f64"
expect_shape "$WORK/lists.npy" "<f8 2 3 1.0 2.0 2.0 -3e+200 4e+200 0.0"
expect_exit 0 "$WORKER" encode --no-report --encoder amplitude --qubits 2 --input "$WORK/lists.npy" --check
expect_exit 0 convert "$WORK/fixed.parquet" "$WORK/fixed.npy"
expect_shape "$WORK/fixed.npy" "<f4 2 2 3.0 4.0 0.5 0.0"
expect_exit 0 "$WORKER" encode --no-report --encoder amplitude --qubits 1 --input "$WORK/fixed.npy" --check
expect_exit 0 convert "$WORK/apart.parquet" "$WORK/apart.npy" --column b --column a
expect_shape "$WORK/apart.npy" "<f8 2 2 1.0 0.1 2.0 0.2"
expect_exit 0 convert "$WORK/apart.parquet" "$WORK/apart.npy" --column b --type f32 --force
expect_shape "$WORK/apart.npy" "<f4 2 1 1.0 2.0"
expect_exit 0 convert "$WORK/many.parquet" "$WORK/many.npy"
expect_shape "$WORK/many.npy" "<f8 3000 2 0.0 1.0 428.42857142857144 1.0"

# What f64 keeps of whole numbers it has, and f32 rounds where it is told to.
expect_exit 0 convert "$WORK/large.parquet" "$WORK/large.npy" --column kept
expect_shape "$WORK/large.npy" "<f8 3 1 0.0 9007199254740994.0"
expect_exit 0 convert "$WORK/large.parquet" "$WORK/large32.npy" --column x --type f32
expect_shape "$WORK/large32.npy" "<f4 3 2 9007199254740992.0 1.0 5.0 -9007199254740992.0"

refuse() { # CODE WORDS ARGUMENT...
  local code=$1 words=$2
  shift 2
  rm -f "$WORK/no.npy"
  expect_exit "$code" convert "$@" "$WORK/no.npy"
  expect_text "$WORK/err" "$words"
  [ ! -e "$WORK/no.npy" ] || fail "leaves a file behind: $words"
  [ -z "$(find "$WORK" -name '.no.npy*')" ] || fail "leaves half a file behind: $words"
}
refuse 4 "column x, row 1: nothing is there" "$WORK/null.parquet"
refuse 4 "column x, row 1: 1 numbers, not 2 as in the first" "$WORK/ragged.parquet"
refuse 4 "no rows" "$WORK/empty.parquet"
refuse 2 "column y: not there (there are: x, id)" "$WORK/lists.parquet" --column y
refuse 2 "one of them holds lists" "$WORK/lists.parquet"
refuse 4 "column c: string is no number" "$WORK/apart.parquet"
refuse 4 "column x, row 1: -3e+200 is beyond f32 (use --type f64)" "$WORK/lists.parquet" --column x --type f32
refuse 4 "column x, row 2: -9007199254740993 is no f64: -9007199254740992 is the nearest" \
  "$WORK/large.parquet" --column x
refuse 4 "column lost, row 1: 18446744073709551615 is no f64" "$WORK/large.parquet" --column kept --column lost
refuse 4 "No such file" "$WORK/none.parquet"
echo "no Parquet" >"$WORK/text.parquet"
refuse 4 "text.parquet" "$WORK/text.parquet"
expect_exit 4 convert "$WORK/lists.parquet" "$WORK/lists.npy" --column x
expect_text "$WORK/err" "already exists (replace it with --force)"
echo ok
