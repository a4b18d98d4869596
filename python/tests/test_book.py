"""The page of the book does what it says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/book/src/python.md"


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(code, known)
    assert (tmp_path / "movies" / "model.json").exists()
