#!/usr/bin/env python3
"""Reads and writes GGUF files, also damaged ones.  As a program: gguf_file.py FILE KEY... prints
the values of keys.

Reads the format as it is published (GGUF version 3, little endian), not as the programs under
test do.
"""
import struct
import sys

# Formats of scalars by the number of their type.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
UINT16, UINT32, INT32, FLOAT32, STRING, ARRAY = 2, 4, 5, 6, 8, 9
ALIGNMENT = 32


def read(file, form):
    return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]


def read_value(file, kind):
    """A value; one of an array is a pair of the type of its elements and a list."""
    if kind == STRING:
        return file.read(read(file, "Q"))
    if kind == ARRAY:
        of, count = read(file, "I"), read(file, "Q")
        return of, [read_value(file, of) for _ in range(count)]
    return read(file, SCALARS[kind])


def text(value):
    return struct.pack("<Q", len(value)) + value


class Raw(bytes):
    """Bytes in place of a value."""


def value_bytes(kind, value):
    if isinstance(value, Raw):
        return value
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        of, items = value
        return struct.pack("<IQ", of, len(items)) + b"".join(value_bytes(of, i) for i in items)
    return struct.pack("<" + SCALARS[kind], value)


def pad(data):
    return data + bytes(-len(data) % ALIGNMENT)


class Tensor:
    """`offset` None: behind the tensor before."""

    def __init__(self, shape, kind, data, offset=None):
        self.shape, self.kind, self.data, self.offset = list(shape), kind, data, offset


class Model:
    """`keys` has pairs of type and value by name, `tensors` Tensors."""

    def __init__(self, keys, tensors):
        self.keys, self.tensors = keys, tensors

    def write(self, path):
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(self.tensors), len(self.keys))
        for key, (kind, value) in self.keys.items():
            head += text(key.encode()) + struct.pack("<I", kind) + value_bytes(kind, value)
        data = b""
        for name, tensor in self.tensors.items():
            offset = len(data) if tensor.offset is None else tensor.offset
            head += text(name.encode()) + struct.pack("<I", len(tensor.shape))
            head += struct.pack(f"<{len(tensor.shape)}QIQ", *tensor.shape, tensor.kind, offset)
            data += pad(tensor.data)
        with open(path, "wb") as file:
            file.write(pad(head) + data)

    def split(self, counts):
        """Models of the parts, with so many tensors each."""
        names = iter(self.tensors)
        for number, count in enumerate(counts):
            keys = dict(self.keys) if number == 0 else {}
            keys["split.no"] = (UINT16, number)
            keys["split.count"] = (UINT16, len(counts))
            keys["split.tensors.count"] = (INT32, len(self.tensors))
            yield Model(keys, {name: self.tensors[name] for _, name in zip(range(count), names)})


def load(path):
    """A Model of a file with tensors of F32 and F16."""
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF" or read(file, "I") != 3:
            sys.exit(f"{path}: not GGUF 3")
        tensor_count, key_count = read(file, "Q"), read(file, "Q")
        keys, tensors = {}, {}
        for _ in range(key_count):
            key = read_value(file, STRING).decode()
            kind = read(file, "I")
            keys[key] = (kind, read_value(file, kind))
        for _ in range(tensor_count):
            name = read_value(file, STRING).decode()
            shape = [read(file, "Q") for _ in range(read(file, "I"))]
            tensors[name] = Tensor(shape, read(file, "I"), b"", read(file, "Q"))
        start = -(-file.tell() // ALIGNMENT) * ALIGNMENT
        for tensor in tensors.values():
            file.seek(start + tensor.offset)
            size = 4 if tensor.kind == 0 else 2
            for extent in tensor.shape:
                size *= extent
            tensor.data, tensor.offset = file.read(size), None
    return Model(keys, tensors)


def main(path, *wanted):
    keys = load(path).keys
    print(*(keys[key][1] for key in wanted))


if __name__ == "__main__":
    main(*sys.argv[1:])
