"""Clones: datasets on the shards of another one, which stay where they are."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
import shardtool as st


@pytest.fixture
def base(dataset: Path, tmp_path: Path) -> st.Dataset:
    """A copy of the photographs: `train` of three shards, `single` of one."""
    shutil.copytree(dataset, tmp_path / "base")
    return st.Dataset(tmp_path / "base")


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


STEPS = [st.Image([st.Resize(20), st.CenterCrop(16)])]


def batches(split: st.Split, state: dict | None = None, fields: list | None = None) -> list:
    with st.Loader(split, 4, fields or STEPS, order=st.Shuffled(seed=5)) as loader:
        if state is not None:
            loader.load_state_dict(state)
        return [(batch["id"].tolist(), batch["image"].tobytes()) for batch in loader]


def test_a_clone_is_read_as_the_dataset_it_is_of(base: st.Dataset, tmp_path: Path) -> None:
    mine = base.clone(tmp_path / "mine")
    assert [path.name for path in files(tmp_path / "mine")] == ["dataset.json"]
    assert (mine.splits, mine.classes, mine.features) == (base.splits, base.classes, base.features)
    for name in base.splits:
        assert mine[name][:] == base[name][:] and mine[name].fingerprint == base[name].fingerprint
    assert batches(mine["train"]) == batches(base["train"])
    # A state of the dataset continues with the clone.
    loader = st.Loader(base["train"], 4, STEPS, order=st.Shuffled(seed=5))
    steps = iter(loader)
    next(steps), next(steps)
    state = loader.state_dict()
    loader.close()
    assert batches(mine["train"], state) == batches(base["train"])[2:]
    # In other processes it has the user's word.
    again = pickle.loads(pickle.dumps(mine))
    assert again["train"][:] == base["train"][:]
    assert st.verify(mine.path, source=base.path).good


def test_without_the_users_word_nothing_is_opened(base: st.Dataset, tmp_path: Path) -> None:
    base.clone(tmp_path / "mine")
    mine = st.Dataset(tmp_path / "mine")
    with pytest.raises(st.errors.DatasetError, match="--source"):
        mine["train"][0]
    with pytest.raises(st.PackError, match="--source"):
        mine.delete(where="image/class/label=0")
    with pytest.raises(st.errors.DatasetError, match="--source"):
        batches(mine["train"])
    assert [path.name for path in files(tmp_path / "mine")] == ["dataset.json"]


def test_a_clone_changes_by_itself(base: st.Dataset, tmp_path: Path) -> None:
    base = base.add_columns(lambda record: {"size": len(record["image"])}, split="train")
    mine = base.clone(tmp_path / "mine")
    before, first = files(Path(base.path)), base["train"][:]
    assert mine.version == base.version == 2 and mine["train"][:] == first
    mine = mine.add_columns(lambda record: {"mine": record["features"]["size"] + 1}, split="train")
    mine = mine.delete(where="image/class/label=0", split="train")
    mine = mine.select("some", split="train", where="image/class/label=1").tag("paper")
    assert files(Path(base.path)) == before
    expected = [record for record in first if record["label"] != 0]
    assert [record["features"]["mine"] - 1 for record in mine["train"][:]] == [record["features"]["size"] for record in expected]
    with st.Loader(mine["some"], 2, [*STEPS, "mine", "size"], order=st.Sequential(), remainder="drop") as loader:
        assert all((batch["mine"] == batch["size"] + 1).all() for batch in loader)
    # A later deletion in the dataset does not reach the clone. A version of the clone is cloned as well.
    base = base.delete(where="image/class/label=1", split="train")
    assert len(mine["some"]) == sum(record["label"] == 1 for record in first)
    third = st.Dataset(mine.path, version=3, source=base.path).clone(tmp_path / "third")
    assert [record["features"]["mine"] for record in third["train"][:]] == [record["features"]["size"] + 1 for record in first]
    # Compacted, it needs the other one no more.
    compacted = mine.compact()
    shutil.rmtree(base.path)
    assert [record["features"]["mine"] - 1 for record in compacted["train"][:]] == [record["features"]["size"] for record in expected]
    with pytest.raises(st.DamageError) as lost:
        st.Dataset(third.path, source=base.path)["train"][0]
    assert lost.value.name == "MissingShard"
