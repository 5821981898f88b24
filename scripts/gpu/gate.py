"""Compares what the CUDA kernels take of a device with the limits in limits.csv, without one.

Each kernel is compiled for each device; ptxas tells registers, stack and spills, and the
double-precision instructions are counted in the code.  Exits 0 where nothing takes more than
its limit, also where nvcc is missing or of another release than the limits are; else 1.
"""

import argparse
import concurrent.futures
import csv
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "server/device/cuda"
LIMITS = pathlib.Path(__file__).resolve().parent / "limits.csv"
DEVICES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_120")
FIGURES = ("registers", "stack", "spills", "fp64")  # of a thread; bytes; bytes; instructions
FP64 = (0x028, 0x029, 0x02A, 0x02B)  # DMUL, DADD, DSETP, DFMA: the low 9 bits of 16 bytes


def say(text):
    print(f"gate: {text}", flush=True)


def sections(elf):
    """Yields name and contents of each section of a 64-bit ELF file."""
    table, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    for header in headers:
        name = headers[names][4] + header[0]
        yield elf[name:elf.index(b"\0", name)].decode(), elf[header[4]:header[4] + header[5]]


def count_fp64(elf):
    """Returns the double-precision instructions of each kernel of a cubin, by mangled name."""
    return {name[6:]: sum(struct.unpack_from("<H", code, at)[0] & 0x1FF in FP64
                          for at in range(0, len(code), 16))
            for name, code in sections(elf) if name.startswith(".text.")}


def read_ptxas(text):
    """Returns registers, stack and spills of each kernel that ptxas -v names, by mangled name."""
    found = {}
    for part in text.split("Compiling entry function '")[1:]:
        used = re.search(r"Used (\d+) registers", part)
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
                          part)
        stack, stores, loads = map(int, frame.groups()) if frame else (0, 0, 0)
        found[part.split("'")[0]] = [int(used.group(1)), stack, stores + loads]
    return found


def compile_one(nvcc, source, device, folder):
    """Returns the figures of a file's kernels for a device, by mangled name."""
    cubin = pathlib.Path(folder) / f"{source.stem}.{device}"
    done = subprocess.run([nvcc, "-std=c++20", "-I", ROOT, "-cubin", f"-arch={device}", "-Xptxas", "-v",
                           "-o", cubin, source], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{source.name} for {device}: {done.stderr or done.stdout}")
    counts = count_fp64(cubin.read_bytes())
    return {name: [*figures, counts[name]]
            for name, figures in read_ptxas(done.stderr + done.stdout).items()}


def readable(names):
    """Returns the names of kernels as they stand in the source, by mangled name."""
    said = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout.splitlines()
    return {name: re.sub(r"^void |\(.*$", "", line) for name, line in zip(names, said)}


def measure(nvcc):
    """Returns the figures of all kernels: {(file, kernel, device): [registers, ...]}."""
    sources = [path for path in sorted(SOURCES.glob("*.cu")) if "__global__" in path.read_text()]
    jobs = [(source, device) for source in sources for device in DEVICES]
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda job: compile_one(nvcc, *job, folder), jobs))
    names = readable(sorted({name for found in done for name in found}))
    return {(source.name, names[name], device): figures
            for (source, device), found in zip(jobs, done) for name, figures in found.items()}


def compare(found, limits):
    """Returns what breaks the limits, and what is below them."""
    wrong, lower = [], []
    for key in sorted(found.keys() | limits.keys()):
        where = "{} {} {}".format(*key)
        if key not in limits:
            wrong.append(f"{where}: has no limits")
        elif key not in found:
            wrong.append(f"{where}: has limits and is not there")
        else:
            for name, value, limit in zip(FIGURES, found[key], limits[key]):
                if value != limit:
                    (wrong if value > limit else lower).append(f"{where}: {name} {value}, limit {limit}")
    return wrong, lower


def read_limits(path):
    """Returns the release of CUDA that the limits are for, and the limits."""
    with open(path, newline="", encoding="utf-8") as file:
        release = file.readline().split()[-1]
        return release, {(row["file"], row["kernel"], row["device"]): [int(row[name]) for name in FIGURES]
                         for row in csv.DictReader(file)}


def write_limits(path, release, found):
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write(f"# at most these, compiled with CUDA {release}\n")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("file", "kernel", "device", *FIGURES))
        rows.writerows((*key, *found[key]) for key in sorted(found))


def main():
    parser = argparse.ArgumentParser(prog="gpu_check.sh --gate", description=__doc__)
    parser.add_argument("--write", action="store_true", help="makes what is found the limits")
    options = parser.parse_args()
    nvcc = shutil.which("nvcc")
    if not nvcc:
        say("NOTICE: nvcc is not there: the kernels were not compared with their limits")
        return 0
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release ([\d.]+)", said).group(1)
    known, limits = read_limits(LIMITS) if LIMITS.exists() else ("none", {})
    if release != known and not options.write:
        say(f"NOTICE: nvcc is of CUDA {release}, the limits are of {known}: not compared")
        return 0
    try:
        found = measure(nvcc)
    except RuntimeError as error:
        say(error)
        return 1
    if options.write:
        write_limits(LIMITS, release, found)
        say(f"{LIMITS}: {len(found)} limits")
        return 0
    wrong, lower = compare(found, limits)
    for line in wrong:
        say(line)
    for line in lower:
        say(f"notice: {line}")
    kernels = len({key[:2] for key in found})
    say(f"{kernels} kernels for {len(DEVICES)} devices, {len(wrong)} findings"
        + (" (gpu_check.sh --gate --write accepts them, and what is lower)" if wrong or lower else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
