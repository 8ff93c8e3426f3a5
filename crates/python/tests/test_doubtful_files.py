"""Files that lie next to images and may describe them, and options that a source does not have: `pack` refuses both, and what the message
advises works."""

import json
import os
import re
import shlex
import subprocess
import tarfile

import pytest
import shardtool as st
from PIL import Image


def write(folder, *names, gray=()):
    """Writes images of these names; those in `gray` may be masks."""
    for number, name in enumerate([*names, *gray]):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new(*(("L", (24, 16), number) if name in gray else ("RGB", (24, 16), (number, 9, 9)))).save(path)
    return folder


def patterns(message):
    """Returns the patterns that a message advises: the text between the first braces."""
    return json.loads(re.search(r"`map=(\{[^`]*\})`", message)[1])


# Images, and files that describe them.
LAYOUTS = {
    "mask behind the name": (["benign/b (1).png", "malignant/m (1).png"], ["benign/b (1)_mask.png", "malignant/m (1)_mask.png"]),
    "mask before the name": (["cat/image_1.jpg", "cat/image_2.jpg"], ["cat/mask_1.png", "cat/mask_2.png"]),
    "in one folder": (["a.jpg", "b.jpg"], ["a-seg.png", "b-seg.png"]),
    "with two words": (["a_rgb.png", "b_rgb.png"], ["a_depth.png", "b_depth.png"]),
    "numbered": (["x/a.png", "x/b.png"], ["x/a_Mask_1.png", "x/b_Mask_1.png"]),
    "with any other word": (["x/0_sat.jpg", "x/1_sat.jpg"], ["x/0_mask.png", "x/1_mask.png"]),
    "without a separator": (["img0.jpg", "img1.jpg"], ["mask0.png", "mask1.png"]),
    "with the letters of the word": (["s.jpg", "k.jpg"], ["mask_s.png", "mask_k.png"]),
    "with two extensions": (["x/a.jpg", "x/b.png"], ["x/a_mask.png", "x/b_mask.png"]),
    "by the extension": (["x/a.jpg", "y/b.jpg"], ["x/a.png", "y/b.png"]),
    "in folders of a network's task": (["input/1.png", "input/2.png"], ["target/1.png", "target/2.png"]),
    "in folders of a change": (["A/1.png", "A/2.png", "B/1.png", "B/2.png"], ["label/1.png", "label/2.png"]),
    "in a folder of values": (["photographs/1.jpg", "photographs/2.jpg"], ["gt/1.png", "gt/2.png"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_that_may_describe_others_are_asked_about(layout, tmp_path):
    images, others = LAYOUTS[layout]
    source = write(tmp_path / "source", *images, gray=others)
    with pytest.raises(st.ShardtoolError, match='`kind="folder"`') as refusal:
        st.pack(source, tmp_path / "dataset")
    assert not (tmp_path / "dataset" / "dataset.json").exists()
    given = patterns(str(refusal.value))
    (feature,) = set(given) - {"image"}
    packed = st.pack(source, tmp_path / "pairs", map=given)
    found = {record["key"]: record["features"][feature] for record in st.Dataset(tmp_path / "pairs")["train"]}
    # The images of a change are two to one mask; the message names one of them.
    assert packed.images == 2 and set(found) <= set(images)
    files = {(source / other).read_bytes() for other in [*others, *images]}
    assert set(found.values()) <= files - {(source / key).read_bytes() for key in found}
    samples = st.pack(source, tmp_path / "samples", kind="folder")
    assert samples.images == len(images) + len(others)


def tar(path, *names):
    gray = [name for name in names if "mask.png" in name]
    write(path.parent / "members", *(name for name in names if name not in gray), gray=gray)
    with tarfile.open(path, "w") as file:
        for name in names:
            file.add(path.parent / "members" / name, name)
    return path


@pytest.mark.parametrize(
    "names",
    [
        ["a.jpg", "a_mask.png", "b.jpg", "b_mask.png"],
        ["x/a_depth.png", "x/a_rgb.png", "x/b_depth.png", "x/b_rgb.png"],
        ["0_mask.png", "0_sat.jpg", "1_mask.png", "1_sat.jpg"],
    ],
)
def test_samples_of_a_tar_that_may_describe_others_are_asked_about(names, tmp_path):
    source = tar(tmp_path / "a.tar", *names)
    with pytest.raises(st.ShardtoolError, match="may describe .*`kind=\"webdataset\"`"):
        st.pack(source, tmp_path / "dataset")
    assert st.pack(source, tmp_path / "samples", kind="webdataset").images == len(names)
    # What the message advises.
    joined = tar(tmp_path / "b.tar", *(re.sub("_(mask|depth|rgb|sat)", r".\1", name) for name in names))
    image = {"x/a_rgb.png": "rgb.png", "0_sat.jpg": "sat.jpg"}.get(names[1])
    packed = st.pack(joined, tmp_path / "joined", map={"image": image} if image else None)
    assert packed.images == 2
    other = tar(tmp_path / "c.tar", "a.jpg", "b_mask.jpg", "c.jpg", "masks.jpg")
    assert st.pack(other, tmp_path / "others").images == 4


@pytest.mark.parametrize(
    "names",
    [
        ["cat/1.jpg", "cat/2.jpg", "dog/1.jpg", "dog/2.jpg"],
        ["A/1.jpg", "A/2.jpg", "B/1.jpg", "B/2.jpg", "C/1.jpg", "C/2.jpg"],
        ["masks/carnival_mask.jpg", "masks/face_mask.jpg", "hats/1.jpg"],
        ["normal/1.jpg", "normal/2.jpg", "ill/3.jpg"],
        ["cat/a.jpg", "cat/a.png", "cat/b.jpg", "cat/c.png"],
        ["low/1.jpg", "low/2.jpg", "high/3.jpg", "high/4.jpg"],
        [f"{kind}/{at}.jpg" for kind in ["cat", "dog", "mask", "bird"] for at in range(3)],
        [f"{kind}/{at}.jpg" for kind in ["mask", "no_mask"] for at in range(3)],
        [f"cat/{at}.jpg" for at in range(30)] + ["cat/1.png", "cat/2.png"],
        ["cat/1.jpg", "cat/1.jpeg", "cat/2.jpg", "cat/2.jpeg"],
        [*(f"car/{at}.jpg" for at in range(30)), "car/mustang.jpg", "car/mustang-gt.jpg"],
        ["normal_1.jpg", "tumor_1.jpg", "normal_2.jpg", "tumor_2.jpg"],
        ["a/0.jpg", "a/1.jpg", "b/0.jpg", "b/1.jpg"],
        ["test_tube_1.jpg", "test_tube_2.jpg"],
        ["test_tube/1.jpg", "train_station/2.jpg"],
    ],
)
def test_names_that_only_resemble_those_are_samples(names, tmp_path):
    assert st.pack(write(tmp_path / "source", *names), tmp_path / "dataset").images == len(names)


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("classes", {"box_unit": "fraction"}, "box"),
        ("classes", {"boxes": "xyxy"}, "boxes"),
        ("classes", {"annotated": "coded"}, "masks"),
        ("classes", {"member_key": "last-dot"}, "tar"),
        ("classes", {"quality": 50}, "resize"),
        ("flat", {"classes": "names.txt"}, "labels"),
        ("list", {"member_key": "first-dot"}, "tar"),
        ("list", {"classes": "names.txt"}, "labels"),
        ("flat", {"columns": {"mask": "file"}}, "list"),
    ],
)
def test_an_option_without_effect_is_refused(source, options, expected, tmp_path):
    write(tmp_path / "classes", "cat/1.jpg", "dog/2.jpg")
    write(tmp_path / "flat", "1.jpg", "2.jpg")
    (tmp_path / "list").mkdir()
    (tmp_path / "list.csv").write_text("path,height\nflat/1.jpg,3\nflat/2.jpg,4\n")
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    given = {name: tmp_path / value if name == "classes" else value for name, value in options.items()}
    path = tmp_path / ("list.csv" if source == "list" else source)
    with pytest.raises((st.ShardtoolError, ValueError), match=expected):
        st.pack(path, tmp_path / "dataset", **given)
    assert not (tmp_path / "dataset" / "dataset.json").exists()


@pytest.mark.parametrize("option", ["--boxes xyxy", "--first-pixel 0"])
def test_index_of_tfrecords_refuses_options_about_boxes(option, tmp_path):
    st.pack(write(tmp_path / "photos", "cat/1.jpg", "dog/2.jpg"), tmp_path / "dataset")
    shards = sorted((tmp_path / "dataset").glob("*.tfrecord"))
    command = [os.environ.get("SHARDTOOL", "shardtool"), "index", *map(str, shards), "--out", str(tmp_path / "other")]
    ended = subprocess.run([*command, *shlex.split(option)], capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended
    assert "boxes" in ended.stderr or "first pixel" in ended.stderr


def classes_in(kind, folder, first, second):
    """Writes two samples, whose classes have these names, as one kind of source."""
    if kind == "folders":
        return write(folder, f"{first}/1.png", f"{second}/2.png")
    write(folder.parent / "images", "1.png", "2.png")
    folder.mkdir()
    list_file = folder / "list.csv"
    list_file.write_text(f'path,label\n../images/1.png,"{first}"\n../images/2.png,"{second}"\n')
    return list_file


@pytest.mark.parametrize("kind", ["folders", "list"])
@pytest.mark.parametrize(("first", "second"), [("caf\u00e9", "cafe\u0301"), ("cat", "cat "), ("hot dog", "hot  dog"), (" a", "a")])
def test_classes_whose_names_look_the_same_are_asked_about(kind, first, second, tmp_path):
    source = classes_in(kind, tmp_path / "source", first, second)
    with pytest.raises(st.ShardtoolError, match="`classes=FILE`") as refusal:
        st.pack(source, tmp_path / "dataset")
    for name in [first, second]:
        shown = "".join(letter if letter.isascii() else f"\\u{{{ord(letter):x}}}" for letter in name)
        assert f"`{shown}`" in str(refusal.value)
    names = tmp_path / "names.txt"
    names.write_text(f"{first}\n{second}\n")
    st.pack(source, tmp_path / "two", classes=names)
    assert st.Dataset(tmp_path / "two")["train"].classes == [first, second]


def test_class_names_that_differ_in_case_are_two(tmp_path):
    st.pack(write(tmp_path / "source", "a/1.png", "A/2.png"), tmp_path / "dataset")
    assert st.Dataset(tmp_path / "dataset")["train"].classes == ["A", "a"]


@pytest.mark.parametrize("second", ["./1.png", "x/..//./1.png", "1.png", ".//1.png"])
def test_a_file_that_a_list_names_in_two_spellings_is_refused(second, tmp_path):
    write(tmp_path, "1.png", "x/2.png")
    list_file = tmp_path / "list.csv"
    list_file.write_text(f"path,label\n1.png,0\nx/2.png,1\n{second},0\n")
    if ".." in second:  # a link may lie between, so it need not be the same file
        assert st.pack(list_file, tmp_path / "dataset").images == 3
        return
    with pytest.raises(st.ShardtoolError, match="lines 2 and 4 have the same key"):
        st.pack(list_file, tmp_path / "dataset")
    list_file.write_text(f"path,label,key\n1.png,0,a\nx/2.png,1,b\n{second},0,./a\n")
    assert st.pack(list_file, tmp_path / "dataset").images == 3


def test_images_of_a_folder_that_are_named_for_splits_are_asked_about(tmp_path):
    source = write(tmp_path / "photos", "train_001.jpg", "train_002.jpg", "test_001.jpg")
    with pytest.raises(st.ShardtoolError, match=r"file names names splits \(test, train\).*`splits=\"none\"`"):
        st.pack(source, tmp_path / "dataset")
    assert st.pack(source, tmp_path / "one", splits="none").images == 3
    only = write(tmp_path / "others", "test_1.jpg", "test_2.jpg")
    with pytest.raises(st.ShardtoolError, match="would be packed as `train`"):
        st.pack(only, tmp_path / "dataset")
    assert st.pack(only, tmp_path / "test", split="test").images == 2
    mixed = write(tmp_path / "mixed", "train_ticket.jpg", "bus_ticket.jpg")
    assert st.pack(mixed, tmp_path / "tickets").images == 2


def test_paths_of_a_list_that_lie_in_folders_of_splits_are_asked_about(tmp_path):
    write(tmp_path, "train/1.jpg", "test/2.jpg")
    for name in ["all.csv", "my_train.csv"]:
        (tmp_path / name).write_text("path,label\ntrain/1.jpg,0\ntest/2.jpg,1\n")
    (tmp_path / "keys.csv").write_text(f"path,key\n{tmp_path}/train/1.jpg,a\n{tmp_path}/test/2.jpg,b\n")
    with pytest.raises(st.ShardtoolError, match=r"first folder of the paths names splits"):
        st.pack(tmp_path / "keys.csv", tmp_path / "dataset")
    with pytest.raises(st.ShardtoolError, match=r"first folder of the paths names splits \(test, train\)"):
        st.pack(tmp_path / "all.csv", tmp_path / "dataset")
    assert st.pack(tmp_path / "all.csv", tmp_path / "one", splits="none").images == 2
    (tmp_path / "one.csv").write_text("path\ntest/2.jpg\n")
    with pytest.raises(st.ShardtoolError, match=r"the folder of all paths names splits \(test\), but all .* as `train`"):
        st.pack(tmp_path / "one.csv", tmp_path / "dataset")
    assert st.pack(tmp_path / "one.csv", tmp_path / "test", split="test").images == 1
    # A list that is named for a split decides: those of LVIS have images in folders of both.
    assert st.pack(tmp_path / "my_train.csv", tmp_path / "named").images == 2


@pytest.mark.parametrize("folds", [["fold1", "fold2"], ["Fold_0", "Fold_1", "Fold_2"], ["part-1", "part-2"]])
def test_folds_of_class_folders_are_no_classes(folds, tmp_path):
    names = [f"{fold}/{kind}/{at}.jpg" for at, fold in enumerate(folds) for kind in ["cat", "dog"]]
    source = write(tmp_path / "source", *names)
    with pytest.raises(st.ShardtoolError, match="are folds or parts"):
        st.pack(source, tmp_path / "dataset")
    st.pack(source, tmp_path / "splits", splits="names")
    dataset = st.Dataset(tmp_path / "splits")
    assert {name: list(dataset[name].classes) for name in folds} == dict.fromkeys(folds, ["cat", "dog"])
    st.pack(source, tmp_path / "classes", splits="none")
    assert st.Dataset(tmp_path / "classes")["train"].classes == folds
    # Without class folders inside, they are classes.
    assert st.pack(write(tmp_path / "parts", "part1/1.jpg", "part2/2.jpg"), tmp_path / "named").classes == 2
