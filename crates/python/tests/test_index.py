"""Datasets of files that stay where they are: the same batches as from the packed dataset, states that move, and what is refused."""

import io
import json
import multiprocessing
import pickle
import shutil
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shardtool as st
from PIL import Image

STEPS = [st.RandomResizedCrop(32), st.HorizontalFlip()]


@pytest.fixture
def folder(photos, tmp_path):
    """Class folders of their own, since a dataset is written into them."""
    shutil.copytree(photos, tmp_path / "folder")
    return tmp_path / "folder"


def image(seed):
    rng = np.random.default_rng(seed)
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (40 + seed % 9, 50, 3), np.uint8)).resize((50, 40)).save(file, "JPEG")
    return file.getvalue()


def photo(seed):
    """An image whose bytes Snappy does not make fewer, as those of a photograph."""
    file = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (90, 120, 3), np.uint8)
    Image.fromarray(pixels).save(file, "JPEG", quality=80)
    return file.getvalue()


def write_tars(folder, tars, samples):
    """Writes tars of samples with `tarfile`, as other programs do."""
    folder.mkdir()
    number = 0
    for tar in range(tars):
        with tarfile.open(folder / f"train-{tar:05}.tar", "w") as file:
            for _ in range(samples):
                caption = json.dumps({"caption": f"caption {number} " * 40, "score": number / 4})
                for name, data in (("jpg", image(number)), ("cls", b"%d" % (number % 3)), ("json", caption.encode())):
                    member = tarfile.TarInfo(f"{number:06}.{name}")
                    member.size = len(data)
                    file.addfile(member, io.BytesIO(data))
                number += 1


def batches(dataset, **options):
    with st.Loader(dataset["train"], 8, STEPS, order=st.Shuffled(seed=5), remainder="mask", **options) as loader:
        return [(batch["image"].copy(), batch["id"].copy()) for batch in loader]


def keys(split):
    return [record["key"] for record in split[:]]


def same(one, other):
    return len(one) == len(other) and all((a == b).all() and (i == j).all() for (a, i), (b, j) in zip(one, other))


def test_folder_has_the_batches_of_the_packed_one(folder, tmp_path):
    indexed = st.index(folder)
    packed = st.pack(folder, tmp_path / "packed")
    assert (indexed.fingerprint, indexed.images, indexed.rejected) == (packed.fingerprint, packed.images, packed.rejected)
    assert st.index(folder).already_complete
    here, there = st.Dataset(folder), st.Dataset(tmp_path / "packed")
    assert here.classes == there.classes and here.features == there.features
    assert same(batches(here), batches(there))
    assert same(batches(here, memory="64MiB", workers=3), batches(there))
    assert keys(here["train"]) == keys(there["train"])


def test_tars_have_the_batches_of_the_packed_ones(tmp_path):
    write_tars(tmp_path / "tars", 3, 7)
    st.index(tmp_path / "tars")
    st.pack(tmp_path / "tars", tmp_path / "packed")
    here, there = st.Dataset(tmp_path / "tars"), st.Dataset(tmp_path / "packed")
    assert here["train"].fingerprint == there["train"].fingerprint
    assert same(batches(here), batches(there))
    fields = [st.Image(STEPS), "caption", "score"]
    loaders = [st.Loader(dataset["train"], 8, fields) for dataset in (here, there)]
    for one, other in zip(*loaders, strict=True):
        assert list(one["caption"]) == list(other["caption"]) and (one["score"] == other["score"]).all()


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_parquet_has_the_batches_of_the_packed_one(tmp_path, compression):
    """In the layout of Hugging Face, in several row groups and pages, as pyarrow writes it."""
    (tmp_path / "rows").mkdir()
    for number in range(2):
        samples = range(30 * number, 30 * number + 25)
        table = pa.table({
            "image": pa.array([{"bytes": photo(i), "path": f"{i:04}.jpg"} for i in samples]),
            "label": [i % 3 for i in samples],
            "caption": [f"caption {i}" for i in samples],
        })
        path = tmp_path / f"rows/train-{number:05}-of-00002.parquet"
        pq.write_table(table, path, compression=compression, row_group_size=9, data_page_size=8000)
    with pytest.raises(st.errors.DatasetError, match="Parquet files.*shardtool.index"):
        st.open(tmp_path / "rows")
    st.index(tmp_path / "rows")
    st.pack(tmp_path / "rows", tmp_path / "packed")
    here, there = st.Dataset(tmp_path / "rows"), st.Dataset(tmp_path / "packed")
    assert here["train"].fingerprint == there["train"].fingerprint
    assert same(batches(here), batches(there)) and keys(here["train"]) == keys(there["train"])
    # Nearly all bytes are read from the Parquet files.
    index, packed = (sum(path.stat().st_size for path in folder.iterdir()) for folder in (tmp_path / "rows/_index", tmp_path / "packed"))
    assert index < 0.8 * packed
    st.index(tmp_path / "rows", tmp_path / "elsewhere", kind="parquet")
    assert st.verify(tmp_path / "elsewhere", source=tmp_path / "rows").good


def test_a_state_moves_between_the_source_and_the_packed_dataset(folder, tmp_path):
    st.index(folder)
    st.pack(folder, tmp_path / "packed")
    datasets = [st.Dataset(folder)["train"], st.Dataset(tmp_path / "packed")["train"]]
    for first, second in (datasets, datasets[::-1]):
        loader = st.Loader(first, 4, STEPS, order=st.Shuffled(seed=1))
        batch = iter(loader)
        for _ in range(3):
            next(batch)
        state = loader.state_dict()
        rest = [found["image"].copy() for found in batch]
        resumed = st.Loader(second, 4, STEPS, order=st.Shuffled(seed=1))
        resumed.load_state_dict(state)
        again = [found["image"].copy() for found in resumed]
        assert rest and len(rest) == len(again)
        assert all((a == b).all() for a, b in zip(rest, again))


