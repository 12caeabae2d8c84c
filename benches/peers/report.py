"""From all times taken to one time per job and side, and to a table. Pure functions; needs nothing but Python.

`run.py` and `picture.py` share this file, so that table and picture cannot differ.
"""

# name, unit of its time, what it is
JOBS = [
    ("synthetic-s-step", "one round", "Training, one sample per step · 20 inputs, 20 units"),
    ("synthetic-b-step", "one Adam step", "Training, batches of 50 · 20 inputs, 20 units"),
    ("synthetic-score", "300,000 rows", "Mean and width of 300,000 rows · 20 inputs, 20 units"),
    ("mnist-s-step", "one round", "Training, one sample per step · 10 × 784 inputs, 100 units"),
    ("mnist-b-step", "one Adam step", "Training, batches of 50 · 10 × 784 inputs, 100 units"),
    ("mnist-score-dense", "100,000 pairs", "Mean and width of 100,000 pairs · 10 × 784 inputs, 100 units"),
    ("kernel-score", "300,000 rows", "KernLCB, mean and width of 300,000 rows · 1,000 samples"),
    ("kernel-score-disjoint", "300,000 pairs", "KernLCB over 30 disjoint blocks, 300,000 pairs · 1,000 samples"),
    ("linear-observe", "one round", "LinLCB, observing one round · 20 inputs"),
    ("linear-score", "300,000 rows", "LinLCB, mean and width of 300,000 rows · 20 inputs"),
    ("practical-round-d20-k10", "one round", "Practical network, one sample per step · 20 features, 10 actions"),
    ("practical-round-d200-k100", "one round", "Practical network, one sample per step · 200 features, 100 actions"),
    ("practical-batch-d20-k10", "one Adam step", "Practical network, batches of 50 · 20 features, 10 actions"),
    ("practical-batch-d200-k100", "one Adam step", "Practical network, batches of 50 · 200 features, 100 actions"),
    ("practical-score-d20-k10", "10,000 pairs", "Practical network, mean and width · 20 features, 10 actions"),
    ("practical-score-d200-k100", "20,000 pairs", "Practical network, mean and width · 200 features, 100 actions"),
    ("practical-trunk-batch-d20-k10", "one Adam step", "Shared trunk, batches of 64 · 20 features, 10 actions"),
    ("practical-trunk-batch-d200-k100", "one Adam step", "Shared trunk, batches of 64 · 200 features, 100 actions"),
    ("practical-trunk-score-d20-k10", "10,000 pairs", "Shared trunk, mean and width · 20 features, 10 actions"),
    ("practical-trunk-score-d200-k100", "20,000 pairs", "Shared trunk, mean and width · 200 features, 100 actions"),
]


def is_training(job):
    """Whether a job trains a network."""
    return job.endswith("-step") or "-round-" in job or "-batch-" in job


def human(seconds):
    """Seconds with three digits and a unit."""
    for factor, unit in ((1e9, "ns"), (1e6, "µs"), (1e3, "ms"), (1, "s")):
        if seconds * factor < 1000 or unit == "s":
            return f"{seconds * factor:#.3g}".rstrip(".") + f" {unit}"


def times(ratio):
    """A ratio with two or three digits and thousands."""
    return f"{ratio:,.0f}×" if ratio >= 99.5 else f"{ratio:#.3g}×" if ratio >= 9.95 else f"{ratio:#.2g}×"


def scaled(job, found, side):
    """Whether a scoring was timed on a part of its rows. (A training's unit is one step: fewer of them are no scaling.)"""
    return found["timed_share"][side] < 1 and not is_training(job)


def summary(taken):
    """Per job: the least time of each side, its ratio to neuralcb's, that ratio per repeat, the share of the job that was
    timed, and what was wrong with the best sample's process, if anything. Times of more than one thread never count."""
    found = {}
    for job in dict.fromkeys(entry["job"] for entry in taken):
        mine = [e for e in taken if e["job"] == job and e["fault"] != "more than one thread"]
        best, shares, faults, rounds = {}, {}, {}, {}
        for e in mine:
            seconds, side = min(e["samples"]), e["side"]
            shares[side] = e.get("timed", 1) / e.get("whole", 1)
            rounds.setdefault(side, {}).setdefault(e["repeat"], []).append(seconds)
            if seconds < best.get(side, float("inf")):
                best[side], faults[side] = seconds, e["fault"]
        found[job] = {"times": best, "ratios": {}, "range": {}, "timed_share": shares, "faults": faults}
        if ours := best.get("neuralcb"):
            base = {r: min(s) for r, s in rounds["neuralcb"].items()}
            for side in best:
                each = [min(s) / base[r] for r, s in rounds[side].items() if r in base]
                found[job]["ratios"][side] = best[side] / ours
                found[job]["range"][side] = [min(each), max(each)]
    return found


def table(results):
    """The summary as text, a line per job and side."""
    head = f"{'job':32}{'side':14}{'time':>10}{'÷ neuralcb':>12}  {'per repeat':18}per"
    lines = [", ".join(results["versions"]), head, "-" * 108]
    units = {name: unit for name, unit, _ in JOBS}
    for job, found in results["summary"].items():
        for side, seconds in found["times"].items():
            line = f"{job if side == 'neuralcb' else '':32}{side:14}{human(seconds):>10}"
            if side in found["ratios"] and side != "neuralcb":
                low, high = found["range"][side]
                line += f"{times(found['ratios'][side]):>12}  {times(low) + ' … ' + times(high):18}"
            else:
                line += " " * 32
            line += units[job] if side == "neuralcb" else ""
            if scaled(job, found, side):
                line += f"timed on {found['timed_share'][side]:.3g} of the rows, scaled"
            if found["faults"].get(side):
                line += f"  ({found['faults'][side]})"
            lines.append(line.rstrip())
    for entry in results["checks"]:
        if not entry["agrees"]:
            lines.append(f"{entry['job']:32}{entry['side']:14}not timed: {entry.get('failed', 'other numbers')}")
    return "\n".join(lines)
