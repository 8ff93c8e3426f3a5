#!/usr/bin/env python3
"""shardtool.ray.read compared with the readers of Ray Data: images per second, encoded and decoded.

    python benches/python/ray_read.py PHOTOS [--copies N] [--rounds N]

The photographs of the folder PHOTOS, N times with different keys, are stored as a shardtool dataset, a tar (WebDataset), a Parquet
file, TFRecord and files, in as many pieces as the dataset has shards. Each variant reads all of them through `iter_batches`, in
numpy's format, on a local cluster of two CPUs, all variants in each round, after one round to warm up. First, the sizes of all
images of each variant are compared with those of the files, and of decoded ones the pixels, which may differ by rounding: others
decode with Pillow. The CPU time of a task beyond decoding is measured in this process, without Ray: a block without images, whose
records are read and checked whole, and what the Arrow table adds to the decoded pixels (their copy into the block is decoding). Run it in the environment `ray-read` (scripts/python-env) with the wheel in a folder of
PYTHONPATH.
"""

from __future__ import annotations

import argparse
import collections
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import shardtool as st

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import ray  # noqa: E402

import shardtool.ray  # noqa: E402
from shardtool.ray import reading  # noqa: E402

PIECES = 8


def store(photos: list[pathlib.Path], folder: pathlib.Path, copies: int) -> None:
    """Stores the photographs in all formats."""
    (folder / "files").mkdir()
    for piece in range(PIECES):
        mine, rows = photos[piece::PIECES], []
        with tarfile.open(folder / f"{piece}.tar", "w") as tar:
            for copy in range(copies):
                for number, photo in enumerate(mine):
                    name, data = f"{piece}-{copy}-{number:05}", photo.read_bytes()
                    info = tarfile.TarInfo(f"{name}.jpg")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
                    (folder / "files" / f"{name}.jpg").write_bytes(data)
                    rows.append((name, data))
        names, images = zip(*rows, strict=True)
        pq.write_table(pa.table({"key": names, "image": images}), folder / f"{piece}.parquet", row_group_size=100)
    listed = sorted((folder / "files").iterdir())
    (folder / "list.csv").write_text("path\n" + "".join(f"files/{path.name}\n" for path in listed))
    st.pack(folder / "list.csv", folder / "set", shards=PIECES)
    subprocess.run(
        [sys.executable, "-m", "shardtool", "export", str(folder / "set"), str(folder / "tfrecord"), "--to", "tfrecord"],
        check=True,
        capture_output=True,
    )


def variants(folder: pathlib.Path) -> dict[str, tuple[Any, str]]:
    """Returns datasets of Ray Data, and their columns of images, by name."""
    data = ray.data
    tfrecords = [str(path) for path in sorted((folder / "tfrecord").glob("*.tfrecord*")) if path.is_file()]
    tars = [str(folder / f"{piece}.tar") for piece in range(PIECES)]
    parquet = [str(folder / f"{piece}.parquet") for piece in range(PIECES)]
    return {
        "shardtool, encoded": (lambda: shardtool.ray.read(folder / "set"), "image"),
        "read_webdataset, encoded": (lambda: data.read_webdataset(tars, decoder=None), "jpg"),
        "read_parquet, encoded": (lambda: data.read_parquet(parquet), "image"),
        "read_tfrecords, encoded": (lambda: data.read_tfrecords(tfrecords), "image/encoded"),
        "read_binary_files, encoded": (lambda: data.read_binary_files(str(folder / "files")), "bytes"),
        "shardtool, decoded": (lambda: shardtool.ray.read(folder / "set", images="decoded"), "image"),
        "read_webdataset, decoded": (lambda: data.read_webdataset(tars), "jpg"),
        "read_images, decoded": (lambda: data.read_images(str(folder / "files"), mode="RGB"), "image"),
        "read_parquet, decoded": (lambda: data.read_parquet(parquet).map(decoded), "image"),
        "read_tfrecords, decoded": (lambda: data.read_tfrecords(tfrecords).map(decoded_feature), "image"),
    }


def decoded(row: dict[str, Any]) -> dict[str, Any]:
    return {"image": np.asarray(Image.open(io.BytesIO(row["image"])).convert("RGB"))}


def decoded_feature(row: dict[str, Any]) -> dict[str, Any]:
    return decoded({"image": row["image/encoded"]})


def answer(dataset: Any, column: str) -> tuple[collections.Counter[Any], float]:
    """Returns the multiset of the lengths, or shapes, of all images, and the mean of all pixels."""
    found: collections.Counter[Any] = collections.Counter()
    total = 0.0
    for batch in dataset.iter_batches(batch_size=64, batch_format="numpy"):
        for image in batch[column]:
            if isinstance(image, np.ndarray):
                # Grey photographs have two dimensions in read_webdataset.
                found[image.shape[:2]] += 1
                total += float(image.mean())
            else:
                found[len(image)] += 1
    return found, total / max(1, found.total())


def run(dataset: Any) -> float:
    """Returns images per second."""
    count, begin = 0, time.perf_counter()
    for batch in dataset.iter_batches(batch_size=64, batch_format="numpy"):
        count += len(next(iter(batch.values())))
    return count / (time.perf_counter() - begin)


def overhead(folder: pathlib.Path) -> float:
    """Returns the CPU time of a block of decoded images beyond decoding, as a share: reading, checking CRCs, parsing, making a
    table."""
    split = st.Dataset(folder / "set").split("train")
    count = min(len(split), 400)

    def decode_alone() -> float:
        begin = time.process_time()
        split.arrow_buffers(0, count, 1 << 40, "decoded", [])
        return time.process_time() - begin

    def nothing() -> float:
        begin = time.process_time()
        reading.read_table(split, 0, count, [], None, 1 << 40)
        return time.process_time() - begin

    def whole() -> float:
        begin = time.process_time()
        reading.read_table(split, 0, count, [], "decoded", 1 << 40)
        return time.process_time() - begin

    rounds = [(decode_alone(), nothing(), whole()) for _ in range(5)]
    native, read, table = (statistics.median(times) for times in zip(*rounds, strict=True))
    # All that a block without images takes, whose records are read and checked whole, and what Python adds to a block of decoded
    # ones.
    return (read + max(0.0, table - native)) / table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    photos = sorted(path for path in args.photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        store(photos, folder, args.copies)
        ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", configure_logging=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        made = variants(folder)
        expected = {name: answer(make(), column) for name, (make, column) in made.items()}
        for kind in ("encoded", "decoded"):
            first = expected[f"shardtool, {kind}"]
            for name, (counts, mean) in expected.items():
                if name.endswith(kind):
                    assert counts == first[0] and abs(mean - first[1]) < 0.5, f"{name} differs: {mean} {first[1]}"
            assert first[0].total() == len(photos) * args.copies
        rates: dict[str, list[float]] = {name: [] for name in made}
        for _ in range(args.rounds):
            for name, (make, _) in made.items():
                rates[name].append(run(make()))
        for name, found in rates.items():
            print(f"{name:28} {statistics.median(found):8.0f} images/s  ({min(found):.0f} to {max(found):.0f})")
        share = overhead(folder)
        print(f"task CPU beyond decoding: {100 * share:.1f} %")
        print(json.dumps({"images": len(photos) * args.copies, "rates": rates, "beyond_decoding": share}), file=sys.stderr)
        ray.shutdown()


if __name__ == "__main__":
    main()
