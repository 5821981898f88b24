"""Hundreds of malformed models: each ends with a line that names the file and the key or tensor,
within a second of processor time, and with at most 64 MB of memory more than a good model.

Where the program is: WORKER.
"""

import copy
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support")
sys.path[:0] = [SUPPORT, os.path.join(SUPPORT, "llm")]
import gguf_file  # noqa: E402
import tiny_models  # noqa: E402
from gguf_file import ARRAY, FLOAT32, INT32, STRING, UINT32, Raw  # noqa: E402
from programs import has_report  # noqa: E402

WORKER = os.environ.get("WORKER", "inferstat-worker")
SANITIZED = bool(os.environ.get("INFERSTAT_SANITIZE"))
CPU_SECONDS, MEMORY = 1.0, 64 << 20
UINT8, BOOL, UINT64, FLOAT64 = 0, 7, 10, 12
KEYS = {"attention.sliding_window": 24, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 64, "rope.scaling.yarn_beta_fast": 8.0,
        "rope.scaling.attn_factor": 1.25}
MORE = {"tokenizer.ggml.token_type": (ARRAY, (INT32, [1] * 64)),
        "tokenizer.ggml.bos_token_id": (UINT32, 1), "tokenizer.ggml.eos_token_id": (UINT32, 2),
        "tokenizer.ggml.add_bos_token": (BOOL, True), "general.alignment": (UINT32, 32)}
NAMED = re.compile(r"(key|tensor) '[^']+'")
# What a damaged header says where no name is known yet.
HEADER = re.compile(r"not a GGUF file|the header (has|is)|(key|tensor) \d+ (has|is)")


def broken_values(kind, value):
    """Pairs of a name and a value; those of another type come first."""
    other = (UINT32, 1) if kind == STRING else (STRING, b"text")
    types = [("another type", other), ("unknown type", (13, Raw(b"\0" * 8))),
             ("array of arrays", (ARRAY, Raw(struct.pack("<IQ", ARRAY, 1)))),
             ("endless text", (STRING, Raw(struct.pack("<Q", 2**64 - 1)))),
             ("endless array", (ARRAY, Raw(struct.pack("<IQ", UINT8, 2**63))))]
    values = []
    if kind in (UINT32, BOOL):
        values = [(f"{number}", (UINT64, number)) for number in
                  (0, 1, 3, 5, 255, 65536, 2**22 + 1, 2**31 - 1, 2**32 - 1, 2**64 - 1)]
        values += [("negative", (INT32, -1)), ("bool of 2", (BOOL, Raw(b"\2")))]
    if kind == FLOAT32:
        values = [(f"{number}", (FLOAT64, number)) for number in
                  (0.0, -1.0, 1e-300, 1e300, float("inf"), float("nan"))]
    if kind == STRING:
        values = [(f"{text[:9]}", (STRING, text)) for text in
                  (b"", b"\0", b"\xff\x1b[2J", value + b"x", b"x" * 100000)]
    if kind == ARRAY:
        of, items = value
        values = [(name, (ARRAY, (of, changed))) for name, changed in
                  (("empty", []), ("one fewer", items[:-1]), ("one more", items + items[:1]))]
        values += [("bad item", (ARRAY, (of, [bad] + items[1:]))) for bad in
                   {FLOAT32: [float("nan")], INT32: [-1, 99], STRING: [b"x" * 70000]}[of]]
        if of == STRING:
            endless = Raw(struct.pack("<IQQ", STRING, len(items), 2**40))
            values.append(("endless item", (ARRAY, endless)))
    return types, values


