#!/usr/bin/env python3
"""shardtool.torch.Loader with packed rows, compared with what PyTorch's DataLoader does with the same texts: tokens per second,
and the share of each batch that is tokens.

    python benches/python/packing.py [--texts N] [--capacity N] [--rounds N]

The texts have lengths as those of captions, articles and code: a lognormal distribution, from 1 token to the capacity. The
DataLoader reads the same texts from one mapped array of all tokens with two processes, and its `collate_fn` makes arrays: padded to the longest text of a batch,
or packed next-fit, as they come. All variants deliver shuffled texts, in each round, after one warm-up epoch each. First, the
texts of an epoch of each variant are compared with those written. Then the shares for other windows, and those of buckets of
lengths, are printed, and that of buckets of aspect ratios. Run it in the environment `torch` (scripts/python-env) with the wheel.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import shardtool as st
from shardtool.torch import Loader

WORKERS, ROWS = 2, 16
#: Length of each round in seconds.
SECONDS = 4

Rows = list[list[np.ndarray]]


def write(folder: pathlib.Path, count: int, capacity: int) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    lengths = np.clip(random.lognormal(5.5, 1.0, count), 1, capacity).astype(int)
    texts = [random.integers(0, 50_000, length) for length in lengths]
    with st.Writer(folder, "train") as writer:
        for number, text in enumerate(texts):
            writer.write({"key": f"{number:08}", "tokens": text, "length": len(text)})
    return texts


def padded(rows: Rows, length: int) -> dict[str, torch.Tensor]:
    """Returns tokens, and the number of each token's text in its row, from 1."""
    tokens, segments = np.zeros((len(rows), length), np.int64), np.zeros((len(rows), length), np.int32)
    for row, texts in enumerate(rows):
        whole = np.concatenate(texts)
        tokens[row, : len(whole)] = whole
        segments[row, : len(whole)] = np.repeat(np.arange(len(texts)) + 1, [len(text) for text in texts])
    return {"tokens": torch.from_numpy(tokens), "segment_ids": torch.from_numpy(segments)}


def longest(records: list[np.ndarray]) -> dict[str, torch.Tensor]:
    return padded([[text] for text in records], max(map(len, records)))


class NextFit:
    """Puts the texts of a batch into rows as they come."""

    def __init__(self, capacity: int):
        self.capacity = capacity

    def __call__(self, records: list[np.ndarray]) -> dict[str, torch.Tensor]:
        rows: Rows = [[]]
        for text in records:
            if sum(map(len, rows[-1])) + len(text) > self.capacity:
                rows.append([])
            rows[-1].append(text)
        return padded(rows, self.capacity)


class Mapped(Dataset[Any]):
    """Texts in one mapped array of all their tokens."""

    def __init__(self, path: pathlib.Path, texts: list[np.ndarray]):
        np.save(path, np.concatenate(texts))
        self.tokens = np.load(path, mmap_mode="r")
        self.ends = np.cumsum([0, *map(len, texts)])

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return np.asarray(self.tokens[self.ends[index] : self.ends[index + 1]])


def aspect_ratios(folder: pathlib.Path, count: int) -> float:
    """Returns the share of the rows of an epoch of images of many aspect ratios, in batches of 32, that have an image."""
    random = np.random.default_rng(7)
    with st.Writer(folder, "train") as writer:
        for number in range(count):
            side = np.exp(random.normal(0.15, 0.3) / 2)
            image = np.zeros((round(40 / side), round(40 * side), 3), np.uint8)
            writer.write({"key": f"{number:08}", "image": image})
    shapes = st.shapes_within(256 * 256, 64, max_ratio=3)
    buckets = st.AspectRatioBuckets(shapes, lambda height, width: [st.ResizeTo((height, width))])
    batches = Loader(st.Dataset(folder).split("train"), 32, buckets=buckets, remainder="mask")
    valid = np.concatenate([batch["valid"].numpy() for batch in batches])
    print(f"{len(shapes)} shapes, {count} images")
    return float(valid.mean())


