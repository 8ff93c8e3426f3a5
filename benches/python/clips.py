#!/usr/bin/env python3
"""shardtool.torch.Loader compared with decord in PyTorch's DataLoader: random clips of videos per second.

    python benches/python/clips.py PHOTOS [--videos N] [--seconds N] [--rounds N]

Videos are windows that move over photographs of the folder PHOTOS: 340 x 256 pixels, 25 frames per second, H.264 as ffmpeg encodes
by default. Decord reads these files; shardtool reads the frames that ffmpeg has decoded from them to JPEG (`-q:v 3`). Both take
8 frames with a stride of 4 from a random place, one RandomResizedCrop(224) for all of them, and a flip, with two threads or
processes, all variants in each round, after one warm-up epoch each. First, frames of both are compared: JPEG may change them by
a few levels. Without decord or imageio-ffmpeg it prints `skip` and exits. Run it in the environment `torch` (scripts/python-env)
with the wheel, decord and imageio-ffmpeg in a folder of PYTHONPATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

import shardtool as st
from shardtool.torch import Loader

WORKERS, BATCH, FRAMES, STRIDE, SIZE, RATE = 2, 8, 8, 4, (340, 256), 25
#: Length of each round.
SECONDS = 4


def encode(photo: pathlib.Path, video: pathlib.Path, frames: int, seed: int) -> None:
    """Writes a video of a window that moves over a photograph."""
    import imageio_ffmpeg

    width, height = SIZE
    picture = np.asarray(Image.open(photo).convert("RGB").resize((2 * width, 2 * height), Image.Resampling.BICUBIC))
    turn = np.random.default_rng(seed).uniform(0, 2 * np.pi, 2)
    writer = imageio_ffmpeg.write_frames(str(video), SIZE, fps=RATE, codec="libx264", quality=None, macro_block_size=2)
    writer.send(None)
    for number in range(frames):
        x, y = (int((np.sin(number / 40 + turn[i]) + 1) / 2 * side) for i, side in enumerate(SIZE))
        writer.send(np.ascontiguousarray(picture[y : y + height, x : x + width]))
    writer.close()


def decode(video: pathlib.Path, folder: pathlib.Path) -> None:
    """Decodes a video to a folder of JPEGs."""
    import imageio_ffmpeg

    folder.mkdir(parents=True)
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(video), "-q:v", "3", str(folder / "%06d.jpg")]
    subprocess.run(command, check=True)


class Videos(Dataset[Any]):
    """A clip of each video, by decord."""

    def __init__(self, paths: list[pathlib.Path]):
        self.paths = paths
        self.steps = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        import decord

        video = decord.VideoReader(str(self.paths[index]), num_threads=1)
        start = int(torch.randint(len(video) - (FRAMES - 1) * STRIDE, ()))
        frames = video.get_batch([start + i * STRIDE for i in range(FRAMES)]).asnumpy()
        return self.steps(torch.from_numpy(frames).permute(0, 3, 1, 2))


def compare(split: st.Split, paths: list[pathlib.Path]) -> None:
    """Compares the same frames of both."""
    import decord

    clip = st.Clip("frames", [st.ResizeTo((SIZE[1], SIZE[0]))], FRAMES, sampling="uniform")
    for batch in st.Loader(split, 1, [clip, "image/key"], order=st.Sequential()):
        video = decord.VideoReader(str(paths[int(batch["image/key"][0].decode().split("/")[-1])]))
        expected = video.get_batch(torch.linspace(0, len(video) - 1, FRAMES).long().tolist()).asnumpy()
        difference = np.abs(batch["frames"][0].astype(int) - expected).mean()
        assert difference < 6, f"mean difference {difference}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path)
    for name, default in (("videos", 64), ("seconds", 10), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    for package in ("decord", "imageio_ffmpeg"):
        if importlib.util.find_spec(package) is None:
            print(f"skip: {package} is not installed")
            return 0
    torch.set_num_threads(1)
    photos = sorted(options.photos.rglob("*.jpg")) + sorted(options.photos.rglob("*.JPEG"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        paths = [folder / f"{number}.mp4" for number in range(options.videos)]
        for number, path in enumerate(paths):
            encode(photos[number % len(photos)], path, options.seconds * RATE, number)
            decode(path, folder / "frames" / "all" / f"{number}")
        st.pack(folder / "frames", folder / "dataset", kind="clips", fps=RATE)
        split = st.Dataset(folder / "dataset").split("train")
        compare(split, paths)
        steps = [st.RandomResizedCrop(224), st.RandomHorizontalFlip()]
        variants: dict[str, Any] = {
            "shardtool": Loader(split, BATCH, st.Clip("frames", steps, FRAMES, stride=STRIDE), workers=WORKERS),
            "decord, DataLoader": DataLoader(
                Videos(paths), BATCH, shuffle=True, drop_last=True, num_workers=WORKERS, persistent_workers=True
            ),
        }
        sizes = sum(path.stat().st_size for path in paths), sum(p.stat().st_size for p in (folder / "dataset").rglob("*"))
        print(json.dumps({"videos": len(paths), "bytes of videos": sizes[0], "bytes of the dataset": sizes[1]}))
        rates: dict[str, list[float]] = {name: [] for name in variants}
        for number in range(options.rounds + 1):
            for name in list(variants)[:: 1 if number % 2 else -1]:
                clips, began = 0, time.perf_counter()
                # Several epochs, since batches of the first one may have been built before.
                while time.perf_counter() - began < SECONDS:
                    for batch in variants[name]:
                        clips += len(batch["frames"] if isinstance(batch, dict) else batch)
                # The first round is the warm-up.
                if number:
                    rates[name].append(clips / (time.perf_counter() - began))
        for name, values in rates.items():
            ratio = statistics.median(np.divide(values, rates["decord, DataLoader"]))
            print(json.dumps({"loader": name, "clips/s": round(statistics.median(values), 1), "ratio": round(ratio, 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
