"""Names of classes in records become the ids of the classes: of objects, and of records with several."""

import json

import numpy as np
import pytest
import shardtool as st
from test_numbers import png

ANIMALS = [["owl", "cat"], [], ["cat"], ["emu", "owl", "owl"]]
NAMES = "image/object/class/text"


def pack(folder, animals=ANIMALS, **options):
    """Packs images whose objects, and themselves, have names of classes and no ids. Returns the split."""
    source = folder.with_name(f"{folder.name}-source")
    source.mkdir()
    lines = []
    for number, names in enumerate(animals):
        (source / f"{number}.png").write_bytes(png(number))
        boxes = [[0, 0, 2 + at, 3] for at in range(len(names))]
        objects = {"bbox": boxes, "category": names}
        lines.append(json.dumps({"path": f"{number}.png", "objects": objects, "kinds": names}))
    (source / "rows.jsonl").write_text("\n".join(lines) + "\n")
    st.pack(source / "rows.jsonl", folder, seed=None, **options)
    return st.Dataset(folder).split("train")


def labels(split, batch=4, **options):
    """Returns the labels of each row's objects."""
    loader = st.Loader(split, batch, [st.Image([st.ResizeTo(8)]), st.Objects(min_size=0, min_area=0)], order=st.Sequential(), **options)
    return [batch["labels"].row(row).tolist() for batch in loader for row in range(len(batch["image"]))]


def ids(classes, animals=ANIMALS):
    return [[classes.index(name) for name in names] for names in animals]


def test_objects_without_ids_have_those_of_their_names(tmp_path):
    split = pack(tmp_path / "a")
    assert "image/object/class/label" not in split.features and split.features[NAMES] == "bytes"
    for classes in (["cat", "emu", "owl"], ["owl", "cat", "bat", "emu"]):
        found = labels(split, classes=classes)
        assert found == ids(classes)
    with pytest.raises(st.OptionError, match="names of classes, and the dataset does not say their ids: give the names"):
        labels(split)
    with pytest.raises(st.OptionError, match="'?cat'? occurs twice|occurs twice"):
        labels(split, classes=["cat", "emu", "owl", "cat"])


def test_a_name_that_no_class_has_is_a_bad_sample(tmp_path):
    split = pack(tmp_path / "a")
    loader = st.Loader(
        split, 4, [st.Image([st.ResizeTo(8)]), st.Objects(min_size=0, min_area=0)], order=st.Sequential(), classes=["cat", "owl"], bad_samples="mask"
    )
    (batch,) = loader
    assert batch["valid"].tolist() == [True, True, True, False]
    with pytest.raises(st.BadSampleError, match='has "emu", which is not among the names of the classes'):
        labels(split, classes=["cat", "owl"], bad_samples="error")


def test_two_datasets_agree_by_their_names(tmp_path):
    """One has ids, the other names: the same classes."""
    named = pack(tmp_path / "a")
    folder = tmp_path / "b"
    with st.Writer(folder, classes=["owl", "emu", "cat"], labels=False) as writer:
        for number, names in enumerate(ANIMALS):
            objects = {"bbox": [[0, 0, 2, 3] for _ in names], "category": [["owl", "emu", "cat"].index(name) for name in names]}
            writer.write({"key": f"b{number}", "image": png(number), "objects": objects})
    classes = ["cat", "emu", "owl"]
    assert labels(named, classes=classes) == labels(st.Dataset(folder).split("train"), classes=classes) == ids(classes)


def test_a_run_is_not_resumed_with_other_names(tmp_path):
    split, fields = pack(tmp_path / "a"), [st.Image([st.ResizeTo(8)]), st.Objects(min_size=0, min_area=0)]
    loader = st.Loader(split, 2, fields, classes=["cat", "emu", "owl"])
    next(iter(loader))
    state = loader.state_dict()
    st.Loader(split, 2, fields, classes=["cat", "emu", "owl"]).load_state_dict(state)
    with pytest.raises(st.StateError):
        st.Loader(split, 2, fields, classes=["owl", "emu", "cat"]).load_state_dict(state)


