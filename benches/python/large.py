#!/usr/bin/env python3
"""Compares training on photographs of 12 megapixels with torchvision and DALI, exactly and with `scaled_decode`, in one run.

    python benches/python/large.py PHOTOS [--count N] [--copies N] [--rounds N] [--workers N] [--dali INTERPRETER]

PHOTOS is a folder of folders of JPEGs. From these it makes `count` images of 4000 × 3000 pixels, each of 48 photographs side by
side: their detail is that of photographs pixel by pixel, finer than a camera's. Prints how the pixels of RandomResizedCrop(224)
with `scaled_decode` differ from the exact ones, and then what `recipes.py --recipe crop` prints.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageOps

import shardtool as st

COLUMNS, ROWS, SIDE = 8, 6, 500


def sheets(photos: list[str], folder: pathlib.Path, count: int) -> None:
    """Writes images of COLUMNS × ROWS photographs."""
    for number in range(count):
        sheet = Image.new("RGB", (COLUMNS * SIDE, ROWS * SIDE))
        for place in range(COLUMNS * ROWS):
            path = photos[(number * 31 + place * 7) % len(photos)]
            photo = ImageOps.fit(Image.open(path).convert("RGB"), (SIDE, SIDE))
            sheet.paste(photo, (place % COLUMNS * SIDE, place // COLUMNS * SIDE))
        sheet.save(folder / f"{number:04}.jpg", quality=90)


def differences(folder: pathlib.Path, dataset: pathlib.Path) -> None:
    """Prints by how much pixels differ: all of them, in units of 255."""
    st.pack(folder, dataset, jpeg_entries=False)
    split = st.Dataset(dataset).split("train")
    steps = [st.RandomResizedCrop(224), st.RandomHorizontalFlip()]
    counts = np.zeros(256, np.int64)
    pairs = (st.Loader(split, 8, st.Image(steps, scaled_decode=scaled), remainder="mask") for scaled in (False, True))
    for exact, scaled in zip(*pairs, strict=True):
        assert (exact["id"] == scaled["id"]).all() and exact["image"].std() > 10
        counts += np.bincount(np.abs(exact["image"].astype(int) - scaled["image"])[exact["valid"]].ravel(), minlength=256)
    share = counts.cumsum() / counts.sum()
    mean = (counts * np.arange(256)).sum() / counts.sum()
    print(f"scaled_decode: mean {mean:.3f}, 99.9 % at most {int((share < 0.999).sum())}, largest {int(counts.nonzero()[0][-1])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--count", type=int, default=48)
    for name, default in (("--copies", "4"), ("--rounds", "3"), ("--workers", "2"), ("--dali", None)):
        parser.add_argument(name, default=default)
    arguments = parser.parse_args()
    photos = sorted(str(path) for path in pathlib.Path(arguments.photos).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary, "sheets")
        folder.mkdir()
        sheets(photos, folder, arguments.count)
        differences(folder, pathlib.Path(temporary, "dataset"))
        options = ["--copies", arguments.copies, "--rounds", arguments.rounds, "--workers", arguments.workers]
        options += ["--dali", arguments.dali] if arguments.dali else []
        program = pathlib.Path(__file__).with_name("recipes.py")
        subprocess.run([sys.executable, program, folder, "--recipe", "crop", *options], check=True)


main()
