"""Random chains of steps on pixels, a label map, boxes and keypoints, which a loader delivers, replayed with torchvision's functions
and the parameters that a preview names (`test_chains_albumentations.py`: with Albumentations)."""

from unittest import mock

import numpy as np
import pytest
from chains import CHAINS, N, POINTS, Sample, delivered, nearest, write
from PIL import Image

import shardtool as st

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
from replay import as_image, geometry, replay  # noqa: E402
from test_steps import photograph  # noqa: E402
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402


def of_labels(value):
    """Returns a plan as label maps follow it: by the nearest pixel, and 0 outside the image."""
    if isinstance(value, list):
        return [of_labels(each) for each in value]
    if not isinstance(value, dict):
        return value
    others = {"interpolation": "nearest", "fill": [0]}
    return {name: others[name] if name in others else of_labels(each) for name, each in value.items()}


def resize_labels(image, size, *_, **__):
    """Resizes as Pillow does: to the pixel whose centre is nearest. torchvision takes the one at the upper left corner."""
    resized = Image.fromarray(image[0].numpy()).resize(size[::-1], Image.Resampling.NEAREST)
    return tv_tensors.Image(torch.from_numpy(np.array(resized))[None])


def sides_of(boxes):
    """Returns the shorter side of each box."""
    left, top, right, bottom = np.asarray(boxes).T
    return np.minimum(right - left, bottom - top)


def place_of(points):
    """Returns which points lie in their image, and which so near to its edge that rounding decides."""
    height, width = points.canvas_size
    points, size = np.asarray(points), np.array([width, height])
    return ((points >= 0) & (points < size)).all(-1), (np.abs(points) < 1e-2).any(-1) | (np.abs(points - size) < 1e-2).any(-1)


def compare(row):
    """Compares one row. Returns how many objects, points, labels and ties of labels were compared."""
    plan, sample, context = row.plan, row.sample, row.context
    expected = np.asarray(replay(plan, geometry(plan, as_image(sample.image)))).transpose(1, 2, 0)
    difference = np.abs(row.image.astype(int) - expected)
    # Each resize and warp may round a half to another side.
    assert difference.max() <= 2, (difference.max(), (difference > 2).mean(), context)
    # 0 is outside the image, and 255 in the batch.
    stored = tv_tensors.Image(torch.from_numpy(sample.labels + 1)[None])
    by_labels = of_labels(plan)
    with mock.patch.object(F, "resize", resize_labels):
        theirs = np.asarray(replay(by_labels, geometry(by_labels, stored)))[0]
    exact, ties = nearest(plan, sample.labels + 1)
    for each in (row.labels + np.uint8(1), theirs):
        assert (each == exact)[~ties].all(), ((each != exact)[~ties].mean(), context)
    stored = {"dtype": torch.float64, "canvas_size": (sample.height, sample.width)}
    boxes = tv_tensors.BoundingBoxes(torch.from_numpy(sample.boxes), format="XYXY", **stored)
    points = tv_tensors.KeyPoints(torch.from_numpy(sample.points.reshape(-1, 2)), **stored)
    boxes, points = geometry(plan, boxes), geometry(plan, points)
    sides, places = [sides_of(boxes)], [place_of(points)]
    for stage in plan["stages"]:
        boxes, points = replay({"stages": [stage]}, boxes), replay({"stages": [stage]}, points)
        sides.append(sides_of(boxes))
        places.append(place_of(points))
    boxes = np.asarray(boxes)
    np.testing.assert_allclose(row.boxes, boxes[row.numbers], atol=1e-3, err_msg=f"{context}")
    # torchvision keeps a box that a crop leaves without an area, and a later warp may give it one again. The loader drops it.
    least = np.min(sides, 0)
    assert (least[row.numbers] > 0).all(), (least, row.numbers, context)
    if not any(isinstance(step, st.RandomIoUCrop) for step in row.steps):
        assert (np.delete(least, row.numbers) < 1e-3).all(), (least, row.numbers, context)
    points = np.asarray(points).reshape(-1, POINTS, 2)[row.numbers]
    # torchvision keeps a point that a crop leaves outside, and a later border may hold it. The loader drops it.
    inside = np.all([inside for inside, _ in places], 0).reshape(-1, POINTS)[row.numbers]
    near = np.any([near for _, near in places], 0).reshape(-1, POINTS)[row.numbers]
    assert ((row.points[..., 2] > 0) == inside)[~near].all(), (points, row.points, context)
    np.testing.assert_allclose(row.points[inside & ~near][:, :2], points[inside & ~near], atol=1e-3, err_msg=f"{context}")
    return len(row.numbers), int(inside.sum()), ties.size, int(ties.sum())


def test_random_chains_equal_torchvisions(tmp_path):
    samples = [Sample(number, photograph(number)) for number in range(N)]
    compared = np.zeros(4, int)
    for row in delivered(write(tmp_path / "set", samples), samples):
        compared += compare(row)
    boxes, points, labels, ties = compared
    print(f"{CHAINS} chains: {boxes} boxes, {points} points, {labels} labels, {ties} of them ties")
    assert boxes > 10 * CHAINS and points > 10 * CHAINS and ties <= 0.1 * labels
