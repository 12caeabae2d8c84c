"""Cards and metrics of what was found, and the hook to an experiment tracker."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import neuralcb

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with a column of words, in which one group of people is served worse by action 1."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("card") / "log.csv"
    n = 600
    x, action, old = rng.normal(size=n), rng.integers(2, size=n), rng.integers(2, size=n)
    reward = rng.random(n) < np.where(action == 1, np.where(old == 1, 0.2, 0.8), 0.5)
    lines = [f"action,reward,propensity,x,{HOSTILE}"]
    lines += [f"{a},{int(r)},0.5,{v:.4f},{('young', 'old')[o]}" for a, r, v, o in zip(action, reward, x, old)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def tuned(log: Path) -> neuralcb.Tuned:
    return neuralcb.tune(log, segments=[HOSTILE], betas=[0.0, 1.0], lrs=[1e-3], reward_range=(0, 1))


def assert_card(page: Path, *words: str) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "default-src 'none'" in text
    assert "<script" not in text and "http" not in text.replace("http-equiv", "")
    for word in words:
        assert word in text, word


def test_a_tuning_has_a_card_and_metrics(tuned: neuralcb.Tuned, tmp_path: Path) -> None:
    assert_card(tuned.report(tmp_path / "card.html"), "The certificate", "The candidates", "&lt;script&gt;")
    metrics = tuned.metrics()
    assert metrics["value_lower"] == tuned.certificate["value"]["lower"]
    assert metrics["held_out_rounds"] == tuned.certificate["rounds"]
    assert all(isinstance(value, float) and math.isfinite(value) for value in metrics.values())


def test_an_evaluation_tells_who_gains_and_who_loses(log: Path, tmp_path: Path) -> None:
    policy = neuralcb.train(log, "constant", action="1")
    report = neuralcb.evaluate(policy, log, segments=[HOSTILE], estimators=["snips"])
    (segmented,) = report.to_dict()["detail"]["segments"]
    assert {segment["name"]: segment["gains"] for segment in segmented["segments"]} == {"young": True, "old": False}
    assert_card(report.report(tmp_path / "card.html"), "gains", "loses")
    assert report.metrics()["value_snips"] == report["snips"].value
    with pytest.raises(neuralcb.NeuralcbError, match="no column `country`"):
        neuralcb.evaluate(policy, log, segments=["country"])


def test_a_diagnosis_and_an_evaluation_of_arrays_have_cards(log: Path, tmp_path: Path) -> None:
    diagnosis = neuralcb.diagnose(log, segments=["x"])
    assert_card(diagnosis.report(tmp_path / "diagnosis.html"), "x: mean reward")
    assert diagnosis.metrics()["rounds"] == 600.0
    arrays = neuralcb.ope.evaluate(np.tile([1.0, 0.0], 100), weights=np.tile([2.0, 0.0, 1.0, 1.0], 50))
    assert_card(arrays.report(tmp_path / "arrays.html"), "Value and difference")


def test_metrics_and_card_go_to_mlflow(
    tuned: neuralcb.Tuned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="no mlflow: pip install mlflow-skinny")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        mlflow.log_metrics(tuned.metrics())
        mlflow.log_artifact(str(tuned.report(tmp_path / "card.html")))
    stored = mlflow.get_run(run.info.run_id)
    assert stored.data.metrics == tuned.metrics()
    assert [artifact.path for artifact in mlflow.MlflowClient().list_artifacts(run.info.run_id)] == ["card.html"]
