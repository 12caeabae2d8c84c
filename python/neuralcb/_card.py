"""Cards and metrics: what was found, as a page for people and as numbers for an experiment tracker."""

from __future__ import annotations

import json
import math
from os import PathLike
from pathlib import Path
from typing import Any

from . import _neuralcb


def write_card(kind: str, raw: dict[str, Any], path: str | PathLike[str]) -> Path:
    """Writes the card of what ``neuralcb kind --json`` says, as ``--report`` does; returns its path."""
    page = Path(path)
    page.write_text(_neuralcb.card(kind, json.dumps(raw)), encoding="utf-8")
    return page


def numbers(found: dict[str, Any]) -> dict[str, float]:
    """Those of the values that are finite numbers, as floats."""
    kept = {name: value for name, value in found.items() if isinstance(value, (int, float))}
    return {name: float(value) for name, value in kept.items() if math.isfinite(value)}


def of_evaluation(raw: dict[str, Any]) -> dict[str, float]:
    """The flat metrics of an evaluation."""
    tail = raw.get("weights", {}).get("tail") or {}
    found: dict[str, Any] = {"rounds": raw["n"], "pareto_k": tail.get("k"), "behaviour": raw["behaviour"]["value"]}
    found |= {name: raw[name] for name in ("ess", "mean_weight", "max_weight")}
    for estimate in raw["estimates"]:
        name, ends = estimate["estimator"].replace("-", "_"), estimate["intervals"].get("normal")
        found[f"value_{name}"] = estimate["value"]
        if ends:
            found |= {f"value_{name}_low": ends[0], f"value_{name}_high": ends[1]}
        if estimate["difference"]:
            found[f"difference_{name}"] = estimate["difference"]["value"]
    found["warnings"] = len(raw["warnings"])
    return numbers(found)


def of_tuning(raw: dict[str, Any]) -> dict[str, float]:
    """The flat metrics of a tuning: its certificate, and the written policy on the rounds of it."""
    certificate = raw["certificate"]
    found: dict[str, Any] = {"confidence": certificate["confidence"], "beats_the_log": raw["beats_the_log"]}
    for claim in ("value", "over_log", "over_clone"):
        found |= {f"{claim}_lower": certificate[claim]["lower"], f"{claim}_estimate": certificate[claim]["estimate"]}
    found |= {"candidates": len(raw["candidates"]), "log_value": raw["behaviour"]}
    judged = of_evaluation(raw["evaluation"]) if raw.get("evaluation") else {}
    return numbers(found) | {f"held_out_{name}": value for name, value in judged.items()}


def of_diagnosis(raw: dict[str, Any]) -> dict[str, float]:
    """The flat metrics of a diagnosis."""
    rewards, propensities = raw["rewards"] or {}, raw["propensities"] or {}
    return numbers(
        {
            "rounds": raw["rows"],
            "actions": len(raw["actions"]),
            "mean_reward": rewards.get("mean"),
            "smallest_propensity": propensities.get("smallest"),
            "ess_uniform": raw["ess"],
            "warnings": len(raw["warnings"]),
            "unwise": raw["unwise"],
        }
    )
