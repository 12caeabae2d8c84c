"""The jobs once more in numpy, f64, as plainly as possible: what every side is judged by (`agreement.py`), and a maker of
inputs in the layout of `neuralcb bench --export`, for work on the peers without the program.

    python3 reference.py selftest             gradient against central differences, factors against whole gradient
    python3 reference.py make DIR [--small]   inputs and outputs of every job
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from common import BETA1, BETA2, EPS, L2, LAMBDA, LAYERS, LR, NORM_EPS, corrections, layers_of, names_of
from report import JOBS, is_training


def network(a, suffix=""):
    """The parameters of an export in f64, the output weights as rows, and the scale of the output."""
    w = {name: a[name + suffix].astype(np.float64) for name in names_of(a)}
    return {**w, "out": np.atleast_2d(w["out"]), "scale": float(a["scale"][0])}


def forward(w, x, b):
    """Rows x of block b: per hidden layer its input, x̂, 1/√(var + ε) and what the ReLU is given; the last h."""
    kept, h = [], x
    for weight, bias, gain, offset in layers_of(w):
        z = h @ (w[weight][b] if weight == "w1" else w[weight]) + w.get(bias, 0.0)
        xhat = inverse = None
        if gain in w:
            centred = z - z.mean(1, keepdims=True)
            inverse = 1.0 / np.sqrt((centred**2).mean(1, keepdims=True) + NORM_EPS)
            xhat = centred * inverse
            z = w[gain] * xhat + w[offset]
        kept.append((h, xhat, inverse, z))
        h = np.maximum(z, 0.0)
    return kept, h


def factors(w, x, b, output):
    """f and its gradient in factors for rows x of block b and their outputs: f (n), and per parameter (v, u). The gradient
    of row i is the outer product of v_i and u_i, or u_i where v is None; of `out` and `out_bias` it belongs to its output."""
    kept, h = forward(w, x, b)
    f = w["scale"] * np.sum(h * w["out"][output], axis=1)
    found = {"out": (None, w["scale"] * h)}
    if "out_bias" in w:
        f = f + w["out_bias"][output]
        found["out_bias"] = (None, np.ones(len(x)))
    d = w["scale"] * w["out"][output]
    for (weight, bias, gain, offset), (v, xhat, inverse, y) in reversed(list(zip(layers_of(w), kept))):
        d = d * (y > 0)
        if gain in w:
            found[gain], found[offset] = (None, d * xhat), (None, d)
            g = d * w[gain]
            d = inverse * (g - g.mean(1, keepdims=True) - xhat * (g * xhat).mean(1, keepdims=True))
        if bias in w:
            found[bias] = (None, d)
        found[weight] = (v, d)
        d = d @ (w[weight][b] if weight == "w1" else w[weight]).T
    return f, found


def batch_gradient(w, x, block, output, weight):
    """Σ_i weight_i·∇f(x_i) and f, over all parameters (zero in the blocks of W_1 that no row meets)."""
    total = {name: np.zeros_like(w[name]) for name in names_of(w)}
    f = np.empty(len(x))
    weight = weight if callable(weight) else (lambda rows, f, given=weight: given[rows])
    for b in np.unique(block):
        rows = np.flatnonzero(block == b)
        f[rows], found = factors(w, x[rows], b, output[rows])
        e = weight(rows, f[rows])
        for name, (v, u) in found.items():
            each = (e * u.T).T
            if name == "w1":
                total[name][b] = v.T @ each
            elif name in ("out", "out_bias"):
                np.add.at(total[name], output[rows], each)
            else:
                total[name] += each.sum(0) if v is None else v.T @ each
    return f, total


class Training:
    """Weights, moments and Λ, and one round or step at a time."""

    def __init__(self, start, total_steps):
        self.w, self.names = network(start, "_0"), names_of(start)
        self.shapes = {name: start[f"{name}_0"].shape for name in self.names}
        self.mu = {name: np.zeros_like(self.w[name]) for name in self.names}
        self.nu = {name: np.zeros_like(self.w[name]) for name in self.names}
        self.lam = {name: np.full_like(self.w[name], LAMBDA) for name in self.names}
        self.corrections = corrections(total_steps)
        self.steps = 0

    def grow_lambda(self, x, block, output):
        _, g = batch_gradient(self.w, x[None], np.array([block]), np.array([output]), np.ones(1))
        for name in self.names:
            self.lam[name] += g[name] ** 2 / self.w["out"].shape[1]

    def step(self, x, block, output, reward):
        _, grad = batch_gradient(self.w, x, block, output, lambda rows, f: (f - reward[rows]) / len(x))
        c1, c2 = (c[self.steps] for c in self.corrections)
        self.steps += 1
        for name in self.names:
            w, g = self.w[name], grad[name] + L2 * self.w[name]
            self.mu[name] = BETA1 * self.mu[name] + (1 - BETA1) * g
            self.nu[name] = BETA2 * self.nu[name] + (1 - BETA2) * g * g
            w -= LR * (self.mu[name] / c1) / (np.sqrt(self.nu[name] / c2) + EPS)

    def result(self):
        shaped = lambda of: {name: of[name].reshape(self.shapes[name]) for name in self.names}
        return {**shaped(self.w), **{f"lam_{name}": v for name, v in shaped(self.lam).items()}}


def places(a):
    """Block and output of every round; one of them is always the first."""
    none = np.zeros(len(a["x"]), np.int64)
    return a["block"].astype(np.int64) if "block" in a else none, a["output"].astype(np.int64) if "output" in a else none


def train(a, rounds=None):
    """S-mode, or B-mode where there are batches; the first `rounds` rounds."""
    x, (block, output), reward = a["x"].astype(np.float64), places(a), a["reward"]
    n = rounds or len(x)
    per_round = len(a["batches"]) // len(x) if "batches" in a else 1
    training = Training(a, n * per_round)
    for t in range(n):
        training.grow_lambda(x[t], block[t], output[t])
        for j in range(per_round):
            rows = a["batches"][t * per_round + j] if "batches" in a else np.array([t])
            training.step(x[rows], block[rows], output[rows], reward[rows])
    return training.result()


def score_place(a, x, b, k):
    """Mean and width of rows x in block b at output k."""
    w = network(a)
    lam = {name: np.atleast_2d(a[f"lam_{name}"].astype(np.float64)) for name in names_of(a)}
    f, found = factors(w, x, b, np.full(len(x), k))
    square = 0.0
    for name, (v, u) in found.items():
        if v is None:
            inverse = 1 / (lam[name][k] if name == "out" else lam[name][0])
            square = square + (u**2 / lam[name][0][k] if name == "out_bias" else u**2 @ inverse)
        else:
            square = square + np.sum(((v**2) @ (1 / (lam[name][b] if name == "w1" else lam[name]))) * u**2, axis=1)
    return f, np.sqrt(square / w["out"].shape[1])


def every_place(a):
    """Blocks and outputs that every context meets."""
    return [(b, k) for b in range(len(a["w1"])) for k in range(len(np.atleast_2d(a["out"])))]


def kink_distance(a):
    """Per pair, in the shape of the width: how near to 0, ReLU's kink, its nearest unit comes."""
    x, w = a["x"].astype(np.float64), network(a)
    of_block = lambda b: np.min([np.abs(y).min(1) for *_, y in forward(w, x, b)[0]], axis=0)
    return of_block(0) if "block" in a else np.stack([of_block(b) for b, _ in every_place(a)], axis=1)


