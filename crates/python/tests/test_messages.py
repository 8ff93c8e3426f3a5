"""Exceptions derive from one base and from built-in exceptions, and their messages say what to do."""

import pickle
import time
import warnings

import numpy as np
import pytest
from test_loader import STEPS, one_epoch

import shardtool as st


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"batch_size": 2.5}, TypeError, "`batch_size` is 2.5: expected a whole number"),
        ({"order": "shuffled"}, TypeError, r"`order` is 'shuffled': expected `Shuffled\(\)`"),
        ({"source": [1, 2]}, TypeError, r"`source` is \[1, 2\]: expected `Subset"),
        ({"workers": 0}, ValueError, "`workers` is 0"),
        ({"fields": st.ResizeTo(8)}, TypeError, "expected a list of steps"),
        ({"fields": [lambda image, seed: None, st.ResizeTo(8)]}, ValueError, "a function can only be the last one"),
        ({"fields": [st.ResizeTo(8), 7]}, TypeError, "neither a step nor a function"),
        ({"fields": [st.ResizeTo(8), "label"]}, TypeError, r"is not a field: the steps of an image belong in `Image\("),
        ({"fields": [st.Image(STEPS), st.ResizeTo(8)]}, TypeError, "is not a field"),
        ({"fields": [st.Image]}, TypeError, r"Image is a class: make one, `Image\(...\)`"),
        ({"fields": "image/width"}, TypeError, "expected a list of steps, a field"),
        ({"fields": 5}, TypeError, "expected a list of steps, a field"),
        ({"fields": []}, ValueError, "`fields` is empty"),
        ({"fields": ["nothing"]}, ValueError, "no feature `nothing`; it has: "),
        ({"fields": ["image/width", "image/width"]}, ValueError, 'the fields have "image/width" twice'),
        ({"fields": [st.Image(STEPS), st.Image(STEPS)]}, ValueError, "the fields have `Image` twice"),
        ({"fields": st.Image(STEPS, mean=5)}, ValueError, "`mean` has 1 numbers: expected one for each of red, green, blue"),
        ({"collate_fn": 3}, TypeError, "`collate_fn` is 3"),
        ({"memory": "4 parsecs"}, ValueError, "`memory`: unknown unit `parsecs`"),
        ({"memory": "1KiB"}, MemoryError, "x 2 batches x"),
        ({"device": "gpu"}, ValueError, "names no device"),
        ({"source": st.Weighted([1, 2])}, ValueError, r"`weights` has the shape \(2,\): expected \(105,\)"),
        ({"source": st.Subset([True])}, ValueError, r"`mask` has the shape \(1,\)"),
        ({"source": st.Weighted([-1.0] * 105)}, ValueError, "finite, at least 0"),
        ({"replica": 3}, TypeError, r"`replica` is 3: expected `Replica\(...\)`"),
        ({"replica": st.Replica(local_replicas=2), "memory": "1MiB", "batch_size": 48}, MemoryError, "2 replica"),
        ({"prefetch": "all"}, TypeError, "`prefetch` is 'all': expected a whole number"),
        ({"prefetch": 0}, ValueError, "`prefetch` is 0"),
        ({"prefetch": st.Prefetch(fetch_size="8 parsecs")}, ValueError, "`fetch_size`: unknown unit `parsecs`"),
        ({"bad_samples": 3}, TypeError, "`bad_samples` is 3: expected \"error\", \"mask\", \"substitute\""),
    ],
)
def test_invalid_options_are_named_with_the_expected_value(train, options, error, message):
    with pytest.raises(error, match=message) as raised:
        st.Loader(**{"data": train, "batch_size": 8, "fields": STEPS, **options})
    assert isinstance(raised.value, st.ShardtoolError)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: st.Shuffled("one"), TypeError, "`seed` is 'one': expected a whole number"),
        (lambda: st.Shuffled(-1), ValueError, "`seed` is -1: expected 0 to"),
        (lambda: st.Sequential(seed=-1), ValueError, "`seed` is -1: expected 0 to"),
        (lambda: st.Image(["resize"]), TypeError, "neither a step nor a function"),
        (lambda: st.Image(STEPS, layout=3), TypeError, "`layout` is 3"),
        (lambda: st.Image(STEPS, apply_orientation="yes"), TypeError, "`apply_orientation` is 'yes'"),
        (lambda: st.Image(STEPS, scaled_decode=2), TypeError, "`scaled_decode` is 2"),
        (lambda: st.Image(STEPS, mean="0.5"), TypeError, "`mean` is '0.5': expected numbers, one for each channel"),
        (lambda: st.Image(STEPS, decoded_cache="8GiB"), TypeError, r"`decoded_cache` is '8GiB': expected `DecodedCache"),
        (lambda: st.Column(5), TypeError, "`feature` is 5: expected the name of a feature"),
        (lambda: st.Replica(policy=None), TypeError, "`policy` is None"),
        (lambda: st.Prefetch(read_ahead=None), TypeError, "`read_ahead` is None"),
        (lambda: st.Prefetch(fetch_gap=-1), ValueError, "`fetch_gap` is -1"),
        (lambda: st.Prefetch(starve_after="long"), TypeError, "`starve_after` is 'long': expected a number"),
        (lambda: st.BadSamples("ignore"), ValueError, "`on_bad` is 'ignore': expected \"error\", \"mask\", \"substitute\""),
        (lambda: st.BadSamples(max_bad=-1), ValueError, "`max_bad` is -1"),
    ],
)
def test_invalid_members_of_options_are_named_with_the_expected_value(make, error, message):
    with pytest.raises(error, match=message) as raised:
        make()
    assert isinstance(raised.value, st.OptionError)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: st.RandomResizedCrop((32, 32, 3)), ValueError, "expected a side, or"),
        (lambda: st.RandomResizedCrop(0), ValueError, "`size` is 0"),
        (lambda: st.RandomResizedCrop(32, scale=0.5), ValueError, "`scale` is 0.5: expected two numbers"),
        (lambda: st.RandomResizedCrop(32, ratio=(2, 1)), ValueError, "smaller number first"),
        (lambda: st.Resize("large"), TypeError, "`shorter` is 'large'"),
        (lambda: st.HorizontalFlip(2.0), ValueError, "`p` is 2.0: expected 0 to 1"),
        (lambda: st.Interleaved(0, 4), ValueError, "`run` is 0"),
    ],
)
def test_invalid_steps_are_rejected(make, error, message):
    with pytest.raises(error, match=message) as raised:
        make()
    assert isinstance(raised.value, st.OptionError)


