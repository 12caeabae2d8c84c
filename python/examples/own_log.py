"""From an own log to a policy: look at the log, learn, judge on rounds that were not learned from, keep the policy.

    python own_log.py [LOG.csv]

Without a file a log is made: a shop that shows one of five offers, mostly at random.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import neuralcb


def make_log(path: Path, n: int = 4000) -> None:
    """Customers with an age and a basket; offers that suit some of them."""
    rng = np.random.default_rng(7)
    age, basket = rng.uniform(18, 80, n), rng.gamma(2.0, 20.0, n)
    offers = np.array(["coffee", "games", "garden", "travel", "wine"])
    chosen = rng.integers(5, size=n)
    taste = np.stack([0.3 + 0 * age, (60 - age) / 60, (age - 20) / 80, basket / 150, (age > 40) * 0.5])
    bought = rng.random(n) < np.clip(taste[chosen, np.arange(n)], 0.02, 0.95)
    with open(path, "w") as out:
        out.write("action,reward,propensity,age,basket\n")
        for t in range(n):
            out.write(f"{offers[chosen[t]]},{int(bought[t])},0.2,{age[t]:.2f},{basket[t]:.2f}\n")


def main() -> None:
    if len(sys.argv) > 1:
        path = Path(sys.argv[1])
    else:
        path = Path(tempfile.mkdtemp()) / "log.csv"
        make_log(path)

    diagnosis = neuralcb.diagnose(path)
    print(diagnosis)
    if diagnosis.unwise:
        sys.exit("training on this log would be unwise")

    # algorithm and pessimism chosen from the log alone: by the largest lower bound on its last rounds
    tuned = neuralcb.tune(path, modes=["S"])
    print(tuned)
    policy_path = path.with_suffix(".safetensors")
    tuned.policy.save(policy_path)

    counts = neuralcb.score(neuralcb.load(policy_path), path, path.with_name("decisions.csv"))
    for action, count in zip(tuned.policy.actions, counts["chosen"]):
        print(f"{action:10} {count:6} times")
    print(f"policy in {policy_path}")


if __name__ == "__main__":
    main()
