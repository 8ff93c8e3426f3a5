"""Images and the files that belong to them by their names, in the layouts of Cityscapes, ADE20K, KITTI and Sintel."""

import json

import numpy as np
import pytest
from PIL import Image

import shardtool as st

SIZE = (20, 30)


def image(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(len(str(path)) + seed).integers(0, 256, (*SIZE, 3), np.uint8)).save(path)


def labels(path, value, dtype=np.uint8):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full(SIZE, value, dtype)).save(path)


def packed(source, out, **options):
    return st.pack(source, out, progress=False, **options)


def masks(out, split, feature="mask", dtype="uint8"):
    """Returns the value of each image's mask."""
    found = {}
    loader = st.Loader(st.Dataset(out).split(split), 1, [st.Image([st.ResizeTo(SIZE)]), st.Mask(feature, dtype=dtype), "image/key"])
    for batch in loader:
        assert len(np.unique(batch["mask"])) == 1
        found[batch["image/key"][0].decode()] = int(batch["mask"][0, 0, 0])
    return found


@pytest.fixture
def cityscapes(tmp_path):
    """Names and folders of cityscapesscripts, with a folder of the dataset that has no split."""
    root, value = tmp_path / "cityscapes", {}
    for split, city, count in (("train", "aachen", 3), ("train", "bochum", 2), ("val", "ulm", 2), ("test", "bonn", 1)):
        for number in range(count):
            stem = f"{split}/{city}/{city}_{number:06}_000019"
            image(root / f"leftImg8bit/{stem}_leftImg8bit.png")
            value[f"leftImg8bit/{stem}_leftImg8bit.png"] = len(value)
            labels(root / f"gtFine/{stem}_gtFine_labelIds.png", len(value) - 1)
            labels(root / f"gtFine/{stem}_gtFine_instanceIds.png", 1000 * len(value), np.uint16)
            image(root / f"gtFine/{stem}_gtFine_color.png", 1)
            (root / f"gtFine/{stem}_gtFine_polygons.json").write_text("{}")
    return root, value


def test_cityscapes(cityscapes, tmp_path):
    root, value = cityscapes
    packed(root, tmp_path / "set")
    assert sorted(st.Dataset(tmp_path / "set").splits) == ["test", "train", "val"]
    found = {}
    for split, count in (("train", 5), ("val", 2), ("test", 1)):
        of_split = masks(tmp_path / "set", split)
        assert len(of_split) == count and all(f"/{split}/" in key for key in of_split)
        found |= of_split
        instances = masks(tmp_path / "set", split, "instance_mask", "uint16")
        assert instances == {key: 1000 * (label + 1) for key, label in of_split.items()}
    assert found == value


def test_other_layouts(tmp_path):
    ade = tmp_path / "ade"
    for split, count in (("training", 3), ("validation", 2)):
        for number in range(count):
            image(ade / f"images/{split}/ADE_{number}.jpg")
            labels(ade / f"annotations/{split}/ADE_{number}.png", number + 10 * count)
    (ade / "objectInfo150.txt").write_text("Idx\tName")
    packed(ade, tmp_path / "ade-set")
    assert masks(tmp_path / "ade-set", "training") == {f"images/training/ADE_{n}.jpg": n + 30 for n in range(3)}
    assert masks(tmp_path / "ade-set", "validation") == {f"images/validation/ADE_{n}.jpg": n + 20 for n in range(2)}
    above = tmp_path / "above"
    for split in ("train", "val"):
        for number in range(2):
            image(above / f"{split}/images/deep/{number}.jpg")
            labels(above / f"{split}/masks/deep/{number}.png", number + (split == "val"))
    packed(above, tmp_path / "above-set")
    assert masks(tmp_path / "above-set", "val") == {f"val/images/deep/{n}.jpg": n + 1 for n in range(2)}
    with pytest.raises(st.PackError, match="no list of images for split test"):
        packed(above, tmp_path / "other", split="test")


def test_every_sample_is_accounted_for(tmp_path):
    root = tmp_path / "plain"
    for number in range(4):
        image(root / f"images/{number}.jpg")
    labels(root / "masks/0.png", 5)
    labels(root / "masks/1.png", 6)
    labels(root / "masks/1.tif", 6)
    Image.fromarray(np.zeros((3, 3), np.uint8)).save(root / "masks/2.png")
    labels(root / "masks/9.png", 5)
    report = packed(root, tmp_path / "set")
    assert (report.images, report.rejected) == (1, 3)
    reasons = {line["input"]: line["reason"] for line in map(json.loads, (tmp_path / "set/rejected-train.jsonl").read_text().splitlines())}
    assert "as well as masks/1.tif" in reasons["images/1.jpg"]
    assert "3x3" in reasons["images/2.jpg"]
    assert "masks/3.*" in reasons["images/3.jpg"] and "no such file" in reasons["images/3.jpg"]
    assert any("masks/9.png" in text and "without an image" in text for text in report.left_out)


