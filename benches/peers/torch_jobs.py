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
from common import BETA1, BETA2, EPS, L2, LAMBDA, LR, NORM_EPS, Case, layers_of, names_of  # noqa: E402
from torch.func import grad_and_value, vmap  # noqa: E402

torch.set_num_threads(int(common.THREADS))


def head(z, w, scale):
    """All outputs, from W_1 x (…, m)."""
    for weight, bias, gain, offset in layers_of(w):
        if weight != "w1":
            z = z @ w[weight]
        if bias in w:
            z = z + w[bias]
        z = F.relu(F.layer_norm(z, z.shape[-1:], w[gain], w[offset], NORM_EPS) if gain in w else z)
    f = scale * (z @ torch.atleast_2d(w["out"]).T)
    return f + w["out_bias"] if "out_bias" in w else f


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

    def __init__(self, start, scale):
        self.w, self.scale = {name: w.clone().requires_grad_() for name, w in start.items()}, scale
        self.lam = {name: torch.full_like(w, LAMBDA) for name, w in start.items()}
        self.adam = torch.optim.Adam(self.w.values(), LR, (BETA1, BETA2), EPS, weight_decay=L2, fused=True)
        for w in self.w.values():
            w.grad = torch.zeros_like(w)

    def gradient(self, x, block, output):
        """f and ∇f of one row, W_1 as its block alone."""
        parts = {**self.w, "w1": self.w["w1"].detach()[block].requires_grad_()}
        f = head(x @ parts["w1"], parts, self.scale)[output]
        return f, dict(zip(parts, torch.autograd.grad(f, list(parts.values()))))

    @torch.no_grad()
    def grow(self, block, gradients):
        """Λ += g²/m."""
        for name, g in gradients.items():
            lam = self.lam["w1"][block] if name == "w1" else self.lam[name]
            lam.addcmul_(g, g, value=1 / self.w["out"].shape[-1])

    def round_s(self, x, block, output, reward):
        """One backward pass serves Λ and the step: ∇½(f − r)² = (f − r)∇f."""
        f, gradients = self.gradient(x, block, output)
        self.grow(block, gradients)
        error = f.item() - reward
        self.w["w1"].grad[block] = error * gradients.pop("w1")
        for name, g in gradients.items():
            self.w[name].grad = error * g
        self.adam.step()
        self.w["w1"].grad[block].zero_()

    def step_b(self, x, block, output, reward):
        self.adam.zero_grad(set_to_none=False)
        f = head(batch_inputs(self.w["w1"], x, block), self.w, self.scale)
        f = f.gather(1, output[:, None])[:, 0]
        (0.5 * (f - reward).square().mean()).backward()
        self.adam.step()

    def result(self):
        w = {name: w.detach().numpy() for name, w in self.w.items()}
        return {**w, **{f"lam_{name}": lam.numpy() for name, lam in self.lam.items()}}


def training(a, timed):
    """S-mode, or B-mode where there are batches; `timed` rounds are enough for the time of one."""
    start = {name: torch.from_numpy(a[f"{name}_0"]) for name in names_of(a)}
    x, none = torch.from_numpy(a["x"]), torch.zeros(len(a["x"]), dtype=torch.int64)
    block, output = (torch.from_numpy(a[name].astype("int64")) if name in a else none for name in ("block", "output"))
    reward, numbers = torch.from_numpy(a["reward"].astype("float32")), a["reward"].tolist()
    batches = torch.from_numpy(a["batches"].astype("int64")) if "batches" in a else None
    per_round = len(batches) // len(x) if batches is not None else 1
    places, scale = list(zip(block.tolist(), output.tolist())), float(a["scale"][0])

    def run(n):
        network = Network(start, scale)
        for t in range(n):
            if batches is None:
                network.round_s(x[t], *places[t], numbers[t])
                continue
            network.grow(places[t][0], network.gradient(x[t], *places[t])[1])
            for rows in batches[t * per_round : (t + 1) * per_round]:
                network.step_b(x[rows], block[rows], output[rows], reward[rows])
        return network.result()

    return Case(run, len(x), per_round, "rounds", timed)


def scoring(a, chunk, timed=0, checked=0):
    """`vmap(grad)` over chunks of rows, squared and divided by Λ."""
    w = {name: torch.from_numpy(a[name]) for name in names_of(a)}
    lam = {name: torch.from_numpy(a[f"lam_{name}"]) for name in w}
    x, scale, m = torch.from_numpy(a["x"]), float(a["scale"][0]), a["out"].shape[-1]
    places = [(b, k) for b in range(len(w["w1"])) for k in range(len(torch.atleast_2d(w["out"])))]

    def one_place(n, b, k):
        mean, width = torch.empty(2, n)
        w_b, lam_b = {**w, "w1": w["w1"][b]}, {**lam, "w1": lam["w1"][b]}
        gradients = vmap(grad_and_value(lambda w, x: head(x @ w["w1"], w, scale)[k]), (None, 0))
        for i in range(0, n, chunk):
            g, f = gradients(w_b, x[i : min(i + chunk, n)])
            square = sum((g[name].square() / lam_b[name]).flatten(1).sum(1) for name in g)
            mean[i : i + chunk], width[i : i + chunk] = f, (square / m).sqrt()
        return mean, width

    @torch.no_grad()
    def run(n):
        if "block" in a:
            mean, width = one_place(n, 0, 0)
        else:
            mean, width = (torch.stack(part, 1) for part in zip(*(one_place(n, *place) for place in places)))
        return {"mean": mean, "width": width}

    return Case(run, len(x), 1 / len(x), "rows" if "block" in a else "contexts", timed, checked)


SIDES = {
    ("synthetic-s-step", "torch"): lambda a: training(a, timed=500),
    ("synthetic-b-step", "torch"): lambda a: training(a, timed=5),
    ("mnist-s-step", "torch"): lambda a: training(a, timed=100),
    ("mnist-b-step", "torch"): lambda a: training(a, timed=60),
    ("synthetic-score", "torch"): lambda a: scoring(a, chunk=1000),
    # 200 contexts × 10 blocks = 2,000 of 100,000 pairs, as for JAX.
    ("mnist-score-dense", "torch"): lambda a: scoring(a, chunk=50, timed=200, checked=200),
    ("practical-round-d20-k10", "torch"): lambda a: training(a, timed=300),
    ("practical-round-d200-k100", "torch"): lambda a: training(a, timed=30),
    ("practical-batch-d20-k10", "torch"): lambda a: training(a, timed=100),
    ("practical-batch-d200-k100", "torch"): lambda a: training(a, timed=30),
    ("practical-score-d20-k10", "torch"): lambda a: scoring(a, chunk=100),
    ("practical-score-d200-k100", "torch"): lambda a: scoring(a, chunk=50, timed=50, checked=50),
    ("practical-trunk-batch-d20-k10", "torch"): lambda a: training(a, timed=100),
    ("practical-trunk-batch-d200-k100", "torch"): lambda a: training(a, timed=30),
    ("practical-trunk-score-d20-k10", "torch"): lambda a: scoring(a, chunk=100),
    ("practical-trunk-score-d200-k100", "torch"): lambda a: scoring(a, chunk=50, timed=50, checked=50),
}

if __name__ == "__main__":
    common.main(SIDES, f"torch {torch.__version__}")