def broken_keys(model):
    """Triples of a name, a model, and what is named ("": any key or tensor)."""
    for key, (kind, value) in model.keys.items():
        types, values = broken_values(kind, value)
        for name, new in types + values:
            changed = copy.copy(model)
            changed.keys = {**model.keys, key: new}
            yield f"{key}: {name}", changed, f"key '{key}'" if (name, new) in types else ""
        changed = copy.copy(model)
        changed.keys = {other: pair for other, pair in model.keys.items() if other != key}
        yield f"without {key}", changed, ""
    for key in ("attention.unheard_of", "rope.scaling.unheard_of", "expert_shared_count"):
        changed = copy.copy(model)
        changed.keys = {**model.keys, "llama." + key: (UINT32, 1)}
        yield key, changed, f"key 'llama.{key}'"
    for number, count in ((0, 3), (2, 3)):
        changed = copy.copy(model)
        changed.keys = {**model.keys, "split.no": (UINT64, number), "split.count": (UINT64, count)}
        yield f"part {number} of {count}", changed, "'split.no'"


def broken_tensors(model):
    for name, tensor in model.tensors.items():
        if name.startswith("blk.1"):
            continue
        shapes = [[], tensor.shape + [1] * 4]
        for i, extent in enumerate(tensor.shape):
            shapes += [tensor.shape[:i] + [new] + tensor.shape[i + 1:] for new in
                       (0, 1, extent + 1, 2 * extent, 2**40, 2**62, 2**64 - 1)]
        changes = [{"shape": shape} for shape in shapes if shape != tensor.shape]
        changes += [{"kind": kind} for kind in (4, 5, 8, 12, 20, 24, 200, 2**32 - 1)]
        changes += [{"offset": offset} for offset in (4, 2**40, 2**63, 2**64 - 32)]
        for change in changes:
            changed = copy.copy(model)
            broken = copy.copy(tensor)
            broken.__dict__.update(change)
            changed.tensors = {**model.tensors, name: broken}
            # Another tensor is named where the data of this one reach into it.
            yield f"{name}: {change}", changed, "" if "offset" in change else "tensor '"
        changed = copy.copy(model)
        changed.tensors = {other: of for other, of in model.tensors.items() if other != name}
        yield f"without {name}", changed, "tensor '"
        changed = copy.copy(model)
        changed.tensors = {("x" + other if other == name else other): of
                           for other, of in model.tensors.items()}
        yield f"x{name}", changed, "tensor '"


class MalformedModelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="inferstat-malformed-", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.path = os.path.join(cls.folder, "model.gguf")
        tiny_models.write(pathlib.Path(cls.path), "mixtral", KEYS)
        cls.model = gguf_file.load(cls.path)
        cls.model.keys.update(MORE)
        cls.model.write(cls.path)
        with open(cls.path, "rb") as file:
            cls.whole = file.read()
        code, words, _, cls.memory = cls.run_worker()
        assert code == 0, words

    @classmethod
    def run_worker(cls):
        """Its exit code, its words, its processor time and its memory."""
        with open(os.path.join(cls.folder, "words"), "w+b") as words:
            worker = subprocess.Popen(
                [WORKER, "--device", "cpu", "--threads", "1", "llm", "--no-report", "--model",
                 cls.path, "--prompt", "a", "--tokens", "1"],
                stdout=subprocess.DEVNULL, stderr=words)
            _, status, usage = os.wait4(worker.pid, 0)
            worker.returncode = os.waitstatus_to_exitcode(status)
            words.seek(0)
            return (worker.returncode, words.read().decode(errors="replace"),
                    usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)

    def check(self, what, named=""):
        """Runs the model at the path; whether it was refused."""
        code, words, seconds, memory = self.run_worker()
        if not SANITIZED:
            self.assertLess(seconds, CPU_SECONDS, what)
            self.assertLess(memory - self.memory, MEMORY, what)
        self.assertFalse(has_report(words), f"{what}: {words}")
        if code in (0, 1):  # loaded, though the request may fail
            return False
        self.assertEqual(code, 4, f"{what}: {words}")
        self.assertEqual(words.count("\n"), 1, f"{what}: {words}")
        self.assertIn(f"inferstat-worker: {self.path}: ", words)
        self.assertIn(named, words, what)
        self.assertTrue(NAMED.search(words) or HEADER.search(words), f"{what}: {words}")
        return True

    def check_all(self, cases, refused_min):
        """Some changes leave a model that loads, such as another end token."""
        refused = 0
        for what, model, named in cases:
            model.write(self.path)
            refused += self.check(what, named)
        self.assertGreaterEqual(refused, refused_min)

    def refuses(self, what, data, named="", size=None):
        """Bytes of a file, which has `size` bytes."""
        with open(self.path, "wb") as file:
            file.write(data)
            file.truncate(len(data) if size is None else size)
        self.assertTrue(self.check(what, named), what)

    def test_keys(self):
        self.check_all(broken_keys(self.model), 370)

    def test_tensors(self):
        self.check_all(broken_tensors(self.model), 370)

    def test_byte_level_vocabularies(self):
        model = copy.copy(self.model)
        tokens = ["ab", "\u0120", *(chr(ord("a") + i) for i in range(26)),
                  *(f"x{i}" for i in range(36))]
        model.keys = {**model.keys, "tokenizer.ggml.model": (STRING, b"gpt2"),
                      "tokenizer.ggml.pre": (STRING, b"qwen2"),
                      "tokenizer.ggml.tokens": (ARRAY, (STRING, [t.encode() for t in tokens])),
                      "tokenizer.ggml.merges": (ARRAY, (STRING, [b"a b"]))}
        del model.keys["tokenizer.ggml.scores"]
        model.write(self.path)
        self.assertFalse(self.check("a byte-level vocabulary"))
        self.check_all((case for case in broken_keys(model)
                        if re.match(r"(without )?tokenizer.ggml.(model|pre|tokens|merges)", case[0])),
                       35)
        for merge in (b"", b" ", b"a", b"a ", b"ab", b"a c", b"a zz", b"zz a", b"a b b", b"\xff \xff"):
            model.keys["tokenizer.ggml.merges"] = (ARRAY, (STRING, [b"a b", merge]))
            model.write(self.path)
            self.assertTrue(self.check(f"merge {merge}", "key 'tokenizer.ggml.merges'"))

    def test_cut_anywhere(self):
        size = len(self.whole)
        header = self.whole.rindex(b"blk.1.") + 64
        for cut in [*range(0, 32), *range(32, header, header // 50), *range(header, size, size // 20)]:
            self.refuses(f"cut at {cut}", self.whole[:cut])

    def test_counts(self):
        for place, most in ((8, "tensors"), (16, "keys")):
            count, = struct.unpack_from("<Q", self.whole, place)
            for new in (count + 1, 10**6, 2**32, 2**63, 2**64 - 1):
                data = bytearray(self.whole)
                struct.pack_into("<Q", data, place, new)
                self.refuses(f"{new} {most}", data)
            self.refuses(f"a million {most} in a large file", data[:place] +
                         struct.pack("<Q", 10**6) + data[place + 8:], "the header has more than",
                         size=1 << 34)

    def test_headers_without_end(self):
        for kind, value in ((STRING, struct.pack("<Q", 2**36)),
                            (ARRAY, struct.pack("<IQ", UINT8, 2**36)),
                            (ARRAY, struct.pack("<IQ", STRING, 2**33))):
            start = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + gguf_file.text(b"endless")
            self.refuses(f"type {kind}", start + struct.pack("<I", kind) + value,
                         "key 'endless' makes the header longer than 48 MB", size=1 << 42)
        start = struct.pack("<4sIQQ", b"GGUF", 3, 0, 2)
        for key, kind, value in (("model", STRING, gguf_file.text(b"llama")),
                                 ("tokens", ARRAY, struct.pack("<IQ", STRING, 2**21))):
            start += gguf_file.text(b"tokenizer.ggml." + key.encode()) + struct.pack("<I", kind)
            start += value
        self.refuses("many tokens", start, "key 'tokenizer.ggml.tokens' has 2097152",
                     size=len(start) + 8 * 2**21)


if __name__ == "__main__":
    unittest.main()
