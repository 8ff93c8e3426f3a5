"""Splits keep their names, from Python; what pack leaves out, and what it refuses."""

import io
import tarfile

import pytest
from PIL import Image

import shardtool as st


def put(path, colour=90):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (24, 20), (colour, 80, 10)).save(path, "JPEG")


def tar(path, members):
    """A tar of images, and of texts where they are given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = io.BytesIO()
    Image.new("RGB", (16, 16), (3, 200, 40)).save(image, "JPEG")
    with tarfile.open(path, "w") as out:
        for name, text in members.items():
            content = image.getvalue() if text is None else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))


def sizes(dataset):
    opened = st.Dataset(dataset)
    return {name: len(opened.split(name)) for name in opened.splits}


def test_folders_become_splits_with_one_list_of_classes(tmp_path):
    for name in ("train/cat/0.jpg", "train/dog/1.jpg", "val/dog/2.jpg"):
        put(tmp_path / "data" / name)
    packed = st.pack(tmp_path / "data", tmp_path / "set")
    assert sizes(tmp_path / "set") == {"train": 2, "val": 1}
    assert [(split.split, split.samples) for split in packed.splits] == [("train", 2), ("val", 1)]
    assert (packed.split, packed.images, packed.samples, packed.classes) == ("train, val", 3, 3, 2)
    assert st.Dataset(tmp_path / "set").split("val").classes == ["cat", "dog"]
    assert st.pack(tmp_path / "data", tmp_path / "set") == packed
    one = st.pack(tmp_path / "data", tmp_path / "one", split="val")
    assert (one.split, one.splits, one.images) == ("val", (), 1)
    classes = st.pack(tmp_path / "data", tmp_path / "classes", splits="none")
    assert (classes.split, classes.classes) == ("train", 2)
    assert st.Dataset(tmp_path / "classes").split("train").classes == ["train", "val"]


def test_what_is_in_doubt_is_refused_and_the_option_named(tmp_path):
    for name in ("train/0.jpg", "test/1.jpg", "extra/2.jpg"):
        put(tmp_path / "data" / name)
    with pytest.raises(st.PackError, match="splits, or classes"):
        st.pack(tmp_path / "data", tmp_path / "set")
    st.pack(tmp_path / "data", tmp_path / "set", splits="names")
    assert sizes(tmp_path / "set") == {"extra": 1, "test": 1, "train": 1}
    with pytest.raises(st.OptionError, match="splits"):
        st.pack(tmp_path / "data", tmp_path / "set", splits="maybe")
    tar(tmp_path / "a.tar", {"c.0.jpg": None, "c.0.cls": "1", "c.1.jpg": None, "c.1.cls": "2"})
    with pytest.raises(st.PackError, match='`member_key="last-dot"`'):
        st.pack(tmp_path / "a.tar", tmp_path / "tars")
    assert st.pack(tmp_path / "a.tar", tmp_path / "tars", member_key="last-dot").images == 2


def test_parts_of_several_splits(tmp_path):
    tar(tmp_path / "data" / "x-train-0.tar", {"a.jpg": None, "a.cls": "dog"})
    tar(tmp_path / "data" / "x-test-0.tar", {"b.jpg": None, "b.cls": "cat"})
    assert st.write_plan(tmp_path / "data", tmp_path / "set") == 2
    with pytest.raises(st.PackError, match="the splits test, train"):
        st.pack_part(tmp_path / "data", tmp_path / "set", (0, 1))
    for split in ("test", "train"):
        st.pack_part(tmp_path / "data", tmp_path / "set", (0, 1), split=split)
        st.commit(tmp_path / "set", split)
    assert sizes(tmp_path / "set") == {"test": 1, "train": 1}
    assert st.Dataset(tmp_path / "set").split("test").classes == ["cat", "dog"]


def test_nothing_accepted_is_an_error_with_the_first_reason(tmp_path):
    (tmp_path / "data" / "cat").mkdir(parents=True)
    (tmp_path / "data" / "cat" / "0.jpg").write_bytes(b"no image")
    with pytest.raises(st.PackError, match="cat/0.jpg"):
        st.pack(tmp_path / "data", tmp_path / "set")
    with pytest.warns(UserWarning, match="rejected 1"):
        assert st.pack(tmp_path / "data", tmp_path / "empty", allow_empty=True).samples == 1
    put(tmp_path / "data" / "cat" / "0.jpg")
    assert st.pack(tmp_path / "data", tmp_path / "set").images == 1


def test_what_is_no_input_is_named(tmp_path):
    put(tmp_path / "data" / "cat" / "0.jpg")
    put(tmp_path / "data" / "__MACOSX" / "cat" / "._0.jpg")
    with pytest.warns(UserWarning, match="__MACOSX"):
        assert st.pack(tmp_path / "data", tmp_path / "set").left_out == ("__MACOSX",)
    assert st.Dataset(tmp_path / "set").split("train").classes == ["cat"]
