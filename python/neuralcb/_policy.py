"""Policies: what decides."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _neuralcb
from ._input import labels_of, rounds
from ._neuralcb import NeuralcbError


class Policy:
    """A policy that decides: what :func:`neuralcb.load`, :func:`neuralcb.train` and :func:`neuralcb.tune` return.

    It plays argmax mean − β·width over the eligible actions. β may be changed at any time; nothing is learned anew.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 200, seed=1)
    >>> policy = neuralcb.LinLCB().fit(log.contexts, log.actions, log.rewards).policy_
    >>> policy.beta = 0.5
    >>> policy.predict(log.contexts[:3]).shape
    (3,)
    """

    def __init__(self, native: _neuralcb.Policy, labels: NDArray[Any] | None = None) -> None:
        self._native = native
        self._labels = labels_of(native.actions()) if labels is None else labels
        self._about: dict[str, Any] = json.loads(native.description())

    @property
    def beta(self) -> float | None:
        """Pessimism β ≥ 0; None for a policy without a reward model."""
        return self._native.beta

    @beta.setter
    def beta(self, beta: float) -> None:
        self._native = self._native.with_beta(float(beta))

    @property
    def actions(self) -> NDArray[Any]:
        """The actions, in the order of the columns of :meth:`bounds`."""
        return self._labels

    @property
    def features(self) -> list[str]:
        """What stands at each place of a prepared context."""
        return self._native.places()

    @property
    def description(self) -> dict[str, Any]:
        """Everything that the policy file says: settings, preparation, origin, what the log held."""
        return {**self._about, "method": json.loads(self._native.description())["method"]}

    @property
    def algorithm(self) -> str:
        """The name on the command line."""
        method = self._about["method"]
        name: str = method.get("algorithm", method["kind"])
        return f"{name}-rewarded" if method.get("rewarded") else name

    def _known(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        schema = self._about["preparation"]["schema"]
        shared, own = ([(f["name"], f["kind"]) for f in schema[part]] for part in ("shared", "per_action"))
        return shared, own

    def _rounds(self, contexts: Any, eligible: Any, **outcome: Any) -> dict[str, Any]:
        missing = self._about["preparation"]["schema"]["missing"]
        return rounds(
            contexts, eligible=eligible, labels=self._labels, known=self._known(), missing=missing, **outcome
        )

    def predict(self, contexts: Any, eligible: Any = None) -> NDArray[Any]:
        """The chosen action of each round.

        Parameters
        ----------
        contexts : array n × d or n × K × d, table, or list of k × d arrays
            As for fitting.
        eligible : array of bool n × K, or list of lists of actions, optional
            What each round offers; all actions if not given.

        Returns
        -------
        array of n actions
        """
        actions = self._native.decide(self._rounds(contexts, eligible), False)[0]
        if len(actions) and actions.min() < 0:
            raise NeuralcbError(f"a policy of kind `{self.algorithm}` makes no choice of its own: ask for `action_dist`")
        return self._labels[actions]

    def bounds(self, contexts: Any, eligible: Any = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and width of every action, n × K each, in units of the reward; NaN where an action is not eligible.

        Parameters
        ----------
        contexts, eligible
            As for :meth:`predict`.
        """
        if self.beta is None:
            raise NeuralcbError(f"a policy of kind `{self.algorithm}` has no reward model, so no bounds")
        _, mean, width = self._native.decide(self._rounds(contexts, eligible))
        return mean, width

    def lower_bound(self, contexts: Any, eligible: Any = None) -> NDArray[np.float64]:
        """mean − β·width of every action, n × K: what the policy maximises.

        Parameters
        ----------
        contexts, eligible
            As for :meth:`predict`.
        """
        mean, width = self.bounds(contexts, eligible)
        return np.asarray(mean - (self.beta or 0.0) * width)

    def action_dist(self, contexts: Any, eligible: Any = None) -> NDArray[np.float64]:
        """The probability of every action, n × K. Open Bandit Pipeline takes it with one more axis, ``[:, :, None]``.

        Parameters
        ----------
        contexts, eligible
            As for :meth:`predict`.
        """
        given = self._rounds(contexts, eligible)
        actions = self._native.decide(given, False)[0]
        n = len(actions)
        dist = np.zeros((n, len(self._labels)))
        if n and actions.min() < 0:
            offered, offsets = given["offered"], given["offsets"]
            if offered is None:
                dist[:] = 1.0 / len(self._labels)
            else:
                sizes = np.diff(offsets.astype(np.int64))
                dist[np.repeat(np.arange(n), sizes), offered] = np.repeat(1.0 / sizes, sizes)
        else:
            dist[np.arange(n), actions] = 1.0
        return dist

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the policy file, which the command line and :func:`neuralcb.load` read."""
        self._native.save(path)

    def __getstate__(self) -> dict[str, Any]:
        return {"bytes": self._native.to_bytes(), "labels": self._labels}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(_neuralcb.Policy.from_bytes(state["bytes"]), state["labels"])  # type: ignore[misc]

    def __repr__(self) -> str:
        beta = "" if self.beta is None else f", beta={self.beta:g}"
        rounds = self._about["training"]["rounds"]
        return f"<neuralcb.Policy {self.algorithm}{beta}, {len(self._labels)} actions, from {rounds} rounds>"


def load(path: str | PathLike[str]) -> Policy:
    """Reads a policy file, whoever wrote it: this package or the command line.

    Examples
    --------
    >>> import neuralcb, tempfile, os
    >>> log = neuralcb.simulate("cosine", 200, seed=1)
    >>> path = os.path.join(tempfile.mkdtemp(), "policy.safetensors")
    >>> learner = neuralcb.LinLCB().fit(log.contexts, log.actions, log.rewards)
    >>> learner.save(path)
    >>> bool((neuralcb.load(path).predict(log.contexts) == learner.predict(log.contexts)).all())
    True
    """
    return Policy(_neuralcb.Policy.load(path))
