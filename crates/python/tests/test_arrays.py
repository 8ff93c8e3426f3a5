"""Volumes and other arrays: written by `Writer` and `pack`, delivered as crops; compared with numpy's slices."""

import json

import numpy as np
import pytest

import shardtool as st

#: Every dtype that numpy has and arrays can hold.
DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"]


def volume(number, shape=(20, 24, 28)):
    """A volume in which every element occurs once."""
    return (np.arange(np.prod(shape), dtype=np.int32).reshape(shape) * 8 + number).astype(np.float32)


def shape(number):
    return (20 + number % 3, 24, 28 - number % 2)


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """Volumes of several shapes with their label maps."""
    folder = tmp_path_factory.mktemp("volumes")
    features = {"ct": st.Array(chunk=(8, None, 9)), "seg": st.Array(codec="raw"), "age": "int64"}
    with st.Writer(folder, "train", features=features) as writer:
        for number in range(14):
            ct = volume(number, shape(number))
            writer.write({"key": f"{number}", "label": number, "ct": ct, "seg": (ct % 251).astype(np.uint8), "age": 40})
    assert st.verify(folder, decode=True).good
    return st.Dataset(folder).split("train")


def start_of(crop, ct):
    """The first index of a crop in the volume that it was taken from."""
    [found] = np.argwhere(ct == crop.flat[0])
    return tuple(found)


def cut(ct, start, size):
    return ct[tuple(slice(at, at + length) for at, length in zip(start, size, strict=True))]


def test_crops_are_slices_of_their_volumes(volumes):
    size = (12, 13, 14)
    loader = st.Loader(volumes, 4, [st.Arrays(["ct", "seg"], crop=size), "age"], remainder="mask")
    starts = set()
    for epoch in range(2):
        seen = []
        for batch in loader:
            ct, seg = batch["ct"], batch["seg"]
            assert (ct.shape, ct.dtype, seg.shape, seg.dtype) == ((4, *size), np.float32, (4, *size), np.uint8)
            assert ct.flags.c_contiguous and ct.ctypes.data % 64 == 0
            assert "image" not in batch
            for row, number in enumerate(batch["id"]):
                if number < 0:
                    assert not batch["valid"][row] and not ct[row].any() and not seg[row].any()
                    continue
                source = volume(number, shape(number))
                start = start_of(ct[row], source)
                np.testing.assert_array_equal(ct[row], cut(source, start, size))
                np.testing.assert_array_equal(seg[row], ct[row] % 251)
                assert (batch["label"][row], batch["age"][row]) == (number, 40)
                seen.append(int(number))
                starts.add((int(number), start))
        assert sorted(seen) == list(range(14)), epoch
    assert len(starts) > 20, "the second epoch has other crops"


def test_flips_and_rotations_are_those_of_numpy(volumes):
    arrays = st.Arrays(["ct", "seg"], crop=(None, 10, 10), flip=(0, 0.5, 0.5), rotate90=(1, 2))
    subset = st.Subset([0, 3, 6, 9, 12])
    loader = st.Loader(volumes, 5, arrays, source=subset)
    found = set()
    for _ in range(12):
        for batch in loader:
            for number, ct, seg in zip(batch["id"], batch["ct"], batch["seg"], strict=True):
                source = volume(number, shape(number))
                start = tuple(np.argwhere(source == ct.min())[0])
                box = cut(source, start, ct.shape)
                # Every flip followed by every rotation: eight different ones.
                made = {
                    (flips, turns): np.rot90(np.flip(box, flips), turns, axes=(1, 2))
                    for flips in [(), (1,), (2,), (1, 2)]
                    for turns in range(4)
                }
                matches = [key for key, array in made.items() if np.array_equal(array, ct)]
                assert len(matches) == 2
                found.add(matches[0])
                np.testing.assert_array_equal(seg, ct % 251)
    assert len(found) == 8


def test_centre_crops_and_padding(volumes):
    arrays = st.Arrays(["ct", "seg"], crop=(10, 30, 28), random=False, pad_value={"ct": -1000, "seg": 7})
    loader = st.Loader(volumes, 7, arrays, order=st.Sequential())
    for batch in loader:
        for number, ct, seg in zip(batch["id"], batch["ct"], batch["seg"], strict=True):
            depth, _, width = shape(number)
            first = (depth - 10) // 2
            expected = np.full((10, 30, 28), -1000, np.float32)
            expected[:, 3:27, :width] = volume(number, shape(number))[first : first + 10]
            np.testing.assert_array_equal(ct, expected)
            np.testing.assert_array_equal(seg, np.where(expected < 0, 7, expected % 251))


