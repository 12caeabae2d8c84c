"""Off-policy evaluation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import neuralcb
from neuralcb import ope


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(4)
    n, k = 3000, 4
    mu = rng.dirichlet(np.ones(k), size=n) * 0.8 + 0.05
    pi = rng.dirichlet(np.ones(k), size=n)
    actions = np.array([rng.choice(k, p=p / p.sum()) for p in mu])
    rewards = (rng.random(n) < 0.2 + 0.15 * actions).astype(float)
    q = 0.2 + 0.15 * np.arange(k) + 0.05 * rng.normal(size=(n, k))
    return dict(mu=mu[np.arange(n), actions], pi=pi, actions=actions, rewards=rewards, q=q, rows=np.arange(n))


def test_estimators_are_their_formulas(samples):
    s = samples
    chosen = s["rows"], s["actions"]
    w, r, q, v = s["pi"][chosen] / s["mu"], s["rewards"], s["q"][chosen], (s["pi"] * s["q"]).sum(axis=1)
    report = ope.evaluate(r, s["mu"], s["pi"], actions=s["actions"], q=s["q"], clip=2.0, switch=1.5, dros=3.0, sg=0.2)
    cut, kept = np.minimum(w, 2.0), np.where(w <= 1.5, w, 0.0)
    expected = {
        "dm": v.mean(),
        "ips": (w * r).mean(),
        "ips-clip": (cut * r).mean(),
        "snips": (w * r).sum() / w.sum(),
        "dr": (v + w * (r - q)).mean(),
        "dr-clip": (v + cut * (r - q)).mean(),
        "sndr": v.mean() + (w * (r - q)).sum() / w.sum(),
        "switch-dr": (v + kept * (r - q)).mean(),
        "dros": (v + 3.0 * w / (w**2 + 3.0) * (r - q)).mean(),
        "sg-ips": (w / (1 - 0.2 + 0.2 * w) * r).mean(),
        "sg-dr": (v + w / (1 - 0.2 + 0.2 * w) * (r - q)).mean(),
    }
    assert {e.estimator for e in report} == set(ope.ESTIMATORS)
    for name, value in expected.items():
        assert report[name].value == pytest.approx(value, rel=1e-12), name
    assert report.ess == pytest.approx(w.sum() ** 2 / (w**2).sum())
    error = (w * r).std(ddof=1) / math.sqrt(len(r))
    low, high = report["ips"].intervals["normal"]
    assert (high - low) / 2 == pytest.approx(1.959963984540054 * error, rel=1e-9)
    assert report.behaviour.value == pytest.approx(r.mean())


def test_weights_and_probabilities_are_two_ways_to_say_it(samples):
    s = samples
    pi = s["pi"][s["rows"], s["actions"]]
    by_weight = ope.evaluate(s["rewards"], weights=pi / s["mu"])
    assert by_weight == ope.evaluate(s["rewards"], s["mu"], pi)
    assert by_weight == ope.evaluate(s["rewards"], s["mu"], s["pi"][:, :, None], actions=s["actions"])
    assert {e.estimator for e in by_weight} == {"ips", "ips-clip", "snips", "sg-ips", "cressie-read"}


def test_some_estimators_and_intervals(samples):
    s = samples
    report = ope.evaluate(
        s["rewards"], weights=1 / s["mu"] / 4, estimators=["snips"], intervals=["bootstrap"], replicates=50, seed=3
    )
    assert [e.estimator for e in report] == ["snips"]
    assert list(report["snips"].intervals) == ["bootstrap"]
    assert report["snips"].interval is None
    with pytest.raises(KeyError):
        report["ips"]


def test_an_infinite_clip_clips_nothing(samples):
    report = ope.evaluate(samples["rewards"], weights=1 / samples["mu"], clip=math.inf)
    assert report["ips-clip"].value == report["ips"].value


def test_a_report_prints_converts_and_plots(samples):
    report = ope.evaluate(samples["rewards"], weights=np.ones(3000), confidence=0.9)
    text = str(report)
    assert "90 % interval" in text and "behaviour policy" in text and report.words in text
    assert "<table>" in report._repr_html_()
    pandas = pytest.importorskip("pandas")
    frame = report.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    row = frame[(frame.estimator == "ips") & (frame.interval == "normal")].iloc[0]
    assert (row.low, row.high) == report["ips"].intervals["normal"]
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = report.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [e.estimator for e in report]
    with pytest.raises(neuralcb.NeuralcbError, match="unknown interval `norml`"):
        report.plot("norml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(rewards=[1.0]), "give `weights`, or `propensities`"),
        (dict(rewards=[1.0], weights=[-1.0]), r"round 0, importance weight: must be in \[0, 1e100\], got -1"),
        (dict(rewards=[1.0, np.nan], weights=[1.0, 1.0]), "round 1, reward"),
        (dict(rewards=[1.0], weights=[1.0, 2.0]), "rewards: expected 2, got 1"),
        (dict(rewards=[1.0], propensities=[0.0], target=[1.0]), r"round 0, propensity: must be in \(0, 1\], got 0"),
        (dict(rewards=[1.0], propensities=[0.5], target=[1.5]), "target policy's probability"),
        (dict(rewards=[1.0], propensities=[0.5], target=[[1.0, 0.0]]), "need `actions`"),
        (dict(rewards=[1.0], weights=[1.0], confidence=1.0), r"`confidence` must be in \(0, 1\), got 1"),
        (dict(rewards=[1.0], weights=[1.0], clip=math.nan), "`clip` must be a number"),
        (dict(rewards=[1.0], weights=[1.0], estimators=["ipw"]), "unknown estimator `ipw`: use one of dm, ips, "),
        (dict(rewards=[1.0], weights=[1.0], replicates=3), "`replicates` must be between 20 and 1,000,000, got 3"),
    ],
)
def test_each_refusal_names_the_culprit(arguments, message):
    with pytest.raises(neuralcb.NeuralcbError, match=message):
        ope.evaluate(**arguments)


def test_parts_overlap_only_by_mistake():
    part = ope.Evaluation()
    part.extend([1.0, 0.0], weights=[1.0, 1.0])
    other = ope.Evaluation(first_round=1)
    other.extend([1.0, 0.0], weights=[1.0, 1.0])
    with pytest.raises(neuralcb.NeuralcbError, match="rounds 1 to 2 are in both"):
        part.merge(other)
    with pytest.raises(neuralcb.NeuralcbError, match="same settings"):
        part.merge(ope.Evaluation(first_round=5, confidence=0.9))


def test_an_evaluation_can_be_pickled_and_merged(samples):
    import pickle

    s = samples
    given = dict(propensities=s["mu"], target=s["pi"], actions=s["actions"], q=s["q"])
    whole = ope.evaluate(s["rewards"], **given)
    late = ope.Evaluation(first_round=1300)
    late.extend(s["rewards"][1300:], **{name: values[1300:] for name, values in given.items()})
    stored = pickle.dumps(late)
    assert len(stored) < 100_000
    early = ope.Evaluation()
    early.extend(s["rewards"][:1300], **{name: values[:1300] for name, values in given.items()})
    early.merge(pickle.loads(stored))
    assert early.report().raw == whole.raw
    with pytest.raises(neuralcb.NeuralcbError, match="saved evaluation, byte 1: must be"):
        neuralcb._neuralcb.Evaluation.from_bytes(b"no evaluation")


def test_every_layout_of_the_arrays_says_the_same(samples):
    s = samples
    given = dict(propensities=s["mu"], target=s["pi"], actions=s["actions"], q=s["q"])
    plain = ope.evaluate(s["rewards"], **given)
    other = dict(given, target=np.asfortranarray(s["pi"])[:, :, None], q=np.repeat(s["q"], 2, axis=0)[::2])
    assert ope.evaluate(s["rewards"].astype(int), **other).raw == plain.raw
    with pytest.raises(neuralcb.NeuralcbError, match="round 7, action: must be below the number of actions, 4, got 4"):
        ope.evaluate(s["rewards"], **dict(given, actions=np.where(s["rows"] >= 7, 4, 0)))
    with pytest.raises(neuralcb.NeuralcbError, match="actions of `q`: expected 4, got 3"):
        ope.evaluate(s["rewards"], **dict(given, q=s["q"][:, :3]))


def test_a_model_of_other_rounds_stands_behind_the_doubly_robust_estimators(log, fresh):
    learner = neuralcb.LinLCB(beta=0.5).fit(fresh.contexts[:200], fresh.actions[:200], fresh.rewards[:200])
    model = neuralcb.KernLCB().fit(fresh.contexts[200:], fresh.actions[200:], fresh.rewards[200:])
    report = ope.evaluate_policy(learner, *log.args, log.propensities, model=model)
    mean, _ = model.bounds(log.contexts)
    by_hand = ope.evaluate(
        log.rewards, log.propensities, learner.action_dist(log.contexts), actions=log.actions, q=mean
    )
    # what only a policy tells (its origin, its parts) is beside what both say
    assert by_hand.raw.items() <= report.raw.items()
    # an action that only the model knows changes nothing; other features are refused
    actions = np.where(np.arange(200) < 5, 7, fresh.actions[200:])
    wide = neuralcb.LinLCB().fit(fresh.contexts[200:], actions, fresh.rewards[200:])
    mean = wide.bounds(log.contexts)[0][:, :3]
    found = ope.evaluate_policy(learner, *log.args, log.propensities, model=wide)
    assert found["dr"].value == ope.evaluate(
        log.rewards, log.propensities, learner.action_dist(log.contexts), actions=log.actions, q=mean
    )["dr"].value
    other = neuralcb.LinLCB().fit(fresh.contexts[:, :3], fresh.actions, fresh.rewards)
    with pytest.raises(neuralcb.NeuralcbError, match="different features"):
        ope.evaluate_policy(learner, *log.args, log.propensities, model=other)


def test_the_position_of_a_round_selects_among_several(samples):
    s = samples
    position = s["rows"] % 2
    several = np.stack([s["pi"], s["pi"][:, ::-1]], axis=2)
    at = np.where(position[:, None] == 0, s["pi"], s["pi"][:, ::-1])
    found = ope.evaluate(s["rewards"], s["mu"], several, actions=s["actions"], position=position, q=s["q"])
    assert found.raw == ope.evaluate(s["rewards"], s["mu"], at, actions=s["actions"], q=s["q"]).raw
    with pytest.raises(neuralcb.NeuralcbError, match="`target` tells of 2 positions: give `position`"):
        ope.evaluate(s["rewards"], s["mu"], several, actions=s["actions"])
    with pytest.raises(neuralcb.NeuralcbError, match="round 5, position: must be from 0 to 1, got 2"):
        ope.evaluate(s["rewards"], s["mu"], several, actions=s["actions"], position=np.where(s["rows"] == 5, 2, 0))
