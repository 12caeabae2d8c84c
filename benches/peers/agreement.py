"""Does a side compute the same numbers as the export? A side that does not is not timed.

    python3 agreement.py DIR     the exported outputs themselves against `reference.py`; exit code 1 if one is off
"""

import sys

import numpy as np
import reference
from common import LAMBDA, load
from report import JOBS

# Root mean square of the difference over that of the values, for mean and width of network rows in f32. A sum of 784
# products in another order differs by eps·√784 ≈ 2e-6 at most. Not the largest difference: where a unit's input is 0 up
# to rounding, ReLU's slope is 0 in one program and 1 in the other, and that row's width differs by 1e-3; a few rows in
# 100,000 do that. A wrong term shows as 1e-2 and more.
TOL_NET = 1e-5
# LinLCB, f64 on both sides: the condition of Λ (below 1e4) times eps, and a margin of a thousand.
TOL_LINEAR = 1e-9
# KernLCB: f64 in the peers; 1 − kᵀ(K + λI)⁻¹k cancels, and a program may keep kernel entries in f32 (6e-8 each).
TOL_KERNEL = 1e-5

# Training is compared as ‖w − w'‖ / ‖w' − w₀‖: distance of the end points over the distance moved; 0 for the same
# path, about 1.4 for unrelated ones. Rounding in f32 grows from step to step (ReLU's kinks, Adam's division by √ν).
#
# Early: against the reference in f64 after a few hundred steps at most, where two correct programs differ by 1e-5
# and a forgotten L2 term or bias correction by 1e-2 and more.
EARLY_ROUNDS = {"synthetic-s-step": 300, "synthetic-b-step": 2, "mnist-s-step": 20, "mnist-b-step": 20}
TOL_EARLY = 1e-3
# At the end of the job, against the export: bounds for the weights and for Λ. Only `synthetic-b-step` drifts, 20,000 steps
# on at most 200 rows: correct programs end up to 0.4 apart in the weights and 0.03 in Λ; without L2, or with β₂ = 0.99, it
# is 0.5–1.0 and 0.3–0.4. The bounds tell those apart; finer errors are found early, and B-mode by `mnist-b-step`.
TOL_END = {
    "synthetic-s-step": (1e-3, 1e-3),
    "synthetic-b-step": (0.6, 0.1),
    "mnist-s-step": (1e-3, 1e-3),
    "mnist-b-step": (1e-3, 1e-3),
}


def norm(a):
    return float(np.sqrt(np.sum(np.square(a, dtype=np.float64))))


def over(difference, scale):
    """‖difference‖ / ‖scale‖; infinite where anything is not a number, so that no bound lets it pass."""
    ratio = norm(difference) / max(norm(scale), 1e-30)
    return ratio if np.isfinite(ratio) else float("inf")


def differences(job, arrays, got, want, bound_of):
    """{name: (error, bound)} of the outputs `got` against `want`; leading rows where `got` has fewer."""
    found = {}
    for name, value in got.items():
        value, right = np.asarray(value, np.float64), np.asarray(want[name], np.float64)
        if not job.endswith("-step"):
            right = right[: len(value)]
        if value.shape != right.shape:
            sys.exit(f"error: `{name}` of `{job}` has shape {value.shape}, not {right.shape}")
        scale = right
        if job.endswith("-step"):
            scale = right - (arrays[f"{name}_0"] if f"{name}_0" in arrays else LAMBDA)
        found[name] = (over(value - right, scale), bound_of(name))
    return found


def against_export(job, arrays, got):
    """The outputs of a whole job, or of its leading rows, against the exported ones."""

    def bound_of(name):
        if job.endswith("-step"):
            return TOL_END[job][name.startswith("lam_")]
        return TOL_LINEAR if job.startswith("linear") else TOL_KERNEL if job.startswith("kernel") else TOL_NET

    return differences(job, arrays, got, arrays, bound_of)


def of_case(job, arrays, case):
    """All differences of one side: against the export, and for a training also early, against the reference."""
    found = against_export(job, arrays, case.run(case.checked))
    if job in EARLY_ROUNDS:
        n = min(EARLY_ROUNDS[job], case.whole)
        early = differences(job, arrays, case.run(n), reference.train(arrays, n), lambda name: TOL_EARLY)
        found.update({f"{name} after {n} rounds": pair for name, pair in early.items()})
    return found


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
    sys.exit(main(sys.argv[1]))
