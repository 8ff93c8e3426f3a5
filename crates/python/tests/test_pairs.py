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
    mmseg = tmp_path / "mmseg"
    for split in ("train", "val"):
        for number in range(2):
            image(mmseg / f"img_dir/{split}/{number}.jpg")
            labels(mmseg / f"ann_dir/{split}/{number}.png", number + 5 * (split == "val"))
    packed(mmseg, tmp_path / "mmseg-set")
    assert masks(tmp_path / "mmseg-set", "val") == {f"img_dir/val/{n}.jpg": n + 5 for n in range(2)}
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
    with pytest.raises(st.PackError, match=r"images/0.jpg, masks/0.\* was expected, and there is masks/0_mask.png.*map="):
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


def test_a_source_in_place_is_that_of_pack(cityscapes, tmp_path):
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


def test_images_and_masks_are_appended(cityscapes, tmp_path):
    root, value = cityscapes
    packed(root, tmp_path / "set", split="train")
    more = tmp_path / "more"
    for folder in ("leftImg8bit", "gtFine"):
        (more / folder / "train").mkdir(parents=True)
        (root / folder / "val/ulm").rename(more / folder / "train/ulm")
    st.Dataset(tmp_path / "set").append(more)
    found = masks(tmp_path / "set", "train")
    moved = {key.replace("/val/", "/train/"): label for key, label in value.items() if "/test/" not in key}
    assert found == moved and len(found) == 7


def test_a_mask_in_place_that_changes_is_damage(tmp_path):
    root = tmp_path / "plain"
    noise = [np.random.default_rng(number).integers(0, 9, SIZE, np.uint8) for number in range(2)]
    for number in range(2):
        image(root / f"images/{number}.jpg")
    (root / "masks").mkdir()
    for number in range(2):
        Image.fromarray(noise[number]).save(root / f"masks/{number}.png")
        assert (root / f"masks/{number}.png").stat().st_size > 256
    st.index(root)
    assert st.verify(root).good
    Image.fromarray(noise[0]).save(root / "masks/1.png")
    report = st.verify(root)
    assert len(report.damages) == 1 and "masks/1.png" in str(report.damages[0])
    with pytest.raises(st.BadSampleError):
        list(st.Loader(st.Dataset(root).split("train"), 1, [st.Image([st.ResizeTo(SIZE)]), st.Mask("mask")], bad_samples="error"))


def test_a_file_belongs_to_one_pattern(tmp_path):
    root = tmp_path / "flat"
    for number in range(3):
        image(root / f"{number}.png")
        labels(root / f"{number}_mask.png", number)
    # A mask is not an image, although it matches both patterns.
    report = packed(root, tmp_path / "set", map={"image": "**.png", "mask": "**_mask.png"})
    assert (report.images, report.rejected) == (3, 0)
    assert masks(tmp_path / "set", "train") == {f"{n}.png": n for n in range(3)}
    for wrong, message in [
        ({"image": "**.png", "mask": "**.png"}, "match that of a feature, too"),
        ([("image", "a*.png"), ("image", "b*.png")], "two patterns of the images"),
        ([("image", "*.png"), ("mask", "a*.png"), ("mask", "b*.png")], "two patterns for the feature mask"),
    ]:
        with pytest.raises((st.PackError, ValueError, TypeError), match=message):
            packed(root, tmp_path / "wrong", kind="pairs", map=dict(wrong) if isinstance(wrong, dict) else Pairs(wrong))


