"""Masks of objects: equal to those that pycocotools draws, and moved as the image is."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

import shardtool as st

coco = pytest.importorskip("pycocotools.mask")

FILTERS = {"min_size": 0, "min_area": 0}


def run_lengths(mask):
    """Returns the lengths of the runs of a mask, as COCO counts them."""
    pixels = mask.ravel(order="F")
    ends = np.flatnonzero(np.diff(pixels)) + 1
    lengths = np.diff(np.concatenate([[0], ends, [pixels.size]])).tolist()
    return [0, *lengths] if pixels[0] else lengths


def segmentation(random, width, height, kind):
    """Returns a segmentation of a kind, and the mask that pycocotools draws of it."""
    if kind == "polygons":
        digits = int(random.integers(0, 4))
        points = lambda: random.uniform(-0.3, 1.3, (int(random.integers(3, 12)), 2)) * [width, height]  # noqa: E731
        polygons = [points().round(digits).ravel().tolist() for _ in range(random.integers(1, 4))]
        return polygons, coco.decode(coco.merge(coco.frPyObjects(polygons, height, width)))
    mask = (random.random((height, width)) < random.choice([0.0, 0.03, 0.5, 0.97, 1.0])).astype(np.uint8)
    compressed = coco.encode(np.asfortranarray(mask))
    counts = compressed["counts"].decode() if kind == "compressed" else run_lengths(mask)
    return {"size": [height, width], "counts": counts}, mask


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def test_masks_are_those_of_pycocotools(tmp_path):
    """Of a COCO file, for images of many sizes: every pixel of every object."""
    random = np.random.default_rng(20261128)
    images, annotations, expected = [], [], {}
    for number in range(120):
        width, height = (int(n) for n in random.integers(1, 90, 2))
        (tmp_path / f"{number}.png").write_bytes(png(random.integers(0, 256, (height, width, 3), dtype=np.uint8)))
        images.append({"id": number, "file_name": f"{number}.png", "width": width, "height": height})
        kinds = random.choice(["polygons", "lengths", "compressed"], random.integers(0, 40))
        expected[number] = []
        for kind in kinds:
            stored, mask = segmentation(random, width, height, kind)
            expected[number].append(mask)
            annotations.append({
                "id": len(annotations) + 1, "image_id": number, "category_id": 3, "bbox": [0, 0, width, height],
                "area": 1.0, "iscrowd": int(kind != "polygons"), "segmentation": stored,
            })  # fmt: skip
    file = {"images": images, "annotations": annotations, "categories": [{"id": 3, "name": "thing"}]}
    (tmp_path / "instances.json").write_text(json.dumps(file))
    packed = st.pack(tmp_path / "instances.json", tmp_path / "set")
    assert (packed.images, packed.rejected) == (120, 0)
    split = st.Dataset(tmp_path / "set")["train"]
    crowd = "image/object/iscrowd"
    objects = st.Objects(masks=True, properties=["image/object/class/label", crowd], **FILTERS)
    compared = 0
    for number in range(120):
        image = images[number]
        at = next(i for i in range(len(split)) if split[i]["features"]["image/id"] == number)
        steps = [st.ResizeTo((image["height"], image["width"]))]
        with st.Loader(split, 1, [st.Image(steps), objects], source=st.Subset([at]), workers=1) as loader:
            batch = next(iter(loader))
        masks = batch["masks"].row(0)
        assert masks.dtype == np.uint8 and batch["masks"].offsets.tolist() == [0, len(expected[number])]
        assert masks.shape == (len(expected[number]), image["height"], image["width"])
        np.testing.assert_array_equal(masks, np.array(expected[number], np.uint8).reshape(masks.shape))
        assert len(batch[crowd].row(0)) == len(masks)
        compared += len(masks)
    assert compared > 2000


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Samples of one size with up to 14 objects, and a label map whose bits are their masks. The channels of the pixels
    hold the objects' bits and the number of the sample."""
    folder = tmp_path_factory.mktemp("scenes")
    random = np.random.default_rng(7)
    with st.Writer(folder / "set", "train") as writer:
        for number in range(30):
            width, height = 60, 48
            objects, bits = [], np.zeros((height, width), np.uint16)
            for n in range((number + 1) % 15):
                left, top = (int(v) for v in random.integers(0, 30, 2))
                box = [left, top, int(random.integers(8, 30)), int(random.integers(8, 18))]
                right, bottom = left + box[2], top + box[3]
                corners = [[left, top, right, top, right, bottom, left + box[2] / 2, bottom]]
                mask = coco.decode(coco.merge(coco.frPyObjects(corners, height, width)))
                bits |= mask.astype(np.uint16) << n
                objects.append({"bbox": box, "category": n, "number": n, "segmentation": corners})
            pixels = np.dstack([bits & 255, np.full_like(bits, number), bits >> 8]).astype(np.uint8)
            sample = {"key": f"{number}", "image": png(pixels), "bits_mask": png(bits)}
            if not objects:
                empty = {"bbox": np.zeros((0, 4)), "category": [], "number": [], "segmentation": []}
            writer.write({**sample, "objects": objects or empty})
    return st.Dataset(folder / "set")["train"]


