"""Off-policy evaluation: what a policy would have earned, from a log that another policy made."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _neuralcb
from ._card import of_evaluation, write_card
from ._input import _labels, numbers, vector
from ._neuralcb import NeuralcbError
from ._progress import Progress, progress_bar

if TYPE_CHECKING:
    from ._learners import Learner
    from ._policy import Policy

__all__ = ["ESTIMATORS", "INTERVALS", "Estimate", "Evaluation", "Report", "evaluate", "evaluate_policy"]

ESTIMATORS = (
    "dm",
    "ips",
    "ips-clip",
    "snips",
    "dr",
    "dr-clip",
    "sndr",
    "switch-dr",
    "dros",
    "sg-ips",
    "sg-dr",
    "cressie-read",
)
"""The names of all estimators."""

INTERVALS = (
    "normal",
    "student-t",
    "bootstrap",
    "hoeffding",
    "bernstein",
    "clopper-pearson",
    "cressie-read",
    "sequence",
)
"""The names of all intervals."""

_BEYOND = 1e300
"""As good as infinite, and a number in JSON: weights are at most 1e100."""


@dataclass(frozen=True)
class Estimate:
    """What one estimator says."""

    estimator: str
    value: float
    """NaN where it does not exist."""
    intervals: dict[str, tuple[float, float]]
    """Two-sided intervals by name."""
    lower_bounds: dict[str, float]
    """Lower bounds by name, at the same confidence."""
    difference: tuple[float, float, float] | None = None
    """How much better than the policy that made the log, with the ends of its interval."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The normal interval, or the only one that the estimator has."""
        return self.intervals.get("normal", self.intervals.get("cressie-read"))


