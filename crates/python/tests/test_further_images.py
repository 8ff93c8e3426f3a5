"""Further images of a record: colours go through every step, values such as depths and ids are moved and never mixed."""

import io

import numpy as np
import pytest
from PIL import Image

import shardtool as st

N = 9
SIZES = [(40 + 5 * number, 64 - 3 * number) for number in range(N)]


def file(image: Image.Image, kind="PNG") -> bytes:
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def depth(number: int) -> np.ndarray:
    """Depths of 16 bits, multiples of 7, with invalid pixels of 0: a mean of several is hardly ever such a number."""
    random = np.random.default_rng(number)
    values = random.integers(1, 65536 // 7, SIZES[number]).astype(np.uint16) * 7
    return np.where(random.random(SIZES[number]) < 0.2, np.uint16(0), values)


def ids(number: int) -> np.ndarray:
    """Ids of 24 bits as COCO's panoptic maps code them: R + 256 G + 65536 B."""
    coded = np.random.default_rng(number + 100).integers(1, 1 << 24, SIZES[number])
    return np.stack([coded & 255, coded >> 8 & 255, coded >> 16], -1).astype(np.uint8)


def image(number: int) -> np.ndarray:
    return np.random.default_rng(number + 200).integers(0, 256, (*SIZES[number], 3), np.uint8)


def palette(number: int) -> Image.Image:
    made = Image.fromarray(np.random.default_rng(number + 300).integers(0, 6, SIZES[number], np.uint8), "P")
    made.putpalette([200, 10, 10, 10, 200, 10, 10, 10, 200, 90, 90, 90, 1, 2, 3, 255, 250, 245])
    return made


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenes")
    with st.Writer(path, "train", labels=False) as writer:
        for number in range(N):
            depths = Image.fromarray(depth(number))
            writer.write({
                "key": f"{number}", "image": image(number), "number": number, "after": file(Image.fromarray(255 - image(number))),
                "depth": file(depths), "tiff": file(depths, "TIFF"), "ids": file(Image.fromarray(ids(number))),
                "palette": file(palette(number)), "labels": file(Image.fromarray((ids(number)[..., 0] % 9).astype(np.uint8))),
            })  # fmt: skip
    return st.Dataset(path).split("train")


KINDS = {"depth": "values", "tiff": "values", "ids": "values", "palette": "values", "labels": "values", "after": "color"}


def nearest(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """Returns Pillow's nearest-neighbour resize. Its mode `I` holds 32 bits."""
    if values.ndim == 2:
        values = values.astype(np.int32)
    return np.asarray(Image.fromarray(values).resize((width, height), Image.Resampling.NEAREST))


def further(kinds):
    """Returns a field for each feature of a dict."""
    return [st.FurtherImage(name, kind=kind) for name, kind in kinds.items()]


def rows(split, image, more=None, seed=0):
    """Returns the rows of an epoch, each as a dict, by the number of the record."""
    fields = [image, *(further(KINDS) if more is None else more), "number"]
    found = {}
    for batch in st.Loader(split, 4, fields, order=st.Shuffled(seed), remainder="mask", bad_samples="error"):
        for row in np.flatnonzero(batch["valid"]):
            found[int(batch["number"][row])] = {name: array[row].copy() for name, array in batch.items() if hasattr(array, "shape")}
    assert sorted(found) == list(range(N))
    return found


@pytest.mark.parametrize("flip", [0.0, 1.0])
def test_values_are_resized_and_flipped_as_by_pillow(scenes, flip):
    for height, width in [(17, 40), (90, 71)]:
        for number, row in rows(scenes, st.Image([st.ResizeTo((height, width)), st.RandomHorizontalFlip(flip)])).items():
            turn = slice(None, None, -1 if flip else 1)
            expected = nearest(depth(number), height, width)[:, turn]
            for name in ("depth", "tiff"):
                assert row[name].shape == (height, width, 1) and row[name].dtype == np.uint16
                np.testing.assert_array_equal(row[name][..., 0], expected, name)
            np.testing.assert_array_equal(row["ids"], nearest(ids(number), height, width)[:, turn])
            colors = np.asarray(palette(number).convert("RGB"))
            np.testing.assert_array_equal(row["palette"], nearest(colors, height, width)[:, turn])
            small = ids(number)[..., 0] % 9
            assert row["labels"].shape == (height, width, 1) and row["labels"].dtype == np.uint8
            np.testing.assert_array_equal(row["labels"][..., 0], nearest(small, height, width)[:, turn])
            # Colours are still resized by the filter of the steps.
            filtered = Image.fromarray(255 - image(number)).resize((width, height), Image.Resampling.BILINEAR)
            np.testing.assert_allclose(row["after"].astype(int), np.asarray(filtered)[:, turn].astype(int), atol=1)


EVERYTHING = [
    st.RandomZoomOut(fill=90, side_range=(1, 1.5)), st.RandomResizedCrop((50, 44), scale=(0.2, 1)), st.RandomHorizontalFlip(),
    st.RandomVerticalFlip(), st.ColorJitter(0.4, 0.4, 0.4, 0.2), st.RandomRotation(25, interpolation="bilinear", fill=90),
    st.RandomAffine(10, (0.1, 0.1), (0.8, 1.2), (5, 5), interpolation="bilinear"), st.RandomPerspective(0.3, 0.8),
    st.RandAugment(), st.Pad(3, fill=7), st.ResizeTo((41, 37)), st.RandomErasing(1.0, value=77), st.AugMix(),
]  # fmt: skip


def in_input(values: np.ndarray, stored: np.ndarray) -> float:
    """Returns the share of the pixels whose value a stored pixel has. Pixels of 0 are outside the image."""
    def coded(pixels):
        pixels = pixels.astype(np.int64)
        return pixels @ (1 << 8 * np.arange(3)) if pixels.ndim == 3 else pixels

    values = coded(values)
    return float(np.isin(values, np.append(coded(stored), 0)).mean())


@pytest.mark.parametrize("options", [{}, {"decoded_cache": st.DecodedCache("8MiB", resize=30)}, {"scaled_decode": True}], ids=str)
def test_every_delivered_value_is_in_the_input(scenes, options):
    shown = st.Image(EVERYTHING, **options)
    maps = [st.Mask(name, dtype="uint16", fill=0) for name in ("depth", "tiff")]
    others = further({name: kind for name, kind in KINDS.items() if name not in ("depth", "tiff")})
    for seed in range(3):
        # Values move exactly as label maps do, which have their own code.
        masks = rows(scenes, shown, [*maps, *others], seed)
        for number, row in rows(scenes, shown, seed=seed).items():
            for name in ("depth", "tiff"):
                assert in_input(row[name][..., 0], depth(number)) == 1, name
                np.testing.assert_array_equal(row[name][..., 0], masks[number][name])
            assert in_input(row["ids"], ids(number)) == 1
            assert in_input(row["palette"], np.asarray(palette(number).convert("RGB"))) == 1
            assert set(np.unique(row["labels"])) <= set(range(9))
            assert np.count_nonzero(row["depth"]) > 100
            # The count would notice: the colours beside them are mixed.
            assert in_input(row["after"], 255 - image(number)) < 0.9


@pytest.mark.parametrize("options", [{}, {"decoded_cache": st.DecodedCache("8MiB", resize=30)}], ids=str)
def test_each_view_has_the_values_of_its_crop(scenes, options):
    crop = [st.RandomResizedCrop(24), st.RandomHorizontalFlip()]
    views = st.Views({"a": crop, "b": [*crop, st.ColorJitter(0.5)]}, **options)
    different = 0
    for epoch in range(2):
        for number, row in rows(scenes, views, seed=epoch).items():
            for view in ("a", "b"):
                assert in_input(row[f"depth.{view}"][..., 0], depth(number)) == 1
                assert in_input(row[f"ids.{view}"], ids(number)) == 1
            different += (row["depth.a"] != row["depth.b"]).any()
    assert different > N


def test_values_are_neither_normalised_nor_given_to_a_function(scenes):
    steps = [st.RandomResizedCrop(32), st.RandomHorizontalFlip()]
    plain = rows(scenes, st.Image(steps), seed=5)
    inverted = [*steps, lambda image, seed: 255 - image]
    changed = rows(scenes, st.Image(inverted, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2)), seed=5)
    for number, row in changed.items():
        assert row["image"].shape == (3, 32, 32) and row["after"].dtype == np.float32
        for name in ("depth", "tiff", "ids", "palette", "labels"):
            assert row[name].dtype == plain[number][name].dtype
            np.testing.assert_array_equal(row[name], plain[number][name])


def test_pixel_formats_of_the_image_do_not_change_values(scenes):
    steps = [st.RandomResizedCrop(32), st.RandomHorizontalFlip()]
    plain = rows(scenes, st.Image(steps))
    for options in ({"mode": "L"}, {"dtype": "uint16"}, {"mode": "L", "dtype": "uint16"}):
        for number, row in rows(scenes, st.Image(steps, **options)).items():
            for name in ("depth", "ids", "palette"):
                np.testing.assert_array_equal(row[name], plain[number][name], f"{name} {options}")


def test_rows_without_a_sample_are_zero(scenes):
    fields = [st.Image([st.ResizeTo(8)], mean=(0.5,) * 3), *further(KINDS)]
    last = list(st.Loader(scenes, 5, fields, order=st.Sequential()))[-1]
    assert last["valid"].tolist() == [True] * 4 + [False]
    assert not last["depth"][4].any() and last["depth"][3].any() and (last["image"][4] != 0).all()


def test_frameworks_take_values_as_integers(scenes):
    torch = pytest.importorskip("torch")
    from shardtool.torch import Loader

    batch = next(iter(Loader(scenes, 4, [st.Image([st.ResizeTo(8)], dtype="bfloat16"), *further(KINDS)])))
    assert batch["after"].dtype == torch.bfloat16 and batch["depth"].dtype == torch.uint16 and batch["ids"].dtype == torch.uint8


MIXING = {
    "resize": [st.ResizeTo(16)],
    "crop": [st.RandomResizedCrop(16)],
    "rotation": [st.CenterCrop(16), st.RandomRotation(5, interpolation="bilinear")],
    "perspective": [st.CenterCrop(16), st.RandomApply([st.RandomPerspective()])],
    "colours": [st.CenterCrop(16), st.ColorJitter(0.3)],
}


@pytest.mark.parametrize("steps", MIXING.values(), ids=MIXING)
@pytest.mark.parametrize("name, found", [("depth", "grey of 16 bits"), ("tiff", "grey of 16 bits"), ("palette", "an image with a palette")])
def test_values_in_disguise_are_asked_about(scenes, steps, name, found):
    with pytest.raises(st.OptionError, match=f"image `{name}` is {found}.*`FurtherImage`.*values.*color"):
        st.Loader(scenes, 4, [st.Image(steps), st.FurtherImage(name)])
    # Either answer will do, and so will steps that only move pixels.
    st.Loader(scenes, 4, [st.Image(steps), st.FurtherImage(name, kind="color")])
    st.Loader(scenes, 4, [st.Image(steps), st.FurtherImage(name, kind="values")])
    moves = [st.RandomCrop(16), st.RandomHorizontalFlip(), st.RandomRotation(9, interpolation="nearest")]
    loader = st.Loader(scenes, 4, [st.Image(moves, dtype="uint16"), st.FurtherImage(name), "number"])
    for batch in loader:
        for number, pixels in zip(batch["number"], batch[name], strict=True):
            stored = 257 * np.asarray(palette(number).convert("RGB")).astype(int) if name == "palette" else depth(number)
            wanted = pixels if name == "palette" else pixels[..., 0]
            assert np.isin(wanted, np.append(stored, 0)).all()
    resized = st.Image(moves, dtype="uint16", decoded_cache=st.DecodedCache("1MiB", resize=8))
    with pytest.raises(st.OptionError, match="FurtherImage"):
        st.Loader(scenes, 4, [resized, st.FurtherImage(name)])


def test_bits_of_values_are_not_lost_in_silence(scenes):
    with pytest.raises(st.OptionError, match="mixed or shortened"):
        st.Loader(scenes, 4, [st.Image([st.CenterCrop(16)]), st.FurtherImage("depth")])


def test_colours_stay_as_they_are(scenes):
    steps = [st.RandomResizedCrop(20), st.ColorJitter(0.3)]
    for seed in range(2):
        unstated = rows(scenes, st.Image(steps), further({"after": None, "ids": None}), seed)
        stated = rows(scenes, st.Image(steps), further({"after": "color", "ids": "color"}), seed)
        for number in range(N):
            for name in ("image", "after", "ids"):
                np.testing.assert_array_equal(unstated[number][name], stated[number][name])


def written(path, files, size=(24, 20)):
    with st.Writer(path, "train", labels=False) as writer:
        for number, extra in enumerate(files):
            writer.write({"key": f"{number}", "image": np.zeros((*size, 3), np.uint8), "extra": extra})
    return st.Dataset(path).split("train")


def test_a_later_image_of_another_kind_is_a_bad_sample(tmp_path):
    gray = file(Image.fromarray(np.full((24, 20), 5, np.uint8)))
    deep = file(Image.fromarray(np.full((24, 20), 500, np.uint16)))
    jpeg = file(Image.fromarray(np.zeros((24, 20, 3), np.uint8)), "JPEG")
    floats = file(Image.fromarray(np.zeros((24, 20), np.float32)), "TIFF")
    split = written(tmp_path / "mixed", [gray] * 20 + [deep, jpeg, floats])
    options = {"order": st.Sequential(), "bad_samples": "mask"}
    for kind, expected in ((None, {20: "is grey of 16 bits"}), ("values", {20: "expected grey of 8 bits", 21: "PNG or TIFF", 22: "PNG"})):
        loader = st.Loader(split, 23, [st.Image([st.ResizeTo(9)]), st.FurtherImage("extra", kind=kind)], **options)
        with pytest.warns(st.ShardtoolWarning, match="bad sample"):
            [batch] = list(loader)
        bad = {sample["id"]: sample for sample in loader.bad_samples()}
        # Without a kind, a TIFF of floats lacks its range.
        assert bad.keys() - {22} == expected.keys() - {22} and 22 in bad
        for number, message in expected.items():
            assert message in bad[number]["message"] and "FurtherImage" in bad[number]["message"]
            assert bad[number]["name"] is None, "nothing is damaged"
        assert batch["valid"].tolist() == [number not in bad for number in range(23)]
    for first in (jpeg, floats):
        split = written(tmp_path / f"{len(first)}", [first])
        with pytest.raises(st.OptionError, match="PNG or TIFF"):
            st.Loader(split, 1, [st.Image([st.ResizeTo(9)]), st.FurtherImage("extra", kind="values")])


def test_wrong_kinds_are_refused(scenes):
    for kind, message in [("nearest", '`kind` is \'nearest\': expected "color", "values"'), (3, "`kind` is 3")]:
        with pytest.raises(st.OptionError, match=message):
            st.FurtherImage("depth", kind=kind)
    image = st.Image([st.ResizeTo(8)])
    for name, message in [("nothing", "no feature `nothing`"), ("number", "number")]:
        with pytest.raises(st.OptionError, match=message):
            st.Loader(scenes, 4, [image, st.FurtherImage(name, kind="values")])
    with pytest.raises(st.OptionError, match="`MixUp` does not go with `FurtherImage`: the mean"):
        st.Loader(scenes, 4, [image, *further(KINDS)], batch_transform=st.MixUp(1, num_classes=3))
    for fields in ([st.FurtherImage("depth")], [st.Image(), st.FurtherImage("depth")]):
        with pytest.raises(st.OptionError, match="`FurtherImage` goes through the steps of an image"):
            st.Loader(scenes, 4, fields)
