#!/usr/bin/env python3
"""Numbers of a GGUF file's header: gguf_key.py FILE KEY...

Reads the format as it is published (GGUF version 3, little endian), not as the
programs under test do.
"""
import struct
import sys

# Scalars by their type's number; 8 is a string, 9 an array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}


def read(file, form):
    return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]


def value(file, kind):
    if kind == 8:
        return file.read(read(file, "Q")).decode(errors="replace")
    if kind == 9:
        of, count = read(file, "I"), read(file, "Q")
        return [value(file, of) for _ in range(count)]
    return read(file, SCALARS[kind])


def main(path, *wanted):
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF" or read(file, "I") != 3:
            sys.exit(f"{path}: not GGUF 3")
        read(file, "Q")
        keys = {}
        for _ in range(read(file, "Q")):
            key = value(file, 8)
            keys[key] = value(file, read(file, "I"))
    print(*(keys[key] for key in wanted))


main(*sys.argv[1:])
