"""JAX: arrays with the pixels of the batch, without a copy where the device is the processor."""

import pickle

import numpy as np
import pytest

import shardtool as st

jax = pytest.importorskip("jax")
from shardtool.jax import Loader  # noqa: E402


def test_arrays(train):
    steps = [st.RandomResizedCrop(16)]
    expected = [(b["image"].copy(), b["label"].copy()) for b in st.Loader(train, 16, steps, seed=3)]
    loader = Loader(train, 16, steps, seed=3)
    for batch, (image, label) in zip(loader, expected, strict=True):
        assert isinstance(batch["image"], jax.Array) and batch["image"].dtype == np.uint8
        assert np.array_equal(batch["image"], image) and np.array_equal(batch["label"], label)


def test_arrays_on_the_cpu_share_the_loaders_memory(train):
    loader = Loader(train, 16, [st.ResizeTo(32)], device=jax.devices("cpu")[0])
    (native,) = loader._native.next(loader._native.begin())
    image = loader._convert(native)["image"]
    assert image.unsafe_buffer_pointer() == native["image"].ctypes.data


def test_pickle(train):
    loader = Loader(train, 16, [st.ResizeTo(8)])
    next(iter(loader))
    again = pickle.loads(pickle.dumps(loader))
    assert type(again) is Loader and again.state_dict() == loader.state_dict()
