"""Keypoints keep their names, their sides and their lines from the annotations to the batch: what flips, what joins, what is refused."""

import io
import json
import os
import subprocess
import urllib.request

import numpy as np
import pytest
import shardtool as st
from PIL import Image

SHARDTOOL = os.environ.get("SHARDTOOL", "shardtool")
NAMES = ("nose", "left_eye", "right_eye")
SKELETON = ((0, 1), (2, 0))
#: The colour of each point in the stored images.
COLOURS = {"nose": (0, 255, 0), "left_eye": (255, 0, 0), "right_eye": (0, 0, 255)}
FEATURE = "image/object/keypoints"
WIDTH, HEIGHT = 40, 24
#: A step that leaves the images as they are.
SAME = st.CenterCrop((HEIGHT, WIDTH))


def face(number):
    """Returns a PNG with a point of each colour, and where they are: x and y of the pixels."""
    pixels = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    places = [(18 + number % 3, 14), (10 + number % 5, 6), (28, 7)]
    for name, (x, y) in zip(NAMES, places, strict=True):
        pixels[y, x] = COLOURS[name]
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue(), places


def coco(folder, categories, count=6, points=None, of_second=False, dogs=0):
    """Writes images with a face each, and their file of annotations; the centre of a pixel is half a pixel from its edge. The last face
    may be of the second category; `dogs` further images have an object of it without points."""
    folder.mkdir()
    images, annotations = [], []
    for number in range(count):
        data, places = face(number)
        (folder / f"{number}.png").write_bytes(data)
        images.append({"id": number, "file_name": f"{number}.png", "width": WIDTH, "height": HEIGHT})
        stored = [value for x, y in places for value in (x + 0.5, y + 0.5, 2)]
        annotations.append(
            {"id": number, "image_id": number, "category_id": categories[0]["id"], "bbox": [2, 2, 36, 20], "area": 720,
             "iscrowd": 0, "keypoints": stored if points is None else points, "num_keypoints": 3}
        )  # fmt: skip
    if of_second:
        annotations[-1]["category_id"] = categories[1]["id"]
    for number in range(count, count + dogs):
        (folder / f"{number}.png").write_bytes(face(number)[0])
        images.append({"id": number, "file_name": f"{number}.png", "width": WIDTH, "height": HEIGHT})
        annotations.append({**annotations[0], "id": number, "image_id": number, "category_id": categories[1]["id"], "keypoints": []})
    path = folder / "annotations.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def person(**members):
    """A category as the files of COCO have it: pairs from 1."""
    described = {"keypoints": list(NAMES), "skeleton": [[a + 1, b + 1] for a, b in SKELETON]}
    return {"id": 1, "name": "person", "supercategory": "being", **described, **members}


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faces")
    packed = st.pack(coco(folder / "coco", [person()]), folder / "dataset", seed=None)
    assert (packed.images, packed.rejected) == (6, 0)
    # Only what is not kept is named.
    assert packed.left_out == ("`supercategory` of the categories",)
    return folder / "dataset"


def colour_at(batch, row, point):
    """Returns the colour of the pixel in which a point lies."""
    x, y, visibility = batch["keypoints"].row(row).reshape(-1, 3)[point]
    assert visibility == 2
    return tuple(int(value) for value in batch["image"][row, int(y), int(x)])


def check_colours(split, flipped, **objects):
    """Checks that each point lies on the pixel of its name; in mirrored images, that of the other side is on its place."""
    steps = [st.RandomHorizontalFlip(1.0 if flipped else 0.0)]
    splits = split if isinstance(split, list) else [split]
    count = sum(map(len, splits))
    loader = st.Loader(splits, count, [st.Image([SAME, *steps]), st.Objects(keypoints=FEATURE, **objects)])
    (batch,) = loader
    other = {"left_eye": "right_eye", "right_eye": "left_eye"} if flipped else {}
    for row in range(count):
        for point, name in enumerate(NAMES):
            assert colour_at(batch, row, point) == COLOURS[other.get(name, name)]


def test_the_points_of_coco_keep_names_sides_and_lines(faces):
    dataset = st.Dataset(faces)
    assert dataset.keypoints == st.Keypoints(NAMES, skeleton=SKELETON) == dataset.split("train").keypoints
    train = dataset.split("train")
    check_colours(train, False)
    # By the names, which the user need not repeat.
    check_colours(train, True)
    check_colours(train, True, flip_index=[0, 2, 1])
    with pytest.raises(AssertionError):
        check_colours(train, True, flip_index=[0, 1, 2])
    with pytest.raises(st.OptionError, match="it has 2 numbers, and the objects of the dataset have 3 points"):
        check_colours(train, True, flip_index=[1, 0])


