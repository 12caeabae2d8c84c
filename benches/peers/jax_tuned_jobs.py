"""The jobs in JAX with care: one vector of parameters, blocks that a row does not meet left out, chunks that fit the cache.

Two kinds of scoring. `jax-tuned` is what the library is made for: `vmap(grad)` of the network, squared and divided by Λ.
`jax-factors` never builds the gradient: ∇_{w1} f = x δᵀ, so Σ g²/Λ is (x²)·(1/Λ)·(δ²), two matrix products. It needs the
derivative by hand, and is the fairest opponent of a kernel that was written by hand too.
"""

import functools

import common  # sets the threads before JAX is loaded
import jax
import jax.numpy as jnp
import numpy as np
from common import BETA1, BETA2, EPS, L2, LAMBDA, LR, NAMES, NORM_EPS, Case, corrections
from jax import lax
from jax.flatten_util import ravel_pytree

jax.config.update("jax_platforms", "cpu")


def hidden(z, gain, offset):
    """Layer norm and ReLU of pre-activations (…, m)."""
    mean = z.mean(-1, keepdims=True)
    var = jnp.square(z - mean).mean(-1, keepdims=True)
    return jax.nn.relu(gain * ((z - mean) * lax.rsqrt(var + NORM_EPS)) + offset)


def forward(w, x):
    """f of one row; `w["w1"]` is the matrix of the row's block."""
    return head(x @ w["w1"], w)


def batch_inputs(w1, x, block):
    """Pre-activations of a batch. With disjoint encoding the zeros of (0, …, x, …, 0) are written out: one product of
    50 × 7,840 × 100 is faster here than ten masked ones, a gathered matrix per row or `lax.ragged_dot`."""
    if len(w1) == 1:
        return x @ w1[0]
    mine = block[:, None] == jnp.arange(len(w1))
    return jnp.where(mine[:, :, None], x[:, None, :], 0).reshape(len(x), -1) @ w1.reshape(-1, w1.shape[2])


def head(z, w):
    """f from pre-activations."""
    return np.sqrt(len(w["gain"])) * hidden(z, w["gain"], w["offset"]) @ w["out"]


class Flat:
    """One block: all parameters in one vector, so that Adam is one loop instead of four."""

    def __init__(self, w):
        self.start, self.whole = ravel_pytree(w)

    def pick(self, state, _):
        w = self.whole(state)
        return {**w, "w1": w["w1"][0]}

    def add(self, state, _, part):
        return state + ravel_pytree({**part, "w1": part["w1"][None]})[0]


class Blocks:
    """Many blocks: only the part of W_1 that a row meets is differentiated and added to."""

    def __init__(self, w):
        self.start, self.whole = w, lambda state: state

    def pick(self, state, block):
        return {**state, "w1": state["w1"][block]}

    def add(self, state, block, part):
        return {"w1": state["w1"].at[block].add(part["w1"]), **{k: state[k] + part[k] for k in NAMES[1:]}}


def adam(w, mu, nu, grad, c1, c2):
    """One step; `grad` already holds the L2 term. The corrections are folded into two scalars: no division per weight
    more than Adam needs."""
    rate, scale = LR / c1, 1 / jnp.sqrt(c2)
    mu = jax.tree.map(lambda mu, g: BETA1 * mu + (1 - BETA1) * g, mu, grad)
    nu = jax.tree.map(lambda nu, g: BETA2 * nu + (1 - BETA2) * g * g, nu, grad)
    w = jax.tree.map(lambda w, mu, nu: w - rate * mu / (scale * jnp.sqrt(nu) + EPS), w, mu, nu)
    return w, mu, nu


def squares(g):
    """g²/m, what a round adds to Λ."""
    return {k: v * v / len(g["gain"]) for k, v in g.items()}


