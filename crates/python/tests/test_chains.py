"""Random chains of steps on pixels, a label map, boxes and keypoints, which a loader delivers, replayed with torchvision's functions
and the parameters that a preview names.

SHARDTOOL_CHAINS sets the number of chains, each with ten samples (`scripts/campaign chains`: 10,000 chains), and
SHARDTOOL_CHAINS_SEED the number of the first one.
"""

import io
import os
from unittest import mock

import numpy as np
import pytest
from PIL import Image

import shardtool as st

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
from replay import as_image, geometry, replay  # noqa: E402
from test_steps import boxes_in, photograph  # noqa: E402
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

CHAINS = int(os.environ.get("SHARDTOOL_CHAINS", 40))
FIRST = int(os.environ.get("SHARDTOOL_CHAINS_SEED", 0))
N = 10
NUMBER = "image/object/number"
POINTS = 4


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


class Sample:
    def __init__(self, number):
        random = np.random.default_rng((3, number))
        self.image = photograph(number)
        self.height, self.width = self.image.shape[:2]
        # Labels are of 8 bits; each region has some pixels in width, so that a shifted map is found at its sides.
        regions = Image.fromarray(random.integers(0, 200, (12, 12), dtype=np.uint8))
        self.labels = np.asarray(regions.resize((self.width, self.height), Image.Resampling.NEAREST))
        # Stored as fractions in f32.
        size = np.array([self.width, self.height])
        self.boxes = (boxes_in(self.image, number) / [*size, *size]).astype(np.float32).astype(np.float64) * [*size, *size]
        points = random.random((len(self.boxes), POINTS, 2)).astype(np.float32)
        self.points = points.astype(np.float64) * size


SAMPLES = [Sample(number) for number in range(N)]


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    path = tmp_path_factory.mktemp("chains") / "set"
    with st.Writer(path, "train", boxes="xyxy") as writer:
        for number, sample in enumerate(SAMPLES):
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


def moved(plan, points, clipped):
    """Returns points `[n, 2]` after what a plan names, in f64. If `clipped`, they are the corners of boxes, four by four: they become
    those of the box around them after each operation, clipped to the image. `None` after a perspective."""

    def box(points, width, height):
        if not clipped:
            return points
        corners = points.reshape(-1, 4, 2)
        low, high = corners.min(1).clip(0, [width, height]), corners.max(1).clip(0, [width, height])
        (left, top), (right, bottom) = low.T, high.T
        return np.stack([left, top, right, top, left, bottom, right, bottom], -1).reshape(-1, 2)

    g = plan["geometry"]
    width, height = g["size"]
    area = g["area"]
    points = points + g["canvas"]["offset"]
    points = (points - [area["left"], area["top"]]) * [width / area["width"], height / area["height"]]
    stages = [name for name in ("horizontal_flip", "vertical_flip") if g["orientation"]["flip_" + "xy"[name[0] == "v"]]]
    points = box(points, width, height)
    for stage in [*stages, *plan["stages"]]:
        name, values = (stage, {}) if isinstance(stage, str) else next(iter(stage.items()))
        if name == "horizontal_flip":
            points = [width, 0] + points * [-1, 1]
        elif name == "vertical_flip":
            points = [0, height] + points * [1, -1]
        elif name == "crop":
            points = points - [values["left"], values["top"]]
            width, height = values["width"], values["height"]
        elif name == "pad":
            left, top, right, bottom = values["padding"]
            points = points + [left, top]
            width, height = width + left + right, height + top + bottom
        elif name == "resize":
            points = points * [values["width"] / width, values["height"] / height]
            width, height = values["width"], values["height"]
        elif name == "affine":
            # From pixels of the result to those of the image, about the centre.
            matrix = np.reshape(values["matrix"], (2, 3)).astype(np.float64)
            centre = np.array([width, height]) / 2
            points = np.linalg.solve(matrix[:, :2], (points - centre - matrix[:, 2]).T).T + centre
        else:
            assert name == "perspective", name
            return None
        points = box(points, width, height)
    return points


def of_labels(value):
    """Returns a plan as label maps follow it: by the nearest pixel, and 0 outside the image."""
    if isinstance(value, list):
        return [of_labels(each) for each in value]
    if not isinstance(value, dict):
        return value
    nearest = {"interpolation": "nearest", "fill": [0]}
    return {name: nearest[name] if name in nearest else of_labels(each) for name, each in value.items()}


