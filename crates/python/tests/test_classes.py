"""Labels keep their meaning where splits meet: classes are compared, and mapped, by name."""

import itertools
import json
import warnings

import numpy as np
import pytest
import shardtool as st
from PIL import Image

STEPS = [st.RandomResizedCrop(8)]


def pixels(number):
    return np.full((12, 12, 3), number * 9, np.uint8)


@pytest.fixture
def make(tmp_path):
    """Writes a dataset of one label for each sample, whose key ends in the name of its class."""

    def make(name, classes, labels, **more):
        with st.Writer(tmp_path / name, "train", classes=classes) as writer:
            for number, label in enumerate(labels):
                sample = {"key": f"{name}-{number}-{label}", "image": pixels(number), "label": label}
                writer.write({**sample, **{feature: values[number] for feature, values in more.items()}})
        return st.Dataset(tmp_path / name)["train"]

    return make


@pytest.fixture
def pets(make):
    return [
        make("one", ["cat", "dog"], ["cat", "dog", "dog", "cat"]),
        make("two", ["dog", "cat"], ["dog", "cat", "cat"]),
        make("three", ["cat", "bird", "dog"], ["bird", "dog", "cat", "bird", "dog"]),
    ]


def delivered(loader):
    """Returns the name of each sample's class by its key, as the loader's labels say."""
    records = loader.dataset
    labels = [(int(id), int(label)) for batch in loader for id, label in zip(batch["id"], batch["label"]) if id >= 0]
    return {records[id]["key"]: loader.classes[label] for id, label in labels}


def loader(splits, *more, **options):
    """Returns a loader of images and `more` fields."""
    return st.Loader(splits, 3, [st.Image(STEPS), *more], order=st.Sequential(), **options)


def test_splits_with_other_classes_are_refused_by_name(pets):
    for splits in itertools.permutations(pets, 2):
        with pytest.raises(st.OptionError, match="the classes of the splits differ: label [01] is ") as refused:
            loader(list(splits))
        text = str(refused.value)
        # The cures, and both datasets, whose splits have one name.
        assert all(str(split.path) in text for split in splits) and "`classes`" in text and "list of class names" in text
    with pytest.raises(st.OptionError, match='label 1 is "dog" in train of .*one, and is "bird" in train of .*three'):
        loader([pets[0], pets[2]])


@pytest.mark.parametrize("classes", ["union", ["dog", "bird", "cat"], ["ant", "cat", "bird", "dog"]])
def test_labels_are_mapped_by_name(pets, classes):
    with loader(pets, classes=classes) as mapped:
        assert mapped.classes == (["cat", "dog", "bird"] if classes == "union" else classes)
        names = delivered(mapped)
    assert len(names) == 12
    assert all(key.endswith(f"-{name}") for key, name in names.items())


@pytest.mark.parametrize("source", [None, st.Mixture([1, 1, 1], draws=30), st.Balanced(), st.Subset([0, 4, 11])])
def test_sources_do_not_change_what_a_label_means(pets, source):
    with loader(pets, classes="union", source=source) as mapped:
        names = delivered(mapped)
    assert names and all(key.endswith(f"-{name}") for key, name in names.items())


def test_balanced_counts_classes_by_name(pets):
    with loader(pets, classes="union", source=st.Balanced()) as mapped:
        labels = [label for _ in range(4) for batch in mapped for label in batch["label"].tolist() if label >= 0]
    counts = [labels.count(label) for label in range(3)]
    assert max(counts) - min(counts) <= 1


def test_evaluation_uses_the_classes_of_training(pets, make):
    train, alone = pets[2], make("alone", ["cat", "dog"], ["dog", "cat"])
    with loader(alone, classes=train.classes) as evaluation:
        assert [batch["label"].tolist()[:2] for batch in evaluation] == [[2, 0]]
    with loader(train) as training, loader(alone) as evaluation:
        next(iter(training))
        with pytest.warns(st.ShardtoolWarning, match="class 'dog' has the id 1 in .*alone, but 2 in .*three"):
            next(iter(evaluation))


