"""The jobs once more in numpy, f64, as plainly as possible: what every side is judged by (`agreement.py`), and a maker of
inputs in the layout of `neuralcb bench --export`, for work on the peers without the program.

    python3 reference.py selftest             gradient against central differences, factors against whole gradient
    python3 reference.py make DIR [--small]   inputs and outputs of every job
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from common import BETA1, BETA2, EPS, L2, LAMBDA, LR, NAMES, NORM_EPS, corrections
from report import JOBS


def factors(x, w1, gain, offset, out):
    """f and its gradient in factors for rows x of one block (n, d): f (n), δ (n, m), and the gradients of gain, offset
    and out (n, m each). ∇_{w1} f of row i is the outer product of x_i and δ_i."""
    m = len(gain)
    z = x @ w1
    centred = z - z.mean(1, keepdims=True)
    inverse = 1.0 / np.sqrt((centred**2).mean(1, keepdims=True) + NORM_EPS)
    xhat = centred * inverse
    a = gain * xhat + offset
    h = np.maximum(a, 0.0)
    f = np.sqrt(m) * (h @ out)
    d_offset = np.sqrt(m) * out * (a > 0)
    d_gain = d_offset * xhat
    d_xhat = d_offset * gain
    mean_d, mean_dx = d_xhat.mean(1, keepdims=True), (d_xhat * xhat).mean(1, keepdims=True)
    delta = inverse * (d_xhat - mean_d - xhat * mean_dx)
    return f, delta, d_gain, d_offset, np.sqrt(m) * h


def batch_gradient(w, x, block, weight):
    """Σ_i weight_i·∇f(x_i) and f, over all parameters (zero in the blocks of W_1 that no row meets)."""
    total = {name: np.zeros_like(w[name]) for name in NAMES}
    f = np.empty(len(x))
    weight = weight if callable(weight) else (lambda rows, f, given=weight: given[rows])
    for b in np.unique(block):
        rows = np.flatnonzero(block == b)
        f[rows], delta, *rest = factors(x[rows], w["w1"][b], w["gain"], w["offset"], w["out"])
        e = weight(rows, f[rows])
        total["w1"][b] = x[rows].T @ (e[:, None] * delta)
        for name, d in zip(NAMES[1:], rest):
            total[name] += e @ d
    return f, total


class Training:
    """Weights, moments and Λ, and one round or step at a time."""

    def __init__(self, start, total_steps):
        self.w = {name: start[f"{name}_0"].astype(np.float64) for name in NAMES}
        self.mu = {name: np.zeros_like(v) for name, v in self.w.items()}
        self.nu = {name: np.zeros_like(v) for name, v in self.w.items()}
        self.lam = {name: np.full_like(v, LAMBDA) for name, v in self.w.items()}
        self.corrections = corrections(total_steps)
        self.steps = 0

    def grow_lambda(self, x, block):
        _, g = batch_gradient(self.w, x[None], np.array([block]), np.ones(1))
        for name in NAMES:
            self.lam[name] += g[name] ** 2 / len(self.w["gain"])

    def step(self, x, block, reward):
        _, grad = batch_gradient(self.w, x, block, lambda rows, f: (f - reward[rows]) / len(x))
        c1, c2 = (c[self.steps] for c in self.corrections)
        self.steps += 1
        for name in NAMES:
            w, g = self.w[name], grad[name] + L2 * self.w[name]
            self.mu[name] = BETA1 * self.mu[name] + (1 - BETA1) * g
            self.nu[name] = BETA2 * self.nu[name] + (1 - BETA2) * g * g
            w -= LR * (self.mu[name] / c1) / (np.sqrt(self.nu[name] / c2) + EPS)

    def result(self):
        return {**self.w, **{f"lam_{name}": v for name, v in self.lam.items()}}


def train(a, rounds=None):
    """S-mode, or B-mode where there are batches; the first `rounds` rounds."""
    x, block, reward = a["x"].astype(np.float64), a["block"], a["reward"]
    n = rounds or len(x)
    per_round = len(a["batches"]) // len(x) if "batches" in a else 1
    training = Training(a, n * per_round)
    for t in range(n):
        training.grow_lambda(x[t], block[t])
        for j in range(per_round):
            rows = a["batches"][t * per_round + j] if "batches" in a else np.array([t])
            training.step(x[rows], block[rows], reward[rows])
    return training.result()


def score_block(a, x, b):
    """Mean and width of rows x in block b."""
    w = {name: a[name].astype(np.float64) for name in NAMES}
    lam = {name: a[f"lam_{name}"].astype(np.float64) for name in NAMES}
    f, delta, *rest = factors(x, w["w1"][b], w["gain"], w["offset"], w["out"])
    square = np.sum(((x**2) @ (1 / lam["w1"][b])) * delta**2, axis=1)
    for name, d in zip(NAMES[1:], rest):
        square += d**2 @ (1 / lam[name])
    return f, np.sqrt(square / len(w["gain"]))


def kink_distance(a):
    """Per pair, in the shape of the width: how near to 0, ReLU's kink, its nearest unit comes."""
    x, w = a["x"].astype(np.float64), {name: a[name].astype(np.float64) for name in NAMES}

    def of_block(b):
        z = x @ w["w1"][b]
        centred = z - z.mean(1, keepdims=True)
        xhat = centred / np.sqrt((centred**2).mean(1, keepdims=True) + NORM_EPS)
        return np.abs(w["gain"] * xhat + w["offset"]).min(1)

    return of_block(0) if "block" in a else np.stack([of_block(b) for b in range(len(w["w1"]))], axis=1)