def test_data_must_be_splits(train, dataset):
    with pytest.raises(TypeError, match=r"give one of its splits, `dataset\['"):
        st.Loader(st.Dataset(dataset), 8, STEPS)
    with pytest.raises(st.OptionError, match="expected a split"):
        st.Loader([], 8, STEPS)


def test_file_and_lookup_errors_are_built_in_exceptions(tmp_path, train):
    with pytest.raises(FileNotFoundError) as raised:
        st.Dataset(tmp_path / "nowhere")
    assert isinstance(raised.value, (st.DatasetError, st.FileError)) and "nowhere" in str(raised.value)
    with pytest.raises(KeyError, match="has no split `x`") as raised:
        st.Dataset(train.path)["x"]
    assert isinstance(raised.value, st.SplitError) and not str(raised.value).startswith("'")
    with pytest.raises(IndexError, match="record 105 of a split of 105"):
        train[105]
    with pytest.raises(KeyError, match="has no column .*; it has: "):
        train.columns["nothing"]
    with pytest.raises(TypeError, match="records by number"):
        train[1.5]
    with pytest.raises(KeyError, match="has the key"):
        train["a"]
    error = st.FileError("cannot read it", errno=2, filename="/x")
    assert isinstance(error, FileNotFoundError) and str(error) == "cannot read it" and error.filename == "/x"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.errno) == (type(error), "cannot read it", 2)


def test_every_exception_is_a_shardtool_error():
    for name in st.errors.__all__:
        kind = getattr(st, name)
        assert issubclass(kind, Warning if name == "ShardtoolWarning" else st.ShardtoolError)
        if name not in ("ShardtoolError", "ShardtoolWarning"):
            assert len(set(kind.__mro__) - {kind, st.ShardtoolError, Exception, BaseException, object}) > 0, name