def score(a):
    """Mean and width: of every row where `block` names one, else of every context with every block or output."""
    x = a["x"].astype(np.float64)
    if "block" in a:
        mean, width = score_place(a, x, 0, 0)
    else:
        both = [score_place(a, x, b, k) for b, k in every_place(a)]
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
    if is_training(job):
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


def weights(rng, blocks, d, m, suffix="_0", hidden=1, outputs=None):
    """Layer norm and the paper's scale with one hidden layer; no scale with more, or with an output per action, which has
    biases in place of the layer norm."""
    w = {"out": rng.standard_normal((outputs, m) if outputs else m) * np.sqrt(2 / m)}
    for l in range(hidden):
        weight, bias, gain, offset = LAYERS[l]
        w[weight] = rng.standard_normal((m, m) if l else (blocks, d, m)) * np.sqrt(4 / m)
        w.update({bias: np.zeros(m)} if outputs else {gain: np.ones(m), offset: np.zeros(m)})
    if outputs:
        w["out_bias"] = np.zeros(outputs)
    scale = np.sqrt(m) if hidden == 1 and not outputs else 1.0
    return {"scale": np.array([scale]), **{name + suffix: v.astype(np.float32) for name, v in w.items()}}


def network_of(job):
    """Inputs, units, blocks of W_1, hidden layers and outputs."""
    if job.startswith("practical"):
        d, k = (20, 10) if job.endswith("d20-k10") else (200, 100)
        return (d, 100, 1, 1, k) if "trunk" in job else (d, 128, k, 2, None)
    return (784, 100, 10, 1, None) if job.startswith("mnist") else (20, 20, 1, 1, None)