def trained(layout, one_round, samples):
    """Scans `one_round` over the samples from fresh moments and Λ = 0.1."""
    zeros = jax.tree.map(jnp.zeros_like, layout.start)
    lam = jax.tree.map(lambda w: jnp.full_like(w, LAMBDA), layout.start)
    (w, _, _, lam), _ = lax.scan(one_round, (layout.start, zeros, zeros, lam), samples)
    return {**layout.whole(w), **{f"lam_{k}": v for k, v in layout.whole(lam).items()}}


def layout_of(w):
    return (Flat if len(w["w1"]) == 1 else Blocks)(w)


@jax.jit
def train_s(w, x, block, reward, c1, c2):
    """S-mode: one backward pass per round serves Λ and the step, ∇½(f − r)² = (f − r)∇f."""
    layout = layout_of(w)

    def one_round(state, sample):
        w, mu, nu, lam = state
        x, block, reward, c1, c2 = sample
        f, g = jax.value_and_grad(forward)(layout.pick(w, block), x)
        lam = layout.add(lam, block, squares(g))
        decay = jax.tree.map(lambda w: L2 * w, w)
        grad = layout.add(decay, block, jax.tree.map(lambda g: (f - reward) * g, g))
        return (*adam(w, mu, nu, grad, c1, c2), lam), None

    return trained(layout, one_round, (x, block, reward, c1, c2))


@jax.jit
def train_b(w, x, block, reward, batches, c1, c2):
    """B-mode: per round Λ, then a scan over its batches (rounds, steps, rows)."""
    layout, n = layout_of(w), len(batches)

    def loss(state, rows):
        w = layout.whole(state)
        f = head(batch_inputs(w["w1"], x[rows], block[rows]), w)
        return 0.5 * jnp.square(f - reward[rows]).mean()

    def step(state, sample):
        w, mu, nu = state
        rows, c1, c2 = sample
        grad = jax.tree.map(lambda g, w: g + L2 * w, jax.grad(loss)(w, rows), w)
        return adam(w, mu, nu, grad, c1, c2), None

    def one_round(state, sample):
        w, mu, nu, lam = state
        x, block, *steps = sample
        lam = layout.add(lam, block, squares(jax.grad(forward)(layout.pick(w, block), x)))
        (w, mu, nu), _ = lax.scan(step, (w, mu, nu), tuple(steps))
        return (w, mu, nu, lam), None

    return trained(layout, one_round, (x[:n], block[:n], batches, c1, c2))


def on_device(a, names):
    return {k: jax.device_put(jnp.asarray(a[k])) for k in names}


def training(a):
    """S-mode, or B-mode where there are batches."""
    w = dict(zip(NAMES, on_device(a, [f"{k}_0" for k in NAMES]).values()))
    x, block = jnp.asarray(a["x"]), jnp.asarray(a["block"].astype(np.int32))
    reward, whole = jnp.asarray(a["reward"].astype(np.float32)), len(a["x"])
    per_round = len(a["batches"]) // whole if "batches" in a else 1
    c1, c2 = (jnp.asarray(c, jnp.float32).reshape(whole, -1) for c in corrections(whole * per_round))

    @functools.cache
    def first(n):
        """The first n rounds, cut before the clock starts."""
        if "batches" not in a:
            return jax.block_until_ready((x[:n], block[:n], reward[:n], c1[:n, 0], c2[:n, 0]))
        batches = jnp.asarray(a["batches"].astype(np.int32).reshape(whole, per_round, -1)[:n])
        return jax.block_until_ready((x, block, reward, batches, c1[:n], c2[:n]))

    train = train_b if "batches" in a else train_s
    return Case(lambda n: jax.block_until_ready(train(w, *first(n))), whole, per_round, "rounds")


def width_of(w, lam, x):
    """Mean and width of one row from its whole gradient."""
    f, g = jax.value_and_grad(forward)(w, x)
    square = sum(jnp.sum(jnp.square(g[k]) / lam[k]) for k in NAMES)
    return f, jnp.sqrt(square / len(w["gain"]))


