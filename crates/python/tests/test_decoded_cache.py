"""A cache of decoded images."""

import io

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
    loader = st.Loader(large, 8, STEPS, seed=2, decoded_cache=cache, memory_budget="64MiB")
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
    assert stats["images"] == 40 and stats["misses"] == 40 and stats["hits"] >= 80 and stats["bad"] == 0
    assert stats["bytes"] <= 8 << 20 and "decoded_cache_hits_total" in loader.stats().prometheus
    assert loader.stats()["memory"]["decoded_cache"] == (0 if on_disk else 8 << 20)
    assert list(tmp_path.iterdir()) == []


def test_arguments_are_checked(large, tmp_path):
    with pytest.raises(st.OptionError, match="transform"):
        st.Loader(large, 8, decoded_cache=st.DecodedCache(100))
    with pytest.raises(st.OptionError, match="resize"):
        st.DecodedCache(100, resize=0)
    with pytest.raises(st.ShardtoolError, match="mask"):
        st.Loader(large, 8, STEPS, mask="image/encoded", decoded_cache=st.DecodedCache(100))
    with pytest.raises(st.ShardtoolError, match="absent"):
        next(iter(st.Loader(large, 8, STEPS, decoded_cache=st.DecodedCache(100, path=tmp_path / "absent"))))
    with pytest.raises(st.BudgetError, match="decoded images"):
        st.Loader(large, 8, STEPS, decoded_cache=st.DecodedCache("1GiB"), memory_budget="64MiB")