def resize_labels(image, size, *_, **__):
    """Resizes as Pillow does: to the pixel whose centre is nearest. torchvision takes the one at the upper left corner."""
    resized = Image.fromarray(image[0].numpy()).resize(size[::-1], Image.Resampling.NEAREST)
    return tv_tensors.Image(torch.from_numpy(np.array(resized))[None])


def compare(batch, row, sample, steps, seed):
    """Compares one row. Returns how many objects and points were compared, and whether the label map has ties."""
    found = st.preview(sample.image, steps, seed=seed, position=int(batch["id"][row]), boxes=sample.boxes)
    plan, context = found.plan, (seed, int(batch["id"][row]), steps, found.plan)
    ours, labels = batch["image"][row], batch["mask"][row]
    np.testing.assert_array_equal(ours, found.image, err_msg=f"{context}")
    expected = np.asarray(replay(plan, geometry(plan, as_image(sample.image)))).transpose(1, 2, 0)
    difference = np.abs(ours.astype(int) - expected)
    assert (difference > 2).mean() <= 0.02, ((difference > 2).mean(), context)
    # 0 is outside the image, and 255 in the batch.
    stored = tv_tensors.Image(torch.from_numpy(sample.labels + 1)[None])
    nearest = of_labels(plan)
    with mock.patch.object(F, "resize", resize_labels):
        wrong = np.asarray(replay(nearest, geometry(nearest, stored)))[0] != labels + np.uint8(1)
    # Where the centre of a row or column lies between two of the pixels before it, the rounding of f64 decides: few are so. A later
    # resize may enlarge them.
    rows, columns = wrong.mean(1) > 0.5, wrong.mean(0) > 0.5
    rest = wrong[~rows][:, ~columns].mean()
    assert max(rows.mean(), columns.mean()) <= 0.3 and rest <= 0.15, (rows.mean(), columns.mean(), rest, context)
    tie = int(wrong.mean() > 0.01)
    left, top, right, bottom = sample.boxes.T
    corners = np.stack([left, top, right, top, left, bottom, right, bottom], -1).reshape(-1, 2)
    corners, points = moved(plan, corners, True), moved(plan, sample.points.reshape(-1, 2), False)
    if points is None:
        return 0, 0, tie
    numbers = batch[NUMBER].row(row)
    corners = corners.reshape(-1, 4, 2)
    boxes = np.concatenate([corners.min(1), corners.max(1)], 1)
    np.testing.assert_allclose(batch["boxes"].row(row), boxes[numbers], atol=2e-3, err_msg=f"{context}")
    height, width = labels.shape
    kept = batch["keypoints"].row(row).reshape(len(numbers), POINTS, 3)
    points = points.reshape(-1, POINTS, 2)[numbers]
    inside = ((points >= 0) & (points < [width, height])).all(-1)
    near = (np.abs(points) < 1e-2).any(-1) | (np.abs(points - [width, height]) < 1e-2).any(-1)
    assert ((kept[..., 2] > 0) == inside)[~near].all(), (points, kept, context)
    np.testing.assert_allclose(kept[inside & ~near][:, :2], points[inside & ~near], atol=2e-3, err_msg=f"{context}")
    return len(numbers), int(inside.sum()), tie


def test_random_chains_equal_torchvisions(split):
    objects = st.Objects(
        properties=[NUMBER], keypoints="image/object/keypoints", flip_index=range(POINTS), min_size=0, min_area=0
    )
    compared = np.zeros(3, int)
    for seed in range(FIRST, FIRST + CHAINS):
        steps = chain_of(np.random.default_rng((11, seed)))
        fields = [st.Image(steps), st.Mask("mask"), objects]
        with st.Loader(split, N, fields, order=st.Sequential(seed=seed), workers=1) as loader:
            batch = next(iter(loader))
            for row in range(N):
                compared += compare(batch, row, SAMPLES[int(batch["id"][row])], steps, seed)
            del batch
    boxes, points, ties = compared
    print(f"{CHAINS} chains: {boxes} boxes, {points} points, {ties} label maps with ties")
    assert boxes > 10 * CHAINS and points > 10 * CHAINS and ties <= 0.03 * N * CHAINS
