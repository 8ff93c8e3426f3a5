"""Images normalised on the host, for every framework."""

import numpy as np
import pytest
from test_loader import STEPS

import shardtool as st

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ROUNDING = {"float32": 1.2e-7, "float16": 4.9e-4, "bfloat16": 3.95e-3}
NORMALISED = dict(mean=MEAN, std=STD)


def exact(train, layout="NCHW"):
    """The formula in double precision on each u8 batch."""
    for batch in st.Loader(train, 16, STEPS, order=st.Sequential()):
        values = (batch["image"].astype(np.float64) / 255 - MEAN) / STD
        yield values if layout == "NHWC" else values.transpose(0, 3, 1, 2)


def check(batches, train, dtype, layout="NCHW"):
    steps = 0
    for found, values in zip(batches, exact(train, layout), strict=True):
        assert found.shape == values.shape
        assert (abs(found - values) <= abs(values) * ROUNDING[dtype] + 4e-7).all()
        steps += 1
    assert steps == 7


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_numpy_images_are_normalised(train, dtype, layout):
    loader = st.Loader(train, 16, st.Image(STEPS, dtype=dtype, layout=layout, **NORMALISED), order=st.Sequential())
    batches = [batch["image"].copy() for batch in loader]
    assert {image.dtype for image in batches} == {np.dtype(dtype)}
    check((image.astype(np.float64) for image in batches), train, dtype, layout)


def test_any_of_the_options_selects_float32_nchw(train):
    for pixels in ({"mean": MEAN}, {"std": STD}, {"dtype": "float32"}, {"layout": "NCHW"}):
        for device in (None, "cpu"):
            image = next(iter(st.Loader(train, 4, st.Image(STEPS, **pixels), device=device)))["image"]
            assert (image.dtype, image.shape) == (np.float32, (4, 3, 32, 32)), pixels
    image = next(iter(st.Loader(train, 4, STEPS, device="cpu")))["image"]
    assert (image.dtype, image.shape) == (np.uint8, (4, 32, 32, 3))
    scaled = next(iter(st.Loader(train, 4, st.Image(STEPS, dtype="float32"), order=st.Sequential())))["image"]
    assert 0 <= scaled.min() and scaled.max() <= 1


def test_nchw_images_have_height_before_width(train):
    image = next(iter(st.Loader(train, 4, st.Image([st.ResizeTo((20, 24))], layout="NCHW"))))["image"]
    assert image.shape == (4, 3, 20, 24)


@pytest.mark.parametrize(
    "pixels, message", [({"mean": (0, 0)}, "2 numbers"), ({"std": (1, 0, 1)}, "`std`"), ({"layout": "NWHC"}, "`layout`")]
)
def test_invalid_options_are_rejected(train, pixels, message):
    with pytest.raises(st.OptionError, match=message):
        st.Loader(train, 4, st.Image(STEPS, **pixels))


def test_images_as_stored_are_not_normalised(train):
    with pytest.raises(st.OptionError, match="`dtype`: images as stored are not decoded"):
        st.Loader(train, 4, st.Image(dtype="float32"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_torch_images_are_normalised(train, dtype):
    torch = pytest.importorskip("torch")
    from shardtool.torch import Loader

    image = st.Image(STEPS, dtype=getattr(torch, dtype), **NORMALISED)
    loader = Loader(train, 16, image, order=st.Sequential(), device=torch.device("cpu"))
    batches = [batch["image"].clone() for batch in loader]
    assert batches[0].dtype == getattr(torch, dtype) and batches[0].is_contiguous()
    check((image.double().numpy() for image in batches), train, dtype)
    # Equals torchvision's normalisation of the same pixels.
    first = next(iter(Loader(train, 16, STEPS, order=st.Sequential())))["image"].permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
    torch.testing.assert_close(batches[0].float(), (first - mean) / std, rtol=8e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_jax_images_are_normalised(train, dtype):
    jax = pytest.importorskip("jax")
    from shardtool.jax import Loader

    loader = Loader(train, 16, st.Image(STEPS, dtype=dtype, **NORMALISED), order=st.Sequential())
    batches = [batch["image"] for batch in loader]
    assert batches[0].dtype == getattr(jax.numpy, dtype)
    check((np.asarray(image).astype(np.float64) for image in batches), train, dtype)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_named(value):
    for options in ({"mean": [0.1, value, 0.3]}, {"std": value}):
        with pytest.raises(st.OptionError, match=f"`{next(iter(options))}` is {value}: expected a finite number"):
            st.Image([st.ResizeTo(8)], **options)
