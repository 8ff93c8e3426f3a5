"""JAX: arrays with the pixels of the batch, without a copy on the CPU."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import shardtool as st

jax = pytest.importorskip("jax")
from shardtool.jax import Loader  # noqa: E402


def test_arrays_match_the_numpy_loader(train):
    steps = [st.RandomResizedCrop(16)]
    expected = [(b["image"].copy(), b["label"].copy()) for b in st.Loader(train, 16, steps, order=st.Shuffled(3))]
    loader = Loader(train, 16, steps, order=st.Shuffled(3))
    for batch, (image, label) in zip(loader, expected, strict=True):
        assert isinstance(batch["image"], jax.Array) and batch["image"].dtype == np.uint8
        assert np.array_equal(batch["image"], image) and np.array_equal(batch["label"], label)


def test_arrays_on_the_cpu_share_the_loaders_memory(train):
    loader = Loader(train, 16, [st.ResizeTo(32)], device=jax.devices("cpu")[0])
    (native,) = loader._native.next(loader._native.begin(loader._launch().place))
    image = loader._convert(native)["image"]
    assert image.unsafe_buffer_pointer() == native["image"].ctypes.data


def test_pickled_loader_keeps_its_type_and_state(train):
    loader = Loader(train, 16, [st.ResizeTo(8)])
    next(iter(loader))
    again = pickle.loads(pickle.dumps(loader))
    assert type(again) is Loader and again.state_dict() == loader.state_dict()


FOUR = """
    import pickle, sys
    import jax, numpy as np
    import shardtool as st
    from shardtool.jax import Loader

    split = st.Dataset(sys.argv[1]).split("train")
    devices = jax.local_devices()
    assert len(devices) == 4
    options = dict(order=st.Shuffled(3), remainder="mask", prefetch=4)
    fields = [st.Image([st.RandomResizedCrop(16)]), "image/filename"]
    ranks = [st.Loader(split, 8, fields, replica=st.Replica(r, 4), **options) for r in range(4)]
    loader = Loader(split, 8, fields, device=devices, **options)
    brightness = jax.jit(lambda image: image.astype("float32").mean((1, 2, 3)))
    shown = []
    number = 0
    for number, (batch, *theirs) in enumerate(zip(loader, *ranks, strict=True), 1):
        image = batch["image"]
        assert image.shape == (32, 16, 16, 3) and image.dtype == np.uint8
        assert len(image.sharding.device_set) == 4
        # Each device has the rows of its replica; the whole array is their concatenation.
        for shard, device, host in zip(image.addressable_shards, devices, theirs, strict=True):
            assert shard.device == device and np.array_equal(shard.data, host["image"])
        for name in ("image", "label", "valid", "id"):
            assert np.array_equal(batch[name], np.concatenate([host[name] for host in theirs])), name
        assert batch["image/filename"] == [host["image/filename"] for host in theirs]
        result = brightness(image)
        assert len(result.sharding.device_set) == 4
        assert np.allclose(result, np.concatenate([h["image"].mean((1, 2, 3)) for h in theirs]), atol=1e-2)
        assert loader.state_dict() == ranks[0].state_dict()
        shown += [int(i) for host in theirs for i in host["id"][host["valid"]]]
        if number == 2:
            again = pickle.loads(pickle.dumps(loader.state_dict()))
    assert sorted(shown) == list(range(len(split))) and number == len(loader) == 4
    loader.load_state_dict(again)
    assert sum(int(b["valid"].sum()) for b in loader) == len(split) - 2 * 32
"""


def test_one_loader_feeds_several_devices(dataset):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", textwrap.dedent(FOUR), str(dataset)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert run.returncode == 0, run.stderr


def test_devices_are_given_as_device(train):
    with pytest.raises(st.OptionError, match="`Loader` has no argument `devices`: `device="):
        Loader(train, 8, [st.ResizeTo(8)], devices=jax.local_devices())


def test_every_array_on_a_device_becomes_a_jax_array(on_device, tmp_path):
    """JAX here has no CUDA: its import through DLPack is replaced by a copy to the host."""
    with st.Writer(tmp_path / "d", "train", features={"volume": st.Array(), "tokens": "int64"}) as writer:
        for number in range(12):
            pixels = np.random.default_rng(number).integers(0, 256, (40, 40, 3), np.uint8)
            volume = np.full((2, 3), number, np.int16)
            writer.write({"key": f"{number}", "image": pixels, "label": number, "volume": volume, "tokens": np.arange(number % 5)})
    code = """
    import jax
    from shardtool.jax import Loader
    jax.config.update("jax_enable_x64", True)
    split = st.Dataset(sys.argv[2]).split("train")
    context = Context()
    jax.dlpack.from_dlpack = lambda array: jax.numpy.asarray(read(array, context))
    fields = [st.Image([st.RandomResizedCrop(16)], dtype="float32"), "tokens", st.Arrays("volume")]
    loader = Loader(split, 4, fields, order=st.Shuffled(5), device="cuda:0")
    for ours, theirs in zip(loader, Loader(split, 4, fields, order=st.Shuffled(5)), strict=True):
        assert set(ours) == {*theirs, "host"}
        for name, value in theirs.items():
            pairs = zip(ours[name], value, strict=True) if isinstance(value, st.Ragged) else [(ours[name], value)]
            for a, b in pairs:
                assert isinstance(a, jax.Array) and a.dtype == b.dtype and (a == b).all(), name
    del ours, a
    loader.close()
    context.close()
    """
    on_device(code, tmp_path / "d")
