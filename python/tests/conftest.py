"""Logs that several tests learn from."""

from __future__ import annotations

import numpy as np
import pytest

import neuralcb


class Log:
    """Rounds with one vector each; action 1 is good where the first feature is high, action 0 where it is low."""

    def __init__(self, n: int, seed: int = 0, k: int = 3, d: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.contexts = rng.normal(size=(n, d))
        self.actions = rng.integers(k, size=n)
        sign = np.where(self.actions == 1, 1.0, np.where(self.actions == 0, -1.0, 0.0))
        self.rewards = sign * self.contexts[:, 0] + 0.1 * rng.normal(size=n)
        self.propensities = np.full(n, 1.0 / k)

    @property
    def args(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.contexts, self.actions, self.rewards


@pytest.fixture(scope="session")
def log() -> Log:
    return Log(600)


@pytest.fixture(scope="session")
def fresh() -> Log:
    return Log(400, seed=1)


@pytest.fixture(scope="session")
def own() -> neuralcb.SimulatedLog:
    """A vector for each action."""
    return neuralcb.simulate("cosine", 300, seed=3)


LEARNERS = {
    "NeuraLCB": dict(width=16, depth=2),
    "NeuralGreedy": dict(width=16, depth=2),
    "NeuralLinLCB": dict(width=16, depth=2),
    "LinLCB": {},
    "KernLCB": {},
    "Choice": dict(members=1),
    "Regression": dict(members=2),
}


@pytest.fixture(params=sorted(LEARNERS))
def learner(request: pytest.FixtureRequest) -> neuralcb.Learner:
    return getattr(neuralcb, request.param)(**LEARNERS[request.param])
