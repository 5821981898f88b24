#!/usr/bin/env python3
"""The text the worker writes for the models of INFERSTAT_TEST_MODELS is the expected one."""
import json
import os
import subprocess
import sys

SKIPPED = 77
# Below this margin of the best token, two correct programs may choose differently; it is larger
# where activations are rounded to 8 bits.
MARGINS = {"stories260K": 0.002, "stories260K-f16": 0.002, "stories260K-q8_0": 0.3,
           "stories260K-q4_0": 0.3, "stories3M-q8_0": 0.3}


def main():
    folder = os.environ.get("INFERSTAT_TEST_MODELS")
    if not folder:
        print("INFERSTAT_TEST_MODELS is not set: skipped")
        return SKIPPED
    worker = os.environ.get("WORKER", "inferstat-worker")
    for name, margin in MARGINS.items():
        with open(os.path.join(folder, "expected", name + ".json"), encoding="utf-8") as file:
            expected = json.load(file)
        for case in expected["cases"]:
            if min(case["margins"]) < margin:
                continue  # only its beginning is certain; the unit tests compare that
            done = subprocess.run(
                [worker, "--no-report", "llm", "--model", os.path.join(folder, name + ".gguf"),
                 "--prompt", case["prompt"], "--tokens", str(expected["n_predict"])],
                capture_output=True, check=True, timeout=60)
            text = done.stdout.decode("utf-8")
            if text != case["text"] + "\n":
                print(f"{name}, {case['prompt']!r}:\n{text!r}\nis not\n{case['text']!r}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
