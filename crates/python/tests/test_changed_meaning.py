"""Labels, boxes, splits and numbers that would mean something else after a change, an export or a copy: each is right or refused by name."""

import copy
import datetime
import decimal
import io
import json
import os
import pickle
import subprocess

import numpy as np
import pytest
import shardtool as st
from conftest import frame, frames
from PIL import Image, ImageOps

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

COLOURS = {"ant": (200, 10, 10), "cow": (10, 200, 10), "zebra": (10, 10, 200)}


def run(*command):
    program = os.environ.get("SHARDTOOL", "shardtool")
    return subprocess.run([program, *map(str, command)], capture_output=True, text=True, check=False)


def good(*command):
    ended = run(*command)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def refused(match, *command):
    ended = run(*command)
    assert ended.returncode == 2 and match in ended.stderr, ended


def images(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        colour = COLOURS.get(name.split(".")[0], (90, 90, 90))
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 24), colour).save(folder / name)
    return folder


def text(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def named(tmp_path):
    """A dataset of three classes in another order than that of bytes; each image has the colour of its class."""
    images(tmp_path, "zebra.jpg", "ant.jpg", "cow.jpg")
    names = text(tmp_path / "names.txt", "zebra", "ant", "cow")
    rows = text(tmp_path / "rows.csv", "path,label", "zebra.jpg,zebra", "ant.jpg,ant", "cow.jpg,cow")
    st.pack(rows, tmp_path / "named", classes=names)
    return tmp_path / "named"


def classes_by_colour(dataset):
    """Returns whether each image has the colour of the class that its label names."""
    split = st.Dataset(dataset)["train"]
    for record in split:
        with Image.open(io.BytesIO(record["image"])) as image:
            colour = max(COLOURS, key=lambda name: -sum(abs(a - b) for a, b in zip(image.getpixel((3, 3)), COLOURS[name], strict=True)))
        assert split.classes[record["label"]] == colour, record["key"]
    return len(split)


@pytest.mark.parametrize("order", [["cow", "ant", "zebra"], ["cow"], ["pig", "zebra", "ant", "cow"]])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_append_refuses_ids_of_another_list_of_classes(order, kind, named, tmp_path):
    images(tmp_path, "more.jpg")
    if kind == "csv":
        rows = text(tmp_path / "more.csv", "path,label", "more.jpg,0")
    else:
        rows = text(tmp_path / "more.jsonl", json.dumps({"path": "more.jpg", "label": 0}))
    names = text(tmp_path / "others.txt", *order)
    # A new class is the first reason, unless it is wanted.
    refused("pig" if "pig" in order else "class id 0", "append", rows, named, "--classes", names)
    refused("class id 0", "append", rows, named, "--classes", names, "--add-classes")
    assert len(st.Dataset(named)["train"]) == 3
    good("append", rows, named, "--classes", tmp_path / "names.txt")
    assert st.Dataset(named)["train"]["more.jpg"]["label"] == 0


def test_a_writer_finds_classes_of_records_by_their_names(named, tmp_path):
    source = st.Dataset(named)["train"]
    for name, classes in [("other", ["ant", "cow", "zebra"]), ("more", ["pig", "cow", "ant", "zebra"]), ("same", [])]:
        with st.Writer(tmp_path / name, "train", classes=classes) as writer:
            writer.write_many(source)
        assert classes_by_colour(tmp_path / name) == 3
        assert st.Dataset(tmp_path / name)["train"].classes == (classes or source.classes)
    with pytest.raises(st.ShardtoolError, match="zebra"), st.Writer(tmp_path / "fewer", "train", classes=["ant", "cow"]) as writer:
        writer.write_many(source)
    changed = {**source[0], "label": 1}
    with pytest.raises(st.ShardtoolError, match="image/class/text"), st.Writer(tmp_path / "changed", "train", classes=["x", "y"]) as writer:
        writer.write(changed)


def test_classes_and_keypoints_of_objects_survive_a_writer(tmp_path):
    images(tmp_path, "a.jpg")
    objects = {"bbox": [[2, 2, 10, 10], [5, 5, 8, 8]], "category": ["dog", "cat"], "keypoints": [[3, 3, 2, 4, 4, 1], [6, 6, 2, 7, 7, 2]]}
    text(tmp_path / "rows.jsonl", json.dumps({"path": "a.jpg", "objects": objects | {"category": [1, 0]}}))
    names = text(tmp_path / "names.txt", "cat", "dog")
    st.pack(tmp_path / "rows.jsonl", tmp_path / "one", classes=names)
    source = st.Dataset(tmp_path / "one")["train"]
    assert source[0]["features"]["image/object/class/label"] == [1, 0]
    for classes in [["dog", "cat"], ["cat", "dog"]]:
        folder = tmp_path / "-".join(classes)
        with st.Writer(folder, "train", classes=classes, labels=False) as writer:
            writer.write(source[0])
        copy = st.Dataset(folder)["train"]
        found = copy[0]["features"]
        assert [copy.classes[number] for number in found["image/object/class/label"]] == ["dog", "cat"]
        for name in ["image/object/keypoints", "image/object/keypoints/shape", "image/object/bbox"]:
            assert found[name] == source[0]["features"][name]


PIXELS = [8.0, 6.0, 16.0, 12.0]
BOXES = {"pixels": PIXELS, "width and height": [0.5, 0.5, 0.2, 0.2], "outside": [1.2, 0.1, 1.4, 0.3], "three numbers": [0.1, 0.1, 0.2]}


@pytest.mark.parametrize("boxes", BOXES)
def test_boxes_in_the_form_of_records_are_checked(boxes, tmp_path):
    images(tmp_path, "a.jpg")
    numbers, good_box = BOXES[boxes], [0.25, 0.25, 0.5, 0.5]
    with pytest.raises(st.ShardtoolError, match="image/object/bbox|box 0"), st.Writer(tmp_path / "w", "train") as writer:
        writer.write({"key": "a", "image": tmp_path / "a.jpg", "image/object/bbox": numbers})
    text(tmp_path / "a.jsonl", json.dumps({"path": "a.jpg", "image/object/bbox": numbers}))
    with pytest.raises(st.PackError, match="image/object/bbox|box 0"):
        st.pack(tmp_path / "a.jsonl", tmp_path / "p")
    text(tmp_path / "good.jsonl", json.dumps({"path": "a.jpg", "image/object/bbox": good_box}))
    st.pack(tmp_path / "good.jsonl", tmp_path / "good")
    for option in ["--boxes=xyxy", "--box-unit=pixel"]:
        ended = run("pack", tmp_path / "good.jsonl", tmp_path / "x", option)
        assert ended.returncode != 0 and "form of records" in ended.stderr + ended.stdout, ended
    text(tmp_path / "new.jsonl", json.dumps({"path": "a.jpg", "image/object/bbox": numbers}))
    refused("image/object/bbox", "column", "replace", tmp_path / "good", tmp_path / "new.jsonl")
    if len(numbers) == 4:
        members = dict(zip(["xmin", "ymin", "xmax", "ymax"], numbers, strict=True))
        columns = {f"image/object/bbox/{name}": [[value]] for name, value in members.items()}
        image = (tmp_path / "a.jpg").read_bytes()
        parquet.write_table(pyarrow.table({"image": [{"bytes": image, "path": "a.jpg"}], **columns}), tmp_path / "a.parquet")
        with pytest.raises(st.PackError, match="image/object/bbox|box 0"):
            st.pack(tmp_path / "a.parquet", tmp_path / "q")


def test_boxes_of_records_that_were_written_elsewhere_are_bad_samples(tmp_path):
    """A TFRecord file of another program has pixels where fractions are expected."""
    with st.Writer(tmp_path / "renamed", "train") as writer:
        for key, box in [("a", PIXELS), ("b", [0.1, 0.1, 0.5, 0.5])]:
            writer.write({"key": key, "image": np.zeros((24, 32, 3), np.uint8), "image/object/bbax": np.float32(box)})
    (tmp_path / "set").mkdir()
    data = frames((tmp_path / "renamed/train-00000.tfrecord").read_bytes())
    renamed = b"".join(frame(each.replace(b"image/object/bbax", b"image/object/bbox")) for each in data)
    (tmp_path / "set/train-00000.tfrecord").write_bytes(renamed)
    st.index(tmp_path / "set")
    split = st.Dataset(tmp_path / "set")["train"]
    fields = [st.Image([st.ResizeTo(16)]), st.Objects(properties=[])]
    loader = st.Loader(split, 2, fields=fields, order=st.Sequential(), bad_samples=st.BadSamples("mask", max_bad=5))
    assert next(iter(loader))["valid"].tolist() == [False, True]
    assert "say so with `unit`" in loader.bad_samples()[0]["message"]
    pixels = [st.Image([st.ResizeTo((24, 32))]), st.Objects(unit="pixel", properties=[])]
    batch = next(iter(st.Loader(split, 2, fields=pixels, order=st.Sequential())))
    np.testing.assert_allclose(batch["boxes"].row(0), [PIXELS])


def test_a_value_for_each_box(tmp_path):
    images(tmp_path, "a.jpg")
    box = [0.1, 0.1, 0.5, 0.5]
    for name, values in [("image/object/class/label", [1, 2]), ("image/object/score", [0.1, 0.2, 0.3])]:
        with pytest.raises(st.ShardtoolError, match="a value for each box"), st.Writer(tmp_path / name, "train") as writer:
            writer.write({"key": "a", "image": tmp_path / "a.jpg", "image/object/bbox": box, name: values})


def test_objects_with_names_and_others_with_ids_are_rejected(tmp_path):
    images(tmp_path, "a.jpg", "b.jpg")
    rows = [{"path": f"{name}.jpg", "objects": {"bbox": [[2, 2, 9, 9]], "category": [category]}} for name, category in [("a", "cat"), ("b", 1)]]
    text(tmp_path / "rows.jsonl", *map(json.dumps, rows))
    with pytest.raises(st.PackError, match="of the classes of objects as other samples have"):
        st.pack(tmp_path / "rows.jsonl", tmp_path / "dataset")


def test_labels_that_are_names_and_ids_of_classes_are_asked_about(tmp_path):
    images(tmp_path, "0.jpg", "1.jpg", "2.jpg")
    rows = text(tmp_path / "rows.csv", "path,label", "0.jpg,1", "1.jpg,2", "2.jpg,3")
    st.pack(rows, tmp_path / "dataset", columns={"label": "bytes"})
    new = text(tmp_path / "new.csv", "key,label", "0.jpg,0", "1.jpg,1", "2.jpg,2")
    refused("--column label:bytes for names or --column label:int64 for ids", "column", "replace", tmp_path / "dataset", new)
    good("column", "replace", tmp_path / "dataset", new, "--column", "label:int64")
    split = st.Dataset(tmp_path / "dataset")["train"]
    assert {record["key"]: split.classes[record["label"]] for record in split} == {"0.jpg": "1", "1.jpg": "2", "2.jpg": "3"}


@pytest.mark.parametrize("third", ["unlabeled", "holdout", "x"])
def test_a_further_word_in_a_column_of_splits_hides_nothing(third, tmp_path):
    images(tmp_path, "0.jpg", "1.jpg", "2.jpg")
    for column, second in [("split", "test"), ("Subset", "train"), ("Usage", "val")]:
        rows = text(tmp_path / "rows.csv", f"path,label,{column}", "0.jpg,a,train", f"1.jpg,a,{second}", f"2.jpg,b,{third}")
        with pytest.raises(st.ShardtoolError, match=f"{column} names splits"):
            st.pack(rows, tmp_path / "dataset")
    assert st.pack(rows, tmp_path / "one", splits="none").images == 3


@pytest.mark.parametrize("kind", ["parquet", "tfrecord", "webdataset", "folder"])
@pytest.mark.parametrize("splits", [["fold1", "fold2"], ["holdout"], ["a-1", "b"]])
def test_an_export_comes_back_with_the_names_of_its_splits(kind, splits, tmp_path):
    for number, split in enumerate(splits):
        images(tmp_path / "photos" / split, f"cow/{number}.jpg", f"ant/{number}.jpg")
    st.pack(tmp_path / "photos", tmp_path / "dataset", splits="names")
    good("export", tmp_path / "dataset", tmp_path / "export", "--to", kind)
    st.pack(tmp_path / "export", tmp_path / "back")
    back = st.Dataset(tmp_path / "back")
    assert sorted(back.splits) == sorted(splits)
    for split in splits:
        assert sorted(back[split].classes[record["label"]] for record in back[split]) == ["ant", "cow"]
    if kind != "folder" and len(splits) > 1:
        # The same files without what `export` says of them.
        (tmp_path / "export" / ".shardtool-result.json").unlink()
        with pytest.raises(st.ShardtoolError, match="splits=\"names\""):
            st.pack(tmp_path / "export", tmp_path / "asked")
        st.pack(tmp_path / "export", tmp_path / "asked", splits="names")
        assert sorted(st.Dataset(tmp_path / "asked").splits) == sorted(splits)


def write_columns(path, **columns):
    image = images(path.parent, "a.jpg") / "a.jpg"
    count = len(next(iter(columns.values())))
    rows = [{"bytes": image.read_bytes(), "path": f"{path.stem}{at}.jpg"} for at in range(count)]
    parquet.write_table(pyarrow.table({"image": rows, **columns}), path)
    return path


def test_times_of_all_units_are_nanoseconds(tmp_path):
    when = datetime.datetime(2024, 1, 1, 12, 30, 15, 250_000)
    expected = int(when.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000) * 1_000_000
    for unit in ["ms", "us", "ns"]:
        write_columns(tmp_path / "times" / f"{unit}.parquet", at=pyarrow.array([when], pyarrow.timestamp(unit)))
    (tmp_path / "times" / "a.jpg").unlink()
    st.pack(tmp_path / "times", tmp_path / "dataset")
    assert {record["features"]["at"] for record in st.Dataset(tmp_path / "dataset")["train"]} == {expected}
    day = write_columns(tmp_path / "day" / "day.parquet", at=pyarrow.array([when.date()], pyarrow.date32()))
    good("append", day, tmp_path / "dataset")
    midnight = int(datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc).timestamp()) * 10**9
    assert st.Dataset(tmp_path / "dataset")["train"]["day0.jpg"]["features"]["at"] == midnight
    far = write_columns(tmp_path / "far" / "far.parquet", at=pyarrow.array([datetime.datetime(2500, 1, 1)], pyarrow.timestamp("us")))
    ended = run("append", far, tmp_path / "dataset")
    assert ended.returncode != 0 and "at" in ended.stderr, ended


