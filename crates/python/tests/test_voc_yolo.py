"""Boxes, polygons and splits of Pascal VOC and YOLO are those of other readers: `xml.etree`, torchvision's `VOCDetection` where it is
installed, and the formulas of Ultralytics' documents."""

import xml.etree.ElementTree as etree

import numpy as np
import pytest
from PIL import Image

import shardtool as st
from test_numbers import png

#: Of the images that `png` makes.
SIDE = 8
BOXES = {"a": [("dog", (1, 1, 8, 8)), ("cat", (3, 2, 6.5, 7.25))], "b": [], "c": [("emu", (8, 8, 8, 8))]}


def voc(root):
    """Writes three images, of which the lists name two as `train` and one as `val`."""
    for name in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (root / name).mkdir(parents=True)
    for number, (name, objects) in enumerate(BOXES.items()):
        (root / "JPEGImages" / f"{name}.jpg").write_bytes(png(number))
        annotation = etree.Element("annotation")
        etree.SubElement(annotation, "filename").text = f"{name}.jpg"
        size = etree.SubElement(annotation, "size")
        for side in ("width", "height"):
            etree.SubElement(size, side).text = str(SIDE)
        for label, corners in objects:
            thing = etree.SubElement(annotation, "object")
            etree.SubElement(thing, "name").text = label
            etree.SubElement(thing, "difficult").text = "1"
            box = etree.SubElement(thing, "bndbox")
            for corner, value in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True):
                etree.SubElement(box, corner).text = str(value)
        etree.ElementTree(annotation).write(root / "Annotations" / f"{name}.xml")
    for split, names in (("train", "a\nb\n"), ("val", "c\n"), ("trainval", "a\nb\nc\n")):
        (root / "ImageSets" / "Main" / f"{split}.txt").write_text(names)


def edges(corners):
    """Returns the edges of a box whose pixels count from 1, and of which the last ones belong to it, as fractions."""
    xmin, ymin, xmax, ymax = map(float, corners)
    return [(xmin - 1) / SIDE, (ymin - 1) / SIDE, xmax / SIDE, ymax / SIDE]


def test_voc_has_the_boxes_and_splits_of_its_files(tmp_path):
    root = tmp_path / "VOCdevkit" / "VOC2012"
    voc(root)
    for source in (root, root.parent):
        packed = st.pack(source, tmp_path / f"of-{source.name}", seed=None)
        assert {split.split: split.images for split in packed.splits} == {"train": 2, "val": 1}
    dataset = st.Dataset(tmp_path / "of-VOC2012")
    assert list(dataset.classes) == ["cat", "dog", "emu"]
    for split, names in (("train", "ab"), ("val", "c")):
        found = dataset.split(split)
        assert [found[i]["key"] for i in range(len(found))] == [f"{name}.jpg" for name in names]
        for i, name in enumerate(names):
            features = found[i]["features"]
            expected = [edges(corners) for _, corners in BOXES[name]]
            np.testing.assert_array_equal(np.reshape(features["image/object/bbox"], (-1, 4)), np.float32(expected).reshape(-1, 4))
            labels = np.reshape(features["image/object/class/label"], -1)
            assert [dataset.classes[label] for label in labels] == [label for label, _ in BOXES[name]]
    assert st.pack(root, tmp_path / "both", split="trainval").images == 3
    with pytest.raises(st.PackError, match="no list of images for split test"):
        st.pack(root, tmp_path / "none", split="test")
    st.index(root)
    assert sorted(st.Dataset(root).splits) == ["train", "val"]


def test_voc_agrees_with_torchvision(tmp_path):
    pytest.importorskip("torch")
    datasets = pytest.importorskip("torchvision.datasets")
    voc(tmp_path / "VOCdevkit" / "VOC2012")
    st.pack(tmp_path, tmp_path.parent / "agrees", seed=None)
    dataset = st.Dataset(tmp_path.parent / "agrees")
    for name in ("train", "val"):
        theirs, ours = datasets.VOCDetection(tmp_path, "2012", name), dataset.split(name)
        assert len(theirs) == len(ours)
        for i, (image, target) in enumerate(theirs):
            annotation = target["annotation"]
            assert ours[i]["key"] == annotation["filename"] and image.size == (SIDE, SIDE)
            boxes = [edges(thing["bndbox"][side] for side in ("xmin", "ymin", "xmax", "ymax")) for thing in annotation["object"]]
            np.testing.assert_array_equal(np.reshape(ours[i]["features"]["image/object/bbox"], (-1, 4)), np.float32(boxes).reshape(-1, 4))
            difficult = [int(thing["difficult"]) for thing in annotation["object"]]
            assert np.reshape(ours[i]["features"]["image/object/difficult"], -1).tolist() == difficult


