#!/usr/bin/env python3
"""What changes of a dataset cost: a column for every record, deletions, opening and reading versions. Compares with Lance, if it is installed.

    python benches/python/changes.py [--records N] [--lance N] [--rounds N]

Writes N records (default 1,000,000) of one small photograph each. Replaces the label of every record, deletes 1 %, and adds two
columns, one with 16 numbers a record; then compares the newest version with the first one: opening with the first batch, random
records, and an epoch of a loader that decodes. Rates are medians of rounds in which both take turns. With `pylance` installed, the
same photographs (`--lance`, default 100,000) go through the same steps with both. Every value that is written is read back.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import pathlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

import shardtool as st

CLASSES, BATCH, READS = 1000, 256, 10_000


def photographs(number: int = 64) -> list[bytes]:
    """Returns different JPEGs of 64 x 64 pixels, of smooth noise."""
    random, found = np.random.default_rng(1), []
    for _ in range(number):
        coarse = Image.fromarray(random.integers(0, 256, (5, 5, 3), np.uint8))
        file = io.BytesIO()
        coarse.resize((64, 64), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
        found.append(file.getvalue())
    return found


def write(folder: pathlib.Path, records: int, images: list[bytes] | None = None) -> st.Dataset:
    images = images or photographs()
    classes = [f"class {number}" for number in range(CLASSES)]
    with st.Writer(folder, "train", classes=classes, shard_size=1 << 28) as writer:
        for number in range(records):
            writer.write({"key": f"{number:08}", "image": images[number % len(images)], "label": number % CLASSES})
    return st.Dataset(folder)


def size(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def timed(what: str, folder: pathlib.Path, change: Callable[[], Any]) -> Any:
    """Prints how long a change takes, and the bytes that it adds."""
    before, begin = size(folder), time.perf_counter()
    result = change()
    seconds = time.perf_counter() - begin
    print(f"  {what:<44} {seconds:8.2f} s {(size(folder) - before) / 1e6:10.2f} MB", flush=True)
    return result


def compared(what: str, rounds: int, first: Callable[[], float], newest: Callable[[], float]) -> None:
    """Prints the ratio of two rates, measured in turns."""
    rates: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            rates[which].append((first, newest)[which]())
    ratio = statistics.median(b / a for a, b in zip(*rates, strict=True))
    print(f"  {what:<44} {statistics.median(rates[0]):12,.1f} {statistics.median(rates[1]):12,.1f} {ratio:8.3f}", flush=True)


def changes(folder: pathlib.Path, records: int) -> st.Dataset:
    """Makes versions 2 to 5, and reads the values back."""
    first = st.Dataset(folder)
    label = first["train"].label
    assert label is not None
    names = [f"{number:08}" for number in range(records)]
    labels = (np.arange(records) * 7 + 1) % CLASSES
    second = timed("replace the label of every record", folder, lambda: first.replace_columns({"label": labels}, rows_of=1))
    third = timed("delete 1 %, by ids", folder, lambda: second.delete(ids=range(0, records, 100), split="train"))
    kept = np.flatnonzero(np.arange(records) % 100)
    score = np.random.default_rng(2).normal(size=len(kept)).astype(np.float32)
    vectors = np.random.default_rng(3).normal(size=(len(kept), 16)).astype(np.float32)
    keyed = {"key": [names[row] for row in kept], "score": score}
    fourth = timed("add a number to every record, by keys", folder, lambda: third.add_columns(keyed))
    newest = timed("add 16 numbers to every record", folder, lambda: fourth.add_columns({"vector": vectors}, rows_of=4))
    split = newest["train"]
    order = {name: row for row, name in enumerate(keyed["key"])}
    for place in np.random.default_rng(4).integers(0, len(split), 1000).tolist():
        record = split[place]
        row = order[record["key"]]
        assert record["label"] == labels[kept[row]] and record["features"]["score"] == score[row]
    by_place = np.array(split.columns["score"])
    places = [order[split[place]["key"]] for place in range(100)]
    assert np.array_equal(by_place[:100], score[places])
    assert [split[place]["features"]["vector"] for place in range(50)] == vectors[:50].tolist()
    return newest


def first_batch(folder: pathlib.Path, version: int, fields: list[Any]) -> float:
    """Returns how often per second a dataset is opened and delivers its first batch."""
    begin = time.perf_counter()
    with st.Loader(st.Dataset(folder, version=version)["train"], BATCH, fields, order=st.Shuffled(seed=1)) as loader:
        next(iter(loader))
    return 1 / (time.perf_counter() - begin)


def random_records(split: st.Split) -> float:
    ids = np.random.default_rng(5).integers(0, len(split), READS).tolist()
    begin = time.perf_counter()
    for number in ids:
        split[number]
    return READS / (time.perf_counter() - begin)


def epoch(split: st.Split, fields: list[Any]) -> float:
    """Returns samples per second of a part of an epoch, after the first batches."""
    with st.Loader(split, BATCH, fields, order=st.Shuffled(seed=1)) as loader:
        begin, samples = 0.0, 0
        for step, _ in enumerate(loader):
            if step == 20:
                begin = time.perf_counter()
            samples += BATCH if step > 20 else 0
            if step > 20 and time.perf_counter() - begin > 3:
                break
        return samples / (time.perf_counter() - begin)


def lance(folder: pathlib.Path, records: int, images: list[bytes]) -> None:
    import lance as library
    import pyarrow as pa

    folder = folder / "lance"
    names = [f"{number:08}" for number in range(records)]
    table = pa.table(
        {
            "key": names,
            "label": pa.array(np.arange(records) % CLASSES, pa.int64()),
            "image": pa.array([images[number % len(images)] for number in range(records)], pa.binary()),
        }
    )
    folder.mkdir()
    dataset = timed("write", folder, lambda: library.write_dataset(table, folder / "data.lance"))
    score = np.random.default_rng(2).normal(size=records).astype(np.float32)
    timed("add a number to every record, by keys", folder, lambda: dataset.merge(pa.table({"key": names, "score": score}), "key"))
    dataset = library.dataset(folder / "data.lance")
    timed("delete 1 %", folder, lambda: dataset.delete("key LIKE '%00'"))
    path = folder / "data.lance"
    timed("open version 1", folder, lambda: library.dataset(path, version=1).count_rows())
    newest = library.dataset(path)
    rows = np.random.default_rng(5).integers(0, newest.count_rows(), READS).tolist()
    taken = timed(f"read {READS:,} random records", folder, lambda: [newest.take([row], columns=["image", "label", "score"]) for row in rows])
    assert all(one.num_rows == 1 for one in taken)
    timed(f"read {READS:,} random records in one call", folder, lambda: newest.take(sorted(set(rows)), columns=["image", "label", "score"]))
    timed("an epoch in random order: read, decode, crop", folder, lambda: lance_epoch(newest))


def lance_epoch(dataset: Any) -> None:
    """Takes rows in random order, and decodes and crops each with Pillow."""
    random = np.random.default_rng(6)
    order = random.permutation(dataset.count_rows())
    for start in range(0, len(order), BATCH):
        taken = dataset.take(order[start : start + BATCH].tolist(), columns=["image", "label", "score"])
        batch = np.empty((taken.num_rows, 56, 56, 3), np.uint8)
        for row, image in enumerate(taken.column("image").to_pylist()):
            left, top = random.integers(0, 9, 2).tolist()
            with Image.open(io.BytesIO(image)) as opened:
                batch[row] = np.asarray(opened.crop((left, top, left + 56, top + 56)))


def shardtool(folder: pathlib.Path, records: int, images: list[bytes]) -> None:
    folder = folder / "shardtool"
    folder.mkdir()
    data = folder / "data"
    first = timed("write", folder, lambda: write(data, records, images))
    score = np.random.default_rng(2).normal(size=records).astype(np.float32)
    names = [f"{number:08}" for number in range(records)]
    second = timed("add a number to every record, by keys", folder, lambda: first.add_columns({"key": names, "score": score}))
    gone = [name for name in names if name.endswith("00")]
    third = timed("delete 1 %", folder, lambda: second.delete(keys=gone))
    timed("open version 1", folder, lambda: len(st.Dataset(data, version=1)["train"]))
    rows = np.random.default_rng(5).integers(0, len(third["train"]), READS).tolist()
    split = third["train"]
    timed(f"read {READS:,} random records", folder, lambda: [split[row] for row in rows])
    timed("an epoch in random order: read, decode, crop", folder, lambda: whole_epoch(split))


def whole_epoch(split: st.Split) -> None:
    fields = [st.Image([st.RandomCrop(56)]), "score"]
    with st.Loader(split, BATCH, fields, order=st.Shuffled(seed=1)) as loader:
        assert sum(len(batch["image"]) for batch in loader) == len(split) // BATCH * BATCH


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--lance", type=int, default=100_000, help="photographs, which all differ, of the comparison with Lance")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as made:
        folder = pathlib.Path(made)
        data = folder / "data"
        timed(f"write {arguments.records:,} records", folder, lambda: write(data, arguments.records))
        newest = changes(data, arguments.records)
        steps = [st.RandomResizedCrop(56), st.HorizontalFlip()]
        plain, columns = [st.Image(steps)], [st.Image(steps), "score", "vector"]
        old, new = st.Dataset(data, version=1)["train"], newest["train"]
        print(f"  {'in turns':<44} {'version 1':>12} {'version 5':>12} {'ratio':>8}")
        compared("opened, first batch, per second", arguments.rounds, lambda: first_batch(data, 1, plain), lambda: first_batch(data, 5, plain))
        compared("random records per second", arguments.rounds, lambda: random_records(old), lambda: random_records(new))
        compared("an epoch: samples per second, label", arguments.rounds, lambda: epoch(old, plain), lambda: epoch(new, plain))
        compared("the same, with the two new columns", arguments.rounds, lambda: epoch(old, plain), lambda: epoch(new, columns))
        shutil.rmtree(data)
        if importlib.util.find_spec("lance") is None:
            print("skip: lance is not installed (pip install pylance)")
            return
        images = photographs(arguments.lance)
        for name, run in (("shardtool", shardtool), ("lance", lance)):
            print(f"{name}, {arguments.lance:,} records")
            run(folder, arguments.lance, images)


if __name__ == "__main__":
    main()
