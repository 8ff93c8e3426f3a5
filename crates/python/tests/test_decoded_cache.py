"""A cache of decoded images."""

import io
import json

import numpy as np
import pytest
from PIL import Image

import shardtool as st

STEPS = [st.RandomResizedCrop(24), st.RandomHorizontalFlip()]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Forty photographs without loss, with shorter sides of 60 to 99 pixels."""
    folder = tmp_path_factory.mktemp("large")
    random = np.random.default_rng(1)
    with st.Writer(folder / "dataset", "train") as writer:
        for number in range(40):
            coarse = Image.fromarray(random.integers(0, 256, (6, 7, 3), np.uint8))
            image = np.asarray(coarse.resize((130 - number, 60 + number), Image.Resampling.BICUBIC))
            writer.write({"key": f"{number}", "image": image})
    return st.Dataset(folder / "dataset").split("train")


@pytest.mark.parametrize("on_disk", [False, True])
def test_pixels_are_those_of_the_steps_after_a_resize(large, tmp_path, on_disk):
    cache = st.DecodedCache("8MiB", resize=80, path=tmp_path if on_disk else None)
    loader = st.Loader(large, 8, st.Image(STEPS, decoded_cache=cache), order=st.Shuffled(2), memory="64MiB")
    for epoch in range(3):
        for batch in loader:
            for id, image in zip(batch["id"], batch["image"]):
                stored = Image.open(io.BytesIO(large[int(id)]["image"])).convert("RGB")
                width, height = stored.size
                if min(width, height) > 80:
                    scaled = (80, 80 * height // width) if width <= height else (80 * width // height, 80)
                    stored = stored.resize(scaled, Image.Resampling.BILINEAR)
                expected = st.preview(np.asarray(stored), STEPS, seed=2, epoch=epoch, position=int(id)).image
                np.testing.assert_array_equal(image, expected)
    stats = loader.stats()["decoded_cache"]
    # Workers may want an image of the next epoch before it is kept.
    assert stats["images"] == 40 and 40 <= stats["misses"] <= 56 and stats["hits"] >= 64 and stats["bad"] == 0
    assert stats["bytes"] <= 8 << 20 and "decoded_cache_hits_total" in loader.stats().prometheus
    assert loader.stats()["memory"]["decoded_cache"] == (0 if on_disk else 8 << 20)
    assert list(tmp_path.iterdir()) == []


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def detection(tmp_path_factory):
    """Images with boxes, keypoints, two label maps and a further image: as they are, and resized by Pillow to 40 pixels."""
    folder = tmp_path_factory.mktemp("detection")
    random = np.random.default_rng(3)
    writers = {name: st.Writer(folder / name, "train") for name in ("stored", "resized")}
    for number in range(13):
        width, height = 70 + 3 * number, 100 - 5 * number
        coarse = [Image.fromarray(random.integers(0, 256, (5, 6, 3), np.uint8)) for _ in range(2)]
        images = [image.resize((width, height), Image.Resampling.BICUBIC) for image in coarse]
        maps = [Image.fromarray(random.integers(0, high, (height, width)).astype(dtype))
                for high, dtype in ((200, np.uint8), (9, np.uint8))]  # fmt: skip
        boxes = np.array([[4, 6, 30, 20], [width / 3, height / 4, width / 2, height / 2]])
        points = np.array([[5, 7], [width - 1, height - 2], [width / 2, 20.5]])
        scaled = (40, 40 * height // width) if width <= height else (40 * width // height, 40)
        for name, size in (("stored", (width, height)), ("resized", scaled)):
            if min(width, height) <= 40:
                size = (width, height)
            scale = np.array(size) / (width, height)
            keypoints = [[*point, 2] for point in points * scale]
            writers[name].write({
                "key": f"{number}",
                "image": png(np.asarray(images[0].resize(size, Image.Resampling.BILINEAR))),
                "other": png(np.asarray(images[1].resize(size, Image.Resampling.BILINEAR))),
                "red": png(np.asarray(maps[0].resize(size, Image.Resampling.NEAREST))),
                "blue": png(np.asarray(maps[1].resize(size, Image.Resampling.NEAREST))),
                "objects": {
                    "bbox": (boxes * np.tile(scale, 2)).tolist(),
                    "category": [1, 2],
                    "keypoints": [sum(keypoints, []), sum(keypoints[::-1], [])],
                },
            })  # fmt: skip
    for writer in writers.values():
        writer.close()
    return {name: st.Dataset(folder / name).split("train") for name in writers}


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("mask_dtype", ["uint8", "uint16"])
def test_masks_boxes_points_and_further_images_follow_the_resize(detection, tmp_path, on_disk, mask_dtype):
    steps = [
        st.RandomZoomOut(fill=90, side_range=(1, 1.3)), st.RandomResizedCrop((30, 36), scale=(0.4, 1)),
        st.RandomHorizontalFlip(), st.RandomRotation(8, fill=90),
    ]  # fmt: skip
    moved = [
        st.Mask("red", dtype=mask_dtype, fill=9), st.Mask("blue", dtype=mask_dtype, fill=9), st.FurtherImage("other"),
        st.Objects(properties=["image/object/class/label"], keypoints="image/object/keypoints", flip_index=range(3)),
    ]  # fmt: skip
    options = dict(order=st.Shuffled(4), remainder="mask")
    cache = st.DecodedCache("8MiB", resize=40, path=tmp_path if on_disk else None)
    loader = st.Loader(detection["stored"], 4, [st.Image(steps, decoded_cache=cache), *moved], memory="64MiB", **options)
    expected = st.Loader(detection["resized"], 4, [st.Image(steps), *moved], **options)
    rows = 0
    for _ in range(3):
        for batch, other in zip(loader, expected, strict=True):
            assert batch.keys() == other.keys()
            for name in ("image", "other", "red", "blue", "id", "valid"):
                np.testing.assert_array_equal(batch[name], other[name], err_msg=name)
            for row in np.flatnonzero(batch["valid"]):
                for name in ("boxes", "labels", "keypoints"):
                    np.testing.assert_allclose(batch[name].row(row), other[name].row(row), atol=1e-3, err_msg=name)
                rows += 1
    stats = loader.stats()["decoded_cache"]
    # The next epoch may begin while images of the last one are decoded: these are decoded again.
    assert rows == 3 * 13 and stats["images"] == 4 * 13 <= stats["misses"] <= 4 * 15 and stats["hits"] > 4 * 13


def test_images_that_are_small_enough_are_not_changed(tmp_path):
    """With an orientation, which masks and boxes follow; no step resizes, which would round in another order."""
    random = np.random.default_rng(5)
    with st.Writer(tmp_path / "dataset", "train", annotated="coded") as writer:
        for number in range(16):
            width, height, orientation = 60 + number, 50, Image.Exif()
            orientation[0x0112] = number % 8 + 1
            file = io.BytesIO()
            image = Image.fromarray(random.integers(0, 256, (5, 6, 3), np.uint8)).resize((width, height))
            image.save(file, "JPEG", exif=orientation)
            labels = png(random.integers(0, 99, (height, width)).astype(np.uint8))
            objects = {"bbox": [[4, 6, 30, 20], [20, 10, 25, 30]], "category": [1, 2]}
            writer.write({"key": f"{number}", "image": file.getvalue(), "mask": labels, "objects": objects})
    split = st.Dataset(tmp_path / "dataset").split("train")
    steps = [st.RandomCrop((40, 36)), st.RandomHorizontalFlip()]
    cached, plain = (
        st.Loader(
            split,
            8,
            [st.Image(steps, apply_orientation=True, decoded_cache=cache), st.Mask("mask"), st.Objects()],
            order=st.Shuffled(2),
        )
        for cache in (st.DecodedCache("8MiB", resize=1000), None)
    )
    rows = 0
    for _ in range(2):
        for batch, other in zip(cached, plain, strict=True):
            for name in ("image", "mask", "id"):
                np.testing.assert_array_equal(batch[name], other[name], err_msg=name)
            for row in range(8):
                np.testing.assert_allclose(batch["boxes"].row(row), other["boxes"].row(row), atol=1e-4)
                rows += len(batch["boxes"].row(row))
    assert rows > 32 and cached.stats()["decoded_cache"]["hits"] > 0


@pytest.mark.parametrize("on_disk", [False, True])
def test_frames_of_clips_are_kept(tmp_path, on_disk):
    random = np.random.default_rng(6)
    lists = {"stored": "", "resized": ""}
    for video, length in enumerate((1, 5, 9, 12)):
        for name in lists:
            lists[name] += json.dumps({"key": f"{video}", "frames": f"{name}/{video}", "pair": [1, 2]}) + "\n"
        coarse = Image.fromarray(random.integers(0, 256, (5, 6, 3), np.uint8)).resize((90, 70), Image.Resampling.BICUBIC)
        for number in range(length):
            frame = Image.fromarray(np.asarray(coarse) // (number + 1))
            for name, size in (("stored", (90, 70)), ("resized", (51, 40))):
                path = tmp_path / name / f"{video}"
                path.mkdir(parents=True, exist_ok=True)
                frame.resize(size, Image.Resampling.BILINEAR).save(path / f"{number}.png")
    for name, lines in lists.items():
        (tmp_path / f"{name}.jsonl").write_text(lines)
        st.pack(tmp_path / f"{name}.jsonl", tmp_path / f"packed-{name}", columns={"frames": "frames"}, seed=None)
    splits = [st.Dataset(tmp_path / f"packed-{name}").split("train") for name in lists]
    cached = st.DecodedCache("8MiB", resize=40, path=tmp_path if on_disk else None)
    steps = [st.RandomResizedCrop(24), st.RandomHorizontalFlip(), st.ColorJitter(0.2)]
    # Columns that the index lacks make the loader read whole records.
    for columns in ((), ("pair",)):
        options = dict(order=st.Shuffled(4), remainder="mask")
        clip = st.Clip("frames", steps, frames=3, stride=2, clips=2, decoded_cache=cached)
        loader = st.Loader(splits[0], 2, [clip, *columns], memory="64MiB", **options)
        expected = st.Loader(splits[1], 2, [st.Clip("frames", steps, frames=3, stride=2, clips=2), *columns], **options)
        for _ in range(4):
            for batch, other in zip(loader, expected, strict=True):
                np.testing.assert_array_equal(batch["frames"], other["frames"])
        stats = loader.stats()["decoded_cache"]
        # No more than all frames of all videos.
        assert 15 < stats["images"] <= 27 and stats["images"] <= stats["misses"] < 40 and stats["hits"] > 40, stats


def test_arguments_are_checked(large, tmp_path):
    with pytest.raises(st.OptionError, match="`decoded_cache`: images as stored are not decoded"):
        st.Loader(large, 8, st.Image(decoded_cache=st.DecodedCache(100)))
    with pytest.raises(st.OptionError, match="resize"):
        st.DecodedCache(100, resize=0)
    with pytest.raises(st.ShardtoolError, match="absent"):
        next(iter(st.Loader(large, 8, st.Image(STEPS, decoded_cache=st.DecodedCache(100, path=tmp_path / "absent")))))
    with pytest.raises(st.BudgetError, match="decoded images"):
        st.Loader(large, 8, st.Image(STEPS, decoded_cache=st.DecodedCache("1GiB")), memory="64MiB")
