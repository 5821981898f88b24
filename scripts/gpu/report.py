"""Writes report.md and report.json of gpu_check.sh from the logs in its folder."""

import csv
import json
import os
import pathlib
import re
import time

import judge

TABLES = ("device_encode", "torch_encode", "pipeline_copies")
TEXTS = ("cpu", "cuda")


def last_object(path):
    """Returns the last line of a file that is a JSON object, or None."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                pass
    return None


def rows_of(path):
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError:
        return []


def number_or_text(key, text):
    """What a cell of a table means: null, a number, or words (which some numbers are)."""
    if text == "":
        return None
    if key in ("commit", "driver", "cuda") or not re.fullmatch(r"-?[0-9][0-9.e+-]*", text):
        return text
    return float(text) if re.search(r"[.e]", text) else int(text)


def read_figures(folder):
    """Returns all that was measured; what is missing is None or empty."""
    benchmarks = sorted(path.parent for path in folder.glob("pipeline_*/cells.csv"))
    return {
        "encode": last_object(folder / "device_encode.log"),
        "copies": last_object(folder / "pipeline_copies.log"),
        "timeline": last_object(folder / "test_cupti_gpu.log"),
        "torch": last_object(folder / "torch_encode.log"),
        "zoo": last_object(folder / "zoo_models.log"),
        "zoo_torch": last_object(folder / "zoo_torch.log"),
        "gemm": last_object(folder / "gemm.log"),
        "llm": [found for name in TEXTS if (found := last_object(folder / f"llm.{name}.json"))] or None,
        "benchmarks": [
            {"benchmark": path.name, **{key: number_or_text(key, text) for key, text in row.items()}}
            for path in benchmarks for row in rows_of(path / "cells.csv")],
        "trials": {path.name: rows_of(path / "trials.csv") for path in benchmarks},
    }


def table(head, rows):
    return ["", head, "|" + "---|" * (head.count("|") - 1),
            *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)]


def zoo_tables(report):
    """Small models beside PyTorch's graphs with the same batch, and products of matrices."""
    lines = []
    if report["zoo"]:
        theirs = {row["name"]: row for row in (report["zoo_torch"] or {}).get("models", ())}
        lines += table("| model | batch | p50 ns | items/s | PyTorch's time / ours |",
                       [(model["name"], batch["batch_size"], batch["p50_ns"],
                         f"{batch['items_per_second']:.0f}",
                         theirs.get(model["name"], {}).get("torch_ratio", "")
                         if batch is model["batches"][-1] else "")
                        for model in report["zoo"]["models"] for batch in model["batches"]])
    if report["gemm"]:
        lines += table("| size | type | by | p50 ns | GFLOP/s |",
                       [(row["size"], row["type"], row["implementation"], row["p50_ns"],
                         f"{row['flops_per_second'] / 1e9:.0f}")
                        for row in report["gemm"]["gemm"] if row["flops_per_second"]])
    return lines


def as_markdown(report, folder):
    lines = ["# GPU check", ""]
    if report["emulated"]:
        lines += ["**The CUDA runtime was emulated on a CPU: no time here means anything.**", ""]
    elif report["quick"]:
        lines += ["**Small benchmarks (--quick), to see that they work: no figures.**", ""]
    if report["ended"]:
        lines += ["**Ended before all checks had run.**", ""]
    lines += table("| | |", [(key, report[key][:10] if key == "date" else report[key])
                             for key in ("date", "commit", "device", "driver", "minutes")])[1:]
    lines += table("| goal | measured | asked for | |",
                   [(goal["name"], goal["value"], f"at {goal['bound']} {goal['goal']}", goal["verdict"])
                    for goal in report["goals"]])
    lines += table("| check | outcome | seconds |",
                   [(check["name"], check["outcome"], check["seconds"]) for check in report["checks"]])
    for name in TABLES:
        found = last_object(folder / f"{name}.log")
        if found:
            lines += table(f"| {name} | |", found.items())
    for name, found in zip(("cpu", "cuda"), report["llm"] or ()):
        lines += table(f"| llm on {found.get('device', name)} | |", found.items())
    lines += zoo_tables(report)
    for path in sorted(folder.glob("pipeline_*/report.md")):
        lines += ["", re.sub("^#", "##", path.read_text(encoding="utf-8"), flags=re.M)]
    return "\n".join(lines) + "\n"


def replace(path, text):
    """Writes a file at once: who ends this leaves the one before whole."""
    fresh = path.with_suffix(path.suffix + ".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def write(folder, facts, checks, ended):
    """Writes both reports; `facts` are the keys that are known before the first check."""
    folder = pathlib.Path(folder)
    figures = read_figures(folder)
    report = {"format": 2, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **facts,
              "ended": ended, "checks": checks, "goals": judge.goals(figures)}
    report.update((key, figures[key])
                  for key in ("encode", "copies", "timeline", "torch", "llm", "zoo", "zoo_torch",
                              "gemm", "benchmarks"))
    replace(folder / "report.json", json.dumps(report) + "\n")
    replace(folder / "report.md", as_markdown(report, folder))
