"""Learners on a shared trunk, the choice among them, and scikit-learn's estimators as reward models."""

from __future__ import annotations

import numpy as np
import pytest

import neuralcb


def best_of(contexts):
    return np.where(contexts[:, 0] > 0, 1, 0)


def test_auto_chooses_a_learner_and_says_how(log, fresh):
    learner = neuralcb.Auto().fit(*log.args)
    clear = np.abs(fresh.contexts[:, 0]) > 0.5
    assert (learner.predict(fresh.contexts) == best_of(fresh.contexts))[clear].mean() > 0.9
    assert learner.algorithm_ == learner.tried_[0]["name"]
    leads = [tried["lead"] for tried in learner.tried_]
    assert leads == sorted(leads, reverse=True)
    again = neuralcb.Auto().fit(*log.args)
    np.testing.assert_array_equal(again.predict(fresh.contexts), learner.predict(fresh.contexts))


def test_a_clone_has_no_beta_and_weights_have_names(log):
    clone = neuralcb.Clone(weights="inverse-propensity", members=1).fit(*log.args)
    assert clone.policy_.algorithm == "inverse-propensity"
    assert clone.policy_.beta is None
    with pytest.raises(neuralcb.NeuralcbError, match="`weights` must be one of .*got 'gold'"):
        neuralcb.Clone(weights="gold").fit(*log.args)


def test_viper_is_the_least_of_its_members(log, fresh):
    mean, width = neuralcb.VIPeR(members=2).fit(*log.args).bounds(fresh.contexts)
    assert (width >= 0).all() and (width > 0).any()
    assert mean.shape == (len(fresh.contexts), 3)


def test_a_forest_may_be_the_reward_model(log, fresh):
    ensemble = pytest.importorskip("sklearn.ensemble")
    forest = ensemble.RandomForestRegressor(n_estimators=20, min_samples_leaf=5, random_state=0)
    learner = neuralcb.SklearnReward(forest, folds=3).fit(*log.args[:3])
    clear = np.abs(fresh.contexts[:, 0]) > 0.5
    assert (learner.predict(fresh.contexts) == best_of(fresh.contexts))[clear].mean() > 0.9
    mean, width = learner.bounds(fresh.contexts)
    assert mean.shape == width.shape == (len(fresh.contexts), 3)
    np.testing.assert_array_equal(learner.action_dist(fresh.contexts).sum(axis=1), 1.0)


def test_what_is_cross_fitted_has_not_seen_its_round():
    neighbors = pytest.importorskip("sklearn.neighbors")
    x = np.arange(40, dtype=float)[:, None]
    rewards = np.where(np.arange(40) == 17, 100.0, 0.5 + np.arange(40) % 2)
    nearest = neighbors.KNeighborsRegressor(n_neighbors=1)
    learner = neuralcb.SklearnReward(nearest, folds=4).fit(x, np.zeros(40, int), rewards)
    assert learner.cross_fitted_[17, 0] < 2.0  # its own reward is the only one of 100


def test_an_action_that_the_log_hardly_knows_earns_the_least():
    linear = pytest.importorskip("sklearn.linear_model")
    x = np.random.default_rng(1).normal(size=(60, 2))
    actions = np.array(["usual"] * 58 + ["rare"] * 2)
    rewards = np.concatenate([np.linspace(0.2, 1.0, 58), [9.0, 9.0]])
    learner = neuralcb.SklearnReward(linear.LinearRegression()).fit(x, actions, rewards)
    assert set(learner.predict(x)) == {"usual"}
    assert (learner.bounds(x)[0][:, list(learner.actions_).index("rare")] == 0.2).all()


def test_what_cannot_work_is_refused():
    learner = neuralcb.SklearnReward(object(), folds=1)
    with pytest.raises(neuralcb.NeuralcbError, match="`folds` must be from 2"):
        learner.fit(np.zeros((4, 1)), [0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0])
    with pytest.raises(neuralcb.NeuralcbError, match="not fitted yet"):
        learner.predict(np.zeros((1, 1)))
