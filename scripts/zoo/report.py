#!/usr/bin/env python3
"""Writes the report of scripts/zoo_report.sh as Markdown.

    scripts/zoo/report.py [--commit COMMIT] FOLDER

FOLDER has zoo.json, an object of `inferstat-worker zoo --json`; compress-HOW.json, the same with
--compress HOW; and race.json, the times of other programs by scripts/zoo/race.py.  Only the first
must be there.
"""

import argparse
import datetime
import json
import pathlib
import statistics

# What the guide claims: mean time in ms, parameters in thousands, memory in MB.
CLAIMS = {"vision": (0.78, 58, 0.16), "audio": (0.54, 28, 0.09), "sensor": (0.60, 32, 0.11),
          "all": (0.64, 39, 0.12)}
KB = 1024
INT8_LIMIT = 100 * KB
# Of a model: what, its value, limit, whether less is better, how it prints, what the guide claims.
TARGETS = [
    ("inference, p50", lambda m: m["p50_ns"] / 1e6, 2, True, "{:.3f} ms", "0.64 ms"),
    ("items a second, best batch", lambda m: m["best_items_per_second"], 500, False, "{:,.0f}",
     "1,800"),
    ("weights and activations", lambda m: memory(m) / KB, 100, True, "{:,.0f} KB", "40 KB"),
    ("load and first inference", lambda m: m["start_ns"] / 1e6, 100, True, "{:.1f} ms", "45 ms"),
]


def memory(model):
    return model["weight_bytes"] + model["activation_bytes"]


def mean(values):
    return statistics.fmean(values)


def table(head, rows):
    """Markdown; columns whose heading ends with a colon are aligned to the right."""
    yield "| " + " | ".join(name.rstrip(":") for name in head) + " |"
    yield "|" + "|".join("---:" if name.endswith(":") else "---" for name in head) + "|"
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def environment(figures, commit):
    rows = [("date", datetime.datetime.now(datetime.timezone.utc).strftime("%FT%TZ")),
            ("commit", commit),
            ("device", f"{figures['device']}, kernels {figures['kernels']}, "
                       f"{figures['threads']} threads")]
    rows += [(name.replace("_", " "), text or "unknown")
             for name, text in figures["fingerprint"].items()]
    return table(("", ""), rows)


def categories(models):
    rows = []
    for name, (ms, parameters, megabytes) in CLAIMS.items():
        those = [m for m in models if m["category"] == name or name == "all" and
                 m["category"] in CLAIMS]
        if those:
            rows.append((name, len(those), f"{mean([m['p50_ns'] for m in those]) / 1e6:.3f}", ms,
                         f"{mean([m['parameters'] for m in those]) / 1e3:.1f}", parameters,
                         f"{mean([memory(m) for m in those]) / KB / KB:.3f}", megabytes,
                         f"{mean([m['best_items_per_second'] for m in those]):,.0f}"))
    return table(("category", "models:", "p50, ms:", "claimed:", "parameters, K:", "claimed:",
                  "memory, MB:", "claimed:", "items/s, best batch:"), rows)


def targets(figures):
    rows = []
    for name, value, limit, less, form, claimed in TARGETS:
        values = [(value(m), m["name"]) for m in figures["models"]]
        met = sum(v <= limit if less else v >= limit for v, _ in values)
        worst = max(values) if less else min(values)
        rows.append((name, ("at most " if less else "at least ") + form.format(limit), claimed,
                     form.format(mean([v for v, _ in values])),
                     f"{form.format(worst[0])} ({worst[1]})", f"{met} of {len(values)}"))
    start, size = figures["process_start_ns"] / 1e6, figures["binary_bytes"] / KB / KB
    rows.append(("process to its first inference", "at most 100 ms", "45 ms", f"{start:.1f} ms", "",
                 "met" if start <= 100 else "missed"))
    rows.append(("program", "at most 20 MB", "8.5 MB", f"{size:.1f} MB", "",
                 "met" if size <= 20 else "missed"))
    return table(("target", "limit", "claimed", "mean", "worst", "met by"), rows)


