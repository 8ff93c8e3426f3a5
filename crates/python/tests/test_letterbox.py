"""`Letterbox` against Ultralytics' `LetterBox`, written here from its published formula, with Pillow's resize."""

import numpy as np
import pytest
import shardtool as st
from PIL import Image


def letterbox(shape, new_shape, scaleup=True, center=True):
    """Ultralytics' arithmetic (`LetterBox.__call__`): ratio, (width, height) of the resized image, and what is added left, top,
    right and bottom."""
    r = min(new_shape[0] / shape[0], new_shape[1] / shape[1])
    if not scaleup:
        r = min(r, 1.0)
    new_unpad = round(shape[1] * r), round(shape[0] * r)
    dw, dh = new_shape[1] - new_unpad[0], new_shape[0] - new_unpad[1]
    if center:
        dw, dh = dw / 2, dh / 2
    top, bottom = round(dh - 0.1) if center else 0, round(dh + 0.1)
    left, right = round(dw - 0.1) if center else 0, round(dw + 0.1)
    return r, new_unpad, (left, top, right, bottom)


def expected(image, size, fill, resample, **options):
    """Returns the result, the ratio, the factors of x and y by which pixels move, and what is added."""
    ratio, (width, height), (left, top, right, bottom) = letterbox(image.shape[:2], size, **options)
    # One axis after the other: Pillow 13 starts with the rows for some sizes.
    across = Image.fromarray(image).resize((width, image.shape[0]), resample)
    resized = np.asarray(across.resize((width, height), resample))
    canvas = np.full((height + top + bottom, width + left + right, *image.shape[2:]), fill, image.dtype)
    canvas[top : top + height, left : left + width] = resized
    assert canvas.shape[:2] == size
    return canvas, ratio, (width / image.shape[1], height / image.shape[0]), (left, top)


SHAPES = [(48, 64), (64, 48), (33, 77), (77, 33), (50, 50), (31, 31), (125, 63), (21, 40), (7, 90), (101, 100), (96, 128)]
SIZES = [(64, 64), (64, 96), (63, 41), (50, 101)]


@pytest.mark.parametrize("scaleup", [True, False])
@pytest.mark.parametrize("align", ["center", "top_left"])
@pytest.mark.parametrize("size", SIZES)
def test_pixels_and_boxes_are_those_of_the_formula(size, align, scaleup):
    random = np.random.default_rng(sum(size))
    options = {"scaleup": scaleup, "center": align == "center"}
    odd = kept = 0
    for shape in [*SHAPES, *(tuple(int(n) for n in random.integers(9, 200, 2)) for _ in range(30))]:
        image = random.integers(0, 256, (*shape, 3), np.uint8)
        corners = np.sort(random.uniform(0, 1, (5, 2, 2)), axis=1) * [shape[1], shape[0]]
        boxes = corners.reshape(5, 4)
        found = st.preview(image, [st.Letterbox(size, (9, 99, 199), align, scaleup)], boxes=boxes)
        want, ratio, factors, (left, top) = expected(image, size, (9, 99, 199), Image.Resampling.BILINEAR, **options)
        np.testing.assert_array_equal(found.image, want, err_msg=f"{shape}")
        moved = boxes * [*factors, *factors] + [left, top, left, top]
        np.testing.assert_allclose(found.boxes, moved[found.kept], atol=1e-4)
        # Ultralytics moves boxes by the ratio before it is rounded: at most half a pixel away.
        theirs = boxes * ratio + [left, top, left, top]
        assert np.abs(moved - theirs).max() <= 0.5 + 1e-9
        odd += (want.shape[1] - round(shape[1] * ratio)) % 2 + (want.shape[0] - round(shape[0] * ratio)) % 2
        kept += (round(shape[1] * ratio), round(shape[0] * ratio)) == (shape[1], shape[0])
    assert odd > 3 and (kept > 0 or scaleup)


def test_everything_of_a_sample_follows(tmp_path):
    random = np.random.default_rng(5)
    shapes = [(30, 44), (44, 30), (25, 61), (90, 40), (64, 64), (31, 87)]
    images, masks, values = [], [], []
    of_objects = {"bbox": "float", "class/label": "int64", "segmentation": "bytes", "keypoints": "float", "keypoints/shape": "int64"}
    kinds = {"values": st.Array(), "mask": "bytes", **{f"image/object/{name}": kind for name, kind in of_objects.items()}}
    with st.Writer(tmp_path / "set", "train", features=kinds) as writer:
        for number, (height, width) in enumerate(shapes):
            images.append(random.integers(0, 256, (height, width, 3), np.uint8))
            masks.append(random.integers(0, 200, (height, width), np.uint8))
            values.append(random.integers(-500, 500, (height, width)).astype(np.int16))
            outline = [4, 4, width - 6, 4, width - 6, height - 4, 4, height - 4]
            objects = [{
                "bbox": [4, 4, width - 10, height - 8], "category": number, "segmentation": [outline],
                "keypoints": [6.0, 7.0, 2.0, width - 8.0, height - 5.0, 1.0],
            }]  # fmt: skip
            mask = Image.fromarray(masks[-1])
            mask.save(tmp_path / "mask.png")
            writer.write({
                "key": f"{number}", "image": images[-1], "mask": (tmp_path / "mask.png").read_bytes(),
                "values": values[-1], "objects": objects,
            })  # fmt: skip
    split = st.Dataset(tmp_path / "set")["train"]
    size = (57, 70)
    fields = [
        st.Image([st.Letterbox(size)]),
        st.Mask("mask", fill=255),
        st.Arrays("values", image_axes=(0, 1), pad_value=-999),
        st.Objects(masks=True, keypoints="image/object/keypoints"),
    ]
    with st.Loader(split, 6, fields, order=st.Sequential()) as loader:
        batch = next(iter(loader))
    for row, image in enumerate(images):
        height, width = image.shape[:2]
        want, _, (x, y), (left, top) = expected(image, size, 114, Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(batch["image"][row], want)
        nearest = Image.Resampling.NEAREST
        np.testing.assert_array_equal(batch["mask"][row], expected(masks[row], size, 255, nearest)[0])
        as_int32 = expected(values[row].astype(np.int32), size, -999, nearest)[0]
        np.testing.assert_array_equal(batch["values"][row], as_int32.astype(np.int16))
        moved = np.array([4 * x + left, 4 * y + top, (width - 6) * x + left, (height - 4) * y + top])
        np.testing.assert_allclose(batch["boxes"].row(row), [moved], atol=1e-4)
        points = [[6 * x + left, 7 * y + top, 2], [(width - 8) * x + left, (height - 5) * y + top, 1]]
        np.testing.assert_allclose(batch["keypoints"].row(row), points, atol=1e-4)
        # A polygon of whole pixels covers exactly these.
        covered = np.zeros((height, width), np.uint8)
        covered[4 : height - 4, 4 : width - 6] = 1
        np.testing.assert_array_equal(batch["masks"].row(row), [expected(covered, size, 0, nearest)[0]])


def test_options_are_checked():
    with pytest.raises(st.ShardtoolError, match="align"):
        st.Letterbox(64, align="bottom")
    with pytest.raises(st.ShardtoolError, match="interpolation"):
        st.Letterbox(64, interpolation="nearest")
    with pytest.raises(st.ShardtoolError, match="size"):
        st.Letterbox(0)
