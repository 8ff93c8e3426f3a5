"""Which pixels of a batch show the image, against what Pillow makes of an image that is 1 everywhere."""

import numpy as np
import pytest
from PIL import Image

import shardtool as st

N = 26
NEAREST = Image.Resampling.NEAREST


def pixels_of(number):
    """Returns a photograph without black and grey pixels, of another size each."""
    random = np.random.default_rng(number)
    return random.integers(120, 256, (20 + 7 * number % 41, 60 - 11 * number % 37, 3), np.uint8)


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    path = tmp_path_factory.mktemp("shown") / "dataset"
    with st.Writer(path, "train") as writer:
        for number in range(N):
            writer.write({"key": f"{number:02}", "image": pixels_of(number), "label": number % 4})
    return st.Dataset(path)["train"]


def whole(number):
    height, width = pixels_of(number).shape[:2]
    return Image.new("L", (width, height), 1)


def on_canvas(image, size, place):
    canvas = Image.new("L", size, 0)
    canvas.paste(image, place)
    return canvas


def letterboxed(number):
    image = whole(number)
    ratio = min(48 / image.height, 64 / image.width)
    width, height = round(image.width * ratio), round(image.height * ratio)
    left, top = round((64 - width) / 2 - 0.1), round((48 - height) / 2 - 0.1)
    return on_canvas(image.resize((width, height)), (64, 48), (left, top))


def cut(number):
    image = whole(number)
    scale = 40 / min(image.size)
    size = [40 if side == min(image.size) else int(side * scale) for side in image.size]
    return on_canvas(image.resize(size), (72, 72), (0, 0)).crop((0, 0, 72, 72))


def turned(number):
    return whole(number).resize((48, 48)).rotate(30, NEAREST)


def framed(number):
    image = whole(number).resize((30, 20)).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return on_canvas(image, (30 + 3 + 9, 20 + 5 + 1), (3, 5))


#: Steps whose results are not random, and what Pillow makes of them.
STEPS = {
    "letterbox": ([st.Letterbox((48, 64))], letterboxed),
    "fixed_size_crop": ([st.Resize(40), st.FixedSizeCrop(72, fill=(1, 2, 3))], cut),
    "rotation": ([st.ResizeTo(48), st.RandomRotation((30, 30))], turned),
    "pad": ([st.ResizeTo((20, 30)), st.RandomHorizontalFlip(1), st.Pad((3, 5, 9, 1), fill=7)], framed),
    "erasing": ([st.ResizeTo(32), st.RandomErasing(1)], lambda number: whole(number).resize((32, 32))),
    "reflect": ([st.ResizeTo(32), st.Pad(4, padding_mode="reflect")], lambda number: Image.new("L", (40, 40), 1)),
}


@pytest.mark.parametrize("name", STEPS)
def test_shows_what_pillow_shows(split, name):
    steps, expected = STEPS[name]
    fields = [st.Image(steps), st.PixelMask()]
    shown = padding = 0
    for batch in st.Loader(split, 4, fields, order=st.Sequential()):
        found = batch["pixel_mask"]
        assert found.dtype == np.uint8 and found.shape == batch["image"].shape[:3]
        for number, row in zip(batch["id"].tolist(), found):
            want = np.zeros_like(row) if number < 0 else np.asarray(expected(number))
            np.testing.assert_array_equal(row, want, err_msg=f"{number}")
            shown, padding = shown + int((row == 1).sum()), padding + int((row == 0).sum())
    # The last step has rows without a sample.
    assert shown > 10_000 and padding > 2 * 32 * 32 - 1


def test_mixes_and_resumes_with_the_pixels(split):
    """What is not shown has the colour of the padding, which no photograph has."""
    fields = [st.Image([st.RandomHorizontalFlip(), st.Letterbox(48, fill=9)]), st.PixelMask()]
    for mix in (None, st.CutMix(num_classes=4), st.Mosaic(num_classes=4)):
        options = {"batch_transform": mix} if mix else {}
        with st.Loader(split, 6, fields, **options) as loader:
            batches = iter(loader)
            next(batches)
            state, rest = loader.state_dict(), [batch["pixel_mask"].copy() for batch in batches]
        with st.Loader(split, 6, fields, **options, workers=1) as resumed:
            resumed.load_state_dict(state)
            for batch, want in zip(resumed, rest, strict=True):
                np.testing.assert_array_equal(batch["pixel_mask"], want)
                np.testing.assert_array_equal(batch["pixel_mask"] == 0, (batch["image"] == 9).all(-1))
        assert 0.3 < np.mean(rest) < 0.97


def test_what_has_no_one_geometry_is_refused(split):
    steps = [st.Letterbox(32)]
    for fields, options, message in [
        ([st.Views({"a": steps, "b": steps})], {}, "an image of several views does not go with `PixelMask`"),
        ([st.Image(steps)], {"batch_transform": st.MixUp(num_classes=4)}, "`MixUp` does not go with `PixelMask`"),
        ([st.Image(steps), st.PixelMask()], {}, "`PixelMask`"),
        ([st.Image()], {}, "`PixelMask`"),
    ]:
        with pytest.raises(st.OptionError, match=message):
            st.Loader(split, 4, [*fields, st.PixelMask()], **options)