def test_points_in_lists_of_three_and_crowds_that_are_truths(tmp_path):
    """As in the files of RHD and of PoseTrack."""
    path = coco(tmp_path / "coco", [person()])
    document = json.loads(path.read_text())
    for annotation in document["annotations"]:
        annotation["keypoints"] = np.reshape(annotation["keypoints"], (-1, 3)).tolist()
        annotation["iscrowd"] = annotation["id"] == 1
    path.write_text(json.dumps(document))
    st.pack(path, tmp_path / "dataset", seed=None)
    split = st.Dataset(tmp_path / "dataset").split("train")
    check_colours(split, True)
    assert [int(np.reshape(split[row]["features"]["image/object/iscrowd"], -1)[0]) for row in range(3)] == [0, 1, 0]
    document["annotations"][0]["keypoints"] = [[1, 2], [3, 4]]
    path.write_text(json.dumps(document))
    with pytest.raises(st.PackError, match="`keypoints` is not a list of x, y and visibility"):
        st.pack(path, tmp_path / "other")


def test_names_that_do_not_say_the_sides_are_asked_about(tmp_path):
    for number, names in enumerate((["nose", "lankle", "rankle"], ["nose", "left_eye", "eye"])):
        split = packed(tmp_path, number, names)
        with pytest.raises(st.OptionError, match=r'the dataset names its points, but has "(lankle|left_eye)"'):
            check_colours(split, True)
        check_colours(split, True, flip_index=[0, 2, 1])
    # Without sides, nothing says that the points have none.
    with pytest.raises(st.OptionError, match="a step flips"):
        check_colours(packed(tmp_path, 9, ["nose", "thumb", "index"]), True)


def packed(folder, number, names):
    """Returns the split of a COCO file whose points have these names."""
    category = person(keypoints=names, skeleton=[])
    st.pack(coco(folder / f"coco-{number}", [category]), folder / f"dataset-{number}")
    return st.Dataset(folder / f"dataset-{number}").split("train")


def test_what_the_manifest_cannot_say_is_named(tmp_path):
    dog = person(id=2, name="dog", keypoints=["nose", "left_ear", "right_ear"])
    unnamed = {"id": 2, "name": "dog"}
    for number, (categories, of_second, message) in enumerate((
        ([person(), dog], True, "`keypoints` of the categories, which are not the same of person and dog"),
        # Points of a category without names are not those of the other one.
        ([person(), unnamed], True, "`keypoints` of the categories, which are not the same of person and dog"),
        ([person(keypoints=["a", "a", "b"])], False, "`keypoints` of the categories, which have an empty name, or a name twice: a"),
        ([person(keypoints="nose")], False, "`keypoints` of the categories, which are not a list of names"),
    )):
        result = st.pack(coco(tmp_path / f"two-{number}", categories, of_second=of_second), tmp_path / f"a-{number}")
        assert any(message in text for text in result.left_out), result.left_out
        assert result.images == 6 and st.Dataset(tmp_path / f"a-{number}").keypoints is None
    # A category whose objects have no points says nothing of them, and is packed.
    st.pack(coco(tmp_path / "other", [person(), unnamed], dogs=2), tmp_path / "other-dataset")
    assert st.Dataset(tmp_path / "other-dataset").keypoints == st.Keypoints(NAMES, skeleton=SKELETON)
    assert len(st.Dataset(tmp_path / "other-dataset").split("train")) == 8
    for number, skeleton in enumerate(([[1, 9]], [[0, 1]], [[1, 1]], [[1]], "all")):
        result = st.pack(coco(tmp_path / f"lines-{number}", [person(skeleton=skeleton)]), tmp_path / f"b-{number}")
        assert any("`skeleton` of the categories, which has" in text and "from 1 to 3" in text for text in result.left_out)
        assert st.Dataset(tmp_path / f"b-{number}").keypoints == st.Keypoints(NAMES)
    # Names of another number of points than the annotations have.
    result = st.pack(coco(tmp_path / "few", [person(keypoints=["nose", "chin"], skeleton=[])]), tmp_path / "c")
    assert any("which are 2 names, and no object has as many points" in text for text in result.left_out) and result.images == 6
    result = st.pack(coco(tmp_path / "no-points", [person()], points=[]), tmp_path / "d")
    assert sum("since no annotation has keypoints" in text for text in result.left_out) == 2


