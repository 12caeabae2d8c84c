"""docs/performance.svg from results.json, by hand: no plotting library, the same bytes for the same results.

    python3 picture.py results.json performance.svg

A bar is a time divided by neuralcb's for the same job, on a logarithmic scale. The picture brings its own background, so
that it reads the same on light and dark pages.
"""

import json
import math
import sys
from html import escape
from pathlib import Path

from report import JOBS, human, scaled, times

WIDTH, LEFT, RIGHT, EDGE = 1000, 150, 190, 28  # px: the picture, names, numbers, margin
BAR, STEP, HEAD, GAP = 14, 19, 23, 15  # px: a bar, bar to bar, a job's heading, after a job
TOP, BOTTOM = 112, 78

INK, FAINT, GRID, PAPER, OURS = "#1d2733", "#5b6875", "#e1e6eb", "#ffffff", "#d9480f"
COLOURS = {
    "jax": "#364fc7",
    "jax-tuned": "#5c7cfa",
    "jax-factors": "#91a7ff",
    "torch": "#7048a8",
    "sklearn": "#2b8a3e",
    "numpy": "#1098ad",
    "numpy-log": "#7fc9d6",
}
NAMES = {
    "jax": "JAX",
    "jax-tuned": "JAX, tuned",
    "jax-factors": "JAX, by hand",
    "torch": "PyTorch",
    "sklearn": "scikit-learn",
    "numpy": "NumPy",
    "numpy-log": "NumPy, whole log",
}
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"


def text(x, y, words, size=13, fill=INK, anchor="start", weight=400):
    style = f'font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def rect(x, y, width, height, fill, more=""):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"{more}/>'


def ends(ratios):
    """The scale's ends, as powers of ten: a whole one below all ratios, so that neuralcb's bar has a length."""
    return min(math.floor(math.log10(min(ratios) * 0.9)), -1), max(math.log10(max(ratios)), 1.0)


def draw(results):
    jobs = [(name, title, results["summary"][name]) for name, _, title in JOBS if name in results["summary"]]
    low, high = ends([r for *_, found in jobs for r in found["ratios"].values()])
    span = WIDTH - EDGE - LEFT - RIGHT
    at = lambda ratio: EDGE + LEFT + (math.log10(ratio) - low) / (high - low) * span
    groups = [HEAD + STEP * len(found["ratios"]) + GAP for *_, found in jobs]
    height = TOP + sum(groups) + BOTTOM
    floor = height - BOTTOM

    out = [rect(0, 0, WIDTH, height, PAPER, ' rx="10"')]
    out.append(text(EDGE, 38, "The same work in neuralcb and in other libraries", 20, weight=600))
    threads = results["settings"]["threads"]
    how = "one thread on one core" if threads == 1 else f"{threads} threads for the others, one for neuralcb"
    out.append(text(EDGE, 60, f"Time divided by neuralcb's, logarithmic scale: shorter is faster. {how.capitalize()}.", fill=FAINT))
    for power in range(low, math.floor(high) + 1):
        x = at(10.0**power)
        ours = power == 0
        out.append(rect(x - (0.75 if ours else 0.5), TOP - 16, 1.5 if ours else 1, floor - TOP + 16, OURS if ours else GRID))
        label = f"{10**power:,}×" if power >= 0 else f"{10.0**power:g}×"
        out.append(text(x, TOP - 22, label, 12, OURS if ours else FAINT, "middle", 600 if ours else 400))

    y = TOP
    for (job, title, found), group in zip(jobs, groups):
        # The heading lies over the grid: paper behind it keeps the lines out of the words.
        out.append(rect(EDGE - 4, y - 2, WIDTH - 2 * EDGE + 8, HEAD - 2, PAPER))
        out.append(text(EDGE, y + 13, title, 13.5, weight=600))
        for i, (side, ratio) in enumerate(found["ratios"].items()):
            top, ours = y + HEAD + i * STEP, side == "neuralcb"
            middle, fill = top + BAR - 3, OURS if ours else COLOURS.get(side, FAINT)
            part = scaled(job, found, side)
            out.append(text(EDGE + LEFT - 10, middle, NAMES.get(side, side), 12.5, INK, "end", 600 if ours else 400))
            out.append(rect(at(10.0**low), top, at(ratio) - at(10.0**low), BAR, fill, ' rx="2"'))
            words = human(found["times"][side]) + ("" if ours else f"  ·  {times(ratio)}") + (" *" if part else "")
            # Paper behind the numbers as well, as wide as such words can be.
            out.append(rect(at(ratio) + 2, top, 8.2 * len(words) + 6, BAR, PAPER))
            out.append(text(at(ratio) + 7, middle, words, 12.5, INK, weight=600 if ours else 400))
        y += group

    notes = [" · ".join(results["versions"])]
    cpu = results["machine"]
    notes.append(f"{cpu['cpu']}, {cpu['system']}, {results['date']}. * timed on a part of the rows and scaled.")
    if any(fault for *_, found in jobs for fault in found["faults"].values()):
        notes.append("Preliminary: other programs shared the core while this was measured, and times are too long.")
    out += [text(EDGE, floor + 18 + 18 * i, note, 11.5, FAINT) for i, note in enumerate(notes)]
    label = "Bars per job and library: time divided by the time of neuralcb"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return f'{head} role="img" aria-label="{label}" font-family="{FONT}">\n' + "\n".join(out) + "\n</svg>\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: picture.py results.json performance.svg")
    Path(sys.argv[2]).write_text(draw(json.loads(Path(sys.argv[1]).read_text())))
