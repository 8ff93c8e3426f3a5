"""Depths in the layouts of KITTI and NYU Depth v2, and the lists of images that are published with them."""

import json
import pathlib
import re

import h5py
import numpy as np
import pytest
import scipy.io
from PIL import Image

import shardtool as st

SIZE = (12, 20)
FRAMES = 7
# The first and the last frames of a drive have no depths, since each is made of the frames around it.
WITH_DEPTH = range(2, 5)


def image(path, shade=90):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((*SIZE, 3), shade, np.uint8)).save(path)


def depth(path, value):
    """Writes depths of 16 bits: 0, unknown, in the first column."""
    values = np.full(SIZE, value, np.uint16)
    values[:, 0] = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def packed(source, out, **options):
    return st.pack(source, out, progress=False, **options)


def depths(out, split, unit, feature="depth"):
    """Returns the depth of each image, in metres."""
    found = {}
    fields = [st.Image([st.ResizeTo(SIZE)]), st.FurtherImage(feature, kind="values"), "image/key"]
    for batch in st.Loader(st.Dataset(out).split(split), 1, fields):
        values = batch[feature][0, :, :, 0]
        assert values.dtype == np.uint16 and (values[:, 0] == 0).all() and len(np.unique(values[:, 1:])) == 1
        found[batch["image/key"][0].decode()] = float(values[0, 1]) / unit
    return found


def rejected(out, split):
    lines = (out / f"rejected-{split}.jsonl").read_text().splitlines()
    return {line["input"]: line["reason"] for line in map(json.loads, lines)}


def metres(number, camera):
    return 4 + number + camera / 4


def raw(root, number, frame, camera, date="2011_09_26"):
    return root / f"{date}/{date}_drive_{number:04}_sync/image_{camera:02}/data/{frame:010}.png"


def kitti(root, drives=((1, "train"), (2, "train"), (5, "val"), (9, None)), velodyne=True):
    """Writes drives of two cameras, and a grey one, as the archives of KITTI unpack. A drive of no split has no depths."""
    for number, split in drives:
        for camera in (0, 2, 3):
            for frame in range(FRAMES):
                path = raw(root, number, frame, camera)
                image(path)
                (path.parent.parent / "timestamps.txt").write_text("2011-09-26 13:02:25\n")
                if camera and split and frame in WITH_DEPTH:
                    drive = root / split / f"2011_09_26_drive_{number:04}_sync/proj_depth"
                    depth(drive / f"groundtruth/image_{camera:02}/{frame:010}.png", 256 * metres(number, camera))
                    if velodyne:
                        depth(drive / f"velodyne_raw/image_{camera:02}/{frame:010}.png", 256 * (metres(number, camera) + 1))
    return root


def test_kitti_as_its_archives_unpack(tmp_path):
    root = kitti(tmp_path / "kitti")
    report = packed(root, tmp_path / "set")
    assert sorted(st.Dataset(tmp_path / "set").splits) == ["train", "val"]
    for split, drives in (("train", (1, 2)), ("val", (5,))):
        expected = {
            str(raw(root, number, frame, camera).relative_to(root)): metres(number, camera)
            for number in drives for camera in (2, 3) for frame in WITH_DEPTH
        }
        assert depths(tmp_path / "set", split, 256) == expected
        assert depths(tmp_path / "set", split, 256, "sparse_depth") == {key: value + 1 for key, value in expected.items()}
        # Each image of a camera with depths is a record or a rejected input.
        of_split = next(part for part in report.splits if part.split == split)
        assert of_split.images == len(expected)
        assert of_split.images + of_split.rejected == len(drives) * 2 * FRAMES
        reasons = rejected(tmp_path / "set", split)
        assert reasons.keys() == {
            str(raw(root, number, frame, camera).relative_to(root))
            for number in drives for camera in (2, 3) for frame in range(FRAMES) if frame not in WITH_DEPTH
        }
        assert all(re.search(r"groundtruth/image_0\d/\d{10}.*no such file", reason) for reason in reasons.values())
    # The others are counted: the grey camera of three drives, and three cameras of one without depths.
    counted = [text for text in report.left_out if "folders of which no image has another file" in text]
    assert len(counted) == 1 and counted[0].startswith(f"{6 * FRAMES} images in 6 folders")


