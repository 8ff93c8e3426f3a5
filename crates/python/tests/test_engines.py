"""The recipes of docs/cluster.md for Spark and Beam give the dataset of one pack, byte for byte."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import sys

import pytest

import shardtool as st

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "cluster.md"


def recipe(engine):
    """Returns the snippet of the page that needs the engine."""
    found = re.search(rf"<!-- needs {engine} -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found, engine
    return found[1]


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize("engine", ["pyspark", "apache_beam"])
def test_recipe_gives_the_dataset_of_one_pack(engine, photos, tmp_path, monkeypatch):
    if importlib.util.find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    if engine == "pyspark" and shutil.which("java") is None:
        pytest.skip("there is no Java")
    (tmp_path / "photos").symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    # Spark's workers are otherwise those of another Python.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    st.pack(photos, tmp_path / "one", shards=6)
    exec(compile(recipe(engine), str(PAGE), "exec"), {"__name__": "recipe"})
    assert files(tmp_path / "shared") == files(tmp_path / "one")
    assert st.verify(tmp_path / "shared").good
