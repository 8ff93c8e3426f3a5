#!/usr/bin/env python3
"""Images per second of the classic recipe with and without a cache of decoded images, alternately.

    python benches/python/decoded_cache.py PHOTOS [--rounds N]

PHOTOS is a folder of JPEGs: once as they are, once 60 of them enlarged to 4,000 x 3,000 pixels. Every round runs 3 s; the first one,
which fills the cache, is not counted. Run it with an interpreter that has Pillow and the wheel.
"""

import argparse
import io
import json
import pathlib
import statistics
import tempfile
import time
from typing import Union

from PIL import Image

import shardtool as st

SECONDS, LARGE = 3, (4000, 3000)


def pack(photos: list[pathlib.Path], folder: pathlib.Path, enlarge: bool) -> st.Split:
    with st.Writer(folder, "train") as writer:
        for number, path in enumerate(photos):
            image: Union[bytes, str] = str(path)
            if enlarge:
                file = io.BytesIO()
                Image.open(path).convert("RGB").resize(LARGE, Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
                image = file.getvalue()
            writer.write({"key": f"{number}", "image": image})
    return st.Dataset(folder).split("train")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    photos = sorted(path for pattern in ("*.jpg", "*.jpeg", "*.JPEG") for path in options.photos.rglob(pattern))
    steps = [st.RandomResizedCrop(224), st.RandomHorizontalFlip()]
    for name, used, batch in (("photographs", photos, 64), ("enlarged", photos[:60], 10)):
        with tempfile.TemporaryDirectory() as folder:
            split = pack(used, pathlib.Path(folder) / "dataset", name == "enlarged")
            cache = st.DecodedCache("2GiB", resize=512)
            loaders = {
                "without": st.Loader(split, batch, steps, workers=2),
                "decoded_cache": st.Loader(split, batch, steps, workers=2, decoded_cache=cache),
            }
            rates: dict[str, list[float]] = {loader: [] for loader in loaders}
            for number in range(options.rounds + 1):
                for which, loader in loaders.items():
                    images, began = 0, time.perf_counter()
                    while time.perf_counter() - began < SECONDS:
                        images += sum(len(batch["image"]) for batch in loader)
                    if number:
                        rates[which].append(images / (time.perf_counter() - began))
            stats = loaders["decoded_cache"].stats()["decoded_cache"]
            assert stats["misses"] == len(used) and stats["hits"] > 0 and stats["bad"] == 0
            medians = {which: round(statistics.median(values)) for which, values in rates.items()}
            print(json.dumps({"images": name, **medians, "bytes": stats["bytes"]}))


if __name__ == "__main__":
    main()
