"""Compares boxes, label maps and points after random chains of steps (`chains.py`) with Albumentations' transforms, which get the
parameters that a preview names. `docs/testing.md` lists the differences, and each has a test here."""

import os

import numpy as np
import pytest
from chains import CHAINS, N, POINTS, Sample, delivered, nearest, write

import shardtool as st

# Its import looks for newer versions in the network otherwise.
os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
A = pytest.importorskip("albumentations")
cv2 = pytest.importorskip("cv2")

pytestmark = pytest.mark.campaign

#: Pixels by which boxes and points may differ: Albumentations rounds them to f32 after each step, boxes as fractions of the image.
CLOSE = 1e-3


def to_indices(points, **_):
    """Moves points from continuous coordinates to pixel indices, where 0 is the centre of the first pixel."""
    return points - [0.5, 0.5, *np.zeros(points.shape[1] - 2)]


def from_indices(points, **_):
    return points + [0.5, 0.5, *np.zeros(points.shape[1] - 2)]


def by_indices(transform):
    """Returns a transform that takes points for pixel indices, between conversions from and to continuous coordinates."""
    return [A.Lambda(keypoints=to_indices), transform, A.Lambda(keypoints=from_indices)]


def resize(width, height, **_):
    return A.Resize(height, width, mask_interpolation=cv2.INTER_NEAREST_EXACT)


def crop(left, top, width, height):
    return A.Crop(left, top, left + width, top + height)


def affine(matrix, **_):
    """Returns the affine transform of a matrix from pixels of the result to those of the image, about the centre."""
    back = np.append(matrix, [0, 0, 1]).reshape(3, 3)
    (a, b, x), (c, d, y), _ = np.linalg.inv(back)
    # The linear part as shear * rotation * scale: with the rotation given, the diagonal of the shear, 1, gives the scales.
    rotation = np.arctan2(b - c, a + d)
    cos, sin = np.cos(rotation), np.sin(rotation)
    if np.allclose([a, b], [d, -c], atol=1e-6):
        scale_x = scale_y = np.hypot(a, b)
    else:
        scale_x, scale_y = 1 / np.linalg.solve([[a * cos, b * sin], [-c * sin, d * cos]], [1, 1])
    shear = [[a, b], [c, d]] @ np.diag([1 / scale_x, 1 / scale_y]) @ [[cos, -sin], [sin, cos]]
    # Translations are whole pixels, in f32.
    assert max(abs(x - round(x)), abs(y - round(y))) < 1e-3, (x, y)
    both = lambda value: (float(value), float(value))  # noqa: E731
    degrees = lambda tangent: both(-np.degrees(np.arctan(tangent)))  # noqa: E731
    return A.Affine(
        rotate=both(np.degrees(rotation)),
        scale={"x": both(scale_x), "y": both(scale_y)},
        shear={"x": degrees(shear[0, 1]), "y": degrees(shear[1, 0])},
        translate_px={"x": round(x), "y": round(y)},
        p=1,
    )


class Homography(A.Perspective):
    """A perspective of given coefficients, in continuous coordinates for boxes and in pixel indices for the others."""

    def __init__(self, coefficients):
        super().__init__(p=1)
        self.forward = np.linalg.inv(np.append(coefficients, 1).reshape(3, 3))

    def get_params_dependent_on_data(self, params, data):
        height, width = params["shape"][:2]
        shift = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
        matrix = np.linalg.inv(shift) @ self.forward @ shift
        return {"matrix": matrix, "matrix_bbox": self.forward, "max_height": height, "max_width": width}


#: For each stage, Albumentations' transforms of the same parameters.
STAGES = {
    "crop": lambda **v: [crop(**v)],
    "pad": lambda padding, **_: [A.Pad(tuple(padding))],
    "resize": lambda **v: [resize(**v)],
    "horizontal_flip": lambda: by_indices(A.HorizontalFlip(p=1)),
    "vertical_flip": lambda: by_indices(A.VerticalFlip(p=1)),
    "affine": lambda **v: by_indices(affine(**v)),
    "perspective": lambda coefficients, **_: by_indices(Homography(coefficients)),
}


def transforms(plan):
    """Returns Albumentations' transforms of a plan."""
    g = plan["geometry"]
    (width, height), (left, top), canvas = g["stored"], g["canvas"]["offset"], g["canvas"]["size"]
    padding = left, top, canvas[0] - left - width, canvas[1] - top - height
    outer, area, size = g["crop"], g["area"], g["size"]
    # The crop after the resize: the area is a part of the first crop.
    scales = size[0] / area["width"], size[1] / area["height"]
    resized = round(outer["width"] * scales[0]), round(outer["height"] * scales[1])
    inner = round((area["left"] - outer["left"]) * scales[0]), round((area["top"] - outer["top"]) * scales[1])
    found = [A.Pad(padding), crop(**outer), resize(*resized), crop(*inner, *size)]
    for name in ("horizontal_flip", "vertical_flip"):
        if g["orientation"]["flip_" + "xy"[name[0] == "v"]]:
            found += STAGES[name]()
    for stage in plan["stages"]:
        name, values = (stage, {}) if isinstance(stage, str) else next(iter(stage.items()))
        found += STAGES[name](**values)
    return found


