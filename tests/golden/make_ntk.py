#!/usr/bin/env python3
"""Writes tests/golden/ntk.json: the neural tangent kernel matrix of Definition 4.1, made twice without the Rust code.

    python3 -m venv golden-venv && golden-venv/bin/pip install numpy==2.4.6
    golden-venv/bin/python tests/golden/make_ntk.py

* `h`: the recursion over layers in the style of the neural-tangents library: a dense layer with weight variance 2
  maps (nngp, ntk) to (2 nngp, 2 ntk + 2 nngp), a ReLU maps them by its dual activation and the dual's derivative,
  on whole matrices and with atan2 instead of the arc cosine of a clipped quotient.  With output weights of variance
  1/m the limit is H = (H~ + Sigma)/2; with 2/m, as Algorithm 1 draws them, it is H~ (`h_algorithm_1`).
* `monte_carlo`: the definition's expectations themselves, 2 E[sigma(u) sigma(v)] and 2 E[sigma'(u) sigma'(v)], by
  sampling (u, v) ~ N(0, A) with antithetic pairs, layer after layer, with the standard error that follows from the
  draws of the last layer (`standard_error` is a generous bound for all layers).
* `effective_dimension`, `lambda_0`, `s`: from numpy's eigenvalues and solve.
"""

import json
from pathlib import Path

import numpy as np

SEED = 41
DRAWS = 2_000_000
LAMBDA = 0.7


def dual(nngp):
    """E[relu(u) relu(v)] and E[1(u>0) 1(v>0)] over (u, v) ~ N(0, nngp restricted to i, j)."""
    lengths = np.sqrt(np.outer(np.diag(nngp), np.diag(nngp)))
    sine = np.sqrt(np.maximum(lengths**2 - nngp**2, 0.0))
    np.fill_diagonal(sine, 0.0)
    theta = np.arctan2(sine, nngp)
    value = (sine + (np.pi - theta) * nngp) / (2 * np.pi)
    slope = (np.pi - theta) / (2 * np.pi)
    return value, slope


def recursion(x, depth, output_variance):
    """The kernel of a network with `depth` layers of weights, fan-in variance 2 and output variance as given."""
    nngp = x @ x.T  # the covariance that one unit of the first layer sees, up to its weight variance
    ntk = np.zeros_like(nngp)
    for layer in range(depth):
        last = layer == depth - 1
        if last:
            # f = sqrt(m) w . h with w ~ N(0, c/m): the gradient over sqrt(m) by w is h, by h it is w
            return output_variance * ntk + nngp
        # a dense layer: z = W h with W_ij ~ N(0, 2/m)
        ntk = 2 * ntk + nngp  # df/dz dz/dW, in units where a unit's covariance is 2 nngp
        value, slope = dual(2 * nngp)
        # both are homogeneous: E over N(0, 2A) is 2 E over N(0, A) for relu relu, the same for the steps
        ntk, nngp = ntk * slope, value
    raise AssertionError


def monte_carlo(x, depth, rng):
    sigma = x @ x.T
    h = sigma.copy()
    n = len(x)
    error = 0.0
    for _ in range(depth - 1):
        new_sigma, slope = np.empty((n, n)), np.empty((n, n))
        z = rng.standard_normal((2, DRAWS))
        for i in range(n):
            for j in range(i + 1):
                a, b, c = sigma[i, i], sigma[i, j], sigma[j, j]
                first = b / a
                rest = np.sqrt(max(c - b * b / a, 0.0))
                u = np.sqrt(a) * z[0]
                v = first * u + rest * z[1]
                both = np.maximum(u, 0) * np.maximum(v, 0) + np.maximum(-u, 0) * np.maximum(-v, 0)
                step = ((u > 0) & (v > 0)).astype(float) + ((u < 0) & (v < 0))
                new_sigma[i, j] = new_sigma[j, i] = both.mean()  # (1/2 + 1/2) of two antithetic draws, times 2
                slope[i, j] = slope[j, i] = step.mean()
                error = max(error, both.std() / np.sqrt(DRAWS), step.std() / np.sqrt(DRAWS))
        h = h * slope + new_sigma
        sigma = new_sigma
    return (h + sigma) / 2, 4 * depth * error


def main():
    rng = np.random.default_rng(SEED)
    cases = []
    for depth, dim, unit in [(2, 3, True), (3, 4, True), (4, 5, True), (3, 3, False)]:
        x = rng.standard_normal((7, dim)).astype(np.float32).astype(np.float64)
        if unit:
            x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32).astype(np.float64)
        rewards = rng.random(len(x))
        h = recursion(x, depth, 1.0)
        assert np.allclose(h, h.T) and np.linalg.eigvalsh(h)[0] > 0
        drawn, error = monte_carlo(x, depth, rng)
        assert np.abs(drawn - h).max() < error, (np.abs(drawn - h).max(), error)
        eigenvalues = np.linalg.eigvalsh(h)
        cases.append(
            {
                "depth": depth,
                "x": x.tolist(),
                "rewards": rewards.tolist(),
                "h": h.tolist(),
                "h_algorithm_1": recursion(x, depth, 2.0).tolist(),
                "monte_carlo": drawn.tolist(),
                "standard_error": error,
                "lambda": LAMBDA,
                "lambda_0": eigenvalues[0],
                "s": float(np.sqrt(rewards @ np.linalg.solve(h, rewards))),
                "effective_dimension": float(np.log1p(eigenvalues / LAMBDA).sum() / np.log1p(len(x) / LAMBDA)),
            }
        )
        print(depth, "|monte carlo - recursion|", np.abs(drawn - h).max(), "allowed", error)
    out = {"versions": {"numpy": np.__version__}, "cases": cases}
    Path(__file__).with_name("ntk.json").write_text(json.dumps(out) + "\n")


main()