def test_decimals_without_a_fraction_are_integers(tmp_path):
    values = [decimal.Decimal(7), decimal.Decimal(-12)]
    path = write_columns(tmp_path / "p" / "a.parquet", label=pyarrow.array([0, 1]), n=pyarrow.array(values, pyarrow.decimal128(20, 0)))
    st.pack(path, tmp_path / "dataset")
    found = {record["key"]: record["features"]["n"] for record in st.Dataset(tmp_path / "dataset")["train"]}
    assert found == {"a0.jpg": 7, "a1.jpg": -12}


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (['0.jpg,"cat', "1.jpg,dog"], "line 2"),
        (['0.jpg,"a ""b"" c', "1.jpg,dog"], "line 2"),
        (['0.jpg,"an egg" ,cat', "1.jpg,dog"], "line 2"),
        (['0.jpg, "cat"', "1.jpg,dog"], "line 2"),
    ],
)
def test_quotes_of_a_list_that_are_not_closed_are_refused(rows, line, tmp_path):
    images(tmp_path, "0.jpg", "1.jpg")
    with pytest.raises(st.ShardtoolError) as refusal:
        st.pack(text(tmp_path / "rows.csv", "path,label", *rows), tmp_path / "dataset")
    said = str(refusal.value) + str(refusal.value.__cause__ or "")
    assert line in said, said


