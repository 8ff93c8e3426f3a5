#!/usr/bin/env python3
"""shardtool.torch.Loader compared with torchvision's ImageFolder and PyTorch's DataLoader: images per second.

    python benches/python/imagefolder.py [PHOTOS] [--rounds N]

PHOTOS holds a folder of ImageNet photographs for each WordNet id; default: data/imagenet-sample in $SHARDTOOL_SHARED, or in
../shared. Without photographs it prints `skip` and exits. Run it in the environment `torch` with the wheel.

It reads all photographs as training does (RandomResizedCrop 224, flip, batches of 64, two threads or processes), all
variants in each round, after one warm-up epoch each. Ratios are computed per round. Accuracies are compared by
crates/python/tests/trainers/test_accuracy.py.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision import transforms as tv

import shardtool as st
from shardtool.torch import Loader

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WORKERS = 2


def photographs(folder: str | None) -> list[pathlib.Path]:
    if folder is None:
        shared = os.environ.get("SHARDTOOL_SHARED", pathlib.Path(__file__).parents[3] / "shared")
        folder = str(pathlib.Path(shared) / "data" / "imagenet-sample")
    return sorted(path for path in pathlib.Path(folder).glob("*/*") if path.suffix.lower() in (".jpg", ".jpeg"))


def throughput(photos: list[pathlib.Path], rounds: int, size: int = 224, batch: int = 64) -> None:
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path in photos:
            target = root / "photos" / path.parent.name
            target.mkdir(parents=True, exist_ok=True)
            (target / path.name).symlink_to(path.resolve())
        st.pack(root / "photos", root / "dataset")
        split = st.Dataset(root / "dataset").split("train")
        steps = [st.RandomResizedCrop(size), st.HorizontalFlip()]

        crop = tv.RandomResizedCrop(size)
        last = [tv.RandomHorizontalFlip(), tv.ToTensor(), tv.Normalize(MEAN, STD)]
        data = datasets.ImageFolder(str(root / "photos"), tv.Compose([crop, *last]))
        peer = DataLoader(data, batch, shuffle=True, drop_last=True, num_workers=WORKERS, persistent_workers=True)
        u8 = Loader(split, batch, steps, workers=WORKERS)
        host = Loader(split, batch, st.Image(steps, mean=MEAN, std=STD, dtype="float32"), workers=WORKERS)

        def by_hand(image: torch.Tensor) -> torch.Tensor:
            return (image.permute(0, 3, 1, 2).float() / 255 - mean) / std

        variants: dict[str, tuple[Iterable, Callable]] = {
            "u8": (u8, lambda b: b["image"]),
            "u8, normalised by hand": (u8, lambda b: by_hand(b["image"])),
            "float32 NCHW of the host output": (host, lambda b: b["image"]),
            "ImageFolder, DataLoader": (peer, lambda b: b[0]),
        }
        rates: dict[str, list[float]] = {name: [] for name in variants}
        for number in range(rounds + 1):
            names = list(variants)
            # Each round begins with another variant. The first round is the warm-up.
            for name in names[number % len(names) :] + names[: number % len(names)]:
                batches, image_of = variants[name]
                images, began = 0, time.perf_counter()
                for each in batches:
                    images += len(image_of(each))
                if number:
                    rates[name].append(images / (time.perf_counter() - began))
            if number:
                print(json.dumps({name: round(values[-1]) for name, values in rates.items()}), flush=True)
        for name, values in rates.items():
            ratios = {other: statistics.median(np.divide(values, rates[other])) for other in rates}
            print(json.dumps({"loader": name, "images/s": round(statistics.median(values)), "ratio to": ratios}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="?")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    photos = photographs(arguments.photos)
    if not photos:
        print("skip: no photographs")
        return 0
    torch.set_num_threads(WORKERS)
    throughput(photos, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
