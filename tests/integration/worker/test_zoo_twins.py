#!/usr/bin/env python3
"""Small models answer as their twins in PyTorch or ONNX Runtime do (scripts/zoo/check.py).

INFERSTAT_TEST_PYTHON names an interpreter with the packages.  Without it they are installed once
into the build folder, pinned, if pip and its index can be reached within seconds; otherwise a
notice says so and only the readings of the descriptions are compared.
"""

import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ["INFERSTAT_BUILD"])
SCRIPTS = pathlib.Path(os.environ["INFERSTAT_SOURCE"]) / "scripts/zoo"
PACKAGES = BUILD / "zoo-packages"
# Two heads, two inputs with shared weights, a GRU, an embedding, depthwise convolutions.
MODELS = ["EmotionRecog", "ObjectTrack-Nano", "KeywordSpot", "NamedEntity", "ds-cnn"]


def installed():
    """Installs the packages where they are not; returns why that failed, or nothing."""
    ready = PACKAGES / "ready"
    if ready.exists() and ready.read_bytes() == (SCRIPTS / "requirements.txt").read_bytes():
        return ""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--retries",
         "0", "--timeout", "5", "--upgrade", "--target", PACKAGES, "-r",
         SCRIPTS / "requirements.txt"], capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != 0:
        return (done.stderr.strip() or "pip failed").splitlines()[-1]
    ready.write_bytes((SCRIPTS / "requirements.txt").read_bytes())
    return ""


def check(python, *options, **environment):
    program = BUILD / "tests/support/zoo/zoo_probe"
    return subprocess.run([python, "-B", SCRIPTS / "check.py", "--program", program, *options],
                          env={**os.environ, **environment}, check=False, timeout=280).returncode


def main():
    python = os.environ.get("INFERSTAT_TEST_PYTHON")
    if python:
        return check(python, "--models", ",".join(MODELS))
    # A sanitizer would find nothing in it that it does not find in the unit tests.
    failure = "a sanitizer's build" if os.environ.get("INFERSTAT_SANITIZE") else installed()
    if failure:
        print(f"no twins, the descriptions alone are compared: {failure}", flush=True)
        return check(sys.executable, "--against", "text")
    return check(sys.executable, "--against", "onnx", "--models", ",".join(MODELS),
                 PYTHONPATH=str(PACKAGES))


if __name__ == "__main__":
    sys.exit(main())
