"""Runs every Python snippet of the documentation pages, from top to bottom."""

import importlib.util
import pathlib
import re
import shutil

import pytest

import shardtool as st

DOCS = pathlib.Path(__file__).parents[3] / "docs"
SNIPPET = re.compile(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)
#: Pages, and the number of their snippets that need no framework.
PAGES = {"../README.md": 0, "python.md": 29, "frameworks.md": 2, "troubleshooting.md": 3, "faq.md": 4, "recipes.md": 16, "view.md": 1, "change.md": 4, "in-place.md": 1}


@pytest.mark.parametrize("page", PAGES)
def test_snippets(page, photos, tmp_path, monkeypatch, capsys):
    if page == "in-place.md":
        # The dataset lies in the folder.
        shutil.copytree(photos, tmp_path / "photos")
    else:
        (tmp_path / "photos").symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    path = DOCS / page
    text = path.read_text()
    names = {}
    ran = 0
    for found in SNIPPET.finditer(text):
        needed, code = found.groups()
        if needed and importlib.util.find_spec(needed) is None:
            continue
        # Line numbers of tracebacks are the document's.
        line = text[: found.start(2)].count("\n")
        exec(compile("\n" * line + code, str(path), "exec"), names)
        ran += 1
    assert ran >= PAGES[page]
    if page == "python.md":
        assert "bounds the rate" in capsys.readouterr().out
    if page == "../README.md" and importlib.util.find_spec("torch"):
        assert "epoch 1: loss" in capsys.readouterr().out


def test_troubleshooting_explains_every_exception():
    text = (DOCS / "troubleshooting.md").read_text()
    assert [name for name in st.errors.__all__ if f"`{name}`" not in text] == []


def test_messages_in_troubleshooting_occur_in_the_sources():
    """Each message that the page quotes in `“…”` is part of a message in the Rust or Python sources."""
    root = DOCS.parent / "crates"
    sources = [*root.glob("*/src/**/*.rs"), *root.glob("python/python/**/*.py")]
    # Messages are split over lines: in Rust with a backslash, in Python as adjacent literals.
    texts = [re.sub(r'\\\n\s*|"\s*\n\s*f?"', "", path.read_text()) for path in sources]
    quoted = re.findall(r"“([^”]+)”", (DOCS / "troubleshooting.md").read_text())
    assert len(quoted) > 15
    missing = [message for message in quoted if not any(message in text for text in texts)]
    assert missing == []


def test_python_lists_what_cannot_be_combined():
    """Each row of the table is one of `exclusions.rs`, with its reason, in the same order."""
    source = (DOCS.parent / "crates/load/src/options/exclusions.rs").read_text()
    rows = re.findall(r'row\(\s*(\w+),\s*&\[([^\]]*)\],\s*"([^"]*)",?\s*\)', source)
    assert len(rows) == int(re.search(r"EXCLUSIONS: \[Exclusion; (\d+)\]", source)[1])
    names = dict(re.findall(r'Part::(\w+) => "([^"]*)"', source))
    names["ShardPolicy"] = 'the policy `"shard"`'
    # "`Image`" is with or without steps, "`Arrays`" with or without `image_axes`.
    covered = {"Record": "Image", "ArraysInImage": "Arrays"}
    parts = [re.findall(r"\w+", others) for _, others, _ in rows]
    parts = [", ".join(names[other] for other in row if covered.get(other) not in row) for row in parts]
    expected = [f"| {names[part]} | {others} | {reason} |" for (part, _, reason), others in zip(rows, parts)]
    table = (DOCS / "python.md").read_text().split("### What cannot be combined")[1].split("\n\n")[2].splitlines()
    assert table[2:] == expected


def test_links_point_to_existing_files():
    for path in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