def apply(steps, sample, minimum=0, remove_invisible=False):
    """Applies Albumentations' transforms to a sample. Returns `mask`, the `numbers` of the remaining objects, `bboxes` and `keypoints`."""
    boxes = A.BboxParams("pascal_voc", label_fields=["numbers"], min_width=minimum)
    points = A.KeypointParams("xy", remove_invisible=remove_invisible)
    return A.Compose(steps, bbox_params=boxes, keypoint_params=points)(
        image=sample.image,
        # 0 is outside the image, and 255 in a batch.
        mask=sample.labels + np.uint8(1),
        bboxes=sample.boxes,
        numbers=np.arange(len(sample.boxes)),
        keypoints=sample.points.reshape(-1, 2),
    )


def by_number(found):
    return {int(number): box for number, box in zip(found["numbers"], found["bboxes"])}


def unpadded(row, count):
    """Returns Albumentations' result of the first steps of a chain. A preview needs steps that end in one size, so padding at the right
    and at the bottom follows. Returns also whether it is a stage: it is left out then."""
    steps = row.steps[:count]
    # A zoom out doubles an image at most.
    side = 256 << sum(isinstance(step, st.RandomZoomOut) for step in steps)
    plan = row.preview([*steps, st.FixedSizeCrop(side)]).plan
    padded = plan["stages"][-1:]
    last = bool(padded) and "pad" in padded[0]
    return apply(transforms({**plan, "stages": plan["stages"][:-1]} if last else plan), row.sample), last


def with_centre_in_crops(row):
    """Returns the numbers of the objects whose boxes have their centre inside the crop of each `RandomIoUCrop`. It drops the others."""
    left = set(range(len(row.sample.boxes)))
    for i, step in enumerate(row.steps):
        if isinstance(step, st.RandomIoUCrop):
            (before, _), (after, cropped) = unpadded(row, i), unpadded(row, i + 1)
            if not cropped:
                # If it leaves the image whole, the padding is a part of the geometry, and no box is dropped.
                continue
            offsets = before["keypoints"] - after["keypoints"]
            offset = offsets.mean(0)
            # The crop moves all points by the same.
            assert abs(offsets - offset).max() < 1e-3, row.context
            height, width = after["mask"].shape
            centres = {number: (box[:2] + box[2:]) / 2 - offset for number, box in by_number(before).items()}
            left &= {number for number, (x, y) in centres.items() if 0 < x < width and 0 < y < height}
    return left


def shown(row):
    """Returns which points lie in the image after each stage, and which so near to an edge that rounding decides. Albumentations keeps a
    point that a crop leaves outside, and a later border may hold it. The loader drops it."""
    inside, near = True, False
    for count in range(len(row.plan["stages"]) + 1):
        found = apply(transforms({**row.plan, "stages": row.plan["stages"][:count]}), row.sample)
        points, size = found["keypoints"].reshape(-1, POINTS, 2), found["mask"].shape[::-1]
        inside &= ((points >= 0) & (points < size)).all(-1)
        near |= (abs(points) < CLOSE).any(-1) | (abs(points - size) < CLOSE).any(-1)
    return inside, near


def compare(row):
    """Compares one row. Returns how many objects, points, labels, ties of labels and different labels were compared."""
    context, sample = row.context, row.sample
    theirs, ours = apply(transforms(row.plan), sample), row.labels + np.uint8(1)
    exact, ties = nearest(row.plan, sample.labels + np.uint8(1))
    for labels in (theirs["mask"], ours):
        assert (labels == exact)[~ties].all(), ((labels != exact)[~ties].mean(), context)
    boxes, mine = by_number(theirs), dict(zip(row.numbers.tolist(), row.boxes))
    boxes = {number: boxes[number] for number in boxes.keys() & with_centre_in_crops(row)}
    for number in boxes.keys() ^ mine.keys():
        box = boxes.get(number, mine.get(number))
        # The rounding of f32 decides whether such a box has an area.
        assert (box[2:] - box[:2]).min() < CLOSE, (number, box, context)
    for number in boxes.keys() & mine.keys():
        np.testing.assert_allclose(mine[number], boxes[number], rtol=0, atol=CLOSE, err_msg=f"{context}")
    points = theirs["keypoints"].reshape(-1, POINTS, 2)[row.numbers]
    inside, near = (found[row.numbers] for found in shown(row))
    assert ((row.points[..., 2] > 0) == inside)[~near].all(), (points, row.points, context)
    seen = inside & ~near
    np.testing.assert_allclose(row.points[seen][:, :2], points[seen], rtol=0, atol=CLOSE, err_msg=f"{context}")
    return len(mine), int(seen.sum()), ties.size, int(ties.sum()), int((ours != theirs["mask"]).sum())