@pytest.mark.parametrize("word", ["nan", "NA", "1e400", "null", "-"])
def test_the_order_of_rows_does_not_make_numbers_text(word, tmp_path):
    images(tmp_path, "0.jpg", "1.jpg")
    for first, second in [(word, "0.5"), ("0.5", word)]:
        rows = text(tmp_path / "rows.csv", "path,w", f"0.jpg,{first}", f"1.jpg,{second}")
        with pytest.raises(st.ShardtoolError, match="w:bytes"):
            st.pack(rows, tmp_path / "dataset")


def test_class_files_with_a_mark_of_their_encoding(tmp_path):
    images(tmp_path, "0.jpg", "1.jpg")
    (tmp_path / "names.txt").write_text("zebra\nant\n", encoding="utf-8-sig")
    st.pack(text(tmp_path / "rows.csv", "path,label", "0.jpg,ant", "1.jpg,zebra"), tmp_path / "dataset", classes=tmp_path / "names.txt")
    assert st.Dataset(tmp_path / "dataset")["train"].classes == ["zebra", "ant"]


def test_padding_that_a_type_does_not_hold_is_refused(tmp_path):
    with st.Writer(tmp_path / "dataset", "train", features={"n": "int64", "s": "int64", "u": "uint64", "f": "float"}) as writer:
        for at in range(4):
            tokens = list(range(1, at + 2))
            writer.write({"key": str(at), "n": len(tokens), "s": tokens, "u": np.array(tokens, np.uint64), "f": [0.5] * len(tokens)})
    split = st.Dataset(tmp_path / "dataset")["train"]
    for feature, value in [("s", 1.5), ("s", float("nan")), ("s", 2.0**63), ("u", -1), ("u", -100), ("f", 1e39)]:
        for options in [
            {"fields": [st.Tokens("n", 8, {feature: value})], "batch_size": 2},
            {"fields": [st.Column("n")], "buckets": st.LengthBuckets("n", [4, 8], padded={feature: value}), "batch_size": 2},
        ]:
            with pytest.raises(st.ShardtoolError, match=f"`padded` is .* for `{feature}`"):
                next(iter(st.Loader(split, **options)))
    ragged = next(iter(st.Loader(split, 4, fields=[st.Column("u")])))["u"]
    with pytest.raises(st.ShardtoolError, match="uint64 cannot hold"):
        ragged.padded(fill=-1)


