"""Mosaics: pixels, boxes and labels equal a plain reference, written from the text of `order-spec.md` and of `docs/recipes.md`."""

import numpy as np
import pytest
from PIL import Image
from test_draws import Stream, key

import shardtool as st

N, SIDE, BATCH = 11, (24, 36), 4
STEPS = [st.RandomResizedCrop(SIDE, scale=(0.5, 1.0)), st.HorizontalFlip()]


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Images with boxes, keypoints and a class each."""
    destination = tmp_path_factory.mktemp("mosaic") / "dataset"
    random = np.random.default_rng(8)
    with st.Writer(destination, "train", classes=["a", "b", "c"]) as writer:
        for number in range(N):
            pixels = random.integers(0, 256, (40 + number, 60 - number, 3), np.uint8)
            count = number % 4
            corners = np.sort(random.uniform(0, 35, (count, 2, 2)), axis=1)
            boxes = np.concatenate([corners[:, 0], corners[:, 1] - corners[:, 0]], axis=1)
            points = np.concatenate([random.uniform(0, 38, (count, 2, 2)), np.full((count, 2, 1), 2.0)], axis=2)
            objects = {"bbox": boxes.tolist(), "category": random.integers(0, 9, count).tolist()}
            objects["keypoints"] = points.reshape(count, 6).tolist()
            writer.write({
                "key": str(number),
                "image": Image.fromarray(pixels),
                "label": number % 3,
                "objects": objects,
            })
    return st.Dataset(destination)["train"]


def batches(split, transform, *more, remainder=None, **pixels):
    """Returns the batches of an epoch, of images and `more` fields."""
    fields = [st.Image(STEPS, **pixels), *more]
    with st.Loader(split, BATCH, fields, order=st.Shuffled(5), batch_transform=transform, remainder=remainder) as loader:
        return [{name: value for name, value in batch.items()} for batch in loader]


def points(seed, epoch, first, valid, size, p=1.0, center=(0.25, 0.75), transforms=1):
    """Returns the point (x, y) of each row, or None: number 0 chooses the transform, three more are drawn for each row."""
    stream = Stream(key("mix", seed, epoch, first))
    assert stream.below(transforms) == 0
    drawn = []
    for row in range(len(valid)):
        chosen = stream.unit() < p
        x, y = (int((center[0] + stream.unit() * (center[1] - center[0])) * side) for side in (size[1], size[0]))
        drawn.append((x, y) if chosen and valid[row] else None)
    return drawn


def sources(row, valid):
    """Returns the row and the next three that have a sample."""
    rows = [(row + step) % len(valid) for step in range(1, 3 * len(valid) + 1)]
    following = [row for row in rows if valid[row]]
    return [row, *following[:3]]


def tiles(point, size):
    """Returns for each of the four images the part of the result (left, top, right, bottom), and how far it is moved."""
    (x, y), (height, width) = point, size
    return [
        ((0, 0, x, y), (x - width, y - height)),
        ((x, 0, width, y), (x, y - height)),
        ((0, y, x, height), (x - width, y)),
        ((x, y, width, height), (x, y)),
    ]


def composed(images, valid, drawn):
    size = images.shape[1:3]
    result = images.copy()
    for row, point in enumerate(drawn):
        if point is None:
            continue
        for source, ((left, top, right, bottom), (dx, dy)) in zip(sources(row, valid), tiles(point, size), strict=True):
            part = images[source, top - dy : bottom - dy, left - dx : right - dx]
            result[row, top:bottom, left:right] = part
    return result


@pytest.mark.parametrize("options", [{}, {"mode": "L"}, {"dtype": "uint16"}, {"dtype": "float32"}, {"layout": "NHWC"}])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_pixels_and_labels_equal_the_reference(split, options, p):
    plain = batches(split, None, remainder="mask", **options)
    mixed = batches(split, st.Mosaic(p), remainder="mask", **options)
    planes = options.get("dtype") == "float32"
    moved = 0
    for step, (before, after) in enumerate(zip(plain, mixed, strict=True)):
        valid, images, found = before["valid"], before["image"], after["image"]
        if planes:
            images, found = images.transpose(0, 2, 3, 1), found.transpose(0, 2, 3, 1)
        drawn = points(5, 0, step * BATCH, valid, SIDE, p)
        assert (found == composed(images, valid, drawn)).all()
        expected = np.zeros((BATCH, 3), np.float32)
        for row in np.flatnonzero(valid):
            point = drawn[row]
            shares = [(row, 1.0)]
            if point is not None:
                moved += 1
                areas = [(right - left) * (bottom - top) for (left, top, right, bottom), _ in tiles(point, SIDE)]
                shares = [(s, area / SIDE[0] / SIDE[1]) for s, area in zip(sources(row, valid), areas, strict=True)]
            for source, share in shares:
                expected[row, before["label"][source]] += share
        assert np.abs(after["label"] - expected).max() < 1e-6
    assert moved == N if p == 1 else 0 < moved < N


def test_boxes_labels_and_keypoints_equal_the_reference(split):
    objects = st.Objects(keypoints="image/object/keypoints", flip_index=range(2), min_size=2, min_area=9)
    plain = batches(split, None, objects, remainder="drop")
    mixed = batches(split, st.Mosaic(center=(0.1, 0.9)), objects, remainder="drop")
    kept = dropped = hidden = 0
    for step, (before, after) in enumerate(zip(plain, mixed, strict=True)):
        valid = before["valid"]
        drawn = points(5, 0, step * BATCH, valid, SIDE, center=(0.1, 0.9))
        assert (after["image"] == composed(before["image"], valid, drawn)).all()
        assert (after["label"] == before["label"]).all()
        for row, point in enumerate(drawn):
            boxes, labels, keypoints = [], [], []
            for source, ((left, top, right, bottom), (dx, dy)) in zip(sources(row, valid), tiles(point, SIDE), strict=True):
                own = before["boxes"].row(source)
                shown = before["keypoints"].row(source).reshape(len(own), -1, 3) if len(own) else []
                for box, label, group in zip(own, before["labels"].row(source), shown, strict=True):
                    box = (box + [dx, dy, dx, dy]).clip([left, top, left, top], [right, bottom, right, bottom])
                    width, height = box[2] - box[0], box[3] - box[1]
                    if min(width, height) < 2 or width * height < 9:
                        dropped += 1
                        continue
                    boxes.append(box)
                    labels.append(label)
                    for x, y, visibility in group:
                        x, y = x + dx, y + dy
                        inside = visibility and left <= x <= right and top <= y <= bottom
                        hidden += bool(visibility and not inside)
                        keypoints.append((x, y, visibility) if inside else (0, 0, 0))
            kept += len(boxes)
            assert np.abs(after["boxes"].row(row) - np.array(boxes).reshape(-1, 4)).max(initial=0) < 1e-4
            assert list(after["labels"].row(row)) == labels
            assert np.abs(after["keypoints"].row(row).reshape(-1, 3) - np.array(keypoints).reshape(-1, 3)).max(initial=0) < 1e-4
    assert kept and dropped and hidden


def test_one_of_several_transforms_is_drawn(split):
    transforms = [st.Mosaic(), st.MixUp(), st.CutMix()]
    plain, mixed = batches(split, None), batches(split, transforms)
    chosen = []
    for step, (before, after) in enumerate(zip(plain, mixed, strict=True)):
        stream = Stream(key("mix", 5, 0, step * BATCH))
        chosen.append(stream.below(3))
        if chosen[-1] == 0:
            stream_points = Stream(key("mix", 5, 0, step * BATCH))
            stream_points.word()
            drawn = []
            for _ in range(BATCH):
                stream_points.unit()
                drawn.append(tuple(int((0.25 + stream_points.unit() * 0.5) * side) for side in (SIDE[1], SIDE[0])))
            assert (after["image"] == composed(before["image"], before["valid"], drawn)).all()
    assert set(chosen) <= {0, 1, 2}


def test_few_rows_show_themselves_again(split):
    for size in (1, 2, 3):
        with st.Loader(split, size, STEPS, order=st.Shuffled(5)) as loader:
            plain = [batch["image"].copy() for batch in loader]
        with st.Loader(split, size, STEPS, order=st.Shuffled(5), batch_transform=st.Mosaic()) as loader:
            mixed = [batch["image"].copy() for batch in loader]
        for step, (before, after) in enumerate(zip(plain, mixed, strict=True)):
            valid = np.ones(size, bool)
            assert (after == composed(before, valid, points(5, 0, step * size, valid, SIDE))).all()


def test_resumes_in_the_middle(split):
    whole = batches(split, st.Mosaic())
    with st.Loader(split, BATCH, STEPS, order=st.Shuffled(5), batch_transform=st.Mosaic()) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with st.Loader(split, BATCH, STEPS, order=st.Shuffled(5), batch_transform=st.Mosaic()) as loader:
        loader.load_state_dict(state)
        rest = [batch["image"].copy() for batch in loader]
    assert len(rest) == len(whole) - 1 > 0
    assert all((a == b["image"]).all() for a, b in zip(rest, whole[1:], strict=True))


def test_what_does_not_fit_is_refused(split):
    for make, message in [
        (lambda: st.Mosaic(p=2), "`p`"),
        (lambda: st.Mosaic(center=(0.5, 0.2)), "`center`"),
        (lambda: batches(split, [st.Mosaic(), st.MixUp()], st.Objects()), "`CutMix` does not go with `Objects`: boxes of two"),
    ]:
        with pytest.raises(st.OptionError, match=message):
            make()


def test_another_transform_is_refused_inside_an_epoch(split):
    """The state names it by a checksum. At the start of an epoch it may differ, with a warning."""
    fields = [st.Image(STEPS), st.Objects(keypoints="image/object/keypoints", flip_index=[1, 0])]

    def loader(transform, fields=fields):
        return st.Loader(split, BATCH, fields, order=st.Shuffled(5), batch_transform=transform)

    saved = loader(st.Mosaic(0.5))
    next(iter(saved))
    inside = saved.state_dict()
    assert {"batch_transform", "flip_index"} <= inside.keys() and inside["p"] > 0
    for other in (None, st.Mosaic(0.4), st.Mosaic(0.5, center=(0.5, 0.5)), [st.Mosaic(0.5), st.Mosaic(0.4)]):
        with pytest.raises(st.StateError, match=f"`batch_transform`: {inside['batch_transform']}.*start of an epoch"):
            loader(other).load_state_dict(inside)
    with pytest.raises(st.StateError, match=r"Mosaic\(p=0.4, center=\[0.25, 0.75\]\)"):
        loader(st.Mosaic(0.4)).load_state_dict(inside)
    unmirrored = [fields[0], st.Objects(keypoints="image/object/keypoints", flip_index=[0, 1])]
    with pytest.raises(st.StateError, match=rf"`flip_index`: {inside['flip_index']}.*, \[0, 1\]"):
        loader(st.Mosaic(0.5), unmirrored).load_state_dict(inside)

    # The labels of images have a length, and a probability of 0 makes no difference.
    same = loader(st.Mosaic(0.5, num_classes=7))
    same.load_state_dict(inside)
    off = loader(st.Mosaic(0.0))
    next(iter(off))
    assert "batch_transform" not in off.state_dict()
    loader(None).load_state_dict(off.state_dict())

    # Without the member it is taken, with a warning: so are states of earlier versions.
    del inside["batch_transform"], inside["flip_index"]
    unnamed = loader(st.Mosaic(0.4), unmirrored)
    unnamed.load_state_dict(inside)
    with pytest.warns(st.ShardtoolWarning, match=r"names no `batch_transform`.*Mosaic\(p=0.4"):
        assert [batch["id"].shape for batch in unnamed]

    list(saved)
    start = saved.state_dict()
    assert (start["epoch"], start["p"]) == (2, 0), "the first epoch was left"
    ended = loader(None)
    ended.load_state_dict(start)
    with pytest.warns(st.ShardtoolWarning, match="another `batch_transform`.*none"):
        assert [batch["id"].shape for batch in ended]
