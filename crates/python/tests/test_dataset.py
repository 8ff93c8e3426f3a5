"""Datasets, splits, records and columns, compared with the files that were packed."""

import dataclasses
import io
import pickle
import tarfile

import numpy as np
import pytest
from PIL import Image
from conftest import CLASSES, COUNT, EACH

import shardtool as st


def test_dataset_and_split_report_names_and_counts(dataset):
    opened = st.Dataset(dataset)
    assert opened.splits == ["single", "train"]
    assert opened.classes == CLASSES
    assert opened.features["image/class/label"] == "int64"
    split = opened.split("train")
    assert (len(split), split.name, split.path) == (COUNT, "train", dataset)
    assert sum(len(shard) for shard in split.shards) == COUNT
    assert [shard.path.stat().st_size for shard in split.shards] == [shard.bytes for shard in split.shards]
    assert "105 records in 3 shards" in repr(split)


def test_records_contain_the_packed_files(photos, train):
    seen = set()
    for record in (train[i] for i in range(len(train))):
        name, _ = record["key"].split("/")
        assert record["image"] == (photos / record["key"]).read_bytes()
        assert CLASSES[record["label"]] == name
        assert record["features"]["image/class/text"] == name.encode()
        assert record["features"]["image/format"] == b"jpeg"
        assert "image/encoded" not in record["features"]
        seen.add(record["key"])
    assert len(seen) == COUNT


def test_negative_indexes_count_from_the_end(train):
    assert train[-1] == train[COUNT - 1]
    for outside in (COUNT, -COUNT - 1):
        with pytest.raises(IndexError, match=f"{COUNT}"):
            train[outside]
    # Iteration through `__getitem__` ends at the first IndexError.
    assert sum(1 for _ in train) == COUNT


def test_columns_match_the_records(train):
    labels, widths = train.columns["image/class/label"], train.columns["image/width"]
    assert labels.dtype == np.int64 and labels.shape == (COUNT,)
    assert labels.tolist() == [train[i]["label"] for i in range(COUNT)]
    assert widths.tolist() == [train[i]["features"]["image/width"] for i in range(COUNT)]
    assert np.bincount(labels).tolist() == [EACH] * 3
    assert "image/width" in train.columns and set(train.columns) == set(train.columns.keys())
    assert train.columns["image/class/label"] is labels
    with pytest.raises(KeyError, match="image/class/label"):
        train.columns["no such feature"]


def test_columns_of_one_shard_are_views_of_its_index(dataset):
    split = st.Dataset(dataset).split("single")
    [shard] = split.shards
    index = dataset / "_index" / (shard.path.name + ".index")
    array = shard.columns["image/class/label"]
    assert address(array) in mapped(index)
    assert address(array) == address(split.columns["image/class/label"])
    assert not array.flags.writeable
    # The array keeps the mapping alive.
    expected = array.tolist()
    del split, shard
    assert array.tolist() == expected


def address(array):
    return array.__array_interface__["data"][0]


def mapped(index):
    """Every address at which the index is mapped, at a multiple of 64 from its beginning."""
    found = set()
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.rstrip().endswith(str(index)):
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                found.update(range(start, end, 64))
    assert found, "the index is mapped"
    return found