def test_floats_that_float32_does_not_hold_are_refused(tmp_path):
    with pytest.raises(st.ShardtoolError, match="infinite"), st.Writer(tmp_path / "dataset", "train", features={"v": "float"}) as writer:
        writer.write({"key": "a", "v": 1e39})


def test_reshard_and_merge_name_the_views_that_they_leave_out(named, tmp_path):
    keys = text(tmp_path / "keys.txt", "ant.jpg")
    good("select", named, "holdout", "--split", "train", "--keys", keys)
    printed = good("reshard", named, tmp_path / "resharded")
    assert "views left out: holdout" in printed
    other = st.pack(images(tmp_path / "photos", "ant/1.jpg", "cow/2.jpg", "zebra/3.jpg"), tmp_path / "other", classes=tmp_path / "names.txt")
    assert other.images == 3
    assert json.loads(good("merge", tmp_path / "merged", named, tmp_path / "other", "--json"))["views_left_out"] == ["holdout"]


@pytest.mark.parametrize(
    "same", [copy.copy, copy.deepcopy, lambda r: r.copy(), lambda r: pickle.loads(pickle.dumps(r)), lambda r: r | {"label": np.int64(r["label"])}]
)
def test_copies_of_a_record_keep_its_class(same, named, tmp_path):
    source = st.Dataset(named)["train"]
    with st.Writer(tmp_path / "other", "train", classes=["ant", "cow", "zebra"]) as writer:
        for record in source:
            other = same(record)
            if not isinstance(other, st.Record):  # the names are lost: its own name decides
                other = {**other, "label": other["features"].pop("image/class/text").decode()}
            writer.write(other)
    assert classes_by_colour(tmp_path / "other") == 3


