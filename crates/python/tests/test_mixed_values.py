"""Label maps, further images and arrays of an image move as its pixels do in mosaics, CutMix and copy-paste: each equals a plain
composition, written from the text of `order-spec.md`."""

import io

import numpy as np
import pytest
from PIL import Image
from test_copy_paste import draws
from test_mosaic import composed, points

import shardtool as st

N, SIDE, BATCH, SEED = 14, (26, 38), 4, 5
#: The record whose semantic map is cut off.
BAD = 6
STEPS = [st.RandomResizedCrop(SIDE, scale=(0.5, 1.0)), st.HorizontalFlip(), st.RandomRotation(15)]
#: What a batch has with values for each pixel of the image, and the dimension before height and width.
BEFORE = {"semantic": 0, "instance": 0, "panoptic": 0, "after": 0, "depth": 0, "heights": 0, "features": 1, "flow": 0, "image": 0}
FIELDS = [
    st.Mask("semantic"), st.Mask("instance", dtype="uint16"), st.Mask("panoptic", dtype="int32", fill=-7),
    st.FurtherImage("after", kind="color"), st.FurtherImage("depth", kind="values"), st.Arrays("embedding"),
    st.Arrays("heights", image_axes=(0, 1), pad_value=-1), st.Arrays("features", image_axes=(1, 2)),
    st.Arrays("flow", image_axes=(0, 1), kind="flow"),
]  # fmt: skip
OBJECTS = st.Objects(masks=True)


def png(array, **options) -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG", **options)
    return out.getvalue()


def record(number: int) -> dict:
    """A record whose values are all random."""
    random, size = np.random.default_rng(number), (40 + number, 60 - number)
    ids = random.integers(0, 1 << 24, size)
    outlines = [[[2, 3, 30, 4, 18 + number, 30]], [[25, 8, 48, 8, 48, 36, 25, 36]], [[5, 20, 22, 20, 22, 39]]][: number % 4]
    boxes = [[2, 3, 28 + number, 27], [25, 8, 23, 28], [5, 20, 17, 19]][: number % 4]
    return {
        "key": f"{number}",
        "image": random.integers(0, 256, (*size, 3), np.uint8),
        "semantic": png(random.integers(0, 21, size, np.uint8))[: 60 if number == BAD else None],
        "instance": png(random.integers(0, 1 << 16, size, np.uint16)),
        "panoptic": png(np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)),
        "after": png(random.integers(0, 256, (*size, 3), np.uint8)),
        "depth": png(random.integers(0, 1 << 16, size, np.uint16)),
        "heights": random.random(size, np.float32),
        "features": random.integers(-(1 << 31), 1 << 31, (5, *size)).astype(np.int32),
        "flow": random.normal(size=(*size, 2)).astype(np.float32),
        "embedding": random.random(7, np.float32),
        "objects": {"bbox": boxes or np.zeros((0, 4)), "category": [0, 1, 2][: number % 4], "segmentation": outlines},
    }


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "set"
    names = ("semantic", "instance", "panoptic", "after", "depth")
    features = dict.fromkeys(names, "bytes") | dict.fromkeys(("heights", "features", "flow", "embedding"), st.Array())
    features |= {"image/object/bbox": "float", "image/object/class/label": "int64", "image/object/segmentation": "bytes"}
    with st.Writer(path, "train", labels=False, features=features) as writer:
        for number in range(N):
            writer.write(record(number))
    return st.Dataset(path)["train"]


def loader(split, transform, *more, image=None, fields=FIELDS, size=BATCH, **options):
    options = {"order": st.Shuffled(SEED), "remainder": "mask", "bad_samples": st.BadSamples("mask", max_bad=1), "workers": 2} | options
    return st.Loader(split, size, [image or st.Image(STEPS), *fields, *more], batch_transform=transform, **options)


def batches(split, transform, *more, **options):
    """Returns the batches of an epoch."""
    with pytest.warns(st.ShardtoolWarning, match="bad sample"), loader(split, transform, *more, **options) as found:
        return [{name: value for name, value in batch.items()} for batch in found]