def score(a):
    """Mean and width: of every row where `block` names one, else of every context with every block."""
    x = a["x"].astype(np.float64)
    if "block" in a:
        mean, width = score_block(a, x, 0)
    else:
        both = [score_block(a, x, b) for b in range(len(a["w1"]))]
        mean, width = (np.stack(part, axis=1) for part in zip(*both))
    return {"mean": mean, "width": width}


def kernel(u, v):
    """exp(−‖u − v‖²/2), σ = 1."""
    square = np.sum(u**2, 1)[:, None] + np.sum(v**2, 1)[None, :] - 2 * u @ v.T
    return np.exp(-0.5 * np.maximum(square, 0.0))


def kernel_score(a, chunk=10_000):
    """KernLCB; with `block`, contexts of different blocks are orthogonal: ‖u − v‖² = ‖u‖² + ‖v‖²."""
    x, test = a["x"].astype(np.float64), a["x_test"].astype(np.float64)
    if "block" not in a:
        factor = np.linalg.inv(np.linalg.cholesky(kernel(x, x) + LAMBDA * np.eye(len(x))))
        alpha = factor.T @ (factor @ a["y"])
        mean, width = [], []
        for i in range(0, len(test), chunk):
            k = kernel(test[i : i + chunk], x)
            mean.append(k @ alpha)
            width.append(np.sqrt(1.0 - np.sum((k @ factor.T) ** 2, axis=1)))
        return {"mean": np.concatenate(mean), "width": np.concatenate(width)}
    n_blocks = 30
    block = a["block"].astype(int)
    norms = np.sum(x**2, 1)
    apart = np.exp(-0.5 * (norms[:, None] + norms[None, :]))
    big = np.where(block[:, None] == block[None, :], kernel(x, x), apart)
    factor = np.linalg.inv(np.linalg.cholesky(big + LAMBDA * np.eye(len(x))))
    alpha = factor.T @ (factor @ a["y"])
    mean, width = np.empty((2, len(test), n_blocks))
    for b in range(n_blocks):
        k = np.exp(-0.5 * (np.sum(test**2, 1)[:, None] + norms[None, :]))
        k[:, block == b] = kernel(test, x[block == b])
        mean[:, b] = k @ alpha
        width[:, b] = np.sqrt(1.0 - np.sum((k @ factor.T) ** 2, axis=1))
    return {"mean": mean, "width": width}


def linear_fit(a):
    """Λ = 0.1·I + Σ x xᵀ and θ = Λ⁻¹ Σ x r."""
    x = a["x"].astype(np.float64)
    lam = LAMBDA * np.eye(x.shape[1]) + x.T @ x
    return lam, np.linalg.solve(lam, x.T @ a["reward"])


def linear_score(a):
    """LinLCB's mean and width."""
    lam, theta = linear_fit(a)
    u = a["x_test"].astype(np.float64)
    return {"mean": u @ theta, "width": np.sqrt(np.sum((u @ np.linalg.inv(lam)) * u, axis=1))}


def outputs(job, a):
    """What the export of a job must hold beside its inputs."""
    if job.endswith("-step"):
        return train(a)
    if job.startswith("kernel"):
        return kernel_score(a)
    if job == "linear-observe":
        return {"theta": linear_fit(a)[1]}
    return linear_score(a) if job == "linear-score" else score(a)


# --- inputs of our own, for work without the program and for the self test -------------------------------------------


