"""The worked examples run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("own_log.py", [], "policy in"),
        ("how_pessimistic.py", ["1000"], "by its lower bound choose beta"),
        ("figure1.py", ["{folder}", "60"], "report in"),
    ],
)
def test_the_example_runs(name, arguments, says, tmp_path):
    arguments = [argument.format(folder=tmp_path / "fig1") for argument in arguments]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