def test_what_is_left_out_is_not_taken_from_the_dataset(faces, tmp_path):
    """The dataset names other points than the split, whose names it cannot keep."""
    st.pack(coco(tmp_path / "a", [person(), {"id": 2, "name": "dog"}]), tmp_path / "dataset")
    dog = person(id=2, name="dog", keypoints=["right_eye", "left_eye", "nose"])
    other = coco(tmp_path / "b", [person(), dog], of_second=True)
    with pytest.raises(st.PackError, match="something that a dataset cannot keep: .*not the same of person and dog"):
        st.pack(other, tmp_path / "dataset", split="val")
    st.pack(other, tmp_path / "dataset", split="val", keypoints=st.Keypoints(NAMES, skeleton=SKELETON))
    # A split that says less has what the dataset says.
    st.pack(coco(tmp_path / "c", [person(skeleton=[]), {"id": 2, "name": "dog"}]), tmp_path / "dataset", split="test")
    assert st.Dataset(tmp_path / "dataset").keypoints == st.Keypoints(NAMES, skeleton=SKELETON)


def test_a_dataset_that_does_not_say_what_points_are_takes_more(tmp_path):
    """Its records have points; the names of further ones are left out by name, unless the user gives them."""
    st.pack(coco(tmp_path / "a", [person(keypoints=[], skeleton=[])]), tmp_path / "dataset")
    named = coco(tmp_path / "b", [person()])
    result = st.pack(named, tmp_path / "dataset", split="val")
    assert "what the keypoints are, since the dataset does not say it" in result.left_out and result.images == 6
    with pytest.raises(st.PackError, match="not described in the dataset and 3"):
        st.pack(named, tmp_path / "dataset", split="test", keypoints=st.Keypoints(NAMES, skeleton=SKELETON))


def yolo(root, more, points=3):
    """Writes a dataset of YOLO with a face in each image."""
    for name in ("images/train", "labels/train"):
        (root / name).mkdir(parents=True)
    for number in range(4):
        data, places = face(number)
        (root / f"images/train/{number}.png").write_bytes(data)
        values = [f"{(x + 0.5) / WIDTH} {(y + 0.5) / HEIGHT} 2" for x, y in places]
        (root / f"labels/train/{number}.txt").write_text(f"0 0.5 0.5 0.9 0.8 {' '.join(values[:points])}\n")
    (root / "data.yaml").write_text(f"train: images/train\nnames: [person]\nkpt_shape: [{points}, 3]\n{more}")
    return root


def test_the_points_of_yolo(tmp_path):
    st.pack(yolo(tmp_path / "numbers", "flip_idx: [0, 2, 1]\n"), tmp_path / "a")
    assert st.Dataset(tmp_path / "a").keypoints == st.Keypoints(flip_index=[0, 2, 1])
    check_colours(st.Dataset(tmp_path / "a").split("train"), True)
    names = "kpt_names:\n  0:\n    - nose\n    - left_eye\n    - right_eye\n"
    st.pack(yolo(tmp_path / "names", f"flip_idx: [0, 2, 1]\n{names}"), tmp_path / "b")
    assert st.Dataset(tmp_path / "b").keypoints == st.Keypoints(NAMES, flip_index=[0, 2, 1])
    numbers = "kpt_names: {0: [1, 2, 3]}\n"
    for number, (more, message, described) in enumerate((
        ("flip_idx: [0, 1]\n", "`flip_idx`, which is [0,1]: expected 3 numbers of points", None),
        ("flip_idx: [1, 2, 0]\n", "two flips do not restore the order", None),
        (names + "flip_idx: [0, 5, 1]\n", "two flips do not restore the order", st.Keypoints(NAMES)),
        ("kpt_names:\n  0: [a, b]\n", "`kpt_names`, which has 2 names, and `kpt_shape` 3 points", None),
        ("kpt_names: nose\n", "`kpt_names`, which is not a list of names", None),
        (names + "flip_idx: [0, 1, 2]\n", "which exchange different points", None),
        ("flip_idx: []\n" + numbers, None, st.Keypoints(["1", "2", "3"])),
    )):
        result = st.pack(yolo(tmp_path / f"odd-{number}", more), tmp_path / f"c-{number}")
        assert result.images == 4 and st.Dataset(tmp_path / f"c-{number}").keypoints == described, (more, result.left_out)
        assert message is None or any(message in text for text in result.left_out), result.left_out
    # Names of some of the classes.
    two = yolo(tmp_path / "two", names)
    (two / "data.yaml").write_text((two / "data.yaml").read_text().replace("[person]", "[person, dog]"))
    assert any("`kpt_names`, which the class dog does not have" in text for text in st.pack(two, tmp_path / "d").left_out)