class Pairs(dict):
    """A mapping with equal keys, as `--map` gives them."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self._pairs = pairs

    def items(self):
        return self._pairs


def test_a_name_is_not_a_pattern(tmp_path):
    root = tmp_path / "plain"
    for number in range(2):
        image(root / f"images/{number}.jpg")
        labels(root / f"masks/{number}.png", number)
        labels(root / f"depth/{number}.png", number)
    with pytest.raises(st.PackError, match='map={"mask": "depth"}` is not a pattern'):
        packed(root, tmp_path / "set", map={"mask": "depth"})
    with pytest.raises(st.OptionError, match="box unit"):
        packed(root, tmp_path / "set", box_unit="pixel")


def test_names_with_the_texts_between_stars(tmp_path):
    """The file that belongs to an image is the one of its name, however the texts could be divided otherwise."""
    root = tmp_path / "scenes"
    image(root / "images/scene_01-0001.jpg")
    labels(root / "masks/scene_01_0001.png", 4)
    patterns = {"image": "images/*-*.jpg", "mask": "masks/*_*.png"}
    packed(root, tmp_path / "set", map=patterns)
    assert masks(tmp_path / "set", "train") == {"images/scene_01-0001.jpg": 4}
    image(root / "images/scene-01_0001.jpg")
    with pytest.raises(st.PackError, match=r"masks/scene_01_0001.png belongs to images/scene"):
        packed(root, tmp_path / "other", map=patterns)


def test_a_split_without_masks_and_other_files(tmp_path):
    root = tmp_path / "plain"
    for split, count in (("train", 2), ("test", 3)):
        for number in range(count):
            image(root / f"images/{split}/{number}.jpg")
            (root / f"images/{split}/{number}.json").write_text("{}")
            if split == "train":
                labels(root / f"masks/{split}/{number}.png", number)
    report = packed(root, tmp_path / "set")
    assert {split.split: split.images for split in report.splits} == {"train": 2, "test": 3}
    assert any("split test: none of its 3 images has a file of `mask`" in text for text in report.left_out)
    assert st.Dataset(tmp_path / "set").split("test")[0]["features"]["mask"] == []
    assert len(masks(tmp_path / "set", "train")) == 2
    above = tmp_path / "above"
    for split in ("train", "test"):
        image(above / f"{split}/images/0.jpg")
    labels(above / "train/masks/0.png", 7)
    report = packed(above, tmp_path / "above-set")
    assert {split.split: split.images for split in report.splits} == {"train": 1, "test": 1}
    assert masks(tmp_path / "above-set", "train") == {"train/images/0.jpg": 7}
    image(root / "images/train/0.png")
    with pytest.raises(st.PackError, match="images with the same name"):
        packed(root, tmp_path / "other")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("square", [False, True])
def test_masks_of_turned_images_are_asked_about(tmp_path, orientation, square):
    """Coded and shown pixels have the same size for 2 to 4, and for all if the image is square."""
    size = (24, 24) if square else (20, 30)
    (tmp_path / "s/images").mkdir(parents=True)
    (tmp_path / "s/masks").mkdir()
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(np.zeros((*size, 3), np.uint8)).save(tmp_path / "s/images/a.jpg", exif=exif)
    Image.fromarray(np.zeros(size, np.uint8)).save(tmp_path / "s/masks/a.png")
    doubtful = orientation > 1 and (square or orientation < 5)
    if doubtful:
        with pytest.raises(st.PackError, match=f'orientation is {orientation}.*annotated="coded"'):
            packed(tmp_path / "s", tmp_path / "set")
    else:
        assert packed(tmp_path / "s", tmp_path / "set").images == 1
    assert packed(tmp_path / "s", tmp_path / "coded", annotated="coded").images == 1
    if orientation > 1:
        with pytest.raises(st.PackError, match="turn the mask"):
            packed(tmp_path / "s", tmp_path / "upright", annotated="upright")


def test_lists_name_the_images_of_splits(tmp_path):
    """No image of a list for tests is trained with."""
    root = tmp_path / "lists"
    for name in "abcde":
        image(root / f"images/{name}.jpg")
        labels(root / f"masks/{name}.png", ord(name) - ord("a"))
    (root / "splits").mkdir()
    (root / "splits/train.txt").write_text("a\n./images/b.jpg\n\n")
    (root / "splits/val.txt").write_text("c 1\n")
    (root / "splits/trainval.txt").write_text("a\nb\nc\n")
    (root / "readme.txt").write_text("no list")
    report = packed(root, tmp_path / "set")
    assert masks(tmp_path / "set", "train") == {"images/a.jpg": 0, "images/b.jpg": 1}
    assert masks(tmp_path / "set", "val") == {"images/c.jpg": 2}
    assert any("2 images that the lists of train, val do not name" in text for text in report.left_out)
    assert any("trainval.txt" in text for text in report.left_out) and any("readme.txt" in text for text in report.left_out)
    packed(root, tmp_path / "one", split="val")
    assert st.Dataset(tmp_path / "one").splits == ["val"]
    assert packed(root, tmp_path / "all", splits="none").images == 5
    for text, message in [("a\nz\n", "train.txt, line 2: z names no image"), ("a\nc\n", "images/c.jpg is in the split train and in the split val")]:
        (root / "splits/train.txt").write_text(text)
        with pytest.raises(st.PackError, match=message):
            packed(root, tmp_path / "wrong")
    (root / "splits/train.txt").write_text("a\n")
    (root / "train.txt").write_text("b\n")
    with pytest.raises(st.PackError, match="may each be the list of split train"):
        packed(root, tmp_path / "wrong")


@pytest.mark.parametrize(("first", "second"), [("train2014", "train2017"), ("train", "Train"), ("val", "valid"), ("test", "testing")])
def test_two_folders_of_a_split_are_not_mixed(tmp_path, first, second):
    root = tmp_path / "years"
    for split in (first, second):
        image(root / f"images/{split}/{split}.jpg")
        labels(root / f"masks/{split}/{split}.png", 1)
    with pytest.raises(st.PackError, match=f"folders ({first} and {second}|{second} and {first}) are both named for split"):
        packed(root, tmp_path / "set")
    packed(root, tmp_path / "names", splits="names")
    assert sorted(st.Dataset(tmp_path / "names").splits) == sorted([first, second])
    assert packed(root, tmp_path / "one", splits="none").images == 2


def test_a_depth_of_another_size_says_what_to_do(tmp_path):
    root = tmp_path / "plain"
    image(root / "images/a.jpg")
    (root / "depth").mkdir()
    Image.fromarray(np.ones((10, 15), np.uint16)).save(root / "depth/a.png")
    packed(root, tmp_path / "set")
    split = st.Dataset(tmp_path / "set").split("train")
    fields = [st.Image([st.ResizeTo(SIZE)]), st.FurtherImage("depth", kind="values")]
    with pytest.raises(st.BadSampleError, match="15x10 pixels, but the stored image has 30x20; scale it"):
        list(st.Loader(split, 1, fields, bad_samples="error"))


def test_options_that_say_two_things(tmp_path):
    (tmp_path / "list.csv").write_text("path,depth\na.jpg,a.npy\n")
    with pytest.raises(st.OptionTypeError, match="`map` is .* expected a dict"):
        packed(tmp_path / "list.csv", tmp_path / "set", map=[("image", "images/*.jpg")])