def texts_of(batch: dict[str, torch.Tensor]) -> Iterator[bytes]:
    """Yields the tokens of each text of a batch."""
    for tokens, segments in zip(batch["tokens"].numpy(), batch["segment_ids"].numpy()):
        for segment in range(1, int(segments.max()) + 1):
            yield tokens[segments == segment].tobytes()


def share(batches: Any) -> float:
    """Returns the share of an epoch's batches that is tokens."""
    counts = [(int((batch["segment_ids"] > 0).sum()), batch["segment_ids"].numel()) for batch in batches]
    return sum(tokens for tokens, _ in counts) / sum(room for _, room in counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--capacity", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = write(pathlib.Path(folder) / "dataset", args.texts, args.capacity)
        split = st.Dataset(pathlib.Path(folder) / "dataset").split("train")
        mapped = Mapped(pathlib.Path(folder) / "tokens.npy", texts)
        mean = sum(map(len, texts)) / len(texts)

        def ours(window: int) -> Loader:
            tokens = st.Tokens("length", args.capacity, {"tokens": 0}, window=window)
            return Loader(split, ROWS, tokens, workers=WORKERS, remainder="mask")

        def theirs(batch: int, collate: Any) -> DataLoader[Any]:
            return DataLoader(mapped, batch, shuffle=True, num_workers=WORKERS, collate_fn=collate, persistent_workers=True)

        full = int(ROWS * args.capacity / mean)
        variants = {
            "shardtool, packed": ours(4096),
            "DataLoader, next-fit": theirs(full, NextFit(args.capacity)),
            "DataLoader, padded to the longest": theirs(ROWS, longest),
        }
        expected = sorted(text.tobytes() for text in texts)
        shares = {}
        for name, loader in variants.items():
            batches = [{key: batch[key].clone() for key in ("tokens", "segment_ids")} for batch in loader]
            assert sorted(text for batch in batches for text in texts_of(batch)) == expected, name
            shares[name] = share(batches)
        rates: dict[str, list[float]] = {name: [] for name in variants}
        for _ in range(args.rounds):
            for name, loader in variants.items():
                tokens, start = 0, time.perf_counter()
                while time.perf_counter() - start < SECONDS:
                    for batch in loader:
                        tokens += int((batch["segment_ids"] > 0).sum())
                rates[name].append(tokens / (time.perf_counter() - start))
        first = next(iter(rates))
        for name, values in rates.items():
            ratio = statistics.median(a / b for a, b in zip(rates[first], values))
            print(f"{name}: {statistics.median(values):,.0f} tokens/s, {first} is {ratio:.1f} times as fast; {shares[name]:.1%} tokens")
        windows = {window: share(ours(window)) for window in (256, 1024, 4096, 16384)}
        print("windows:", ", ".join(f"{window}: {value:.2%}" for window, value in windows.items()))
        bounds = [2 ** (n / 2) for n in range(2, 23) if 2 ** (n / 2) <= args.capacity]
        buckets = st.LengthBuckets("length", [round(b) for b in bounds], max_tokens=ROWS * args.capacity, padded={"tokens": -1})
        by_length = Loader(split, 4 * full, [st.Image(), "tokens"], buckets=buckets, workers=WORKERS, remainder="mask")
        rows, valid, inside, room = 0, 0, 0, 0
        for batch in by_length:
            rows, valid = rows + len(batch["valid"]), valid + int(batch["valid"].sum())
            inside, room = inside + int((batch["tokens"] >= 0).sum()), room + batch["tokens"].numel()
        print(f"buckets of lengths: {valid / rows:.2%} of the rows have a text, {inside / room:.1%} tokens")
        print(f"buckets of aspect ratios: {aspect_ratios(pathlib.Path(folder) / 'images', args.texts // 5):.2%} of the rows have an image")
        print(json.dumps({"rates": rates, "shares": shares, "windows": windows}))


if __name__ == "__main__":
    main()