def rows(count, points=NAMES):
    """Samples of a writer, with as many points as there are names."""
    for number in range(count):
        data, places = face(number)
        values = [[v for x, y in (places * 2)[: len(points)] for v in (x + 0.5, y + 0.5, 2)]]
        yield {"key": f"row-{number}", "image": data, "objects": {"bbox": [[2, 2, 36, 20]], "category": [0], "keypoints": values}}


def write(folder, split="train", keypoints=None, points=NAMES, **options):
    with st.Writer(folder, split, classes=["person"], labels=False, keypoints=keypoints, **options) as writer:
        writer.write_many(rows(4, points))
    return st.Dataset(folder)


def test_writers_say_what_points_are(tmp_path):
    described = st.Keypoints(NAMES, [0, 2, 1], SKELETON)
    dataset = write(tmp_path / "a", keypoints=described)
    assert dataset.keypoints == described
    check_colours(dataset.split("train"), True)
    two_numbers = {"bbox": [[2, 2, 36, 20]], "category": [0], "keypoints": [[[1, 2], [3, 4], [5, 6]]]}
    with pytest.raises(st.OptionError, match="x, y and visibility"), st.Writer(tmp_path / "two", images=True, labels=False) as writer:
        writer.write({"key": "a", "image": face(0)[0], "objects": two_numbers})
    with pytest.raises(st.PackError, match="3 .`nose`, `left_eye`, `right_eye`. in the dataset and not described in the split"):
        write(tmp_path / "a", "val")
    with pytest.raises(st.PackError, match="keypoints of objects are 3"):
        write(tmp_path / "a", "val", st.Keypoints(["nose", "right_eye", "left_eye"]))
    with pytest.raises(st.PackError, match="its objects have 2 keypoints each; those of the dataset have 3"):
        write(tmp_path / "b", keypoints=described, points=NAMES[:2])
    assert write(tmp_path / "a", "val", described).keypoints == described
    for part in range(2):
        with st.Writer(tmp_path / "parts", classes=["person"], labels=False, keypoints=described, part=(part, 2)) as writer:
            writer.write_many({**row, "key": f"{part}-{row['key']}"} for row in rows(2))
    st.commit(tmp_path / "parts")
    assert st.Dataset(tmp_path / "parts").keypoints == described
    for wrong, message in (
        ((["a", "a"],), "a name twice: a"),
        ((["a"], [0, 1]), "the length of `flip_index`"),
        ((NAMES, [1, 2, 0]), "does not exchange two points: 1"),
        ((NAMES, (), [(0, 3)]), "counts from 0, that does not join two of the points: 0, 3"),
        ((), "neither `names` nor `flip_index`"),
    ):
        with pytest.raises(st.OptionError, match=message):
            st.Keypoints(*wrong)
    for wrong in (("nose",), ([1],), (NAMES, "021"), (NAMES, [0.5]), (NAMES, (), [(0, 1, 2)]), (NAMES, (), [3]), (None,), (b"abc",)):
        with pytest.raises(st.OptionTypeError):
            st.Keypoints(*wrong)
    with pytest.raises(st.OptionTypeError, match="expected `shardtool.Keypoints"):
        write(tmp_path / "wrong", keypoints={"names": NAMES})
    with pytest.raises(st.OptionError, match="samples with the feature image/object/keypoints"), st.Writer(
        tmp_path / "none", features={"n": "int64"}, labels=False, images=False, keypoints=described
    ):
        pass


