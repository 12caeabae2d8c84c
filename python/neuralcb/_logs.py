"""Logs in files: what the command line does with them, with the same numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Sequence, Union

from . import _neuralcb
from ._card import of_diagnosis, of_tuning, write_card
from ._input import rounds
from ._neuralcb import NeuralcbError
from ._policy import Policy
from ._progress import Progress, progress_bar
from .obp import from_obp, is_feedback
from .ope import Report, _config, _report, _warn

Paths = Union[str, "PathLike[str]", Sequence[Union[str, "PathLike[str]"]]]

_ROLES = ("action", "reward", "propensity", "eligible", "round", "chosen")


def _paths(log: Paths) -> list[str]:
    return [fspath(log)] if isinstance(log, (str, PathLike)) else [fspath(path) for path in log]


def _log_options(options: dict[str, Any] | None) -> str:
    """What is said about the columns: roles by name, and all else as in a schema file."""
    given = dict(options or {})
    roles = {name: given.pop(name) for name in _ROLES if name in given}
    if roles:
        given["roles"] = {**given.get("roles", {}), **roles}
    return json.dumps(given)


def train(
    log: Paths,
    algorithm: str = "neuralcb",
    *,
    log_options: dict[str, Any] | None = None,
    seed: int = 1,
    progress: Progress = None,
    **settings: Any,
) -> Policy:
    """Trains a policy on log files as ``neuralcb train`` does, in memory that does not grow with the log.

    Parameters
    ----------
    log : path or paths
        CSV, TSV, JSON lines, dsjson, Parquet, a folder of them, or a folder of the Open Bandit Dataset.
    algorithm : str
        As on the command line: neuralcb, neural-greedy, neural-lin-lcb, lin-lcb, kern-lcb, clone, constant, uniform, …
    log_options : dict, optional
        What a schema file says: ``action``, ``reward``, ``propensity`` (names of columns), ``features``, ``ignore``,
        ``kinds``, ``missing``, ``max_bad_rows``, ``format``.
    seed : int
    **settings
        ``beta``, ``preset``, ``mode``, ``lr``, ``lambda`` (as ``**{"lambda": 0.1}``), ``sigma``, ``net``, ….

    Examples
    --------
    >>> import neuralcb, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "log.csv")
    >>> neuralcb.simulate("cosine", 300, seed=1, preset="released-code").write_csv(path)
    >>> neuralcb.train(path, "lin-lcb", beta=0.5)
    <neuralcb.Policy lin-lcb, beta=0.5, 30 actions, from 300 rounds>
    """
    recipe = json.dumps({"algorithm": algorithm, "seed": seed, **settings})
    with progress_bar(progress, "training") as tell:
        return Policy(_neuralcb.train(_paths(log), _log_options(log_options), recipe, tell))


def score(
    policy: Policy | str | PathLike[str],
    records: Paths,
    out: str | PathLike[str],
    *,
    explain: bool = False,
    log_options: dict[str, Any] | None = None,
    progress: Progress = None,
) -> dict[str, Any]:
    """Writes a policy's decisions on the records of files, as ``neuralcb score`` does; returns counts.

    Parameters
    ----------
    policy : Policy or path
    records : path or paths
    out : path
        ``.parquet``, ``.jsonl``, otherwise CSV.
    explain : bool
        Also mean, width and bound of every action.
    """
    native = _native(policy)
    with progress_bar(progress, "scoring") as tell:
        text = _neuralcb.score(native, _paths(records), _log_options(log_options), out, explain, tell)
    counts: dict[str, Any] = json.loads(text)
    return counts


def evaluate(
    policy: Policy | str | PathLike[str] | None,
    log: Paths,
    *,
    policy_column: str | None = None,
    q_column: str | None = None,
    v_column: str | None = None,
    folds: int = 3,
    segments: Sequence[str] = (),
    log_options: dict[str, Any] | None = None,
    progress: Progress = None,
    **settings: Any,
) -> Report:
    """Evaluates a policy on log files as ``neuralcb evaluate`` does.

    Parameters
    ----------
    policy : Policy, path or None
        None with ``policy_column``: a policy that lives elsewhere.
    log : path or paths
    policy_column, q_column, v_column : str
        Columns of the log with that policy's probability of the logged action, and a model's values.
    folds : int
        Folds of the reward model behind ``dm`` and ``dr``; 0 leaves them out.
    segments : names of columns
        Who gains and who loses is told by their values, in :meth:`Report.report` and :meth:`Report.to_dict`.
    **settings
        As for :func:`neuralcb.ope.evaluate`.
    """
    if (policy is None) == (policy_column is None):
        raise NeuralcbError("give a policy, or None and `policy_column`")
    if (q_column is None) != (v_column is None):
        raise NeuralcbError("`q_column` and `v_column` belong together")
    columns = [column for column in (policy_column, q_column, v_column) if column is not None]
    config = _config(**settings)
    options = json.dumps({"ope": config, "folds": int(folds), "segments": list(segments)})
    native = None if policy is None else _native(policy)
    with progress_bar(progress, "evaluating") as tell:
        text, unseen = _neuralcb.evaluate_log(
            native, columns, _paths(log), _log_options(log_options), options, tell
        )
    _warn(unseen)
    return _report(text, config["confidence"])


def _native(policy: Policy | str | PathLike[str]) -> _neuralcb.Policy:
    return policy._native if isinstance(policy, Policy) else _neuralcb.Policy.load(policy)


@dataclass(frozen=True)
class Diagnosis:
    """What a log is like, and what to beware of; prints as the command line does."""

    rows: int
    unwise: bool
    """Whether training on it would be unwise."""
    warnings: list[dict[str, Any]]
    raw: dict[str, Any] = field(repr=False)
    text: str = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as the command line writes it with ``--json``."""
        return self.raw

    def metrics(self) -> dict[str, float]:
        """Flat numbers, for an experiment tracker."""
        return of_diagnosis(self.raw)

    def report(self, path: str | PathLike[str]) -> Path:
        """Writes a card, one page for people, as ``neuralcb diagnose --report`` does; returns its path."""
        return write_card("diagnose", self.raw, path)

    def __str__(self) -> str:
        return self.text


