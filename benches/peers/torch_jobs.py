"""The jobs in PyTorch, eager, as a user would write them: autograd, `torch.optim.Adam`, `torch.func` for the widths.

`torch.compile` is left out: it needs a C++ compiler at run time and compiles for minutes, and what it produces has no
loop over rounds, so that a step of twenty units still pays for its Python.
"""

import os
import sys

import common  # sets the threads before torch is loaded

# The wheel of the default index is built with CUDA; `environment.py` installs it without the gigabytes of GPU libraries.
# Functions are then bound when first called, and nothing here calls one of those.
sys.setdlopenflags(os.RTLD_LAZY)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from common import BETA1, BETA2, EPS, L2, LAMBDA, LR, NAMES, NORM_EPS, Case  # noqa: E402
from torch.func import grad_and_value, vmap  # noqa: E402

torch.set_num_threads(int(common.THREADS))


def head(z, gain, offset, out):
    """f from pre-activations (…, m)."""
    h = F.relu(F.layer_norm(z, gain.shape, gain, offset, NORM_EPS))
    return len(gain) ** 0.5 * (h @ out)


def batch_inputs(w1, x, block):
    """Pre-activations of a batch: rows sorted by block, one product per block. (All blocks in one product, a gathered
    matrix per row and masks were slower.)"""
    if len(w1) == 1:
        return x @ w1[0]
    order = block.argsort()
    parts = x[order].split(block.bincount(minlength=len(w1)).tolist())
    z = torch.cat([part @ w for part, w in zip(parts, w1.unbind())])
    return torch.empty_like(z).index_copy(0, order, z)


class Network:
    """Weights, Λ and the optimiser; Adam with L2 in the gradient is `weight_decay` of `torch.optim.Adam`."""

    def __init__(self, start):
        self.w = [w.clone().requires_grad_() for w in start]
        self.lam = [torch.full_like(w, LAMBDA) for w in start]
        self.adam = torch.optim.Adam(self.w, LR, (BETA1, BETA2), EPS, weight_decay=L2, fused=True)
        for w in self.w:
            w.grad = torch.zeros_like(w)

    def gradient(self, x, block):
        """f and ∇f of one row, W_1 as its block alone."""
        w1, *rest = self.w
        parts = [w1.detach()[block].requires_grad_(), *rest]
        f = head(x @ parts[0], *rest)
        return f, torch.autograd.grad(f, parts)

    @torch.no_grad()
    def grow(self, block, g):
        """Λ += g²/m."""
        for lam, g in zip([self.lam[0][block], *self.lam[1:]], g):
            lam.addcmul_(g, g, value=1 / len(self.w[1]))

    def round_s(self, x, block, reward):
        """One backward pass serves Λ and the step: ∇½(f − r)² = (f − r)∇f."""
        f, g = self.gradient(x, block)
        self.grow(block, g)
        error = f.item() - reward
        self.w[0].grad[block] = error * g[0]
        for w, g in zip(self.w[1:], g[1:]):
            w.grad = error * g
        self.adam.step()
        self.w[0].grad[block].zero_()

    def step_b(self, x, block, reward):
        self.adam.zero_grad(set_to_none=False)
        f = head(batch_inputs(self.w[0], x, block), *self.w[1:])
        (0.5 * (f - reward).square().mean()).backward()
        self.adam.step()

    def result(self):
        both = zip(NAMES, self.w, self.lam)
        return {k: v for name, w, lam in both for k, v in ((name, w.detach().numpy()), (f"lam_{name}", lam.numpy()))}


def training(a, timed):
    """S-mode, or B-mode where there are batches; `timed` rounds are enough for the time of one."""
    start = [torch.from_numpy(a[f"{name}_0"]) for name in NAMES]
    x, block = torch.from_numpy(a["x"]), torch.from_numpy(a["block"].astype("int64"))
    reward, numbers = torch.from_numpy(a["reward"].astype("float32")), a["reward"].tolist()
    batches = torch.from_numpy(a["batches"].astype("int64")) if "batches" in a else None
    per_round = len(batches) // len(x) if batches is not None else 1
    blocks = block.tolist()

    def run(n):
        network = Network(start)
        for t in range(n):
            if batches is None:
                network.round_s(x[t], blocks[t], numbers[t])
                continue
            network.grow(blocks[t], network.gradient(x[t], blocks[t])[1])
            for rows in batches[t * per_round : (t + 1) * per_round]:
                network.step_b(x[rows], block[rows], reward[rows])
        return network.result()

    return Case(run, len(x), per_round, "rounds", timed)


def scoring(a, chunk, timed=0, checked=0):
    """`vmap(grad)` over chunks of rows, squared and divided by Λ."""
    w = [torch.from_numpy(a[name]) for name in NAMES]
    lam = [torch.from_numpy(a[f"lam_{name}"]) for name in NAMES]
    x = torch.from_numpy(a["x"])
    blocks = len(w[0]) if "block" not in a else None
    gradients = vmap(grad_and_value(lambda w, x: head(x @ w[0], *w[1:])), (None, 0))

    def one_block(n, b):
        mean, width = torch.empty(2, n)
        w_b, lam_b = [w[0][b], *w[1:]], [lam[0][b], *lam[1:]]
        for i in range(0, n, chunk):
            g, f = gradients(w_b, x[i : min(i + chunk, n)])
            square = sum((g.square() / lam).flatten(1).sum(1) for g, lam in zip(g, lam_b))
            mean[i : i + chunk], width[i : i + chunk] = f, (square / len(w[1])).sqrt()
        return mean, width

    @torch.no_grad()
    def run(n):
        if blocks is None:
            mean, width = one_block(n, 0)
        else:
            mean, width = (torch.stack(part, 1) for part in zip(*(one_block(n, b) for b in range(blocks))))
        return {"mean": mean, "width": width}

    return Case(run, len(x), 1 / len(x), "rows" if blocks is None else "contexts", timed, checked)


SIDES = {
    ("synthetic-s-step", "torch"): lambda a: training(a, timed=500),
    ("synthetic-b-step", "torch"): lambda a: training(a, timed=5),
    ("mnist-s-step", "torch"): lambda a: training(a, timed=100),
    ("mnist-b-step", "torch"): lambda a: training(a, timed=60),
    ("synthetic-score", "torch"): lambda a: scoring(a, chunk=1000),
    # 200 contexts × 10 blocks = 2,000 of 100,000 pairs, as for JAX.
    ("mnist-score-dense", "torch"): lambda a: scoring(a, chunk=50, timed=200, checked=200),
}

if __name__ == "__main__":
    common.main(SIDES, f"torch {torch.__version__}")