NUMBER = "image/object/number"
CHAINS = {
    "crop": [st.RandomResizedCrop((32, 40), scale=(0.2, 1)), st.HorizontalFlip()],
    "flips": [st.ResizeTo((70, 50)), st.HorizontalFlip(), st.RandomVerticalFlip()],
    "rotation": [st.ResizeTo((48, 60)), st.RandomRotation(40)],
    "affine": [st.RandomAffine(20, translate=(0.2, 0.1), scale=(0.6, 1.4), shear=10), st.CenterCrop(40)],
    "perspective": [st.RandomPerspective(0.5, p=1), st.ResizeTo(33)],
    "zoom out": [st.RandomZoomOut(side_range=(1, 3)), st.RandomIoUCrop(), st.ResizeTo((30, 44))],
    "jitter": [st.ScaleJitter(64, (0.3, 2.0)), st.FixedSizeCrop(64, fill=(1, 2, 3))],
    "large-scale jitter": [st.ScaleJitter(64), st.FixedSizeCrop(64, fill=(1, 2, 3))],
    "multiscale": [st.RandomShortestSize((24, 40, 72), max_size=80), st.FixedSizeCrop((40, 52))],
    "letterbox": [st.RandomAffine(20, scale=(0.6, 1.4)), st.Letterbox((50, 40)), st.HorizontalFlip()],
    "padding": [st.Pad((5, 3, 2, 7), padding_mode="reflect"), st.RandomCrop((40, 52)), st.ColorJitter(0.5)],
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("cached", [False, True])
def test_masks_follow_every_step_as_label_maps_do(scenes, name, cached):
    cache = st.DecodedCache("16MiB", resize=40) if cached else None
    fields = [
        st.Image(CHAINS[name], decoded_cache=cache),
        st.Mask("bits_mask", dtype="uint16", fill=0),
        st.Objects(masks=True, properties=[NUMBER], min_size=2, min_area=5),
    ]
    seen = dropped = 0
    with st.Loader(scenes, 7, fields, order=st.Shuffled(3), remainder="mask", workers=2) as loader:
        for _ in range(3):
            for batch in loader:
                masks, bits = batch["masks"], batch["mask"]
                assert masks.values.shape[1:] == bits.shape[1:] and len(masks.values) == len(batch["boxes"].values)
                for row, map_ in enumerate(bits):
                    numbers = batch[NUMBER].row(row)
                    expected = map_ >> numbers[:, None, None] & 1 if batch["valid"][row] else np.zeros((0, *map_.shape))
                    np.testing.assert_array_equal(masks.row(row), expected)
                    seen += len(numbers)
                    dropped += batch["valid"][row] and len(numbers) < (int(batch["id"][row]) + 1) % 15
    assert seen > 200
    assert dropped or name in ("flips", "rotation", "padding", "perspective", "letterbox")


def test_masks_move_with_mosaics(scenes):
    """The pixels say which sample and which objects they show."""
    fields = [st.Image([st.CenterCrop((48, 60))]), st.Objects(masks=True, properties=[NUMBER], min_size=1, min_area=1)]
    options = {"order": st.Shuffled(5), "workers": 1, "batch_transform": st.Mosaic(p=0.8)}
    compared = partial = 0
    for batch in st.Loader(scenes, 10, fields, **options):
        for row, pixels in enumerate(batch["image"]):
            objects, samples = pixels[..., 0].astype(np.uint16) | pixels[..., 2].astype(np.uint16) << 8, pixels[..., 1]
            boxes = batch["boxes"].row(row)
            for number, mask, box in zip(batch[NUMBER].row(row), batch["masks"].row(row), boxes, strict=True):
                # Of one of the samples that the row shows.
                shown = [(samples == sample) & (objects >> number & 1 == 1) for sample in np.unique(samples)]
                assert any(np.array_equal(mask, part) for part in shown), (row, number, box)
                ys, xs = np.nonzero(mask)
                if len(xs):
                    assert box[0] <= xs.min() and xs.max() < box[2] + 1 and box[1] <= ys.min() and ys.max() < box[3] + 1
                compared += 1
                partial += len(np.unique(samples)) > 1
    assert compared > 100 and partial > 80


def write(path, objects):
    with st.Writer(path, "train") as writer:
        for number, of_sample in enumerate(objects):
            image = png(np.full((20, 30, 3), number, np.uint8))
            writer.write({"key": f"{number}", "image": image, "objects": of_sample})
    return st.Dataset(path)["train"]


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (None, "expected a list of polygons, or `size` and `counts` of run lengths"),
        ([[1, 2, 3, 4]], "a polygon of 4 numbers; expected x and y of three points or more"),
        ({"size": [30, 20], "counts": [600]}, "run lengths of an image of 20x30 pixels, but the stored one has 30x20"),
        ({"size": [20, 30], "counts": [599]}, "run lengths of 599 pixels in all; expected 600"),
    ],
)
def test_what_cannot_be_drawn_is_a_bad_sample(tmp_path, stored, message):
    good = {"bbox": [1, 1, 9, 9], "category": 0, "segmentation": [[1, 1, 9, 1, 9, 9]]}
    split = write(tmp_path, [[good], [good, {**good, "segmentation": stored}], [good]])
    fields = [st.Image([st.ResizeTo(16)]), st.Objects(masks=True)]
    with (
        st.Loader(split, 3, fields, bad_samples=st.BadSamples("error")) as loader,
        pytest.raises(st.ShardtoolError, match="object 1 of the record") as error,
    ):
        next(iter(loader))
    assert message in str(error.value) and "`image/object/segmentation`" in str(error.value)
    # An object that the crop drops is not drawn.
    fields = [st.Image([st.ResizeTo(16)]), st.Objects(masks=True, min_area=1000)]
    with st.Loader(split, 3, fields, bad_samples=st.BadSamples("error")) as loader:
        assert len(next(iter(loader))["masks"].values) == 0


