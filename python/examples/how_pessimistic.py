"""How pessimistic should I be? One training serves every β, and held-out rounds say what each would have earned.

    python how_pessimistic.py [ROUNDS]
"""

from __future__ import annotations

import sys

import numpy as np

import neuralcb


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    # one vector for each round, 30 actions, and a behaviour policy that explores in half of the rounds
    log = neuralcb.simulate("cosine", n, seed=2, preset="released-code", behaviour="epsilon-greedy:0.5")
    half = n // 2
    learner = neuralcb.LinLCB(beta=0.0).fit(log.contexts[:half], log.actions[:half], log.rewards[:half])
    later = slice(half, n)

    print("   beta  estimate  lower bound  actions played")
    found = []
    for beta in (0.0, 0.1, 0.3, 1.0, 3.0, 10.0):
        learner.beta = beta
        report = neuralcb.ope.evaluate_policy(
            learner, log.contexts[later], log.actions[later], log.rewards[later], log.propensities[later]
        )
        played = len(np.unique(learner.predict(log.contexts[later])))
        estimate = report["dr"]
        lower = estimate.lower_bounds["normal"]
        found.append((lower, beta))
        print(f"{beta:7g}  {estimate.value:8.4f}  {lower:11.4f}  {played:14}")
    lower, beta = max(found)
    print(f"\nby its lower bound choose beta = {beta:g}: at least {lower:.4f}, where the log earned {log.rewards[later].mean():.4f}")


if __name__ == "__main__":
    main()