def test_every_replica_and_worker_gets_its_share(tmp_path):
    """19 files on 8 ranks with 4 workers each: every sample once."""
    write_tars(tmp_path / "tars", 19, 5)
    st.index(tmp_path / "tars")
    split = st.Dataset(tmp_path / "tars")["train"]
    assert len(split) == 95
    seen = []
    for rank in range(8):
        options = {"replica": st.Replica(rank, 8), "workers": 4, "remainder": "mask"}
        for batch in st.Loader(split, 4, [st.Resize(20), st.CenterCrop(16)], order=st.Shuffled(seed=2), **options):
            seen += batch["id"][batch["valid"]].tolist()
    assert sorted(seen) == list(range(95))


def in_process(split, results):
    results.put((len(split), split[3]["key"]))


def test_other_places_need_a_word(folder, tmp_path):
    st.index(folder, tmp_path / "set")
    refused = st.Dataset(tmp_path / "set")["train"]
    with pytest.raises(st.errors.DatasetError, match=f"--source {folder}"):
        refused[0]
    with pytest.raises(st.errors.DatasetError, match="source="):
        st.verify(tmp_path / "set")
    with pytest.raises(st.errors.ShardtoolError, match=f"--source {folder}"):
        list(st.Loader(refused, 4, STEPS, bad_samples=st.BadSamples("substitute", max_bad=1000)))
    allowed = st.Dataset(tmp_path / "set", source=folder)
    assert allowed["train"][0]["image"] and st.verify(tmp_path / "set", source=[folder]).good
    for split in (pickle.loads(pickle.dumps(allowed["train"])), pickle.loads(pickle.dumps(allowed))["train"]):
        assert split[3]["key"] == allowed["train"][3]["key"]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=in_process, args=(allowed["train"], results))
    process.start()
    assert results.get(timeout=60) == (len(allowed["train"]), allowed["train"][3]["key"])
    process.join()
    assert allowed.at()["train"][0]["image"], "a version has the same word"


def test_other_places_are_allowed_by_the_environment(folder, tmp_path, monkeypatch):
    st.index(folder, tmp_path / "set")
    monkeypatch.setenv("SHARDTOOL_SOURCES", f"/nowhere,{folder}")
    assert len(batches(st.Dataset(tmp_path / "set"))) > 0
    # A comma in a path: with a line break, commas do not separate.
    comma = folder.rename(folder.with_name("one,two"))
    st.index(comma, tmp_path / "other")
    monkeypatch.setenv("SHARDTOOL_SOURCES", str(comma))
    with pytest.raises(st.errors.ShardtoolError, match="one,two") as refused:
        st.Dataset(tmp_path / "other")["train"][0]
    assert f"SHARDTOOL_SOURCES=$'{comma}\\n'" in str(refused.value)
    for value in (f"{comma}\n", f"/nowhere\n{comma}"):
        monkeypatch.setenv("SHARDTOOL_SOURCES", value)
        assert len(batches(st.Dataset(tmp_path / "other"))) > 0


def test_a_changed_file_is_a_bad_sample(folder):
    st.index(folder)
    split = st.Dataset(folder)["train"]
    victim = split[2]["key"]
    path = folder / victim
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)
    changed = st.Dataset(folder)["train"]
    with pytest.raises(st.errors.DamageError, match="not those that were indexed") as error:
        changed[2]
    assert error.value.name == "DataCrc" and victim in str(error.value)
    loader = st.Loader(changed, 4, STEPS, bad_samples="mask", remainder="mask")
    seen = [i for batch in loader for i in batch["id"][batch["valid"]].tolist()]
    assert sorted(seen) == [i for i in range(len(changed)) if i != 2]
    report = st.verify(folder)
    assert [(damage.name, damage.key) for damage in report.damages] == [("DataCrc", victim)]
    path.unlink()
    assert [damage.name for damage in st.verify(folder).damages] == ["MissingSource"]
    # The new index describes the files that the folder has now.
    assert st.index(folder).images == len(changed) - 1
    assert st.verify(folder).good


def test_open_says_what_lies_there(folder, tmp_path):
    with pytest.raises(st.errors.DatasetError, match="a folder of images.*shardtool.index"):
        st.open(folder)
    write_tars(tmp_path / "tars", 1, 2)
    with pytest.raises(st.errors.DatasetError, match="tars of samples.*shardtool.index"):
        st.open(tmp_path / "tars")
    (tmp_path / "empty").mkdir()
    with pytest.raises(st.errors.DatasetError, match="no dataset.json"):
        st.open(tmp_path / "empty")
    with pytest.raises(st.errors.DatasetError, match="no such file"):
        st.open(tmp_path / "nothing")
    st.index(folder)
    assert len(st.open(folder)["train"]) > 0


def test_columns_and_deletions_on_top(folder):
    st.index(folder)
    dataset = st.Dataset(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*.jp*g")}
    names = keys(dataset["train"])
    changed = dataset.add_columns({"key": names, "score": np.arange(len(names), dtype=np.float32)})
    changed = changed.delete(ids=[0, 1])
    assert keys(changed["train"]) == names[2:]
    batch = next(iter(st.Loader(changed["train"], 4, [st.Image(STEPS), "score"], order=st.Sequential())))
    assert batch["score"].tolist() == [2.0, 3.0, 4.0, 5.0]
    assert before and before == {path: path.read_bytes() for path in folder.rglob("*.jp*g")}
    with pytest.raises(st.errors.ShardtoolError, match="virtual shards"):
        changed.purge(forget_keys=False)
