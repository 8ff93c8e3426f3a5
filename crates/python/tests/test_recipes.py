"""Views, boxes, several masks and images, and mixed batches, as a loader delivers them."""

import io
import itertools
import json

import numpy as np
import pytest
from PIL import Image

import shardtool as st

LARGE, SMALL = st.RandomResizedCrop(32, scale=(0.4, 1)), st.RandomResizedCrop(12, scale=(0.05, 0.4))


def dino():
    flip, jitter = st.RandomHorizontalFlip(), st.RandomApply([st.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8)
    return st.Views({
        "global": ([LARGE, flip, jitter, st.GaussianBlur(5)], 2), "local": ([SMALL, flip, jitter, st.RandomSolarize(128)], 3),
    })  # fmt: skip


def batches(loader):
    return [{name: np.copy(value) for name, value in batch.items() if isinstance(value, np.ndarray)} for batch in loader]


def assert_equal(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


#: The fields and the transforms of batches.
RECIPES = {
    "views": (dino(), None),
    "rand augment and mixing": (
        [LARGE, st.RandAugment(), st.RandomErasing(0.5, value="random")],
        [st.MixUp(0.8, num_classes=3), st.CutMix(1.0, num_classes=3)],
    ),
    "mixing of normalised planes": (st.Image([LARGE, st.TrivialAugmentWide()], dtype="float32", layout="NCHW"), st.CutMix(1.0)),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_run_resumes_with_the_same_batches(train, name):
    fields, batch_transform = RECIPES[name]
    options = dict(batch_transform=batch_transform, order=st.Shuffled(5), remainder="mask")
    with st.Loader(train, 16, fields, workers=2, **options) as loader:
        expected = batches(loader) + batches(loader)
    for done in (0, 1, 4, 9):
        with st.Loader(train, 16, fields, workers=1 + done % 3, **options) as loader:
            for _ in itertools.islice(iter_steps(loader), done):
                pass
            state = loader.state_dict()
        with st.Loader(train, 16, fields, workers=3, **options) as resumed:
            resumed.load_state_dict(json.loads(json.dumps(state)))
            rest = batches(resumed)
            # The epoch that the state is in, and the one after it.
            while len(rest) < len(expected) - done:
                rest += batches(resumed)
        assert_equal(rest, expected[done:])


def iter_steps(loader):
    while True:
        yield from loader


def test_views_are_what_a_preview_shows(train, photos):
    views = dino()
    batch = next(iter(st.Loader(train, 4, views, order=st.Sequential(seed=9))))
    assert {name for name in batch if name.startswith("image")} == {f"image.global.{n}" for n in range(2)} | {
        f"image.local.{n}" for n in range(3)
    }
    for row, sample in enumerate(batch["id"]):
        stored = np.asarray(Image.open(io.BytesIO(train[int(sample)]["image"])).convert("RGB"))
        for number, name in enumerate(views.views):
            found = st.preview(stored, views, seed=9, position=int(sample), view=number).image
            # The preview does not decode at a reduced size; photographs of this size are not reduced either.
            difference = np.abs(found.astype(int) - batch[f"image.{name}"][row])
            assert np.percentile(difference, 99) <= 3, name


def test_mixed_batches_are_weighted_means(train):
    steps = [st.ResizeTo(24)]
    plain = batches(st.Loader(train, 16, steps, order=st.Shuffled(3), remainder="mask"))
    for transform in (st.MixUp(0.8, num_classes=5), st.CutMix(1.0, num_classes=5)):
        mixed = batches(st.Loader(train, 16, steps, order=st.Shuffled(3), remainder="mask", batch_transform=transform))
        shares = set()
        for before, after in zip(plain, mixed):
            valid = np.flatnonzero(before["valid"])
            labels = after["label"]
            assert labels.shape == (len(before["valid"]), 5) and labels.dtype == np.float32
            assert not labels[~before["valid"]].any() and not after["image"][~before["valid"]].any()
            np.testing.assert_allclose(labels[valid].sum(1), 1, atol=1e-6)
            hard = before["label"][valid]
            images = before["image"][valid].astype(float)
            partners, others = np.roll(images, -1, 0), np.roll(hard, -1)
            # The share follows from a row whose two labels differ.
            row = np.flatnonzero(hard != others)[0]
            share = float(labels[valid][row, hard[row]])
            shares.add(round(share, 4))
            expected = np.zeros_like(labels[valid])
            np.add.at(expected, (np.arange(len(hard)), hard), share)
            np.add.at(expected, (np.arange(len(hard)), others), 1 - share)
            np.testing.assert_allclose(labels[valid], expected, atol=1e-5)
            result = after["image"][valid].astype(float)
            if isinstance(transform, st.MixUp):
                assert np.abs(result - (share * images + (1 - share) * partners)).max() <= 0.52
            else:
                own, other = (result == images).all(-1), (result == partners).all(-1)
                assert (own | other).all()
                # Where both are equal, it cannot be seen whose pixel it is.
                differs = (images != partners).any(-1)
                replaced = (~own).any(0)
                assert abs(replaced.mean() - (1 - share)) < 0.02 and differs.mean() > 0.9
        assert len(shares) > 3


def test_mixing_refuses_what_it_cannot_mix(train):
    for transform, message in [
        (st.MixUp(0.8, num_classes=2), "is not a class: expected 0 to 1"),
        ([], "expected a list"),
        ([st.MixUp(1, num_classes=2), st.CutMix(1, num_classes=3)], "`num_classes` differs between the transforms: give one"),
    ]:
        with pytest.raises(st.ShardtoolError, match=message):
            list(st.Loader(train, 16, [st.ResizeTo(8)], batch_transform=transform))
    with pytest.raises(st.OptionError, match="several views .* a batch transform: a batch has one label"):
        st.Loader(train, 4, dino(), batch_transform=st.MixUp(1, num_classes=3))


@pytest.fixture(scope="module")
def detection(tmp_path_factory):
    """Images of two coloured rectangles, with their boxes, keypoints at their corners, and two label maps."""
    path = tmp_path_factory.mktemp("detection")
    with st.Writer(path / "dataset", "train") as writer:
        for number in range(12):
            size = (80 + number * 3, 60 + number * 2)
            pixels = np.full((size[1], size[0], 3), 90, np.uint8)
            boxes = [[8, 10, 30, 20 + number % 5], [45 + number % 4, 25, 20, 28]]
            points = []
            for (left, top, width, height), colour in zip(boxes, ([250, 0, 0], [0, 0, 250])):
                pixels[top : top + height, left : left + width] = colour
                points.append([left, top, 2, left + width, top + height, 2, 0, 0, 0])
            masks = {}
            for name, channel in (("red", 0), ("blue", 2)):
                Image.fromarray((pixels[..., channel] == 250).astype(np.uint8)).save(path / "mask.png")
                masks[name] = (path / "mask.png").read_bytes()
            Image.fromarray(pixels[:, :, ::-1]).save(path / "swapped.png")
            objects = {"bbox": boxes, "category": [3, 7], "keypoints": points, "score": [0.5, float(number)]}
            swapped = (path / "swapped.png").read_bytes()
            writer.write({"key": f"{number}", "image": pixels, "objects": objects, "swapped": swapped, **masks})
    return st.Dataset(path / "dataset").split("train")


BOX = "image/object/"


def test_boxes_points_masks_and_images_follow_one_geometry(detection):
    steps = [
        st.RandomZoomOut(fill=90, side_range=(1, 1.6)), st.RandomResizedCrop((70, 90), scale=(0.5, 1)),
        st.RandomHorizontalFlip(), st.RandomVerticalFlip(), st.RandomRotation(8, fill=90), st.ColorJitter(0.2),
    ]  # fmt: skip
    objects = st.Objects(properties=[BOX + "class/label", BOX + "score"], keypoints=BOX + "keypoints", flip_index=range(3), min_size=4)
    fields = [st.Image(steps), st.Mask("red", fill=9), st.Mask("blue", fill=9), st.FurtherImage("swapped"), objects]
    loader = st.Loader(detection, 5, fields, remainder="mask")
    seen = 0
    for _ in range(6):
        for batch in loader:
            assert {"image", "swapped", "red", "blue", "boxes", "labels", "keypoints", BOX + "score"} <= batch.keys()
            np.testing.assert_allclose(batch["image"].astype(int), batch["swapped"][..., ::-1].astype(int), atol=1)
            for row in np.flatnonzero(batch["valid"]):
                boxes, labels = batch["boxes"].row(row), batch["labels"].row(row)
                points = batch["keypoints"].row(row).reshape(len(boxes), 3, 3)
                assert boxes.shape == (len(labels), 4) and boxes.dtype == np.float32 and labels.dtype == np.int64
                assert len(batch[BOX + "score"].row(row)) == len(labels)
                assert (points[:, 2] == 0).all(), "an invisible point stays invisible"
                for name, label in (("red", 3), ("blue", 7)):
                    found = np.argwhere(batch[name][row] == 1)
                    if label not in labels:
                        assert len(found) < 5 * 90
                        continue
                    if len(found) < 60:
                        continue
                    box = boxes[list(labels).index(label)]
                    (top, left), (bottom, right) = found.min(0), found.max(0) + 1
                    # The box around a rotated rectangle is a little larger than what is left of it.
                    assert np.abs(np.array([left, top, right, bottom]) - box).max() < 7
                    for x, y, visible in points[list(labels).index(label), :2]:
                        assert not visible or min(abs(x - box[0]), abs(x - box[2])) < 7
                    seen += 1
    assert seen > 60


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    """Two faces in one image, each with a nose, a left and a right eye; the second one has no right eye."""
    path = tmp_path_factory.mktemp("faces")
    points = [[20, 30, 2, 28, 22, 2, 12, 22, 1], [70, 34, 2, 77, 25, 1, 0, 0, 0]]
    with st.Writer(path / "dataset") as writer:
        objects = {"bbox": [[5, 10, 30, 40], [55, 15, 30, 35]], "category": [0, 0], "keypoints": points}
        writer.write({"key": "0", "image": np.zeros((80, 100, 3), np.uint8), "objects": objects})
    return st.Dataset(path / "dataset").split("train"), np.array(points, float).reshape(2, 3, 3)


def flips(horizontal, vertical):
    return [st.RandomHorizontalFlip(horizontal), st.RandomVerticalFlip(vertical), st.CenterCrop((80, 100))]


@pytest.mark.parametrize("horizontal, vertical", [(1, 0), (0, 1), (1, 1), (0, 0)])
def test_left_and_right_points_change_places_in_a_mirrored_image(faces, horizontal, vertical):
    split, points = faces
    objects = st.Objects(keypoints=BOX + "keypoints", flip_index=st.flip_index(["nose", "left_eye", "right_eye"]))
    batch = next(iter(st.Loader(split, 1, [st.Image(flips(horizontal, vertical)), objects])))
    found = batch["keypoints"].row(0).reshape(2, 3, 3)
    # Two reflections are a rotation, which leaves left and right as they are.
    expected = points[:, [0, 2, 1]] if horizontal + vertical == 1 else points.copy()
    shown = expected[..., 2] > 0
    if horizontal:
        expected[..., 0][shown] = 100 - expected[..., 0][shown]
    if vertical:
        expected[..., 1][shown] = 80 - expected[..., 1][shown]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_flips_of_points_need_their_order(faces):
    split, _ = faces
    for steps in (flips(0.5, 0), flips(0, 0.1), [st.RandomApply([st.RandomHorizontalFlip()]), st.CenterCrop(8)]):
        with pytest.raises(st.OptionError, match="flip_index.*a step flips"):
            st.Loader(split, 1, [st.Image(steps), st.Objects(keypoints=BOX + "keypoints")])
    st.Loader(split, 1, [st.Image(flips(0, 0)), st.Objects(keypoints=BOX + "keypoints")])
    for order in ([1, 2, 0], [0, 0, 1], [0, 1, 3]):
        with pytest.raises(st.OptionError, match="pairs of points"):
            st.Loader(split, 1, [st.Image(flips(1, 0)), st.Objects(keypoints=BOX + "keypoints", flip_index=order)])
    with pytest.raises(st.OptionError, match="no keypoints"):
        st.Loader(split, 1, [st.Image(flips(1, 0)), st.Objects(flip_index=[0])])
    two_points = st.Objects(keypoints=BOX + "keypoints", flip_index=[1, 0])
    wrong = st.Loader(split, 1, [st.Image(flips(1, 0)), two_points], bad_samples="error")
    with pytest.raises(st.DamageError, match="18"):
        next(iter(wrong))
    assert st.flip_index(["Left", "mid", "Right"]) == [2, 1, 0]
    for names in (["left_eye"], ["nose", "nose"]):
        with pytest.raises(st.OptionError):
            st.flip_index(names)


def test_options_of_one_geometry_are_refused_with_views(detection):
    for field, name in ((st.Mask("red"), "`Mask`"), (st.Objects(), "`Objects`")):
        with pytest.raises(st.OptionError, match=f"several views .* {name}: each view has its own geometry"):
            st.Loader(detection, 2, [dino(), field])
    with pytest.raises(st.OptionError, match="`Objects` goes through the steps of an image"):
        st.Loader(detection, 2, st.Objects())
    with pytest.raises(st.OptionError, match="`random_iou_crop` takes the boxes"):
        st.Loader(detection, 2, [st.RandomIoUCrop(), st.ResizeTo(8)])
