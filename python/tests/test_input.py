"""What logs may look like."""

from __future__ import annotations

import numpy as np
import pytest

import neuralcb


def bounds(contexts, log, **more):
    return neuralcb.LinLCB().fit(contexts, log.actions, log.rewards, **more).bounds(contexts)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8, np.uint16, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_any_type_and_order_are_the_same_numbers(log, dtype, order):
    whole = np.round(np.abs(log.contexts) * 10)
    given = np.array(whole, dtype=dtype, order=order)
    np.testing.assert_array_equal(bounds(given, log), bounds(whole, log))


def test_a_view_with_gaps_is_read_as_it_is(log):
    wide = np.repeat(log.contexts, 2, axis=1)
    np.testing.assert_array_equal(bounds(wide[:, ::2], log), bounds(log.contexts, log))
    np.testing.assert_array_equal(bounds(wide[:, ::-2], log), bounds(log.contexts[:, ::-1], log))


def test_lists_are_arrays(log):
    lists = log.contexts.tolist(), log.actions.tolist(), log.rewards.tolist()
    np.testing.assert_array_equal(
        neuralcb.LinLCB().fit(*lists).predict(lists[0]), neuralcb.LinLCB().fit(*log.args).predict(log.contexts)
    )


def test_actions_may_have_names(log):
    names = np.array(["blue", "red", "amber"])[log.actions]
    named = neuralcb.LinLCB().fit(log.contexts, names, log.rewards)
    numbered = neuralcb.LinLCB().fit(*log.args)
    assert named.actions_.tolist() == ["amber", "blue", "red"]
    as_number = {"blue": 0, "red": 1, "amber": 2}
    expected = numbered.predict(log.contexts)
    assert [as_number[name] for name in named.predict(log.contexts)] == expected.tolist()


def test_actions_that_were_never_chosen_exist_if_they_are_said_to(log):
    learner = neuralcb.LinLCB().fit(*log.args, n_actions=5)
    assert learner.actions_.tolist() == [0, 1, 2, 3, 4]
    mean, width = learner.bounds(log.contexts)
    assert (width[:, 3] >= width[:, 0]).all()
    with pytest.raises(neuralcb.NeuralcbError, match="must be one of 0, 1, got 2"):
        neuralcb.LinLCB().fit(*log.args, n_actions=2)


def test_only_eligible_actions_are_played(log, fresh):
    rng = np.random.default_rng(2)
    mask = rng.random((400, 3)) < 0.5
    mask[np.arange(400), fresh.actions] = True
    learner = neuralcb.LinLCB().fit(*log.args)
    chosen = learner.predict(fresh.contexts, eligible=mask)
    assert mask[np.arange(400), chosen].all()
    lists = [np.flatnonzero(row) for row in mask]
    np.testing.assert_array_equal(learner.predict(fresh.contexts, eligible=lists), chosen)
    lower = np.where(mask, learner.lower_bound(fresh.contexts), np.nan)
    np.testing.assert_array_equal(learner.lower_bound(fresh.contexts, eligible=mask), lower)
    fitted = neuralcb.LinLCB().fit(fresh.contexts, fresh.actions, fresh.rewards, eligible=mask)
    np.testing.assert_array_equal(fitted.predict(fresh.contexts, eligible=lists) >= 0, True)
    mask[3] = False
    mask[3, (fresh.actions[3] + 1) % 3] = True
    with pytest.raises(neuralcb.NeuralcbError, match=f"round 3, action: {fresh.actions[3]} is not among the 1 eligible"):
        neuralcb.LinLCB().fit(fresh.contexts, fresh.actions, fresh.rewards, eligible=mask)


def test_a_vector_for_each_action_as_an_array_and_as_a_list(own):
    array = neuralcb.LinLCB().fit(own.contexts, own.actions, own.rewards)
    ragged = neuralcb.LinLCB().fit(list(own.contexts), own.actions, own.rewards)
    np.testing.assert_array_equal(array.predict(own.contexts), ragged.predict(list(own.contexts)))
    sizes = 2 + np.arange(300) % 29
    some = [x[: max(size, a + 1)] for x, size, a in zip(own.contexts, sizes, own.actions)]
    learner = neuralcb.LinLCB().fit(some, own.actions, own.rewards)
    chosen = learner.predict(some)
    assert (chosen < [len(x) for x in some]).all()
    mask = np.arange(30) < np.array([len(x) for x in some])[:, None]
    masked = neuralcb.LinLCB().fit(own.contexts, own.actions, own.rewards, eligible=mask)
    np.testing.assert_array_equal(masked.predict(own.contexts, eligible=mask), chosen)