def test_the_writer_takes_what_pycocotools_makes(tmp_path):
    """Compressed run lengths are bytes there."""
    mask = np.zeros((20, 30), np.uint8)
    mask[3:9, 5:25] = 1
    stored = coco.encode(np.asfortranarray(mask))
    # The first sample, which decides about types, has no object.
    empty = {"bbox": np.zeros((0, 4)), "category": [], "segmentation": []}
    split = write(tmp_path, [empty, [{"bbox": [5, 3, 20, 6], "category": 0, "segmentation": stored}]])
    with st.Loader(split, 1, [st.Image([st.ResizeTo((20, 30))]), st.Objects(masks=True)], order=st.Sequential()) as loader:
        batches = iter(loader)
        assert next(batches)["masks"].row(0).shape == (0, 20, 30)
        np.testing.assert_array_equal(next(batches)["masks"].row(0), mask[None])


@pytest.mark.parametrize(
    "stored",
    [
        [np.array([[2, 3], [20, 3], [20, 15]], np.int32).flatten().tolist()],
        [list(np.array([2, 3, 20, 3, 20, 15], np.int32))],
        [np.array([2, 3, 20, 3, 20, 15], np.float32)],
        [tuple(np.float64(n) for n in (2, 3, 20, 3, 20, 15))],
    ],
)
def test_the_writer_takes_the_numbers_of_numpy(tmp_path, stored):
    split = write(tmp_path, [[{"bbox": [2, 3, 18, 12], "category": 0, "segmentation": stored}]])
    expected = coco.decode(coco.merge(coco.frPyObjects([[2, 3, 20, 3, 20, 15]], 20, 30)))
    with st.Loader(split, 1, [st.Image([st.ResizeTo((20, 30))]), st.Objects(masks=True)]) as loader:
        np.testing.assert_array_equal(next(iter(loader))["masks"].row(0), expected[None])


def test_the_writer_takes_run_lengths_of_numpy(tmp_path):
    lengths = {"size": [np.int64(20), np.int64(30)], "counts": np.array([7, 93, 500], np.uint32)}
    split = write(tmp_path, [[{"bbox": [2, 3, 18, 12], "category": 0, "segmentation": lengths}]])
    with st.Loader(split, 1, [st.Image([st.ResizeTo((20, 30))]), st.Objects(masks=True)]) as loader:
        assert next(iter(loader))["masks"].row(0).sum() == 93


@pytest.mark.parametrize("wrong", [{"v": {1, 2}}, {"v": range(3)}, {"v": float("nan")}, {"v": b"\xff"}])
def test_the_writer_refuses_what_json_does_not_hold(tmp_path, wrong):
    with pytest.raises(st.OptionError, match="`objects`: a member of an object is"):
        write(tmp_path, [[{"bbox": [2, 3, 18, 12], "category": 0, "attributes": wrong}]])


