"""The Python of both READMEs runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

OWN = Path(__file__).parents[1] / "README.md"
ROOT = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize(("readme", "least"), [(OWN, 2), (ROOT, 1)], ids=["package", "repository"])
def test_the_readmes_python_runs(readme, least, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= least
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(readme), "exec"), names)
    assert (tmp_path / "policy.safetensors").stat().st_size > 0
