"""Does a side compute the same numbers as the export? A side that does not is not timed.

    python3 agreement.py DIR         the exported results themselves against `reference.py`; exit code 1 if one is off
    python3 agreement.py selftest    would a training with a small mistake be refused?
"""

import sys

import numpy as np
import reference
from common import LAMBDA, load
from report import JOBS, is_training

# Mean and width of network rows in f32: the largest difference of any row over the root mean square of the values. A
# sum of 784 products in another order differs by eps·√784 ≈ 2e-6 or so; the layer norm's division and the sum over units
# add to it. A wrong term shows as 1e-2 and more.
TOL_NET = 2e-5
# Not for widths of rows at a kink: where a unit's input is 0 up to rounding, ReLU's slope is 0 in one program and 1 in
# another, and the width, unlike the mean, jumps (by up to 2 % in the shape of MNIST). Which rows those are is known from
# the reference in f64; they are left out of the comparison of widths, and must be few.
KINK, MOST_KINKS = 1e-5, 0.01
# LinLCB: f64 on both sides, the condition of Λ (below 1e4) times eps, and a margin of a thousand; for widths, whose product a
# program may do in f32, the root of the condition times the rounding of f32, and a margin.
TOL_LINEAR, TOL_LINEAR_WIDTH = 1e-9, 1e-5
# KernLCB: f64 in the peers; 1 − kᵀ(K + λI)⁻¹k cancels, and a program may keep kernel entries in f32 (6e-8 each).
TOL_KERNEL = 1e-5

# Training is compared as ‖w − w'‖ / ‖w' − w₀‖: distance of the end points over the distance moved; 0 for the same
# path, about 1.4 for unrelated ones. Rounding in f32 grows from step to step (ReLU's kinks, Adam's division by √ν).
#
# Early: against the reference in f64 after a few hundred steps at most. Correct programs differ by 3e-5 there; the
# mistakes of `selftest` by 2.6e-4 (another ε in the layer norm) and more. That ε alone matters less in the synthetic jobs:
# 1e-6 instead of 1e-5 changes them by 1e-4 and would pass there.
EARLY_ROUNDS = {"synthetic-s-step": 300, "synthetic-b-step": 2}
EARLY_ROUNDS.update({job: 20 for job, *_ in JOBS if is_training(job) and job not in EARLY_ROUNDS})
TOL_EARLY = 2e-4
# At the end of the job, against the export: bounds for the weights and for Λ. Only `synthetic-b-step` drifts, 20,000 steps
# on at most 200 rows: correct programs end up to 0.4 apart in the weights and 0.03 in Λ; without L2, or with β₂ = 0.99, it
# is 0.5–1.0 and 0.3–0.4. The bounds tell those apart; finer errors are found early, and B-mode by `mnist-b-step`.
TOL_END = {job: (2e-4, 2e-4) for job in EARLY_ROUNDS} | {"synthetic-b-step": (0.6, 0.1)}
# A trunk has no layer norm, and a unit of a round may lie at a kink: its slope is then 0 here and 1 there, which is one of
# some thousand terms of Λ. In the weights 50 other rows of the batch hide it.
TOL_LAMBDA_OF_TRUNK = 5e-3


def norm(a):
    return float(np.sqrt(np.sum(np.square(a, dtype=np.float64))))


def finite(error):
    """Infinite where anything is not a number, so that no bound lets it pass."""
    return float(error) if np.isfinite(error) else float("inf")


def same_shape(job, name, value, right):
    value, right = np.asarray(value, np.float64), np.asarray(right, np.float64)
    if value.shape != right.shape:
        sys.exit(f"error: `{name}` of `{job}` has shape {value.shape}, not {right.shape}")
    return value, right


def trained(job, arrays, got, want):
    """{name: error} of weights and Λ: distance over the distance moved."""
    found = {}
    for name in got:
        value, right = same_shape(job, name, got[name], want[name])
        start = arrays[f"{name}_0"] if f"{name}_0" in arrays else LAMBDA
        found[name] = finite(norm(value - right) / max(norm(right - start), 1e-30))
    return found