# Rounds, and steps of a batch per round and its rows.
SIZES = {
    "synthetic-s-step": (10_000, 0, 0), "synthetic-b-step": (200, 100, 50),
    "mnist-s-step": (100, 0, 0), "mnist-b-step": (60, 1, 50),
    "practical-round-d20-k10": (1000, 0, 0), "practical-round-d200-k100": (30, 0, 0),
    "practical-batch-d20-k10": (200, 1, 50), "practical-batch-d200-k100": (30, 1, 50),
    "practical-trunk-batch-d20-k10": (200, 1, 64), "practical-trunk-batch-d200-k100": (30, 1, 64),
}  # fmt: skip


def inputs(job, rng, small=False):
    """Inputs of a job; `small` cuts rows and rounds, not the shape of the network."""
    cut = (lambda n: min(n, max(n // 100, 20))) if small else (lambda n: n)
    d, m, blocks, hidden, k = network_of(job)
    if is_training(job):
        n, per_round, size = SIZES[job]
        n = cut(n)
        x = unit_rows(rng, n, d)
        reward = np.cos(3 * x[:, :5].astype(np.float64).sum(1)) + 0.1 * rng.standard_normal(n)
        place = {"output": rng.integers(k, size=n, dtype=np.uint32)} if k else {"block": rng.integers(blocks, size=n, dtype=np.uint32)}
        a = {"x": x, **place, "reward": reward}
        if per_round:
            upper = np.repeat(np.arange(1, n + 1), per_round)[:, None]
            a["batches"] = (rng.random((n * per_round, size)) * upper).astype(np.uint32)
        return {**a, **weights(rng, blocks, d, m, "_0", hidden, k)}
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
    contexts = 10_000 if job.startswith("mnist") else 300_000 if blocks == 1 and not k else 20_000 // (k or blocks)
    a = {"x": unit_rows(rng, cut(contexts), d)}
    if blocks == 1 and not k:
        a["block"] = np.zeros(len(a["x"]), dtype=np.uint32)
    a.update(weights(rng, blocks, d, m, "", hidden, k))
    a.update({f"lam_{n}": (LAMBDA + rng.random(a[n].shape) * 3).astype(np.float32) for n in names_of(a)})
    return a


def make(folder, small):
    """Writes every job as the program's export would, outputs from this file."""
    for job, *_ in JOBS:
        a = inputs(job, np.random.default_rng(1), small)
        for name, value in outputs(job, a).items():
            a[name] = value.astype(np.float32) if is_training(job) else value
        where = Path(folder, job)
        where.mkdir(parents=True, exist_ok=True)
        for name, value in a.items():
            np.save(where / f"{name}.npy", value)


def selftest():
    """The gradient against central differences, and the width from factors against the one from whole gradients: of one
    hidden layer, of two, and of a trunk with three outputs."""
    rng, wrong = np.random.default_rng(3), False
    for hidden, outputs in ((1, None), (2, None), (1, 3)):
        drawn = weights(rng, 2, 7, 6, "", hidden, outputs)
        names, w = names_of(drawn), network(drawn)
        for name in names:
            w[name] = w[name] + rng.standard_normal(w[name].shape) * 0.3
        x, block, output = rng.standard_normal((1, 7)), np.array([1]), np.array([(outputs or 1) - 1])
        f, gradient = batch_gradient(w, x, block, output, np.ones(1))
        worst = 0.0
        for name in names:
            for i in np.ndindex(w[name].shape):
                kept, ends = w[name][i], []
                for side in (1e-6, -1e-6):
                    w[name][i] = kept + side
                    ends.append(batch_gradient(w, x, block, output, np.ones(1))[0][0])
                w[name][i] = kept
                worst = max(worst, abs((ends[0] - ends[1]) / 2e-6 - gradient[name][i]))
        lam = {name: LAMBDA + rng.random(w[name].shape) for name in names}
        a = {**w, "scale": np.array([w["scale"]]), **{f"lam_{name}": v for name, v in lam.items()}}
        mean, width = score_place(a, x, 1, output[0])
        naive = np.sqrt(sum(np.sum(gradient[name] ** 2 / lam[name]) for name in names) / 6)
        off = abs(naive - width[0])
        print(f"gradient against central differences {worst:.1e}, width against whole gradient {off:.1e}")
        wrong = wrong or worst > 1e-7 or off > 1e-12 or mean[0] != f[0]
    return wrong


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