def check(before, after, change, planes=()):
    """Checks that everything with values for each pixel is what `change` makes of `[N, H, W, …]`. `planes` names those of `[N, C, H, W]`."""
    assert (after["valid"] == before["valid"]).all() and (after["id"] == before["id"]).all()
    for name, axis in BEFORE.items():
        axis = 1 if name in planes else axis
        first = lambda values, axis=axis: np.moveaxis(values, 1, -1) if axis else values  # noqa: E731
        assert after[name].dtype == before[name].dtype
        np.testing.assert_array_equal(first(after[name]), change(first(before[name])), err_msg=name)
        rest = ~before["valid"]
        np.testing.assert_array_equal(after[name][rest], before[name][rest])
    np.testing.assert_array_equal(after["embedding"], before["embedding"])


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("pixels", [{}, {"dtype": "float32"}, {"decoded_cache": st.DecodedCache("8MiB", resize=30)}], ids=str)
def test_mosaics_have_the_same_parts_of_everything(split, pixels, p):
    image, planes = st.Image(STEPS, **pixels), ("image", "after") if "dtype" in pixels else ()
    plain, mixed = batches(split, None, image=image), batches(split, st.Mosaic(p), image=image)
    moved = masked = 0
    for step, (before, after) in enumerate(zip(plain, mixed, strict=True)):
        valid = before["valid"]
        drawn = points(SEED, 0, step * BATCH, valid, SIDE, p)
        check(before, after, lambda values, valid=valid, drawn=drawn: composed(values, valid, drawn), planes)
        moved += sum(point is not None for point in drawn)
        masked += (~valid).sum()
    assert masked == 3 and (moved == N - 1 if p == 1 else 3 < moved < N - 1)
    outside = np.concatenate([batch["panoptic"] == -7 for batch in mixed])
    assert 0.01 < outside.mean() < 0.5, "what lies outside of an image moves along"


def pasted(before, drawn):
    """Returns what copy-paste makes of the values of a batch: those of the source where an object that is drawn has its mask."""

    def change(values):
        result = values.copy()
        for row, draw in enumerate(drawn):
            if draw is not None:
                source, selection = draw
                covered = (before["masks"].row(source)[selection] != 0).any(0)
                result[row][covered] = values[source][covered]
        return result

    return change


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_pasted_objects_bring_the_values_of_their_pixels(split, dtype, p):
    image, planes = st.Image(STEPS, dtype=dtype) if dtype else None, ("image", "after") if dtype else ()
    plain, mixed = batches(split, None, OBJECTS, image=image), batches(split, st.CopyPaste(p), OBJECTS, image=image)
    changed = 0
    for step, (before, after) in enumerate(zip(plain, mixed, strict=True)):
        counts = [len(before["boxes"].row(row)) for row in range(BATCH)]
        check(before, after, pasted(before, draws(step * BATCH, before["valid"], counts, p)), planes)
        changed += (after["semantic"] != before["semantic"]).any((1, 2)).sum()
    assert changed > (4 if p == 1 else 1)


def replaced(before, after):
    """Returns the rectangle of a batch that CutMix replaced, found in its images, as a change of values."""
    different = (after["image"] != before["image"]).any((0, 3))
    rows, columns = np.flatnonzero(different.any(1)), np.flatnonzero(different.any(0))
    part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] if len(rows) else np.s_[:0, :0]

    def change(values):
        result, valid = values.copy(), before["valid"]
        for row in np.flatnonzero(valid):
            others = [(row + step) % BATCH for step in range(1, BATCH)]
            partner = next((other for other in others if valid[other]), row)
            result[row][part] = values[partner][part]
        return result

    return different.mean(), change


@pytest.mark.parametrize("image", [st.Image(STEPS), st.Image(STEPS, mode="L")], ids=str)
def test_cut_mix_replaces_one_rectangle_of_everything(split, image):
    plain, mixed = batches(split, None, image=image), batches(split, st.CutMix(), image=image)
    shares = []
    for before, after in zip(plain, mixed, strict=True):
        share, change = replaced(before, after)
        check(before, after, change)
        shares.append(share)
    assert sum(0.02 < share < 0.98 for share in shares) > 1


def test_resumed_runs_and_ranks_get_the_same_maps(split):
    both = [st.Mosaic(), st.CopyPaste(), st.Mosaic(0.3)]
    whole = batches(split, both, OBJECTS)
    same = lambda a, b: [np.testing.assert_array_equal(a[name], b[name]) for name in BEFORE]  # noqa: E731
    with pytest.warns(st.ShardtoolWarning), loader(split, both, OBJECTS, workers=1) as first:
        taken = iter(first)
        next(taken), next(taken)
        state = first.state_dict()
    with loader(split, both, OBJECTS) as resumed:
        resumed.load_state_dict(state)
        for expected, batch in zip(whole[2:], resumed, strict=True):
            same(batch, expected)
    for rank in range(2):
        with loader(split, both, OBJECTS, replica=st.Replica(rank, 2)) as of_rank:
            for expected, batch in zip(whole[rank::2], of_rank, strict=True):
                same(batch, expected)


