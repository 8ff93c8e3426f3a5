#!/usr/bin/env python3
"""shardtool.torch.Loader compared with torchvision's ImageFolder and PyTorch's DataLoader, in one training program.

    python benches/python/imagefolder.py accuracy [PHOTOS] [--seeds N] [--epochs N]
    python benches/python/imagefolder.py throughput [PHOTOS] [--rounds N]

PHOTOS holds a folder of ImageNet photographs for each WordNet id; default: data/imagenet-sample in $SHARDTOOL_SHARED, or in
../shared. Without photographs it prints `skip` and exits. Run it in the environment `torch` with the wheel.

`accuracy` trains the same network, with the same steps, on a real task: animals (WordNet ids up to n02514041) against
everything else. Two of three photographs are for training, the third is for evaluation. For each seed it trains one network
with each loader, and evaluates each network with both. Exit status 1 if the mean accuracies differ by more than two standard errors, or if a
network's accuracy depends on the loader by more than one photograph.

`throughput` reads all photographs as training does (RandomResizedCrop 224, flip, batches of 64, two threads or processes),
all variants in each round, after one warm-up epoch each. Ratios are computed per round.
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
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision import transforms as tv

import shardtool as st
from shardtool.torch import Loader

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LAST_ANIMAL = "n02514041"
WORKERS = 2

Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]


def photographs(folder: str | None) -> list[pathlib.Path]:
    if folder is None:
        shared = os.environ.get("SHARDTOOL_SHARED", pathlib.Path(__file__).parents[3] / "shared")
        folder = str(pathlib.Path(shared) / "data" / "imagenet-sample")
    return sorted(path for path in pathlib.Path(folder).glob("*/*") if path.suffix.lower() in (".jpg", ".jpeg"))


def make_folders(photos: list[pathlib.Path], root: pathlib.Path) -> None:
    """Makes folders of links for ImageFolder, by split and class."""
    for number, path in enumerate(photos):
        kind = "animal" if path.parent.name <= LAST_ANIMAL else "other"
        target = root / ("val" if number % 3 == 2 else "train") / kind
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{path.parent.name}-{path.name}").symlink_to(path.resolve())


def network() -> torch.nn.Module:
    def block(inputs: int, outputs: int) -> list[torch.nn.Module]:
        convolution = torch.nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        return [convolution, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]

    layers = [*block(3, 16), *block(16, 32), *block(32, 64), *block(64, 128)]
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 2))


class Folder:
    """Loads with ImageFolder and DataLoader."""

    def __init__(self, root: pathlib.Path, size: int):
        last = [tv.ToTensor(), tv.Normalize(MEAN, STD)]
        crop = tv.RandomResizedCrop(size, scale=(0.35, 1.0))
        train = datasets.ImageFolder(str(root / "train"), tv.Compose([crop, tv.RandomHorizontalFlip(), *last]))
        steps = tv.Compose([tv.Resize(size * 8 // 7), tv.CenterCrop(size), *last])
        self.data = {"train": train, "val": datasets.ImageFolder(str(root / "val"), steps)}

    def train(self, batch: int, seed: int) -> Iterator[Batches]:
        generator = torch.Generator().manual_seed(seed)
        options = {"num_workers": WORKERS, "persistent_workers": True, "generator": generator}
        loader = DataLoader(self.data["train"], batch, shuffle=True, drop_last=True, **options)
        while True:
            yield loader

    def evaluate(self, batch: int) -> Batches:
        return DataLoader(self.data["val"], batch, num_workers=WORKERS)


class Ours:
    """Loads the same images with shardtool."""

    def __init__(self, root: pathlib.Path, size: int):
        self.size = size
        for split in ("train", "val"):
            st.pack(root / split, root / "dataset", split=split)
        self.dataset = st.Dataset(root / "dataset")
        self.options = {"dtype": "float32", "mean": MEAN, "std": STD, "collate_fn": st.image_label, "workers": WORKERS}

    def train(self, batch: int, seed: int) -> Iterator[Batches]:
        steps = [st.RandomResizedCrop(self.size, scale=(0.35, 1.0)), st.HorizontalFlip()]
        loader = Loader(self.dataset.split("train"), batch, steps, seed=seed, **self.options)
        while True:
            yield loader

    def evaluate(self, batch: int) -> Batches:
        steps = [st.Resize(self.size * 8 // 7), st.CenterCrop(self.size)]
        return Loader(self.dataset.split("val"), batch, steps, order=st.Sequential(), **self.options)


@torch.no_grad()
def correct(net: torch.nn.Module, batches: Batches) -> tuple[int, int]:
    net.eval()
    right = samples = 0
    for image, label in batches:
        right += int((net(image).argmax(1) == label).sum())
        samples += int((label >= 0).sum())
    return right, samples


def accuracy(photos: list[pathlib.Path], seeds: int, epochs: int, size: int = 64, batch: int = 25) -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        make_folders(photos, root)
        sides = {"ImageFolder": Folder(root, size), "shardtool": Ours(root, size)}
        found: dict[str, list[float]] = {name: [] for name in sides}
        worst = samples = 0
        for seed in range(seeds):
            # The order of a pair alternates.
            for name in sorted(sides, reverse=seed % 2 == 1):
                torch.manual_seed(seed)
                net = network()
                optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
                schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
                for _, batches in zip(range(epochs), sides[name].train(batch, seed)):
                    net.train()
                    for image, label in batches:
                        loss = torch.nn.functional.cross_entropy(net(image), label)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    schedule.step()
                by_loader = {each: correct(net, side.evaluate(batch)) for each, side in sides.items()}
                counts, totals = zip(*by_loader.values(), strict=True)
                assert len(set(totals)) == 1, totals
                samples = totals[0]
                worst = max(worst, max(counts) - min(counts))
                found[name].append(by_loader[name][0] / samples)
                print(json.dumps({"seed": seed, "trained with": name, "by loader": by_loader}), flush=True)
        means = {name: statistics.mean(values) for name, values in found.items()}
        # Standard error of the difference of two means of `seeds` runs, with photographs treated as independent.
        mean = statistics.mean(means.values())
        error = (2 * mean * (1 - mean) / (samples * seeds)) ** 0.5
        difference = means["shardtool"] - means["ImageFolder"]
        answer = {"accuracy": found, "mean": means, "difference": difference, "standard error": error}
        print(json.dumps({**answer, "most photographs judged differently by loader": worst}))
        return 0 if abs(difference) <= 2 * error and worst <= 1 else 1


def throughput(photos: list[pathlib.Path], rounds: int, size: int = 224, batch: int = 64) -> int:
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
        host = Loader(split, batch, steps, workers=WORKERS, dtype="float32", mean=MEAN, std=STD)

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
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "throughput"])
    parser.add_argument("photos", nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_intermixed_args()
    photos = photographs(arguments.photos)
    if not photos:
        print("skip: no photographs")
        return 0
    torch.set_num_threads(WORKERS)
    if arguments.what == "accuracy":
        return accuracy(photos, arguments.seeds, arguments.epochs)
    return throughput(photos, arguments.rounds)


if __name__ == "__main__":
    sys.exit(main())
