"""Sweeps on this machine."""

from __future__ import annotations

import numpy as np
import pytest

import neuralcb

GRID = {
    "LinLCB": {"lam": [0.1, 1.0], "beta": [0.0, 1.0]},
    "NeuralGreedy": {"width": [8], "lr": [1e-3, 1e-2]},
}


def args(log):
    return *log.args, log.propensities


def test_every_setting_repetition_and_beta_has_a_row(log):
    rows = neuralcb.sweep(GRID, *args(log), repetitions=2)
    assert len(rows) == 2 * 2 * 2 + 2 * 2
    assert {row["learner"] for row in rows} == {"LinLCB", "NeuralGreedy"}
    assert all(np.isfinite(row["value"]) and row["lower_bound"] <= row["value"] for row in rows)
    assert rows == neuralcb.sweep(GRID, *args(log), repetitions=2)


def test_a_row_is_what_the_learner_itself_earns(log):
    (row,) = neuralcb.sweep({"LinLCB": {"beta": [0.5]}}, *args(log), hold_out=0.25)
    learner = neuralcb.LinLCB(beta=0.5).fit(log.contexts[:450], log.actions[:450], log.rewards[:450])
    report = neuralcb.ope.evaluate_policy(
        learner, log.contexts[450:], log.actions[450:], log.rewards[450:], log.propensities[450:], folds=0
    )
    assert row["value"] == report["snips"].value
    assert row["lower_bound"] == report["snips"].lower_bounds["normal"]


def test_a_sweep_goes_on_where_it_was_stopped(log, tmp_path):
    journal = tmp_path / "sweep.jsonl"

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        neuralcb.sweep(GRID, *args(log), journal=journal, progress=stop)
    assert len(journal.read_text().splitlines()) == 2
    journal.write_text(journal.read_text() + '{"run": "half a li')  # killed while it wrote
    told: list[int] = []
    rows = neuralcb.sweep(GRID, *args(log), journal=journal, progress=lambda done, total: told.append(done))
    assert told == [3, 4]
    told.clear()
    neuralcb.sweep(GRID, *args(log), journal=journal, progress=lambda done, total: told.append(done))
    assert told == []  # all is there
    assert rows == neuralcb.sweep(GRID, *args(log))


def test_another_log_is_another_sweep(log, fresh, tmp_path):
    journal = tmp_path / "sweep.jsonl"
    neuralcb.sweep({"LinLCB": {}}, *args(log), journal=journal)
    rows = neuralcb.sweep({"LinLCB": {}}, *args(fresh), journal=journal)
    assert rows == neuralcb.sweep({"LinLCB": {}}, *args(fresh))


@pytest.mark.parametrize(
    ("grid", "more", "message"),
    [
        ({"LinUCB": {}}, {}, "unknown learner `LinUCB`"),
        ({"LinLCB": {"lamda": [1]}}, {}, "unknown parameter `lamda` of LinLCB"),
        ({"LinLCB": {}}, {"repetitions": 0}, "`repetitions` must be at least 1, got 0"),
        ({"LinLCB": {}}, {"hold_out": 1.0}, r"`hold_out` must be in \(0, 1\), got 1.0"),
    ],
)
def test_what_cannot_be_swept_is_refused(log, grid, more, message):
    with pytest.raises(neuralcb.NeuralcbError, match=message):
        neuralcb.sweep(grid, *args(log), **more)
