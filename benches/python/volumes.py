#!/usr/bin/env python3
"""shardtool.torch.Loader compared with zarr arrays in PyTorch's DataLoader: random patches of volumes per second.

    python benches/python/volumes.py [--volumes N] [--side N] [--patch N] [--chunk N] [--rounds N]

Both read the same volumes (smoothed noise, int16) from chunks of one size, compressed by zstd at level 3, with two threads or
processes, all variants in each round, after one warm-up epoch each. First, the patches in the middle of all volumes are
compared element by element. Without zarr it prints `skip` and exits. Run it in the environment `torch` (scripts/python-env)
with the wheel and zarr 3 in a folder of PYTHONPATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import shardtool as st
from shardtool.torch import Loader

WORKERS, BATCH, LEVEL = 2, 4, 3
#: Length of each round.
SECONDS = 4


def volume(number: int, side: int) -> np.ndarray:
    """Smooth structures with the noise of a scanner, about as compressible as CT."""
    random = np.random.default_rng(number)
    coarse = random.normal(size=(9, 9, 9)).astype(np.float32) * 400
    at = np.linspace(0, 7.999, side)
    whole, part = at.astype(int), (at % 1).astype(np.float32)
    for axis in range(3):
        weight = part.reshape([-1 if d == axis else 1 for d in range(3)])
        coarse = coarse.take(whole, axis) * (1 - weight) + coarse.take(whole + 1, axis) * weight
    return (coarse + random.normal(size=coarse.shape) * 10).astype(np.int16)


class Patches(Dataset[Any]):
    """A patch of each zarr array, at a random place or in the middle."""

    def __init__(self, paths: list[pathlib.Path], patch: int, random: bool):
        self.paths, self.patch, self.random = paths, patch, random

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        import zarr

        array = zarr.open_array(self.paths[index], mode="r")
        room = [length - self.patch for length in array.shape]
        starts = [int(torch.randint(most + 1, ())) if self.random else most // 2 for most in room]
        return torch.from_numpy(np.asarray(array[tuple(slice(at, at + self.patch) for at in starts)]))


def write(root: pathlib.Path, count: int, side: int, chunk: int) -> list[pathlib.Path]:
    import zarr

    paths = [root / f"{number}.zarr" for number in range(count)]
    features = {"ct": st.Array(chunk=(chunk,) * 3, level=LEVEL)}
    with st.Writer(root / "dataset", "train", features=features) as writer:
        for number, path in enumerate(paths):
            data = volume(number, side)
            writer.write({"key": f"{number:04}", "ct": data})
            codec = zarr.codecs.ZstdCodec(level=LEVEL)
            array = zarr.create_array(path, shape=data.shape, chunks=(chunk,) * 3, dtype=data.dtype, compressors=codec)
            array[:] = data
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("volumes", 64), ("side", 256), ("patch", 64), ("chunk", 64), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    if importlib.util.find_spec("zarr") is None:
        print("skip: zarr is not installed")
        return 0
    torch.set_num_threads(WORKERS)
    with tempfile.TemporaryDirectory() as folder:
        paths = write(pathlib.Path(folder), options.volumes, options.side, options.chunk)
        split = st.Dataset(pathlib.Path(folder) / "dataset").split("train")
        size = (options.patch,) * 3
        middle = st.Arrays("ct", crop=size, random=False)
        found = torch.cat([batch["ct"].clone() for batch in Loader(split, 1, middle, order=st.Sequential())])
        expected = torch.stack(list(Patches(paths, options.patch, random=False)))
        assert torch.equal(found, expected), "both read the same patches"
        variants: dict[str, Any] = {
            "shardtool": Loader(split, BATCH, st.Arrays("ct", crop=size), workers=WORKERS),
            "zarr, DataLoader": DataLoader(
                Patches(paths, options.patch, random=True), BATCH, shuffle=True, drop_last=True, num_workers=WORKERS,
                persistent_workers=True,
            ),
        }
        rates: dict[str, list[float]] = {name: [] for name in variants}
        for number in range(options.rounds + 1):
            for name in list(variants)[:: 1 if number % 2 else -1]:
                patches, began = 0, time.perf_counter()
                # Several epochs, since batches of the first one may have been built before.
                while time.perf_counter() - began < SECONDS:
                    for batch in variants[name]:
                        patches += len(batch["ct"] if isinstance(batch, dict) else batch)
                # The first round is the warm-up.
                if number:
                    rates[name].append(patches / (time.perf_counter() - began))
        for name, values in rates.items():
            ratio = statistics.median(np.divide(values, rates["zarr, DataLoader"]))
            print(json.dumps({"loader": name, "patches/s": round(statistics.median(values), 1), "ratio": round(ratio, 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