def test_splits_whose_classes_are_not_delivered_need_not_agree(tmp_path):
    splits = []
    for name, classes in (("first", ["cat", "dog"]), ("second", ["dog", "cat"])):
        folder = tmp_path / name
        folder.mkdir()
        Image.fromarray(pixels(3)).save(folder / "a.png")
        document = {
            "images": [{"id": 0, "file_name": "a.png", "width": 12, "height": 12}],
            "categories": [{"id": id, "name": label} for id, label in enumerate(classes)],
            "annotations": [{"id": 0, "image_id": 0, "category_id": 0, "bbox": [1, 2, 5, 6]}],
        }
        (folder / "instances.json").write_text(json.dumps(document))
        st.pack(folder / "instances.json", tmp_path / f"{name}-set")
        splits.append(st.Dataset(tmp_path / f"{name}-set")["train"])
    objects = st.Objects()
    with pytest.raises(st.OptionError, match="the classes of the splits differ"):
        loader(splits, objects)
    # Images alone, and boxes without classes.
    for more in ([], [st.Objects(properties=())]):
        with loader(splits, *more) as images:
            assert images.classes == [] and next(iter(images))["id"].tolist()[:2] == [0, 1]
    # Their classes are no finding for other loaders either.
    with warnings.catch_warnings(), loader(splits) as images, loader(splits[0], objects) as boxes:
        warnings.simplefilter("error")
        next(iter(images)), next(iter(boxes))
        assert boxes.classes == ["cat", "dog"]


def test_a_closed_loader_is_not_compared(pets):
    with loader(pets[0]) as first:
        next(iter(first))
    with warnings.catch_warnings(), loader(pets[1]) as second:
        warnings.simplefilter("error")
        next(iter(second))


def test_other_classes_of_an_unrelated_dataset_are_no_finding(pets, make):
    digits = make("digits", ["zero", "one"], ["one", "zero"])
    with warnings.catch_warnings(), loader(pets[0]) as first, loader(digits) as second:
        warnings.simplefilter("error")
        next(iter(first)), next(iter(second))


def test_names_that_do_not_fit_are_refused(pets):
    for classes, message in (
        (["cat"], 'class "dog" of train of .*one is not among'),
        (["cat", "dog", "cat"], 'class "cat" occurs twice'),
        ("same", 'expected "union", "ids"'),
        (3, "expected a list of names"),
        ([1, 2], "expected a list of names"),
    ):
        with pytest.raises((st.OptionError, st.errors.OptionTypeError), match=message):
            loader(pets[:1], classes=classes)


def test_numbers_and_names_are_different_unless_the_user_says_otherwise(pets, make):
    numbers = make("numbers", (), [1, 0])
    for splits in ([pets[0], numbers], [numbers, pets[0]]):
        with pytest.raises(st.OptionError, match="one names its 2 classes, train of .*numbers has numbers only"):
            loader(splits)
        with pytest.raises(st.OptionError, match="numbers does not name its classes"):
            loader(splits, classes="union")
    with loader([pets[0], numbers], classes="ids") as same:
        assert same.classes == ["cat", "dog"]
        assert [batch["label"].tolist() for batch in same] == [[0, 1, 1], [0, 1, 0]]


def test_a_state_of_another_mapping_is_refused(pets):
    with loader(pets, classes="union") as first:
        next(iter(first))
        state = first.state_dict()
    with loader(pets, classes=["cat", "dog", "bird", "new"]) as same:
        # The same ids: a class that no split has changes nothing.
        same.load_state_dict(state)
        assert next(iter(same))["id"].tolist() == [3, 4, 5]
    for classes in ("ids", ["dog", "cat", "bird"]):
        with loader(pets, classes=classes) as other, pytest.raises(st.errors.StateError):
            other.load_state_dict(state)


def test_a_feature_of_two_types_is_refused(make):
    whole = make("whole", ["a"], ["a", "a"], score=[1, 2])
    real = make("real", ["a"], ["a", "a"], score=[0.5, 1.5])
    none = make("none", ["a"], ["a", "a"])
    loader([whole, real])
    with pytest.raises(st.OptionError, match="`score` is int64 in train of .*whole, and float in train of .*real"):
        loader([whole, real], "score")
    with pytest.raises(st.OptionError, match="none has no feature `score`"):
        loader([whole, none], "score")


