"""Arrays with an element for each pixel of the image: they follow its geometry if told to, and are reported otherwise."""

import io
import warnings

import numpy as np
import pytest
from PIL import Image

import shardtool as st

N = 8
SIZES = [(40 + 4 * number, 58 - 3 * number) for number in range(N)]


def depth(number: int, dtype=np.float32) -> np.ndarray:
    """An array in which every element occurs once."""
    height, width = SIZES[number]
    return (np.arange(height * width).reshape(height, width) + 1 + 3 * number).astype(dtype)


def features(number: int) -> np.ndarray:
    return np.stack([depth(number, np.int32) * 4 + channel for channel in range(4)])


def file(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenes")
    kinds = {
        "depth": st.Array(chunk=(16, 16)), "normals": st.Array(), "features": st.Array(codec="raw"), "small": st.Array(),
        "flags": st.Array(), "embedding": st.Array(), "number": "int64", "mask": "bytes",
    }  # fmt: skip
    with st.Writer(path, "train", features=kinds) as writer:
        for number, size in enumerate(SIZES):
            values = depth(number)
            picture = np.random.default_rng(number).integers(0, 256, (*size, 3), np.uint8)
            writer.write({
                "key": f"{number}", "image": picture, "label": number % 3, "number": number, "mask": file(depth(number, np.uint16)), "depth": values,
                "normals": np.stack([values, -values, values / 2], -1), "features": features(number), "flags": values % 2 == 0,
                "small": values[::2, ::2].copy(), "embedding": np.full(12, number, np.float16),
            })  # fmt: skip
    return st.Dataset(path).split("train")


EVERYTHING = [
    st.RandomZoomOut(fill=90, side_range=(1, 1.5)), st.RandomResizedCrop((50, 44), scale=(0.2, 1)), st.RandomHorizontalFlip(),
    st.RandomVerticalFlip(), st.ColorJitter(0.4), st.RandomRotation(25, interpolation="bilinear"), st.RandomPerspective(0.3, 0.8),
    st.Pad(3, fill=7), st.ResizeTo((41, 37)),
]  # fmt: skip
IN_IMAGE = [
    st.Arrays(["depth", "flags"], image_axes=(0, 1)),
    st.Arrays("normals", image_axes=(0, 1), pad_value=-5),
    st.Arrays("features", image_axes=(1, 2), pad_value=-1),
    st.Arrays("embedding"),
]


def rows(split, image, *more, seed=0):
    """Returns the rows of an epoch, each as a dict, by the number of the record. A warning is an error."""
    fields = [image, *IN_IMAGE, *more, "number"]
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in st.Loader(split, 3, fields, order=st.Shuffled(seed), remainder="mask", bad_samples="error"):
            for row in np.flatnonzero(batch["valid"]):
                found[int(batch["number"][row])] = {name: array[row].copy() for name, array in batch.items() if hasattr(array, "shape")}
    assert sorted(found) == list(range(N))
    return found


def test_arrays_are_resized_and_flipped_as_by_pillow(scenes):
    for flip in (0.0, 1.0):
        for height, width in [(23, 61), (80, 30)]:
            image = st.Image([st.ResizeTo((height, width)), st.RandomHorizontalFlip(flip)])
            for number, row in rows(scenes, image).items():
                def moved(array, height=height, width=width, flip=flip):
                    made = Image.fromarray(array).resize((width, height), Image.Resampling.NEAREST)
                    return np.asarray(made)[:, :: -1 if flip else 1]

                np.testing.assert_array_equal(row["depth"], moved(depth(number)))
                assert row["depth"].dtype == np.float32 and row["flags"].dtype == bool
                np.testing.assert_array_equal(row["flags"], moved(depth(number)) % 2 == 0)
                np.testing.assert_array_equal(row["normals"], np.stack([row["depth"], -row["depth"], row["depth"] / 2], -1))
                for channel, plane in enumerate(features(number)):
                    np.testing.assert_array_equal(row["features"][channel], moved(plane))
                assert (row["embedding"] == number).all()


@pytest.mark.parametrize("cache", [None, st.DecodedCache("8MiB", resize=30)], ids=str)
def test_arrays_move_exactly_as_label_maps(scenes, cache):
    outside = 0
    image, mask = st.Image(EVERYTHING, decoded_cache=cache), st.Mask("mask", dtype="uint16", fill=0)
    for seed in range(4):
        found = rows(scenes, image, mask, seed=seed)
        for row in found.values():
            labels = row["mask"].astype(np.float32)
            np.testing.assert_array_equal(row["depth"], labels)
            shown = labels > 0
            assert 0.2 < shown.mean() <= 1
            normals = np.stack([labels, -labels, labels / 2], -1)
            np.testing.assert_array_equal(row["normals"], np.where(shown[..., None], normals, -5))
            channels = labels.astype(np.int32) * 4 + np.arange(4)[:, None, None]
            np.testing.assert_array_equal(row["features"], np.where(shown, channels, -1))
            outside += (~shown).sum()
    assert outside > 100


def test_image_orientation_moves_arrays_as_label_maps(tmp_path):
    values = np.arange(20 * 30, dtype=np.float32).reshape(20, 30)
    picture = Image.fromarray(values.astype(np.uint8)).convert("RGB")
    exif = Image.Exif()
    exif[274] = 6
    with st.Writer(tmp_path, labels=False, features={"depth": st.Array()}) as writer:
        out = io.BytesIO()
        picture.save(out, "PNG", exif=exif)
        writer.write({"key": "a", "image": out.getvalue(), "depth": values})
    split = st.Dataset(tmp_path).split("train")
    arrays = st.Arrays("depth", image_axes=(0, 1))
    for oriented, expected in [(False, values), (True, np.rot90(values, -1))]:
        loader = st.Loader(split, 1, [st.Image([st.ResizeTo(expected.shape)], apply_orientation=oriented), arrays])
        batch = next(iter(loader))
        np.testing.assert_array_equal(batch["depth"][0], expected)
        np.testing.assert_array_equal(batch["image"][0, ..., 0], expected.astype(np.uint8))


def test_whole_epoch_resumes_with_the_same_arrays(scenes):
    def loader(workers):
        return st.Loader(scenes, 2, [st.Image(EVERYTHING), *IN_IMAGE], order=st.Shuffled(3), workers=workers)

    first = [batch["features"].copy() for batch in loader(1)]
    half = loader(2)
    taken = iter(half)
    next(taken), next(taken)
    other = loader(2)
    other.load_state_dict(half.state_dict())
    for expected, batch in zip(first[2:], other, strict=True):
        np.testing.assert_array_equal(batch["features"], expected)


def test_an_array_that_stays_behind_is_reported_once(scenes):
    for steps in ([st.ResizeTo(16)], [st.RandomCrop(16)], [st.CenterCrop(16), st.RandomHorizontalFlip()]):
        loader = st.Loader(scenes, 4, [st.Image(steps), st.Arrays(["depth", "features"][:1], crop=(8, 8))])
        with pytest.warns(st.ShardtoolWarning, match=r"array `depth` has the size of its image.*`image_axes`") as found:
            for _ in range(2):
                for _ in loader:
                    pass
        assert len(found) == 1
    for arrays in (st.Arrays("features", crop=(4, 8, 8)), st.Arrays("normals", crop=(8, 8, 3))):
        with pytest.warns(st.ShardtoolWarning, match="does not follow the steps"):
            list(st.Loader(scenes, 4, [st.Image([st.ResizeTo(16)]), arrays]))


def drain(loader) -> None:
    """Takes all batches, and keeps none: a consumer that does is warned of that."""
    for _ in loader:
        pass


def test_other_arrays_are_not_reported(scenes, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drain(st.Loader(scenes, 4, [st.Image([st.ResizeTo(16)]), st.Arrays("small", crop=(8, 8)), st.Arrays("embedding")]))
        drain(st.Loader(scenes, 4, st.Arrays("depth", crop=(8, 8))))
        # An image that is shown as it is stored.
        with st.Writer(tmp_path, labels=False, features={"depth": st.Array()}) as writer:
            writer.write({"key": "a", "image": np.zeros((20, 30, 3), np.uint8), "depth": np.zeros((20, 30), np.float32)})
        split = st.Dataset(tmp_path).split("train")
        image = st.Image([st.CenterCrop((20, 30)), st.ColorJitter(0.2), st.GaussianBlur(3)])
        drain(st.Loader(split, 1, [image, st.Arrays("depth")]))


def test_an_array_of_pixels_does_not_survive_a_turn_of_its_image(tmp_path):
    """EXIF 3: the image is stored upright as pixels, the array would stay as coded."""
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(np.arange(20 * 30 * 3, dtype=np.uint32).astype(np.uint8).reshape(20, 30, 3)).save(tmp_path / "a.jpg", exif=exif)
    np.save(tmp_path / "a.npy", np.zeros((20, 30), np.float32))
    (tmp_path / "list.jsonl").write_text('{"path": "a.jpg", "depth": "a.npy"}\n')
    options = {"columns": {"depth": st.Array()}, "seed": None}
    assert st.pack(tmp_path / "list.jsonl", tmp_path / "coded", **options).rejected == 0
    with pytest.raises(st.PackError, match="`depth` is an image or an array of its pixels"):
        st.pack(tmp_path / "list.jsonl", tmp_path / "turned", pixels="raw", **options)


def test_an_array_of_another_size_is_a_bad_sample(scenes):
    loader = st.Loader(scenes, 4, [st.Image([st.ResizeTo(16)]), st.Arrays("small", image_axes=(0, 1))], bad_samples="error")
    with pytest.raises(st.BadSampleError, match=r"array `small` is \d+ x \d+ \(height x width\), but the image is \d+ x \d+"):
        list(loader)


def test_wrong_arguments_are_refused(scenes):
    steps = [st.ResizeTo(16)]

    def refused(match, arrays, *image, **options):
        with pytest.raises((st.OptionError, TypeError), match=match):
            st.Loader(scenes, 4, [*(image or [st.Image(steps)]), arrays], **options)

    for axes in [(0, 2), (1, 0), (1, 2), (2**40, 2**40 + 1)]:
        refused("`image_axes` is .* of 2 dimensions", st.Arrays("depth", image_axes=axes))
    for stored in (st.Image(), "number"):
        refused("`Arrays` with `image_axes` goes through the steps of an image", st.Arrays("depth", image_axes=(0, 1)), stored)
    for own in ({"crop": (4, 4)}, {"flip": (0.5, 0.5)}, {"rotate90": (0, 1)}):
        refused("leave out the crop", st.Arrays("depth", image_axes=(0, 1), **own))
    depth, mix = st.Arrays("depth", image_axes=(0, 1)), st.MixUp(1, num_classes=3)
    refused("`MixUp` does not go with `Arrays` with `image_axes`: the mean", depth, batch_transform=mix)
    views = st.Views({"a": steps, "b": steps})
    refused("several views .* `Arrays` with `image_axes`: each view has its own geometry", depth, views)
    shapes = st.AspectRatioBuckets([(16, 16), (16, 24)], lambda height, width: [st.ResizeTo((height, width))])
    refused("rows of an array have one shape", depth, st.Image(), buckets=shapes)
    refused("`pad_value` is 0.5, which i32", st.Arrays("features", image_axes=(1, 2), pad_value=0.5))
    for wrong in (3, (0,), (0, 1, 2), ("a", "b"), (0, -1)):
        with pytest.raises((st.OptionError, TypeError), match="image_axes"):
            st.Arrays("depth", image_axes=wrong)