def test_features_of_rounds_and_of_actions_together(own):
    shared = np.random.default_rng(0).normal(size=(300, 2))
    learner = neuralcb.LinLCB().fit((shared, own.contexts), own.actions, own.rewards)
    assert learner.n_features_in_ == 22
    assert learner.predict((shared, own.contexts)).shape == (300,)


def table(log):
    words = np.array(["warm", "cold", "mild"])[np.arange(600) % 3]
    return {"age": log.contexts[:, 0], "vip": log.contexts[:, 1] > 0, "colour": words}


def test_pandas_polars_and_arrow_tables_are_one_log(log):
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    columns = table(log)
    found = [
        neuralcb.LinLCB().fit(make(columns), log.actions, log.rewards)
        for make in (pandas.DataFrame, polars.DataFrame, pyarrow.table)
    ]
    assert found[0].feature_names_ == ["age", "vip", "colour"]
    assert found[0].policy_.features == ["age", "vip", "colour=cold", "colour=mild", "colour=warm", "1"]
    first = found[0].bounds(pandas.DataFrame(columns))[0]
    for learner in found[1:]:
        np.testing.assert_array_equal(learner.bounds(pyarrow.table(columns))[0], first)
    # columns are known by their names, and a word that is new counts as absent
    turned = pandas.DataFrame(columns)[["colour", "vip", "age"]]
    np.testing.assert_array_equal(found[0].bounds(turned)[0], first)
    turned["colour"] = "unheard of"
    assert np.isfinite(found[0].bounds(turned)[0]).all()
    with pytest.raises(neuralcb.NeuralcbError, match="the policy needs column `vip`, and the table has age, colour"):
        found[0].predict(pandas.DataFrame(columns)[["age", "colour"]])


def test_categorical_columns_of_pandas_are_words(log):
    pandas = pytest.importorskip("pandas")
    plain, categorical = pandas.DataFrame(table(log)), pandas.DataFrame(table(log))
    categorical["colour"] = categorical["colour"].astype("category")
    np.testing.assert_array_equal(bounds(plain, log), bounds(categorical, log))


def test_open_bandit_pipelines_feedback_is_a_log(log):
    feedback = dict(
        n_rounds=600,
        n_actions=3,
        context=log.contexts,
        action=log.actions,
        position=np.zeros(600, dtype=int),
        reward=log.rewards,
        pscore=log.propensities,
        action_context=np.eye(3),
    )
    expected = neuralcb.LinLCB().fit(*log.args).predict(log.contexts)
    np.testing.assert_array_equal(neuralcb.LinLCB().fit(feedback).predict(log.contexts), expected)
    feedback["position"] = np.arange(600) % 3
    assert neuralcb.from_obp(feedback)["contexts"].shape == (600, 7)
    assert neuralcb.from_obp(feedback, n_positions=5)["contexts"].shape == (600, 9)
    with pytest.raises(neuralcb.NeuralcbError, match="`position` must be from 0 below 2, got 0 to 2"):
        neuralcb.from_obp(feedback, n_positions=2)
    del feedback["reward"]
    with pytest.raises(neuralcb.NeuralcbError, match="the feedback has no `reward`"):
        neuralcb.LinLCB().fit(feedback)


