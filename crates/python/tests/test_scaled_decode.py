"""`scaled_decode`: large JPEGs are decoded at a fraction of their size; all others are as without it."""

import io

import numpy as np
import pytest
from conftest import photograph
from PIL import Image

import shardtool as st

STEPS = [st.RandomResizedCrop(40), st.RandomHorizontalFlip()]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Images of 1,200 × 900 pixels."""
    folder = tmp_path_factory.mktemp("large")
    with st.Writer(folder, "train") as writer:
        for number in range(12):
            random = np.random.default_rng(number)
            pixels = np.asarray(photograph(number % 3, number).resize((1200, 900), Image.Resampling.BICUBIC), np.int16)
            stored = io.BytesIO()
            noise = np.clip(pixels + random.integers(-12, 12, pixels.shape), 0, 255).astype(np.uint8)
            Image.fromarray(noise).save(stored, "JPEG", quality=90)
            writer.write({"key": f"{number}", "image": stored.getvalue(), "label": number % 3})
    return st.Dataset(folder).split("train")


def images(split, steps=STEPS, scaled_decode=False, **options):
    image = st.Image(steps, scaled_decode=scaled_decode)
    with st.Loader(split, 4, image, remainder="mask", **options) as loader:
        batches = [batch["image"][batch["valid"]].copy() for batch in loader]
    return np.concatenate(batches)


def test_pixels_differ_little_and_are_always_the_same(large):
    exact, scaled = images(large), images(large, scaled_decode=True)
    assert (scaled == images(large, scaled_decode=True, workers=2)).all()
    difference = np.abs(exact.astype(int) - scaled)
    assert 0 < difference.mean() <= 1 and difference.max() <= 32


def test_the_default_is_exact(large):
    """A whole image, resized, is what Pillow makes of it."""
    found = images(large, [st.ResizeTo((60, 80))], order=st.Sequential())
    for image, record in zip(found, large[0 : len(large)], strict=True):
        pillow = Image.open(io.BytesIO(record["image"])).resize((80, 60), Image.Resampling.BILINEAR)
        assert (image == np.asarray(pillow)).all()


def test_an_image_is_exact_unless_half_of_it_is_twice_the_result(large):
    for size, same in (((226, 301), True), ((225, 300), False)):
        exact, scaled = (images(large, [st.ResizeTo(size)], scaled_decode=scaled) for scaled in (False, True))
        assert (exact == scaled).all() == same


def test_images_as_stored_are_not_decoded(train):
    with pytest.raises(ValueError, match="`scaled_decode`: images as stored"):
        st.Loader(train, 4, st.Image(scaled_decode=True))
