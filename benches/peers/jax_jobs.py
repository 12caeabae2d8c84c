"""The jobs in JAX as one writes them down first: parameters in a dict, `jit`, `lax.scan` over rounds and steps, `vmap(grad)`.

The network takes the paper's vectors, (0, …, x, …, 0) where blocks are disjoint, and the gradient is that of all
parameters, as in Algorithm 1. What can be gained by somebody who knows more of the problem is in `jax_tuned_jobs.py`.
"""

import functools

import common  # sets the threads before JAX is loaded
import jax
import jax.numpy as jnp
import numpy as np
from common import BETA1, BETA2, EPS, L2, LAMBDA, LR, NORM_EPS, Case, corrections, layers_of, names_of
from jax import lax

jax.config.update("jax_platforms", "cpu")


def network(w, scale, x, output=0):
    """f of one row, at one output."""
    for weight, bias, gain, offset in layers_of(w):
        z = x @ w[weight] + (w[bias] if bias in w else 0)
        if gain in w:
            z = w[gain] * (z - z.mean()) / jnp.sqrt(z.var() + NORM_EPS) + w[offset]
        x = jax.nn.relu(z)
    f = scale * (jnp.atleast_2d(w["out"]) @ x)
    return (f + w["out_bias"] if "out_bias" in w else f)[output]


def loss(w, scale, x, output, reward):
    """Of a batch, with the penalty."""
    f = jax.vmap(network, (None, None, 0, 0))(w, scale, x, output)
    penalty = sum(jnp.sum(jnp.square(v)) for v in w.values())
    return 0.5 * jnp.mean(jnp.square(f - reward)) + 0.5 * L2 * penalty


def adam(w, mu, nu, grad, c1, c2):
    mu = jax.tree.map(lambda mu, g: BETA1 * mu + (1 - BETA1) * g, mu, grad)
    nu = jax.tree.map(lambda nu, g: BETA2 * nu + (1 - BETA2) * g**2, nu, grad)
    w = jax.tree.map(lambda w, mu, nu: w - LR * (mu / c1) / (jnp.sqrt(nu / c2) + EPS), w, mu, nu)
    return w, mu, nu


@jax.jit
def train(w, scale, x, output, reward, batches, c1, c2):
    """Λ, then steps on batches (rounds, steps, rows); in S-mode a batch is the round itself."""

    def step(state, sample):
        rows, c1, c2 = sample
        return adam(*state, jax.grad(loss)(state[0], scale, x[rows], output[rows], reward[rows]), c1, c2), None

    def one_round(state, sample):
        w, mu, nu, lam = state
        x, output, *steps = sample
        grad = jax.grad(network)(w, scale, x, output)
        lam = jax.tree.map(lambda lam, g: lam + g**2 / w["out"].shape[-1], lam, grad)
        (w, mu, nu), _ = lax.scan(step, (w, mu, nu), tuple(steps))
        return (w, mu, nu, lam), None

    n = len(batches)
    zeros = jax.tree.map(jnp.zeros_like, w)
    lam = jax.tree.map(lambda w: jnp.full_like(w, LAMBDA), w)
    (w, _, _, lam), _ = lax.scan(one_round, (w, zeros, zeros, lam), (x[:n], output[:n], batches, c1, c2))
    return w, lam


def spread(x, block, n_blocks):
    """(0, …, x, …, 0): row i of x in the columns of its block."""
    wide = np.zeros((len(x), n_blocks, x.shape[1]), np.float32)
    wide[np.arange(len(x)), block] = x
    return wide.reshape(len(x), -1)


def flat(w):
    """W_1 over all blocks as one matrix."""
    return {k: jax.device_put(jnp.asarray(v.reshape(-1, v.shape[-1]) if k == "w1" else v)) for k, v in w.items()}


def scale_of(a):
    return jnp.float32(a["scale"][0])


