"""Every command and snippet of the pages for newcomers is run, page by page, in a fresh folder.

`NEURALCB` names the program. Blocks of `sh` and `python` run as they stand. SQL is parsed in its own dialect and run by
DuckDB.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent
PAGES = [DOCS / "index.md", *sorted((DOCS / "guide").glob("*.md")), *sorted((DOCS / "cookbook").glob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """The heading before it, the language and the text of each block."""
    found, heading = [], ""
    for match in re.finditer(r"^## ([^\n]*)$|^```(\w+)\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE):
        if match[2] is None:
            heading = match[1]
        else:
            found.append((heading, match[2], match[3]))
    return found


def test_there_is_something_to_run():
    languages = [language for page in PAGES for _, language, _ in blocks(page)]
    assert languages.count("sh") >= 7 and languages.count("python") >= 3 and languages.count("sql") == 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page, tmp_path):
    program = os.environ.get("NEURALCB")
    if not program:
        pytest.skip("NEURALCB names no program")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "neuralcb").symlink_to(Path(program).resolve())
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    for _, language, text in blocks(page):
        run = {"sh": ["sh", "-euc", text], "python": [sys.executable, "-c", text]}.get(language)
        if run:
            told = {"cwd": tmp_path, "env": {**os.environ, "PATH": path}, "timeout": 120}
            done = subprocess.run(run, capture_output=True, text=True, check=False, **told)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def test_the_commands_of_the_readme_run(tmp_path):
    program = os.environ.get("NEURALCB")
    if not program:
        pytest.skip("NEURALCB names no program")
    ran = 0
    for _, language, text in blocks(DOCS.parent / "README.md"):
        lines = [line for line in text.splitlines() if line and not line.startswith("alias ")]
        if language == "sh" and all(line.startswith(("neuralcb ", "head ")) for line in lines) and "serve" not in text:
            command = "\n".join(lines).replace("neuralcb ", f"{Path(program).resolve()} ")
            done = subprocess.run(["sh", "-euc", command], cwd=tmp_path, capture_output=True, text=True, timeout=240,
                                  check=False)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            ran += 1
    assert ran == 2


def test_the_warehouses_sum_up_the_same_rewards():
    duckdb, sqlglot = pytest.importorskip("duckdb"), pytest.importorskip("sqlglot")
    seen = []
    for heading, language, text in blocks(DOCS / "cookbook" / "warehouse.md"):
        if language != "sql":
            continue
        query = sqlglot.transpile(text, read=heading.lower(), write="duckdb")[0]
        base = duckdb.connect()
        base.execute("CREATE TABLE decisions (decision_id INT, decided_at TIMESTAMPTZ, action TEXT, propensity DOUBLE, "
                     "age INT, hour INT)")
        base.execute("CREATE TABLE outcomes (decision_id INT, happened_at TIMESTAMPTZ, amount DOUBLE)")
        base.execute("""INSERT INTO decisions VALUES (1, now() - INTERVAL 30 DAY, 'tea', 0.5, 31, 9),
            (2, now() - INTERVAL 20 DAY, 'coffee', 0.5, 40, 10), (3, now() - INTERVAL 1 DAY, 'tea', 0.5, 50, 11)""")
        base.execute("""INSERT INTO outcomes VALUES (1, now() - INTERVAL 29 DAY, 2), (1, now() - INTERVAL 28 DAY, 3),
            (1, now() - INTERVAL 3 DAY, 100), (3, now(), 7)""")
        rows = base.execute(query)
        assert [column[0] for column in rows.description] == ["action", "reward", "propensity", "age", "hour"]
        assert rows.fetchall() == [("tea", 5, 0.5, 31, 9), ("coffee", 0, 0.5, 40, 10)], heading
        seen.append(heading)
    assert seen == ["Postgres", "BigQuery", "Snowflake"]
