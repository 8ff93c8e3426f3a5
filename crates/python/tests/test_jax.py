"""JAX: arrays with the pixels of the batch, several at once."""

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
    shown = list(zip(loader, expected))
    assert len(shown) == len(loader)
    for batch, (image, label) in shown:
        assert isinstance(batch["image"], jax.Array) and batch["image"].dtype == np.uint8
        assert np.array_equal(batch["image"], image) and np.array_equal(batch["label"], label)


def test_pickle(train):
    loader = Loader(train, 16, [st.ResizeTo(8)], device=jax.devices()[0])
    next(iter(loader))
    again = pickle.loads(pickle.dumps(loader.state_dict()))
    assert again == loader.state_dict()
