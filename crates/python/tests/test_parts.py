"""A pack in parts, from Python."""

import multiprocessing
import pathlib

import numpy as np
import pytest
from PIL import Image

import shardtool as st

OPTIONS = {"shards": 7, "seed": 4}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Photographs of two classes, and a file that is not an image."""
    folder = tmp_path_factory.mktemp("photographs")
    random = np.random.default_rng(1)
    for number in range(40):
        path = folder / f"class{number % 2}" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 255, (12, 16, 3), np.uint8)).save(path)
    (folder / "class0" / "broken.jpg").write_bytes(b"not a photograph")
    return folder


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file()}


def run_part(photographs, destination, part):
    return st.pack_part(photographs, destination, part, **OPTIONS)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_parts_of_several_processes_are_one_pack(photographs, tmp_path):
    whole = st.pack(photographs, tmp_path / "one", **OPTIONS)
    assert st.write_plan(photographs, tmp_path / "parts", **OPTIONS) == 7
    with pytest.raises(st.PackError, match="7 of 7 shards"):
        st.commit(tmp_path / "parts")
    parts = [(2, 3), (0, 3), (1, 3), (2, 3)]
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        packed = pool.starmap(run_part, [(photographs, tmp_path / "parts", part) for part in parts])
    assert [part.shards for part in packed] == [2, 3, 2, 2] and {part.planned_shards for part in packed} == {7}
    committed = st.commit(tmp_path / "parts")
    assert (committed.images, committed.rejected, committed.fingerprint) == (40, 1, whole.fingerprint)
    assert files(tmp_path / "parts") == files(tmp_path / "one")
    again = run_part(photographs, tmp_path / "parts", (0, 3))
    assert again.already_complete and st.commit(tmp_path / "parts").already_complete


def test_arguments_are_checked(photographs, tmp_path):
    with pytest.raises(st.OptionError, match="0 <= i < n"):
        st.pack_part(photographs, tmp_path / "set", (3, 3))
    with pytest.raises(st.OptionTypeError, match="shard_count"):
        st.pack_part(photographs, tmp_path / "set", (0, 3), shard_count=2)
    run_part(photographs, tmp_path / "set", (0, 3))
    with pytest.raises(st.PackError, match="seed"):
        st.pack_part(photographs, tmp_path / "set", (1, 3), shards=7, seed=5)
    with pytest.raises(st.ShardtoolError, match="force"):
        st.pack_part(photographs, tmp_path / "set", (1, 3), **OPTIONS, force=True)
    with pytest.raises(st.PackError, match="no pack in parts"):
        st.commit(tmp_path / "set", "test")
