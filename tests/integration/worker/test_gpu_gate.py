"""gpu_check.sh --gate, with an nvcc that says what it is told and writes an ELF file of a
kernel's instructions."""

import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "scripts"
KERNEL = "_Z4sumsIdEvPT_"  # sums<double>
PTXAS = """ptxas info    : Compiling entry function '{kernel}' for 'sm_80'
ptxas info    : Function properties for {kernel}
    {stack} bytes stack frame, {spills} bytes spill stores, {spills} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers
"""
NVCC = """#!/bin/sh
[ "$1" != --version ] || { echo "release $RELEASE, V1"; exit; }
while [ "$1" != -o ]; do shift; done
[ -s "$FOLDER/elf" ] || { echo 'error: it does not compile'; exit 2; }
cp "$FOLDER/elf" "$2" && cat "$FOLDER/ptxas"
"""


def elf(kernel, opcodes):
    """An ELF file of one section of code, whose instructions have these low bits."""
    names = b"\0.text." + kernel.encode() + b"\0.names\0"
    code = b"".join(struct.pack("<QQ", 0x7200 | opcode, 1 << 60) for opcode in opcodes)
    at = 64 + len(code)
    headers = [(0, 0, 0, 0, 0, 0), (1, 1, 0, 0, 64, len(code)), (8 + len(kernel), 3, 0, 0, at, len(names))]
    table = b"".join(struct.pack("<IIQQQQ24x", *header) for header in headers)
    head = bytearray(64)
    head[:4] = b"\x7fELF"
    struct.pack_into("<Q", head, 0x28, at + len(names))
    struct.pack_into("<HHH", head, 0x3A, 64, len(headers), 2)
    return bytes(head) + code + names + table


class GateTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="inferstat-gate-")
        self.addCleanup(self.folder.cleanup)
        root = pathlib.Path(self.folder.name)
        shutil.copytree(SCRIPTS / "gpu", root / "scripts/gpu", ignore=shutil.ignore_patterns("*.csv"))
        shutil.copy(SCRIPTS / "gpu_check.sh", root / "scripts")
        sources = root / "server/device/cuda"
        sources.mkdir(parents=True)
        (sources / "sums.cu").write_text("__global__ void sums();")
        (sources / "host.cu").write_text("nothing of the device's")
        (root / "nvcc").write_text(NVCC)
        (root / "nvcc").chmod(0o755)
        self.root = root
        self.compiled()

    def compiled(self, kernel=KERNEL, registers=30, stack=8, spills=0, fp64=2):
        opcodes = [0x19, *[0x29, 0x2B, 0x2A, 0x28][:fp64], 0x23]  # the first and last are others
        (self.root / "elf").write_bytes(elf(kernel, opcodes))
        (self.root / "ptxas").write_text(PTXAS.format(kernel=kernel, registers=registers, stack=stack,
                                                      spills=spills))

    def gate(self, *words, release="13.0", path=None):
        environment = {"PATH": f"{path or self.root}:/usr/bin:/bin", "FOLDER": str(self.root),
                       "RELEASE": release}
        done = subprocess.run([self.root / "scripts/gpu_check.sh", "--gate", *words], text=True,
                              capture_output=True, env=environment, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_what_takes_more_than_its_limits_fails(self):
        self.assertEqual(self.gate("--write")[0], 0)
        limits = (self.root / "scripts/gpu/limits.csv").read_text().splitlines()
        self.assertEqual(limits[2], "sums.cu,sums<double>,sm_120,30,8,0,2")
        self.assertEqual(len(limits), 2 + 5)
        for changed, code, says in (
                ({}, 0, "1 kernels for 5 devices, 0 findings"),
                ({"registers": 31}, 1, "sums.cu sums<double> sm_86: registers 31, limit 30"),
                ({"stack": 9}, 1, "stack 9, limit 8"),
                ({"spills": 4}, 1, "spills 8, limit 0"),
                ({"fp64": 4}, 1, "fp64 4, limit 2"),
                ({"fp64": 1}, 0, "notice: sums.cu sums<double> sm_89: fp64 1, limit 2"),
                ({"kernel": "_Z4moreIdEvPT_"}, 1, "more<double> sm_90: has no limits"),
                ({"kernel": "_Z4moreIdEvPT_"}, 1, "sums<double> sm_90: has limits and is not there")):
            with self.subTest(changed):
                self.compiled(**changed)
                found, said = self.gate()
                self.assertEqual(found, code)
                self.assertIn(says, said)

    def test_what_cannot_be_compared_is_said(self):
        self.assertEqual(self.gate("--write")[0], 0)
        self.compiled(registers=200)
        code, said = self.gate(release="14.1")
        self.assertEqual((code, said), (0, "gate: NOTICE: nvcc is of CUDA 14.1, the limits are of 13.0: "
                                           "not compared\n"))
        code, said = self.gate(path="/nowhere")
        self.assertEqual(code, 0)
        self.assertIn("NOTICE: nvcc is not there", said)
        (self.root / "elf").write_bytes(b"")
        code, said = self.gate()
        self.assertEqual(code, 1)
        self.assertIn("sums.cu for sm_80: error: it does not compile", said)


if __name__ == "__main__":
    unittest.main()