def test_ids_of_objects_may_be_arrays(tmp_path):
    with st.Writer(tmp_path / "one", "train", classes=["cat", "dog"], labels=False) as writer:
        box = {"bbox": [[2, 2, 9, 9]], "category": ["dog"]}
        writer.write({"key": "a", "image": np.zeros((24, 32, 3), np.uint8), "objects": box | {"category": [1]}})
    record = st.Dataset(tmp_path / "one")["train"][0]
    record["features"]["image/object/class/label"] = np.array([1])
    with st.Writer(tmp_path / "two", "train", classes=["dog", "cat"], labels=False) as writer:
        writer.write(record)
    assert st.Dataset(tmp_path / "two")["train"][0]["features"]["image/object/class/label"] == 0


def test_an_export_that_was_sorted_by_hand_follows_the_rules_of_folders(tmp_path):
    images(tmp_path / "photos", "ant/1.jpg", "cow/2.jpg")
    st.pack(tmp_path / "photos", tmp_path / "dataset")
    good("export", tmp_path / "dataset", tmp_path / "export", "--to", "folder")
    for split, kind, name in [("train", "ant", "1.jpg"), ("val", "cow", "2.jpg")]:
        (tmp_path / "export" / split / kind).mkdir(parents=True)
        (tmp_path / "export" / kind / name).rename(tmp_path / "export" / split / kind / name)
        (tmp_path / "export" / kind).rmdir()
    st.pack(tmp_path / "export", tmp_path / "back")
    back = st.Dataset(tmp_path / "back")
    assert sorted(back.splits) == ["train", "val"] and back["val"].classes == ["ant", "cow"]


def test_labels_of_a_list_that_are_names_and_ids_are_asked_about(tmp_path):
    images(tmp_path, "0.jpg", "1.jpg")
    rows, names = text(tmp_path / "rows.csv", "path,label", "0.jpg,1", "1.jpg,2"), text(tmp_path / "names.txt", "1", "2", "3")
    with pytest.raises(st.ShardtoolError, match="the name of one class and the id of another"):
        st.pack(rows, tmp_path / "dataset", classes=names)
    for kind, expected in [("bytes", ["1", "2"]), ("int64", ["2", "3"])]:
        st.pack(rows, tmp_path / kind, classes=names, columns={"label": kind})
        split = st.Dataset(tmp_path / kind)["train"]
        assert sorted(split.classes[record["label"]] for record in split) == expected


def test_a_message_keeps_what_is_no_flag(tmp_path):
    folder = tmp_path / "photos--from folder"
    folder.mkdir()
    with pytest.raises(st.ShardtoolError, match="photos--from folder"):
        st.pack(folder, tmp_path / "dataset")