def broken(log, **changes):
    parts = dict(contexts=log.contexts, actions=log.actions, rewards=log.rewards, propensities=log.propensities)
    for name, change in changes.items():
        if isinstance(change, dict):
            parts[name] = np.array(parts[name], dtype=float)
            for place, value in change.items():
                parts[name][place] = value
        else:
            parts[name] = change
    return parts


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(contexts={(17, 2): np.nan}), "round 17, feature 2: must be a finite number, got NaN"),
        (dict(contexts={(17, 2): np.inf}), "round 17, feature 2: must be a finite number, got inf"),
        (dict(rewards={599: np.nan}), "round 599, reward: must be a finite number, got NaN"),
        (dict(propensities={5: 0.0}), r"round 5, propensity: must be in \(0, 1\], got 0"),
        (dict(propensities={5: 1.5}), r"round 5, propensity: must be in \(0, 1\], got 1.5"),
        (dict(actions={3: 0.5}), "round 3, action: must be an integer or a name, got 0.5"),
        (dict(actions=[0, 1]), "actions: expected 600, got 2"),
        (dict(rewards=[1.0]), "rewards: expected 600, got 1"),
        (dict(rewards=["good"] * 600), "`rewards` must be numbers"),
        (dict(contexts=np.zeros(600)), "`contexts` must be n × d .* or n × K × d"),
        (dict(contexts=np.zeros((0, 3)), actions=[], rewards=[], propensities=None), "0 sample"),
        (dict(contexts=np.zeros((600, 0))), "0 feature"),
        (dict(contexts=np.full((600, 2), "x")), "contexts must be numbers"),
    ],
)
def test_what_no_model_may_see_is_refused_with_its_place(log, changes, message):
    with pytest.raises(neuralcb.NeuralcbError, match=message):
        neuralcb.LinLCB().fit(**broken(log, **changes))


def test_the_place_is_right_beyond_the_first_block():
    n = 20_000
    contexts, rewards = np.ones((n, 1)), np.zeros(n)
    contexts[::2] = 2
    rewards[17_001] = np.inf
    with pytest.raises(neuralcb.NeuralcbError, match="round 17001, reward"):
        neuralcb.LinLCB().fit(contexts, np.arange(n) % 2, rewards)


def test_numbers_that_are_not_there_may_become_the_mean(log):
    holes = log.contexts.copy()
    holes[::7, 1] = np.nan
    learner = neuralcb.LinLCB(missing="mean").fit(holes, log.actions, log.rewards)
    filled = holes.copy()
    filled[::7, 1] = np.nanmean(holes[:, 1])
    np.testing.assert_allclose(learner.bounds(holes)[0], learner.bounds(filled)[0], rtol=1e-6)


def test_contexts_of_another_width_are_refused(log):
    learner = neuralcb.LinLCB().fit(*log.args)
    with pytest.raises(neuralcb.NeuralcbError, match="X has 3 features, but Policy is expecting 4"):
        learner.predict(log.contexts[:, :3])


def test_fitting_changes_no_array(log):
    parts = [array.copy() for array in log.args]
    for array in parts:
        array.flags.writeable = False
    neuralcb.LinLCB().fit(*parts)
    for before, after in zip(log.args, parts):
        np.testing.assert_array_equal(before, after)


def test_features_of_actions_in_a_feedback_are_used_if_asked_for(log):
    feedback = dict(
        n_rounds=600, n_actions=3, context=log.contexts, action=log.actions, position=None, reward=log.rewards,
        pscore=log.propensities, action_context=np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    )
    given = neuralcb.from_obp(feedback, action_context=True)
    learner = neuralcb.KernLCB().fit(**given)
    by_hand = np.concatenate(
        [np.repeat(log.contexts[:, None], 3, axis=1), np.repeat(feedback["action_context"][None], 600, axis=0)], axis=2
    )
    same = neuralcb.KernLCB().fit(by_hand, log.actions, log.rewards)
    np.testing.assert_array_equal(learner.predict(given["contexts"]), same.predict(by_hand))
    truth = np.where(log.contexts[:, 0] > 0, 1, 0)
    assert np.mean(learner.predict(given["contexts"]) == truth) > 0.8
    with pytest.raises(neuralcb.NeuralcbError, match="no `action_context`: leave out"):
        neuralcb.from_obp({**feedback, "action_context": None}, action_context=True)
    with pytest.raises(neuralcb.NeuralcbError, match="`action_context` must be numbers, 3 × d, got float64 of shape"):
        neuralcb.from_obp({**feedback, "action_context": np.zeros((2, 2))}, action_context=True)