def widths_by_factors(w, inverse, x):
    """Mean and width of many rows of one block without a gradient; `inverse` is 1/(mΛ)."""
    m = len(w["gain"])
    z = x @ w["w1"]
    centred = z - z.mean(1, keepdims=True)
    scale = lax.rsqrt(jnp.square(centred).mean(1, keepdims=True) + NORM_EPS)
    xhat = centred * scale
    a = w["gain"] * xhat + w["offset"]
    h = jnp.sqrt(m) * jnp.maximum(a, 0)
    d_offset = jnp.where(a > 0, jnp.sqrt(m) * w["out"], 0)
    d_gain = d_offset * xhat
    d_xhat = d_offset * w["gain"]
    delta = scale * (d_xhat - d_xhat.mean(1, keepdims=True) - xhat * (d_xhat * xhat).mean(1, keepdims=True))
    each = jnp.square(delta) * (jnp.square(x) @ inverse["w1"]) + jnp.square(d_gain) * inverse["gain"]
    each += jnp.square(d_offset) * inverse["offset"] + jnp.square(h) * inverse["out"]
    return h @ w["out"], jnp.sqrt(each.sum(1))


def in_chunks(f, x, chunk):
    """f over chunks of rows, so that what it makes stays in the cache; the last, shorter chunk by itself."""
    full = len(x) // chunk * chunk
    parts = []
    if full:
        many = lax.map(f, x[:full].reshape(-1, chunk, x.shape[1]))
        parts.append(jax.tree.map(lambda v: v.reshape(full, *v.shape[2:]), many))
    if full < len(x):
        parts.append(f(x[full:]))
    return jax.tree.map(lambda *v: jnp.concatenate(v) if len(v) > 1 else v[0], *parts)


def scoring(a, by_factors, chunk, timed=0, checked=0):
    """Rows of one block, or every context with every block (n, blocks); all of it one compiled function."""
    w = on_device(a, NAMES)
    lam = dict(zip(NAMES, on_device(a, [f"lam_{k}" for k in NAMES]).values()))
    x = jax.device_put(jnp.asarray(a["x"]))
    disjoint = "block" not in a

    def one_block(w1, lam1, x):
        w_b, lam_b = {**w, "w1": w1}, {**lam, "w1": lam1}
        if by_factors:
            inverse = jax.tree.map(lambda v: 1 / (v * len(w["gain"])), lam_b)
            return in_chunks(lambda x: widths_by_factors(w_b, inverse, x), x, chunk)
        return in_chunks(jax.vmap(lambda x: width_of(w_b, lam_b, x)), x, chunk)

    @jax.jit
    def all_rows(w1, lam1, x):
        if disjoint:
            mean, width = lax.map(lambda block: one_block(*block, x), (w1, lam1))
            return {"mean": mean.T, "width": width.T}
        mean, width = one_block(w1[0], lam1[0], x)
        return {"mean": mean, "width": width}

    first = functools.cache(lambda n: jax.block_until_ready(x[:n]))
    run = lambda n: jax.block_until_ready(all_rows(w["w1"], lam["w1"], first(n)))
    return Case(run, len(x), 1 / len(x), "contexts" if disjoint else "rows", timed, checked)


SIDES = {
    ("synthetic-s-step", "jax-tuned"): training,
    ("synthetic-b-step", "jax-tuned"): training,
    ("mnist-s-step", "jax-tuned"): training,
    ("mnist-b-step", "jax-tuned"): training,
    ("synthetic-score", "jax-tuned"): lambda a: scoring(a, False, chunk=100),
    ("synthetic-score", "jax-factors"): lambda a: scoring(a, True, chunk=100),
    # 200 contexts × 10 blocks = 2,000 of 100,000 pairs: a gradient of one pair is 78,700 numbers.
    ("mnist-score-dense", "jax-tuned"): lambda a: scoring(a, False, chunk=4, timed=200, checked=200),
    ("mnist-score-dense", "jax-factors"): lambda a: scoring(a, True, chunk=500),
}

if __name__ == "__main__":
    common.main(SIDES, f"jax {jax.__version__}")
