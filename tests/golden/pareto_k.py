"""Golden values of src/ope/tail.rs: Pareto k̂ by arviz-stats (pip install arviz-stats; 0.8.0 was used)."""

import numpy as np
from arviz_stats.base import array_stats


def draws(n):
    state, out = 12345, []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(((state >> 11) + 0.5) / 2**53)
    return np.array(out)


for n, k in [(40, 1.5), (100, 0.2), (1000, 0.5), (1000, 0.9), (5000, -0.3), (20000, 0.7)]:
    weights = ((1 - draws(n)) ** -k - 1) / k + 1  # a generalised Pareto distribution that begins at 1
    _, k_hat = array_stats.psislw(-np.log(weights))  # it takes the logarithms with a minus
    print(n, k, float(k_hat))