def test_images_that_lose_bits_or_alpha_are_counted(tmp_path):
    folder = images(tmp_path / "source", "plain.png", "photo.jpg")
    grey16 = np.arange(32 * 24, dtype=np.uint16).reshape(24, 32) * 80
    Image.fromarray(grey16).save(folder / "depth.png")
    Image.fromarray(grey16).save(folder / "depth.tiff")
    Image.fromarray(grey16.astype(np.uint8)).save(folder / "grey.png")
    Image.new("RGBA", (32, 24), (1, 2, 3, 90)).save(folder / "clear.png")
    Image.new("RGBA", (32, 24), (1, 2, 3, 90)).save(folder / "clear.webp", lossless=True)
    Image.new("CMYK", (32, 24), (1, 2, 3, 90)).save(folder / "print.jpg")
    Image.new("CMYK", (32, 24), (1, 2, 3, 90)).save(folder / "print.tiff")
    Image.fromarray(grey16.astype(np.int32)).save(folder / "wide.tiff")
    Image.new("P", (32, 24), 3).save(folder / "flat.gif")
    for number, options in enumerate([{"max_side": 16}, {"resize_shorter": 8}, {"pixels": "raw"}]):
        packed = st.pack(folder, tmp_path / f"out{number}", **options)
        assert (packed.images, packed.reduced_to_rgb8) == (11, 5), options
    assert st.pack(folder, tmp_path / "stored").reduced_to_rgb8 == 0
    printed = good("pack", folder, tmp_path / "printed", "--max-side", "16")
    assert "5 records with images of 16 bits or with alpha, stored as RGB of 8 bits" in printed
    packed = json.loads(good("pack", folder, tmp_path / "large", "--max-side", "64", "--json"))
    assert packed["reduced_to_rgb8"] == 0
    part = json.loads(good("pack", folder, tmp_path / "part", "--max-side", "16", "--part", "0/1", "--json"))
    assert part["reduced_to_rgb8"] == 5


def test_a_label_list_is_of_names_or_of_ids(tmp_path):
    names = ["0", "1", "10", "2"]
    images(tmp_path, *(f"{name}/a.png" for name in names))
    rows = text(tmp_path / "rows.csv", "path,label", *(f"{name}/a.png,{name}" for name in names))
    st.pack(rows, tmp_path / "data", classes=text(tmp_path / "names.txt", *names), columns={"label": "bytes"})

    def labels():
        return {record["key"]: st.Dataset(tmp_path / "data").classes[record["label"]] for record in st.Dataset(tmp_path / "data").split("train")}

    def replace(*values, options=(), end="csv", keys=("0/a.png", "1/a.png")):
        pairs = list(zip(keys, values, strict=True))
        if end == "csv":
            file = text(tmp_path / "labels.csv", "key,label", *(f"{key},{value}" for key, value in pairs))
        else:
            file = text(tmp_path / "labels.jsonl", *(json.dumps({"key": key, "label": value}) for key, value in pairs))
        return run("column", "replace", tmp_path / "data", file, "--missing", "keep", *options)

    before = labels()
    # 3 can only be an id, 10 only a name.
    for values, end in [((3, 10), "csv"), ((10, 3), "csv"), ((3, 10), "jsonl"), (("02", 10), "csv"), (("02", "10"), "jsonl"), ((2, 10), "csv")]:
        ended = replace(*values, end=end)
        assert ended.returncode == 2 and "label" in ended.stderr, (values, ended)
        assert labels() == before
    for values, options, expected in [
        ((10, 10), (), ("10", "10")),
        ((3, 3), (), ("2", "2")),
        ((2, 10), ("--column", "label:bytes"), ("2", "10")),
        ((2, 3), ("--column", "label:int64"), ("10", "2")),
        ((0, 1), (), ("0", "1")),
        ((0, 10), (), ("0", "10")),
    ]:
        ended = replace(*values, options=options)
        assert ended.returncode == 0, (values, ended)
        assert (labels()["0/a.png"], labels()["1/a.png"]) == expected, values


def test_keypoints_that_were_cropped_away_do_not_come_back_in_a_border(tmp_path):
    points = [[5, 5, 2], [55, 40, 2], [95, 75, 2], [100, 80, 2], [0, 0, 2]]
    with st.Writer(tmp_path / "data") as writer:
        objects = [{"bbox": [0, 0, 100, 80], "category": 0, "keypoints": [number for point in points for number in point]}]
        writer.write({"key": "a", "image": np.full((80, 100, 3), 200, np.uint8), "objects": objects})

    def shown(*steps):
        fields = [st.Image(list(steps)), st.Objects(keypoints="image/object/keypoints")]
        batch = next(iter(st.Loader(st.Dataset(tmp_path / "data").split("train"), 1, fields)))
        return [tuple(point) for point in batch["keypoints"].values.reshape(-1, 3).round(3).tolist()]

    gone = (0.0, 0.0, 0.0)
    # The crop is columns 40 to 60 and rows 30 to 50.
    assert shown(st.CenterCrop(20), st.Pad(50), st.CenterCrop(120)) == [gone, (65.0, 60.0, 2.0), gone, gone, gone]
    assert shown(st.CenterCrop(20), st.FixedSizeCrop(120)) == [gone, (15.0, 10.0, 2.0), gone, gone, gone]
    assert shown(st.CenterCrop(20)) == [gone, (15.0, 10.0, 2.0), gone, gone, gone]
    assert shown(st.Pad(50), st.CenterCrop((180, 200))) == [(x + 50.0, y + 50.0, 2.0) for x, y, _ in points]


