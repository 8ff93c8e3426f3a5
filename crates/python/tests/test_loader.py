"""Batches: their content, order and memory, and resuming."""

import collections
import gc
import io
import json

import numpy as np
import pytest
from conftest import CLASSES, COUNT
from PIL import Image

import shardtool as st

STEPS = [st.RandomResizedCrop(32), st.HorizontalFlip()]


def ids_of(batches):
    return [int(i) for batch in batches for i in batch["id"][batch["valid"]]]


def one_epoch(loader):
    """All ids and a checksum of all pixels of one epoch, holding one batch at a time."""
    ids, sums = [], []
    for batch in loader:
        ids += ids_of([batch])
        sums.append(int(batch["image"].astype(np.uint64).sum()))
    return ids, sums


def test_batch_has_images_labels_ids_and_columns(train):
    loader = st.Loader(train, 16, [st.Image(STEPS), "image/width", "image/filename"], order=st.Sequential())
    batches = iter(loader)
    batch = next(batches)
    assert batch["image"].shape == (16, 32, 32, 3) and batch["image"].dtype == np.uint8
    assert batch["id"].tolist() == list(range(16)) and batch["valid"].all()
    assert batch["label"].tolist() == [train[i]["label"] for i in range(16)]
    assert batch["image/width"].tolist() == [train[i]["features"]["image/width"] for i in range(16)]
    assert batch["image/filename"] == [train[i]["features"]["image/filename"] for i in range(16)]
    # The class shows in the colour.
    strongest = batch["image"].reshape(16, -1, 3).mean(1).argmax(1)
    assert strongest.tolist() == batch["label"].tolist()


def test_resized_pixels_equal_pillows(train):
    """Bit for bit, decoded and resized by Pillow."""
    batch = next(iter(st.Loader(train, COUNT, [st.ResizeTo((24, 20))], order=st.Sequential())))
    for row, image in enumerate(batch["image"]):
        stored = Image.open(io.BytesIO(train[row]["image"])).convert("RGB")
        assert np.array_equal(image, np.asarray(stored.resize((20, 24), Image.Resampling.BILINEAR)))


def test_cropped_pixels_equal_pillows(train):
    """Bit for bit, without resizing: a crop, for which our decoder decodes only the rows that it needs."""
    batch = next(iter(st.Loader(train, COUNT, [st.CenterCrop((24, 30))], order=st.Sequential())))
    for row, image in enumerate(batch["image"]):
        stored = np.asarray(Image.open(io.BytesIO(train[row]["image"])).convert("RGB"))
        top, left = round((stored.shape[0] - 24) / 2), round((stored.shape[1] - 30) / 2)
        assert np.array_equal(image, stored[top : top + 24, left : left + 30])


def test_every_epoch_shows_every_sample_in_a_different_order(train):
    loader = st.Loader(train, 10, STEPS, order=st.Shuffled(7), remainder="mask")
    assert len(loader) == 11
    epochs = [one_epoch(loader) for _ in range(3)]
    for ids, _ in epochs:
        assert sorted(ids) == list(range(COUNT))
    assert epochs[0][0] != epochs[1][0] != epochs[2][0]
    again = st.Loader(train, 10, STEPS, order=st.Shuffled(7), prefetch=1, remainder="mask", workers=1)
    assert [one_epoch(again) for _ in range(3)] == epochs
    loader.set_epoch(1)
    assert one_epoch(loader) == epochs[1]


def test_masked_rows_are_empty(train):
    for last in st.Loader(train, 10, STEPS, order=st.Sequential()):
        pass
    assert last["valid"].tolist() == [True] * 5 + [False] * 5
    assert last["id"].tolist()[5:] == [-1] * 5 and last["label"].tolist()[5:] == [-100] * 5
    assert not last["image"][5:].any()


