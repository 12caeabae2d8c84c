"""Tuning, sweeps, scoring and evaluation on a Ray cluster, with the numbers of one machine.

A worker that dies costs time and no results: Ray makes its task again, and a task has no memory.
"""

from __future__ import annotations

from functools import lru_cache
from os import PathLike
from typing import Any, Iterable, Iterator, Mapping, Sequence

from . import _neuralcb
from ._learners import Learner
from ._logs import Task, Tuned, _part, _tuned, _tuning
from ._neuralcb import NeuralcbError
from ._policy import Policy
from ._progress import Progress, progress_bar
from ._sweep import Log, Row, Run, checked, execute, walk
from .ope import Evaluation, Report
from .ope import _policy as decides

__all__ = ["evaluate", "score", "sweep", "tune"]


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


def tune(
    log: Any,
    actions: Any = None,
    rewards: Any = None,
    propensities: Any = None,
    eligible: Any = None,
    *,
    n_actions: int | None = None,
    log_options: dict[str, Any] | None = None,
    seed: int = 1,
    preset: str = "practical",
    num_cpus: float = 1,
    progress: Progress = None,
    **options: Any,
) -> Tuned:
    """As :func:`neuralcb.tune`, over a Ray cluster and with the same answer to the bit: candidates are tried anywhere, the
    certificate is made here.

    Parameters are those of :func:`neuralcb.tune`, and ``num_cpus``, what a group of candidates takes of the cluster. Files
    must have the same path on every machine; arrays are put into the object store once.
    """
    ray = _ray()
    task = _tuning(log, actions, rewards, propensities, eligible, n_actions, log_options, seed, preset, options)
    _, groups = _part(task, "groups")

    def attempt(task: Task, group: list[int]) -> Any:
        return _part(task, {"group": group})[1]

    remote, stored = ray.remote(num_cpus=num_cpus, max_retries=10)(attempt), ray.put(task)
    waiting, tried = [remote.remote(stored, group) for group in groups], []
    with progress_bar(progress, "tuning") as tell:
        while waiting:
            (done, *_), waiting = ray.wait(waiting)
            tried += ray.get(done)
            if tell is not None:
                tell(len(groups) - len(waiting), len(groups))
    return _tuned(*_part(task, {"finish": tried}))


@lru_cache(maxsize=4)
def _policy(stored: bytes) -> Policy:
    return Policy(_neuralcb.Policy.from_bytes(stored))


def _bytes(policy: Policy | Learner) -> bytes:
    return decides(policy)._native.to_bytes()


def _names(policy: Policy) -> list[str]:
    """The columns of the policy's features."""
    shared, own = policy._known()
    if own:
        raise NeuralcbError("a Ray dataset has one row for each round: the policy knows actions by features of their own")
    return [name for name, _ in shared]


def _features(policy: Policy, batch: Any) -> Any:
    return batch.select(_names(policy))


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
    _names(decides(policy))

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
    model: Policy | Learner | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str = "propensity",
    batch_size: int = 65_536,
    **settings: Any,
) -> Report:
    """What a policy would have earned on a log in a Ray dataset. Workers decide and weigh; each block is then numbered by the
    rows before it and summed where it lies. Only states of some dozen kilobytes come together, and they merge to the same
    bits whatever the number of workers and blocks: those of :func:`neuralcb.ope.evaluate_policy` with the same model (or
    ``folds=0``).

    Parameters
    ----------
    dataset : ray.data.Dataset
        With the policy's features, the logged action, its reward and propensity, by name.
    policy : Policy or learner
    model : Policy or learner, optional
        A reward model for ``dm``, ``dr`` and their kin: one that learned from other rounds, with the policy's features.
        Without it they are left out.
    action, reward, propensity : str
        Columns of the log.
    **settings
        As for :func:`neuralcb.ope.evaluate`.
    """
    ray = _ray()
    stored, stored_model = _bytes(policy), None if model is None else _bytes(model)
    columns = dict.fromkeys([*_names(_policy(stored)), action, reward, propensity])

    def weigh(batch: Any) -> Any:
        import pyarrow

        own, other = _policy(stored), None if stored_model is None else _policy(stored_model)._native
        outcome = {"actions": action, "rewards": reward, "propensities": propensity}
        logged = {name: batch.column(column).to_numpy() for name, column in outcome.items()}
        found = _neuralcb.weigh(own._native, other, own._rounds(_features(own, batch), None, **logged))
        named = zip(("weights", "rewards", "q", "v"), found)
        return pyarrow.table({name: values for name, values in named if values is not None})

    def part(block: Any, first_round: int) -> Evaluation:
        evaluation = Evaluation(first_round=first_round, **settings)
        evaluation.extend(**{name: block.column(name).to_numpy() for name in block.column_names})
        return evaluation

    whole = Evaluation(**settings)
    task = ray.remote(num_cpus=1, max_retries=10)(part)
    at_once = max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
    waiting: list[Any] = []
    for block, first_round in _numbered(
        ray, dataset.select_columns(list(columns)).map_batches(weigh, batch_format="pyarrow", batch_size=batch_size)
    ):
        waiting.append(task.remote(block, first_round))
        if len(waiting) >= at_once:
            (done, *_), waiting = ray.wait(waiting)
            whole.merge(ray.get(done))
    while waiting:
        (done, *_), waiting = ray.wait(waiting)
        whole.merge(ray.get(done))
    return whole.report()


def _numbered(ray: Any, dataset: Any) -> Iterator[tuple[Any, int]]:
    """The blocks of a dataset in order as they are made, each with the number of its first row."""
    context = ray.data.DataContext.get_current()
    contexts = [context] if dataset.context is context else [context, dataset.context]
    before = [one.execution_options.preserve_order for one in contexts]
    for one in contexts:
        one.execution_options.preserve_order = True
    try:
        first = 0
        for bundle in dataset.iter_internal_ref_bundles():
            for block, about in zip(bundle.block_refs, bundle.metadata):
                if about.num_rows:
                    yield block, first
                    first += about.num_rows
    finally:
        for one, ordered in zip(contexts, before):
            one.execution_options.preserve_order = ordered