def test_several_names_of_a_record(tmp_path):
    split = pack(tmp_path / "a")
    classes = ["emu", "owl", "cat"]
    loader = st.Loader(split, 4, [st.Column("kinds", multi_hot=3)], order=st.Sequential(), classes=classes)
    (batch,) = loader
    expected = [[float(name in names) for name in classes] for names in ANIMALS]
    np.testing.assert_array_equal(batch["kinds"], np.float32(expected))
    with pytest.raises(st.OptionError, match="`kinds` has names of classes"):
        st.Loader(split, 4, [st.Column("kinds", multi_hot=3)])
    with pytest.raises(st.BadSampleError, match="kinds"):
        list(st.Loader(split, 4, [st.Column("kinds", multi_hot=2)], classes=classes, bad_samples="error"))


def test_objects_have_classes_of_their_own(tmp_path):
    """The image has a label, whose classes are not those of its objects."""
    source = tmp_path / "source"
    source.mkdir()
    lines = []
    for number, names in enumerate(ANIMALS):
        (source / f"{number}.png").write_bytes(png(number))
        objects = {"bbox": [[0, 0, 2, 3] for _ in names], "category": names}
        lines.append(json.dumps({"path": f"{number}.png", "label": ["outdoor", "cat"][number % 2], "objects": objects}))
    (source / "rows.jsonl").write_text("\n".join(lines))
    st.pack(source / "rows.jsonl", tmp_path / "dataset", seed=None)
    split = st.Dataset(tmp_path / "dataset").split("train")
    fields = [st.Image([st.ResizeTo(8)]), st.Objects(min_size=0, min_area=0)]
    # `cat` is a class of the images, too.
    with pytest.raises(st.OptionError, match=r"the classes of train of .* are those of its labels.*Objects\(classes=…\)"):
        st.Loader(split, 4, fields)
    classes, states = ["owl", "cat", "emu"], []
    for names in (classes, classes[::-1]):
        own = st.Objects(min_size=0, min_area=0, classes=names)
        loader = st.Loader(split, 4, [fields[0], own], order=st.Sequential())
        (batch,) = loader
        assert [batch["labels"].row(row).tolist() for row in range(4)] == ids(names)
        assert batch["label"].tolist() == [1, 0, 1, 0] and loader.classes == ["cat", "outdoor"]
        states.append(loader.state_dict()["fingerprint"] if "fingerprint" in loader.state_dict() else str(loader.state_dict()))
    assert states[0] != states[1]
    with pytest.raises(st.OptionError, match="is for names in `image/object/class/text`"):
        st.Loader(numbered(tmp_path / "ids"), 4, [fields[0], st.Objects(classes=classes)])


def numbered(folder, names=None, offset=0):
    """Returns a split whose objects have ids and, if `names` are given, names too."""
    with st.Writer(folder, labels=False, classes=[] if names else sorted({"cat", "emu", "owl"})) as writer:
        for number, animals in enumerate(ANIMALS):
            classes = [["cat", "emu", "owl"].index(name) + offset for name in animals]
            sample = {"key": f"i{number}", "image": png(number), "objects": {"bbox": [[0, 0, 2, 3] for _ in animals], "category": classes}}
            writer.write({**sample, **({NAMES: animals} if names else {})})
    return st.Dataset(folder).split("train")


def test_names_and_ids_of_objects_do_not_mix_by_chance(tmp_path):
    named, ids_only = pack(tmp_path / "a"), numbered(tmp_path / "b")
    fields, classes = [st.Image([st.ResizeTo(8)]), st.Objects(min_size=0, min_area=0)], ["cat", "emu", "owl"]
    with pytest.raises(st.OptionError, match="has ids of the classes of objects, and train of .*a only their names"):
        st.Loader([named, ids_only], 4, fields, classes=classes)
    # As in TensorFlow's Object Detection: ids from 1, and names.
    both = numbered(tmp_path / "c", names=True, offset=1)
    assert labels(both) == [[label + 1 for label in row] for row in ids(classes)]
    assert labels(both, classes=classes) == ids(classes)
    assert labels([both, named], classes=classes) == 2 * ids(classes)


def test_a_column_of_the_objects_is_not_lost(tmp_path):
    split = pack(tmp_path / "a")
    fields = [st.Image([st.ResizeTo(8)]), st.Objects(), st.Column(NAMES, multi_hot=3)]
    with pytest.raises(st.OptionError, match="belongs to the objects, which deliver it"):
        st.Loader(split, 4, fields, classes=["cat", "emu", "owl"])
    fields[1] = st.Objects(properties=[])
    loader = st.Loader(split, 4, fields, classes=["cat", "emu", "owl"], order=st.Sequential())
    (batch,) = loader
    assert batch[NAMES][0].tolist() == [1, 0, 1] and "boxes" in batch
