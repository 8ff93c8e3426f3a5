"""Names that a source has, and names that the user gives: of classes, splits, fields and options. Where they contradict each
other, `pack` refuses, and the message says what to do."""

import csv
import json
import os
import subprocess
import tarfile

import numpy as np
import pytest
import shardtool as st
from PIL import Image

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def export(dataset, destination, kind):
    command = [os.environ.get("SHARDTOOL", "shardtool"), "export", dataset, destination, "--to", kind]
    subprocess.run(command, check=True, capture_output=True)


def jpeg(folder, name="a.jpg", size=(40, 20), shade=90):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, 40, 200 - shade)).save(path)
    return path


def write_parquet(path, columns, class_labels=None):
    """Writes images, and columns; `class_labels` are the names of classes by column, as Hugging Face states them."""
    count = len(next(iter(columns.values())))
    image = jpeg(path.parent / "image").read_bytes()
    table = pyarrow.table({"image": [{"bytes": image, "path": f"{i}.jpg"} for i in range(count)], **columns})
    if class_labels:
        features = {name: {"names": names, "_type": "ClassLabel"} for name, names in class_labels.items()}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(table, path)
    return path


def classes_file(path, *names):
    path.write_text("\n".join(names))
    return path


def refused(match, source, destination, **options):
    with pytest.raises(st.ShardtoolError, match=match):
        st.pack(source, destination, **options)
    assert not (destination / "dataset.json").exists()


def named(dataset):
    """Returns the name of each sample's class, as the dataset's list and as the record itself says."""
    split = st.Dataset(dataset)["train"]
    labels = [record["features"]["image/class/label"] for record in split]
    texts = [record["features"].get("image/class/text", b"").decode() for record in split]
    assert [split.classes[label] for label in labels] == texts
    return sorted(texts)


@pytest.mark.parametrize("kind", ["webdataset", "parquet", "tfrecord"])
def test_classes_that_the_source_names_keep_their_names(kind, tmp_path):
    for name in ["cat", "dog"]:
        jpeg(tmp_path / "photos" / name)
    st.pack(tmp_path / "photos", tmp_path / "first")
    export(tmp_path / "first", tmp_path / "exported", kind)
    for given in [["dog", "cat"], ["x", "y"], ["cat"]]:
        file = classes_file(tmp_path / "names.txt", *given)
        refused("class id [01] is `(cat|dog)` in the source", tmp_path / "exported", tmp_path / "other", classes=file)
    file = classes_file(tmp_path / "names.txt", "cat", "dog", "emu")
    st.pack(tmp_path / "exported", tmp_path / "again", classes=file)
    assert st.Dataset(tmp_path / "again").classes == ["cat", "dog", "emu"] and named(tmp_path / "again") == ["cat", "dog"]


def test_an_offset_moves_the_names_of_labels(tmp_path):
    source = write_parquet(tmp_path / "train.parquet", {"label": [1, 2]}, {"label": ["background", "cat", "dog"]})
    st.pack(source, tmp_path / "offset", label_offset=1)
    assert st.Dataset(tmp_path / "offset").classes == ["cat", "dog"] and named(tmp_path / "offset") == ["cat", "dog"]
    refused("label offset.*no names below 0", source, tmp_path / "below", label_offset=-1)
    texts = write_parquet(tmp_path / "texts.parquet", {"label": ["cat", "dog"]})
    refused("label offset.*names", texts, tmp_path / "texts", label_offset=1)


def test_a_label_beyond_the_names_of_the_source_is_no_class(tmp_path):
    source = write_parquet(tmp_path / "train.parquet", {"label": [0, 5, 1]}, {"label": ["cat", "dog"]})
    packed = st.pack(source, tmp_path / "out")
    assert (packed.samples, packed.rejected) == (3, 1) and named(tmp_path / "out") == ["cat", "dog"]


def test_an_index_of_records_takes_no_names_and_no_negative_ids(tmp_path):
    for name in ["cat", "dog"]:
        jpeg(tmp_path / "photos" / name)
    st.pack(tmp_path / "photos", tmp_path / "first")
    export(tmp_path / "first", tmp_path / "exported", "tfrecord")
    with pytest.raises(st.ShardtoolError, match="classes: expected none"):
        st.index(tmp_path / "exported", classes=classes_file(tmp_path / "names.txt", "dog", "cat"))
    with pytest.raises(st.ShardtoolError, match="label offset: expected at most the smallest label"):
        st.index(tmp_path / "exported", label_offset=1)