def unit_rows(rng, n, d):
    x = rng.standard_normal((n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def weights(rng, blocks, d, m, suffix="_0"):
    w = {"w1": rng.standard_normal((blocks, d, m)) * np.sqrt(4 / m), "gain": np.ones(m), "offset": np.zeros(m)}
    w["out"] = rng.standard_normal(m) * np.sqrt(2 / m)
    return {name + suffix: v.astype(np.float32) for name, v in w.items()}


def inputs(job, rng, small=False):
    """Inputs of a job; `small` cuts rows and rounds, not the shape of the network."""
    cut = (lambda n: max(n // 100, 20)) if small else (lambda n: n)
    d, m, blocks = (784, 100, 10) if job.startswith("mnist") else (20, 20, 1)
    if job.endswith("-step"):
        n, per_round = {
            "synthetic-s-step": (10_000, 0), "synthetic-b-step": (200, 100),
            "mnist-s-step": (100, 0), "mnist-b-step": (60, 1),
        }[job]  # fmt: skip
        n = cut(n)
        x = unit_rows(rng, n, d)
        reward = np.cos(3 * x[:, :5].astype(np.float64).sum(1)) + 0.1 * rng.standard_normal(n)
        a = {"x": x, "block": rng.integers(blocks, size=n, dtype=np.uint32), "reward": reward}
        if per_round:
            upper = np.repeat(np.arange(1, n + 1), per_round)[:, None]
            a["batches"] = (rng.random((n * per_round, 50)) * upper).astype(np.uint32)
        return {**a, **weights(rng, blocks, d, m)}
    if job.startswith("kernel"):
        x, a = unit_rows(rng, 1000, d), {}
        if job.endswith("disjoint"):
            a["block"] = rng.integers(30, size=1000, dtype=np.uint32)
        test = unit_rows(rng, cut(10_000 if a else 300_000), d)
        return {**a, "x": x, "y": np.cos(3 * x[:, 0].astype(np.float64)), "x_test": test}
    if job.startswith("linear"):
        x = unit_rows(rng, cut(10_000), d)
        a = {"x": x, "reward": x[:, 0].astype(np.float64) + 0.1 * rng.standard_normal(len(x))}
        return {**a, "x_test": unit_rows(rng, cut(300_000), d)} if job == "linear-score" else a
    a = {"x": unit_rows(rng, cut(10_000 if blocks > 1 else 300_000), d)}
    if blocks == 1:
        a["block"] = np.zeros(len(a["x"]), dtype=np.uint32)
    a.update(weights(rng, blocks, d, m, suffix=""))
    a.update({f"lam_{k}": (LAMBDA + rng.random(a[k].shape) * 3).astype(np.float32) for k in NAMES})
    return a


def make(folder, small):
    """Writes every job as the program's export would, outputs from this file."""
    for job, *_ in JOBS:
        a = inputs(job, np.random.default_rng(1), small)
        for name, value in outputs(job, a).items():
            a[name] = value.astype(np.float32) if job.endswith("-step") else value
        where = Path(folder, job)
        where.mkdir(parents=True, exist_ok=True)
        for name, value in a.items():
            np.save(where / f"{name}.npy", value)


def selftest():
    """The gradient against central differences, and the width from factors against the one from whole gradients."""
    rng = np.random.default_rng(3)
    w = {name: v.astype(np.float64) for name, v in weights(rng, 2, 7, 6, suffix="").items()}
    w["gain"], w["offset"] = rng.uniform(0.5, 2, 6), rng.standard_normal(6) * 0.3
    x, block = rng.standard_normal((1, 7)), np.array([1])
    f, gradient = batch_gradient(w, x, block, np.ones(1))
    worst = 0.0
    for name in NAMES:
        for i in np.ndindex(w[name].shape):
            kept, ends = w[name][i], []
            for side in (1e-6, -1e-6):
                w[name][i] = kept + side
                ends.append(batch_gradient(w, x, block, np.ones(1))[0][0])
            w[name][i] = kept
            worst = max(worst, abs((ends[0] - ends[1]) / 2e-6 - gradient[name][i]))
    lam = {name: LAMBDA + rng.random(v.shape) for name, v in w.items()}
    a = {**w, **{f"lam_{name}": v for name, v in lam.items()}}
    mean, width = score_block(a, x, 1)
    naive = np.sqrt(sum(np.sum(gradient[name] ** 2 / lam[name]) for name in NAMES) / 6)
    print(f"gradient against central differences {worst:.1e}, width against whole gradient {abs(naive - width[0]):.1e}")
    return worst > 1e-7 or abs(naive - width[0]) > 1e-12 or mean[0] != f[0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["selftest", "make"])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows and rounds")
    args = parser.parse_args()
    if args.what == "selftest":
        sys.exit(1 if selftest() else 0)
    if not args.folder:
        parser.error("a folder is needed")
    make(args.folder, args.small)
