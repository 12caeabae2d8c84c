"""IPS and DR with a bootstrap of 100, on 1 million rounds of 10 actions: against Open Bandit Pipeline, in one run.

    python python/benches/obp.py

Open Bandit Pipeline 0.5.7 refuses Python 3.11 and later, and its package imports much that its estimators do not need. So it
is installed here without its dependencies and against its own word into a temporary folder (`--obp FOLDER`: one that has it
already), and `obp/ope/estimators.py` is imported alone, with an empty module in the place of PyTorch, which it mentions and
does not use here. It needs numpy, scipy, pandas and scikit-learn.

Values must agree to 1e-10. The bootstraps are two forms of one thing: Open Bandit Pipeline draws n rounds with replacement
for each of 100 replicates of each estimator and takes the mean; here each round counts Poisson(1) times in each of 100
replicates, which serve all estimators. Both take the 2.5 % and 97.5 % quantiles. Ends must agree within half of the
interval's length, which is several times the noise that 100 replicates leave. Beside that, a report here holds exact second
moments, the behaviour policy's value and interval, the paired difference, and warnings, all of which its time includes.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from neuralcb import ope

VERSION = "0.5.7"


def estimators(folder: Path) -> Any:
    """Open Bandit Pipeline's estimators, without the rest of it."""
    sys.path.insert(0, str(folder))
    sys.modules.setdefault("torch", types.ModuleType("torch"))
    sys.modules["torch"].__dict__.setdefault("tensor", object)
    sys.modules["torch"].__dict__.setdefault("Tensor", object)
    for name in ("obp", "obp.ope"):
        package = types.ModuleType(name)
        package.__path__ = [str(folder / name.replace(".", "/"))]
        sys.modules[name] = package
    return importlib.import_module("obp.ope.estimators")


def rounds(n: int, k: int) -> dict[str, Any]:
    """A log in Open Bandit Pipeline's form: binary rewards, a softmax behind both policies, a reward model that is off."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(n, k))
    mu = np.exp(0.5 * scores)
    mu /= mu.sum(axis=1, keepdims=True)
    pi = np.exp(2.0 * scores + rng.normal(size=(n, k)))
    pi /= pi.sum(axis=1, keepdims=True)
    action = (rng.random((n, 1)) > np.cumsum(mu, axis=1)).sum(axis=1).clip(max=k - 1)
    truth = 1.0 / (1.0 + np.exp(-scores))
    reward = (rng.random(n) < truth[np.arange(n), action]).astype(float)
    q = np.clip(truth + 0.1 * rng.normal(size=(n, k)), 0.0, 1.0)
    pscore = mu[np.arange(n), action]
    return dict(reward=reward, action=action, pscore=pscore, pi=pi[:, :, None], q=q[:, :, None])


def least(repeats: int, work: Any) -> tuple[float, Any]:
    seconds, found = [], None
    for _ in range(repeats):
        start = perf_counter()
        found = work()
        seconds.append(perf_counter() - start)
    return min(seconds), found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=1_000_000)
    options.add_argument("--actions", type=int, default=10)
    options.add_argument("--replicates", type=int, default=100)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--obp", type=Path, help="a folder that holds the package `obp`")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.obp or Path(name)
        if given.obp is None:
            install = ["install", "--quiet", "--no-deps", "--ignore-requires-python", "--target", name, f"obp=={VERSION}"]
            subprocess.run([sys.executable, "-m", "pip", *install], check=True)
        compare(estimators(folder), rounds(given.rounds, given.actions), given.replicates, given.repeats)


def compare(theirs: Any, log: dict[str, Any], replicates: int, repeats: int) -> None:
    known = dict(reward=log["reward"], action=log["action"], pscore=log["pscore"], action_dist=log["pi"])
    jobs = {"ips": (theirs.InverseProbabilityWeighting(), known)}
    jobs["dr"] = (theirs.DoublyRobust(), {**known, "estimated_rewards_by_reg_model": log["q"]})

    def here(names: list[str]) -> ope.Report:
        return ope.evaluate(
            log["reward"],
            log["pscore"],
            log["pi"],
            actions=log["action"],
            q=log["q"] if "dr" in names else None,
            estimators=names,
            intervals=["bootstrap"],
            replicates=replicates,
            progress=False,
        )

    n, k, _ = log["pi"].shape
    print(f"{n} rounds of {k} actions, bootstrap of {replicates}; seconds, the least of {repeats}")
    print(f"{'':9}{'here':>9}{'obp':>9}{'ratio':>8}   value here, interval here; of obp")
    here(["ips", "dr"])  # starts the threads
    there_all = 0.0
    for name, (estimator, given) in jobs.items():

        def there(estimator: Any = estimator, given: dict[str, Any] = given) -> tuple[float, dict[str, float]]:
            value = estimator.estimate_policy_value(**given)
            return value, estimator.estimate_interval(**given, n_bootstrap_samples=replicates, random_state=1)

        own, report = least(repeats, lambda: here([name]))
        other, (value, interval) = least(repeats, there)
        there_all += other
        low, high = report[name].intervals["bootstrap"]
        ends = [bound for key, bound in interval.items() if "CI" in key]
        print(
            f"{name:9}{own:9.4f}{other:9.4f}{other / own:8.1f}   {report[name].value:.10f} [{low:.6f}, {high:.6f}];"
            f" {value:.10f} [{ends[0]:.6f}, {ends[1]:.6f}]"
        )
        assert abs(report[name].value - value) <= 1e-10, f"{name}: values differ"
        for own_end, other_end in zip((low, high), ends):
            assert abs(own_end - other_end) <= 0.5 * (ends[1] - ends[0]), f"{name}: intervals differ"
    own, report = least(repeats, lambda: here(["ips", "dr"]))
    assert all(abs(report[name].value - job[0].estimate_policy_value(**job[1])) <= 1e-10 for name, job in jobs.items())
    print(f"{'together':9}{own:9.4f}{there_all:9.4f}{there_all / own:8.1f}   wanted: at least 10; values equal to 1e-10")


if __name__ == "__main__":
    main()
