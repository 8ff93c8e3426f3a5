"""Members whose shares change within the run, from Python, against the model of order-spec.md in another program."""

import importlib.util
import json
import math
import pathlib
import pickle
import random

import numpy as np
import pytest
import shardtool as st

CHECK = pathlib.Path(__file__).parents[3] / "fixtures" / "conformance" / "scheduled" / "check.py"


@pytest.fixture(scope="module")
def model():
    """The program that computes the vectors of order-spec.md from its text."""
    spec = importlib.util.spec_from_file_location("scheduled_check", CHECK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Writes a dataset of records with a class and a difficulty, from 0 on."""

    def make(name, samples, classes=("cat", "dog", "bird")):
        folder = tmp_path_factory.mktemp("scheduled") / name
        features = {"difficulty": "int64"}
        with st.Writer(folder, "train", classes=list(classes), features=features, images=False) as writer:
            for n in range(samples):
                writer.write({"key": f"{name}-{n}", "label": classes[n % len(classes)], "difficulty": n})
        return st.Dataset(folder)["train"]

    return make


@pytest.fixture(scope="module")
def splits(make):
    return [make("one", 7), make("two", 4), make("three", 20)]


def loader(splits, source, batch=1, **options):
    return st.Loader(splits, batch, [st.Column("difficulty")], source=source, remainder="mask", **options)


def ids(loader):
    return [int(i) for batch in loader for i in batch["id"] if i >= 0]


def case(splits, stages, draws, order="sequential", seed=0):
    """A configuration as vectors have it."""
    starts = np.cumsum([0] + [len(split) for split in splits]).tolist()
    members = [[first, len(split)] for first, split in zip(starts, splits)]
    source = {"kind": "scheduled", "split": starts[-1], "draws": draws, "members": members, "stages": stages}
    return {"source": source, "order": order, "seed": seed, "run": 2, "window": 3}


ORDERS = {"sequential": st.Sequential, "shuffled": st.Shuffled, "interleaved": lambda seed: st.Interleaved(2, 3, seed)}


@pytest.mark.parametrize("order", ORDERS)
def test_epochs_are_those_of_the_model(model, splits, order):
    stages = [{"start": 0, "weights": [9, 1, 0]}, {"start": 37, "weights": [1, 1, 2]}, {"start": 60, "weights": [0, 0, 1]}]
    given = case(splits, stages, 30, order, seed=5)
    schedule = model.Schedule(given["source"])
    source = st.Scheduled({0: [0.9, 0.1, 0], "37 samples": [0.25, 0.25, 0.5], 2: [0, 0, 7]}, draws=30)
    with loader(splits, source, 4, order=ORDERS[order](5)) as batches:
        for epoch in range(4):
            assert ids(batches) == [schedule.id(given, epoch, v) for v in range(30)], epoch
            had = [member["samples"] for member in batches.stats()["members"]]
            assert had == [schedule.before(5, 30 * (epoch + 1), d) for d in range(3)]


def test_a_run_resumes_at_any_step_in_any_world(model, splits):
    stages = [{"start": 0, "weights": [3, 1, 0]}, {"start": 45, "weights": [1, 1, 5]}]
    given = case(splits, stages, 30, "shuffled", seed=1)
    schedule = model.Schedule(given["source"])
    expected = [schedule.id(given, *divmod(g, 30)) for g in range(90)]
    source = st.Scheduled({0: [3, 1, 0], 1.5: [1, 1, 5]}, draws=30)
    draw = random.Random(3)
    for _ in range(4):
        found, state = [], None
        while len(found) < 90:
            world, batch = draw.choice((1, 2, 3)), draw.choice((1, 2, 5))
            ranks = [
                loader(splits, source, batch, order=st.Shuffled(1), replica=st.Replica(rank, world)) for rank in range(world)
            ]
            if state is not None:
                for rank in ranks:
                    rank.load_state_dict(state)
            begun = [iter(rank) for rank in ranks]
            for _ in range(draw.randint(1, 4)):
                batches = [next(rank, None) for rank in begun]
                if batches[0] is None:
                    break
                found += [int(i) for batch in batches for i in batch["id"] if i >= 0]
            states = [rank.state_dict() for rank in ranks]
            assert all(state == states[0] for state in states) and len(json.dumps(states[0], separators=(",", ":"))) < 300
            state = states[0]
            for rank in ranks:
                rank.close()
        assert found[:90] == expected


def test_later_stages_and_datasets_may_join_and_earlier_ones_may_not_change(make):
    pair = [make("first", 6), make("second", 9)]
    before = st.Scheduled({0: [2, 1], 3: [1, 1]}, draws=12)
    with loader(pair, before) as run:
        shown = ids(run) + ids(run)
        state = run.state_dict()
    joined = [*pair, make("joins", 5)]
    after = st.Scheduled({0: [2, 1, 0], 2: [1, 1, 2], 5: [0, 0, 1]}, draws=12)
    with loader(joined, after) as run:
        run.load_state_dict(state)
        third = ids(run)
    # Half of the epoch is of the dataset that joined, and the others continue: of each, no sample comes twice before all came once.
    assert sum(i >= 15 for i in third) == 6
    own = [i for i in shown + third if i < 6]
    assert [sorted(own[n : n + 6]) for n in range(0, len(own) - 5, 6)] == [list(range(6))] * (len(own) // 6)
    refused = {
        "stage 0": st.Scheduled({0: [3, 1], 3: [1, 1]}, draws=12),
        "stage 1": st.Scheduled({0: [2, 1], 1: [1, 1]}, draws=12),
        "another source": st.Scheduled({0: [2, 1], 3: [1, 1]}, draws=13),
    }
    for words, source in refused.items():
        with loader(pair, source) as run, pytest.raises(st.StateError, match=words):
            run.load_state_dict(state)
    with loader([joined[0], joined[2]], before) as run, pytest.raises(st.StateError):
        run.load_state_dict(state)
    with loader(pair, None) as run, pytest.raises(st.StateError):
        run.load_state_dict(state)


def test_classes_conditions_lists_and_views_are_members(splits, make):
    labels = np.concatenate([split.columns["image/class/label"] for split in splits])
    with loader(splits, st.Scheduled({0: [3, 0, 1], 1: [0, 1, 0]}, members="classes", draws=16)) as run:
        assert np.bincount(labels[ids(run)], minlength=3).tolist() == [12, 0, 4]
        assert set(labels[ids(run)]) == {1}
        assert [member["name"] for member in run.stats()["members"]] == ["cat", "dog", "bird"]
    difficulty = np.concatenate([split.columns["difficulty"] for split in splits])
    conditions = st.Scheduled({0: st.Stage([1, 0, 1], where="difficulty<3"), 1: [1, 1, 2]}, draws=12)
    with loader(splits, conditions) as run:
        easy = ids(run)
        assert (difficulty[easy] < 3).all() and not any(7 <= i < 11 for i in easy)
        later = ids(run)
        assert (difficulty[later] >= 3).any()
        names = [member["name"] for member in run.stats()["members"]]
        assert names[:3] == ["one/train where difficulty<3", "one/train", "two/train"]
    mask = difficulty >= 10
    with loader(splits, st.Scheduled({0: [1, 1]}, members=[[5, 3, 3], mask], draws=8)) as run:
        shown = ids(run)
        assert sorted(shown[i] for i in range(8) if shown[i] in (3, 5)) == [3, 3, 3, 5] and mask[[i for i in shown if i not in (3, 5)]].all()
    views = st.Dataset(splits[2].path).select("low", split="train", where="difficulty<5")
    with loader([views["low"], views["train"]], st.Scheduled({0: [1, 0], 1: [1, 3]}, draws=10)) as run:
        assert max(ids(run)) < 5
        assert sum(i < 5 for i in ids(run)) in (2, 3)


def test_one_epoch_may_have_no_end(splits):
    source = st.Scheduled({0: [1, 0, 0], "10 samples": [0, 1, 1]}, draws=math.inf)
    with loader(splits, source, 5, order=st.Sequential()) as run:
        assert len(run) > 10**17
        batches = iter(run)
        shown = [int(i) for _ in range(6) for i in next(batches)["id"]]
        assert shown[:10] == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2] and min(shown[10:]) >= 7
        state = run.state_dict()
        following = [int(i) for i in next(batches)["id"]]
    with loader(splits, source, 5, order=st.Sequential()) as run:
        run.load_state_dict(state)
        assert [int(i) for i in next(iter(run))["id"]] == following


def test_a_substitute_is_of_the_same_member(tmp_path):
    # Every third image of the second dataset is damaged.
    splits = []
    for name, bad in (("good", ()), ("some", (0, 3, 6, 9))):
        with st.Writer(tmp_path / name, "train", labels=False) as writer:
            for n in range(12):
                writer.write({"key": f"{name}-{n}", "image": np.full((16, 16, 3), n, np.uint8)})
        shard = next((tmp_path / name).glob("*.tfrecord"))
        split = st.Dataset(tmp_path / name)["train"]
        data = bytearray(shard.read_bytes())
        for n in bad:
            at = data.index(bytes(split[n]["image"]))
            data[at + 30] ^= 255
        shard.write_bytes(bytes(data))
        splits.append(split)
    source = st.Scheduled({0: [1, 1]}, draws=24)
    options = {"source": source, "bad_samples": st.BadSamples("substitute", max_bad=1000), "order": st.Shuffled(2)}
    with st.Loader(splits, 4, [st.ResizeTo(8)], **options) as run:
        with pytest.warns(UserWarning):
            shown = ids(run)
    assert sum(i < 12 for i in shown) == 12 and not {12, 15, 18, 21} & set(shown)


def test_what_cannot_be_meant_is_refused_by_name(splits):
    def refused(words, source, error=st.OptionError, **options):
        with pytest.raises(error, match=words):
            loader(splits, source, **options)

    for stages in ({}, [[1, 2, 3]], None):
        with pytest.raises(st.OptionTypeError, match="stages"):
            st.Scheduled(stages)
    for start in (-1, math.nan, math.inf):
        with pytest.raises(st.OptionError, match="stages"):
            st.Scheduled({0: [1], start: [1]})
    for weights in ([-1, 2], [math.nan], [math.inf]):
        with pytest.raises(st.OptionError, match="weights"):
            st.Scheduled({0: weights})
    for weights in ("12", 5, None, [True], ["1"]):
        with pytest.raises(st.OptionTypeError, match="weights"):
            st.Scheduled({0: weights})
    with pytest.raises(st.OptionError, match="draws"):
        st.Scheduled({0: [1]}, draws=0)
    with pytest.raises(st.OptionError, match="weights"):
        st.Scheduled({0: [10**400, 1]})
    # Numbers of numpy are numbers.
    numbers = st.Scheduled({np.int64(0): np.array([1, 1, 1]), np.float64(0.5): [np.float32(1), 0, 0]}, epochs=np.int64(5))
    loader(splits, numbers).close()
    for where in (None, 5, [5]):
        with pytest.raises(st.OptionTypeError, match="where"):
            st.Stage([1], where=where)
    for start in (3, "20%"):
        with pytest.raises(st.OptionError, match="without an end"):
            st.Scheduled({0: [1], start: [2]}, draws=math.inf, epochs=4)
    for members in (None, 5):
        with pytest.raises(st.OptionTypeError, match="members"):
            st.Scheduled({0: [1]}, members=members)
    with pytest.raises(st.OptionError, match="members"):
        st.Scheduled({0: [1]}, members="labels")
    refused("stage 0 has 2 weights for 3 members .*one/train, two/train, three/train", st.Scheduled({0: [1, 2]}))
    refused("stage 0 begins at 1, which is not 0", st.Scheduled({1: [1, 1, 1]}, draws=30))
    refused("stage 1 begins at 0 samples, which is not after", st.Scheduled({0: [1, 1, 1], "0 samples": [1, 1, 2]}))
    refused("stage 2 begins at 1, which is not after", st.Scheduled({0: [1, 1, 1], 2: [1, 1, 2], 1: [1, 2, 1]}, draws=10))
    refused("stage 1 begins at 5, which is not before the end", st.Scheduled({0: [1, 1, 1], 5: [1, 1, 2]}, epochs=5))
    refused("no members", st.Scheduled({0: []}, members=[]))
    refused("list 1 has the id 999", st.Scheduled({0: [1, 0]}, members=[[1], [999]]))
    refused("weights of stage 1 are all 0", st.Scheduled({0: [1, 1, 1], 1: [0, 0, 0.0]}))
    refused("1331168.*1048576", st.Scheduled({0: [1281167, 50000, 1]}))
    refused("weight 0.000000001 of three/train", st.Scheduled({0: [1, 1, 1e-9]}))
    refused("20%.*epochs", st.Scheduled({0: [1, 1, 1], "20%": [1, 0, 0]}))
    refused("100%", st.Scheduled({0: [1, 1, 1], "100%": [1, 0, 0]}, epochs=5))
    refused("expected where it begins", st.Scheduled({0: [1, 1, 1], "soon": [1, 0, 0]}))
    refused("stage 0 has a weight for two/train where difficulty>50", st.Scheduled({0: st.Stage([0, 1, 0], where="difficulty>50")}))
    refused("stage 0.*hardness", st.Scheduled({0: st.Stage([1, 1, 0], where="hardness>50")}))
    refused("stage 1.*difficulty.* is int64", st.Scheduled({0: [1, 1, 1], 1: st.Stage([1, 1, 0], where="difficulty<x")}))
    refused(r"members\[0\].*shape", st.Scheduled({0: [1, 1]}, members=[np.ones(5, bool), [1]]))
    refused("id 31", st.Scheduled({0: [1, 1]}, members=[[31], [1]]))
    refused("stage 0 has a weight for list 0", st.Scheduled({0: [1, 1]}, members=[[], [1]]))
    refused("not a scheduled source", st.Scheduled({0: [1, 1, 1]}), replica=st.Replica(0, 1, policy="shard"))
    with pytest.raises(st.OptionError, match="not a scheduled source"):
        st.Loader(splits, 2, [st.Column("difficulty")], source=st.Scheduled({0: [1, 1, 1]}), buckets=st.LengthBuckets("difficulty", [50]))


def test_a_loader_pickles_with_its_schedule(splits):
    with loader(splits, st.Scheduled({0: [1, 1, 1], 1: st.Stage([1, 0, 0], where="difficulty<2")}, draws=9)) as run:
        first = ids(run)
        copy = pickle.loads(pickle.dumps(run))
    with copy:
        second = ids(copy)
        assert len(first) == len(second) == 9 and set(second) <= {0, 1}


def test_labels_without_names_may_be_any_numbers(tmp_path):
    with st.Writer(tmp_path / "hashes", "train", images=False, features={"difficulty": "int64"}) as writer:
        for n, label in enumerate((10**12, 0, 2**63 - 1, 10**12, 3)):
            writer.write({"key": str(n), "label": label, "difficulty": n})
    split = st.Dataset(tmp_path / "hashes")["train"]
    with loader([split], st.Scheduled({0: [0, 1, 2, 1]}, members="classes", draws=8)) as run:
        assert sorted(ids(run)) == [0, 0, 2, 2, 3, 3, 4, 4]
        assert [m["name"] for m in run.stats()["members"]] == ["class 0", "class 3", "class 1000000000000", f"class {2**63 - 1}"]


def test_members_have_names_of_their_own(tmp_path):
    splits = []
    for folder in ("x", "y"):
        with st.Writer(tmp_path / folder / "data", "train", images=False, labels=False, features={"difficulty": "int64"}) as writer:
            writer.write({"key": "a", "difficulty": 1})
        splits.append(st.Dataset(tmp_path / folder / "data")["train"])
    with loader([*splits, splits[0]], st.Scheduled({0: [0, 9, 1]}, draws=10)) as run:
        ids(run)
        names = [member["name"] for member in run.stats()["members"]]
        assert [member["samples"] for member in run.stats()["members"]] == [0, 9, 1]
    assert names == [f"{tmp_path}/x/data/train", f"{tmp_path}/y/data/train", f"{tmp_path}/x/data/train (2)"]


def test_a_schedule_keeps_what_was_checked(splits):
    weights = {0: [3, 1, 0]}
    source = st.Scheduled(weights, draws=8)
    weights[0][0] = 0
    weights.clear()
    with loader(splits, source) as run:
        assert sum(i < 7 for i in ids(run)) == 6


def test_conditions_keep_the_order_of_a_list_and_take_nothing_of_another_split(splits, tmp_path):
    source = st.Scheduled({0: st.Stage([1], where="difficulty>=2")}, members=[[25, 3, 8, 26, 4, 9]], draws=5)
    with loader(splits, source, order=st.Sequential()) as run:
        # The difficulties of 25, 3, 8, 26, 4 and 9 are 14, 3, 1, 15, 4 and 2.
        assert ids(run) == [25, 3, 26, 4, 9]
    with st.Writer(tmp_path / "none", "train", classes=["cat", "dog", "bird"], features={"difficulty": "int64"}, images=False):
        pass
    empty = st.Dataset(tmp_path / "none")["train"]
    assert len(empty) == 0
    source = st.Scheduled({0: st.Stage([1, 1, 0, 0], where="difficulty>=0")})
    with pytest.raises(st.OptionError, match="stage 0 has a weight for none/train where difficulty>=0, which has no samples"):
        loader([empty, *splits], source)


def test_a_mask_of_integers_is_asked_about(splits):
    numbers = np.array([0, 1] * 15 + [1])
    for source in (st.Subset(numbers), st.Scheduled({0: [1, 1]}, members=[[3], numbers])):
        with pytest.raises(st.OptionError, match="has 0 or 1 for each of 31 samples"):
            loader(splits, source)
    with loader(splits, st.Subset(numbers.astype(bool)), order=st.Sequential()) as run:
        assert ids(run) == [*range(1, 31, 2), 30]
    with loader(splits, st.Subset(numbers.astype(np.uint64)), order=st.Sequential()) as run:
        assert ids(run) == numbers.tolist()