def test_exception_of_a_function_has_a_note_with_the_sample(train):
    def fails(image, seed):
        raise ZeroDivisionError("mine")

    loader = st.Loader(train, 8, [*STEPS, fails], order=st.Sequential(), workers=1)
    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        next(iter(loader))
    if hasattr(raised.value, "__notes__"):
        assert "record 0 of " in raised.value.__notes__[0] and "(id 0)" in raised.value.__notes__[0]


def test_the_note_belongs_to_the_exception_that_is_raised(train):
    """Two workers fail at once, the later sample first."""
    first = next(iter(st.Loader(train, 1, [st.ResizeTo(8)], order=st.Sequential())))["image"][0].copy()

    def fails(image, seed):
        if np.array_equal(image, first):
            time.sleep(0.3)
            raise ValueError("first")
        raise ValueError("other")

    loader = st.Loader(train, 4, [st.ResizeTo(8), fails], order=st.Sequential(), workers=2)
    with pytest.raises(ValueError, match="first|other") as raised:
        next(iter(loader))
    if hasattr(raised.value, "__notes__"):
        assert ("(id 0)" in raised.value.__notes__[0]) == (str(raised.value) == "first")


def test_warnings_as_errors_lose_no_batch(train):
    loader = st.Loader(train, 1, STEPS, order=st.Sequential())
    shown, held = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while len(shown) < 105:
            try:
                for batch in loader:
                    shown.append(int(batch["id"][0]))
                    held.append(batch)
            except st.ShardtoolWarning:
                loader.load_state_dict(loader.state_dict())
    assert shown == list(range(105))


def test_bad_samples_are_warned_about(photos, tmp_path):
    st.pack(photos, tmp_path / "out", shards=1)
    shard = next((tmp_path / "out").glob("*.tfrecord"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    data[len(data) // 3] ^= 1
    shard.write_bytes(data)
    loader = st.Loader(st.Dataset(tmp_path / "out")["train"], 5, STEPS)
    with pytest.warns(st.ShardtoolWarning) as caught:
        one_epoch(loader)
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2 and "bad sample: record" in texts[0] and "2 bad samples in this run" in texts[1], texts
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one_epoch(loader)
    assert len(loader.bad_samples()) == 2


def test_splits_accept_slices_and_sources_accept_boolean_masks(train, dataset):
    opened = st.Dataset(dataset)
    assert list(opened) == opened.keys() == opened.splits == ["single", "train"] and "single" in opened and "x" not in opened
    assert [r["key"] for r in opened["train"][10:20:5]] == [train[10]["key"], train[15]["key"]]
    assert train[-2:][1]["key"] == train[104]["key"] and train[50:50] == [] and train[np.int64(3)]["key"] == train[3]["key"]
    wide = train.columns["image/width"] > 50
    masked = st.Loader(train, 1, STEPS, source=st.Subset(wide))
    assert sorted(one_epoch(masked)[0]) == np.flatnonzero(wide).tolist()
    weights = np.where(np.arange(105) < 3, [0.1, 0.2, 0.7] * 35, 0.0)
    counts = np.bincount(one_epoch(st.Loader(train, 1, STEPS, source=st.Weighted(weights, draws=1000)))[0])
    assert abs(counts - [100, 200, 700]).max() <= 1


def test_loader_has_dataloader_attributes_and_delivers_pairs(train):
    loader = st.Loader(train, 8, STEPS, collate_fn=st.image_label)
    x, y = next(iter(loader))
    assert x.shape == (8, 32, 32, 3) and y.shape == (8,)
    assert loader.batch_size == 8 and len(loader.dataset) == 105 and loader.dataset[0]["key"] == train[0]["key"]
    both = st.Loader([train, train], 8, STEPS)
    for wrong in (210, -211):
        with pytest.raises(IndexError, match=f"record {wrong} of splits of 210"):
            both.dataset[wrong]
    with pytest.raises(st.StateError, match="not JSON serializable"):
        loader.load_state_dict({"a": object()})
    assert len(both.dataset) == 210 and both.dataset[105]["key"] == train[0]["key"] == both.dataset[-105]["key"]
