"""What all peers share: the jobs, how arrays are read, how a side is timed, and the command line of a side.

A side is one way of doing a job with one library (`jax`, `jax-factors`, `torch`, …). Each side runs in a process of its
own, so that no library inherits another one's threads, allocator or caches, and answers with one line of JSON.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from report import JOBS

# Before numpy, scipy, torch or XLA are loaded: their thread pools read these once. `run.py` sets the same variables;
# here they also hold for somebody who starts one side by hand.
THREADS = os.environ.get("PEERS_THREADS", "1")
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ.setdefault(variable, THREADS)
if THREADS == "1":
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np  # noqa: E402  (the environment comes first)

# Settings that every training job shares; the network has layer norm with gain and offset and no biases.
LR, L2, BETA1, BETA2, EPS = 1e-3, 1e-4, 0.9, 0.999, 1e-8
LAMBDA, NORM_EPS = 0.1, 1e-5
NAMES = ("w1", "gain", "offset", "out")  # of the paper's network

# Of networks of any depth: a layer's weights, bias, gain and offset, where it has them.
LAYERS = (("w1", "bias", "gain", "offset"), ("w2", "bias2", "gain2", "offset2"))
ALL_NAMES = tuple(name for layer in LAYERS for name in layer) + ("out", "out_bias")


@dataclass
class Case:
    """A side prepared for a job: arrays on the device, nothing computed yet.

    `run(n)` works through the first `n` items (rounds, rows or contexts) and returns named numpy-convertible arrays,
    complete on return. `whole` is the size of the job; `timed` is how much of it one timed run does, less where the
    whole would take minutes or gigabytes; `checked` how much the check does. `units` is units per item, so that
    seconds / (n · units) is the time of one unit whatever `n`.
    """

    run: Callable[[int], dict]
    whole: int
    units: float
    items: str
    timed: int = 0
    checked: int = 0

    def __post_init__(self):
        self.timed = min(self.timed or self.whole, self.whole)
        self.checked = min(self.checked or self.whole, self.whole)


def load(folder, job):
    """The arrays of one exported job by name. Every file is read whole: the page cache takes no part in the timing."""
    files = sorted(Path(folder, job).glob("*.npy"))
    if not files:
        sys.exit(f"error: no arrays of `{job}` in {folder}")
    return {file.stem: np.load(file) for file in files}


def names_of(a):
    """The names of the parameters of an export, or of a network."""
    return [name for name in ALL_NAMES if name in a or f"{name}_0" in a]


def layers_of(w):
    """The names of each hidden layer's parameters."""
    return [layer for layer in LAYERS if layer[0] in w]


def corrections(steps):
    """Adam's bias corrections 1 − β^t for t = 1 … steps, in f64: in f32, 1 − 0.999 alone loses four digits."""
    t = np.arange(1, steps + 1, dtype=np.float64)
    return 1.0 - BETA1**t, 1.0 - BETA2**t


def measure(case, budget):
    """Times of one unit, one per run, until `budget` seconds are used (at least two runs), and CPU per wall time.

    The first run is thrown away: it compiles, allocates and fills the caches.
    """
    case.run(case.timed)
    samples, walls, cpus = [], 0.0, 0.0
    while len(samples) < 2 or (walls < budget and len(samples) < 1000):
        cpu, wall = time.process_time(), time.perf_counter()
        case.run(case.timed)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        samples.append(wall / (case.timed * case.units))
        walls, cpus = walls + wall, cpus + cpu
    return samples, cpus / walls


def main(sides, version):
    """Command line of a library's file. `sides` is {(job, side): function of the arrays that returns a `Case`}."""
    parser = argparse.ArgumentParser(description="One side of one job; prints one line of JSON.")
    parser.add_argument("what", choices=["list", "check", "time"])
    parser.add_argument("--data", help="folder written by `neuralcb bench --export`")
    parser.add_argument("--job", choices=[name for name, *_ in JOBS])
    parser.add_argument("--side")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of timed runs")
    args = parser.parse_args()
    if args.what == "list":
        print(json.dumps({"version": version, "sides": [list(key) for key in sides]}))
        return
    if (args.job, args.side) not in sides:
        sys.exit(f"error: no side `{args.side}` of `{args.job}` here")
    arrays = load(args.data, args.job)
    case = sides[args.job, args.side](arrays)
    if args.what == "check":
        import agreement  # only here: a timed process loads nothing it does not need

        found = agreement.of_case(args.job, arrays, case)
        agrees = all(error <= bound for error, bound in found.values())
        answer = {"agrees": agrees, "differences": found, "checked": case.checked, "whole": case.whole}
    else:
        samples, cpu_per_wall = measure(case, args.budget)
        answer = {"samples": samples, "cpu_per_wall": cpu_per_wall, "timed": case.timed, "whole": case.whole}
        answer["items"] = case.items
    print(json.dumps(answer))