def diagnose(
    log: Paths,
    *,
    segments: Sequence[str] = (),
    log_options: dict[str, Any] | None = None,
    progress: Progress = None,
) -> Diagnosis:
    """Is this log fit to learn from? As ``neuralcb diagnose`` answers it; rewards also by segment of the named columns.

    Examples
    --------
    >>> import neuralcb, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "log.csv")
    >>> neuralcb.simulate("cosine", 300, seed=1).write_csv(path)
    >>> neuralcb.diagnose(path).rows
    300
    """
    with progress_bar(progress, "diagnosing") as tell:
        raw, text = _neuralcb.diagnose(_paths(log), _log_options(log_options), list(segments), tell)
    about = json.loads(raw)
    return Diagnosis(about["rows"], about["unwise"], about["warnings"], about, text)


@dataclass(frozen=True)
class Tuned:
    """What a tuning found: a policy with its certificate, and what was tried."""

    policy: Policy | None
    """None where nothing is shown to be better and ``if_not_better`` is "refuse"."""
    candidates: list[dict[str, Any]] = field(repr=False)
    """All candidates, the best score first."""
    certificate: dict[str, Any] = field(repr=False)
    """What is certain of ``policy``: ``confidence``, ``value``, ``over_log``, ``over_clone``, ``assumptions``."""
    behaviour: float
    """What the log's own policy earned on the rounds of the certificate."""
    beats_the_log: bool
    held_out: int
    estimated_propensities: bool
    words: str
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The tuning as the command line writes it with ``--json``."""
        return self.raw

    def metrics(self) -> dict[str, float]:
        """The certificate, and the policy on the rounds of it, as flat numbers, for an experiment tracker.

        Examples
        --------
        ``mlflow.log_metrics(tuned.metrics())``, or ``wandb.log(tuned.metrics())``.
        """
        return of_tuning(self.raw)

    def report(self, path: str | PathLike[str]) -> Path:
        """Writes a card, one page for people, as ``neuralcb tune --report`` does; returns its path."""
        return write_card("tune", self.raw, path)

    def to_frame(self) -> Any:
        """The candidates as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self.candidates)

    def __str__(self) -> str:
        return self.words


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
    segments: Sequence[str] = (),
    progress: Progress = None,
    **options: Any,
) -> Tuned:
    """Chooses algorithm, mode, learning rate and β from the log alone, as ``neuralcb tune`` does, and certifies the policy
    on rounds that had no part in learning or choosing it.

    Parameters
    ----------
    log : path or paths, or contexts
        Files; or contexts, with ``actions``, ``rewards``, … as for fitting.
    hold_out : "time" or "random"
        Which rounds are held out; the last ones by default.
    choose, certify : float, default 0.15 and 0.25
        The shares of rounds to choose by and to certify on.
    confidence : float, default 0.95
        Of the certificate.
    if_not_better : "clone", "keep" or "refuse"
        What becomes the policy where nothing is shown to be better than the log's own.
    refit : bool, default False
        Learn from all rounds at the end; the certificate is then of the procedure.
    reward_range : (least, greatest); least_propensity : float; adaptive : bool
        What is known of the log; without it the certificate is less exact, or less tight.
    segments : names of columns
        Who gains and who loses is told by their values, in :meth:`Tuned.report` and :meth:`Tuned.to_dict`.
    algorithms : sequence of str; betas, lrs : sequence of float; modes : sequence of "S" and "B"
        What is tried.
    """
    task = _tuning(
        log, actions, rewards, propensities, eligible, n_actions, log_options, seed, preset, options, segments
    )
    with progress_bar(progress, "tuning") as tell:
        return _tuned(*_part(task, "all", tell))