def test_labelled_and_unlabelled_splits_do_not_mix_in_silence(make, tmp_path):
    labelled = make("labelled", ["a"], ["a", "a"])
    with st.Writer(tmp_path / "bare", "train") as writer:
        writer.write({"key": "0", "image": pixels(0)})
    bare = st.Dataset(tmp_path / "bare")["train"]
    for splits in ([labelled, bare], [bare, labelled]):
        with pytest.raises(st.OptionError, match="no label") as refused:
            loader(splits)
        assert all(str(split.path) in str(refused.value) for split in splits)


def test_classes_of_objects_are_mapped_by_name(tmp_path):
    splits = []
    for name, classes, ids in (("first", ["cat", "dog"], [1, 0]), ("second", ["dog", "cat"], [0, 1])):
        with st.Writer(tmp_path / name, "train", classes=classes) as writer:
            objects = {"bbox": [[1, 1, 6, 6], [2, 2, 8, 8]], "category": ids}
            writer.write({"key": name, "image": pixels(1), "label": "cat", "objects": objects})
        splits.append(st.Dataset(tmp_path / name)["train"])
    objects = st.Objects()
    with pytest.raises(st.OptionError, match="the classes of the splits differ"):
        st.Loader(splits, 2, [st.Image([st.CenterCrop(12)]), objects])
    with st.Loader(splits, 2, [st.Image([st.CenterCrop(12)]), objects], order=st.Sequential(), classes="union") as mapped:
        batch = next(iter(mapped))
    labels = batch["labels"]
    assert labels.values.tolist() == [1, 0, 1, 0]
    assert batch["label"].tolist() == [0, 0]


def test_number_of_classes_without_names(make):
    assert make("named", ["a", "b", "c"], ["a"]).num_classes == 3
    assert make("numbers", (), [0, 6, 2]).num_classes == 7


def test_mixture_takes_shares_as_they_are_written(pets):
    def ids(shares):
        with loader(pets, classes="union", source=st.Mixture(shares, draws=30)) as mixed:
            return [batch["id"].tolist() for batch in mixed]

    assert ids([0.7, 0.2, 0.1]) == ids([7, 2, 1])
    assert ids([0.5, 0.25, 0.25]) == ids([2, 1, 1])
    for shares, message in (
        ([0, 0], "not all 0"), ([-1, 2], "at least 0"), ([float("nan"), 1], "at least 0"), ([1e-30, 1], "no common unit"),
    ):  # fmt: skip
        with pytest.raises(st.OptionError, match=message):
            st.Mixture(shares)
    with pytest.raises(st.OptionError, match="2 shares for 3 splits"):
        loader(pets, classes="union", source=st.Mixture([1, 2]))


def test_words_of_the_dataloader_are_answered(pets):
    for argument, answer in (
        ("shuffle", "`order"), ("num_workers", "`workers`"), ("drop_last", "`remainder"), ("sampler", "`source"),
        ("pin_memory", "leave it out"), ("transform", "third argument"), ("columns", "among the `fields`"),
        ("seed", "`order=st.Shuffled"), ("mean", "`st.Image"), ("on_bad", "`bad_samples="), ("rank", "`replica=st.Replica"),
        ("batchsize", "did you mean `batch_size`"), ("zzz", "help"),
    ):  # fmt: skip
        with pytest.raises(st.errors.OptionTypeError, match=answer):
            loader(pets[0], **{argument: 1})


def test_the_replica_is_found_again_at_each_epoch(make, monkeypatch):
    split = make("many", ["a"], ["a"] * 12)
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    order, given = st.Shuffled(3), st.Replica(1, 2)
    with st.Loader(split, 2, STEPS, order=order) as early, st.Loader(split, 2, STEPS, order=order, replica=given) as second:
        begun = iter(early)
        next(begun)
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("LOCAL_RANK", "1")
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
        second.set_epoch(1)
        assert [batch["id"].tolist() for batch in early] == [batch["id"].tolist() for batch in second]
        with pytest.raises(st.errors.UsageError, match="this iteration ended"):
            next(begun)
        assert early.state_dict() == second.state_dict()