@pytest.mark.parametrize("remainder, steps, shown", [("drop", 10, 100), ("pad", 11, 110), ("mask", 11, 105)])
def test_remainder_decides_what_the_last_step_shows(train, remainder, steps, shown):
    loader = st.Loader(train, 10, STEPS, remainder=remainder)
    ids, sums = one_epoch(loader)
    assert (len(loader), len(sums), len(ids)) == (steps, steps, shown)


def test_iterating_after_a_break_starts_the_next_epoch(train):
    whole = st.Loader(train, 10, STEPS)
    expected = [one_epoch(whole)[0] for _ in range(3)]
    loader = st.Loader(train, 10, STEPS)
    first = iter(loader)
    assert ids_of([next(first)]) == expected[0][:10]
    assert one_epoch(loader)[0] == expected[1]
    with pytest.raises(RuntimeError, match="one at a time"):
        next(first)
    # zip stops without requesting another batch, so the iterator does not reach the end of its epoch.
    for _, batch in zip(range(len(loader)), loader):
        last = batch
    assert ids_of([last]) == expected[2][-10:]
    assert loader.state_dict()["epoch"] == 3


def test_view_keeps_the_memory_of_its_batch(train):
    loader = st.Loader(train, 10, STEPS, memory="3MiB", prefetch=st.Prefetch(2, starve_after=0.3))
    batch = next(iter(loader))
    image = batch["image"]
    assert image.ctypes.data % 64 == 0 and image.flags.writeable
    address, copy = image.ctypes.data, image.copy()
    view = image[3:5, :, ::2]
    del batch, image
    gc.collect()
    # The view keeps the batch alive: later batches do not reuse its memory.
    others = set()
    for _ in range(2):
        for batch in loader:
            others.add(batch["image"].ctypes.data)
    assert address not in others and len(others) < 2 * len(loader)
    assert np.array_equal(view, copy[3:5, :, ::2])
    loader.close()
    assert np.array_equal(view, copy[3:5, :, ::2])


def test_dlpack_shares_memory(train):
    image = next(iter(st.Loader(train, 10, STEPS)))["image"]
    again = np.from_dlpack(image)
    assert again.ctypes.data == image.ctypes.data and again.shape == image.shape


def test_resumes_at_every_step_with_another_batch_size(train):
    loader = st.Loader(train, 7, STEPS, order=st.Shuffled(3), remainder="mask")
    rows, states = [], [(0, loader.state_dict())]
    for _ in range(2):
        for batch in loader:
            rows += [(int(i), p.tobytes()) for i, p, ok in zip(batch["id"], batch["image"], batch["valid"]) if ok]
            states.append((len(rows), loader.state_dict()))
    other = st.Loader(train, 11, STEPS, order=st.Shuffled(3), remainder="mask", workers=1)
    for done, state in states:
        other.load_state_dict(state)
        assert len(str(state)) < 300
        # Lightning sets the current epoch after loading.
        other.set_epoch(state["epoch"])
        rest = []
        while len(rows) - done > len(rest):
            for batch in other:
                rest += [(int(i), p.tobytes()) for i, p, ok in zip(batch["id"], batch["image"], batch["valid"]) if ok]
        assert rest[: len(rows) - done] == rows[done:]


def test_mismatched_state_is_rejected(train, dataset):
    state = st.Loader(train, 7, STEPS).state_dict()
    other = st.Loader(st.Dataset(dataset).split("single"), 7, STEPS)
    if other.state_dict()["fingerprint"] == state["fingerprint"]:
        state["fingerprint"] = "00000000"
    for change in ({}, {"version": 9}, {"seed": 1}, {"p": 10**9}):
        with pytest.raises(st.StateError):
            target = other if not change else st.Loader(train, 7, STEPS)
            target.load_state_dict({**state, **change})


