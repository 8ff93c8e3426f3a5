"""Versions of a dataset: changes from Python, and what every reader of a version sees."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import shardtool as st

STEPS = [st.Resize(20), st.CenterCrop(16)]


@pytest.fixture
def changing(dataset: Path, tmp_path: Path) -> st.Dataset:
    """A copy of the photographs: `train` of three shards, `single` of one."""
    shutil.copytree(dataset, tmp_path / "changing")
    return st.Dataset(tmp_path / "changing")


def keys(split: st.Split) -> list[str]:
    return [split[record]["key"] for record in range(len(split))]


def delivered(split: st.Split, fields: list) -> dict[str, list]:
    """Returns the columns of all batches of a sequential epoch."""
    found: dict[str, list] = {}
    with st.Loader(split, 5, fields, order=st.Sequential(), remainder="mask") as loader:
        for batch in loader:
            for name in batch.keys() - {"valid"}:
                rows = [np.array(row) for row, valid in zip(batch[name], batch.get("valid", [True] * 5), strict=True) if valid]
                found.setdefault(name, []).extend(rows)
    return found


def test_a_dict_becomes_columns(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    table = {
        "key": names,
        "caption": [f"photograph {name}" for name in names],
        "score": np.linspace(0, 1, len(names), dtype=np.float32),
        "exact": [0.1 * number for number in range(len(names))],
        "tags": [list(range(number % 4)) for number in range(len(names))],
    }
    changed = changing.add_columns(table, split="train", message="captions")
    assert (changing.version, changed.version) == (1, 2)
    assert changed.features["caption"] == "bytes" and changed.features["score"] == "float"
    assert changed.features["exact"] == "float64" and changed.features["tags"] == "int64"
    for number, record in enumerate(changed["train"][:]):
        assert record["features"]["caption"] == table["caption"][number].encode()
        assert record["features"]["score"] == table["score"][number]
        assert record["features"]["exact"] == table["exact"][number]
        tags = record["features"].get("tags", [])
        assert (tags if isinstance(tags, list) else [tags]) == table["tags"][number]
    assert changed["train"].columns["score"].tolist() == table["score"].tolist()
    assert "caption" not in st.Dataset(changing.path, version=1).features


def test_the_image_of_a_changed_record_is_that_of_the_photograph(changing: st.Dataset) -> None:
    before = [record["image"] for record in changing["train"][:]]
    changed = changing.add_columns(lambda record: {"length": len(record["image"])}, split="train")
    assert [record["image"] for record in changed["train"][:]] == before
    assert [record["features"]["length"] for record in changed["train"][:]] == [len(image) for image in before]


def test_an_arrow_table_and_a_file_become_columns(changing: st.Dataset, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = keys(changing["train"])
    numbers = pa.array([None if n % 5 == 0 else n for n in range(len(names))], pa.int64())
    changed = changing.add_columns(pa.table({"key": names, "n": numbers}), split="train")
    assert changed["train"].columns["n"].tolist() == numbers.to_pylist()
    parquet.write_table(pa.table({"key": names, "m": pa.array(range(len(names)), pa.int64())}), tmp_path / "m.parquet")
    changed = changed.add_columns(tmp_path / "m.parquet", split="train")
    assert changed["train"].columns["m"].tolist() == list(range(len(names)))


def test_rows_without_keys_need_the_version_whose_records_they_follow(changing: st.Dataset) -> None:
    split = changing["train"]
    embedding = np.random.default_rng(7).normal(size=(len(split), 6)).astype(np.float32)
    with pytest.raises(st.PackError, match="rows-of|rows_of"):
        changing.add_columns({"embedding": embedding}, split="train")
    changed = changing.add_columns({"embedding": embedding}, split="train", rows_of=1)
    found = [record["features"]["embedding"] for record in changed["train"][:]]
    assert np.array_equal(np.array(found, np.float32), embedding)
    with pytest.raises(st.PackError, match="version"):
        changed.add_columns({"other": embedding}, split="train", rows_of=1)


def test_a_loader_sees_the_version_with_columns_of_three_changes(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    one = changing.add_columns({"key": names, "a": np.arange(len(names))}, split="train")
    two = one.add_columns({"key": names, "b": np.arange(len(names)) * 0.5}, split="train", columns={"b": "float"})
    gone = set(names[3::4])
    three = two.delete(keys=gone)
    four = three.replace_columns({"key": [n for n in names if n not in gone], "a": [-n for n in range(len(names)) if names[n] not in gone]}, split="train")
    live = [n for n in range(len(names)) if names[n] not in gone]
    found = delivered(four["train"], [st.Image(STEPS), "a", "b", "image/width"])
    assert found["a"] == [-n for n in live]
    assert found["b"] == [n * 0.5 for n in live]
    old = delivered(changing["train"], [st.Image(STEPS), "image/width"])
    assert found["image/width"] == [old["image/width"][n] for n in live]
    assert found["label"] == [old["label"][n] for n in live]
    assert all(np.array_equal(found["image"][k], old["image"][n]) for k, n in enumerate(live))
    # The arrays of columns have the live records only, in their order.
    assert four["train"].columns["a"].tolist() == found["a"]
    assert four["train"].columns["image/width"].tolist() == found["image/width"]
    assert keys(four["train"]) == [names[n] for n in live]
    assert four["train"].find(names[live[5]]) == 5
    with pytest.raises(st.RecordKeyError):
        four["train"].find(names[3])


def test_labels_are_replaced_by_ids_and_by_names(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    label = changing["train"].label
    changed = changing.replace_columns({"key": names, label: [2] * len(names)}, split="train")
    found = delivered(changed["train"], [st.Image(STEPS)])
    assert {int(label) for label in found["label"]} == {2}
    assert {record["features"]["image/class/text"] for record in changed["train"][:]} == {changing.classes[2].encode()}
    named = changed.replace_columns({"key": names, "label": [changing.classes[n % 3] for n in range(len(names))]}, split="train")
    assert [record["label"] for record in named["train"][:]] == [n % 3 for n in range(len(names))]
    ids = named.replace_columns({"key": names, "label": np.ones(len(names), np.int64)}, split="train")
    assert {record["features"]["image/class/text"] for record in ids["train"][:]} == {changing.classes[1].encode()}
    for wrong in (["fox"] * len(names), [3] * len(names), [-1] * len(names), [[0, 1]] * len(names)):
        with pytest.raises(st.PackError, match="class"):
            ids.replace_columns({"key": names, "label": wrong}, split="train")
    assert {int(label) for label in delivered(changing["train"], [st.Image(STEPS)])["label"]} == {0, 1, 2}


def test_a_dropped_column_is_gone_in_the_new_version_only(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    added = changing.add_columns({"key": names, "a": list(range(len(names)))}, split="train")
    changed = added.drop_columns(["a", "image/class/label", "image/class/text"])
    assert changed["train"].label is None and "a" not in changed.features and "a" in added.features
    assert changed["train"][0]["label"] is None and not changed["train"][0]["features"].keys() & {"a", "image/class/text"}
    assert added["train"][7]["features"]["a"] == 7
    with pytest.raises(st.ColumnError):
        changed["train"].columns["a"]


def test_a_pickled_dataset_stays_at_its_version(changing: st.Dataset) -> None:
    stored = pickle.dumps((changing, changing["train"]))
    later = changing.delete(where="image/class/label=0")
    restored, split = pickle.loads(stored)
    assert restored.version == 1 and len(split) == len(changing["train"])
    assert len(restored.at()["train"]) == len(later["train"]) < len(split)
    again = pickle.loads(pickle.dumps(later["train"]))
    later.tag("x").delete(where="image/class/label=1")
    assert keys(again) == keys(later["train"])


def test_a_resume_state_of_another_version_is_refused(changing: st.Dataset) -> None:
    loader = st.Loader(changing["train"], 8, STEPS)
    next(iter(loader))
    state = loader.state_dict()
    changed = changing.delete(ids=[0], split="train")
    with pytest.raises(st.StateError):
        st.Loader(changed["train"], 8, STEPS).load_state_dict(state)
    st.Loader(changed.at(1)["train"], 8, STEPS).load_state_dict(state)


def test_a_refused_change_changes_nothing(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    before = sorted(path.relative_to(changing.path) for path in Path(changing.path).rglob("*"))
    missing = {"key": names[:-1], "a": list(range(len(names) - 1))}
    for change, match in [
        (lambda: changing.add_columns(missing, split="train"), "1 record has no row"),
        (lambda: changing.add_columns({"key": [*names, "x"], "a": [0] * (len(names) + 1)}, split="train"), "x"),
        (lambda: changing.add_columns({"key": [*names, names[0]], "a": [0] * (len(names) + 1)}, split="train"), "twice|two"),
        (lambda: changing.add_columns({"key": names, "image/width": [0] * len(names)}, split="train"), "image/width"),
        (lambda: changing.replace_columns({"key": names, "a": [0] * len(names)}, split="train"), "`a`"),
        (lambda: changing.replace_columns({"key": names, "image/width": ["wide"] * len(names)}, split="train"), "image/width"),
        (lambda: changing.replace_columns({"key": names, "image/class/text": [1] * len(names), "label": [0] * len(names)}, split="train"), "names of classes"),
        (lambda: changing.replace_columns({"key": names, "image/encoded": [b""] * len(names)}, split="train"), "image/encoded"),
        (lambda: changing.delete(keys=["nobody"]), "nobody"),
        (lambda: changing.delete(where="nothing=1"), "nothing.*the dataset has image/channels"),
        (lambda: changing.drop_columns("nothing"), "nothing"),
        (lambda: changing.rollback(7), "7"),
        (lambda: changing.tag("deadbeef"), "deadbeef"),
    ]:
        with pytest.raises(st.ShardtoolError, match=match):
            change()
    with pytest.raises(st.OptionError, match="int64"):
        changing.add_columns({"key": names, "a": [0.5] * len(names)}, split="train", columns={"a": "int64"})
    with pytest.raises(st.OptionError, match="one of `where`, `keys` and `ids`"):
        changing.delete()
    assert changing.at().version == 1
    assert sorted(path.relative_to(changing.path) for path in Path(changing.path).rglob("*")) == before


#: Columns with a value that would not be kept, and what the message says.
LOST = {
    "nested": ([[[1, 2], [3, 4]]], {}, "among its values"),
    "null in a list": ([[1.0, None]], {}, "None among its values"),
    "text as a number": (["1.5"], {"x": "float"}, "does not hold '1.5'"),
    "number as bytes": ([3], {"x": "bytes"}, "expected str or bytes"),
    "integer in floats": ([16_777_217], {"x": "float"}, "does not hold 16777217"),
    "integer next to a float": ([2**53 + 1, 0.5], {}, "does not hold 9007199254740993"),
    "array of integers in floats": (np.array([16_777_217]), {"x": "float"}, "does not hold 16777217"),
    "infinite in 32 bits": ([1e39], {"x": "float"}, "does not hold 1e"),
    "array infinite in 32 bits": (np.array([1e39]), {"x": "float"}, "does not hold 1e"),
    "longdouble": (np.array([1], np.longdouble), {}, "no feature holds"),
    "too large": ([2**64], {}, "no type holds"),
    "too small": ([-1, 2**63], {}, "no type holds"),
    "fraction as an integer": ([0.5], {"x": "int64"}, "does not hold 0.5"),
    "no such type": ([1], {"x": "int32"}, "'int32'"),
    "type of no column": ([1], {"y": "int64"}, "no column 'y'"),
    "a text": ("abc", {}, "expected a list"),
}


@pytest.mark.parametrize("case", LOST)
def test_a_value_is_kept_or_refused(changing: st.Dataset, case: str) -> None:
    values, types, message = LOST[case]
    names = keys(changing["train"])
    column = values if isinstance(values, str) else values.repeat(len(names)) if isinstance(values, np.ndarray) else values * len(names)
    if case in ("integer next to a float", "too small"):
        column = values + [values[1]] * (len(names) - 2)
    with pytest.raises((st.OptionError, st.OptionTypeError), match=message):
        changing.add_columns({"key": names, "x": column}, split="train", columns=types)
    assert changing.at().version == 1


def test_nested_lists_of_arrow_are_refused_and_others_keep_their_types(changing: st.Dataset) -> None:
    pa = pytest.importorskip("pyarrow")
    names = keys(changing["train"])
    nested = pa.array([[[n, n]] for n in range(len(names))])
    with pytest.raises(st.OptionError, match="among its values"):
        changing.add_columns(pa.table({"key": names, "x": nested}), split="train")
    table = pa.table({"key": names, "f": pa.array([[0.5, 1.5]] * len(names), pa.list_(pa.float32())), "u": pa.array([2**63] * len(names), pa.uint64())})
    changed = changing.add_columns(table, split="train")
    assert (changed.features["f"], changed.features["u"]) == ("float", "uint64")
    assert changed["train"][3]["features"]["f"] == [0.5, 1.5] and changed["train"][3]["features"]["u"] == 2**63


def test_what_is_deleted_is_named_exactly(changing: st.Dataset) -> None:
    for ids in ([1.7], [True, False], [-1], ["1"], np.array([True, False])):
        with pytest.raises(st.OptionTypeError, match="an id is"):
            changing.delete(ids=ids, split="train")
    with pytest.raises(st.OptionTypeError, match="a key is int"):
        changing.delete(keys=[3])
    name = keys(changing["train"])[4]
    assert len(changing.delete(keys=name, split="train")["train"]) == len(changing["train"]) - 1
    twice = changing.at().delete(ids=np.array([0, 1]), split=["train", "train"])
    assert len(twice["train"]) == len(changing["train"]) - 3


def test_labels_and_names_of_classes_agree(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    label, classes = "image/class/label", changing.classes
    for ids, texts in ([0, "owl"], [77, "wolf"], [1, "wolf"]):
        with pytest.raises(st.PackError, match="class|name"):
            changing.replace_columns({"key": names, label: [ids] * len(names), "image/class/text": [texts] * len(names)}, split="train")
    changed = changing.replace_columns({"key": names, label: [2] * len(names), "image/class/text": [classes[2]] * len(names)}, split="train")
    assert {record["label"] for record in changed["train"][:]} == {2}
    # A label that was dropped comes back.
    dropped = changed.drop_columns([label, "image/class/text"])
    every = {"key": keys(dropped["train"]), "label": [classes[1]] * len(names)}
    with pytest.raises(st.PackError, match="all splits"):
        dropped.add_columns(every, split="train")


def test_an_archive_with_other_class_ids_is_not_appended(changing: st.Dataset, photos: Path, tmp_path: Path) -> None:
    for name in ("owl", "teapot"):
        (tmp_path / "two" / name).mkdir(parents=True)
        shutil.copy(photos / name / "000.jpg", tmp_path / "two" / name / "x.jpg")
    st.pack(tmp_path / "two", tmp_path / "other")
    for add_classes in (False, True):
        with pytest.raises(st.PackError, match="class id 0 is `owl` in the source and `heron`"):
            changing.append(tmp_path / "other", split="train", add_classes=add_classes)
    appended = changing.append(tmp_path / "two", split="train")
    assert appended["train"]["owl/x.jpg"]["label"] == 1 and appended["train"]["teapot/x.jpg"]["label"] == 2


def test_a_message_names_the_option_of_python(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    changed = changing.add_columns({"key": names, "a": [1] * len(names)}, split="train")
    with pytest.raises(st.PackError, match=r'`columns=\{"a": "int64"\}`'):
        changed.replace_columns({"key": names, "a": [0.5] * len(names)}, split="train")
    kept = changed.replace_columns({"key": names, "a": [2] * len(names)}, split="train", columns={"a": "int64"})
    assert set(kept["train"].columns["a"].tolist()) == {2}


def test_a_dry_run_writes_nothing(changing: st.Dataset) -> None:
    assert changing.delete(where="image/class/label=0", dry_run=True) is changing
    assert changing.at().version == 1 and not (Path(changing.path) / "_versions").exists()


def test_append_and_replace(changing: st.Dataset, photos: Path, tmp_path: Path) -> None:
    further = tmp_path / "further"
    (further / "owl").mkdir(parents=True)
    shutil.copy(photos / "owl" / "000.jpg", further / "owl" / "new.jpg")
    appended = changing.append(further, split="train")
    assert len(appended["train"]) == len(changing["train"]) + 1
    assert appended["train"]["owl/new.jpg"]["image"] == (photos / "owl" / "000.jpg").read_bytes()
    shutil.copy(photos / "owl" / "001.jpg", further / "owl" / "new.jpg")
    with pytest.raises(st.PackError, match="owl/new.jpg"):
        appended.append(further, split="train")
    replaced = appended.append(further, split="train", replace=True)
    assert len(replaced["train"]) == len(appended["train"])
    assert replaced["train"]["owl/new.jpg"]["image"] == (photos / "owl" / "001.jpg").read_bytes()
    (further / "fox").mkdir()
    shutil.copy(photos / "owl" / "002.jpg", further / "fox" / "a.jpg")
    (further / "owl" / "new.jpg").unlink()
    with pytest.raises(st.PackError, match="fox"):
        replaced.append(further, split="train")
    more = replaced.append(further, split="train", add_classes=True)
    assert more.classes == [*changing.classes, "fox"]
    assert more["train"]["fox/a.jpg"]["label"] == len(changing.classes)


@pytest.fixture
def listed(tmp_path: Path) -> st.Dataset:
    """Two records with a text, a score and a list of integers."""
    (tmp_path / "first.jsonl").write_text(
        '{"key": "a", "text": "one", "score": 0.5, "ids": [1, 2]}\n{"key": "b", "text": "two", "score": 1.5, "ids": [3]}\n'
    )
    st.pack(tmp_path / "first.jsonl", tmp_path / "listed", seed=None)
    return st.Dataset(tmp_path / "listed")


def test_appended_numbers_have_the_types_of_the_dataset(listed: st.Dataset, tmp_path: Path) -> None:
    source = tmp_path / "more.jsonl"
    source.write_text('{"key": "c", "text": "x", "score": 3, "ids": [4.0, 5]}\n{"key": "d", "text": "y", "score": 4, "ids": [6.5]}\n')
    with pytest.warns(st.ShardtoolWarning, match="rejected 1"):
        appended = listed.append(source)
    assert keys(appended["train"])[2:] == ["c"]
    record = appended["train"]["c"]["features"]
    assert record["score"] == 3.0 and appended.features["score"] == "float" and record["ids"] == [4, 5]
    (rejected,) = (json.loads(line) for line in next(Path(listed.path).glob("rejected-*.jsonl")).read_text().splitlines())
    assert "ids" in json.dumps(rejected) and "d" in json.dumps(rejected)


def test_appended_records_have_the_columns_of_the_version_and_no_dropped_ones(listed: st.Dataset, tmp_path: Path) -> None:
    ranked = listed.add_columns({"key": ["a", "b"], "rank": [1, 2]}).drop_columns(["score"])
    source = tmp_path / "more.jsonl"
    source.write_text('{"key": "c", "text": "x", "rank": 7, "ids": [4]}\n')
    appended = ranked.append(source)
    assert appended["train"].columns["rank"].tolist() == [1, 2, 7]
    assert [record["features"]["rank"] for record in appended["train"][:]] == [1, 2, 7]
    assert delivered(appended["train"], ["rank"])["rank"] == [1, 2, 7]
    replaced = appended.replace_columns({"key": ["a", "b", "c"], "rank": [4, 5, 6]})
    assert replaced["train"].columns["rank"].tolist() == [4, 5, 6]
    gone = replaced.drop_columns(["rank"])
    assert "rank" not in gone["train"]["c"]["features"] and "rank" not in gone.features
    compacted = replaced.rollback(str(appended.version)).compact()
    assert compacted["train"].columns["rank"].tolist() == [1, 2, 7]
    assert st.verify(listed.path).good
    for row, problem in (('"rank": 8, "score": 2.5', "score:float"), ('"rank": "high"', "`rank` is int64")):
        source.write_text(f'{{"key": "d", "text": "x", "ids": [4], {row}}}\n')
        for dry_run in (True, False):
            with pytest.raises(st.PackError, match=problem):
                compacted.append(source, dry_run=dry_run)


def test_numbers_of_a_text_have_the_precision_of_the_dataset(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("key,x\na,1.23456789012345\nb,0.5\n")
    (tmp_path / "b.csv").write_text("key,x\nc,0.1\n")
    (tmp_path / "c.jsonl").write_text('{"key": "d", "x": 0.1}\n')
    (tmp_path / "d.csv").write_text("key,x\na,0.1\nb,0.1\nc,0.1\nd,0.1\n")
    st.pack(tmp_path / "a.csv", tmp_path / "numbers", seed=None, split="train")
    dataset = st.Dataset(tmp_path / "numbers")
    assert dataset.features["x"] == "float64"
    dataset = dataset.append(tmp_path / "b.csv", split="train").append(tmp_path / "c.jsonl", split="train")
    assert dataset["train"].columns["x"].tolist() == [1.23456789012345, 0.5, 0.1, 0.1]
    st.pack(tmp_path / "b.csv", dataset.path, split="validation")
    assert st.Dataset(dataset.path)["validation"][0]["features"]["x"] == 0.1
    replaced = dataset.at().replace_columns(tmp_path / "d.csv", split="train")
    assert replaced["train"].columns["x"].tolist() == [0.1] * 4


def test_a_changed_dataset_is_no_source_of_shards(changing: st.Dataset, tmp_path: Path) -> None:
    gone = keys(changing["train"])[0]
    less = changing.delete(keys=[gone], split="train")
    for source in (less.path, f"{less.path}/"):
        with pytest.raises(st.PackError, match="export .* --to tfrecord"):
            st.pack(source, tmp_path / "again")
    command = [sys.executable, "-m", "shardtool", "export", less.path, tmp_path / "out", "--to", "tfrecord", "--split", "train"]
    subprocess.run(command, check=True, capture_output=True)
    # Nor with a damaged manifest.
    manifest = Path(less.path) / "dataset.json"
    manifest.write_text(manifest.read_text().replace("requires", "require5"))
    with pytest.raises(st.ShardtoolError, match=r"dataset\.json"):
        st.pack(less.path, tmp_path / "again")
    st.pack(tmp_path / "out", tmp_path / "again")
    assert gone not in keys(st.Dataset(tmp_path / "again")["train"])


def test_a_dataset_as_source_keeps_the_names_of_classes_that_do_not_occur(changing: st.Dataset, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "few" / "owl").mkdir(parents=True)
    shutil.copy(photos / "owl" / "000.jpg", tmp_path / "few" / "owl" / "new.jpg")
    classes = tmp_path / "classes"
    classes.write_text("\n".join(changing.classes))
    st.pack(tmp_path / "few", tmp_path / "source", classes=classes)
    appended = changing.append(tmp_path / "source", split="train")
    assert appended.classes == changing.classes
    assert appended["train"]["owl/new.jpg"]["label"] == changing.classes.index("owl")


def test_a_version_with_columns_is_resharded(changing: st.Dataset, tmp_path: Path) -> None:
    names = keys(changing["train"])
    added = changing.add_columns({"key": names, "score": list(range(len(names)))}, split="train")
    command = [sys.executable, "-m", "shardtool", "reshard", added.path, tmp_path / "again", "--shards", "2"]
    subprocess.run(command, check=True, capture_output=True)
    again = {record["key"]: record["features"]["score"] for record in st.Dataset(tmp_path / "again")["train"][:]}
    assert again == {name: number for number, name in enumerate(names)}


def test_gc_removes_unfinished_files(changing: st.Dataset) -> None:
    left = Path(changing.path) / ".train-0123456789012345-00000.tfrecord.0123456789abcdef.tmp"
    left.write_bytes(b"half")
    others = Path(changing.path) / ".notes.0123456789abcdef.tmp"
    others.write_bytes(b"mine")
    assert changing.gc() == [left.name] == changing.gc(remove=True)
    assert others.exists() and not left.exists()


def test_a_dry_run_of_append_compares_keys(listed: st.Dataset, tmp_path: Path) -> None:
    source = tmp_path / "more.jsonl"
    source.write_text('{"key": "b", "text": "x", "score": 1, "ids": [4]}\n')
    with pytest.raises(st.PackError, match="key `b`"):
        listed.append(source, dry_run=True)
    assert listed.append(source, dry_run=True, replace=True) is listed
    assert not (Path(listed.path) / "_versions").exists()


def test_history_tags_rollback_compact_and_gc(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    changing.tag("first", 1)
    two = changing.delete(where="image/class/label=0", message="withdrawn", author="ada")
    back = two.rollback("first")
    assert keys(back["train"]) == names
    compacted = two.at(two.version)  # stays readable
    assert len(compacted["train"]) < len(names)
    log = back.log()
    assert [entry["version"] for entry in log] == list(range(back.version, 0, -1))
    assert [entry["command"] for entry in log] == ["rollback 1", "delete", "tag first", None]
    assert (log[1]["message"], log[1]["author"]) == ("withdrawn", "ada")
    assert log[-1]["tags"] == ["first"]
    assert st.Dataset(f"{changing.path}@first").version == 1
    assert st.Dataset(changing.path, version=log[1]["checksum"]).version == log[1]["version"]
    three = back.delete(where="image/class/label=1").compact()
    kept = [record["key"] for record in three["train"][:]]
    assert kept == [name for name, record in zip(names, changing["train"][:], strict=True) if record["label"] != 1]
    listed = three.gc(keep=1)
    assert listed and all((Path(three.path) / name).exists() for name in listed)
    assert sorted(three.gc(keep=1, remove=True)) == sorted(listed)
    assert not any((Path(three.path) / name).exists() for name in listed)
    assert [record["key"] for record in st.Dataset(three.path)["train"][:]] == kept
    assert keys(st.Dataset(three.path, version="first")["train"]) == names
    assert st.verify(three.path).good


def test_a_damaged_file_of_a_change_is_an_error_and_never_an_older_value(changing: st.Dataset) -> None:
    names = keys(changing["train"])
    label = changing["train"].label
    changed = changing.replace_columns({"key": names, label: [1] * len(names)}, split="train")
    [file] = (Path(changing.path) / "_columns").glob("*.columns")
    data = bytearray(file.read_bytes())
    data[-40:] = bytes(40)
    file.write_bytes(data)
    opened = st.Dataset(changing.path)["train"]
    labels = []
    for record in range(len(opened)):
        try:
            labels.append(opened[record]["label"])
        except st.DamageError:
            labels.append(None)
    assert None in labels and set(labels) <= {1, None}
    report = st.verify(changing.path)
    assert {damage.name for damage in report.damages} == {"ColumnCrc"} and "_columns" in str(report)
    file.unlink()
    with pytest.raises(st.DamageError, match="MissingCompanion|is missing|was not found"):
        st.Dataset(changing.path)["train"][0]
    assert changed.version == 2


def test_without_the_list_of_deleted_records_none_is_delivered(changing: st.Dataset) -> None:
    changing.delete(ids=[1, 2], split="single")
    [file] = (Path(changing.path) / "_columns").glob("*.deleted")
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    split = st.Dataset(changing.path)["single"]
    for record in (0, 1, len(split) - 1):
        with pytest.raises(st.DamageError):
            split[record]
    with st.Loader(split, 4, STEPS, order=st.Sequential()) as loader:
        with pytest.warns(st.ShardtoolWarning, match=r"\.deleted"), pytest.raises(st.BadSampleError, match=r"\.deleted"):
            for _ in loader:
                pass
        assert {bad["name"] for bad in loader.bad_samples()} == {"CompanionCrc"}


def test_commands_print_one_document(changing: st.Dataset) -> None:
    path = str(changing.path)
    names = keys(changing["train"])
    table = Path(path).parent / "a.csv"
    table.write_text("key,a\n" + "".join(f"{name},{n}\n" for n, name in enumerate(names)))
    command = [sys.executable, "-m", "shardtool"]
    for arguments, member, value in [
        (["column", "add", path, str(table), "--split", "train"], "version", 2),
        (["delete", path, "--where", "a<10"], "version", 3),
        (["tag", path, "t"], "version", 4),
        (["rollback", path, "2"], "version", 5),
        (["compact", path], "version", 6),
    ]:
        done = subprocess.run([*command, *arguments, "--json"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[member] == value, (arguments, done.stdout)
