"""LinLCB and KernLCB with scikit-learn, scipy and numpy.

`sklearn` is `GaussianProcessRegressor` with the kernel fixed: its posterior mean and standard deviation with noise 0.1 are
KernLCB's mean and width; `BayesianRidge` with LinLCB's posterior. `numpy` is written by hand with BLAS in mind; `numpy-log` reads the whole log in one matrix
product, which needs all of it beforehand: the least any program in f64 can do about it, and not online.
"""

import common  # sets the threads before numpy is loaded
import numpy as np
import scipy
import sklearn
from common import LAMBDA, Case
from scipy.linalg import blas, cho_factor, cho_solve, cholesky, solve_triangular
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge

sklearn.set_config(assume_finite=True)  # both sides trust data that was checked at the door

CHUNK = 2000  # rows with 1,000 kernel entries each: all 300,000 at once would be gigabytes, and outside every cache
LINEAR_CHUNK = 10_000
N_BLOCKS = 30


def in_chunks(score, n, chunk):
    """Mean and width of rows 0 … n, `chunk` at a time."""
    mean, width = np.empty(n), np.empty(n)
    for i in range(0, n, chunk):
        rows = slice(i, min(i + chunk, n))
        mean[rows], width[rows] = score(rows)
    return {"mean": mean, "width": width}


def spread(x, blocks):
    """(0, …, x, …, 0): row i of x in the columns of its block."""
    wide = np.zeros((len(x), N_BLOCKS, x.shape[1]))
    wide[np.arange(len(x)), blocks] = x
    return wide.reshape(len(x), -1)


def process(x, y):
    """The Gaussian process of KernLCB: RBF with σ = 1, noise λ, nothing fitted but the samples."""
    return GaussianProcessRegressor(RBF(1.0), alpha=LAMBDA, optimizer=None).fit(x, y)


def kernel_sklearn(a):
    x, test = a["x"].astype(np.float64), a["x_test"].astype(np.float64)
    model = process(x, a["y"])
    predict = lambda rows: model.predict(test[rows], return_std=True)
    # 30,000 of 300,000 rows in a timed run: the time is proportional to the rows.
    return Case(lambda n: in_chunks(predict, n, CHUNK), len(test), 1 / len(test), "rows", 30_000, 30_000)


def kernel_sklearn_disjoint(a):
    """scikit-learn knows no blocks: it gets the vectors of 600 numbers, built before the clock starts."""
    model = process(spread(a["x"], a["block"]), a["y"])
    share = 200  # contexts, × 30 blocks = 6,000 of 300,000 pairs
    contexts = np.repeat(a["x_test"][:share], N_BLOCKS, axis=0)
    wide = spread(contexts, np.tile(np.arange(N_BLOCKS), share))

    def run(n):
        scored = in_chunks(lambda rows: model.predict(wide[rows], return_std=True), n * N_BLOCKS, CHUNK)
        return {name: value.reshape(n, N_BLOCKS) for name, value in scored.items()}

    whole = len(a["x_test"])
    return Case(run, whole, 1 / whole, "contexts", share, share)


def kernel_numpy(a):
    """By hand: squared distances from one product, everything in place, one triangular solve per chunk."""
    x, test = a["x"].astype(np.float64), a["x_test"].astype(np.float64)
    norms, test_norms = (x * x).sum(1), (test * test).sum(1)

    def kernel(u, u_norms):
        k = u @ (-2.0 * x.T)
        k += u_norms[:, None]
        k += norms
        np.maximum(k, 0.0, out=k)
        k *= -0.5
        return np.exp(k, out=k)

    lower = cholesky(kernel(x, norms) + LAMBDA * np.eye(len(x)), lower=True)
    alpha = cho_solve((lower, True), a["y"])
    lower = np.asfortranarray(lower)

    def score(rows):
        k = kernel(test[rows], test_norms[rows])
        mean = k @ alpha
        white = blas.dtrsm(1.0, lower, k.T, lower=1, overwrite_b=1)
        return mean, np.sqrt(1.0 - np.einsum("ij,ij->j", white, white))

    return Case(lambda n: in_chunks(score, n, CHUNK), len(test), 1 / len(test), "rows", 30_000, 30_000)


def linear_fit(a):
    x = a["x"].astype(np.float64)
    factor = cho_factor(x.T @ x + LAMBDA * np.eye(x.shape[1]), lower=True)
    return factor, cho_solve(factor, x.T @ a["reward"])


def linear_observe(a):
    """Round by round: BLAS's symmetric rank-1 update in place, the cheapest numpy and scipy offer."""
    x, reward = a["x"].astype(np.float64), a["reward"].tolist()
    d = x.shape[1]

    def run(n):
        lam, b = np.asfortranarray(LAMBDA * np.eye(d)), np.zeros(d)
        for u, r in zip(x[:n], reward):
            blas.dsyr(1.0, u, a=lam, overwrite_a=1, lower=1)
            blas.daxpy(u, b, a=r)
        return {"theta": cho_solve(cho_factor(lam, lower=True), b)}

    return Case(run, len(x), 1.0, "rounds")


def linear_observe_log(a):
    x, reward = a["x"].astype(np.float64), a["reward"]
    ridge = LAMBDA * np.eye(x.shape[1])

    def run(n):
        factor = cho_factor(x[:n].T @ x[:n] + ridge, lower=True)
        return {"theta": cho_solve(factor, x[:n].T @ reward[:n])}

    return Case(run, len(x), 1.0, "rounds")


def linear_score(a):
    """θᵀu, and ‖L⁻¹u‖ from one product with L⁻ᵀ, squared and summed in place."""
    factor, theta = linear_fit(a)
    whitening = solve_triangular(np.tril(factor[0]), np.eye(len(theta)), lower=True).T
    test, ones = a["x_test"].astype(np.float64), np.ones(len(theta))

    def score(rows):
        white = test[rows] @ whitening
        white *= white
        return test[rows] @ theta, np.sqrt(white @ ones)

    return Case(lambda n: in_chunks(score, n, LINEAR_CHUNK), len(test), 1 / len(test), "rows")


def linear_sklearn(a):
    """`BayesianRidge.predict(return_std=True)` with the posterior of LinLCB: what it would fit itself are λ and the noise."""
    factor, theta = linear_fit(a)
    model = BayesianRidge(fit_intercept=False)
    model.coef_, model.intercept_, model.X_offset_ = theta, 0.0, np.zeros(len(theta))
    model.sigma_, model.alpha_ = cho_solve(factor, np.eye(len(theta))), np.inf
    test = a["x_test"].astype(np.float64)
    predict = lambda rows: model.predict(test[rows], return_std=True)
    return Case(lambda n: in_chunks(predict, n, LINEAR_CHUNK), len(test), 1 / len(test), "rows")


SIDES = {
    ("kernel-score", "sklearn"): kernel_sklearn,
    ("kernel-score", "numpy"): kernel_numpy,
    ("kernel-score-disjoint", "sklearn"): kernel_sklearn_disjoint,
    ("linear-observe", "numpy"): linear_observe,
    ("linear-observe", "numpy-log"): linear_observe_log,
    ("linear-score", "sklearn"): linear_sklearn,
    ("linear-score", "numpy"): linear_score,
}

if __name__ == "__main__":
    versions = f"scikit-learn {sklearn.__version__}, scipy {scipy.__version__}, numpy {np.__version__}"
    common.main(SIDES, versions)