def test_columns_with_classes_that_are_not_the_label_are_asked_about(tmp_path):
    names = {"fine": ["a", "b"], "coarse": ["c"]}
    source = write_parquet(tmp_path / "train.parquet", {"fine": [1, 0], "coarse": [0, 0]}, names)
    refused("coarse, fine have names of classes.*`map={\"label\": \"coarse\"}`", source, tmp_path / "out")
    st.pack(source, tmp_path / "fine", map={"label": "fine"})
    assert named(tmp_path / "fine") == ["a", "b"]
    st.pack(source, tmp_path / "none", map={"label": "none"})
    assert "image/class/label" not in st.Dataset(tmp_path / "none").features


def test_two_columns_of_one_name_and_fields_that_nobody_has(tmp_path):
    image = jpeg(tmp_path).read_bytes()
    twice = pyarrow.table([[image], [1], [2]], names=["image", "x", "x"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    refused("two columns have the name `x`", tmp_path / "twice.parquet", tmp_path / "out")
    source = write_parquet(tmp_path / "train.parquet", {"class": [1, 0]})
    for ours in ["label", "key", "other"]:
        refused("the field `clas`, but no sample has it; they have: .*", source, tmp_path / "out", map={ours: "clas"})


def write_list(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.mark.parametrize("header", [["path", "Label"], ["path", " label"], ["Path", "label"], ["PATH", "label"]])
def test_columns_that_are_nearly_named_are_asked_about(header, tmp_path):
    jpeg(tmp_path)
    source = write_list(tmp_path / "list.csv", header, [["a.jpg", "cat"]])
    refused("nearly the name", source, tmp_path / "out")


def test_a_label_with_members_is_asked_about(tmp_path):
    jpeg(tmp_path)
    (tmp_path / "list.jsonl").write_text(json.dumps({"path": "a.jpg", "label": {"id": 1, "name": "cat"}}))
    refused("`label/id`: nearly the name `label`", tmp_path / "list.jsonl", tmp_path / "out")


@pytest.mark.parametrize("values", [["train", "val"], ["Training", "Test"], ["val", "val"]])
def test_a_column_of_splits_is_asked_about(values, tmp_path):
    jpeg(tmp_path), jpeg(tmp_path, "b.jpg")
    rows = list(zip(["a.jpg", "b.jpg"], values))
    sources = [
        write_list(tmp_path / "list.csv", ["path", "subset"], rows),
        write_parquet(tmp_path / "data.parquet", {"subset": values}),
    ]
    for number, source in enumerate(sources):
        refused("subset names splits .*but all samples would be packed as `train`.*splits=.none", source, tmp_path / "out")
        st.pack(source, tmp_path / f"out-{number}", splits="none")
        found = [record["features"]["subset"].decode() for record in st.Dataset(tmp_path / f"out-{number}")["train"]]
        assert sorted(found) == sorted(values)
    # Words that are not all names of splits, and the split that is packed.
    for name, words in [("words", ["train", "bus"]), ("same", ["train", "Train2017"])]:
        st.pack(write_list(tmp_path / f"{name}.csv", ["path", "subset" if name == "same" else "vehicle"], list(zip(["a.jpg", "b.jpg"], words))), tmp_path / name)


def test_folders_of_splits_in_a_tar_are_asked_about(tmp_path):
    path = jpeg(tmp_path)
    with tarfile.open(tmp_path / "photos.tar", "w") as tar:
        for name in ["train/a.jpg", "val/a.jpg"]:
            tar.add(path, name)
    refused("the first folder of the names names splits \\(train, val\\)", tmp_path / "photos.tar", tmp_path / "out")
    assert st.pack(tmp_path / "photos.tar", tmp_path / "one", splits="none").samples == 2


def coco(folder, image=None, categories=None, boxes=((20, 10, 20, 10),), category=7):
    jpeg(folder)
    annotations = [
        {"id": i, "image_id": 1, "category_id": category, "bbox": list(box), "area": 1, "iscrowd": 0}
        for i, box in enumerate(boxes)
    ]
    document = {
        "images": [{"id": 1, "file_name": "a.jpg", **(image or {})}],
        "annotations": annotations,
        "categories": categories or [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}],
    }
    (folder / "coco.json").write_text(json.dumps(document))
    return folder / "coco.json"


def features(dataset):
    return st.Dataset(dataset)["train"][0]["features"]


@pytest.mark.parametrize("size", [("80", "40"), (80.0, 40.0), (80, 40)])
def test_the_annotated_size_counts_however_it_is_written(size, tmp_path):
    """The file was halved after the annotation: a box at [20, 10, 20, 10] of 80 × 40 pixels."""
    source = coco(tmp_path / "coco", {"width": size[0], "height": size[1]})
    st.pack(source, tmp_path / "out")
    np.testing.assert_allclose(features(tmp_path / "out")["image/object/bbox"], [0.25, 0.25, 0.5, 0.5])
    jpeg(tmp_path)
    row = {"path": "a.jpg", "width": size[0], "height": size[1], "objects": {"bbox": [[20, 10, 20, 10]], "category": [0]}}
    (tmp_path / "list.jsonl").write_text(json.dumps(row))
    st.pack(tmp_path / "list.jsonl", tmp_path / "listed")
    np.testing.assert_allclose(features(tmp_path / "listed")["image/object/bbox"], [0.25, 0.25, 0.5, 0.5])


@pytest.mark.parametrize("size", [(-1, 40), (80.5, 40), ("wide", 40)])
def test_an_annotated_size_that_is_none_is_refused(size, tmp_path):
    source = coco(tmp_path / "coco", {"width": size[0], "height": size[1]})
    refused("`width` of its objects: expected a whole number of pixels", source, tmp_path / "out")


def test_categories_are_told_apart_and_take_the_ids_of_given_names(tmp_path):
    twice = coco(tmp_path / "twice", categories=[{"id": 7, "name": "dog"}, {"id": 7, "name": "cat"}])
    refused("dog(, | and )cat.* the same id 7", twice, tmp_path / "out")
    source = coco(tmp_path / "coco")
    st.pack(source, tmp_path / "ranks")
    assert (st.Dataset(tmp_path / "ranks").classes, features(tmp_path / "ranks")["image/object/class/label"]) == (["cat", "dog"], 1)
    st.pack(source, tmp_path / "given", classes=classes_file(tmp_path / "names.txt", "dog", "emu", "cat"))
    assert st.Dataset(tmp_path / "given").classes == ["dog", "emu", "cat"]
    assert features(tmp_path / "given")["image/object/class/label"] == 0
    refused("class `(cat|dog)` is not among", source, tmp_path / "zebra", classes=classes_file(tmp_path / "names.txt", "zebra"))


@pytest.mark.parametrize("boxes, box", [("xywh", [20, 10, 10, 5]), ("xyxy", [20, 10, 30, 15]), ("cxcywh", [25, 12.5, 10, 5])])
def test_boxes_of_coco_are_read_as_the_user_says(boxes, box, tmp_path):
    st.pack(coco(tmp_path / "coco", boxes=[box]), tmp_path / "out", boxes=boxes)
    np.testing.assert_allclose(features(tmp_path / "out")["image/object/bbox"], [0.5, 0.5, 0.75, 0.75])


def test_an_offset_without_labels_that_are_numbers_is_refused(tmp_path):
    jpeg(tmp_path / "photos" / "cat")
    refused("label offset", tmp_path / "photos", tmp_path / "out", label_offset=1)
    source = write_list(tmp_path / "list.csv", ["path", "label"], [["photos/cat/a.jpg", 1]])
    refused("label offset", source, tmp_path / "out", label_offset=1)


def test_no_number_becomes_infinity(tmp_path):
    jpeg(tmp_path)
    for value in ["1e300", "-1e39"]:
        source = write_list(tmp_path / "list.csv", ["path", "x"], [["a.jpg", value]])
        refused("x", source, tmp_path / "out", columns={"x": "float"})
    source = write_list(tmp_path / "list.csv", ["path", "x"], [["a.jpg", "inf"]])
    st.pack(source, tmp_path / "infinite", columns={"x": "float"})
    assert features(tmp_path / "infinite")["x"] == np.inf


def test_a_masked_array_is_refused(tmp_path):
    masked = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    with st.Writer(tmp_path / "arrays", features={"x": st.Array()}) as writer:
        with pytest.raises(st.OptionError, match="`x` is a masked array"):
            writer.write({"key": "a", "image": np.zeros((4, 4, 3), np.uint8), "x": masked})
        writer.write({"key": "b", "image": np.zeros((4, 4, 3), np.uint8), "x": np.array([1, 2, 3])})
    with st.Writer(tmp_path / "out") as writer:
        with pytest.raises(st.OptionError, match="`x` is a masked array"):
            writer.write({"key": "a", "image": np.zeros((4, 4, 3), np.uint8), "x": masked})
        writer.write({"key": "b", "image": np.zeros((4, 4, 3), np.uint8), "x": np.ma.array([1, 2, 3])})
    assert [record["key"] for record in st.Dataset(tmp_path / "out")["train"]] == ["b"]
