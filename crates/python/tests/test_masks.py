"""Segmentation masks: packed from files in a list, delivered with the crop and flip of their images."""

import csv

import numpy as np
import pytest
from PIL import Image

import shardtool as st

COLOURS = 80
N = 12


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """Images of four colours, a quarter each, with palette masks that number the quarters."""
    folder = tmp_path_factory.mktemp("masked")
    with open(folder / "list.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "mask"])
        for number in range(N):
            height, width = 40 + 3 * number, 60 - 2 * number
            quarter = 2 * (2 * np.arange(height)[:, None] >= height) + (2 * np.arange(width) >= width)
            quarter = quarter.astype(np.uint8)
            Image.fromarray(COLOURS * quarter).convert("RGB").save(folder / f"{number}.png")
            mask = Image.fromarray(quarter, "P")
            mask.putpalette([200, 10, 10, 10, 200, 10, 10, 10, 200, 90, 90, 90])
            mask.save(folder / f"{number}-mask.png")
            rows.writerow([f"{number}.png", f"{number}-mask.png"])
    st.pack(folder / "list.csv", folder / "dataset", columns={"mask": "file"})
    return st.Dataset(folder / "dataset").split("train")


def test_mask_gets_the_crop_and_flip_of_its_image(masked):
    steps = [st.RandomResizedCrop(24, scale=(0.3, 1.0)), st.HorizontalFlip()]
    inner = 0
    with st.Loader(masked, 5, steps, mask="mask", remainder="mask") as loader:
        for batch in loader:
            image, mask = batch["image"], batch["mask"]
            assert mask.shape == image.shape[:3] and mask.dtype == np.uint8
            assert (mask[~batch["valid"]] == 255).all()
            image, mask = image[batch["valid"]][..., 0], mask[batch["valid"]]
            assert set(np.unique(mask)) <= {0, 1, 2, 3}
            # Resizing mixes the colours of adjacent quarters, sometimes into that of a third. Pixels whose neighbours have
            # the same colour are inside a quarter.
            around = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
            inside = (around == around[..., 1:2, 1:2]).all(axis=(-1, -2))
            assert (image[:, 1:-1, 1:-1][inside] == COLOURS * mask[:, 1:-1, 1:-1][inside]).all()
            inner += inside.sum()
    assert inner > N * 24 * 24 / 2


def test_mask_is_stored_as_its_file(masked):
    assert all(masked[at]["features"]["mask"][:4] == b"\x89PNG" for at in range(N))


def test_mask_without_transform_or_feature_is_rejected(masked):
    with pytest.raises(st.OptionError, match="mask"):
        st.Loader(masked, 5, mask="mask")
    with pytest.raises(st.ShardtoolError, match="nothing"):
        st.Loader(masked, 5, [st.RandomResizedCrop(8)], mask="nothing")


def test_every_page_cache_option_delivers_every_sample(masked):
    for page_cache in ("keep", "release"):
        with st.Loader(masked, 4, [st.RandomResizedCrop(8)], page_cache=page_cache, read_ahead=0) as loader:
            assert sum(batch["valid"].sum() for batch in loader) == N
    with pytest.raises(st.OptionError, match="page_cache"):
        st.Loader(masked, 4, [st.RandomResizedCrop(8)], page_cache="drop")
