#!/usr/bin/env python3
"""Turns columns of a Parquet file into a .npy file that `inferstat-worker encode --input` reads.

    scripts/parquet_to_npy.py IN.parquet OUT.npy [--column NAME]... [--type f64|f32] [--force]

One sample a row.  A single column may hold lists of numbers, all of one length; several
columns hold a number each, in the order given.  Without --column all columns are taken.
Numbers become f64, or f32 where every one of them is kept by it (--type f32 rounds).
Rows are read in batches, so that a file may be larger than memory.

Refused, naming the column and the row (counted from 0): what is missing (null), is no
number, is a whole number that f64 does not keep (beyond 2^53), is beyond f32 with --type
f32, or is a list of another length than the first.  NaN and infinity go through: encode
says which sample has them.  Exits 2 where an option is wrong, 4 where the file is, or
cannot be read or written, and without pyarrow.
"""

import argparse
import array
import importlib
import math
import os
import pathlib
import struct
import sys

CODES = {"f64": ("<f8", "d"), "f32": ("<f4", "f")}


class Refused(Exception):
    """The file cannot be turned into rows of numbers."""

    code = 4


class WrongOption(Refused):
    """The file has nothing like what was asked for."""

    code = 2


def header(descr, rows, columns):
    """A .npy header of version 1.0, 128 bytes long."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    text = text.ljust(128 - 10 - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")


def kind_of(pa, field):
    """Whether the column holds lists, and the type of its numbers."""
    kind = field.type
    is_list = (pa.types.is_list(kind) or pa.types.is_large_list(kind)
               or pa.types.is_fixed_size_list(kind))
    number = kind.value_type if is_list else kind
    if not pa.types.is_floating(number) and not pa.types.is_integer(number):
        raise Refused(f"column {field.name}: {kind} is no number and no list of numbers")
    return is_list, number


def fits_f32(pa, number):
    """Whether f32 keeps every number of this type."""
    return number in (pa.float16(), pa.float32(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16())


def rows_of(batch, names, first, width):
    """The rows of a batch as lists of numbers."""
    columns = [batch.column(i).to_pylist() for i in range(len(names))]
    for at in range(batch.num_rows):
        row = []
        for name, column in zip(names, columns):
            value = column[at]
            values = value if isinstance(value, list) else [value]
            if any(number is None for number in values):
                raise Refused(f"column {name}, row {first + at}: nothing is there (null)")
            row.extend(values)
        if width is not None and len(row) != width:
            raise Refused(f"column {names[0]}, row {first + at}: {len(row)} numbers, not {width} "
                          "as in the first")
        if not row:
            raise Refused(f"column {names[0]}, row {first + at}: an empty list")
        yield row
        width = len(row)


def check_kept(code, names, row, kept, at):
    """Refuses a number that rounding to f32 made infinite, and a whole one that f64 changes."""
    for i, (number, now) in enumerate(zip(row, kept)):
        name = names[i] if len(names) > 1 else names[0]
        if code == "f" and math.isinf(now) and not math.isinf(number):
            raise Refused(f"column {name}, row {at}: {number} is beyond f32 (use --type f64)")
        if code == "d" and isinstance(number, int) and now != number:
            raise Refused(f"column {name}, row {at}: {number} is no f64: {now:.0f} is the "
                          "nearest (round it before)")


def convert(pa, parquet, options, out):
    """Writes the file; returns rows, columns and type."""
    source = parquet.ParquetFile(options.input)
    names = options.column or source.schema_arrow.names
    unknown = [name for name in names if name not in source.schema_arrow.names]
    if unknown:
        raise WrongOption(f"column {unknown[0]}: not there (there are: "
                          f"{', '.join(source.schema_arrow.names)})")
    kinds = [kind_of(pa, source.schema_arrow.field(name)) for name in names]
    if len(names) > 1 and any(is_list for is_list, _ in kinds):
        raise WrongOption("several columns, and one of them holds lists (name that one alone)")
    whole = any(pa.types.is_integer(number) for _, number in kinds)
    all_fit = all(fits_f32(pa, number) for _, number in kinds)
    kind = options.type or ("f32" if all_fit else "f64")
    descr, code = CODES[kind]

    rows, width = 0, None
    out.write(header(descr, 0, 0))
    for batch in source.iter_batches(batch_size=1024, columns=names):
        ordered = batch.select(names)
        for row in rows_of(ordered, names, rows, width):
            width = len(row)
            numbers = array.array(code, map(float, row))
            if whole or code == "f" and any(map(math.isinf, numbers)):
                check_kept(code, names, row, numbers, rows)
            if sys.byteorder == "big":
                numbers.byteswap()
            out.write(numbers.tobytes())
            rows += 1
    if rows == 0:
        raise Refused("no rows")
    out.seek(0)
    out.write(header(descr, rows, width))
    return rows, width, kind


def fail(code, text):
    print(f"parquet_to_npy.py: {text}", file=sys.stderr)
    return code


def run(options):
    try:
        pa = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        return fail(4, f"pyarrow: {error} (pip install pyarrow)")
    target = pathlib.Path(options.output)
    if target.exists() and not options.force:
        return fail(4, f"{target}: already exists (replace it with --force)")
    # Whole or not at all: a name of its own until it is.
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(unfinished, "wb") as out:
            rows, columns, kind = convert(pa, parquet, options, out)
        os.replace(unfinished, target)
    except Refused as error:
        return fail(error.code, f"{options.input}: {error}")
    except (OSError, OverflowError, pa.ArrowException) as error:
        return fail(4, f"{options.input}: {error}")
    except KeyboardInterrupt:
        return 130
    finally:
        unfinished.unlink(missing_ok=True)  # it is the target by then, if all went well
    print(f"{target}: {rows} samples of {columns} numbers, {kind}")
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", metavar="IN.parquet")
    parser.add_argument("output", metavar="OUT.npy")
    parser.add_argument("--column", action="append", metavar="NAME")
    parser.add_argument("--type", choices=sorted(CODES))
    parser.add_argument("--force", action="store_true")
    sys.exit(run(parser.parse_args()))


if __name__ == "__main__":
    main()
