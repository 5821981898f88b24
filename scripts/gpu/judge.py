"""Which goals the figures of gpu_check.sh reach.  `figures` is what report.py reads of a folder."""

import statistics


def ratio(a, b):
    """Returns a / b, or None where either is missing or b is not positive."""
    return a / b if a is not None and b and b > 0 else None


def best_cell(trials, sync, value):
    """Of the trials of most qubits up to 16: the largest of the cells' medians, or None."""
    cells = {}
    for trial in trials:
        number = value(trial)
        if trial["sync"] == sync and int(trial["qubits"]) <= 16 and number is not None:
            key = int(trial["qubits"]), trial["batch"], trial["prefetch"]
            cells.setdefault(key, []).append(number)
    most = max((key[0] for key in cells), default=None)
    return max((statistics.median(values) for key, values in cells.items() if key[0] == most),
               default=None)


def column(name, under=None):
    """Returns a function that reads a column of a trial, or its ratio to another."""
    def number(trial, key):
        return float(trial[key]) if trial.get(key) else None

    if under:
        return lambda trial: ratio(number(trial, name), number(trial, under))
    return lambda trial: number(trial, name)


def goals(figures):
    """Returns the goals that have a value, as report.json has them."""
    encode, copies = figures["encode"] or {}, figures["copies"] or {}
    torch, timeline = figures["torch"] or {}, figures["timeline"] or {}
    trials = figures["trials"]
    zoo = (figures["zoo_torch"] or {}).get("geometric_means", {})
    found = [("zoo_ratio_to_torch", zoo.get("torch_ratio"), "least", 1),
             ("timeline_to_cupti_error", timeline.get("timeline_to_cupti_error"), "most", 0.01)]
    for key, goal in encode.items():
        if key.endswith("_goal"):
            found.append((key[:-5], encode.get(key[:-5]), "least", goal))
    for kind in ("f64", "f32"):
        key = f"amplitude_{kind}_states_per_second"
        found.append((f"amplitude_{kind}_ratio_to_torch", ratio(encode.get(key), torch.get(key)), "least", 2))
    for key, goal in (("ratio_to_bare_loop", 0.95), ("ratio_to_slower_of_fill_and_bare", 0.9),
                      ("ratio_to_no_instruments", 0.99)):
        found.append((key, copies.get(key), "least", goal))

    def cell(name, sync, *columns):
        return best_cell(trials.get(f"pipeline_{name}", []), sync, column(*columns))

    bare = copies.get("bare_mb_per_second")
    for name in ("amplitude", "amplitude_f32", "iqp"):
        if name != "iqp":
            rate = cell(name, "events", "bytes_h2d", "duration_ns")  # GB/s
            found.append((f"{name}_ratio_to_bare_loop",
                          ratio(rate * 1e3 if rate is not None else None, bare), "least", 0.95))
        found.append((f"{name}_events_to_periodic",
                      ratio(cell(name, "events", "items_per_second"),
                            cell(name, "periodic", "items_per_second")),
                      "least", 1.25 if name == "iqp" else 1))
    found.append(("iqp_overlap_ratio", cell("iqp", "events", "overlap_ratio"), "least", 0.95))
    found.append(("iqp_exposed_share_of_copy",
                  cell("iqp", "events", "exposed_copy_ns", "copy_busy_ns"), "most", 0.05))
    found.append(("iqp_starved_share_of_time",
                  cell("iqp", "events", "copy_starved_ns", "duration_ns"), "most", 0.01))
    return [verdict(*line) for line in found if line[1] is not None]


def verdict(name, value, bound, goal):
    reached = value >= goal if bound == "least" else value <= goal
    return {"name": name, "value": float(f"{value:.6g}"), "goal": goal, "bound": bound,
            "verdict": "reached" if reached else "missed"}