def test_kitti_in_folders_of_the_archives(tmp_path):
    """Depths of both splits in one folder, as the lists of BTS expect them."""
    root = tmp_path / "kitti"
    kitti(root / "raw", ((1, "train"), (2, "train")), velodyne=False)
    (root / "raw/train").rename(root / "data_depth_annotated")
    packed(root, tmp_path / "set")
    assert len(depths(tmp_path / "set", "train", 256)) == 2 * 2 * len(WITH_DEPTH)
    # The same depth in both splits.
    kitti(root / "raw", ((1, "train"), (1, "val")), velodyne=False)
    with pytest.raises(st.PackError, match=r"drive_0001_sync.* is in folders of two splits, (train and val|val and train)"):
        packed(root, tmp_path / "other")


def test_depths_without_images_are_refused(tmp_path):
    root = kitti(tmp_path / "kitti", ((1, "train"), (5, "val")))
    (root / "2011_09_26").rename(tmp_path / "elsewhere")
    with pytest.raises(st.PackError, match="depths of KITTI, and no images.*image_02/data"):
        packed(root, tmp_path / "set")


LINES = {
    "names and depths": lambda number, frame: (
        f"2011_09_26/2011_09_26_drive_{number:04}_sync/image_02/data/{frame:010}.png "
        f"2011_09_26_drive_{number:04}_sync/proj_depth/groundtruth/image_02/{frame:010}.png 721.5377"
    ),
    "folder, number and side": lambda number, frame: f"2011_09_26/2011_09_26_drive_{number:04}_sync {frame} l",
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_lists_of_the_field_divide_kitti(tmp_path, lines):
    """Eigen's test images lie in drives of both of KITTI's splits."""
    root = kitti(tmp_path / "kitti", velodyne=False)
    train = [(1, 2), (1, 3), (5, 2)]
    test = [(2, 2), (5, 3), (5, 0)]
    (root / "eigen_train_files.txt").write_text("\n".join(lines(*line) for line in train) + "\n")
    (root / "eigen_test_files.txt").write_text("\n".join(lines(*line) for line in test) + "\n")
    with pytest.raises(st.PackError, match=r'is in split (test|train) by the list eigen_.*_files.txt, and in split (train|val) by its folders.*splits="lists"'):
        packed(root, tmp_path / "set")
    report = packed(root, tmp_path / "set", splits="lists")
    found = {split.split: (split.images, split.rejected) for split in report.splits}
    # One image of the list for tests has no depth.
    assert found == {"train": (3, 0), "test": (2, 1)}
    name = lambda number, frame: str(raw(root, number, frame, 2).relative_to(root))
    assert depths(tmp_path / "set", "train", 256) == {name(*line): metres(line[0], 2) for line in train}
    assert depths(tmp_path / "set", "test", 256) == {name(*line): metres(line[0], 2) for line in test[:2]}
    assert rejected(tmp_path / "set", "test").keys() == {name(5, 0)}
    images = len(list(root.glob("2011_09_26/*/*/data/*")))
    assert any(text.startswith(f"{images - 6} images that the lists") for text in report.left_out)
    focal = any("eigen_train_files.txt: what follows the names in its lines, such as 721.5377" in text for text in report.left_out)
    assert focal == ("721" in lines(1, 2))
    # The same image in both lists, and a line that names no image.
    (root / "eigen_test_files.txt").write_text(lines(1, 2) + "\n")
    with pytest.raises(st.PackError, match="is in the split test and in the split train"):
        packed(root, tmp_path / "other", splits="lists")
    (root / "eigen_test_files.txt").write_text(lines(2, 2) + "\n" + lines(7, 2))
    with pytest.raises(st.PackError, match="eigen_test_files.txt, line 2: .*drive_0007_sync.* names no image"):
        packed(root, tmp_path / "other", splits="lists")


def test_a_list_that_names_another_depth_is_refused(tmp_path):
    root = kitti(tmp_path / "kitti", velodyne=False)
    wrong = LINES["names and depths"](1, 2).replace("groundtruth/image_02", "groundtruth/image_03")
    (root / "train_files.txt").write_text(wrong + "\n")
    with pytest.raises(st.PackError, match=r"train_files.txt, line 1: .*image_03/0000000002.png does not belong to .*image_02/data/0000000002.png"):
        packed(root, tmp_path / "set", splits="lists")
    (root / "train_files.txt").unlink()
    with pytest.raises(st.PackError, match="no list among its files is named for a split"):
        packed(root, tmp_path / "set", splits="lists")
    for other in ({"kind": "folder"}, {"kind": "clips"}):
        with pytest.raises(st.OptionError, match="lists only for images and files"):
            packed(root / "train", tmp_path / "set", splits="lists", **other)


def test_lists_that_agree_with_folders(tmp_path):
    root = kitti(tmp_path / "kitti", velodyne=False)
    (root / "val.txt").write_text(LINES["names and depths"](5, 3) + "\n")
    report = packed(root, tmp_path / "set")
    assert len(depths(tmp_path / "set", "val", 256)) == 2 * len(WITH_DEPTH)
    assert any("val.txt: the folders are named for the same splits" in text for text in report.left_out)


def selection(root):
    """Writes the selection for validation, whose files say in the middle of their names what they are."""
    for frame in range(3):
        name = f"2011_09_26_drive_0002_sync_{{}}_{frame:010}_image_02"
        image(root / f"image/{name.format('image')}.png")
        depth(root / f"groundtruth_depth/{name.format('groundtruth_depth')}.png", 256 * (frame + 1))
        depth(root / f"velodyne_raw/{name.format('velodyne_raw')}.png", 512 * (frame + 1))
        (root / "intrinsics").mkdir(exist_ok=True)
        (root / f"intrinsics/{name.format('image')}.txt").write_text("721.5 0 596.5 0 721.5 149.8 0 0 1")


@pytest.mark.parametrize("source", [".", "depth_selection", "depth_selection/val_selection_cropped"])
def test_the_selection_for_validation(tmp_path, source):
    root = tmp_path / "kitti"
    selection(root / "depth_selection/val_selection_cropped")
    image(root / "depth_selection/test_depth_prediction_anonymous/image/0000000000.png")
    report = packed(root / source, tmp_path / "set")
    assert (report.images, report.rejected, report.split) == (3, 0, "val")
    found = {key.split("_")[-3]: value for key, value in depths(tmp_path / "set", "val", 256).items()}
    assert found == {f"{frame:010}": frame + 1 for frame in range(3)}
    assert sorted(depths(tmp_path / "set", "val", 512, "sparse_depth").values()) == [1, 2, 3]
    assert st.Dataset(tmp_path / "set").split("val")[0]["features"]["intrinsics"] == b"721.5 0 596.5 0 721.5 149.8 0 0 1"


def nyu(root, scenes):
    """Writes scenes of numbers with depths in millimetres."""
    for scene, numbers in scenes.items():
        for number in numbers:
            image(root / scene / f"rgb_{number:05}.jpg")
            depth(root / scene / f"sync_depth_{number:05}.png", 1000 + number)
    return root


def test_nyu_in_its_official_splits(tmp_path):
    root = nyu(tmp_path / "nyu_depth_v2", {
        "official_splits/train/kitchen": (1, 2, 3), "official_splits/test/kitchen": (45,), "official_splits/test/bathroom": (46,),
    })
    image(root / "official_splits/test/bathroom/rgb_00047.jpg")
    report = packed(root, tmp_path / "set")
    assert {part.split: (part.images, part.rejected) for part in report.splits} == {"train": (3, 0), "test": (2, 1)}
    assert "official_splits/test/bathroom/rgb_00047.jpg" in rejected(tmp_path / "set", "test")
    assert depths(tmp_path / "set", "train", 1000) == {f"official_splits/train/kitchen/rgb_{n:05}.jpg": (1000 + n) / 1000 for n in (1, 2, 3)}
    assert depths(tmp_path / "set", "test", 1000) == {
        "official_splits/test/kitchen/rgb_00045.jpg": 1.045, "official_splits/test/bathroom/rgb_00046.jpg": 1.046,
    }
    # A folder of one split.
    assert packed(root / "official_splits/test", tmp_path / "one").split == "test"


def test_nyu_with_frames_for_training(tmp_path):
    """Images for training come from a folder of their own, and lists say which; those for tests from the official split."""
    root = nyu(tmp_path / "nyu_depth_v2", {
        "sync/kitchen_0028b": (45, 90), "sync/den_0001": (7,), "official_splits/train/kitchen": (1,), "official_splits/test/kitchen": (46,),
    })
    with pytest.raises(st.PackError, match="is in that of no split"):
        packed(root, tmp_path / "set")
    (root / "nyudepthv2_train_files_with_gt.txt").write_text("/kitchen_0028b/rgb_00045.jpg /kitchen_0028b/sync_depth_00045.png 518.8579\n")
    (root / "nyudepthv2_test_files_with_gt.txt").write_text("kitchen/rgb_00046.jpg kitchen/sync_depth_00046.png 518.8579\n")
    with pytest.raises(st.PackError, match='is in that of no split.*splits="lists"'):
        packed(root, tmp_path / "set")
    packed(root, tmp_path / "set", splits="lists")
    assert depths(tmp_path / "set", "train", 1000) == {"sync/kitchen_0028b/rgb_00045.jpg": 1.045}
    assert depths(tmp_path / "set", "test", 1000) == {"official_splits/test/kitchen/rgb_00046.jpg": 1.046}
    with pytest.raises(st.PackError, match="names the images official_splits/t"):
        nyu(root, {"official_splits/train/kitchen": (46,)})
        packed(root, tmp_path / "other", splits="lists")


def test_texts_in_braces_may_differ(tmp_path):
    """Images lie below a date, masks below a day, and the split is that of the masks."""
    root = tmp_path / "plain"
    for number, split in ((1, "train"), (2, "train"), (3, "val")):
        image(root / f"images/2026-0{number}/{number}.jpg")
        depth(root / f"depths/day {number}/{split}/{number}.png", number)
    patterns = {"image": "images/{*}/*.jpg", "depth": "depths/{**}/*.png"}
    packed(root, tmp_path / "set", map=patterns)
    assert depths(tmp_path / "set", "train", 1) == {"images/2026-01/1.jpg": 1, "images/2026-02/2.jpg": 2}
    assert depths(tmp_path / "set", "val", 1) == {"images/2026-03/3.jpg": 3}
    image(root / "images/2026-09/1.jpg")
    with pytest.raises(st.PackError, match="images with the same name"):
        packed(root, tmp_path / "other", map=patterns)


def test_depths_stay_where_they_are(tmp_path):
    root = kitti(tmp_path / "kitti", velodyne=False)
    packed(root, tmp_path / "set", split="val")
    st.index(root, tmp_path / "index")
    dataset = st.Dataset(tmp_path / "index", source=[root])
    assert sorted(dataset.splits) == ["train", "val"]
    assert dataset.split("val").fingerprint == st.Dataset(tmp_path / "set").split("val").fingerprint


DOCS = pathlib.Path(__file__).parents[3] / "docs"


def test_what_is_no_source_says_what_to_do(tmp_path):
    """Files that users of these datasets have at hand: lists without a header, and HDF5."""
    lists = tmp_path / "nyu_train_files.txt"
    lists.write_text("/kitchen/rgb_00045.jpg /kitchen/sync_depth_00045.png 518.8579\n")
    with pytest.raises(st.PackError, match='text file is not a list.*splits="lists"'):
        packed(lists, tmp_path / "set")
    table = tmp_path / "nyu2_train.csv"
    table.write_text("data/a/37.jpg,data/a/37.png\ndata/a/38.jpg,data/a/38.png\n")
    with pytest.raises(st.PackError, match="column `data/a/37.jpg`: this is the name of an image, so the list has no header"):
        packed(table, tmp_path / "set")
    for header in (0, 512):
        (tmp_path / "labeled.mat").write_bytes(b"\0" * header + b"\x89HDF\r\n\x1a\n" + b"\0" * 512)
        with pytest.raises(st.PackError, match="an HDF5 file.*h5py"):
            packed(tmp_path / "labeled.mat", tmp_path / "set")
    (tmp_path / "labeled.mat").write_bytes(b"\0" * 600)
    with pytest.raises(st.PackError, match="unknown format"):
        packed(tmp_path / "labeled.mat", tmp_path / "set")


def test_the_lines_that_read_hdf5(tmp_path, monkeypatch):
    """Runs the lines of the documentation on arrays as MATLAB stores them."""
    pixels = np.random.default_rng(0).integers(0, 256, (3, *SIZE, 3), np.uint8)
    metres = np.float32([[[number + 1] * SIZE[1]] * SIZE[0] for number in range(3)])
    with h5py.File(tmp_path / "nyu_depth_v2_labeled.mat", "w") as file:
        file["images"] = pixels.transpose(0, 3, 2, 1)
        file["depths"] = metres.transpose(0, 2, 1)
    scipy.io.savemat(tmp_path / "splits.mat", {"trainNdxs": np.array([[1], [3]]), "testNdxs": np.array([[2]])})
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "pack.md").read_text()
    exec(re.search(r"```python\n(import pathlib, h5py.*?)```", text, re.DOTALL)[1], {})
    packed("nyu", tmp_path / "set")
    keys = {"train": (0, 2), "test": (1,)}
    for split, numbers in keys.items():
        found = st.Loader(st.Dataset(tmp_path / "set").split(split), 1, [st.Image([st.ResizeTo(SIZE)]), st.FurtherImage("depth", kind="values"), "image/key"])
        seen = {}
        for batch in found:
            seen[int(batch["image/key"][0][-9:-4])] = batch
        assert seen.keys() == set(numbers)
        for number, batch in seen.items():
            assert (batch["image"][0] == pixels[number]).all() and (batch["depth"][0, :, :, 0] == 1000 * (number + 1)).all()