def test_every_command_keeps_what_points_are(faces, tmp_path):
    described = st.Dataset(faces).keypoints

    def run(*arguments):
        done = subprocess.run([SHARDTOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    run("copy", faces, tmp_path / "copy")
    run("reshard", faces, tmp_path / "resharded", "--shards", 2)
    run("clone", tmp_path / "copy", "--out", tmp_path / "clone")
    st.pack(coco(tmp_path / "coco", [person()]), tmp_path / "val", split="val")
    run("merge", tmp_path / "merged", faces, tmp_path / "val")
    for name in ("copy", "resharded", "clone", "merged"):
        assert st.Dataset(tmp_path / name, source=tmp_path if name == "clone" else None).keypoints == described, name
    unnamed = [person(keypoints=[], skeleton=[])]
    st.pack(coco(tmp_path / "unnamed", unnamed), tmp_path / "numbers", split="test")
    refused = subprocess.run([SHARDTOOL, "merge", tmp_path / "no", faces, tmp_path / "numbers"], capture_output=True, text=True, timeout=120)
    assert refused.returncode == 2 and "not described in the split" in refused.stderr
    changed = tmp_path / "copy"
    st.Dataset(changed).delete(keys=["0.png"])
    assert st.Dataset(changed).keypoints == described
    check_colours(st.Dataset(changed).split("train"), True)
    more = coco(tmp_path / "more", [person()], 3)
    for path in more.parent.glob("*.png"):
        path.rename(path.with_name(f"more-{path.name}"))
    more.write_text(more.read_text().replace('"file_name": "', '"file_name": "more-'))
    st.Dataset(changed).append(more)
    assert len(st.Dataset(changed).split("train")) == 8 and st.Dataset(changed).keypoints == described
    other = coco(tmp_path / "other", [person(keypoints=["nose", "right_eye", "left_eye"])], 2)
    with pytest.raises(st.PackError, match="keypoints of objects are 3"):
        st.Dataset(changed).append(other)
    st.Dataset(changed).rollback(1)
    assert st.Dataset(changed).keypoints == described
    # A dataset is a source, too.
    st.pack(faces, tmp_path / "again")
    assert st.Dataset(tmp_path / "again").keypoints == described
    found = json.loads(run("info", faces, "--json"))["keypoints"]
    assert found == {"names": list(NAMES), "skeleton": [list(pair) for pair in SKELETON]}
    assert "keypoints of each object: 3\n  nose, left_eye, right_eye\n" in run("info", faces)


def test_columns_keep_the_number_of_points(tmp_path):
    write(tmp_path / "dataset", keypoints=st.Keypoints(NAMES))
    objects = "image/object/"
    columns = {objects + "bbox": "float", objects + "class/label": "int64", FEATURE: "float", FEATURE + "/shape": "int64"}

    def replaced(points):
        values = {"key": ["row-0"], objects + "bbox": [[0.0, 0.0, 1.0, 1.0]], objects + "class/label": [[0]]}
        values |= {FEATURE: [[0.25, 0.25, 2.0] * points], FEATURE + "/shape": [[1, points, 3]]}
        st.Dataset(tmp_path / "dataset").replace_columns(values, columns=columns, missing="keep")

    with pytest.raises(st.PackError, match=f"{FEATURE}.*6 values for 1 boxes"):
        replaced(2)
    replaced(3)
    assert st.Dataset(tmp_path / "dataset").keypoints == st.Keypoints(NAMES)
    # Without the feature the dataset has no names of points; the version before has them.
    st.Dataset(tmp_path / "dataset").drop_columns(list(columns))
    assert st.Dataset(tmp_path / "dataset").keypoints is None
    st.Dataset(tmp_path / "dataset").rollback(2)
    assert st.Dataset(tmp_path / "dataset").keypoints == st.Keypoints(NAMES)


def test_names_for_a_source_without_points_are_refused(tmp_path):
    (tmp_path / "images" / "cat").mkdir(parents=True)
    (tmp_path / "images" / "cat" / "a.png").write_bytes(face(0)[0])
    with pytest.raises(st.OptionError, match="samples with the feature image/object/keypoints"):
        st.pack(tmp_path / "images", tmp_path / "dataset", keypoints=st.Keypoints(NAMES))


def test_a_source_in_place_says_what_points_are(tmp_path):
    st.index(coco(tmp_path / "coco", [person()]), tmp_path / "dataset")
    dataset = st.Dataset(tmp_path / "dataset", source=tmp_path / "coco")
    assert dataset.keypoints == st.Keypoints(NAMES, skeleton=SKELETON)
    check_colours(dataset.split("train"), True)


def jsonl(folder, count=3, points=NAMES):
    """Writes a list of images with objects."""
    folder.mkdir()
    lines = []
    for row in rows(count, points):
        (folder / f"{row['key']}.png").write_bytes(row["image"])
        lines.append(json.dumps({"path": f"{row['key']}.png", "objects": row["objects"]}))
    path = folder / "rows.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_list_gets_its_points_from_a_file_or_from_the_dataset(faces, tmp_path):
    source, described = jsonl(tmp_path / "rows"), tmp_path / "keypoints.json"
    described.write_text(json.dumps({"names": NAMES, "skeleton": SKELETON}))

    def pack(name, *more):
        return subprocess.run(
            [SHARDTOOL, "pack", source, tmp_path / name, *more], capture_output=True, text=True, timeout=120
        )

    assert pack("a", "--keypoints", described).returncode == 0
    assert st.Dataset(tmp_path / "a").keypoints == st.Keypoints(NAMES, skeleton=SKELETON)
    st.pack(source, tmp_path / "b", keypoints=st.Keypoints(NAMES))
    assert st.Dataset(tmp_path / "b").keypoints == st.Keypoints(NAMES)
    # A split that says nothing takes what the dataset says, and its points are counted.
    st.pack(source, tmp_path / "a", split="val")
    assert len(st.Dataset(tmp_path / "a").split("val")) == 3
    with pytest.raises(st.PackError, match="its objects have 2 keypoints each"):
        st.pack(jsonl(tmp_path / "two", points=NAMES[:2]), tmp_path / "a", split="test", on_error="fail")
    for text, message in (
        ('{"names": ["a", "a"]}', "a name twice"),
        ('{"keypoints": ["a"]}', "unknown member `keypoints`"),
        ("[]", "expected an object"),
        ("{", "EOF"),
    ):
        described.write_text(text)
        done = pack("wrong", "--keypoints", described)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    with pytest.raises(st.PackError, match="it says what the keypoints are, and the option `keypoints` something else"):
        st.pack(coco(tmp_path / "coco", [person()]), tmp_path / "c", keypoints=st.Keypoints(["a", "b", "c"]))


def test_splits_with_other_points_are_not_mixed(faces, tmp_path):
    train = st.Dataset(faces).split("train")
    other = packed(tmp_path, 0, ["nose", "right_eye", "left_eye"])
    unnamed = write(tmp_path / "unnamed").split("train")
    numbers = write(tmp_path / "numbers", keypoints=st.Keypoints(flip_index=[0, 2, 1])).split("train")
    for second, message in ((other, "nose, right_eye, left_eye"), (unnamed, "have no names"), (numbers, "without names")):
        with pytest.raises(st.OptionError, match=f"different keypoints.*{message}"):
            st.Loader([train, second], 4, [st.Image([SAME]), st.Objects(keypoints=FEATURE)])
    # The user's numbers count where a dataset has none.
    for second in (unnamed, numbers):
        check_colours([train, second], True, flip_index=[0, 2, 1])
    with pytest.raises(st.OptionError, match="different keypoints"):
        check_colours([train, other], True, flip_index=[0, 2, 1])
    loader = st.Loader([train, unnamed], 2, [st.Image([SAME]), st.Objects(keypoints=FEATURE, flip_index=[0, 2, 1])])
    assert sum(len(batch["image"]) for batch in loader) == 10
    same = packed(tmp_path, 1, list(NAMES))
    loader = st.Loader([train, same], 4, [st.Image([SAME]), st.Objects(keypoints=FEATURE)])
    assert sum(len(batch["image"]) for batch in loader) == 12


def test_records_with_other_points_are_bad_samples(tmp_path):
    """Records of another program have two points each, and one has three."""
    with st.Writer(tmp_path / "dataset", classes=["person"], labels=False) as writer:
        writer.write_many([*rows(2), *({**row, "key": f"few-{row['key']}"} for row in rows(1, NAMES[:2]))])
    manifest = tmp_path / "dataset" / "dataset.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"splits": [', f'"keypoints": {json.dumps({"names": NAMES})},\n  "splits": [', 1))
    done = subprocess.run([SHARDTOOL, "repair", tmp_path / "dataset", "--reseal"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    split = st.Dataset(tmp_path / "dataset").split("train")
    assert st.Dataset(tmp_path / "dataset").keypoints == st.Keypoints(NAMES)
    loader = st.Loader(split, 3, [st.Image([SAME]), st.Objects(keypoints=FEATURE)], order=st.Sequential(), bad_samples="mask")
    (batch,) = loader
    assert batch["valid"].tolist() == [True, True, False]


def test_view_draws_the_lines_and_names(faces):
    with subprocess.Popen([SHARDTOOL, "view", faces, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}train/record/0", timeout=60) as answer:
            page = answer.read().decode()
        server.terminate()
    picture = page[page.index('<svg class="overlay"') :].split("</svg>")[0]
    assert picture.count('<line class="bone"') == len(SKELETON)
    assert all(f"<title>{name}</title>" in picture for name in NAMES)
