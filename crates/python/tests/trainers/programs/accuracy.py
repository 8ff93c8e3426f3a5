"""Trains one network on tiles of photographs, with ImageFolder and a DataLoader or with shardtool."""

from __future__ import annotations

import math
import os
import pathlib
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import shardtool as st
import torch
from PIL import Image
from shardtool.torch import Loader
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision import transforms as tv

PHOTOGRAPHS = 30
#: Columns and rows of tiles of a photograph.
GRID = (8, 6)
SEEDS = (0, 1, 2)
EPOCHS = 40
BATCH = 32
#: Side of the network's input, in pixels. Those of tiles are at least 40.
SIDE = 32
SCALE = (0.35, 1.0)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WORKERS = 2
#: Quantile 0.995 of Student's t distribution with 2 * (3 - 1) degrees of freedom.
T = 4.604

#: Images, float32 [N, 3, SIDE, SIDE], and labels.
Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]


def folder() -> pathlib.Path:
    """Returns the folder of photographs."""
    shared = os.environ.get("SHARDTOOL_SHARED", pathlib.Path(__file__).parents[6] / "shared")
    return pathlib.Path(shared) / "data" / "imagenet-sample"


def photographs() -> list[pathlib.Path]:
    """Returns photographs whose tiles have at least 40 pixels on each side; fewer than `PHOTOGRAPHS` if there are fewer."""
    large = [path for path in sorted(folder().glob("*/*")) if min(Image.open(path).size) >= 40 * max(GRID)]
    return large[:: max(1, len(large) // PHOTOGRAPHS)][:PHOTOGRAPHS]


def make_tiles(photographs: list[pathlib.Path], root: pathlib.Path) -> None:
    """Makes folders `train` and `val` with a folder of tiles for each photograph, and `dataset` with the same two splits."""
    columns, rows = GRID
    for path in photographs:
        photograph = Image.open(path).convert("RGB")
        width, height = photograph.size
        for split in ("train", "val"):
            (root / split / path.stem).mkdir(parents=True)
        for x, y in ((x, y) for y in range(rows) for x in range(columns)):
            box = (x * width // columns, y * height // rows, (x + 1) * width // columns, (y + 1) * height // rows)
            split = "train" if (x + y) % 2 else "val"
            photograph.crop(box).save(root / split / path.stem / f"{x}-{y}.jpg", quality=95)
    for split in ("train", "val"):
        st.pack(root / split, root / "dataset", split=split)


class ImageFolders:
    """Loads with ImageFolder, torchvision's transforms and a DataLoader."""

    def __init__(self, tiles: pathlib.Path):
        self.tiles = tiles

    def data(self, split: str, *steps: object) -> datasets.ImageFolder:
        transform = tv.Compose([*steps, tv.ToTensor(), tv.Normalize(MEAN, STD)])
        return datasets.ImageFolder(str(self.tiles / split), transform)

    def train(self, seed: int) -> Iterator[Batches]:
        data = self.data("train", tv.RandomResizedCrop(SIDE, scale=SCALE), tv.RandomHorizontalFlip())
        generator = torch.Generator().manual_seed(seed)
        options = {"num_workers": WORKERS, "persistent_workers": True, "generator": generator}
        loader = DataLoader(data, BATCH, shuffle=True, drop_last=True, **options)
        for _ in range(EPOCHS):
            yield loader

    def evaluate(self) -> Batches:
        data = self.data("val", tv.Resize(SIDE * 8 // 7), tv.CenterCrop(SIDE))
        return DataLoader(data, BATCH, num_workers=WORKERS)


class Shardtool:
    """Loads the same files, packed, with shardtool."""

    def __init__(self, tiles: pathlib.Path):
        self.dataset = st.Dataset(tiles / "dataset")

    def load(self, split: str, steps: list[st.Transform], order: st.Shuffled | st.Sequential) -> Loader:
        image = st.Image(steps, dtype="float32", mean=MEAN, std=STD)
        return Loader(self.dataset.split(split), BATCH, image, order=order, workers=WORKERS, collate_fn=st.image_label)

    def train(self, seed: int) -> Iterator[Batches]:
        steps = [st.RandomResizedCrop(SIDE, scale=SCALE), st.HorizontalFlip()]
        with self.load("train", steps, st.Shuffled(seed)) as loader:
            for _ in range(EPOCHS):
                yield loader

    def evaluate(self) -> Batches:
        return self.load("val", [st.Resize(SIDE * 8 // 7), st.CenterCrop(SIDE)], st.Sequential())


class SameCrops(Shardtool):
    """A faulty loader: each sample has the crop and flip of the first epoch in all epochs."""

    def train(self, seed: int) -> Iterator[Batches]:
        for epoch in super().train(seed):
            epoch.set_epoch(0)
            yield epoch


class WrongLabels(Shardtool):
    """A faulty loader: one of eight rows has the label of the preceding one."""

    def train(self, seed: int) -> Iterator[Batches]:
        for epoch in super().train(seed):
            yield ((image, torch.where(torch.arange(BATCH) % 8 == 0, label.roll(1), label)) for image, label in epoch)


def network() -> torch.nn.Module:
    def block(inputs: int, outputs: int) -> list[torch.nn.Module]:
        convolution = torch.nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        return [convolution, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]

    layers = [*block(3, 32), *block(32, 64), *block(64, 128), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(128, PHOTOGRAPHS))


def trained(epochs: Iterable[Batches], seed: int) -> torch.nn.Module:
    """Trains a network, whose initial weights depend on the seed only."""
    torch.manual_seed(seed)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for batches in epochs:
        net.train()
        for image, label in batches:
            loss = torch.nn.functional.cross_entropy(net(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    return net.eval()


@torch.no_grad()
def judged(net: torch.nn.Module, batches: Batches) -> tuple[int, int]:
    """Returns how many samples the network classifies correctly, and how many there are."""
    right = samples = 0
    for image, label in batches:
        right += int((net(image).argmax(1) == label).sum())
        samples += int((label >= 0).sum())
    return right, samples


@dataclass(frozen=True)
class Result:
    """The networks that were trained with one loader, and their accuracies, by seed."""

    networks: list[torch.nn.Module]
    accuracies: list[float]

    @property
    def mean(self) -> float:
        return statistics.mean(self.accuracies)

    def margin(self, other: Result) -> float:
        """Returns the largest difference of two means that counts as equal."""
        pooled = statistics.mean(statistics.variance(result.accuracies) for result in (self, other))
        return T * math.sqrt(pooled * 2 / len(SEEDS))

    def equals(self, other: Result) -> bool:
        return abs(self.mean - other.mean) <= self.margin(other)

    def __str__(self) -> str:
        seeds = ", ".join(f"{100 * accuracy:.1f}" for accuracy in self.accuracies)
        return f"{100 * self.mean:.1f} % (seeds: {seeds})"


def train_and_judge(loader: ImageFolders | Shardtool) -> Result:
    """Trains a network for each seed, and evaluates it with the same loader."""
    threads = torch.get_num_threads()
    # Sums in one order. The loaders use the other cores.
    torch.set_num_threads(1)
    networks = [trained(loader.train(seed), seed) for seed in SEEDS]
    counts = [judged(net, loader.evaluate()) for net in networks]
    torch.set_num_threads(threads)
    assert {samples for _, samples in counts} == {PHOTOGRAPHS * math.prod(GRID) // 2}
    return Result(networks, [right / samples for right, samples in counts])