Task = tuple[Any, str | None, str, list[str]]
"""Paths, or rounds in arrays; how to read files; the settings; columns whose values are segments."""


def _tuning(
    log: Any,
    actions: Any,
    rewards: Any,
    propensities: Any,
    eligible: Any,
    n_actions: int | None,
    log_options: dict[str, Any] | None,
    seed: int,
    preset: str,
    options: dict[str, Any],
    segments: Sequence[str] = (),
) -> Task:
    """A tuning as data: whoever has it can do any part of it."""
    given = {"base": {"seed": seed, "preset": preset}}
    settings = json.dumps({**given, **{name: list(v) if isinstance(v, tuple) else v for name, v in options.items()}})
    if actions is None and not is_feedback(log):
        return _paths(log), _log_options(log_options), settings, list(segments)
    if is_feedback(log):
        feedback = from_obp(log)
        log, actions, rewards = feedback["contexts"], feedback["actions"], feedback["rewards"]
        propensities, n_actions = feedback["propensities"], feedback["n_actions"]
    data = rounds(log, actions, rewards, propensities, eligible, n_actions=n_actions)
    return data, None, settings, list(segments)


def _part(task: Task, part: Any, tell: Any = None) -> tuple[Any, Any]:
    """Does ``"all"`` of a tuning, tells its ``"groups"`` of candidates, tries a ``{"group": …}`` or ends it by ``{"finish": …}``."""
    log, log_options, settings, segments = task
    if log_options is None:
        native, text = _neuralcb.Training.tune(log, settings, json.dumps(part), segments, tell)
    else:
        native, text = _neuralcb.tune(log, log_options, settings, json.dumps(part), segments, tell)
    return native, json.loads(text)


def _tuned(native: Any, found: dict[str, Any]) -> Tuned:
    names = ("candidates", "certificate", "behaviour", "beats_the_log", "held_out", "estimated_propensities", "words")
    return Tuned(native and Policy(native), **{name: found[name] for name in names}, raw=found)