def test_resume_yields_the_same_arrays_with_other_workers(volumes):
    arrays = st.Arrays(["ct", "seg"], crop=(9, 9, 9), flip=(0.5, 0.5, 0.5), rotate90=[(0, 1), (1, 2)])

    def loader(workers):
        return st.Loader(volumes, 3, arrays, order=st.Shuffled(5), remainder="pad", workers=workers)

    def steps(loader, state=None):
        if state is not None:
            loader.load_state_dict(state)
        while True:
            for batch in loader:
                yield {name: batch[name].copy() for name in ("ct", "seg", "id")}, loader.state_dict()

    first = steps(loader(1))
    run = [next(first) for _ in range(12)]
    for at in range(11):
        resumed = steps(loader(1 + at % 4), json.loads(json.dumps(run[at][1])))
        for expected, _ in run[at + 1 : at + 4]:
            batch, _ = next(resumed)
            for name, array in expected.items():
                np.testing.assert_array_equal(batch[name], array)
    assert not np.array_equal(run[0][0]["ct"], run[5][0]["ct"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_delivered_as_it_was_written(tmp_path, dtype):
    rng = np.random.default_rng(1)
    arrays = [np.frombuffer(rng.bytes(3 * 70 * 8), dtype).reshape(3, -1) for _ in range(3)]
    if dtype == "?":
        arrays = [rng.integers(0, 2, (3, 70)).astype(bool) for _ in range(3)]
    with st.Writer(tmp_path, features={"x": st.Array(), "vector": st.Array(chunk=[1])}) as writer:
        for number, array in enumerate(arrays):
            # Other byte orders and strides are stored as any others.
            other = np.asfortranarray(array.astype(array.dtype.newbyteorder(">")))
            writer.write({"key": f"{number}", "x": other, "vector": array[0, :2]})
    assert st.verify(tmp_path, decode=True).good
    loader = st.Loader(st.Dataset(tmp_path).split("train"), 3, [st.Arrays("x"), st.Arrays("vector")], order=st.Sequential())
    [batch] = loader
    assert batch["x"].dtype == np.dtype(dtype)
    assert batch["x"].tobytes() == np.stack(arrays).tobytes()
    assert batch["vector"].tobytes() == np.stack([array[0, :2] for array in arrays]).tobytes()


def test_npy_files_of_a_list_are_packed(tmp_path):
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=(5, 600 + 10 * number)).astype(np.float32) for number in range(6)]
    (tmp_path / "audio").mkdir()
    with open(tmp_path / "list.jsonl", "w") as file:
        for number, array in enumerate(arrays):
            np.save(tmp_path / f"audio/{number}.npy", array if number % 2 else np.asfortranarray(array))
            file.write(json.dumps({"key": f"{number}", "wave": f"audio/{number}.npy", "label": number % 3}) + "\n")
        np.save(tmp_path / "audio/text.npy", np.array(["text"]))
        file.write(json.dumps({"key": "text", "wave": "audio/text.npy", "label": 0}) + "\n")
    with pytest.warns(UserWarning, match="rejected 1 inputs"):
        packed = st.pack(tmp_path / "list.jsonl", tmp_path / "set", columns={"wave": st.Array(chunk=(None, 128))})
    assert packed.images == 6 and "type `<U4`" in open(packed.rejected_file).read()
    assert st.verify(tmp_path / "set", decode=True).good
    split = st.Dataset(tmp_path / "set").split("train")
    keys = [int(split[number]["key"]) for number in range(6)]
    for batch in st.Loader(split, 2, st.Arrays("wave", crop=(None, 300))):
        for number, wave in zip(batch["id"], batch["wave"], strict=True):
            source = arrays[keys[number]]
            [start] = np.flatnonzero(source[0] == wave[0, 0])
            np.testing.assert_array_equal(wave, source[:, start : start + 300])


