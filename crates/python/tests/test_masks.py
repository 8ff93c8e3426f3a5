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
    with st.Loader(masked, 5, [st.Image(steps), st.Mask("mask")], remainder="mask") as loader:
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


def packed(folder, maps, suffix):
    """Packs a black image for each label map, and returns the split."""
    with open(folder / "list.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "mask"])
        for number, labels in enumerate(maps):
            Image.new("RGB", labels.shape[::-1]).save(folder / f"{number}.png")
            Image.fromarray(labels).save(folder / f"{number}-mask{suffix}")
            rows.writerow([f"{number}.png", f"{number}-mask{suffix}"])
    st.pack(folder / "list.csv", folder / "dataset", columns={"mask": "file"}, seed=None)
    return st.Dataset(folder / "dataset").split("train")


def resized(labels, height, width):
    """Returns Pillow's nearest-neighbour resize. Its mode `I` holds 32 bits."""
    image = Image.fromarray(labels.astype(np.int32)).resize((width, height), Image.Resampling.NEAREST)
    return np.asarray(image)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_mask_of_16_bits_is_resized_and_flipped_as_by_pillow(tmp_path, suffix):
    random = np.random.default_rng(5)
    maps = [random.integers(0, 1 << 16, (20 + 3 * i, 31 - 2 * i), np.uint16) for i in range(5)]
    split = packed(tmp_path, maps, suffix)
    with Image.open(tmp_path / f"0-mask{suffix}") as file:
        assert (np.asarray(file) == maps[0]).all(), "Pillow stores 16 bits"
    for steps, expected in (
        ([st.ResizeTo((17, 40))], lambda labels: resized(labels, 17, 40)),
        ([st.ResizeTo((40, 17)), st.HorizontalFlip(1.0)], lambda labels: resized(labels, 40, 17)[:, ::-1]),
    ):
        loader = st.Loader(split, 7, [st.Image(steps), st.Mask("mask", dtype="uint16")], order=st.Sequential())
        batch = next(iter(loader))
        assert batch["mask"].dtype == np.uint16 and batch["valid"].tolist() == [True] * 5 + [False] * 2
        for found, labels in zip(batch["mask"], maps, strict=False):
            assert (found == expected(labels)).all()
        assert (batch["mask"][5:] == 65535).all()


def test_mask_of_16_bits_is_a_tensor_of_the_same_type(tmp_path):
    labels = np.arange(30 * 40, dtype=np.uint16).reshape(30, 40) * 50
    split, tested = packed(tmp_path, [labels], ".png"), 0
    for framework in ("torch", "jax"):
        try:
            loader = __import__(f"shardtool.{framework}", fromlist=["Loader"]).Loader
        except ImportError:
            continue
        fields = [st.Image([st.ResizeTo((30, 40))]), st.Mask("mask", dtype="uint16")]
        mask = next(iter(loader(split, 1, fields, order=st.Sequential())))["mask"]
        assert str(mask.dtype).removeprefix("torch.") == "uint16" and (np.asarray(mask)[0] == labels).all()
        tested += 1
    if not tested:
        pytest.skip("neither torch nor jax is installed")


def test_labels_of_16_bits_load_as_uint8_if_they_fit(tmp_path):
    labels = np.arange(256, dtype=np.uint16).reshape(16, 16)
    (tmp_path / "small").mkdir()
    fields = [st.Image([st.ResizeTo(16)]), st.Mask("mask")]
    split = packed(tmp_path / "small", [labels], ".png")
    mask = next(iter(st.Loader(split, 1, fields, order=st.Sequential())))["mask"]
    assert mask.dtype == np.uint8 and (mask[0] == labels).all()

    labels[3, 7] = 300
    split = packed(tmp_path, [labels, labels - labels], ".tif")
    loader = st.Loader(split, 2, fields, order=st.Sequential())
    with pytest.warns(st.ShardtoolWarning, match="bad sample"):
        [batch] = list(loader)
    assert batch["valid"].tolist() == [False, True]
    [bad] = loader.bad_samples()
    assert "label 300 at column 7, row 3" in bad["message"] and "`dtype`" in bad["message"]


def test_invalid_options_are_named():
    with pytest.raises(ValueError, match=r"`dtype` is 'uint32': expected \"uint8\", \"uint16\""):
        st.Mask("mask", dtype="uint32")
    with pytest.raises(TypeError, match=r"`dtype` is 16: expected \"uint8\", \"uint16\""):
        st.Mask("mask", dtype=16)
    with pytest.raises(ValueError, match="`fill` is 2147483648: expected -2147483648 to 2147483647"):
        st.Mask("mask", fill=2**31)
    with pytest.raises(TypeError, match="`feature` is None: expected the name of a feature"):
        st.Mask(None)


def test_mask_is_stored_as_its_file(masked):
    assert all(masked[at]["features"]["mask"][:4] == b"\x89PNG" for at in range(N))


def test_mask_without_steps_or_feature_is_rejected(masked):
    for fields in (st.Mask("mask"), [st.Image(), st.Mask("mask")]):
        with pytest.raises(st.OptionError, match="`Mask` goes through the steps of an image: add `Image` with steps"):
            st.Loader(masked, 5, fields)
    with pytest.raises(st.ShardtoolError, match="nothing"):
        st.Loader(masked, 5, [st.Image([st.RandomResizedCrop(8)]), st.Mask("nothing")])


def test_every_page_cache_option_delivers_every_sample(masked):
    for page_cache in ("keep", "release"):
        prefetch = st.Prefetch(read_ahead=0, page_cache=page_cache)
        with st.Loader(masked, 4, [st.RandomResizedCrop(8)], prefetch=prefetch) as loader:
            assert sum(batch["valid"].sum() for batch in loader) == N
    with pytest.raises(st.OptionError, match="page_cache"):
        st.Prefetch(page_cache="drop")