def all_models(models):
    rows = [(m["category"], m["name"], f"{m['parameters']:,}", f"{m['macs'] / 1e6:.2f}",
             f"{m['weight_bytes'] / KB:.0f}", f"{m['activation_bytes'] / KB:.0f}",
             f"{m['p50_ns'] / 1e3:.1f}", f"{m['p95_ns'] / 1e3:.1f}", f"{m['p99_ns'] / 1e3:.1f}",
             f"{m['items_per_second']:,.0f}",
             f"{m['best_items_per_second']:,.0f} ({m['best_batch_size']})",
             f"{m['start_ns'] / 1e6:.2f}", m["task"]) for m in models]
    return table(("category", "model", "parameters:", "M MACs:", "weights, KB:", "activations, KB:",
                  "p50, us:", "p95:", "p99:", "items/s:", "best (batch):", "start, ms:", "task"),
                 rows)


# Columns of race.json: its key, heading, what a unit of it is.
RACE = [("ours_ns", "here, us:", 1e3), ("onnx_ns", "ONNX Runtime, us:", 1e3),
        ("folded_ns", "norms folded, us:", 1e3), ("onnx_ratio", "ratio:", 1),
        ("onnx_net_ratio", "without the call:", 1), ("torch_ns", "PyTorch, us:", 1e3),
        ("torch_ratio", "ratio:", 1)]


def race(figures):
    """Times of other programs: ratios above 1 are models that run faster here."""
    rows = [*figures["models"], {"name": "geometric mean", **figures["geometric_means"]}]
    columns = [column for column in RACE if any(column[0] in row for row in rows)]
    yield (f"Ratios above 1: faster here. {figures['rounds']} rounds in turn, batch "
           f"{figures['batch']}, {figures['threads']} threads; " +
           ", ".join(f"{name} {version}" for name, version in figures["versions"].items()) +
           ". ONNX Runtime is compared by the faster of its two columns; its calls pass through "
           "Python, whose time the next ratio is without.")
    yield ""
    yield from table(("model", *(heading for _, heading, _ in columns)),
                     [(row["name"], *(f"{row[key] / unit:.2f}" if key in row else "-"
                                      for key, _, unit in columns)) for row in rows])
    for key, name in (("onnx_ratio", "ONNX Runtime"), ("torch_ratio", "PyTorch")):
        slower = [row["name"] for row in figures["models"] if row.get(key, 1) < 1]
        if any(key in row for row in figures["models"]):
            yield f"Faster in {name}: {', '.join(slower) or 'none'}."
            yield ""


def cell(value, form):
    return "-" if value is None else form.format(value)


def compression(figures):
    rows = []
    for m in figures["models"]:
        c = m.get("compressed")
        if c:
            rows.append((m["name"], f"{c['original_weight_bytes'] / KB:.1f}",
                         f"{c['weight_bytes'] / KB:.1f}", f"{m['p50_ns'] / 1e3:.1f}",
                         cell(c.get("p50_ns") and c["p50_ns"] / 1e3, "{:.1f}"),
                         cell(c.get("distillation_loss"), "{:.4f}"),
                         cell(c.get("top1_agreement"), "{:.3f}"),
                         cell(c.get("output_error"), "{:.2g}")))
    return table(("model", "weights, KB:", "compressed:", "p50, us:", "compressed:",
                  "distillation loss:", "top-1 agreement:", "output error:"), rows)


def int8_sizes(figures):
    large = [f"{m['name']} ({m['compressed']['weight_bytes'] / KB:.0f} KB)"
             for m in figures["models"]
             if m.get("compressed") and m["compressed"]["weight_bytes"] > INT8_LIMIT]
    return ("INT8 weights over 100 KB: " + ", ".join(large) if large else
            "INT8 weights of every model take less than 100 KB") + ".\n"


def read(path):
    return json.loads(path.read_text()) if path.exists() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    figures = read(options.folder / "zoo.json")
    lines = ["# Small models", "", *environment(figures, options.commit), "## Categories", "",
             "Claims are those of the guide. Memory: weights and activations of a batch of "
             f"{figures['models'][0]['batch_size']}.", "", *categories(figures["models"]),
             "## Targets", "", *targets(figures), "## Models", "", *all_models(figures["models"])]
    raced = read(options.folder / "race.json")
    if raced:
        lines += ["## Beside other programs", "", *race(raced)]
    for path in sorted(options.folder.glob("compress-*.json")):
        how = path.stem.removeprefix("compress-").replace("-", ":")
        compressed = read(path)
        lines += [f"## Compression {how}", "", *compression(compressed)]
        if how == "int8":
            lines.append(int8_sizes(compressed))
    print("\n".join(lines).rstrip())


if __name__ == "__main__":
    main()
