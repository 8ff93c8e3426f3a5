"""HTML of datasets, for notebooks."""

from __future__ import annotations

import base64
import html

from ._shardtool import Dataset

#: Number of thumbnails, and the largest image in bytes that is embedded.
_SHOWN = 6
_LARGEST = 1 << 20


def dataset_html(dataset: Dataset) -> str:
    """Returns a table of splits, and the first images of the first split."""
    splits = [dataset.split(name) for name in dataset.splits]
    rows = "".join(
        f"<tr><td>{html.escape(split.name)}</td><td>{len(split):,}</td><td>{len(split.shards):,}</td>"
        f"<td>{split.fingerprint}</td></tr>"
        for split in splits
    )
    images = ""
    for split in splits[:1]:
        for i in range(min(len(split), _SHOWN)):
            record = split[i]
            if record["image"] and len(record["image"]) <= _LARGEST:
                data = base64.b64encode(record["image"]).decode()
                kind = html.escape(_text(record["features"].get("image/format")) or "jpeg")
                images += f'<img src="data:image/{kind};base64,{data}" title="{html.escape(record["key"])}" height="96"> '
    return (
        f"<p><b>{html.escape(str(dataset.path))}</b>, {len(dataset.classes):,} classes</p>"
        f"<table><tr><th>split</th><th>records</th><th>shards</th><th>fingerprint</th></tr>{rows}</table>{images}"
    )


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
