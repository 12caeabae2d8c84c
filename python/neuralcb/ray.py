"""Sweeps, scoring and evaluation on a Ray cluster, with the numbers of one machine.

A worker that dies costs time and no results: Ray makes its task again, and a task has no memory.
"""

from __future__ import annotations

from functools import lru_cache
from os import PathLike
from typing import Any, Iterable, Iterator, Mapping, Sequence

import numpy as np

from . import _neuralcb
from ._learners import Learner
from ._neuralcb import NeuralcbError
from ._policy import Policy
from ._progress import Progress
from ._sweep import Log, Row, Run, checked, execute, walk
from .ope import Evaluation, Report

__all__ = ["evaluate", "score", "sweep"]


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise NeuralcbError("this needs Ray: pip install 'neuralcb[ray]'") from error
    if not ray.is_initialized():
        ray.init()
    return ray


def sweep(
    grid: Mapping[str, Mapping[str, Sequence[Any]]],
    contexts: Any,
    actions: Any,
    rewards: Any,
    propensities: Any,
    *,
    repetitions: int = 1,
    hold_out: float = 0.3,
    journal: str | PathLike[str] | None = None,
    num_cpus: float = 1,
    progress: Progress = None,
) -> list[Row]:
    """As :func:`neuralcb.sweep`, over a Ray cluster: the log is put into the object store once, runs are done anywhere.

    Parameters are those of :func:`neuralcb.sweep`, and ``num_cpus``, what a run takes of the cluster.
    """
    ray = _ray()
    log = checked(contexts, actions, rewards, propensities, hold_out)
    task = ray.remote(num_cpus=num_cpus, max_retries=10)(execute)

    def everywhere(pending: Iterable[Run], log: Log, hold_out: float) -> Iterator[tuple[Run, list[Row]]]:
        stored = ray.put(log)
        waiting = {task.remote(run, stored, hold_out): run for run in pending}
        while waiting:
            (first, *_), _ = ray.wait(list(waiting))
            yield waiting.pop(first), ray.get(first)

    return walk(everywhere, grid, log, repetitions, hold_out, journal, progress)


@lru_cache(maxsize=4)
def _policy(stored: bytes) -> Policy:
    return Policy(_neuralcb.Policy.from_bytes(stored))


def _bytes(policy: Policy | Learner) -> bytes:
    judged = policy._fitted() if isinstance(policy, Learner) else policy
    return judged._native.to_bytes()


def _features(policy: Policy, batch: Any) -> Any:
    shared, own = policy._known()
    if own:
        raise NeuralcbError("a Ray dataset has one row for each round: the policy knows actions by features of their own")
    return batch.select([name for name, _ in shared])


def score(dataset: Any, policy: Policy | Learner, *, explain: bool = False, batch_size: int = 65_536) -> Any:
    """A policy's decisions on a Ray dataset: the same rows with a column ``action`` and, explained, ``mean:A``, ``width:A`` and
    ``bound:A`` of every action A.

    Parameters
    ----------
    dataset : ray.data.Dataset
        With the policy's features by name.
    policy : Policy or learner
    explain : bool
    batch_size : int
    """
    _ray()
    stored = _bytes(policy)

    def decide(batch: Any) -> Any:
        import pyarrow

        own = _policy(stored)
        given = own._rounds(_features(own, batch), None)
        actions, mean, width = own._native.decide(given, explain)
        batch = batch.drop_columns([name for name in ("action",) if name in batch.column_names])
        batch = batch.append_column("action", pyarrow.array(own.actions[actions]))
        if explain:
            lower = mean - (own.beta or 0.0) * width
            for k, label in enumerate(own.actions):
                for name, values in (("mean", mean), ("width", width), ("bound", lower)):
                    batch = batch.append_column(f"{name}:{label}", pyarrow.array(values[:, k]))
        return batch

    return dataset.map_batches(decide, batch_format="pyarrow", batch_size=batch_size)


def evaluate(
    dataset: Any,
    policy: Policy | Learner,
    *,
    action: str = "action",
    reward: str = "reward",
    propensity: str = "propensity",
    batch_size: int = 65_536,
    **settings: Any,
) -> Report:
    """What a policy would have earned on a log in a Ray dataset. Decisions are made by the workers; their weights are summed in
    the order of the log, so the report does not depend on the number of workers or blocks.

    Parameters
    ----------
    dataset : ray.data.Dataset
        With the policy's features, the logged action, its reward and propensity, by name.
    policy : Policy or learner
    action, reward, propensity : str
        Columns of the log.
    **settings
        As for :func:`neuralcb.ope.evaluate`. Estimators that need a reward model are left out.
    """
    ray = _ray()
    stored = _bytes(policy)

    def weigh(batch: Any) -> dict[str, Any]:
        own = _policy(stored)
        given = own._rounds(_features(own, batch), None)
        chosen = own.actions[own._native.decide(given, False)[0]]
        logged = batch.column(action).to_numpy()
        pi = (chosen == logged.astype(chosen.dtype)).astype(np.float64)
        return {
            "target": pi,
            "propensity": batch.column(propensity).to_numpy(),
            "reward": batch.column(reward).to_numpy().astype(np.float64),
        }

    context = ray.data.DataContext.get_current()
    before = context.execution_options.preserve_order
    context.execution_options.preserve_order = True
    try:
        evaluation = Evaluation(**settings)
        weighed = dataset.map_batches(weigh, batch_format="pyarrow", batch_size=batch_size)
        for part in weighed.iter_batches(batch_format="numpy", batch_size=batch_size):
            evaluation.extend(part["reward"], part["propensity"], part["target"])
        return evaluation.report()
    finally:
        context.execution_options.preserve_order = before