def test_objects_that_all_lack_a_segmentation_are_stored(tmp_path):
    lacking = {"bbox": [2, 3, 18, 12], "category": 0, "segmentation": None}
    split = write(tmp_path, [[lacking, lacking]])
    assert split[0]["features"]["image/object/segmentation"] == [b"null", b"null"]


def test_masks_and_their_texts_are_not_both_delivered(tmp_path):
    split = write(tmp_path, [[{"bbox": [2, 3, 18, 12], "category": 0, "segmentation": [[1, 1, 9, 1, 9, 9]]}]])
    image = st.Image([st.ResizeTo(16)])
    with pytest.raises(st.OptionError, match="image/object/segmentation"):
        st.Loader(split, 1, [image, st.Objects(masks=True), st.Column("image/object/segmentation")])


def test_texts_that_take_long_to_draw_are_bad_samples(tmp_path):
    zigzag = [[x for n in range(40_000) for x in ((0, 0) if n % 2 else (29, 20))]]
    split = write(tmp_path, [[{"bbox": [2, 3, 18, 12], "category": 0, "segmentation": zigzag}]])
    fields = [st.Image([st.ResizeTo(16)]), st.Objects(masks=True)]
    with (
        st.Loader(split, 1, fields, bad_samples=st.BadSamples("error")) as loader,
        pytest.raises(st.ShardtoolError, match="steps to draw; expected at most"),
    ):
        next(iter(loader))


def test_a_budget_that_masks_exceed_is_named(tmp_path):
    few = [[{"bbox": [0, 0, 30, 20], "category": 0, "segmentation": [[0, 0, 30, 0, 30, 20]]}]] * 40
    many = [few[0] * 300]
    split = write(tmp_path, few[:5] + many + few[:34])
    fields = [st.Image([st.ResizeTo(256)]), st.Objects(masks=True)]
    with (
        st.Loader(split, 4, fields, memory="12MB", workers=1, order=st.Sequential()) as loader,
        pytest.raises(st.BudgetError, match="the masks of the 300 objects of record 5"),
    ):
        for _ in loader:
            pass


def test_a_dataset_without_segmentations_is_refused(tmp_path):
    split = write(tmp_path, [[{"bbox": [1, 1, 9, 9], "category": 0}]])
    with pytest.raises(st.ShardtoolError, match="image/object/segmentation"):
        st.Loader(split, 1, [st.Image([st.ResizeTo(16)]), st.Objects(masks=True)])
    with pytest.raises(st.ShardtoolError, match="image/object/area"):
        st.Loader(split, 1, [st.Image([st.ResizeTo(16)]), st.Objects(masks=True, segmentation="image/object/area")])


def pictures(html, name):
    """Returns the pictures of a name in what `show` made."""
    parts = html.split('<img src="data:image/png;base64,')[1:]
    parts = [part for part in parts if f'alt="{name}"' in part]
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(part.split('"')[0])))) for part in parts]


def test_show_draws_masks_boxes_points_and_label_maps(tmp_path):
    label_map = np.zeros((40, 60), np.uint8)
    label_map[10:] = 3
    label_map[20:] = 255
    good = {"bbox": [10, 5, 20, 30], "category": 1, "segmentation": [[10, 5, 30, 5, 30, 35, 10, 35]]}
    with st.Writer(tmp_path, "train") as writer:
        image = png(np.full((40, 60, 3), 200, np.uint8))
        keypoints = {"keypoints": [50, 20, 2]}
        writer.write({"key": "a", "image": image, "mask": png(label_map), "objects": [good | keypoints]})
    fields = [
        st.Image([st.ResizeTo((40, 60))]),
        st.Mask("mask"),
        st.Objects(masks=True, keypoints="image/object/keypoints"),
    ]
    with st.Loader(st.Dataset(tmp_path)["train"], 1, fields) as loader:
        batch = next(iter(loader))
    (picture,), (map_,) = (pictures(st.show(batch)._repr_html_(), name) for name in ("image", "mask"))
    color = np.array([204, 102, 119])
    np.testing.assert_array_equal(picture[5, 10:30], np.tile(color, (20, 1)))
    np.testing.assert_array_equal(picture[5:35, 29], np.tile(color, (30, 1)))
    inside = (200 * 0.55 + color * 0.45).round()
    assert (picture[7:33, 12:28] == inside).all()
    assert (picture[20, 50] == (255, 179, 0)).all()
    outside = np.ones((40, 60), bool)
    outside[5:35, 10:30] = outside[19:22, 49:52] = False
    assert (picture[outside] == 200).all()
    assert (map_[:10] == 0).all() and (map_[10:20] == (221, 204, 119)).all() and (map_[20:] == 255).all()
    assert batch["image"].max() == 200, "the batch itself stays"
