"""Random chains of steps, and what a loader delivers of samples with a label map, boxes and points, for comparisons with other
libraries.

SHARDTOOL_CHAINS sets the number of chains, each with ten samples (`scripts/campaign chains`: 10,000 chains), and
SHARDTOOL_CHAINS_SEED the number of the first one.
"""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

import shardtool as st

CHAINS = int(os.environ.get("SHARDTOOL_CHAINS", 40))
FIRST = int(os.environ.get("SHARDTOOL_CHAINS_SEED", 0))
N = 10
NUMBER = "image/object/number"
POINTS = 4


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def boxes_in(image, seed):
    """Returns some boxes, `[n, 4]`."""
    random = np.random.default_rng(seed)
    height, width = image.shape[:2]
    corners = random.random((random.integers(1, 6), 2, 2)) * [width, height]
    return np.concatenate([corners.min(1), corners.max(1) + 4], 1).clip(0, [width, height, width, height])


class Sample:
    def __init__(self, number, image):
        random = np.random.default_rng((3, number))
        self.image = image
        self.height, self.width = image.shape[:2]
        # Labels are of 8 bits; each region has some pixels in width, so that a shifted map is found at its sides.
        regions = Image.fromarray(random.integers(0, 200, (12, 12), dtype=np.uint8))
        self.labels = np.asarray(regions.resize((self.width, self.height), Image.Resampling.NEAREST))
        # Stored as fractions in f32.
        size = np.array([self.width, self.height])
        self.boxes = (boxes_in(image, number) / [*size, *size]).astype(np.float32).astype(np.float64) * [*size, *size]
        points = random.random((len(self.boxes), POINTS, 2)).astype(np.float32)
        self.points = points.astype(np.float64) * size


def write(path, samples):
    """Writes samples as a dataset. Returns its split."""
    with st.Writer(path, "train", boxes="xyxy") as writer:
        for number, sample in enumerate(samples):
            points = np.concatenate([sample.points, np.full((*sample.points.shape[:2], 1), 2)], -1)
            objects = {"bbox": sample.boxes, "keypoints": points.reshape(len(points), -1)}
            objects["number"] = list(range(len(points)))
            record = {"key": f"{number:02}", "image": png(sample.image), "mask": png(sample.labels), "objects": objects}
            writer.write(record)
    return st.Dataset(path)["train"]


def chain_of(random):
    """Returns one to five steps that move pixels, and one that makes all results of one size."""
    whole = lambda low, high: int(random.integers(low, high))  # noqa: E731
    color = lambda: tuple(int(v) for v in random.integers(1, 256, 3))  # noqa: E731
    size = lambda: (whole(24, 90), whole(24, 90))  # noqa: E731
    kinds = [
        lambda: st.RandomHorizontalFlip(),
        lambda: st.RandomVerticalFlip(),
        lambda: st.ResizeTo(size()),
        lambda: st.Resize(whole(24, 70), whole(71, 120)),
        lambda: st.RandomShortestSize((30, 41, 55), max_size=80),
        lambda: st.ScaleJitter(whole(40, 70), (0.5, 1.6)),
        lambda: st.RandomZoomOut(fill=color(), side_range=(1.0, 2.0)),
        lambda: st.RandomIoUCrop(),
        lambda: st.Pad(tuple(whole(0, 9) for _ in range(4)), fill=color()),
        lambda: st.RandomCrop(size(), pad_if_needed=True, fill=color()),
        lambda: st.RandomResizedCrop(size(), scale=(0.2, 1.0)),
        # With a fill, torchvision darkens the edge twice.
        lambda: st.RandomRotation(whole(1, 90), interpolation="bilinear"),
        lambda: st.RandomAffine(whole(1, 30), (0.1, 0.2), (0.7, 1.3), (-10, 10, -5, 5), "bilinear"),
        lambda: st.RandomPerspective(0.3, 0.5),
    ]
    steps = [kinds[random.integers(len(kinds))]() for _ in range(random.integers(1, 6))]
    ends = [
        lambda: st.FixedSizeCrop(size(), fill=color()),
        lambda: st.ResizeTo(size()),
        lambda: st.RandomResizedCrop(size()),
    ]
    return [*steps, ends[random.integers(len(ends))]()]


#: Distance in pixels between a position and the edge of a pixel within which the rounding of a library decides which pixel is nearest.
TIE = 1e-4


