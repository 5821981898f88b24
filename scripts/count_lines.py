#!/usr/bin/env python3
"""Counts the lines of the product and of its tests.

    scripts/count_lines.py           prints both beside the most they may have
    scripts/count_lines.py --check   also exits 1 when there are more
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What is counted: the folders, the suffixes, and the most lines there may be.
COUNTED = {
    "product": (("common", "server", "client"), {".c", ".h", ".cu", ".cuh"}, 137320),
    "tests": (("tests",), {".c", ".h", ".cu", ".cc", ".cpp", ".py", ".sh"}, 120000),
}


def count(tops, suffixes):
    files = [path for top in tops for path in (ROOT / top).rglob("*") if path.suffix in suffixes]
    return len(files), sum(path.read_bytes().count(b"\n") for path in files)


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    over = False
    for name, (tops, suffixes, most) in COUNTED.items():
        files, lines = count(tops, suffixes)
        print(f"{name}: {lines} lines in {files} files, at most {most}")
        over = over or lines > most
    return 1 if over and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
