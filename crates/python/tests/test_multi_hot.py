"""Labels of several classes for each record, as rows of 0 and 1."""

import numpy as np
import pytest
from PIL import Image

import shardtool as st

C = 6
TAGS = [[], [0], [5, 2], [1, 1, 3], list(range(C)), [4]]
IMAGE = st.Image([st.CenterCrop(8)])


def write(path, tags, name="tags", **options):
    with st.Writer(path, "train", features={name: "int64"}, **options) as writer:
        for number, ids in enumerate(tags):
            image = Image.new("RGB", (9, 9), (10 * number, 0, 0))
            writer.write({"key": f"{number:02}", "image": image, name: ids})
    return st.Dataset(path)["train"]


def hot(ids):
    row = np.zeros(C, np.float32)
    row[ids] = 1
    return row


def test_each_class_id_has_a_one(tmp_path):
    split = write(tmp_path, TAGS * 3)
    with st.Loader(split, 4, [IMAGE, st.Column("tags", multi_hot=C)], order=st.Shuffled(3), remainder="mask") as loader:
        for _ in range(2):
            for batch in loader:
                assert batch["tags"].dtype == np.float32 and batch["tags"].shape == (4, C)
                expected = [hot(TAGS[id_ % 6]) if valid else np.zeros(C) for id_, valid in zip(batch["id"], batch["valid"])]
                np.testing.assert_array_equal(batch["tags"], expected)


@pytest.mark.parametrize("transform", [st.MixUp(0.7, num_classes=C), st.CutMix(1.0, num_classes=C), st.Mosaic(num_classes=C)])
def test_rows_are_mixed_with_the_shares_of_their_images(tmp_path, transform):
    """A label of one class is mixed as torchvision does; each one-hot row must get the same numbers."""
    split = write(tmp_path / "one", [[number % C] for number in range(16)], "one")
    with st.Writer(tmp_path / "both", "train", features={"one": "int64"}, classes=[f"{n}" for n in range(C)]) as writer:
        for number in range(16):
            image = Image.new("RGB", (9, 9), (10 * number, 0, 0))
            writer.write({"key": f"{number:02}", "image": image, "label": number % C, "one": [number % C]})
    split = st.Dataset(tmp_path / "both")["train"]
    fields = [IMAGE, st.Column("one", multi_hot=C)]
    options = {"batch_transform": transform, "order": st.Shuffled(2), "remainder": "mask"}
    mixed = 0
    with st.Loader(split, 6, fields, **options) as loader:
        for batch in loader:
            assert batch["label"].shape == (6, C)
            np.testing.assert_allclose(batch["one"], batch["label"], atol=1e-7)
            mixed += int(((batch["one"] > 0) & (batch["one"] < 1)).any(1).sum())
    assert mixed > 5


def test_several_classes_are_mixed(tmp_path):
    """Each row is shown with the same shares in all, so that the sums stay."""
    split = write(tmp_path, TAGS)
    fields = [IMAGE, st.Column("tags", multi_hot=C)]
    with st.Loader(split, 6, fields, batch_transform=st.MixUp(1.0, num_classes=C), order=st.Sequential()) as loader:
        batch = next(iter(loader))
    assert ((batch["tags"] > 0) & (batch["tags"] < 1)).any()
    np.testing.assert_allclose(batch["tags"].sum(0), np.sum([hot(ids) for ids in TAGS], 0), atol=1e-5)


def test_an_id_that_is_no_class_is_a_bad_sample(tmp_path):
    for number, (wrong, message) in enumerate([([6], "class id 6; expected 0 to 5"), ([-1], "class id -1")]):
        split = write(tmp_path / f"{number}", [[1], [1, *wrong], [2]])
        fields = [IMAGE, st.Column("tags", multi_hot=C)]
        with (
            st.Loader(split, 3, fields, bad_samples=st.BadSamples("error")) as loader,
            pytest.raises(st.ShardtoolError, match=message),
        ):
            next(iter(loader))


def test_what_cannot_be_multi_hot_is_refused(tmp_path):
    with st.Writer(tmp_path, "train", features={"weight": "float", "tags": "int64"}) as writer:
        writer.write({"key": "a", "image": Image.new("RGB", (9, 9)), "weight": 0.5, "tags": [1]})
    split = st.Dataset(tmp_path)["train"]
    with pytest.raises(st.ShardtoolError, match="`weight`.*class ids"):
        st.Loader(split, 1, [IMAGE, st.Column("weight", multi_hot=3)])
    with pytest.raises(st.ShardtoolError, match="`draw` and `multi_hot`"):
        st.Loader(split, 1, [IMAGE, st.Column("tags", multi_hot=3, draw=True)])
    with pytest.raises(st.ShardtoolError, match="multi_hot"):
        st.Column("tags", multi_hot=0)
