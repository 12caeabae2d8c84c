"""Learning and deciding."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import neuralcb


def test_a_learner_finds_the_better_action(learner, log, fresh):
    chosen = learner.fit(*log.args).predict(fresh.contexts)
    best = np.where(fresh.contexts[:, 0] > 0, 1, 0)
    clear = np.abs(fresh.contexts[:, 0]) > 0.5
    assert (chosen == best)[clear].mean() > 0.9


def test_fit_returns_itself_and_tells_what_the_log_held(learner, log):
    assert learner.fit(*log.args) is learner
    assert learner.actions_.tolist() == [0, 1, 2]
    assert (learner.n_actions_, learner.n_rounds_, learner.n_features_in_) == (3, 600, 4)
    assert learner.mean_reward_ == pytest.approx(log.rewards.mean())
    assert learner.feature_names_ == ["x0", "x1", "x2", "x3"]


def test_the_decision_is_the_largest_lower_bound(learner, log, fresh):
    learner.fit(*log.args)
    mean, width = learner.bounds(fresh.contexts)
    beta = getattr(learner, "beta", 0.0)
    lower = learner.lower_bound(fresh.contexts)
    np.testing.assert_array_equal(lower, mean - beta * width)
    assert (width > 0).all()
    # bounds are in units of the reward, decisions are made before: equal up to rounding
    chosen = learner.predict(fresh.contexts)
    best = lower.max(axis=1)
    np.testing.assert_allclose(lower[np.arange(len(chosen)), chosen], best, atol=1e-9)
    dist = learner.action_dist(fresh.contexts)
    np.testing.assert_array_equal(dist.argmax(axis=1), chosen)
    np.testing.assert_array_equal(dist.sum(axis=1), 1.0)


def test_beta_changes_decisions_without_learning(log, fresh):
    learner = neuralcb.LinLCB(beta=0.0).fit(log.contexts[:40], log.actions[:40], log.rewards[:40])
    greedy = learner.predict(fresh.contexts)
    mean, width = learner.bounds(fresh.contexts)
    np.testing.assert_array_equal(greedy, mean.argmax(axis=1))
    learner.beta = 50.0
    careful = learner.predict(fresh.contexts)
    assert (careful != greedy).any()
    np.testing.assert_array_equal(learner.bounds(fresh.contexts)[0], mean)
    again = neuralcb.LinLCB(beta=50.0).fit(log.contexts[:40], log.actions[:40], log.rewards[:40])
    np.testing.assert_array_equal(again.predict(fresh.contexts), careful)


def test_lin_lcb_is_ridge_regression(log, fresh):
    lam = 0.7
    raw = dict(standardise=False, intercept=False, unit_norm=False, standardise_rewards=False)
    learner = neuralcb.LinLCB(lam=lam, **raw).fit(*log.args)
    mean, width = learner.bounds(fresh.contexts)
    u = fresh.contexts.astype(np.float32).astype(float)
    for action in range(3):
        x = log.contexts[log.actions == action].astype(np.float32).astype(float)
        inverse = np.linalg.inv(lam * np.eye(4) + x.T @ x)
        theta = inverse @ x.T @ log.rewards[log.actions == action]
        np.testing.assert_allclose(mean[:, action], u @ theta, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(width[:, action], np.sqrt(np.einsum("ni,ij,nj->n", u, inverse, u)), rtol=1e-6)


def test_the_same_seed_gives_the_same_bits_and_another_one_others(log, fresh):
    fit = lambda seed: neuralcb.NeuraLCB(width=8, random_state=seed).fit(*log.args).bounds(fresh.contexts)[0]
    np.testing.assert_array_equal(fit(5), fit(5))
    assert (fit(5) != fit(6)).any()


def test_many_calls_of_partial_fit_learn_what_one_fit_does_given_the_scale(learner, log, fresh):
    # the first rounds decide the scale: without scaling there is no difference at all
    scales = [name for name in ("standardise", "standardise_rewards") if name in learner.get_params()]
    learner.set_params(**dict.fromkeys(scales, False))
    whole = learner.clone().fit(*log.args)
    for rounds in (slice(0, 200), slice(200, 210), slice(210, 600)):
        learner.partial_fit(log.contexts[rounds], log.actions[rounds], log.rewards[rounds])
    np.testing.assert_array_equal(learner.bounds(fresh.contexts)[0], whole.bounds(fresh.contexts)[0])
    np.testing.assert_array_equal(learner.bounds(fresh.contexts)[1], whole.bounds(fresh.contexts)[1])
    assert learner.n_rounds_ == 600
    assert learner.mean_reward_ == pytest.approx(whole.mean_reward_, abs=1e-12)


def test_partial_fit_refuses_an_action_that_was_not_there(log):
    learner = neuralcb.LinLCB().partial_fit(*log.args)
    with pytest.raises(neuralcb.NeuralcbError, match="round 0, action: must be one of 0, 1, 2, got 7"):
        learner.partial_fit(log.contexts[:1], [7], [1.0])


def test_a_copy_by_pickle_decides_and_learns_on_alike(learner, log, fresh):
    learner.fit(*log.args)
    copy = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(copy.bounds(fresh.contexts)[0], learner.bounds(fresh.contexts)[0])
    for one in (learner, copy):
        one.partial_fit(fresh.contexts, fresh.actions, fresh.rewards)
    np.testing.assert_array_equal(copy.bounds(log.contexts)[0], learner.bounds(log.contexts)[0])


def test_parameters_are_got_set_and_cloned():
    learner = neuralcb.NeuraLCB(beta=0.3, mode="B")
    assert learner.get_params()["mode"] == "B"
    assert learner.set_params(lr=0.01) is learner
    assert learner.clone().get_params() == learner.get_params()
    assert repr(learner) == "NeuraLCB(beta=0.3, lr=0.01, mode='B')"
    with pytest.raises(neuralcb.NeuralcbError, match="unknown parameter `bta` of NeuraLCB: use one of beta, "):
        learner.set_params(bta=1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(beta=-1.0), "`beta` must be a number from 0 to 1e30, got -1"),
        (dict(lam=0.0), "`lambda` must be"),
        (dict(preset="practicle"), "unknown variant `practicle`"),
        (dict(missing="drop"), "`missing` must be `refuse` or `mean`, got `drop`"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(log, params, message):
    with pytest.raises(neuralcb.NeuralcbError, match=message):
        neuralcb.LinLCB(**params).fit(*log.args)


def test_b_mode_and_the_networks_settings_reach_the_model(log):
    learner = neuralcb.NeuraLCB(mode="B", width=8, depth=2, net={"layer_norm": False})
    about = learner.fit(log.contexts[:60], log.actions[:60], log.rewards[:60]).policy_.description
    config = about["method"]["config"]
    assert config["net"]["width"] == 8 and config["net"]["layer_norm"] is False
    assert "batch" in str(config["mode"]).lower()


def test_an_unfitted_learner_says_so(log):
    with pytest.raises(ValueError, match="not fitted yet"):
        neuralcb.LinLCB().predict(log.contexts)
