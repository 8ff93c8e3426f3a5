"""Purge: what was deleted is in no file of the dataset, whatever changed it before; what was not deleted is as it was.

`SHARDTOOL_PURGED` is the number of purged records; `scripts/campaign purge` takes 1,000."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import shardtool as st
from conftest import frame
from PIL import Image

PURGED = int(os.environ.get("SHARDTOOL_PURGED", "45"))
#: Bytes of a window of an image, and of each text and vector.
WINDOW = 64
FACTOR = np.uint64(0x9E3779B97F4A7C15)
INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))


def windows(data: bytes, width: int) -> np.ndarray:
    """Returns the hashes of all windows of `width` bytes."""
    if len(data) < width:
        return np.empty(0, np.uint64)
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(len(data), FACTOR, np.uint64))
        inverse = np.cumprod(np.full(len(data), INVERSE, np.uint64))
        prefix = np.cumsum((np.frombuffer(data, np.uint8).astype(np.uint64) + np.uint64(1)) * powers)
        prefix = np.concatenate([np.zeros(1, np.uint64), prefix])
        return (prefix[width:] - prefix[:-width]) * inverse[: len(data) - width + 1]


def test_windows_are_equal_wherever_they_lie() -> None:
    random = np.random.default_rng(1)
    text, around = random.bytes(WINDOW), [random.bytes(n) for n in (0, 5, 1000)]
    hashes = {int(windows(before + text + b"x", WINDOW)[len(before)]) for before in around}
    assert len(hashes) == 1 and len(set(windows(random.bytes(5000), WINDOW).tolist())) == 5000 - WINDOW + 1


class Needles:
    """What is searched for: windows of images, keys, captions, vectors and boxes of records."""

    def __init__(self, records: list[dict]) -> None:
        images = [windows(record["image"], WINDOW) for record in records]
        self.images = np.unique(np.concatenate(images))
        self.others: dict[int, np.ndarray] = {}
        texts = [text for record in records for text in self.texts(record)]
        for width in {len(text) for text in texts}:
            self.others[width] = np.unique(np.concatenate([windows(text, width) for text in texts if len(text) == width]))

    @staticmethod
    def texts(record: dict) -> list[bytes]:
        features = record["features"]
        texts = [record["key"].encode()]
        if "caption" in features:
            texts.append(features["caption"])
        for name in ("embedding", "image/object/bbox"):
            if name in features:
                texts.append(np.asarray(features[name], "<f4").tobytes())
        return [text for text in texts if len(text) >= 12]

    def without(self, records: list[dict]) -> None:
        """Leaves out what other records have too: JPEG files share headers and tables."""
        for record in records:
            self.images = self.images[~np.isin(self.images, windows(record["image"], WINDOW))]
            for width, hashes in self.others.items():
                shared = [windows(text, width) for text in self.texts(record)]
                self.others[width] = hashes[~np.isin(hashes, np.concatenate(shared))]

    def found(self, folder: Path) -> dict[str, int]:
        """Returns how many of them each file has."""
        counts = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                count = int(np.isin(self.images, windows(data, WINDOW)).sum())
                count += sum(int(np.isin(hashes, windows(data, width)).sum()) for width, hashes in self.others.items())
                if count:
                    counts[str(path.relative_to(folder))] = count
        return counts

    def __len__(self) -> int:
        return len(self.images) + sum(map(len, self.others.values()))


def photograph(seed: int) -> bytes:
    """A JPEG file with other pixels for each seed, and the tables of all others."""
    random = np.random.default_rng(seed)
    small = random.integers(0, 256, (9, 12, 3), np.uint8)
    image = Image.fromarray(small).resize((96, 72), Image.Resampling.BICUBIC)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90)
    return out.getvalue()


def key(number: int) -> str:
    return f"c{number % 3}/person-{number:06}-{number * 7919 % 1000003:06}.jpg"


def contents(dataset: st.Dataset) -> dict[str, list[dict]]:
    return {name: dataset[name][:] for name in dataset}


def without(records: dict[str, list[dict]], purged: list[dict]) -> dict[str, list[dict]]:
    gone = {(record["key"], record["image"]) for record in purged}
    return {split: [r for r in rows if (r["key"], r["image"]) not in gone] for split, rows in records.items()}


@pytest.fixture
def changed(tmp_path: Path) -> tuple[st.Dataset, list[dict], list[dict]]:
    """A dataset of eleven versions, the records that it has deleted, and the ones that it has kept."""
    photos = tmp_path / "photos"
    count = 3 * PURGED
    for number in range(count):
        path = photos / key(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photograph(number))
    st.pack(photos, tmp_path / "set", split="train", shards=7)
    path = tmp_path / "set"
    third = PURGED // 3
    names = [key(number) for number in range(count)]
    random = np.random.default_rng(2)
    table = {"key": names, "caption": [f"a caption of person {n:06} that no other record has" for n in range(count)]}
    dataset = st.Dataset(path).tag("first")
    dataset = dataset.add_columns(table)
    dataset = dataset.add_columns({"key": names, "embedding": list(random.random((count, 8), np.float32))})
    boxes = [list(random.random(4 * (1 + n % 2)).astype(np.float32)) for n in range(count)]
    dataset = dataset.add_columns({"key": names, "vector": boxes})
    everything = contents(dataset)["train"]
    dataset = dataset.delete(keys=names[:third])
    dataset = dataset.replace_columns(
        {"key": names[third:], "caption": [f"another caption of {n:06}, as unique as that" for n in range(third, count)]}
    )
    dataset = dataset.compact()
    dataset = dataset.delete(keys=names[third : 2 * third])
    dataset = dataset.drop_columns(["vector"])
    # Other photographs under the keys of the last third.
    other = tmp_path / "other"
    for number in range(2 * third, 3 * third):
        image = other / key(number)
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(photograph(10**6 + number))
    dataset = dataset.append(other, split="train", replace=True)
    by_key = {record["key"]: record for record in everything}
    purged = [by_key[name] for name in names[: 3 * third]]
    kept = [by_key[name] for name in names[3 * third :]] + contents(dataset)["train"]
    return dataset, purged, kept


def test_what_was_purged_is_in_no_file(changed: tuple[st.Dataset, list[dict], list[dict]]) -> None:
    dataset, purged, kept = changed
    purged_is_gone(dataset, Path(dataset.path), purged, kept)


def test_what_was_purged_is_in_no_object(
    changed: tuple[st.Dataset, list[dict], list[dict]], bucket: Path, tmp_path: Path
) -> None:
    dataset, purged, kept = changed
    url = "s3://bucket/purged"
    command = [sys.executable, "-m", "shardtool", "copy", dataset.path, url, "--all-versions"]
    subprocess.run(command, check=True, capture_output=True)
    # With what the server remembers of the objects.
    purged_is_gone(st.Dataset(url), bucket.parent, purged, kept)


def purged_is_gone(dataset: st.Dataset, folder: Path, purged: list[dict], kept: list[dict]) -> None:
    """Purges a dataset whose files lie in a folder, and searches them."""
    path, third = dataset.path, PURGED // 3
    versions = [entry["version"] for entry in dataset.log()]
    before = {version: contents(st.Dataset(path, version=version)) for version in versions}
    needles = Needles(purged)
    needles.without(kept)
    assert len(needles.images) > 100 * PURGED
    assert len(needles.found(folder)) > 8, "the search finds them before the purge"
    planned = dataset.purge(dry_run=True)
    assert planned["version"] is None and planned["versions"] == sorted(versions)
    assert {version: contents(st.Dataset(path, version=version)) for version in versions} == before

    report = dataset.purge(search=True, message="by request", author="ada")
    assert report["records"] == {"train": 3 * third} and report["versions"] == sorted(versions)
    # The keys of the last third are those of other photographs now.
    assert report["remembered"] == 2 * third and report["copies"] == [] and report["found"] == []
    assert report["keeps_versions"] is False
    # Keys of the last third are still those of records.
    for width in list(needles.others):
        taken = [windows(record["key"].encode(), width) for record in kept]
        needles.others[width] = needles.others[width][~np.isin(needles.others[width], np.concatenate(taken))]
    print(f"{len(needles):,} windows searched in {sum(1 for _ in folder.rglob('*')):,} files")
    assert needles.found(folder) == {}
    newest = st.Dataset(path)
    for version in versions:
        now = st.Dataset(path, version=version)
        assert contents(now) == without(before[version], purged), version
        assert st.verify(f"{path}@{version}").good, version
    assert contents(newest) == without(before[versions[0]], purged) == before[versions[0]]
    assert [(entry["command"], entry["purged"]) for entry in newest.log()][:2] == [("purge", False), ("append", True)]
    assert st.verify(path).good
    again = newest.purge()
    assert (again["version"], again["records"], again["removed"]) == (None, {}, [])


def test_purged_keys_stay_out_until_they_are_forgotten(changed: tuple[st.Dataset, list[dict], list[dict]]) -> None:
    dataset, purged, _ = changed
    photos = Path(dataset.path).parent / "again"
    image = photos / purged[0]["key"]
    image.parent.mkdir(parents=True)
    image.write_bytes(purged[0]["image"])
    dataset.purge()
    newest = dataset.at()
    for dry_run in (True, False):
        with pytest.raises(st.PackError, match="of the source was purged from it; nothing"):
            newest.append(photos, split="train", dry_run=dry_run)
    newest.delete(keys=[newest["train"][0]["key"]]).purge(forget_keys=True)
    assert dataset.at().append(photos, split="train")["train"][purged[0]["key"]]["image"] == purged[0]["image"]


def test_copies_and_files_of_others_are_named(changed: tuple[st.Dataset, list[dict], list[dict]]) -> None:
    dataset, purged, _ = changed
    path = Path(dataset.path)
    copy = path.parent / "copy" / "c1" / "under-another-name.jpg"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(purged[3]["image"])
    dataset = dataset.append(copy.parents[1], split="train")
    (path / "notes.txt").write_text(f"deleted {purged[4]['key']}")
    (path / "left").mkdir()
    (path / "left" / "image.bin").write_bytes(b"some bytes before" + purged[5]["image"][300:])
    (path / "left" / "clean.txt").write_text("nothing of them")
    report = dataset.purge(search=True)
    assert report["copies"] == [("train", "c1/under-another-name.jpg")]
    assert report["others"] == ["left", "notes.txt"]
    assert report["found"] == ["left/image.bin", "notes.txt"]
    assert not (path / "notes.txt").read_text() == "", "files of others stay"


def test_keys_that_were_places_are_kept(tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    # Examples of one feature, `number`, without keys.
    value = [b"\x0a\x06number" + b"\x12\x05\x1a\x03\x0a\x01" + bytes([n]) for n in range(12)]
    examples = [b"\x0a" + bytes([len(v) + 2]) + b"\x0a" + bytes([len(v)]) + v for v in value]
    for shard in range(2):
        file = tmp_path / "packed" / f"train-{shard:05}.tfrecord"
        file.write_bytes(b"".join(map(frame, examples[6 * shard : 6 * shard + 6])))
    command = [sys.executable, "-m", "shardtool", "index", *sorted((tmp_path / "packed").iterdir())]
    subprocess.run(command, check=True, capture_output=True)
    names = [record["key"] for record in st.Dataset(tmp_path / "packed")["train"][:]]
    dataset = st.Dataset(tmp_path / "packed").delete(keys=names[2:5]).delete(keys=names[9:10])
    before = dataset["train"][:]
    assert dataset.purge()["records"] == {"train": 4}
    assert [(r["key"], r["features"]["number"]) for r in dataset.at()["train"][:]] == [
        (r["key"], r["features"]["number"]) for r in before
    ]
    assert len(st.Dataset(dataset.path, version=1)["train"]) == 8 and st.verify(dataset.path).good


def test_what_was_rolled_back_is_not_purged(changed: tuple[st.Dataset, list[dict], list[dict]]) -> None:
    dataset, _, _ = changed
    back = dataset.rollback("first")
    report = back.purge()
    # The bitmaps of the first shards were of versions that were undone; the compacted ones are not named by the newest version.
    gone = {record["key"] for record in back["train"][:]} - {record["key"] for record in back.at()["train"][:]}
    assert gone == set() and report["version"] is not None
    assert contents(back.at()) == contents(back)


def test_a_list_of_rejected_inputs_loses_purged_keys(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    for number in range(6):
        path = photos / key(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photograph(number) if number < 5 else b"no image")
    with pytest.warns(st.ShardtoolWarning, match="rejected 1"):
        st.pack(photos, tmp_path / "set")
    (photos / key(5)).write_bytes(photograph(5))
    for number in range(5):
        (photos / key(number)).unlink()
    dataset = st.Dataset(tmp_path / "set").append(photos, split="train")
    (listed,) = (path for path in Path(dataset.path).glob("rejected-*.jsonl") if key(5) in path.read_text())
    report = dataset.delete(keys=[key(5)]).purge()
    assert report["rejected"] == 1 and key(5) not in listed.read_text()


def test_a_pack_that_is_not_finished_is_refused(changed: tuple[st.Dataset, list[dict], list[dict]]) -> None:
    dataset, _, _ = changed
    (Path(dataset.path) / ".pack-validation.json").write_text("{}")
    with pytest.raises(st.PackError, match="pack of split `validation`"):
        dataset.purge()


def test_only_the_replaced_record_is_purged(tmp_path: Path) -> None:
    photos, other = tmp_path / "photos", tmp_path / "other"
    for number in range(6):
        for folder, seed in ((photos, number), (other, 100 + number)):
            path = folder / key(number)
            if folder == photos or number == 2:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(photograph(seed))
    st.pack(photos, tmp_path / "set", split="train", shards=2)
    dataset = st.Dataset(tmp_path / "set").append(other, split="train", replace=True).compact()
    second = st.Dataset(dataset.path, version=2)["train"][:]
    report = dataset.purge()
    assert report["records"] == {"train": 1} and report["versions"] == [1, 2] and report["remembered"] == 0
    # The new record is in no older shard than the deletion, and stays.
    assert st.Dataset(dataset.path, version=2)["train"][:] == second
    assert len(st.Dataset(dataset.path, version=1)["train"]) == 5
    # Written again by a compaction before it was replaced: both of its shards lose it.
    again = dataset.at().compact(shard_size=10_000)
    again = again.append(other, split="train", replace=True)
    assert again.purge()["records"] == {"train": 1}
    assert [len(st.Dataset(dataset.path, version=n)["train"]) for n in (1, 2, 3, again.version)] == [5, 5, 5, 6]


def test_a_purged_key_is_refused_by_every_command_that_writes_to_the_dataset(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    for number in range(6):
        path = photos / key(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photograph(number))
    st.pack(photos, tmp_path / "set", split="train")
    dataset = st.Dataset(tmp_path / "set")
    purged = [dataset["train"][key(0)]]
    dataset.delete(keys=[key(0)]).purge()
    image = tmp_path / "one" / purged[0]["key"]
    image.parent.mkdir(parents=True)
    image.write_bytes(purged[0]["image"])
    classes = tmp_path / "classes"
    classes.write_text("\n".join(dataset.classes))
    with pytest.raises(st.PackError, match="of the source was purged from it"):
        st.pack(tmp_path / "one", dataset.path, split="other", classes=classes)
    assert st.Dataset(dataset.path).splits == ["train"]
    assert dataset.at().purge(forget_keys=True)["version"] is not None
    st.pack(tmp_path / "one", dataset.path, split="other", classes=classes)
    assert st.Dataset(dataset.path)["other"][0]["key"] == purged[0]["key"]


def test_links_are_named(changed: tuple[st.Dataset, list[dict], list[dict]], tmp_path: Path) -> None:
    dataset, _, _ = changed
    shard = Path(dataset.path) / "train-00000.tfrecord"
    os.link(shard, tmp_path / "another-name")
    assert shard.name in dataset.purge()["links"]