def test_replicas_share_an_epoch(train):
    for world in (2, 3):
        shown, steps = [], set()
        for rank in range(world):
            loader = st.Loader(train, 8, STEPS, order=st.Shuffled(5), replica=st.Replica(rank, world), remainder="mask")
            batches = [ids_of([b]) for b in loader]
            shown += [i for ids in batches for i in ids]
            steps.add(len(batches))
        assert sorted(shown) == list(range(COUNT)) and len(steps) == 1


def test_orders_and_sources_select_samples(train, dataset):
    labels = train.columns["image/class/label"]
    owls = np.flatnonzero(labels == 1)
    loader = st.Loader(train, 5, STEPS, source=st.Subset(owls))
    assert sorted(one_epoch(loader)[0]) == owls.tolist()

    few = st.Subset([0, 0, 4])
    assert sorted(one_epoch(st.Loader(train, 3, STEPS, source=few))[0]) == [0, 0, 4]

    skewed = np.where(np.arange(COUNT) == int(owls[0]), COUNT, 0)
    assert set(one_epoch(st.Loader(train, 5, STEPS, source=st.Weighted(skewed)))[0]) == {int(owls[0])}

    ids = one_epoch(st.Loader(train, 3, STEPS, source=st.Balanced(), remainder="mask"))[0]
    assert np.bincount(labels[ids]).tolist() == [35, 35, 35]

    single = st.Dataset(dataset).split("single")
    mixed = st.Loader([train, single], 10, STEPS, source=st.Mixture([1, 3], draws=80))
    ids = np.array(one_epoch(mixed)[0])
    assert (len(ids), int((ids >= COUNT).sum())) == (80, 60)

    runs = st.Loader(train, 5, STEPS, order=st.Interleaved(run=5, window=3))
    ids = one_epoch(runs)[0]
    assert sorted(ids) == list(range(COUNT)) and ids != list(range(COUNT))
    assert max(ids[:15]) - min(ids[:15]) <= COUNT
    assert len({i // 5 for i in ids[:15]}) == 3

    with pytest.raises(st.OptionError, match="105"):
        st.Loader(train, 5, STEPS, source=st.Subset([COUNT]))
    with pytest.raises(ValueError, match="whole numbers"):
        st.Loader(train, 5, STEPS, source=st.Subset([0.5]))


def test_samples_of_several_labels_are_balanced_by_the_rarest(dataset):
    train = st.Dataset(dataset).split("train")
    random = np.random.default_rng(4)
    lists = [random.choice([2, 5, 9, 11], random.integers(0, 5), p=[0.6, 0.25, 0.1, 0.05]) for _ in range(COUNT)]
    frequency = collections.Counter(label for labels in lists for label in set(labels.tolist()))
    rarest = [min(labels.tolist(), key=lambda label: (frequency[label], label), default=-1) for labels in lists]
    assert len(set(rarest)) == 5 and any(len(labels) > len(set(labels)) for labels in lists)
    given = [None if not len(labels) else int(labels[0]) if len(labels) == 1 else labels for labels in lists]
    by_lists, by_labels = (
        one_epoch(st.Loader(train, 5, STEPS, source=st.Balanced(labels), remainder="mask"))[0]
        for labels in (given, np.array(rarest))
    )
    assert list(by_lists) == list(by_labels)
    shown = collections.Counter(np.array(rarest)[by_lists].tolist())
    assert set(shown.values()) == {-(-COUNT // 5)}
    with pytest.raises(st.OptionError, match=rf"\(104,\): expected \({COUNT},\)"):
        st.Loader(train, 5, STEPS, source=st.Balanced(lists[1:]))
    with pytest.raises(st.ShardtoolError, match=r"`labels\[1\]` is \[0.5\]: expected whole numbers"):
        st.Loader(train, 5, STEPS, source=st.Balanced([[1], [0.5], *lists[2:]]))
    for row, message in [([3, -1], "class ids from 0"), (np.array([2**64 - 1], np.uint64), "class ids from 0"), ([0, 1, 0, 0], "np.flatnonzero")]:
        with pytest.raises(st.OptionError, match=message):
            st.Loader(train, 5, STEPS, source=st.Balanced([[1], row, *lists[2:]]))


def test_ragged_columns_match_the_records(photos, tmp_path):
    files = sorted(photos.glob("*/*.jpg"))[:6]
    lines = [json.dumps({"path": str(f), "key": str(n), "boxes": [0.5] * n}) for n, f in enumerate(files)]
    (tmp_path / "list.jsonl").write_text("\n".join(lines))
    st.pack(tmp_path / "list.jsonl", tmp_path / "out")
    split = st.Dataset(tmp_path / "out")["train"]
    batch = next(iter(st.Loader(split, 6, [st.Image([st.ResizeTo(8)]), "boxes"], order=st.Sequential())))
    assert isinstance(batch["boxes"], st.Ragged)
    for row, id in enumerate(batch["id"]):
        boxes = split[int(id)]["features"].get("boxes", [])
        boxes = boxes if isinstance(boxes, list) else [boxes]
        assert batch["boxes"].row(row).tolist() == boxes and len(boxes) == int(split[int(id)]["key"])


def test_without_steps_images_are_the_stored_bytes(train):
    loader = st.Loader(train, 10, order=st.Sequential())
    rows = [image for batch in loader for image in batch["image"]]
    assert rows[:COUNT] == [train[i]["image"] for i in range(COUNT)] and rows[COUNT:] == [None] * 5


def test_invalid_options_are_rejected(train):
    for options, message in [
        ({"batch_size": 0}, "batch"),
        ({"fields": [st.Resize(32)]}, "size"),
        ({"fields": [st.Image(STEPS), "nothing"]}, "nothing"),
        ({"bad_samples": "ignore"}, '"substitute"'),
        ({"remainder": "keep"}, '"mask"'),
        ({"memory": "4 parsecs"}, "parsecs"),
        ({"replica": st.Replica(1)}, "both"),
    ]:
        with pytest.raises(st.OptionError, match=message) as caught:
            st.Loader(train, **{"batch_size": 4, "fields": STEPS, **options})
        assert isinstance(caught.value, ValueError)
    with pytest.raises(st.BudgetError, match="batches") as caught:
        st.Loader(train, 64, [st.ResizeTo(512)], memory="1MiB")
    assert isinstance(caught.value, MemoryError)


def test_stats_count_samples_and_name_the_bottleneck(train):
    loader = st.Loader(train, 10, STEPS)
    one_epoch(loader)
    stats = loader.stats()
    assert stats["samples"] == 100 and stats["bad_samples"] == 0
    assert [s["stage"] for s in stats["stages"]][2] == "decode"
    assert "bounds the rate" in stats.verdict and stats.verdict in str(stats) and stats.verdict in stats._repr_html_()
    assert "shardtool_load_samples_total 100" in stats.prometheus


def test_classes_are_the_folder_names(train):
    assert train.classes == CLASSES


def test_local_replicas_match_separate_loaders(train):
    """Three processes with two replicas each deliver what six separate loaders deliver."""
    options = dict(order=st.Shuffled(3), remainder="mask")
    for rank in range(3):
        loader = st.Loader(train, 8, STEPS, replica=st.Replica(rank, 3, local_replicas=2), **options)
        apart = [st.Loader(train, 8, STEPS, replica=st.Replica(2 * rank + i, 6), workers=1, **options) for i in range(2)]
        assert len(loader) == len(apart[0]) == 3
        states = []
        for batches, *theirs in zip(loader, *apart, strict=True):
            for ours, other in zip(batches, theirs, strict=True):
                assert np.array_equal(ours["id"], other["id"]) and np.array_equal(ours["image"], other["image"])
            assert loader.state_dict() == apart[0].state_dict()
            states.append(loader.state_dict())
            del batches, ours, theirs, other
        assert [s["p"] for s in states] == [48, 96, 0]
        loader.load_state_dict(states[0])
        apart[0].load_state_dict(states[0])
        assert np.array_equal(next(iter(loader))[0]["id"], next(iter(apart[0]))["id"])
        loader.set_epoch(0)
        assert len(list(map(len, loader))) == 3
    with pytest.raises(st.OptionError, match="`local_replicas` is 0: expected 1 to"):
        st.Replica(local_replicas=0)


def lighten(image, seed):
    """A function that a spawned worker can import; changes its argument in place."""
    image[..., 0] = seed % 251
    image[..., 1] = np.random.default_rng(seed).integers(0, 256)


def test_user_function_gets_a_seed_per_sample_and_epoch(train):
    options = dict(order=st.Sequential(seed=5))
    plain = st.Loader(train, 16, [st.ResizeTo((8, 10))], **options)
    ours = st.Loader(train, 16, [st.ResizeTo((8, 10)), st.Function(lambda image, seed: 255 - image)], **options)
    for a, b in zip(plain, ours, strict=True):
        rows = b["valid"]
        assert np.array_equal(255 - a["image"][rows], b["image"][rows]) and not b["image"][~rows].any()
        del a, b
    # The seed depends on sample and epoch, not on workers, batch size or replicas.
    def seeds(workers, batch, epoch, replica=None):
        options = dict(order=st.Shuffled(5), replica=replica, remainder="mask", workers=workers)
        loader = st.Loader(train, batch, [st.ResizeTo(8), lighten], **options)
        loader.set_epoch(epoch)
        found = {}
        for batch in loader:
            for number, image in zip(batch["id"][batch["valid"]], batch["image"][batch["valid"]], strict=True):
                assert (image == image[0, 0]).all(where=[True, True, False])
                found[int(number)] = image[0, 0, :2].tolist()
        return found

    first = seeds(1, 16, 0)
    assert len(first) == COUNT and len({tuple(v) for v in first.values()}) > COUNT // 2
    assert seeds(3, 7, 0) == first != seeds(1, 16, 1)
    halves = [seeds(2, 5, 0, st.Replica(rank, 2)) for rank in range(2)]
    assert {**halves[0], **halves[1]} == first


def test_user_function_may_keep_its_argument(train):
    kept = []

    def keep(image, seed):
        kept.append(image)
        return image // 2

    loader = st.Loader(train, 15, [st.ResizeTo(8), keep], order=st.Sequential())
    batches = [b["image"].copy() for b in loader]
    del loader
    gc.collect()
    # Also called for prefetched images of the next epoch, which are the same.
    assert len(kept) >= COUNT
    ours = {image.tobytes() for batch in batches for image in batch}
    assert len(ours) == COUNT and ours == {(image // 2).tobytes() for image in kept}


@pytest.mark.parametrize(
    "function, error, message",
    [
        (lambda image, seed: 1 / 0, ZeroDivisionError, "division"),
        (lambda image, seed: image[:4], ValueError, "expected uint8"),
        (lambda image, seed: image.astype("float32"), ValueError, "returned float32"),
        (lambda *values: values[2], IndexError, "out of range"),
    ],
)
def test_exception_of_a_user_function_is_raised_by_the_loop(train, function, error, message, capfd):
    loader = st.Loader(train, 8, [st.ResizeTo(8), function])
    with pytest.raises(error, match=message):
        next(iter(loader))
    assert "panicked" not in capfd.readouterr().err
    # The next iteration tries again.
    with pytest.raises(error, match=message):
        next(iter(loader))


@pytest.mark.parametrize(
    "steps, message", [([lighten, st.ResizeTo(8)], "only be the last"), ([st.ResizeTo(8), 7], "neither a step")]
)
def test_misplaced_functions_are_rejected(train, steps, message):
    with pytest.raises(st.OptionError, match=message):
        st.Loader(train, 8, steps)
