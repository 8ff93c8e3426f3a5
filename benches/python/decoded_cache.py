#!/usr/bin/env python3
"""Samples per second with and without a cache of decoded images, alternately: the classic recipe, segmentation and clips.

    python benches/python/decoded_cache.py PHOTOS [--rounds N]

PHOTOS is a folder of JPEGs: as they are; 60 of them enlarged to 4,000 x 3,000 pixels; 60 of them enlarged to 2,000 x 1,500 pixels with
a label map of as many pixels; and 20 clips of 32 frames of 640 x 480 pixels. Every round runs 3 s; the first one, which fills the
cache, is not counted. Run it with an interpreter that has Pillow and the wheel.
"""

import argparse
import io
import json
import pathlib
import statistics
import tempfile
import time
from typing import Any, Callable

from PIL import Image

import shardtool as st

SECONDS = 3
CROP = [st.RandomResizedCrop(224), st.RandomHorizontalFlip()]


def enlarged(path: pathlib.Path, size: tuple[int, int], format: str = "JPEG") -> bytes:
    """Returns an image of another size: a JPEG, or a label map of eight labels as a PNG."""
    file = io.BytesIO()
    image = Image.open(path).convert("RGB").resize(size, Image.Resampling.BICUBIC)
    if format == "PNG":
        image = image.convert("L").point([value // 32 for value in range(256)])
    image.save(file, format, quality=90)
    return file.getvalue()


def photographs(photos: list[pathlib.Path], folder: pathlib.Path) -> st.Split:
    with st.Writer(folder, "train") as writer:
        for number, path in enumerate(photos):
            writer.write({"key": f"{number}", "image": str(path)})
    return st.Dataset(folder).split("train")


def large(photos: list[pathlib.Path], folder: pathlib.Path) -> st.Split:
    with st.Writer(folder, "train") as writer:
        for number, path in enumerate(photos[:60]):
            writer.write({"key": f"{number}", "image": enlarged(path, (4000, 3000))})
    return st.Dataset(folder).split("train")


def segmentation(photos: list[pathlib.Path], folder: pathlib.Path) -> st.Split:
    with st.Writer(folder, "train") as writer:
        for number, path in enumerate(photos[:60]):
            image, labels = enlarged(path, (2000, 1500)), enlarged(path, (2000, 1500), "PNG")
            writer.write({"key": f"{number}", "image": image, "mask": labels})
    return st.Dataset(folder).split("train")


def clips(photos: list[pathlib.Path], folder: pathlib.Path) -> st.Split:
    frames = folder.with_name("frames")
    for video in range(20):
        path = frames / f"{video}"
        path.mkdir(parents=True)
        for number in range(32):
            source = photos[(32 * video + number) % len(photos)]
            (path / f"{number}.jpg").write_bytes(enlarged(source, (640, 480)))
    st.pack(frames, folder, kind="clips")
    return st.Dataset(folder).split("train")


def image(cache: st.DecodedCache | None) -> list[Any]:
    return [st.Image(CROP, decoded_cache=cache)]


def image_and_mask(cache: st.DecodedCache | None) -> list[Any]:
    return [st.Image(CROP, decoded_cache=cache), st.Mask("mask")]


def clip(cache: st.DecodedCache | None) -> list[Any]:
    return [st.Clip("frames", CROP, 8, stride=4, decoded_cache=cache)]


Write = Callable[[list[pathlib.Path], pathlib.Path], st.Split]
Fields = Callable[["st.DecodedCache | None"], list[Any]]
#: Name, writer, rows of a batch, fields with or without a cache, and pixels of the shorter side in the cache.
CASES: list[tuple[str, Write, int, Fields, int]] = [
    ("photographs", photographs, 64, image, 512),
    ("12 megapixels", large, 10, image, 512),
    ("3 megapixels with label maps", segmentation, 10, image_and_mask, 512),
    ("clips of 8 frames", clips, 5, clip, 256),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    photos = sorted(path for pattern in ("*.jpg", "*.jpeg", "*.JPEG") for path in options.photos.rglob(pattern))
    for name, write, batch, fields, resize in CASES:
        with tempfile.TemporaryDirectory() as folder:
            split = write(photos, pathlib.Path(folder) / "dataset")
            cache = st.DecodedCache("2GiB", resize=resize)
            loaders = {
                "without": st.Loader(split, batch, fields(None), workers=2),
                "decoded_cache": st.Loader(split, batch, fields(cache), workers=2),
            }
            rates: dict[str, list[float]] = {loader: [] for loader in loaders}
            for number in range(options.rounds + 1):
                for which, loader in loaders.items():
                    samples, began = 0, time.perf_counter()
                    while time.perf_counter() - began < SECONDS:
                        samples += sum(len(batch["id"]) for batch in loader)
                    if number:
                        rates[which].append(samples / (time.perf_counter() - began))
            stats = loaders["decoded_cache"].stats()["decoded_cache"]
            assert stats["misses"] == stats["images"] and stats["hits"] > stats["misses"] and stats["bad"] == 0
            medians = {which: round(statistics.median(values)) for which, values in rates.items()}
            print(json.dumps({"samples": name, **medians, "bytes": stats["bytes"]}))


if __name__ == "__main__":
    main()
