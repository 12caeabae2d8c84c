"""Many trainings over a grid of settings, on this machine or on others: the same runs, the same numbers."""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from . import _learners
from ._learners import Learner
from ._neuralcb import NeuralcbError
from ._progress import Progress, progress_bar
from .ope import evaluate_policy

Row = dict[str, Any]
Run = dict[str, Any]
"""A learner's name, its settings, the β to be read off it, and the number of the repetition."""

Log = tuple[Any, ...]
"""Contexts, actions, rewards and propensities."""


def runs(grid: Mapping[str, Mapping[str, Sequence[Any]]], repetitions: int) -> list[Run]:
    """The trainings that a grid asks for: β is no part of training, so all of its values share one."""
    if repetitions < 1:
        raise NeuralcbError(f"`repetitions` must be at least 1, got {repetitions}")
    found = []
    for name, axes in grid.items():
        learner = getattr(_learners, name, None)
        if not (isinstance(learner, type) and issubclass(learner, Learner) and learner is not Learner):
            raise NeuralcbError(f"unknown learner `{name}`: use NeuraLCB, NeuralGreedy, NeuralLinLCB, LinLCB or KernLCB")
        strangers = [axis for axis in axes if axis not in learner._names()]
        if strangers:
            raise NeuralcbError(f"unknown parameter `{strangers[0]}` of {name}: use one of {', '.join(learner._names())}")
        settings: list[dict[str, Any]] = [{}]
        for axis, values in axes.items():
            if axis != "beta":
                settings = [{**one, axis: value} for one in settings for value in values]
        betas = list(axes.get("beta", [None]))
        for one in settings:
            for repetition in range(repetitions):
                found.append({"learner": name, "settings": one, "betas": betas, "repetition": repetition})
    return found


def key(run: Run, log_digest: str) -> str:
    """A name of a run that is the same whenever its outcome must be."""
    return hashlib.sha256(json.dumps([run, log_digest], sort_keys=True).encode()).hexdigest()[:32]


def digest(log: Log, hold_out: float) -> str:
    """What tells logs apart."""
    found = hashlib.sha256(str(hold_out).encode())
    for part in log:
        array = np.ascontiguousarray(part)
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def execute(run: Run, log: Log, hold_out: float) -> list[Row]:
    """One training on the early rounds; every β judged on the others by the lower bound of its value."""
    contexts, actions, rewards, propensities = log
    n = len(rewards)
    cut = n - max(1, round(n * hold_out))
    early, late = slice(0, cut), slice(cut, n)
    settings = dict(run["settings"])
    settings["random_state"] = int(settings.get("random_state", 1)) + run["repetition"]
    n_actions = None if np.ndim(contexts) == 3 else int(np.max(actions)) + 1
    learner: Learner = getattr(_learners, run["learner"])(**settings)
    learner.fit(contexts[early], actions[early], rewards[early], n_actions=n_actions, progress=False)
    rows = []
    for beta in run["betas"]:
        if beta is not None:
            learner.set_params(beta=beta)
        report = evaluate_policy(
            learner,
            contexts[late],
            actions[late],
            rewards[late],
            propensities[late],
            folds=0,
            estimators=["snips"],
            intervals=["normal"],
            progress=False,
        )
        found = report["snips"]
        row: Row = {"learner": run["learner"], "repetition": run["repetition"], **run["settings"], "beta": beta}
        row |= {"value": found.value, "lower_bound": found.lower_bounds.get("normal", float("nan")), "ess": report.ess}
        rows.append(row)
    return rows


def checked(contexts: Any, actions: Any, rewards: Any, propensities: Any, hold_out: float) -> Log:
    """The log as arrays."""
    if propensities is None:
        raise NeuralcbError("a sweep judges policies by the log, which needs `propensities`")
    if not 0.0 < hold_out < 1.0:
        raise NeuralcbError(f"`hold_out` must be in (0, 1), got {hold_out}")
    log = tuple(np.asarray(part) for part in (contexts, actions, rewards, propensities))
    if log[0].ndim not in (2, 3) or any(len(part) != len(log[0]) for part in log) or len(log[0]) < 2:
        raise NeuralcbError(f"a log of at least 2 rounds in arrays of one length, got {[len(part) for part in log]}")
    return log


Executor = Callable[[Iterable[Run], Log, float], Iterator[tuple[Run, list[Row]]]]


def walk(
    execute_all: Executor,
    grid: Mapping[str, Mapping[str, Sequence[Any]]],
    log: Log,
    repetitions: int,
    hold_out: float,
    journal: str | PathLike[str] | None,
    progress: Progress,
) -> list[Row]:
    """All runs that the journal does not hold yet, and then the rows of all, in the order of the grid."""
    wanted, of_log = runs(grid, repetitions), digest(log, hold_out)
    names = [key(run, of_log) for run in wanted]
    done: dict[str, list[Row]] = {}
    path = None if journal is None else Path(journal)
    if path is not None and path.exists():
        text = path.read_text(encoding="utf-8")
        if text and not text.endswith("\n"):
            path.write_text(text + "\n", encoding="utf-8")
        for line in text.splitlines():
            try:
                record = json.loads(line)
                done[record["run"]] = record["rows"]
            except (ValueError, KeyError):
                continue  # the last line of a sweep that was killed while it wrote
    pending = [run for run, name in zip(wanted, names) if name not in done]
    with progress_bar(progress, "sweep") as tell:
        for run, rows in execute_all(pending, log, hold_out):
            done[key(run, of_log)] = rows
            if path is not None:
                with path.open("a", encoding="utf-8") as out:
                    out.write(json.dumps({"run": key(run, of_log), "rows": rows}) + "\n")
            if tell is not None:
                tell(sum(name in done for name in names), len(names))
    return [row for name in names for row in done[name]]


def _here(pending: Iterable[Run], log: Log, hold_out: float) -> Iterator[tuple[Run, list[Row]]]:
    for run in pending:
        yield run, execute(run, log, hold_out)


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
    progress: Progress = None,
) -> list[Row]:
    """Trains every learner of a grid on the early rounds of a log and judges it, at every β, on the others.

    Parameters
    ----------
    grid : dict of dict of lists
        For each learner's name the values of its parameters. β costs nothing: one training serves all of its values.
    contexts, actions, rewards, propensities
        A log in arrays, with integer actions.
    repetitions : int
        How often each is trained, with seeds that follow each other.
    hold_out : float in (0, 1)
        The share of rounds, the last ones, that judge.
    journal : path, optional
        Finished runs are kept there: a sweep that was stopped goes on where it was.
    progress : None, bool or function of (done, total)

    Returns
    -------
    list of dict
        A row for each learner, setting, repetition and β, in the order of the grid: its self-normalised estimate
        ``value``, the 95 % ``lower_bound`` and the effective sample size ``ess``.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 300, seed=1, preset="released-code", behaviour="uniform")
    >>> rows = neuralcb.sweep({"LinLCB": {"lam": [0.1, 1.0], "beta": [0.0, 1.0]}},
    ...                       log.contexts, log.actions, log.rewards, log.propensities)
    >>> [(row["lam"], row["beta"]) for row in rows]
    [(0.1, 0.0), (0.1, 1.0), (1.0, 0.0), (1.0, 1.0)]
    """
    log = checked(contexts, actions, rewards, propensities, hold_out)
    return walk(_here, grid, log, repetitions, hold_out, journal, progress)
