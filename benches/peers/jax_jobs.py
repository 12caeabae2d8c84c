"""The jobs in JAX as one writes them down first: parameters in a dict, `jit`, `lax.scan` over rounds and steps, `vmap(grad)`.

The network takes the paper's vectors, (0, …, x, …, 0) where blocks are disjoint, and the gradient is that of all
parameters, as in Algorithm 1. What can be gained by somebody who knows more of the problem is in `jax_tuned_jobs.py`.
"""

import functools

import common  # sets the threads before JAX is loaded
import jax
import jax.numpy as jnp
import numpy as np
from common import BETA1, BETA2, EPS, L2, LAMBDA, LR, NAMES, NORM_EPS, Case, corrections
from jax import lax

jax.config.update("jax_platforms", "cpu")


def network(w, x):
    """f of one row."""
    z = x @ w["w1"]
    normal = (z - z.mean()) / jnp.sqrt(z.var() + NORM_EPS)
    return jnp.sqrt(len(z)) * jax.nn.relu(w["gain"] * normal + w["offset"]) @ w["out"]


def loss(w, x, reward):
    """Of a batch, with the penalty."""
    f = jax.vmap(network, (None, 0))(w, x)
    penalty = sum(jnp.sum(jnp.square(v)) for v in w.values())
    return 0.5 * jnp.mean(jnp.square(f - reward)) + 0.5 * L2 * penalty


def adam(w, mu, nu, grad, c1, c2):
    mu = jax.tree.map(lambda mu, g: BETA1 * mu + (1 - BETA1) * g, mu, grad)
    nu = jax.tree.map(lambda nu, g: BETA2 * nu + (1 - BETA2) * g**2, nu, grad)
    w = jax.tree.map(lambda w, mu, nu: w - LR * (mu / c1) / (jnp.sqrt(nu / c2) + EPS), w, mu, nu)
    return w, mu, nu


@jax.jit
def train(w, x, reward, batches, c1, c2):
    """Λ, then steps on batches (rounds, steps, rows); in S-mode a batch is the round itself."""

    def step(state, sample):
        rows, c1, c2 = sample
        return adam(*state, jax.grad(loss)(state[0], x[rows], reward[rows]), c1, c2), None

    def one_round(state, sample):
        w, mu, nu, lam = state
        x, *steps = sample
        grad = jax.grad(network)(w, x)
        lam = jax.tree.map(lambda lam, g: lam + g**2 / len(w["gain"]), lam, grad)
        (w, mu, nu), _ = lax.scan(step, (w, mu, nu), tuple(steps))
        return (w, mu, nu, lam), None

    zeros = jax.tree.map(jnp.zeros_like, w)
    lam = jax.tree.map(lambda w: jnp.full_like(w, LAMBDA), w)
    (w, _, _, lam), _ = lax.scan(one_round, (w, zeros, zeros, lam), (x[: len(batches)], batches, c1, c2))
    return w, lam


def spread(x, block, n_blocks):
    """(0, …, x, …, 0): row i of x in the columns of its block."""
    wide = np.zeros((len(x), n_blocks, x.shape[1]), np.float32)
    wide[np.arange(len(x)), block] = x
    return wide.reshape(len(x), -1)


def flat(w):
    """W_1 over all blocks as one matrix."""
    return {k: jax.device_put(jnp.asarray(v.reshape(-1, v.shape[-1]) if k == "w1" else v)) for k, v in w.items()}


def training(a):
    """S-mode, or B-mode where there are batches."""
    shape = a["w1_0"].shape
    w = flat({k: a[f"{k}_0"] for k in NAMES})
    x = jnp.asarray(spread(a["x"], a["block"], shape[0]))
    reward, whole = jnp.asarray(a["reward"].astype(np.float32)), len(x)
    batches = a["batches"].astype(np.int32) if "batches" in a else np.arange(whole, dtype=np.int32)[:, None]
    batches = batches.reshape(whole, -1, batches.shape[-1])
    per_round = batches.shape[1]
    c1, c2 = (jnp.asarray(c, jnp.float32).reshape(whole, -1) for c in corrections(whole * per_round))
    first = functools.cache(lambda n: jax.block_until_ready((x, reward, jnp.asarray(batches[:n]), c1[:n], c2[:n])))

    def run(n):
        w_n, lam = jax.block_until_ready(train(w, *first(n)))
        found = {**w_n, **{f"lam_{k}": v for k, v in lam.items()}}
        return {k: v.reshape(shape) if v.ndim == 2 else v for k, v in found.items()}

    return Case(run, whole, per_round, "rounds")


def width_of(w, lam, x):
    """Mean and width of one row."""
    f, g = jax.value_and_grad(network)(w, x)
    return f, jnp.sqrt(sum(jnp.sum(g[k] ** 2 / lam[k]) for k in NAMES) / len(w["gain"]))


def scoring(a, chunk=None, timed=0):
    """Rows of one block, or every context with every block: all at once, or `chunk` rows at a time where the gradients of all
    would not fit the memory."""
    n_blocks = len(a["w1"])
    w, lam = flat({k: a[k] for k in NAMES}), flat({k: a[f"lam_{k}"] for k in NAMES})
    whole, disjoint = len(a["x"]), "block" not in a
    timed = timed or whole

    @jax.jit
    def all_rows(x):
        one = functools.partial(width_of, w, lam)
        return lax.map(one, x, batch_size=chunk) if chunk else jax.vmap(one)(x)

    @functools.cache
    def first(n):
        x = a["x"][:n].astype(np.float32)
        if disjoint:
            x = spread(np.repeat(x, n_blocks, axis=0), np.tile(np.arange(n_blocks), n), n_blocks)
        return jax.block_until_ready(jnp.asarray(x))

    def run(n):
        mean, width = jax.block_until_ready(all_rows(first(n)))
        return {"mean": mean.reshape(n, -1) if disjoint else mean, "width": width.reshape(n, -1) if disjoint else width}

    return Case(run, whole, 1 / whole, "contexts" if disjoint else "rows", timed, timed)


SIDES = {
    ("synthetic-s-step", "jax"): training,
    ("synthetic-b-step", "jax"): training,
    ("mnist-s-step", "jax"): training,
    ("mnist-b-step", "jax"): training,
    ("synthetic-score", "jax"): scoring,
    # 100 contexts × 10 blocks = 1,000 of 100,000 pairs: a gradient of one pair is 784,300 numbers.
    ("mnist-score-dense", "jax"): lambda a: scoring(a, chunk=4, timed=100),
}

if __name__ == "__main__":
    common.main(SIDES, f"jax {jax.__version__}")
