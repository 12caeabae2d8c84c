"""Learners on a shared trunk, and ``Auto``, which chooses among them from the log alone."""

from __future__ import annotations

from typing import Any

from ._learners import Learner
from ._neuralcb import NeuralcbError


class _Trunk(Learner):
    """What networks with an output per action share."""

    def __init__(
        self,
        *,
        members: int | None = None,
        lr: float | None = None,
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = False,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        self.members = members
        self.lr = lr
        self.standardise = standardise
        self.intercept = intercept
        self.unit_norm = unit_norm
        self.missing = missing
        self.random_state = random_state


class Auto(Learner):
    """The learner that the log itself favours: what ``neuralcb train`` does where nothing else is said.

    A few different learners (choice, regression, clone, clone of the rewarded rounds, linear) learn from 70 % of the
    rounds and are judged on the other 30 %. Choice is taken unless another one beats it beyond chance. The winner
    learns from all rounds.

    Parameters
    ----------
    standardise, intercept : bool, default True
        Whether features are brought to mean 0 and deviation 1, and a constant is added.
    unit_norm : bool, default False
        Whether rows are brought to length 1.
    missing : "refuse" or "mean"
        What becomes of NaN in the contexts.
    random_state : int, default 1
        The seed. The same seed gives the same bits, with any number of threads.

    Attributes
    ----------
    algorithm_ : str
        The learner that was chosen.
    tried_ : list of dict
        The candidates with ``name``, ``beta``, ``value``, ``lower`` (a bound of the value), ``ahead`` (by how much it
        beats choice) and ``lead`` (by how much beyond chance: what decides), the best first.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 300, seed=1)
    >>> learner = neuralcb.Auto().fit(log.contexts, log.actions, log.rewards, log.propensities)
    >>> learner.predict(log.contexts[:4]).shape
    (4,)
    >>> len(learner.tried_) > 3
    True
    """

    _algorithm = "auto"

    def __init__(
        self,
        *,
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = False,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        self.standardise = standardise
        self.intercept = intercept
        self.unit_norm = unit_norm
        self.missing = missing
        self.random_state = random_state

    @property
    def algorithm_(self) -> str:
        """The learner that was chosen."""
        return self._fitted().algorithm

    @property
    def tried_(self) -> list[dict[str, Any]]:
        """The candidates, the best first."""
        tried: list[dict[str, Any]] = self._fitted().description["chosen"]["tried"]
        return tried


class Choice(_Trunk):
    """A likelihood of choices with an outside option: each reward says "this one" or "not this one" among the actions.

    Parameters
    ----------
    beta : float ≥ 0, default 0.03
        Pessimism towards what the log does. May be changed after fitting.
    members : int, optional
        Networks whose mean is taken; 3 by default.
    lr : float > 0, optional
        Adam's learning rate at the start; 0.003 by default.
    standardise, intercept, unit_norm, missing, random_state
        As for :class:`Auto`.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 200, seed=1)
    >>> learner = neuralcb.Choice(members=1).fit(log.contexts, log.actions, log.rewards, log.propensities)
    >>> mean, width = learner.bounds(log.contexts[:4])
    >>> mean.shape
    (4, 30)
    """

    _algorithm = "choice"

    def __init__(
        self,
        *,
        beta: float = 0.03,
        members: int | None = None,
        lr: float | None = None,
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = False,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        self.beta = beta
        self.members = members
        self.lr = lr
        self.standardise = standardise
        self.intercept = intercept
        self.unit_norm = unit_norm
        self.missing = missing
        self.random_state = random_state


class Regression(Choice):
    """The same network fitted to rewards by squared loss; the width is the spread of its members.

    Parameters are those of :class:`Choice`; β is 1 by default.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 200, seed=1)
    >>> neuralcb.Regression(members=2).fit(log.contexts, log.actions, log.rewards).n_actions_
    30
    """

    _algorithm = "regression"

    def __init__(
        self,
        *,
        beta: float = 1.0,
        members: int | None = None,
        lr: float | None = None,
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = False,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        super().__init__(
            beta=beta,
            members=members,
            lr=lr,
            standardise=standardise,
            intercept=intercept,
            unit_norm=unit_norm,
            missing=missing,
            random_state=random_state,
        )


class VIPeR(Regression):
    """The least of ten networks fitted to rewards with noise (Nguyen-Tang & Arora, ICLR 2023).

    Parameters are those of :class:`Regression`; at β = 1 the bound is the least over the members.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 200, seed=1)
    >>> neuralcb.VIPeR(members=2).fit(log.contexts, log.actions, log.rewards).n_actions_
    30
    """

    _algorithm = "viper"


class Clone(_Trunk):
    """A classifier of the logged actions, all alike or weighted by what they earned.

    Parameters
    ----------
    weights : optional, "rewarded", "reward", "advantage" or "inverse-propensity"
        All rounds alike; those with a reward above the mean; by the reward; by exp of the advantage; by reward over
        propensity (Open Bandit Pipeline's IPWLearner).
    members, lr, standardise, intercept, unit_norm, missing, random_state
        As for :class:`Choice`.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 200, seed=1)
    >>> neuralcb.Clone(weights="rewarded", members=1).fit(log.contexts, log.actions, log.rewards).n_actions_
    30
    """

    _algorithm = "clone"
    _KINDS = {
        None: "clone",
        "rewarded": "clone-rewarded",
        "reward": "reward-weighted",
        "advantage": "advantage-weighted",
        "inverse-propensity": "inverse-propensity",
    }

    def __init__(
        self,
        *,
        weights: str | None = None,
        members: int | None = None,
        lr: float | None = None,
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = False,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        super().__init__(
            members=members,
            lr=lr,
            standardise=standardise,
            intercept=intercept,
            unit_norm=unit_norm,
            missing=missing,
            random_state=random_state,
        )
        self.weights = weights

    def _settings(self) -> dict[str, Any]:
        settings = super()._settings()
        settings.pop("weights", None)
        if self.weights not in self._KINDS:
            known = ", ".join(repr(kind) for kind in self._KINDS)
            raise NeuralcbError(f"`weights` must be one of {known}, got {self.weights!r}")
        return {**settings, "algorithm": self._KINDS[self.weights]}
