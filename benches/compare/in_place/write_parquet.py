"""Writes a folder of class folders as Parquet, as `push_to_hub` does: write_parquet.py FOLDER OUT FILES"""

import pathlib
import sys

import datasets
from datasets.table import embed_table_storage


def main(folder, out, count):
    folder, out, count = pathlib.Path(folder), pathlib.Path(out), int(count)
    files = sorted(folder.glob("*/*"))
    names = sorted({path.parent.name for path in files})
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)})
    rows = {"image": [str(path) for path in files], "label": [path.parent.name for path in files]}
    data = datasets.Dataset.from_dict(rows, features=features)
    out.mkdir()
    for number in range(count):
        part = data.shard(count, number, contiguous=True)
        part = part.with_format("arrow").map(embed_table_storage, batched=True, batch_size=100).with_format(None)
        part.to_parquet(out / f"train-{number:05}-of-{count:05}.parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
