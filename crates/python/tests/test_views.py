"""Views: some records of a split under a name, which everything reads as a split."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import shardtool as st


@pytest.fixture
def changing(dataset: Path, tmp_path: Path) -> st.Dataset:
    """A copy of the photographs: `train` of three shards, `single` of one."""
    shutil.copytree(dataset, tmp_path / "changing")
    return st.Dataset(tmp_path / "changing")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "shardtool", *map(str, arguments)], capture_output=True, text=True)


def keys(split: st.Split) -> list[str]:
    return [record["key"] for record in split[:]]


def loaded(split: st.Split, **options: object) -> list[int]:
    """Returns the labels of an epoch, with each id."""
    fields = [st.Image([st.Resize(20), st.CenterCrop(16)])]
    options = {"order": st.Sequential(), "remainder": "mask", **options}
    found = []
    with st.Loader(split, 4, fields, **options) as loader:
        for batch in loader:
            rows = zip(batch["id"], batch["label"], batch["valid"], strict=True)
            found += [(int(number), int(label)) for number, label, valid in rows if valid]
    return found


def test_a_view_is_read_as_a_split(changing: st.Dataset) -> None:
    everything = changing["train"][:]
    chosen = [record for record in everything if record["label"] in (0, 2)]
    seen = changing.select("some", split="train", where="image/class/label!=1")
    assert seen.views == ["some"] and seen.splits == changing.splits and list(seen) == list(changing) and "some" in seen
    view = seen["some"]
    assert len(view) == len(chosen) and view[:] == chosen and view[-1] == chosen[-1]
    assert view[chosen[3]["key"]] == chosen[3]
    gone = next(record["key"] for record in everything if record["label"] == 1)
    with pytest.raises(st.RecordKeyError):
        view[gone]
    assert view.columns["image/class/label"].tolist() == [record["label"] for record in chosen]
    assert loaded(view) == [(n, record["label"]) for n, record in enumerate(chosen)]
    assert sorted(loaded(view, order=st.Shuffled(3))) == loaded(view)
    assert st.verify(changing.path).good
    # Not in the version before.
    with pytest.raises(st.SplitError):
        changing["some"]
    with pytest.raises(st.SplitError, match="some"):
        seen["none"]


def test_a_loader_of_a_view_resumes_and_refuses_the_state_of_another(changing: st.Dataset) -> None:
    seen = changing.select("some", split="train", where="image/class/label!=1")
    seen = seen.select("others", split="train", where="image/class/label!=2")

    def loader(split: st.Split) -> st.Loader:
        fields = [st.Image([st.Resize(20), st.CenterCrop(16)])]
        return st.Loader(split, 3, fields, order=st.Shuffled(1), remainder="mask")

    with loader(seen["some"]) as first:
        batches = [batch["id"].tolist() for batch in first]
    with loader(seen["some"]) as first:
        iterator = iter(first)
        next(iterator)
        state = first.state_dict()
    with loader(seen["some"]) as second:
        second.load_state_dict(state)
        assert [batch["id"].tolist() for batch in second] == batches[1:]
    with loader(seen["others"]) as third, pytest.raises(st.StateError):
        third.load_state_dict(state)


def test_a_view_stays_the_same_but_for_deleted_records(changing: st.Dataset, photos: Path, tmp_path: Path) -> None:
    seen = changing.select("some", split="train", where="image/class/label!=1")
    chosen = keys(seen["some"])
    further = tmp_path / "further" / "owl"
    further.mkdir(parents=True)
    shutil.copy(photos / "owl" / "000.jpg", further / "new.jpg")
    grown = seen.append(further.parent, split="train")
    assert keys(grown["some"]) == chosen
    less = grown.delete(keys=chosen[2:4])
    assert keys(less["some"]) == chosen[:2] + chosen[4:] and keys(less.at()["some"]) == keys(less["some"])
    assert keys(st.Dataset(changing.path, version=grown.version)["some"]) == chosen
    names = keys(less["train"])
    scored = less.add_columns({"key": names, "score": list(range(len(names)))}, split="train")
    assert scored["some"].columns["score"].tolist() == [names.index(key) for key in keys(scored["some"])]
    compacted = scored.compact()
    assert keys(compacted["some"]) == keys(less["some"]) and compacted["some"][0]["features"]["score"] == names.index(chosen[0])
    purged = compacted.purge(search=True)
    assert purged["found"] == [] and keys(compacted.at()["some"]) == keys(less["some"])
    assert keys(st.Dataset(changing.path, version=grown.version)["some"]) == keys(less["some"])
    assert keys(compacted.at().rollback(str(seen.version))["some"]) == keys(less["some"])
    assert st.verify(changing.path).good
    smaller = compacted.at().select("few", split="some", ids=[0, 2])
    assert keys(smaller["few"]) == [keys(less["some"])[0], keys(less["some"])[2]]
    assert smaller.remove_view("some").views == ["few"]


def test_names_of_views_and_splits_are_different(changing: st.Dataset, photos: Path) -> None:
    seen = changing.select("some", split="train", where="image/class/label=0")
    for name, problem in (("some", "has a view `some`"), ("train", "has a split `train`"), ("a/b", "a/b")):
        with pytest.raises(st.ShardtoolError, match=problem):
            seen.select(name, split="train", where="image/class/label=1")
    replaced = seen.select("some", split="train", where="image/class/label=1", replace=True)
    assert {record["label"] for record in replaced["some"][:]} == {1}
    with pytest.raises(st.PackError, match="some"):
        st.pack(photos, changing.path, split="some")
    for change in (
        lambda: replaced.delete(split="some", ids=[0]),
        lambda: replaced.compact(split="some"),
        lambda: replaced.append(photos, split="some"),
    ):
        with pytest.raises(st.ShardtoolError, match="`some` is a view"):
            change()
    with pytest.raises(st.PackError, match="key"):
        replaced.select("more", split="train", keys=["no such key"])
    with pytest.raises(st.OptionError, match="one of `where`, `keys` and `ids`"):
        replaced.select("more", split="train")
    assert replaced.select("dry", split="train", where="image/class/label=0", dry_run=True) is replaced
    assert replaced.at().views == ["some"]


def test_commands_read_a_view(changing: st.Dataset, tmp_path: Path) -> None:
    path = changing.path
    chosen = run("select", path, "some", "--split", "train", "--where", "image/class/label=0", "--json")
    assert chosen.returncode == 0, chosen.stderr
    count = json.loads(chosen.stdout)["records"]
    listed = json.loads(run("ls", path, "--split", "some", "--json").stdout)
    assert len(listed["listed"]) == count
    info = json.loads(run("info", path, "--json").stdout)
    assert info["views"] == [{"name": "some", "split": "train", "records": count, "where": ["image/class/label=0"]}]
    assert run("export", path, tmp_path / "folder", "--to", "folder", "--split", "some").returncode == 0
    assert sum(1 for file in (tmp_path / "folder").rglob("*.jpg")) == count
    copied = run("copy", path, tmp_path / "copy")
    assert copied.returncode == 0, copied.stderr
    assert keys(st.Dataset(tmp_path / "copy")["some"]) == keys(st.Dataset(path)["some"])


def test_a_damaged_or_absent_bitmap_delivers_no_record(changing: st.Dataset) -> None:
    seen = changing.select("some", split="train", where="image/class/label=0")
    (bitmap,) = (Path(seen.path) / "_columns").iterdir()
    whole = bitmap.read_bytes()
    bitmap.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert not st.verify(seen.path).good
    with pytest.raises(st.DamageError):
        st.Dataset(seen.path)["some"][:]
    bitmap.unlink()
    assert not st.verify(seen.path).good
    with pytest.raises(st.ShardtoolError):
        st.Dataset(seen.path)["some"][:]
    assert len(st.Dataset(seen.path)["train"][:]) == len(seen["train"])


def test_a_view_with_a_deleted_row_delivers_no_record(changing: st.Dataset) -> None:
    """A manifest that was edited by hand names the bitmap that the view had before the deletion."""
    seen = changing.select("some", split="single", where="image/class/label=0")
    less = seen.delete(split="single", keys=[seen["some"][0]["key"]])
    path = Path(less.path) / "dataset.json"
    line = next(line for line in path.read_text().splitlines() if '"absent"' in line)
    before = (Path(less.path) / "_versions" / f"{seen.version:06}.json").read_text()
    path.write_text(path.read_text().replace(line, next(line for line in before.splitlines() if '"absent"' in line)))
    assert run("repair", less.path, "--reseal").returncode == 0
    edited = st.Dataset(less.path)
    assert len(edited["some"]) == len(seen["some"])
    with pytest.raises(st.DamageError, match="a view has a row that its split has deleted"):
        edited["some"][0]
    assert not st.verify(less.path).good and len(edited["single"][:]) == len(less["single"])


def test_views_of_a_mixture(changing: st.Dataset) -> None:
    seen = changing.select("zero", split="train", where="image/class/label=0")
    seen = seen.select("one", split="train", where="image/class/label=1")
    fields = [st.Image([st.Resize(20), st.CenterCrop(16)])]
    splits = [seen["zero"], seen["one"]]
    with st.Loader(splits, 8, fields, order=st.Shuffled(1), source=st.Mixture([3, 1], draws=80)) as loader:
        labels = np.concatenate([np.asarray(batch["label"]) for batch in loader])
    assert len(labels) == 80 and set(labels.tolist()) == {0, 1} and (labels == 0).sum() > 40