def test_truncated_shard_costs_the_records_behind_its_end(photos, tmp_path):
    st.pack(photos, tmp_path / "data", shards=1)
    split = st.Dataset(tmp_path / "data").split("train")
    [shard] = split.shards
    split[0]
    with open(shard.path, "r+b") as file:
        file.truncate(shard.bytes // 2)
    good, lost = [], []
    for number in range(COUNT):
        try:
            good.append(split[number]["key"])
        except OSError as error:
            lost.append(number)
            assert error.filename == str(shard.path) and "truncated" in str(error)
    assert len(good) > COUNT // 4 and len(lost) > COUNT // 4
    assert lost == list(range(len(good), COUNT))


def test_tfrecord_files_open_without_a_manifest(dataset):
    split = st.Dataset(f"{dataset}/train-*").split("train")
    assert len(split) == COUNT and len(split.columns) == 0
    assert split[0]["key"] == st.Dataset(dataset).split("train")[0]["key"]


def test_datasets_and_splits_can_be_pickled(train):
    again = pickle.loads(pickle.dumps(train))
    assert again.fingerprint == train.fingerprint and again[5] == train[5]
    opened = st.Dataset(train.path)
    assert pickle.loads(pickle.dumps(opened)).splits == opened.splits


def test_missing_dataset_or_split_raises(dataset, tmp_path):
    with pytest.raises(st.DatasetError, match="shardtool pack"):
        st.Dataset(tmp_path)
    with pytest.raises(st.SplitError, match="single, train") as caught:
        st.Dataset(dataset).split("test")
    assert isinstance(caught.value, LookupError)


def test_damage_is_reported_with_its_location(dataset, photos, tmp_path):
    st.pack(photos, tmp_path / "damaged", shards=2)
    [shard, _] = st.Dataset(tmp_path / "damaged").split("train").shards
    split = st.Dataset(tmp_path / "damaged").split("train")
    image, key = split[7]["image"], split[7]["key"]
    at = shard.path.read_bytes().index(image) + len(image) // 2
    with open(shard.path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    with pytest.raises(st.DamageError) as caught:
        st.Dataset(tmp_path / "damaged").split("train")[7]
    error = caught.value
    assert (error.name, error.shard, error.record, error.key) == ("DataCrc", str(shard.path), 7, key)
    assert error.offset < at and len(error.expected) == len(error.found) == 8 and error.expected != error.found
    assert key in str(error)

    report = st.verify(tmp_path / "damaged")
    assert not report.good and report.good_records == COUNT - 1
    damage = next(d for d in report.damages if d.name == "DataCrc")
    assert (damage.record, damage.key, damage.offset) == (7, key, error.offset)
    assert len(report.damages) == 1 and str(report).endswith(" bytes: 1 finding")
    assert str(dataclasses.replace(report, damages=[damage] * 3)).endswith(" bytes: 3 findings")
    assert st.verify(dataset, decode=True).good

    # The loader masks the sample and lists it; with `bad_samples="error"` it raises with the location.
    loader = st.Loader(split_of(tmp_path), 5, [st.ResizeTo(8)], order=st.Sequential(), bad_samples="mask")
    ids = [i for batch in loader for i in batch["id"][batch["valid"]]]
    assert sorted(ids) == [i for i in range(COUNT) if i != 7]
    [bad] = loader.bad_samples()
    assert (bad["id"], bad["record"], bad["key"], bad["offset"]) == (7, 7, key, error.offset)
    strict = st.Loader(split_of(tmp_path), 5, [st.ResizeTo(8)], order=st.Sequential(), bad_samples="error")
    with pytest.raises(st.BadSampleError) as caught:
        list(iter_dropping(strict))
    assert (caught.value.id, caught.value.key, caught.value.offset) == (7, key, error.offset)


def split_of(path):
    return st.Dataset(path / "damaged").split("train")


def iter_dropping(loader):
    for batch in loader:
        yield len(batch["id"])


def test_pack_returns_a_summary_and_rejects_other_options(photos, tmp_path):
    packed = st.pack(photos, tmp_path / "out", shard_size="64KiB", seed=None)
    assert (packed.split, packed.images, packed.classes, packed.rejected) == ("train", COUNT, 3, 0)
    assert packed.fingerprint == st.Dataset(tmp_path / "out").split("train").fingerprint
    assert not packed.already_complete
    again = st.pack(photos, tmp_path / "out", shard_size="64KiB", seed=None)
    assert again == packed and again.already_complete
    with pytest.raises(st.PackError, match="different (seed|shards): .* before, .* now") as error:
        st.pack(photos, tmp_path / "out")
    assert "`force=True`" in str(error.value) and "--" not in str(error.value)
    with pytest.raises(st.OptionError, match="not both"):
        st.pack(photos, tmp_path / "other", shards=2, shard_size="1MiB")
    with pytest.raises(st.OptionError, match="parsecs"):
        st.pack(photos, tmp_path / "other", shard_size="5 parsecs")
    (photos / "owl" / "torn.jpg").write_bytes((photos / "owl" / "000.jpg").read_bytes()[:500])
    try:
        packed = st.pack(photos, tmp_path / "other")
        assert packed.rejected == 1 and "torn.jpg" in open(packed.rejected_file).read()
    finally:
        (photos / "owl" / "torn.jpg").unlink()


def test_map_selects_the_fields_of_an_archive(tmp_path):
    encoded = io.BytesIO()
    Image.new("RGB", (20, 10), (9, 200, 30)).save(encoded, "PNG")
    with tarfile.open(tmp_path / "shard.tar", "w") as tar:
        for key, label in [("a", b"3"), ("b", b"4")]:
            for extension, data in [("picture", encoded.getvalue()), ("number", label)]:
                info = tarfile.TarInfo(f"{key}.{extension}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    names = {"image": "picture", "label": "number"}
    # Texts are names of classes, which have no offset.
    with pytest.raises(st.OptionError, match="label offset"):
        st.pack(tmp_path / "shard.tar", tmp_path / "set", kind="webdataset", map=names, label_offset=3)
    packed = st.pack(tmp_path / "shard.tar", tmp_path / "set", kind="webdataset", map=names)
    assert packed.images == 2 and packed.rejected == 0
    split = st.Dataset(tmp_path / "set").split("train")
    found = {sample["key"]: (sample["image"], sample["label"]) for sample in (split[0], split[1])}
    assert found == {"a": (encoded.getvalue(), 0), "b": (encoded.getvalue(), 1)} and split.classes == ["3", "4"]
    with pytest.raises(st.OptionError, match="kind"):
        st.pack(tmp_path / "shard.tar", tmp_path / "other", kind="zip")
