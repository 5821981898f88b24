"""What the worker makes of model files: split ones, and ones that are no good.

Where the program is: WORKER.
"""

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import gguf_file  # noqa: E402
from gguf_file import INT32, STRING, UINT16, UINT32, Model, Tensor  # noqa: E402

WORKER = os.environ.get("WORKER", "inferstat-worker")


class ModelFilesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="inferstat-models-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.whole = self.path("whole.gguf")
        subprocess.run([WORKER, "make-model", "--shape", "tiny", "--type", "f32", self.whole],
                       check=True, capture_output=True, timeout=60)
        self.model = gguf_file.load(self.whole)
        self.ff = self.model.keys["llama.feed_forward_length"][1]

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_worker(self, path, *options):
        return subprocess.run([WORKER, "llm", "--no-report", "--threads", "1", "--model", path,
                               *options], capture_output=True, timeout=60)

    def refuses(self, path, *texts, named=None):
        """`named`: the file that the message names, if another; no message names two."""
        done = self.run_worker(path, "--tokens", "1")
        words = done.stderr.decode()
        self.assertEqual(done.returncode, 4, words)
        self.assertEqual(words.count("\n"), 1, words)
        for text in ((named or path) + ": ", *texts):
            self.assertIn(text, words)
        self.assertEqual(words.count(self.folder), 1, words)

    # ---- Split models

    def split(self, name, counts):
        """Writes the parts; their models and paths."""
        parts = list(self.model.split(counts))
        paths = [self.path(f"{name}-{i + 1:05}-of-{len(parts):05}.gguf")
                 for i in range(len(parts))]
        for part, path in zip(parts, paths):
            part.write(path)
        return parts, paths

    def test_parts_are_the_whole(self):
        count = len(self.model.tensors)
        options = ("--prompt", "Once upon a time", "--tokens", "20", "--json")
        whole = self.run_worker(self.whole, *options)
        for counts in ([1, count - 1], [5, 0, count - 6, 1], [0, count]):
            _, paths = self.split("model", counts)
            done = self.run_worker(paths[0], *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr, whole.stderr)  # the text
            self.assertEqual(json.loads(done.stdout)["model"], "model")

    def test_a_split_of_one_and_a_joined_file(self):
        _, paths = self.split("one", [len(self.model.tensors)])
        self.assertEqual(self.run_worker(paths[0], "--tokens", "1").returncode, 0)
        self.model.keys.update({"split.no": (UINT16, 0), "split.count": (UINT16, 0)})
        self.model.write(self.path("joined.gguf"))
        done = self.run_worker(self.path("joined.gguf"), "--tokens", "1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_another_part_than_the_first(self):
        _, paths = self.split("m", [3, 5, len(self.model.tensors) - 8])
        self.refuses(paths[1], "part 2 of 3 of a model (give the first, m-00001-of-00003.gguf)")
        other = self.path("other.gguf")
        os.rename(paths[2], other)
        self.refuses(other, "part 3 of 3 of a model (name it NAME-00003-of-00003.gguf")
        self.refuses(paths[0], "m-00003-of-00003.gguf: cannot open: No such file", named=paths[2])
        alone = self.path("alone-00001-of-00002.gguf")
        shutil.copy(self.whole, alone)
        self.refuses(alone, "key 'split.count' is missing, but its name says part 1 of 2 (if it is")

    def test_parts_that_do_not_fit(self):
        counts = [3, 5, len(self.model.tensors) - 8]

        def broken(number, key, value, *texts):
            parts, paths = self.split("b", counts)
            if value is None:
                del parts[number - 1].keys[key]
            else:
                parts[number - 1].keys[key] = value
            parts[number - 1].write(paths[number - 1])
            named = paths[number - 1]
            self.refuses(paths[0], f"{named}: key '{key}'", *texts, named=named)

        broken(1, "split.count", (UINT16, 2), "is 2, but its name says 3")
        broken(1, "split.count", None, "is missing")
        broken(3, "split.count", (UINT16, 4), "is 4, but its name says 3")
        broken(1, "split.no", (UINT16, 1), "is 1, but its name stands for 0")
        broken(2, "split.no", (STRING, b"1"), "should be an integer")
        broken(1, "split.tensors.count", None, "is missing")
        broken(3, "split.tensors.count", (INT32, 5), "another value in the first part")
        broken(2, "general.architecture", (STRING, b"qwen2"), "another value in the first part")

        parts, paths = self.split("b", counts)
        for part, path in zip(parts, paths):
            part.keys["split.tensors.count"] = (INT32, 999)
            part.write(path)
        self.refuses(paths[0], "key 'split.tensors.count' is 999, but the number of tensors in")

        _, paths = self.split("b", counts)
        os.rename(paths[1], self.path("kept"))
        os.rename(paths[2], paths[1])
        os.rename(self.path("kept"), paths[2])
        self.refuses(paths[0], "key 'split.no' is 2, but its name stands", named=paths[1])

        parts, paths = self.split("b", counts)
        name, tensor = next(iter(parts[0].tensors.items()))
        Model(parts[2].keys, {**parts[2].tensors, name: tensor}).write(paths[2])
        self.refuses(paths[0], f"tensor '{name}' is also in an earlier", named=paths[2])

        _, paths = self.split("b", counts)
        size = os.path.getsize(paths[1])
        os.truncate(paths[1], size - 64)
        self.refuses(paths[0], ": tensor '", "lies outside the file", named=paths[1])
        os.truncate(paths[1], 0)
        self.refuses(paths[0], "not a GGUF file", named=paths[1])

    # ---- Memory and processors

    def sparse(self, name, size):
        """A model of at least so many bytes, which takes no room on the disk; those of its data."""
        dim, ff, layers = self.model.tensors["output_norm.weight"].shape[0], 1 << 22, 0
        tensors = {name: tensor for name, tensor in self.model.tensors.items() if name[:4] != "blk."}
        while layers * 3 * 4 * dim * ff < size:
            for name_of_0, of_0 in self.model.tensors.items():
                if name_of_0.startswith("blk.0."):
                    shape = [ff if "ffn_" in name_of_0 and extent == self.ff else extent
                             for extent in of_0.shape]
                    tensors[name_of_0.replace("0", str(layers), 1)] = Tensor(shape, 0, b"")
            layers += 1
        place = 0
        for tensor in tensors.values():
            tensor.data, tensor.offset = b"", place
            place += -(-4 * math.prod(tensor.shape) // 32) * 32
        keys = {**self.model.keys, "llama.feed_forward_length": (UINT32, ff),
                "llama.block_count": (UINT32, layers)}
        Model(keys, tensors).write(self.path(name))
        os.truncate(self.path(name), os.path.getsize(self.path(name)) + place)
        return self.path(name), place

    def test_more_than_the_memory(self):
        with open("/proc/meminfo", encoding="ascii") as file:
            memory = int(file.readline().split()[1]) * 1024
        path, size = self.sparse("sparse.gguf", memory)
        self.refuses(path, f"its weights need {size / 2**30:.1f} GB and a context of ",
                     "but device cpu has only ", " GB available")

    @contextlib.contextmanager
    def cgroup(self, controller, **files):
        """A cgroup below that of the test, with these values."""
        with open("/proc/self/cgroup", encoding="ascii") as file:
            for line in file:
                _, controllers, path = line.strip().split(":", 2)
                if controller in controllers.split(",") or not controllers:
                    folder = f"/sys/fs/cgroup/{controllers}{path}/inferstat-{os.getpid()}"
                    version = 1 if controllers else 2
                    break
        try:
            os.mkdir(folder)
        except OSError as why:
            self.skipTest(f"no cgroup of our own: {why}")
        try:
            for name, value in files[f"v{version}"].items():
                with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                    file.write(value)
            yield folder
        except OSError as why:
            self.skipTest(f"no limits of our own: {why}")
        finally:
            os.rmdir(folder)

    def run_inside(self, folder, path, *options):
        """The worker in a cgroup, into which its shell goes first."""
        return subprocess.run(["sh", "-c", 'echo $$ >"$0" && exec "$@"',
                               os.path.join(folder, "cgroup.procs"), WORKER, "llm", "--no-report",
                               "--log-level", "info", "--model", path, "--tokens", "1", *options],
                              capture_output=True, timeout=60)

    def test_the_memory_of_a_cgroup(self):
        large, _ = self.sparse("large.gguf", 1)
        limit = str(256 << 20)
        with self.cgroup("memory", v1={"memory.limit_in_bytes": limit},
                         v2={"memory.max": limit}) as folder:
            done = self.run_inside(folder, large)
            self.assertEqual(done.returncode, 4, done.stderr)
            name = os.path.basename(folder)
            self.assertRegex(done.stderr.decode(), r"its weights need .* GB and .* but device cpu "
                             rf"has only .* MB available by the limit of cgroup .*/{name}\n")
            done = self.run_inside(folder, self.whole)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_quota_of_a_cgroup(self):
        quota = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "90000"}
        with self.cgroup("cpu", v1=quota, v2={"cpu.max": "90000 100000"}) as folder:
            done = self.run_inside(folder, self.whole)
            self.assertIn(b"threads: 1", done.stderr)


if __name__ == "__main__":
    unittest.main()
