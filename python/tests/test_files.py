"""Logs and policies in files: the same as the command line's, to the bit."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess

import numpy as np
import pytest

import neuralcb


def command_line() -> str:
    """The program, where it is installed or named."""
    program = os.environ.get("NEURALCB") or shutil.which("neuralcb")
    if program is None:
        pytest.skip("the command line is not installed; NEURALCB names it")
    return program


def run(*arguments: object) -> str:
    done = subprocess.run([command_line(), *map(str, arguments)], capture_output=True, text=True, check=True)
    return done.stdout


def as_written(log: neuralcb.SimulatedLog) -> neuralcb.SimulatedLog:
    """The log as its text is read: 0.1 of a CSV file is the nearest float64, not the nearest float32."""
    texts = np.array([np.format_float_positional(x, trim="-") for x in log.contexts.ravel()])
    return dataclasses.replace(log, contexts=texts.astype(np.float64).reshape(log.contexts.shape))


@pytest.fixture(scope="module")
def simulated() -> neuralcb.SimulatedLog:
    return neuralcb.simulate("quadratic", 500, seed=5, preset="released-code")


@pytest.fixture(scope="module")
def csv(simulated, tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    simulated.write_csv(path)
    return path


@pytest.fixture(scope="module")
def shared(simulated):
    return as_written(simulated)


def test_a_saved_policy_decides_alike(learner, log, fresh, tmp_path):
    learner.fit(*log.args).save(tmp_path / "policy.safetensors")
    policy = neuralcb.load(tmp_path / "policy.safetensors")
    np.testing.assert_array_equal(policy.predict(fresh.contexts), learner.predict(fresh.contexts))
    for ours, theirs in zip(policy.bounds(fresh.contexts), learner.bounds(fresh.contexts)):
        np.testing.assert_array_equal(ours, theirs)
    assert policy.beta == learner.policy_.beta


def test_a_policy_of_a_file_and_of_arrays_are_the_same_bytes_but_for_the_origin(csv, shared):
    from_file = neuralcb.train(csv, "neuralcb", net={"width": 8}, beta=0.5)
    learner = neuralcb.NeuraLCB(width=8, beta=0.5)
    learner.fit(shared.contexts, shared.actions, shared.rewards, shared.propensities)
    for ours, theirs in zip(learner.bounds(shared.contexts), from_file.bounds(shared.contexts)):
        np.testing.assert_array_equal(ours, theirs)
    here, there = learner.policy_.description, from_file.description
    for about in (here, there):
        del about["log"]
    assert here == there


def test_a_long_table_and_an_array_of_actions_are_one_log(own, tmp_path):
    own.write_csv(tmp_path / "long.csv")
    from_file = neuralcb.train(tmp_path / "long.csv", "lin-lcb")
    own = as_written(own)
    learner = neuralcb.LinLCB().fit(own.contexts, own.actions, own.rewards, own.propensities)
    np.testing.assert_array_equal(learner.bounds(own.contexts)[0], from_file.bounds(own.contexts)[0])


def test_the_command_line_reads_our_policy_and_decides_alike(csv, shared, learner, tmp_path):
    command_line()
    learner.fit(shared.contexts, shared.actions, shared.rewards).save(tmp_path / "policy.safetensors")
    run("score", tmp_path / "policy.safetensors", csv, "--out", tmp_path / "scores.jsonl", "--explain")
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [int(row["action"]) for row in rows] == learner.predict(shared.contexts).tolist()
    mean, width = learner.bounds(shared.contexts)
    for a in range(learner.n_actions_):
        assert [row["actions"][str(a)]["mean"] for row in rows] == mean[:, a].tolist()
        assert [row["actions"][str(a)]["width"] for row in rows] == width[:, a].tolist()


def test_we_read_the_command_lines_policy_and_decide_alike(csv, shared, tmp_path):
    run("train", csv, "--out", tmp_path / "policy.safetensors", "--algorithm", "neural-lin-lcb", "--seed", 3)
    run("score", tmp_path / "policy.safetensors", csv, "--out", tmp_path / "scores.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    policy = neuralcb.load(tmp_path / "policy.safetensors")
    assert [int(row["action"]) for row in rows] == policy.predict(shared.contexts).tolist()


def test_simulated_logs_are_the_command_lines(simulated, own, tmp_path):
    for name, log, more in (("quadratic", simulated, ("--preset", "released-code", "--seed", 5)), ("cosine", own, ("--seed", 3))):
        run("simulate", name, "--n", len(log), "--out", tmp_path / "theirs.csv", *more)
        log.write_csv(tmp_path / "ours.csv")
        assert (tmp_path / "ours.csv").read_text() == (tmp_path / "theirs.csv").read_text()


def test_scores_go_to_a_file(csv, shared, tmp_path):
    policy = neuralcb.train(csv, "lin-lcb")
    counts = neuralcb.score(policy, csv, tmp_path / "scores.csv")
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    assert lines[0] == "line,action" and counts["rounds"] == 500 == len(lines) - 1
    assert [int(line.split(",")[1]) for line in lines[1:]] == policy.predict(shared.contexts).tolist()


def test_an_evaluation_of_a_file_and_of_arrays_say_the_same(csv, shared):
    policy = neuralcb.train(csv, "constant", action="3")
    from_file = neuralcb.evaluate(policy, csv)
    arrays = neuralcb.ope.evaluate_policy(
        policy, shared.contexts, shared.actions, shared.rewards, shared.propensities
    )
    assert {**from_file.to_dict(), "about": None} == {**arrays.to_dict(), "about": None}


def test_a_policy_judged_by_its_own_log_is_said_to_be_so(csv, shared):
    learner = neuralcb.LinLCB().fit(shared.contexts, shared.actions, shared.rewards, shared.propensities)
    report = neuralcb.ope.evaluate_policy(
        learner, shared.contexts, shared.actions, shared.rewards, shared.propensities
    )
    assert report.warnings[0][0] == "same-log"
    assert neuralcb.evaluate(neuralcb.train(csv, "lin-lcb"), csv).warnings[0][0] == "same-log"


def test_a_diagnosis_prints_and_is_data(csv):
    diagnosis = neuralcb.diagnose(csv)
    assert diagnosis.rows == 500 and len(diagnosis.to_dict()["actions"]) == 30
    assert "column" in str(diagnosis)
    assert isinstance(diagnosis.unwise, bool)


def test_tuning_of_a_file_and_of_arrays_choose_alike(csv, shared):
    options = dict(algorithms=("clone", "lin-lcb", "neuralcb"), betas=(0.0, 1.0), lrs=(1e-3,), modes=("S",))
    from_file = neuralcb.tune(csv, **options)
    arrays = neuralcb.tune(shared.contexts, shared.actions, shared.rewards, shared.propensities, **options)
    assert from_file.candidates == arrays.candidates
    assert from_file.held_out == 125
    assert {one["algorithm"] for one in from_file.candidates} == {"clone", "lin-lcb", "neuralcb"}
    assert from_file.certificate == arrays.certificate
    assert from_file.certificate["over_log"]["lower"] <= from_file.certificate["over_log"]["estimate"]
    np.testing.assert_array_equal(from_file.policy.predict(shared.contexts), arrays.policy.predict(shared.contexts))
    assert str(from_file) == from_file.words


def test_uniform_and_clone_have_no_bounds(csv, shared):
    uniform = neuralcb.train(csv, "uniform")
    np.testing.assert_allclose(uniform.action_dist(shared.contexts[:2]), 1 / 30)
    assert uniform.beta is None
    with pytest.raises(neuralcb.NeuralcbError, match="makes no choice of its own"):
        uniform.predict(shared.contexts)
    with pytest.raises(neuralcb.NeuralcbError, match="no reward model"):
        neuralcb.train(csv, "clone").bounds(shared.contexts)
    with pytest.raises(neuralcb.NeuralcbError, match="has no beta"):
        uniform.beta = 1.0


def test_files_that_are_none_are_refused(tmp_path, csv):
    with pytest.raises(neuralcb.NeuralcbError, match="cannot read file"):
        neuralcb.load(tmp_path / "nowhere")
    with pytest.raises(neuralcb.NeuralcbError, match="is not a whole policy file"):
        neuralcb.load(csv)
    with pytest.raises(neuralcb.NeuralcbError, match="nowhere.csv"):
        neuralcb.train(tmp_path / "nowhere.csv")


def test_a_reproduction_that_was_stopped_goes_on(tmp_path):
    small = dict(reps=1, n=200, test_contexts=50, datasets=["cosine"], modes=["S"], quick=True)

    def enough(done: int, total: int) -> None:
        if done > 0:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        neuralcb.reproduce("fig1", out=tmp_path / "stopped", progress=enough, **small)
    assert not (tmp_path / "stopped" / "results.csv").exists()
    neuralcb.reproduce("fig1", out=tmp_path / "stopped", **small)
    neuralcb.reproduce("fig1", out=tmp_path / "whole", **small)
    results = [(tmp_path / name / "results.csv").read_bytes() for name in ("stopped", "whole")]
    assert results[0] == results[1]


def test_figure_1_in_small(tmp_path):
    small = dict(
        reps=1, n=60, test_contexts=50, datasets=["cosine"], algorithms=["lin-lcb", "uniform"], out=tmp_path / "fig1"
    )
    made = neuralcb.reproduce("fig1", quick=True, **small)
    assert "lin-lcb" in str(made).lower() or "LinLCB" in str(made)
    for name in ("results.csv", "summary.csv", "report.html", "settings.json"):
        assert (tmp_path / "fig1" / name).stat().st_size > 0
    before = (tmp_path / "fig1" / "results.csv").read_bytes()
    neuralcb.reproduce("fig1", quick=True, **small)
    assert (tmp_path / "fig1" / "results.csv").read_bytes() == before
    with pytest.raises(neuralcb.NeuralcbError, match="unknown setting `rips`"):
        neuralcb.reproduce("fig1", rips=1, out=tmp_path / "other")
    with pytest.raises(neuralcb.NeuralcbError, match="unknown figure `fig9`"):
        neuralcb.reproduce("fig9")