def test_lists_with_other_separators_are_refused(tmp_path):
    images(tmp_path, "cat.png")
    for number, (separator, word) in enumerate([(";", "semicolons"), ("\t", "tabs")]):
        for first, second in [("path", "label"), ("caption", "score")]:
            rows = text(tmp_path / f"{first}{number}.csv", f"{first}{separator}{second}", f"cat.png{separator}1")
            refused(word, "pack", rows, tmp_path / "out")


def test_objects_that_are_empty_first(tmp_path):
    grey = np.full((8, 8, 3), 90, np.uint8)
    with st.Writer(tmp_path / "unknown") as writer:
        with pytest.raises(st.OptionError, match="`objects` is empty in the first sample"):
            writer.write({"key": "a", "image": grey, "objects": []})
        with pytest.raises(st.OptionError, match="`objects` is empty in the first sample"):
            writer.write({"key": "a", "image": grey, "objects": np.zeros((0, 4))})
        writer.write({"key": "a", "image": grey, "objects": [{"bbox": [0, 0, 4, 4], "category": 1}]})
        writer.write({"key": "b", "image": grey, "objects": []})
    batch = next(iter(st.Loader(st.Dataset(tmp_path / "unknown").split("train"), 2, [st.Image([st.ResizeTo(8)]), st.Objects()], order=st.Sequential())))
    assert np.diff(batch["boxes"].offsets).tolist() == [1, 0]


