"""Any scikit-learn classifier or regressor as the reward model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._neuralcb import NeuralcbError

if TYPE_CHECKING:
    from typing_extensions import Self

_LEAST = 5


class SklearnReward:
    """A reward model made of a scikit-learn estimator for each action, cross-fitted.

    The rounds are divided into folds, and a model is fitted without each of them. The mean is the average of these
    models, the width their spread. What an action without enough rounds earns is taken for the least reward of the log.

    Parameters
    ----------
    estimator : classifier or regressor of scikit-learn
        It is cloned, never fitted itself. A classifier's mean is the sum of rewards times their probabilities.
    beta : float ≥ 0, default 0
        Pessimism: the policy plays argmax mean − β·width. May be changed after fitting.
    folds : int ≥ 2, default 5
        Models for each action.
    random_state : int, default 1
        The seed of the folds.

    Attributes
    ----------
    actions_ : array of K
        The actions, in the order of the columns.
    cross_fitted_ : array n × K
        The mean of every action in every round of the log, by models that have not seen the round: what a doubly robust
        estimate needs.

    Examples
    --------
    >>> import neuralcb
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> log = neuralcb.simulate("cosine", 400, seed=1)
    >>> forest = RandomForestRegressor(n_estimators=20, min_samples_leaf=5, random_state=0)
    >>> learner = neuralcb.SklearnReward(forest, folds=2)
    >>> learner.fit(log.contexts[:, 0], log.actions % 3, log.rewards).predict(log.contexts[:4, 0]).shape
    (4,)
    """

    def __init__(self, estimator: Any, *, beta: float = 0.0, folds: int = 5, random_state: int = 1) -> None:
        self.estimator = estimator
        self.beta = beta
        self.folds = folds
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in ("beta", "estimator", "folds", "random_state")}

    def set_params(self, **params: Any) -> Self:
        """Changes parameters. β takes effect at once, all else at the next fit."""
        for name, value in params.items():
            if name not in self.get_params():
                raise NeuralcbError(f"unknown parameter `{name}`: use one of {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def fit(
        self,
        contexts: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        propensities: ArrayLike | None = None,
    ) -> Self:
        """Learns from a log: contexts n × d, n actions (numbers or names), n rewards. Propensities are not needed."""
        x, chosen, r = np.asarray(contexts), np.asarray(actions), np.asarray(rewards, dtype=np.float64)
        if x.ndim != 2:
            raise NeuralcbError(f"`contexts` must be n × d, one vector for each round, got {x.ndim} dimensions")
        if not len(x) == len(chosen) == len(r):
            raise NeuralcbError(f"contexts, actions and rewards differ in length: {len(x)}, {len(chosen)}, {len(r)}")
        if self.folds < 2 or len(x) < self.folds:
            raise NeuralcbError(f"`folds` must be from 2 to the number of rounds, {len(x)}, got {self.folds}")
        if not np.isfinite(r).all():
            raise NeuralcbError(f"`rewards` must be finite, got {r[~np.isfinite(r)][0]}")
        self.actions_, place = np.unique(chosen, return_inverse=True)
        self.worst_ = float(r.min())
        fold = np.random.default_rng(self.random_state).permutation(len(x)) % self.folds
        self.models_ = [
            [self._model(x, r, (place == a) & (fold != f)) for a in range(len(self.actions_))]
            for f in range(self.folds)
        ]
        self.cross_fitted_ = np.empty((len(x), len(self.actions_)))
        for f, models in enumerate(self.models_):
            self.cross_fitted_[fold == f] = self._means(models, x[fold == f])
        return self

    def _model(self, x: NDArray[Any], r: NDArray[np.float64], rounds: NDArray[np.bool_]) -> Any:
        """A fitted estimator; a number where a model would have too little to learn from, or only one reward."""
        own = r[rounds]
        if len(own) < _LEAST:
            return self.worst_
        if (own == own[0]).all():
            return float(own[0])
        from sklearn.base import clone  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return clone(self.estimator).fit(x[rounds], own)

    def _means(self, models: list[Any], x: NDArray[Any]) -> NDArray[np.float64]:
        def mean(model: Any) -> Any:
            if isinstance(model, float):
                return np.full(len(x), model)
            if hasattr(model, "predict_proba"):
                return model.predict_proba(x) @ model.classes_
            return model.predict(x)

        return np.column_stack([mean(model) for model in models])

    def bounds(self, contexts: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and width of every action, n × K each."""
        if not hasattr(self, "models_"):
            raise NeuralcbError("this SklearnReward is not fitted yet: call `fit` before using it")
        x = np.asarray(contexts)
        means = np.stack([self._means(models, x) for models in self.models_])
        return means.mean(axis=0), means.std(axis=0)

    def lower_bound(self, contexts: ArrayLike) -> NDArray[np.float64]:
        """mean − β·width of every action, n × K."""
        mean, width = self.bounds(contexts)
        return np.asarray(mean - self.beta * width)

    def predict(self, contexts: ArrayLike) -> NDArray[Any]:
        """The chosen action of each round."""
        best = self.lower_bound(contexts).argmax(axis=1)
        return np.asarray(self.actions_[best])

    def action_dist(self, contexts: ArrayLike) -> NDArray[np.float64]:
        """The probability of every action, n × K."""
        best = self.lower_bound(contexts).argmax(axis=1)
        return np.asarray(np.eye(len(self.actions_))[best])