@pytest.mark.parametrize("transform", [st.Mosaic(center=(0.1, 0.9)), st.CutMix(), [st.CutMix(), st.Mosaic()]], ids=str)
@pytest.mark.parametrize("buckets", [False, True])
def test_maps_of_turned_images_show_what_their_pixels_show(tmp_path, transform, buckets):
    """The red channel of each image is its label map, and EXIF says that some are turned."""
    with st.Writer(tmp_path / "set", "train", labels=False, annotated="coded") as writer:
        for number in range(24):
            size = [(30, 50), (44, 41), (52, 28)][number % 3]
            pixels, exif = np.random.default_rng(number).integers(0, 256, (*size, 3), np.uint8), Image.Exif()
            exif[274] = 1 + number * 5 % 8
            writer.write({"key": f"{number}", "image": png(pixels, exif=exif), "mask": png(pixels[..., 0].copy())})
    split = st.Dataset(tmp_path / "set")["train"]
    steps, options = [st.RandomCrop(24), st.HorizontalFlip()], {}
    if buckets:
        shapes = [(16, 32), (24, 24), (32, 16)]
        steps, options = None, {"buckets": st.AspectRatioBuckets(shapes, lambda h, w: [st.RandomCrop((h, w)), st.HorizontalFlip()])}
    image = st.Image(steps, apply_orientation=True) if steps else st.Image(apply_orientation=True)
    shapes, shown = set(), 0
    for batch in st.Loader(split, BATCH, [image, st.Mask("mask")], batch_transform=transform, remainder="mask", **options):
        valid = batch["valid"]
        np.testing.assert_array_equal(batch["mask"][valid], batch["image"][valid][..., 0])
        assert (batch["mask"][~valid] == 255).all()
        shapes.add(batch["mask"].shape[1:])
        shown += valid.sum()
    assert shown == 24 and len(shapes) == (3 if buckets else 1)


def test_labels_of_images_with_maps(tmp_path):
    """Images with a label map need no other label. One that they have is mixed, as without a map."""
    map_ = png(np.zeros((20, 20), np.uint8))
    for name, options in {"none": {"labels": False}, "named": {"classes": ["a", "b"]}, "unnamed": {}}.items():
        with st.Writer(tmp_path / name, "train", **options) as writer:
            for number in range(4):
                label = {} if name == "none" else {"label": number % 2}
                writer.write({"key": f"{number}", "image": np.zeros((20, 20, 3), np.uint8), "mask": map_, **label})
    fields = [st.Image([st.ResizeTo(16)]), st.Mask("mask")]
    of = lambda name, transform: st.Loader(st.Dataset(tmp_path / name)["train"], 4, fields, batch_transform=transform)  # noqa: E731
    for transform in (st.Mosaic, st.CutMix):
        assert "label" not in next(iter(of("none", transform())))
        for loader in (of("named", transform()), of("unnamed", transform(num_classes=2))):
            label = next(iter(loader))["label"]
            assert label.shape == (4, 2) and np.abs(label.sum(1) - 1).max() < 1e-6 and ((0 < label) & (label < 1)).any()
        with pytest.raises(st.OptionError, match="names no classes: give `num_classes`"):
            of("unnamed", transform())
        with pytest.raises(st.OptionError, match="the batch has no integer label"):
            of("none", transform(num_classes=2))


def test_the_mean_of_two_labels_is_refused(split):
    for field, name in [(FIELDS[0], "`Mask`"), (FIELDS[3], "`FurtherImage`"), (FIELDS[6], "`Arrays` with `image_axes`")]:
        for transform in (st.MixUp(num_classes=2), [st.Mosaic(), st.MixUp(num_classes=2)]):
            with pytest.raises(st.OptionError, match=f"`MixUp` does not go with {name}: the mean of two labels"):
                loader(split, transform, fields=[field])


def test_memory_of_what_is_copied_is_planned(split):
    """A mosaic copies three rows of one array after the other, copy-paste and CutMix one."""
    pixels = SIDE[0] * SIDE[1]
    for fields, pixel in [(FIELDS[:1], 3), (FIELDS[2:3], 4), (FIELDS[7:8], 20)]:
        planned = []
        for transform in (st.CutMix(), st.Mosaic()):
            with loader(split, transform, fields=fields, order=st.Sequential()) as made:
                next(iter(made))
                planned.append(made.stats()["memory"]["batch"])
        # The largest of the arrays: the image has 3 bytes for each pixel.
        assert planned[1] - planned[0] == 2 * pixel * pixels
