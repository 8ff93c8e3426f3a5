"""Floating-point TIFF: scaled by `float_range` when packed and when loaded, as numpy computes it."""

import numpy as np
import pytest
from PIL import Image

import shardtool as st

RANGE = (-1.5, 4.25)
HEIGHT, WIDTH = 9, 14
STEPS = [st.ResizeTo((HEIGHT, WIDTH))]


def scaled(values: np.ndarray) -> np.ndarray:
    """Returns the values as RGB, with the ends of `RANGE` as 0 and 255."""
    low, high = RANGE
    grey = np.nan_to_num((values.astype(np.float64) - low) / (high - low) * 255, nan=0.0).clip(0, 255).round()
    return np.repeat(grey.astype(np.uint8)[..., None], 3, axis=-1)


@pytest.fixture(scope="module")
def depths(tmp_path_factory):
    """A folder of floating-point images, and their samples: in, below and above the range, infinite and NaN."""
    folder = tmp_path_factory.mktemp("depths")
    random = np.random.default_rng(3)
    values = random.uniform(-3, 6, (5, HEIGHT, WIDTH)).astype(np.float32)
    values[0, 0, :5] = np.nan, np.inf, -np.inf, *RANGE
    for number, samples in enumerate(values):
        Image.fromarray(samples).save(folder / f"{number}.tif")
        assert (np.asarray(Image.open(folder / f"{number}.tif")) == samples)[np.isfinite(samples)].all()
    return folder, values


@pytest.fixture(scope="module")
def split(depths, tmp_path_factory):
    destination = tmp_path_factory.mktemp("packed") / "dataset"
    st.pack(depths[0], destination, seed=None)
    return st.Dataset(destination)["train"]


def images(split, **pixels) -> np.ndarray:
    loader = st.Loader(split, 5, st.Image(STEPS, **pixels), order=st.Sequential())
    return next(iter(loader))["image"].copy()


def test_loader_scales_by_the_range(depths, split):
    assert (images(split, float_range=RANGE) == scaled(depths[1])).all()
    assert (images(split, float_range=list(map(int, (0, 1)))) != scaled(depths[1])).any()


def test_loaders_of_frameworks_scale_by_the_range(depths, split):
    expected, tested = scaled(depths[1]), 0
    for framework in ("torch", "jax"):
        try:
            loader = __import__(f"shardtool.{framework}", fromlist=["Loader"]).Loader
        except ImportError:
            continue
        batch = next(iter(loader(split, 5, st.Image(STEPS, float_range=RANGE), order=st.Sequential())))
        assert (np.asarray(batch["image"]) == expected).all()
        tested += 1
    if not tested:
        pytest.skip("neither torch nor jax is installed")


def test_normalised_images_are_scaled_first(depths, split):
    found = images(split, float_range=RANGE, dtype="float32", layout="NHWC")
    assert np.abs(found - scaled(depths[1]) / 255).max() < 1e-6


def test_without_a_range_every_image_is_a_bad_sample(split):
    loader = st.Loader(split, 5, STEPS, order=st.Sequential())
    with pytest.warns(st.ShardtoolWarning, match="float_range"):
        batches = list(loader)
    assert not any(batch["valid"].any() for batch in batches)
    bad = loader.bad_samples()
    assert len(bad) == 5 and all("`float_range`" in sample["message"] for sample in bad)


def test_pack_and_writer_scale_where_they_decode(depths, tmp_path):
    folder, values = depths
    st.pack(folder, tmp_path / "packed", seed=None, pixels="raw", float_range=RANGE)
    assert (images(st.Dataset(tmp_path / "packed")["train"]) == scaled(values)).all()
    with st.Writer(tmp_path / "written", pixels="raw-zstd", float_range=RANGE) as writer:
        for number in range(len(values)):
            writer.write({"key": str(number), "image": folder / f"{number}.tif"})
    assert (images(st.Dataset(tmp_path / "written")["train"]) == scaled(values)).all()
    with st.Writer(tmp_path / "refused", pixels="raw") as writer:
        with pytest.raises(st.PackError, match="float_range"):
            writer.write({"key": "0", "image": folder / "0.tif"})


def test_verify_decodes_without_a_range(split):
    assert st.verify(split.path, decode=True).good


@pytest.mark.parametrize("wrong", [0.5, (1,), (0, 1, 2), (1, 0), (1, 1), (0, float("inf")), (float("nan"), 1), "01"])
def test_an_invalid_range_is_a_value_error_that_names_it(split, depths, tmp_path, wrong):
    for make in (
        lambda: st.Loader(split, 5, st.Image(STEPS, float_range=wrong)),
        lambda: st.pack(depths[0], tmp_path / "dataset", float_range=wrong),
        lambda: st.Writer(tmp_path / "dataset", features={}, labels=False, images=True, float_range=wrong),
    ):
        with pytest.raises(ValueError, match="`float_range` is "):
            make()


def test_a_range_without_decoding_is_rejected(split):
    with pytest.raises(st.OptionError, match="`float_range`"):
        st.Loader(split, 5, st.Image(float_range=RANGE))