def test_yolo_has_the_boxes_of_its_formulas(tmp_path):
    root, rng = tmp_path / "yolo", np.random.default_rng(5)
    lines = {}
    for number, name in enumerate("abcd"):
        folder = "train" if number < 3 else "val"
        for kind in ("images", "labels"):
            (root / kind / folder).mkdir(parents=True, exist_ok=True)
        (root / "images" / folder / f"{name}.png").write_bytes(png(number))
        centre, half = rng.uniform(0.3, 0.7, (number, 2)), rng.uniform(0.01, 0.3, (number, 2))
        lines[f"images/{folder}/{name}.png"] = (rng.integers(0, 3, number), np.hstack([centre, 2 * half]))
        text = "".join(f"{c} {' '.join(f'{v:.17g}' for v in box)}\n" for c, box in zip(*lines[f"images/{folder}/{name}.png"], strict=True))
        (root / "labels" / folder / f"{name}.txt").write_text(text)
    (root / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/val\nnames: {0: x, 1: y, 2: z}\n")
    for kind in (None, "yolo"):
        st.pack(root, tmp_path / f"set-{kind}", kind=kind)
    dataset = st.Dataset(tmp_path / "set-None")
    assert list(dataset.classes) == ["x", "y", "z"]
    seen = 0
    for name in dataset.splits:
        split = dataset.split(name)
        for i in range(len(split)):
            classes, boxes = lines[split[i]["key"]]
            features = split[i]["features"]
            assert np.reshape(features["image/object/class/label"], -1).tolist() == classes.tolist()
            # Ultralytics' xywhn2xyxy, in fractions.
            expected = np.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2])
            np.testing.assert_array_equal(np.reshape(features["image/object/bbox"], (-1, 4)), expected.astype(np.float32))
            seen += 1
    assert seen == 4
    with pytest.raises(st.DatasetError, match=r"is a dataset of YOLO and has no dataset.json"):
        st.open(root)


def test_folders_that_yolo_does_not_read_are_named(tmp_path):
    """Masks lie next to images and labels."""
    for folder, suffix, data in (("images", "png", png(1)), ("labels", "txt", b"0 0.5 0.5 0.5 0.5"), ("masks", "png", png(2))):
        (tmp_path / "source" / folder / "train").mkdir(parents=True)
        (tmp_path / "source" / folder / "train" / f"a.{suffix}").write_bytes(data)
    (tmp_path / "source" / "data.yaml").write_text("train: images/train\nnames: [dog]\n")
    packed = st.pack(tmp_path / "source", tmp_path / "dataset")
    assert packed.images == 1
    assert any("folders next to images and labels: masks" in text for text in packed.left_out), packed.left_out


def test_a_rotated_box_is_its_box_and_its_mask(tmp_path):
    """A line of YOLO-OBB: a class and four points. A square on its corner covers half of the box around it."""
    root = tmp_path / "obb"
    for kind in ("images", "labels"):
        (root / kind).mkdir(parents=True)
    Image.new("RGB", (40, 40)).save(root / "images/a.png")
    (root / "labels/a.txt").write_text("1 0.5 0.1 0.9 0.5 0.5 0.9 0.1 0.5\n")
    (root / "classes.txt").write_text("ship\nplane\n")
    packed = st.pack(root, tmp_path / "set")
    assert (packed.images, packed.rejected) == (1, 0)
    split = st.Dataset(tmp_path / "set").split("train")
    objects = st.Objects(masks=True, min_size=0, min_area=0)
    batch = next(iter(st.Loader(split, 1, [st.Image([st.ResizeTo(40)]), objects])))
    np.testing.assert_allclose(np.reshape(split[0]["features"]["image/object/bbox"], 4), [0.1, 0.1, 0.9, 0.9], rtol=1e-6)
    assert batch["labels"].row(0).tolist() == [1]
    mask = batch["masks"].row(0)[0]
    away = np.abs(np.arange(40) + 0.5 - 20)
    distance = away[:, None] + away[None, :]
    # Pixels of the edge may be of either side.
    assert (mask[distance < 15] == 1).all() and (mask[distance > 17] == 0).all()


@pytest.mark.parametrize("folder", ["labelTxt", "labelTxt-v1.5"])
def test_labels_of_dota_are_refused_by_name(tmp_path, folder):
    for split in ("train", "val"):
        for kind in ("images", folder):
            (tmp_path / "dota" / split / kind).mkdir(parents=True)
        Image.new("RGB", (40, 40)).save(tmp_path / f"dota/{split}/images/P0001.png")
        (tmp_path / f"dota/{split}/{folder}/P0001.txt").write_text("imagesource:GoogleEarth\ngsd:0.1\n1 1 5 1 5 5 1 5 plane 0\n")
    for source in ("dota", "dota/train"):
        with pytest.raises(st.PackError, match=f"{folder} holds rotated boxes of DOTA.*labels of YOLO"):
            st.pack(tmp_path / source, tmp_path / "set")