def scored(job, got, want, at_kink=None):
    """{name: error} of leading rows: the largest difference over the root mean square of the values."""
    found = {}
    for name in got:
        value, right = same_shape(job, name, got[name], want[name][: len(got[name])])
        difference = np.abs(value - right)
        if name == "width" and at_kink is not None:
            difference = np.where(at_kink & np.isfinite(difference), 0.0, difference)
        found[name] = finite(np.max(difference) * np.sqrt(right.size) / max(norm(right), 1e-30))
    return found


def kinks(job, arrays, n):
    """Which of the first n rows lie at a kink."""
    at_kink = reference.kink_distance({**arrays, "x": arrays["x"][:n]}) < KINK
    if np.mean(at_kink) > MOST_KINKS:
        sys.exit(f"error: {np.mean(at_kink):.1%} of the rows of `{job}` lie at a kink, at most {MOST_KINKS:.0%} may")
    return at_kink


def bound_of(job, name, bounds):
    """The bound of weights or of Λ."""
    is_lambda = name.startswith("lam_")
    return TOL_LAMBDA_OF_TRUNK if is_lambda and "trunk" in job else bounds[is_lambda]


def against_export(job, arrays, got):
    """{name: (error, bound)} of a whole training, or of a scoring's leading rows, against the exported results."""
    if is_training(job):
        found = trained(job, arrays, got, arrays)
        return {name: (error, bound_of(job, name, TOL_END[job])) for name, error in found.items()}
    bound = TOL_LINEAR if job.startswith("linear") else TOL_KERNEL if job.startswith("kernel") else TOL_NET
    at_kink = kinks(job, arrays, len(got["width"])) if bound == TOL_NET else None
    of_width = TOL_LINEAR_WIDTH if bound == TOL_LINEAR else bound
    found = scored(job, got, arrays, at_kink)
    return {name: (error, of_width if name == "width" else bound) for name, error in found.items()}


def of_case(job, arrays, case):
    """All differences of one side: against the export, and for a training also early, against the reference."""
    found = against_export(job, arrays, case.run(case.checked))
    if job in EARLY_ROUNDS:
        n = min(EARLY_ROUNDS[job], case.whole)
        early = trained(job, arrays, case.run(n), reference.train(arrays, n))
        bound = lambda name: bound_of(job, name, (TOL_EARLY, TOL_EARLY))
        found.update({f"{name} after {n} rounds": (error, bound(name)) for name, error in early.items()})
    return found


def selftest():
    """Small mistakes in a training, one at a time; exit code 1 if the early check would let one pass."""
    job, passed = "mnist-b-step", 0
    arrays, n = reference.inputs(job, np.random.default_rng(1), small=True), EARLY_ROUNDS[job]
    right = reference.train(arrays, n)
    mistakes = {"L2": 1.1e-4, "LR": 1.01e-3, "BETA1": 0.89, "BETA2": 0.998, "EPS": 1e-6, "NORM_EPS": 1e-6, "LAMBDA": 0.11}
    for name, value in mistakes.items():
        kept = getattr(reference, name)
        setattr(reference, name, value)
        error = max(trained(job, arrays, reference.train(arrays, n), right).values())
        setattr(reference, name, kept)
        passed += error <= TOL_EARLY
        print(f"{name} = {value:g} instead of {kept:g}: {error:.1e}, {'PASSED' if error <= TOL_EARLY else 'refused'}")
    return 1 if passed else 0


def main(folder):
    wrong = 0
    for job, *_ in JOBS:
        arrays = load(folder, job)
        found = against_export(job, arrays, reference.outputs(job, arrays))
        wrong += any(error > bound for error, bound in found.values())
        print(f"{job:24}" + "  ".join(f"{name} {error:.1e}" for name, (error, _) in found.items()), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(selftest() if sys.argv[1] == "selftest" else main(sys.argv[1]))
