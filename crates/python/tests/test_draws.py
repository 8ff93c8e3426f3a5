"""Random numbers: those of `order-spec.md`, recomputed here from its text. Saved runs depend on them."""

import math

import numpy as np
import pytest

import shardtool as st

WORD = 2**64 - 1
G = 0x9E3779B97F4A7C15


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def key(domain, *values):
    h = int.from_bytes(domain.ljust(8).encode("ascii"), "big")
    for value in values:
        h = mix(((h ^ value) + G) & WORD)
    return h


class Stream:
    """The draws of a key, one after the other."""

    def __init__(self, key):
        self.key, self.count = key, 0

    def word(self):
        self.count += 1
        return mix((self.key + self.count * G) & WORD)

    def unit(self):
        return (self.word() >> 11) * 2.0**-53

    def below(self, n):
        return ((self.word() >> 32) * n) >> 32


def resized_crop(stream, width, height, scale, ratio):
    """torchvision's `RandomResizedCrop.make_params`, with the draws of a stream: left, top, width, height."""
    for _ in range(10):
        area = width * height * (scale[0] + stream.unit() * (scale[1] - scale[0]))
        low, high = math.log(ratio[0]), math.log(ratio[1])
        aspect = math.exp(low + stream.unit() * (high - low))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            top = stream.below(height - h + 1)
            return stream.below(width - w + 1), top, w, h
    raise AssertionError("ten crops that do not fit")


IMAGE = np.random.default_rng(1).integers(0, 256, (150, 200, 3), np.uint8)
SAMPLES = [(0, 0, 0), (7, 3, 12), (2**64 - 1, 5, 1), (123, 2**40, 2**33)]


def drawn(transform, sample, view=0):
    """Returns the crop (left, top, width, height), and whether the image is flipped left to right, and top to bottom."""
    seed, epoch, position = sample
    plan = st.preview(IMAGE, transform, seed=seed, epoch=epoch, position=position, view=view).plan
    crop, turned = plan["geometry"]["crop"], plan["geometry"]["orientation"]
    # A flip behind a colour step is an operation.
    across, down = (stage in plan["stages"] for stage in ("horizontal_flip", "vertical_flip"))
    flips = turned["flip_x"] != across, turned["flip_y"] != down
    return (crop["left"], crop["top"], crop["width"], crop["height"]), *flips


@pytest.mark.parametrize("sample", SAMPLES)
def test_crop_and_flip_share_the_draws_of_augment(sample):
    for scale, ratio in (((0.08, 1.0), (3 / 4, 4 / 3)), ((0.2, 0.3), (0.9, 1.1))):
        stream = Stream(key("augment", *sample))
        expected = resized_crop(stream, 200, 150, scale, ratio), stream.unit() < 0.5, False
        # A step between them changes nothing: it draws from another stream.
        crop, flip = st.RandomResizedCrop(32, scale=scale, ratio=ratio), st.RandomHorizontalFlip(0.5)
        assert drawn([crop, flip], sample) == drawn([crop, st.ColorJitter(0.4), flip], sample) == expected


@pytest.mark.parametrize("sample", SAMPLES)
def test_another_step_draws_for_its_place_in_the_list(sample):
    for before in range(6):
        steps = [st.RandomSolarize(128)] * before + [st.RandomVerticalFlip(0.5), st.CenterCrop(8)]
        stream = Stream(key("step", key("step", *sample), 0, before))
        assert drawn(steps, sample)[2] == (stream.unit() < 0.5), before


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_view_draws_for_its_number(sample):
    scale, ratio = (0.1, 0.9), (3 / 4, 4 / 3)
    views = st.Views({"crop": ([st.RandomVerticalFlip(0.5), st.RandomResizedCrop(16, scale=scale, ratio=ratio)], 5)})
    for view in range(5):
        sampled = key("step", *sample)
        flip, crop = (Stream(key("step", sampled, view, step)) for step in range(2))
        found = drawn(views, sample, view)
        flipped = flip.unit() < 0.5
        left, top, width, height = resized_crop(crop, 200, 150, scale, ratio)
        # The crop is that of the flipped image.
        top = 150 - top - height if flipped else top
        assert found == ((left, top, width, height), False, flipped), view


def test_the_loader_draws_for_the_source_position_and_the_epoch(train):
    steps = [st.RandomResizedCrop(24), st.RandomHorizontalFlip()]
    source = st.Subset([5, 17, 5, 90])
    loader = st.Loader(train, 4, steps, order=st.Sequential(seed=77), source=source)
    for epoch in range(2):
        (batch,) = loader
        for position, (id, image) in enumerate(zip(batch["id"], batch["image"])):
            stored = decode(train[int(id)]["image"])
            expected = st.preview(stored, steps, seed=77, epoch=epoch, position=position).image
            # Reduced decoding is off for such small images: the same pixels.
            np.testing.assert_array_equal(image, expected)
        assert not np.array_equal(batch["image"][0], batch["image"][2]), "the same image at two positions"


def decode(encoded):
    import io

    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB"))