@dataclass(frozen=True)
class Report:
    """The outcome of an evaluation: prints as a table, converts to a data frame, plots.

    Examples
    --------
    >>> import numpy as np, neuralcb
    >>> rewards = np.array([1.0, 0.0, 1.0, 1.0] * 50)
    >>> report = neuralcb.ope.evaluate(rewards, propensities=np.full(200, 0.5), target=np.tile([1.0, 0.0], 100))
    >>> report["ips"].value
    1.0
    >>> report.verdict
    'better'
    """

    n: int
    ess: float
    mean_weight: float
    max_weight: float
    behaviour: Estimate
    estimates: tuple[Estimate, ...]
    verdict: str
    words: str
    warnings: tuple[tuple[str, str], ...]
    confidence: float = 0.95
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, estimator: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.estimator == estimator:
                return estimate
        raise KeyError(estimator)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def to_dict(self) -> dict[str, Any]:
        """The report as the command line writes it with ``--json``."""
        return self.raw

    def metrics(self) -> dict[str, float]:
        """Values, intervals and weights as flat numbers, for an experiment tracker."""
        return of_evaluation(self.raw)

    def report(self, path: str | PathLike[str]) -> Path:
        """Writes a card, one page for people, as ``neuralcb evaluate --report`` does; returns its path."""
        return write_card("evaluate", self.raw, path)

    def to_frame(self) -> Any:
        """A pandas data frame with one row for each estimator and interval."""
        import pandas

        rows = []
        for estimate in (self.behaviour, *self.estimates):
            for name in estimate.intervals or [""]:
                low, high = estimate.intervals.get(name, (math.nan, math.nan))
                rows.append(
                    {
                        "estimator": estimate.estimator,
                        "value": estimate.value,
                        "interval": name,
                        "low": low,
                        "high": high,
                        "lower_bound": estimate.lower_bounds.get(name, math.nan),
                        "difference": estimate.difference[0] if estimate.difference else math.nan,
                    }
                )
        return pandas.DataFrame(rows)

    def plot(self, interval: str = "normal", ax: Any = None) -> Any:
        """Values with their intervals, and the value of the policy that made the log; returns matplotlib's axes."""
        if interval not in INTERVALS:
            raise NeuralcbError(f"unknown interval `{interval}`: use one of {', '.join(INTERVALS)}")
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=(7, 0.6 + 0.35 * len(self.estimates)), layout="constrained")
        for y, estimate in enumerate(self.estimates):
            ends = estimate.intervals.get(interval)
            if ends is not None:
                ax.plot(ends, (y, y), color="#4477aa", linewidth=2, solid_capstyle="round")
            ax.plot(estimate.value, y, "o", color="#4477aa", markersize=5)
        ax.axvline(self.behaviour.value, color="#777777", linestyle="--", linewidth=1, label="policy of the log")
        ax.set_yticks(range(len(self.estimates)), [estimate.estimator for estimate in self.estimates])
        ax.invert_yaxis()
        ax.set_xlabel(f"value, {100 * self.confidence:g} % {interval} interval")
        ax.legend(loc="best", frameon=False)
        return ax

    def _rows(self) -> list[list[str]]:
        percent = f"{100 * self.confidence:g} %"
        rows = [["", "value", f"{percent} interval", "by", f"{percent} above", "against behaviour"]]
        for estimate in (self.behaviour, *self.estimates):
            by = "normal" if "normal" in estimate.intervals else "cressie-read"
            ends, low = estimate.intervals.get(by), estimate.lower_bounds.get(by)
            difference = estimate.difference
            rows.append(
                [
                    estimate.estimator,
                    "-" if math.isnan(estimate.value) else f"{estimate.value:.6f}",
                    "-" if ends is None else f"[{ends[0]:.6f}, {ends[1]:.6f}]",
                    by,
                    "-" if low is None else f"{low:.6f}",
                    "" if difference is None else "{:+.6f} [{:+.6f}, {:+.6f}]".format(*difference),
                ]
            )
        return rows

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        ess, mean = (
            "-" if math.isnan(v) else text.format(v) for v, text in ((self.ess, "{:.1f}"), (self.mean_weight, "{:.4f}"))
        )
        lines = [
            f"{self.n} rounds, effective sample size {ess}, mean weight {mean}, largest weight {self.max_weight:.4f}",
            "",
            *("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows),
            "",
            self.words,
            *(f"warning ({code}): {message}" for code, message in self.warnings),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        head, *body = self._rows()

        def row(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        notes = "".join(f"<p>{escape(text)}</p>" for text in (self.words, *(m for _, m in self.warnings)))
        return f"<table>{row(head, 'th')}{''.join(row(cells, 'td') for cells in body)}</table>{notes}"


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _estimate(raw: dict[str, Any], name: str) -> Estimate:
    difference = raw.get("difference")
    return Estimate(
        estimator=name,
        value=_number(raw["value"]),
        intervals={key: (low, high) for key, (low, high) in raw["intervals"].items()},
        lower_bounds=dict(raw["lower_bounds"]),
        difference=None if difference is None else (difference["value"], *difference["interval"]),
    )


def _report(text: str, confidence: float) -> Report:
    raw = json.loads(text)
    return Report(
        n=raw["n"],
        ess=_number(raw["ess"]),
        mean_weight=_number(raw["mean_weight"]),
        max_weight=raw["max_weight"],
        behaviour=_estimate(raw["behaviour"], "behaviour policy"),
        estimates=tuple(_estimate(estimate, estimate["estimator"]) for estimate in raw["estimates"]),
        verdict=raw["verdict"]["answer"],
        words=raw["verdict"]["words"],
        warnings=tuple((warning["code"], warning["message"]) for warning in raw["warnings"]),
        confidence=confidence,
        raw=raw,
    )


def _config(
    estimators: Sequence[str] | None = None,
    intervals: Sequence[str] | None = None,
    confidence: float = 0.95,
    clip: float = 10.0,
    switch: float = 10.0,
    dros: float = 100.0,
    sg: float = 0.1,
    x_max: float | None = None,
    reward_range: tuple[float, float] | None = None,
    replicates: int = 200,
    seed: int = 0,
    estimated_propensities: bool = False,
) -> dict[str, Any]:
    """The settings of every evaluation, as the command line has them."""
    for name, value in (("confidence", confidence), ("clip", clip), ("switch", switch), ("dros", dros), ("sg", sg)):
        if math.isnan(value):
            raise NeuralcbError(f"`{name}` must be a number, got nan")
    finite = {"clip": clip, "switch": switch, "dros": dros}
    config: dict[str, Any] = {name: min(float(value), _BEYOND) for name, value in finite.items()}
    config |= {"confidence": float(confidence), "sg": float(sg), "replicates": int(replicates), "seed": int(seed)}
    config |= {"estimated_propensities": bool(estimated_propensities)}
    for name, given, known in (("estimators", estimators, ESTIMATORS), ("intervals", intervals, INTERVALS)):
        if given is not None:
            strangers = [value for value in given if value not in known]
            if strangers:
                raise NeuralcbError(f"unknown {name[:-1]} `{strangers[0]}`: use one of {', '.join(known)}")
            config[name] = list(given)
    if x_max is not None:
        config["x_max"] = float(x_max)
    if reward_range is not None:
        config["reward_range"] = [float(reward_range[0]), float(reward_range[1])]
    return config


def _values(
    values: ArrayLike | None, what: str, n: int, position: NDArray[np.int64] | None
) -> NDArray[np.float64] | None:
    """One number for each round, or one for each action of each round; a view where they are float64 already."""
    if values is None:
        return None
    array = numbers(values, what)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    elif array.ndim == 3:
        array = _at_position(array, what, position)
    if array.ndim not in (1, 2):
        shape = " × ".join(str(size) for size in array.shape)
        raise NeuralcbError(f"`{what}` must have one number for each round ({n}) or for each action of it, got {shape}")
    return np.require(array, requirements="A")


def _at_position(
    array: NDArray[np.float64], what: str, position: NDArray[np.int64] | None
) -> NDArray[np.float64]:
    """What an n × K × L array says of each round's position."""
    n, _, most = array.shape
    if position is None:
        raise NeuralcbError(f"`{what}` tells of {most} positions: give `position`, that of each round")
    if len(position) != n:
        raise NeuralcbError(f"position: expected {n}, got {len(position)}")
    bad = (position < 0) | (position >= most)
    if bad.any():
        t = int(np.argmax(bad))
        raise NeuralcbError(f"round {t}, position: must be from 0 to {most - 1}, got {position[t]}")
    return np.take_along_axis(array, position[:, None, None], axis=2)[:, :, 0]


def _samples(
    rewards: ArrayLike,
    propensities: ArrayLike | None,
    target: ArrayLike | None,
    weights: ArrayLike | None,
    q: ArrayLike | None,
    v: ArrayLike | None,
    actions: ArrayLike | None,
    position: ArrayLike | None,
) -> dict[str, NDArray[Any] | None]:
    """What the native half takes: views on the arrays that were given."""
    if weights is not None and (propensities is not None or target is not None):
        raise NeuralcbError("give `weights`, or `propensities` and `target`, not both")
    reward = vector(rewards, "rewards")
    assert reward is not None
    places = None if position is None else _numbered(position, "position")
    return {
        "rewards": reward,
        "weights": vector(weights, "weights"),
        "propensities": vector(propensities, "propensities"),
        "actions": None if actions is None else _numbered(actions, "actions"),
        "target": _values(target, "target", len(reward), places),
        "q": _values(q, "q", len(reward), places),
        "v": vector(v, "v"),
    }


def _numbered(places: ArrayLike, what: str) -> NDArray[np.int64]:
    """Places among the columns (or positions) of ``target`` and ``q``."""
    labels = _labels(places, what)
    if labels.dtype.kind not in "iu":
        raise NeuralcbError(f"`{what}` must be numbers, places in `target` and `q`: got names")
    return np.require(labels, dtype=np.int64, requirements="A")


def evaluate(
    rewards: ArrayLike,
    propensities: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    actions: ArrayLike | None = None,
    position: ArrayLike | None = None,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    progress: Progress = None,
    **settings: Any,
) -> Report:
    """Evaluates a policy that lives anywhere, by every estimator and interval of the command line.

    Parameters
    ----------
    rewards : array of n numbers
        The logged rewards.
    propensities : array of n numbers in (0, 1]
        With which probability the log's policy did what it did.
    target : array of n, n × K or n × K × L
        The evaluated policy's probability of the logged action, or of every action (then ``actions`` is needed).
    weights : array of n numbers ≥ 0
        target / propensities, in their place.
    actions : array of n integers
        The logged actions, where ``target`` or ``q`` tell of every action.
    position : array of n integers
        Each round's position, where ``target`` or ``q`` tell of several (n × K × L, as Open Bandit Pipeline has them).
    q : array of n, n × K or n × K × L
        A reward model's value of the logged action, or of every action; ``dm`` and ``dr`` need it.
    v : array of n
        The model's expected value under the evaluated policy; computed where ``target`` and ``q`` tell of every action.
    estimators, intervals : sequence of str
        Some of :data:`ESTIMATORS` and :data:`INTERVALS`; all by default.
    confidence : float, default 0.95
    clip, switch, dros, sg : float
        Settings of ``ips-clip`` and ``dr-clip``, ``switch-dr``, ``dros``, ``sg-ips`` and ``sg-dr``.
    x_max : float; reward_range : (float, float)
        Bounds that ``hoeffding`` and ``bernstein``, and ``clopper-pearson``, ``cressie-read`` and ``sequence`` need; by
        default those of the log, with a warning.
    replicates : int, default 200; seed : int, default 0
        Of the bootstrap.
    estimated_propensities : bool
        Whether the propensities are a guess, which a warning then repeats.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np, neuralcb
    >>> rng = np.random.default_rng(0)
    >>> action = rng.integers(2, size=4000)
    >>> reward = (rng.random(4000) < np.where(action == 1, 0.6, 0.3)).astype(float)
    >>> always_1 = np.tile([0.0, 1.0], (4000, 1))
    >>> report = neuralcb.ope.evaluate(reward, np.full(4000, 0.5), always_1, actions=action)
    >>> report.verdict, bool(abs(report["snips"].value - 0.6) < 0.05)
    ('better', True)
    """
    config = _config(**settings)
    samples = _samples(rewards, propensities, target, weights, q, v, actions, position)
    evaluation = _neuralcb.Evaluation(json.dumps(config))
    with progress_bar(progress, "evaluating") as tell:
        evaluation.extend(samples, tell)
    return _report(evaluation.report(), config["confidence"])


class Evaluation:
    """An evaluation under way: fed with parts of a log, which may be cut in any places and merged in any order, with the
    same report to the bit.

    Parameters
    ----------
    first_round : int, default 0
        The number of this part's first round.
    **settings
        As for :func:`evaluate`.

    Examples
    --------
    >>> import numpy as np
    >>> from neuralcb.ope import Evaluation
    >>> w, r = np.tile([0.0, 2.0], 500), np.tile([0.0, 1.0, 1.0, 1.0], 250)
    >>> whole, early, late = Evaluation(), Evaluation(), Evaluation(first_round=400)
    >>> whole.extend(r, weights=w); early.extend(r[:400], weights=w[:400]); late.extend(r[400:], weights=w[400:])
    >>> late.merge(early)
    >>> late.report() == whole.report()
    True

    An evaluation is some dozen kilobytes when it is pickled, however many rounds it holds:

    >>> import pickle
    >>> pickle.loads(pickle.dumps(late)).report() == whole.report()
    True
    """

    def __init__(self, first_round: int = 0, **settings: Any) -> None:
        self._config = _config(**settings)
        self._native = _neuralcb.Evaluation(json.dumps(self._config), first_round)

    def extend(
        self,
        rewards: ArrayLike,
        propensities: ArrayLike | None = None,
        target: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        actions: ArrayLike | None = None,
        position: ArrayLike | None = None,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
    ) -> None:
        """Takes the rounds that follow this part's own; arguments are those of :func:`evaluate`."""
        self._native.extend(_samples(rewards, propensities, target, weights, q, v, actions, position), None)

    def merge(self, other: Evaluation) -> None:
        """Takes the rounds of another part, with the same settings."""
        self._native.merge(other._native)

    def report(self) -> Report:
        """What the rounds so far say."""
        return _report(self._native.report(), self._config["confidence"])

    def __getstate__(self) -> dict[str, Any]:
        return {"config": self._config, "bytes": self._native.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._config = state["config"]
        self._native = _neuralcb.Evaluation.from_bytes(state["bytes"])


def evaluate_policy(
    policy: Policy | Learner,
    contexts: Any,
    actions: ArrayLike,
    rewards: ArrayLike,
    propensities: ArrayLike | None = None,
    eligible: Any = None,
    *,
    folds: int = 3,
    model: Policy | Learner | None = None,
    progress: Progress = None,
    **settings: Any,
) -> Report:
    """Evaluates a policy or a fitted learner on a log, as ``neuralcb evaluate`` does: with a reward model behind ``dm`` and
    ``dr`` that is cross-fitted on the log, and with propensities that are estimated where there are none, which is said.

    Parameters
    ----------
    policy : Policy or learner
    contexts, actions, rewards, propensities, eligible
        A log that the policy has not learned from, as for fitting.
    folds : int, default 3
        Folds of the reward model; 0 leaves out the estimators that need one.
    model : Policy or learner, optional
        Its means stand in the place of the cross-fitted model. It must have learned from other rounds, with the features
        that the policy knows.
    **settings
        As for :func:`evaluate`.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 1000, seed=1, preset="released-code")
    >>> learner = neuralcb.LinLCB().fit(log.contexts[:500], log.actions[:500], log.rewards[:500])
    >>> report = neuralcb.ope.evaluate_policy(
    ...     learner, log.contexts[500:], log.actions[500:], log.rewards[500:], log.propensities[500:])
    >>> report.n
    500
    """
    judged, learned = _policy(policy), None if model is None else _policy(model)._native
    given = judged._rounds(contexts, eligible, actions=actions, rewards=rewards, propensities=propensities)
    config = _config(**settings)
    with progress_bar(progress, "evaluating") as tell:
        text, unseen = _neuralcb.evaluate_policy(
            judged._native, learned, given, json.dumps({"ope": config, "folds": int(folds)}), tell
        )
    _warn(unseen)
    return _report(text, config["confidence"])


def _policy(policy: Policy | Learner) -> Policy:
    """What decides."""
    from ._learners import Learner

    return policy._fitted() if isinstance(policy, Learner) else policy


def _warn(message: str | None) -> None:
    if message:
        import warnings

        warnings.warn(message, stacklevel=3)