def training(a):
    """S-mode, or B-mode where there are batches."""
    shape = a["w1_0"].shape
    w, scale = flat({k: a[f"{k}_0"] for k in names_of(a)}), scale_of(a)
    x = jnp.asarray(spread(a["x"], a["block"], shape[0]) if "block" in a else a["x"])
    output = jnp.asarray(a["output"].astype(np.int32) if "output" in a else np.zeros(len(x), np.int32))
    reward, whole = jnp.asarray(a["reward"].astype(np.float32)), len(x)
    batches = a["batches"].astype(np.int32) if "batches" in a else np.arange(whole, dtype=np.int32)[:, None]
    batches = batches.reshape(whole, -1, batches.shape[-1])
    per_round = batches.shape[1]
    c1, c2 = (jnp.asarray(c, jnp.float32).reshape(whole, -1) for c in corrections(whole * per_round))
    first = functools.cache(lambda n: jax.block_until_ready((x, output, reward, jnp.asarray(batches[:n]), c1[:n], c2[:n])))

    def run(n):
        w_n, lam = jax.block_until_ready(train(w, scale, *first(n)))
        found = {**w_n, **{f"lam_{k}": v for k, v in lam.items()}}
        return {k: v.reshape(shape) if k.endswith("w1") else v for k, v in found.items()}

    return Case(run, whole, per_round, "rounds")


def width_of(w, lam, scale, x, output=0):
    """Mean and width of one row, at one output."""
    f, g = jax.value_and_grad(network)(w, scale, x, output)
    return f, jnp.sqrt(sum(jnp.sum(g[k] ** 2 / lam[k]) for k in w) / w["out"].shape[-1])


def scoring(a, chunk=None, timed=0):
    """Rows of one block, or every context with every block or output: all at once, or `chunk` rows at a time where the
    gradients of all would not fit the memory."""
    n_blocks, outputs, names = len(a["w1"]), len(np.atleast_2d(a["out"])), names_of(a)
    w, lam, scale = flat({k: a[k] for k in names}), flat({k: a[f"lam_{k}"] for k in names}), scale_of(a)
    whole, disjoint = len(a["x"]), "block" not in a
    timed = timed or whole

    @jax.jit
    def all_rows(x):
        one = functools.partial(width_of, w, lam, scale)
        if outputs > 1:
            one = lambda x: jax.vmap(functools.partial(width_of, w, lam, scale, x))(jnp.arange(outputs))
        return lax.map(one, x, batch_size=chunk) if chunk else jax.vmap(one)(x)

    @functools.cache
    def first(n):
        x = a["x"][:n].astype(np.float32)
        if n_blocks > 1:
            x = spread(np.repeat(x, n_blocks, axis=0), np.tile(np.arange(n_blocks), n), n_blocks)
        return jax.block_until_ready(jnp.asarray(x))

    def run(n):
        mean, width = jax.block_until_ready(all_rows(first(n)))
        return {"mean": mean.reshape(n, -1) if disjoint else mean, "width": width.reshape(n, -1) if disjoint else width}

    return Case(run, whole, 1 / whole, "contexts" if disjoint else "rows", timed, timed)


PRACTICAL = ("d20-k10", "d200-k100")
SIDES = {
    ("synthetic-s-step", "jax"): training,
    ("synthetic-b-step", "jax"): training,
    ("mnist-s-step", "jax"): training,
    ("mnist-b-step", "jax"): training,
    ("synthetic-score", "jax"): scoring,
    # 100 contexts × 10 blocks = 1,000 of 100,000 pairs: a gradient of one pair is 784,300 numbers.
    ("mnist-score-dense", "jax"): lambda a: scoring(a, chunk=4, timed=100),
    # a gradient of one pair is 43,000 and 2,580,000 numbers
    ("practical-score-d20-k10", "jax"): lambda a: scoring(a, chunk=100),
    ("practical-score-d200-k100", "jax"): lambda a: scoring(a, chunk=4, timed=2),
    ("practical-trunk-score-d20-k10", "jax"): lambda a: scoring(a, chunk=100),
    ("practical-trunk-score-d200-k100", "jax"): lambda a: scoring(a, chunk=4),
}
SIDES |= {(f"practical-{kind}-{size}", "jax"): training for kind in ("round", "batch", "trunk-batch") for size in PRACTICAL}

if __name__ == "__main__":
    common.main(SIDES, f"jax {jax.__version__}")