def test_arrays_accompany_images(tmp_path):
    image = np.zeros((40, 50, 3), np.uint8)
    with st.Writer(tmp_path, features={"embedding": st.Array()}) as writer:
        for number in range(4):
            writer.write({"key": f"{number}", "image": image + number, "embedding": np.full(8, number, np.float16)})
    split = st.Dataset(tmp_path).split("train")
    for batch in st.Loader(split, 2, [st.Image([st.Resize(32), st.CenterCrop(32)]), st.Arrays("embedding")]):
        assert batch["image"].shape == (2, 32, 32, 3)
        np.testing.assert_array_equal(batch["embedding"], np.repeat(batch["image"][:, 0, 0, :1], 8, axis=1))


def test_frameworks_take_arrays(volumes):
    torch = pytest.importorskip("torch")
    from shardtool.torch import Loader

    batch = next(iter(Loader(volumes, 4, st.Arrays(["ct", "seg"], crop=(8, 8, 8)))))
    assert isinstance(batch["ct"], torch.Tensor)
    assert (batch["ct"].dtype, batch["seg"].dtype) == (torch.float32, torch.uint8)
    assert torch.equal(batch["ct"] % 251, batch["seg"].float())


def test_jax_takes_arrays(volumes):
    jax = pytest.importorskip("jax")
    from shardtool.jax import Loader

    batch = next(iter(Loader(volumes, 4, st.Arrays("ct", crop=(8, 8, 8)))))
    assert isinstance(batch["ct"], jax.Array) and batch["ct"].shape == (4, 8, 8, 8)


def test_bad_samples_say_what_to_do(volumes):
    loader = st.Loader(volumes, 4, st.Arrays("ct"), order=st.Sequential(), bad_samples=st.BadSamples("mask", max_bad=100))
    with pytest.warns(UserWarning, match="give a crop for dimensions whose length differs"):
        valid = np.concatenate([batch["valid"] for batch in loader])
    assert valid[:14].tolist() == [shape(number) == shape(0) for number in range(14)]
    assert {sample["name"] for sample in loader.bad_samples()} == {None}
    small = st.Loader(volumes, 4, st.Arrays("ct", crop=(21, 24, 8)), bad_samples="error")
    with pytest.raises(st.BadSampleError, match=r"smaller than the crop \[21, 24, 8\]"):
        for _ in small:
            pass


def test_wrong_arguments_are_refused(volumes, tmp_path):
    def refused(match, *arguments, **options):
        with pytest.raises((st.OptionError, TypeError), match=match):
            st.Loader(volumes, 4, st.Arrays(*arguments, **options))

    refused("no feature `mr`", "mr")
    refused("`crop` has 2 entries", "ct", crop=(3, 3))
    refused("`crop` is 0: expected 1 to", "ct", crop=(0, 3, 3))
    refused("`rotate90` in plane", "ct", crop=(4, 5, 6), rotate90=(0, 1))
    refused("`flip` has 1 entries", "ct", crop=(4, 4, 4), flip=[0.5])
    refused("`flip` is 2 for dimension 1", "ct", crop=(4, 4, 4), flip=[0, 2, 0])
    refused("`flip` is 0.5: expected a list", "ct", flip=0.5)
    refused("`pad_value` is -1, which u8 cannot hold", "seg", crop=(4, 4, 4), pad_value=-1)
    refused("expected a number for each", ["ct", "seg"], crop=(4, 4, 4), pad_value={"ct": 1})
    with pytest.raises(st.OptionError, match="given twice"):
        st.Loader(volumes, 4, [st.Arrays("ct", crop=(4, 4, 4)), st.Arrays("ct", crop=(4, 4, 4))])
    with pytest.raises(TypeError, match="`features` is 3: expected the name of a feature, or a list of names"):
        st.Arrays(3)
    with pytest.raises(TypeError, match="`fields` is 3: expected a list of steps, a field"):
        st.Loader(volumes, 4, 3)
    with pytest.raises(st.OptionError, match="`codec` is 'gzip'"):
        st.Array(codec="gzip")
    with st.Writer(tmp_path, features={"x": st.Array(chunk=(2, 2))}, labels=False, images=False) as writer:
        with pytest.raises(st.PackError, match=r"shape \[3\], but its chunks have 2 dimensions"):
            writer.write({"key": "a", "x": np.zeros(3)})
        with pytest.raises(st.OptionError, match="arrays of complex128 cannot be stored"):
            writer.write({"key": "a", "x": np.zeros((3, 3), complex)})
        writer.write({"key": "a", "x": np.zeros((3, 3))})
