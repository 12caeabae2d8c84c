"""scikit-learn's tools, and its own estimator checks where they apply.

Its checks call ``fit(X, y)``. :class:`AsClassifier` gives a log to such a call: action y was right. What does not apply is
listed with its reason.
"""

from __future__ import annotations

import numpy as np
import pytest

import neuralcb

sklearn = pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import BaseEstimator, clone  # noqa: E402
from sklearn.model_selection import ParameterGrid  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402


def test_sklearn_clones_a_learner(learner, log):
    learner.fit(*log.args)
    copy = clone(learner)
    assert copy.get_params() == learner.get_params()
    assert not hasattr(copy, "policy_")


def test_a_grid_of_parameters_is_walked(log):
    for params in ParameterGrid({"beta": [0.0, 1.0], "lam": [0.1, 1.0]}):
        assert neuralcb.LinLCB(**params).fit(*log.args).policy_.beta == params["beta"]


class AsClassifier(neuralcb.LinLCB, BaseEstimator):
    """Every round was right: the reward is always 1."""

    def fit(self, X, y=None):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        return super().fit(X, y, np.ones(len(np.asarray(y))))

    def partial_fit(self, X, y=None):
        return super().partial_fit(X, y, np.ones(len(np.asarray(y))))


NOT_APPLICABLE = {
    "check_dtype_object": "it asks for TypeError where a context is no number; all refusals here are one family of ValueError",
}


def checks():
    return [
        pytest.param(estimator, check, id=getattr(check, "func", check).__name__)
        for estimator, check in estimator_checks_generator(AsClassifier(), legacy=True)
    ]


@pytest.mark.parametrize(("estimator", "check"), checks())
def test_sklearns_own_checks(estimator, check):
    name = getattr(check, "func", check).__name__
    if name in NOT_APPLICABLE:
        pytest.skip(NOT_APPLICABLE[name])
    check(estimator)