def test_resized_images_are_upright_whatever_their_size(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    for name, size in [("large", (64, 48)), ("small", (16, 12))]:
        image = Image.new("RGB", size, (250, 0, 0))
        image.paste((0, 0, 250), (0, size[1] // 2, *size))
        exif = Image.Exif()
        exif[0x0112] = 6
        image.save(folder / f"{name}.jpg", exif=exif, quality=95)
    for number, options in enumerate([{"max_side": 20}, {"resize_shorter": 15}, {"max_side": 20, "pixels": "raw"}]):
        st.pack(folder, tmp_path / f"out{number}", **options)
        for record in st.Dataset(tmp_path / f"out{number}").split("train"):
            assert record["features"]["image/height"] > record["features"]["image/width"], (options, record["key"])
            assert record["features"]["image/orientation"] == 1
        batch = next(iter(st.Loader(st.Dataset(tmp_path / f"out{number}").split("train"), 2, [st.Image([st.ResizeTo(8)])])))
        # Turned by 90 degrees clockwise, the lower half is on the left.
        assert (batch["image"][:, 4, 0, 2] > 200).all() and (batch["image"][:, 4, 7, 0] > 200).all()


def test_numbers_that_json_lacks_are_named(tmp_path):
    odd = [float("nan"), float("inf"), -float("inf"), 1.5]
    with st.Writer(tmp_path / "data", features={"narrow": "float", "wide": "float64", "list": "float64"}) as writer:
        for number, value in enumerate(odd):
            sample = {"narrow": value, "wide": value, "list": [1.0, value]}
            writer.write({"key": f"k{number}", "image": np.full((8, 8, 3), 90, np.uint8), **sample})
    ended = run("export", tmp_path / "data", tmp_path / "tars", "--to", "webdataset")
    assert ended.returncode == 1, ended
    assert all(f"k{number}" in ended.stdout + ended.stderr for number in range(3)) and "NaN or infinite" in ended.stdout + ended.stderr
    st.pack(tmp_path / "tars", tmp_path / "back", kind="webdataset")
    assert [record["key"] for record in st.Dataset(tmp_path / "back").split("train")] == ["k3"]
    good("export", tmp_path / "data", tmp_path / "parquet", "--to", "parquet")
    listed = json.loads(good("ls", tmp_path / "data", "--json", "--column", "narrow", "--column", "wide"))
    rows = {row["key"]: row["columns"] for row in listed["listed"]}
    words = ["NaN", "Infinity", "-Infinity", 1.5]
    for number, word in enumerate(words):
        assert (rows[f"k{number}"]["narrow"], rows[f"k{number}"]["wide"]) == (word, word)
        assert str(word) in good("show", tmp_path / "data", f"k{number}")


@pytest.fixture
def lists(tmp_path):
    """A dataset of 40 records in several shards: most have one tag and one caption, four have two."""
    with st.Writer(tmp_path / "lists", features={"tags": "int64", "caps": "bytes"}, shard_size="1KiB") as writer:
        for number in range(40):
            tags = [number, 100] if number % 10 == 5 else [number]
            sample = {"tags": tags, "caps": [f"c{tag}" for tag in tags]}
            writer.write({"key": f"{number:02}", "image": np.full((8, 8, 3), number, np.uint8), **sample})
    dataset = st.Dataset(tmp_path / "lists")
    assert len(list((tmp_path / "lists").glob("*.tfrecord"))) > 5
    return dataset


@pytest.mark.parametrize("order", [st.Sequential(), st.Shuffled(1)])
def test_a_column_of_lists_is_one_in_all_shards(lists, order):
    found = {}
    for batch in st.Loader(lists.split("train"), 8, ["tags"], order=order):
        assert batch["valid"].all()
        ends = batch["tags"].offsets
        for row, number in enumerate(batch["id"].tolist()):
            found[number] = batch["tags"].values[ends[row] : ends[row + 1]].tolist()
    assert found == {number: [number, 100] if number % 10 == 5 else [number] for number in range(40)}


def test_conditions_do_not_pass_over_lists(lists, tmp_path):
    for condition in ["tags=100", "tags!=100", "tags>50", "caps=c100", "caps~100"]:
        for command in [("ls",), ("delete",), ("select", "chosen")]:
            arguments = [command[0], lists.path, *command[1:], *(["--split", "train"] if command[0] == "select" else [])]
            refused("several values of", *arguments, "--where", condition)
    assert len(st.Dataset(lists.path).split("train")) == 40
    for kind in ["parquet", "tfrecord", "webdataset", "folder"]:
        refused("several values of `tags`", "export", lists.path, tmp_path / kind, "--to", kind, "--where", "tags>=0")
        assert not (tmp_path / kind).exists() or not list((tmp_path / kind).iterdir())
    # Another condition may leave such records out, whatever the order.
    for conditions in [("key=06", "tags=6"), ("tags=6", "key=06")]:
        arguments = [word for condition in conditions for word in ("--where", condition)]
        assert [row["key"] for row in json.loads(good("ls", lists.path, "--json", *arguments))["listed"]] == ["06"]
    # Whether there is a value is known of lists, too.
    for condition, count in [("tags=", 0), ("tags!=", 40)]:
        assert len(json.loads(good("ls", lists.path, "--json", "--where", condition))["listed"]) == count
    rows = {row["key"]: row["columns"] for row in json.loads(good("ls", lists.path, "--json", "--column", "tags", "--column", "caps"))["listed"]}
    assert rows["05"] == {"tags": [5, 100], "caps": ["c5", "c100"]} and rows["06"] == {"tags": 6, "caps": "c6"}
    assert 'tags=[5,100]  caps=["c5","c100"]' in good("ls", lists.path, "--column", "tags", "--column", "caps")


def test_a_writer_takes_no_path_for_classes_and_no_image_that_is_turned(tmp_path):
    for classes in ["names.txt", tmp_path / "names.txt", b"ab", bytearray(b"ab"), [1, 2], 5, {"a", "b"}]:
        with pytest.raises(st.OptionError, match="`classes` is .*expected the names of classes"):
            st.Writer(tmp_path / "out", classes=classes)
    images(tmp_path, "cat.png")
    turned = Image.new("RGB", (8, 6), (9, 9, 9))
    turned.getexif()[0x0112] = 6
    with st.Writer(tmp_path / "out", classes=None) as writer:
        with pytest.raises(st.OptionError, match="EXIF orientation 6"):
            writer.write({"key": "a", "image": turned})
        writer.write({"key": "b", "image": ImageOps.exif_transpose(turned)})
        turned.getexif()[0x0112] = 1
        writer.write({"key": "c", "image": turned})
    turned.getexif()[0x0112] = 6
    turned.save(tmp_path / "turned.tiff", exif=turned.getexif())
    with st.Writer(tmp_path / "tiff") as writer:
        # Pillow turns its pixels.
        writer.write({"key": "a", "image": Image.open(tmp_path / "turned.tiff")})
    (record,) = st.Dataset(tmp_path / "tiff").split("train")
    assert (record["features"]["image/width"], record["features"]["image/height"]) == (6, 8)
    sizes = [(record["features"]["image/width"], record["features"]["image/height"]) for record in st.Dataset(tmp_path / "out").split("train")]
    assert sizes == [(6, 8), (8, 6)]


def test_rows_that_are_boxes_are_not_samples(tmp_path):
    rows = text(tmp_path / "boxes.csv", "ImageID,Source,LabelName,XMin,XMax,YMin,YMax", "a,x,/m/01,0.1,0.2,0.1,0.2", "a,x,/m/01,0.3,0.4,0.3,0.4")
    refused("one row for each image", "pack", rows, tmp_path / "out")
    tiles = text(tmp_path / "tiles.csv", "key,xmin,ymin,xmax,ymax", "a,0,0,1,1", "b,1,0,2,1")
    assert "2 records" in good("pack", tiles, tmp_path / "tiles")
    noted = text(tmp_path / "noted.csv", "caption; long", "a red car", "a boat")
    assert "2 records" in good("pack", noted, tmp_path / "noted")
