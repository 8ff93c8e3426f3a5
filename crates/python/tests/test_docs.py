"""Runs every Python snippet of docs/python.md, from top to bottom."""

import importlib.util
import pathlib
import re

DOCUMENT = pathlib.Path(__file__).parents[3] / "docs" / "python.md"
SNIPPET = re.compile(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)


def test_snippets(photos, tmp_path, monkeypatch, capsys):
    (tmp_path / "photos").symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    text = DOCUMENT.read_text()
    names = {}
    ran = 0
    for found in SNIPPET.finditer(text):
        needed, code = found.groups()
        if needed and importlib.util.find_spec(needed) is None:
            continue
        # Line numbers of tracebacks are the document's.
        line = text[: found.start(2)].count("\n")
        exec(compile("\n" * line + code, str(DOCUMENT), "exec"), names)
        ran += 1
    assert ran >= 9
    assert "bounds the rate" in capsys.readouterr().out