def nearest(plan, labels):
    """Returns a label map after a plan, and which of its pixels are ties. Each pixel gets the label at the position of its centre in the
    image before, computed in f64, or 0 outside the image. At a tie, libraries may take the label of a neighbour."""
    g = plan["geometry"]
    area, (width, height), (canvas_left, canvas_top) = g["area"], g["size"], g["canvas"]["offset"]
    flips = [name for name in ("horizontal_flip", "vertical_flip") if g["orientation"]["flip_" + "xy"[name[0] == "v"]]]
    scale = area["width"] / width, area["height"] / height
    resized = lambda x, y: (area["left"] + x * scale[0] - canvas_left, area["top"] + y * scale[1] - canvas_top)  # noqa: E731
    maps, ties = [((width, height), resized)], np.zeros(labels.shape, bool)
    for stage in [*flips, *plan["stages"]]:
        maps.append(back(stage, *maps[-1][0]))
    for (width, height), position in maps:
        x, y = position(*np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5))
        near = np.minimum(abs(x - np.round(x)), abs(y - np.round(y))) < TIE
        column, row = np.floor(x).astype(int), np.floor(y).astype(int)
        outside = (column < 0) | (column >= labels.shape[1]) | (row < 0) | (row >= labels.shape[0])
        column, row = np.where(outside, 0, column), np.where(outside, 0, row)
        labels, ties = np.where(outside, 0, labels[row, column]), near | (~outside & ties[row, column])
    return labels, ties


def back(stage, width, height):
    """Returns the size of the result of a stage on an image, and the function that maps positions in the result to those in the
    image."""
    name, values = (stage, {}) if isinstance(stage, str) else next(iter(stage.items()))
    if name == "horizontal_flip":
        return (width, height), lambda x, y: (width - x, y)
    if name == "vertical_flip":
        return (width, height), lambda x, y: (x, height - y)
    if name == "crop":
        return (values["width"], values["height"]), lambda x, y: (x + values["left"], y + values["top"])
    if name == "pad":
        left, top, right, bottom = values["padding"]
        return (width + left + right, height + top + bottom), lambda x, y: (x - left, y - top)
    if name == "resize":
        size = values["width"], values["height"]
        return size, lambda x, y: (x * width / size[0], y * height / size[1])
    if name == "affine":
        a, b, c, d, e, f = values["matrix"]
        u, v = width / 2, height / 2
        return (width, height), lambda x, y: (
            a * (x - u) + b * (y - v) + c + u,
            d * (x - u) + e * (y - v) + f + v,
        )
    assert name == "perspective", name
    a, b, c, d, e, f, g, h = values["coefficients"]
    return (width, height), lambda x, y: ((a * x + b * y + c) / (g * x + h * y + 1), (d * x + e * y + f) / (g * x + h * y + 1))


@dataclass
class Row:
    """A sample as a loader delivers it after a chain of steps."""

    sample: Sample
    steps: list[Any]
    #: Previews a chain on the sample: its plan has the parameters that the loader drew.
    preview: Callable[[list[Any]], st.transforms.Preview]
    plan: dict[str, Any]
    image: np.ndarray
    labels: np.ndarray
    #: The objects that are left, by their place in the sample, and their boxes `[n, 4]` and points `[n, POINTS, 3]`.
    numbers: np.ndarray
    boxes: np.ndarray
    points: np.ndarray
    #: Names the case in a message.
    context: Any


def delivered(split, samples) -> Iterator[Row]:
    """Yields what a loader delivers of each sample after each of the chains."""
    objects = st.Objects(
        properties=[NUMBER], keypoints="image/object/keypoints", flip_index=range(POINTS), min_size=0, min_area=0
    )
    for seed in range(FIRST, FIRST + CHAINS):
        steps = chain_of(np.random.default_rng((11, seed)))
        fields = [st.Image(steps), st.Mask("mask"), st.PixelMask(), objects]
        with st.Loader(split, len(samples), fields, order=st.Sequential(seed=seed), workers=1) as loader:
            batch = next(iter(loader))
            for row, position in enumerate(batch["id"].tolist()):
                sample = samples[position]
                preview = partial(st.preview, sample.image, seed=seed, position=position, boxes=sample.boxes)
                found = preview(steps)
                context = (seed, position, steps, found.plan)
                np.testing.assert_array_equal(batch["image"][row], found.image, err_msg=f"{context}")
                numbers, boxes = batch[NUMBER].row(row), batch["boxes"].row(row)
                points = batch["keypoints"].row(row).reshape(-1, POINTS, 3)
                labels = batch["mask"][row]
                # No stored label is 255.
                np.testing.assert_array_equal(batch["pixel_mask"][row], labels != 255, err_msg=f"{context}")
                yield Row(sample, steps, preview, found.plan, found.image, labels, numbers, boxes, points, context)
            del batch