def test_random_chains_equal_albumentations(tmp_path):
    random = np.random.default_rng(5)
    pixels = [random.integers(0, 256, (*random.integers(40, 120, 2), 3), np.uint8) for _ in range(N)]
    samples = [Sample(number, image) for number, image in enumerate(pixels)]
    compared = np.zeros(5, int)
    for row in delivered(write(tmp_path / "set", samples), samples):
        compared += compare(row)
    boxes, points, labels, ties, different = compared
    print(f"{CHAINS} chains: {boxes} boxes, {points} points, {labels} labels, {ties} of them ties, {different} different")
    assert boxes > 10 * CHAINS and points > 10 * CHAINS and ties <= 0.1 * labels


@pytest.fixture(scope="module")
def sample():
    """An image of 8 rows and 10 columns with a box, and points in the middle of its first pixel and of others."""
    made = Sample(0, np.zeros((8, 10, 3), np.uint8))
    made.labels = np.arange(80, dtype=np.uint8).reshape(8, 10)
    made.boxes = np.array([[1.0, 1, 7, 5]])
    made.points = np.array([[[0.5, 0.5], [9.5, 7.5], [5.5, 5.5], [1.5, 2.5]]])
    return made


@pytest.fixture(scope="module")
def ours(sample, tmp_path_factory):
    """Returns the label map, boxes and visible points of the sample as a loader delivers them in the given size."""
    split = write(tmp_path_factory.mktemp("differences") / "set", [sample])

    def load(*steps, size=(8, 10), minimum=0):
        objects = st.Objects(properties=[], keypoints="image/object/keypoints", flip_index=range(POINTS), min_size=minimum, min_area=0)
        with st.Loader(split, 1, [st.Image([*steps, st.CenterCrop(size)]), st.Mask("mask"), objects]) as loader:
            batch = next(iter(loader))
            points = batch["keypoints"].row(0).reshape(-1, 3)
            return batch["mask"][0].copy(), batch["boxes"].row(0).copy(), points[points[:, 2] > 0][:, :2]

    return load


def test_takes_points_for_indices_in_flips_and_not_in_resizes(sample, ours):
    # The middle of the first pixel becomes that of the last one, and of four pixels the middle.
    assert ours(st.HorizontalFlip(1.0))[2][0].tolist() == [9.5, 0.5]
    assert ours(st.ResizeTo((16, 20)), size=(16, 20))[2][0].tolist() == [1, 1]
    theirs = lambda *steps: apply(steps, sample)["keypoints"][0].tolist()  # noqa: E731
    assert theirs(*by_indices(A.HorizontalFlip(p=1))) == [9.5, 0.5]
    assert theirs(A.HorizontalFlip(p=1)) == [8.5, 0.5]
    assert theirs(A.Resize(16, 20)) == [1, 1]
    assert theirs(*by_indices(A.Resize(16, 20))) == [0.5, 0.5]


def test_takes_the_upper_left_pixel_in_resizes_of_label_maps(sample, ours):
    # Of each four pixels, the centre is the corner of the last one.
    assert (ours(st.ResizeTo((4, 5)), size=(4, 5))[0] == sample.labels[1::2, 1::2]).all()
    assert (apply([resize(5, 4)], sample)["mask"] == sample.labels[1::2, 1::2] + 1).all()
    assert (apply([A.Resize(4, 5)], sample)["mask"] == sample.labels[::2, ::2] + 1).all()


def test_drops_points_that_a_later_step_brings_back(sample, ours):
    assert len(ours(st.CornerCrop(4, "top_left"), st.Pad((0, 0, 6, 4)))[2]) == 2
    steps = [A.Crop(0, 0, 4, 4), A.Pad((0, 0, 6, 4))]
    assert len(apply(steps, sample)["keypoints"]) == 4
    assert len(apply(steps, sample, remove_invisible=True)["keypoints"]) == 2


def test_drops_boxes_that_are_small_between_two_steps(sample, ours):
    # 3 pixels in width between them, and 12 in the result.
    assert len(ours(st.ResizeTo((4, 5)), st.ResizeTo((16, 20)), size=(16, 20), minimum=4)[1]) == 1
    assert len(apply([A.Resize(4, 5), A.Resize(16, 20)], sample, minimum=4)["bboxes"]) == 0
    assert len(apply([A.Resize(16, 20)], sample, minimum=4)["bboxes"]) == 1


def test_reflects_objects_into_reflected_padding(sample, ours):
    assert len(ours(st.Pad(4, padding_mode="reflect"), size=(16, 18))[1]) == 1
    assert len(apply([A.Pad(4, border_mode=cv2.BORDER_REFLECT_101)], sample)["bboxes"]) == 9


def test_takes_boxes_for_indices_in_perspectives():
    affine, perspective = A.Affine(rotate=(20, 20)), A.Perspective()
    drawn = affine.get_params_dependent_on_data({"shape": (8, 10, 3)}, {})
    assert (drawn["matrix"] != drawn["bbox_matrix"]).any()
    drawn = perspective.get_params_dependent_on_data({"shape": (8, 10, 3)}, {})
    assert (drawn["matrix"] == drawn["matrix_bbox"]).all()
