#!/usr/bin/env python3
"""shardtool.Loader compared with LitData and Mosaic Streaming, all from one S3 server: samples per second.

    python benches/python/stores.py [PHOTOS] [--rounds N] [--copies N]

PHOTOS as in imagefolder.py. Runs in the environment `torch` (scripts/python-env) with the wheel and, in a folder of PYTHONPATH,
what this installs (without dependencies: they would bring another PyTorch and the clients of all clouds):

    pip install --no-deps --target FOLDER litdata==0.2.76 mosaicml-streaming==0.13.0 lightning-utilities boto3 botocore \\
        s3transfer jmespath python-dateutil six urllib3 obstore filelock tifffile xxhash zstd zstandard python-snappy cramjam \\
        Brotli catalogue tqdm requests certifi idna charset-normalizer

The server is `cargo build --release --example store-server`; it runs on the same cores.

Two kinds of work: `read` delivers the encoded bytes of every photograph, shuffled; `train` decodes, crops
(RandomResizedCrop 224), flips and makes batches of 64 with two threads or processes. Peers read into a cache that is empty before
each epoch, since they always keep whole chunks on a disk; shardtool reads without a cache, in interleaved order, and also in
shuffled order, which costs it a request per record. Each photograph is there --copies times. Each round measures all, in another
order. Two rates are printed: of whole epochs, with the start of the processes and the download of the first chunks, and from the
first batch on, where what a peer downloaded before it costs nothing. Every epoch's samples are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ.setdefault("LITDATA_DISABLE_VERSION_CHECK", "1")

import boto3
import litdata
import torch
from imagefolder import photographs
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torchvision import io as tio
from torchvision.transforms import v2

import shardtool as st

# LitData has no option for a server without TLS.
litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True

ROOT = pathlib.Path(__file__).parents[2]
WORKERS, BATCH, SIZE = 2, 64, 224
STEPS = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()])


def decode(jpeg: bytes) -> torch.Tensor:
    return STEPS(tio.decode_jpeg(torch.frombuffer(bytearray(jpeg), dtype=torch.uint8), mode=tio.ImageReadMode.RGB))


class LitDataset(litdata.StreamingDataset):
    train = False

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return (decode(sample["jpg"]), sample["label"]) if self.train else len(sample["jpg"])


class MdsDataset(StreamingDataset):
    train = False

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return (decode(sample["jpg"]), sample["label"]) if self.train else len(sample["jpg"])


def lit_sample(item):
    path, label = item
    return {"jpg": pathlib.Path(path).read_bytes(), "label": label}


def upload(folder: pathlib.Path, bucket: str, prefix: str) -> None:
    client = boto3.client("s3")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        client.upload_file(str(path), bucket, f"{prefix}/{path.relative_to(folder)}")


def prepare(photos: list[pathlib.Path], copies: int, folder: pathlib.Path) -> None:
    classes = sorted({path.parent.name for path in photos})
    items = [(str(path), classes.index(path.parent.name)) for path in photos] * copies
    for path in photos:
        target = folder / "photos" / path.parent.name
        target.mkdir(parents=True, exist_ok=True)
        for copy in range(copies):
            (target / f"{copy}-{path.name}").symlink_to(path.resolve())
    st.pack(folder / "photos", folder / "shardtool", shard_size="64MiB")
    litdata.optimize(
        fn=lit_sample, inputs=items, output_dir=str(folder / "litdata"), chunk_bytes="64MB", num_workers=1
    )
    with MDSWriter(out=str(folder / "mds"), columns={"jpg": "bytes", "label": "int"}, size_limit=1 << 26) as writer:
        for item in items:
            writer.write(lit_sample(item))
    for name in ("shardtool", "litdata", "mds"):
        upload(folder / name, "bucket", name)


def timed(make, count) -> tuple[int, float, float]:
    """Returns the number of samples, and samples per second of the whole epoch and from the first batch on."""
    whole = time.perf_counter()
    batches = iter(make())
    first, rest = count(next(batches)), 0
    began = time.perf_counter()
    for batch in batches:
        rest += count(batch)
    end = time.perf_counter()
    return first + rest, (first + rest) / (end - whole), rest / (end - began)


class Lit:
    def __init__(self, folder: pathlib.Path, train: bool) -> None:
        self.cache, self.train = folder / "cache-litdata", train
        options = {
            "region_name": "us-east-1",
            "endpoint_url": os.environ["AWS_ENDPOINT_URL"],
            "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
        }
        self.options = options

    def epoch(self) -> tuple[int, float, float]:
        shutil.rmtree(self.cache, ignore_errors=True)
        self.cache.mkdir()

        def make():
            data = LitDataset(
                "s3://bucket/litdata", cache_dir=str(self.cache), shuffle=True, storage_options=self.options
            )
            data.train = self.train
            return litdata.StreamingDataLoader(data, batch_size=BATCH, num_workers=WORKERS)

        return timed(make, lambda batch: len(batch[0]) if self.train else len(batch))


class Mds:
    def __init__(self, folder: pathlib.Path, train: bool) -> None:
        self.cache, self.train = folder / "cache-mds", train

    def epoch(self) -> tuple[int, float, float]:
        shutil.rmtree(self.cache, ignore_errors=True)
        clean_stale_shared_memory()

        def make():
            data = MdsDataset(
                remote="s3://bucket/mds", local=str(self.cache), shuffle=True, batch_size=BATCH, num_canonical_nodes=1
            )
            data.train = self.train
            return torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=WORKERS)

        return timed(make, lambda batch: len(batch[0]) if self.train else len(batch))


class Ours:
    def __init__(self, order: object, train: bool) -> None:
        self.order, self.train = order, train

    def epoch(self) -> tuple[int, float, float]:
        def make():
            split = st.Dataset("s3://bucket/shardtool").split("train")
            steps = [st.RandomResizedCrop(SIZE), st.HorizontalFlip()] if self.train else None
            return st.Loader(split, BATCH, steps, order=self.order, workers=WORKERS, remainder="mask")

        return timed(make, lambda batch: int(batch["valid"].sum()))


def measure(photos: list[pathlib.Path], copies: int, folder: pathlib.Path, rounds: int) -> None:
    prepare(photos, copies, folder)
    for train in (False, True):
        interleaved = st.Interleaved(48, 4)  # What `shardtool plan` names for this dataset.
        makers = {
            "shardtool, interleaved": lambda t=train: Ours(interleaved, t),
            "shardtool, shuffled": lambda t=train: Ours(st.Shuffled(), t),
            "LitData": lambda t=train: Lit(folder, t),
            "Mosaic Streaming": lambda t=train: Mds(folder, t),
        }
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
        for number in range(rounds):
            names = list(makers)
            for name in names[number % len(names) :] + names[: number % len(names)]:
                # Each epoch has a new loader and an empty cache.
                samples, *both = makers[name]().epoch()
                rates[name].append((both[0], both[1]))
                if samples != copies * len(photos):
                    raise SystemExit(f"{name}: {samples} samples instead of {copies * len(photos)}")
            print(json.dumps({name: [round(rate) for rate in both[-1]] for name, both in rates.items()}), flush=True)
        work = "train" if train else "read"
        for name, values in rates.items():
            whole, after = (round(statistics.median(column)) for column in zip(*values, strict=True))
            print(json.dumps({"work": work, "loader": name, "samples/s": whole, "from the first batch on": after}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--copies", type=int, default=8)
    arguments = parser.parse_args()
    photos = photographs(arguments.photos)
    if not photos:
        print("skip: no photographs")
        return 0
    torch.set_num_threads(1)
    server = ROOT / "target/release/examples/store-server"
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        root = pathlib.Path(folder)
        (root / "s3" / "bucket").mkdir(parents=True)
        with subprocess.Popen([server, root / "s3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(5):
                name, value = process.stdout.readline().removeprefix("export ").rstrip("\n").split("=", 1)
                os.environ[name] = value
            os.environ["S3_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL"]
            os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
            try:
                measure(photos, arguments.copies, root, arguments.rounds)
            finally:
                process.communicate("")
    return 0


if __name__ == "__main__":
    sys.exit(main())