def test_patterns_say_what_belongs_together(tmp_path):
    root = tmp_path / "flat"
    for number in range(3):
        image(root / f"a_{number}.jpg")
        labels(root / f"a_{number}_mask.png", number)
    options = {"map": {"image": "**.jpg", "mask": "**_mask.png"}}
    packed(root, tmp_path / "set", **options)
    assert masks(tmp_path / "set", "train") == {f"a_{n}.jpg": n for n in range(3)}
    suffix = tmp_path / "suffix"
    for number in range(3):
        image(suffix / f"images/{number}.jpg")
        labels(suffix / f"masks/{number}_mask.png", number)
    with pytest.raises(st.PackError, match=r"images/0.jpg, masks/0.\* was expected, and there is masks/0_mask.png.*--map"):
        packed(suffix, tmp_path / "other")
    packed(suffix, tmp_path / "other", map={"image": "images/*.jpg", "mask": "masks/*_mask.png"})
    assert len(masks(tmp_path / "other", "train")) == 3
    for wrong, message in [
        ({"mask": "masks/*.png"}, "no pattern of the images"),
        ({"image": "images/*.jpg", "mask": "*/*.png"}, "each matches the same text"),
        ({"image": "images/*.jpg", "mask": "../*.png"}, "leads out"),
        ({"image": "images/*.jpg", "image/encoded": "masks/*.png"}, "writes a feature of this name"),
        ({"image": "pictures/*.jpg", "mask": "masks/*.png"}, "no file matches"),
        ({"image": "images/0.jpg", "mask": "masks/*.png"}, r"no \*"),
        ({"image": "images/*.jpg", "label": "masks/*.png"}, "no label"),
    ]:
        with pytest.raises(st.PackError, match=message):
            packed(suffix, tmp_path / "wrong", kind="pairs", map=wrong)


def test_flow_and_depths(tmp_path):
    root = tmp_path / "sintel/training"
    for number in range(3):
        image(root / f"clean/alley_1/frame_{number}.png")
        image(root / f"final/alley_1/frame_{number}.png")
        for kind, size in (("flow", 2), ("depth", 1)):
            path = root / f"{kind}/alley_1/frame_{number}.{'flo' if size == 2 else 'dpt'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            values = np.full((*SIZE, size), number + size, np.float32)
            path.write_bytes(b"PIEH" + np.int32(SIZE[::-1]).tobytes() + values.tobytes())
    # Folders of flow are no classes, whatever the others are called.
    for source in (root, root.parent):
        with pytest.raises(st.PackError, match="parts of a layout"):
            packed(source, tmp_path / "set")
    patterns = {"image": "training/clean/**.png", "flow": "training/flow/**.flo", "depth": "training/depth/**.dpt", "other": "training/final/**.png"}
    with pytest.raises(st.PackError, match=r"frame_\d.dpt holds an array: store it as one, with --array depth"):
        packed(root.parent, tmp_path / "set", map=patterns)
    packed(root.parent, tmp_path / "set", map=patterns, columns={"flow": "flow", "depth": st.Array()})
    split = st.Dataset(tmp_path / "set").split("training")
    fields = [st.Arrays("flow", image_axes=(0, 1), kind="flow"), st.Arrays("depth", image_axes=(0, 1)), st.FurtherImage("other"), "image/key"]
    for batch in st.Loader(split, 3, [st.Image([st.ResizeTo((40, 60)), st.RandomHorizontalFlip(1)]), *fields]):
        for row, key in enumerate(batch["image/key"]):
            number = int(key.decode()[-5])
            assert (batch["depth"][row] == number + 1).all()
            assert (batch["flow"][row] == [-2 * (number + 2), 2 * (number + 2)]).all()


def test_in_place_and_appended(cityscapes, tmp_path):
    root, value = cityscapes
    packed(root, tmp_path / "set", split="train")
    st.index(root, tmp_path / "index")
    assert st.Dataset(tmp_path / "set").split("train").fingerprint == st.Dataset(tmp_path / "index", source=[root]).split("train").fingerprint
    for split in ("train", "val"):
        found = {}
        dataset = st.Dataset(tmp_path / "index", source=[root])
        loader = st.Loader(dataset.split(split), 1, [st.Image([st.ResizeTo(SIZE)]), st.Mask("mask"), "image/key"])
        for batch in loader:
            found[batch["image/key"][0].decode()] = int(batch["mask"][0, 0, 0])
        assert found == {key: label for key, label in value.items() if f"/{split}/" in key}
