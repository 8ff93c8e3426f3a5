"""`st.Writer`: the records of `pack`, from arrays, files and images, in processes and threads, after being killed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from PIL import Image

import shardtool as st

SIZES = {"shard_size": 20_000}


def rows(photos):
    """The samples of a list of the photographs, in byte order of their paths."""
    found = []
    for number, path in enumerate(sorted(photos.glob("*/*.jpg"))):
        name = path.relative_to(photos.parent).as_posix()
        row = {"path": name, "label": path.parent.name, "weight": number / 2, "tags": ["a", str(number)]}
        found.append({**row, "number": number})
    return found


def samples(photos):
    for row in rows(photos):
        image = (photos.parent / row["path"]).read_bytes()
        yield {"key": row.pop("path"), "image": image, **row}


def records(path, split="train"):
    split = st.Dataset(path).split(split)
    return [split[i] for i in range(len(split))]


def written(path, samples, **options):
    with st.Writer(path, "train", **options) as writer:
        count = writer.write_many(samples)
    assert writer.result is not None and writer.result.images >= count
    return writer.result


CLASSES = ["heron", "owl", "teapot"]


def test_writes_the_bytes_of_a_pack(photos, tmp_path):
    listed = photos.parent / "list.jsonl"
    listed.write_text("".join(json.dumps(row) + "\n" for row in rows(photos)))
    packed = st.pack(listed, tmp_path / "packed", seed=None, shards=1)
    result = written(tmp_path / "written", samples(photos), classes=CLASSES)
    assert result.fingerprint == packed.fingerprint and result.images == packed.images
    names = ["train-00000.tfrecord", "_index/train-00000.tfrecord.index", "dataset.json"]
    for name in names:
        assert (tmp_path / "written" / name).read_bytes() == (tmp_path / "packed" / name).read_bytes(), name
    again = written(tmp_path / "written", samples(photos), classes=CLASSES)
    assert again == result and again.already_complete
    small = written(tmp_path / "small", samples(photos), classes=CLASSES, **SIZES)
    assert small.shards > 3 and records(tmp_path / "small") == records(tmp_path / "packed")


KILLED = """
    import os, pathlib, signal, sys
    import shardtool as st
    sys.path.insert(0, {tests!r})
    from test_writer import CLASSES, SIZES, samples
    with st.Writer({out!r}, "train", classes=CLASSES, **SIZES) as writer:
        for number, sample in enumerate(samples(pathlib.Path({photos!r}))):
            if number == {stop}:
                os.kill(os.getpid(), signal.SIGKILL)
            writer.write(sample)
"""


def test_continues_by_key_after_sigkill(photos, tmp_path):
    expected = written(tmp_path / "whole", samples(photos), classes=CLASSES, **SIZES)
    out = tmp_path / "out"
    tests = os.path.dirname(__file__)
    for stop in (3, 40, 90):
        code = textwrap.dedent(KILLED.format(tests=tests, out=str(out), photos=str(photos), stop=stop))
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.returncode == -signal.SIGKILL, run.stderr
        assert not (out / "dataset.json").exists()
    with st.Writer(out, "train", classes=CLASSES, **SIZES) as writer:
        new = writer.write_many(samples(photos))
    assert 0 < new < 105 and writer.result.resumed_shards > 1
    assert writer.result == expected.__class__(**{**vars(expected), "resumed_shards": writer.result.resumed_shards})
    for path in sorted((tmp_path / "whole").rglob("*")):
        if path.is_file():
            assert (out / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes(), path


PART = """
    import itertools, pathlib, sys
    import shardtool as st
    sys.path.insert(0, {tests!r})
    from test_writer import CLASSES, SIZES, samples
    part = int(sys.argv[1])
    with st.Writer({out!r}, "train", classes=CLASSES, part=(part, 3), **SIZES) as writer:
        mine = itertools.islice(samples(pathlib.Path({photos!r})), part * 35, part * 35 + 35)
        assert writer.write_many(mine) == 35
    assert writer.result is None
"""


def test_parts_of_several_processes_are_joined_in_order(photos, tmp_path):
    out = tmp_path / "out"
    code = textwrap.dedent(PART.format(tests=os.path.dirname(__file__), out=str(out), photos=str(photos)))
    start = lambda part: subprocess.Popen([sys.executable, "-c", code, str(part)])  # noqa: E731
    children = [start(part) for part in (1, 2)]
    assert [child.wait() for child in children] == [0, 0]
    with pytest.raises(st.PackError, match="3 parts, and these are not finished: 0"):
        st.commit(out)
    assert start(0).wait() == 0
    result = st.commit(out)
    assert result.images == 105 and st.commit(out) == result
    whole = written(tmp_path / "whole", samples(photos), classes=CLASSES)
    assert records(out) == records(tmp_path / "whole") and whole.images == 105


def test_threads_share_a_writer(photos, tmp_path):
    everything = list(samples(photos))
    with st.Writer(tmp_path / "out", classes=CLASSES, **SIZES) as writer:
        threads = [threading.Thread(target=writer.write_many, args=(everything[i::4],)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = {record["key"]: record["image"] for record in records(tmp_path / "out")}
    assert found == {sample["key"]: sample["image"] for sample in everything}


def test_continues_after_an_exception(photos, tmp_path):
    everything = list(samples(photos))
    with pytest.raises(ZeroDivisionError):
        with st.Writer(tmp_path / "out", classes=CLASSES, **SIZES) as writer:
            writer.write_many(everything[:60])
            1 / 0
    assert not (tmp_path / "out" / "dataset.json").exists()
    with pytest.raises(st.PackError, match="the writer is closed"):
        writer.write(everything[60])
    with pytest.raises(st.PackError, match="different classes: 3 before, 0 now"):
        st.Writer(tmp_path / "out", labels=True, images=True, features={"tags": "bytes", "weight": "float", "number": "int64"}, **SIZES)
    result = written(tmp_path / "out", everything, classes=CLASSES, **SIZES)
    assert result.resumed_shards > 0 and result.images == 105


def test_stores_images_of_every_kind(tmp_path):
    random = np.random.default_rng(3)
    colour = random.integers(0, 256, (9, 14, 3), np.uint8)
    grey, alpha = colour[..., 0], np.dstack([colour, colour[..., 0]])
    path = tmp_path / "photo.png"
    Image.fromarray(colour).save(path)
    images = {
        "array": colour,
        "strided": colour[:, ::2],
        "grey": grey,
        "grey 3d": grey[..., None],
        "alpha": alpha,
        "pil": Image.fromarray(colour),
        "palette": Image.fromarray(colour).quantize(8),
        "bytes": path.read_bytes(),
        "path": path,
        "buffer": memoryview(path.read_bytes()),
    }
    with st.Writer(tmp_path / "out") as writer:
        for key, image in images.items():
            writer.write({"key": key, "image": image})
        writer.write({"image": str(path)})
    split = st.Dataset(tmp_path / "out").split("train")
    found = {record["key"]: record["image"] for record in records(tmp_path / "out")}
    assert list(found) == [*images, str(path)]
    decoded = {}
    for key, image in found.items():
        file = tmp_path / "decoded"
        file.write_bytes(image)
        decoded[key] = np.asarray(Image.open(file))
    for key in ("array", "pil", "bytes", "path", "buffer"):
        assert (decoded[key] == colour).all(), key
    assert (decoded["strided"] == colour[:, ::2]).all() and (decoded["alpha"] == alpha).all()
    assert (decoded["grey"] == grey).all() and (decoded["grey 3d"] == grey).all()
    assert (decoded["palette"] == np.asarray(images["palette"].convert("RGB"))).all()
    assert found["bytes"] == path.read_bytes() and "image/class/label" not in split.features
    raw = written(tmp_path / "raw", [{"key": "a", "image": colour}], pixels="raw")
    assert raw.images == 1 and records(tmp_path / "raw")[0]["image"] == colour.tobytes()
    jpeg = written(tmp_path / "jpeg", [{"key": "a", "image": colour}], quality=95)
    assert jpeg.images == 1 and records(tmp_path / "jpeg")[0]["image"][:2] == b"\xff\xd8"


def test_stores_features_of_every_kind(tmp_path):
    sample = {
        "key": "a",
        "text": "häron",
        "bytes": b"\x00\xff",
        "texts": ["a", "bc"],
        "flag": True,
        "whole": np.int32(7),
        "real": 1.5,
        "reals": [1, 2.5],
        "vector": np.arange(4),
        "matrix": np.arange(6, dtype=np.float64).reshape(2, 3),
        "boxes": [[1, 2, 3, 4], [5, 6, 7, 8]],
        "polygons": [[1, 2], [3, 4, 5]],
    }
    written(tmp_path / "out", [sample])
    split = st.Dataset(tmp_path / "out").split("train")
    features = split[0]["features"]
    assert features["text"] == "häron".encode() or features["text"] == "häron"
    assert features["flag"] == 1 and features["whole"] == 7 and features["real"] == 1.5
    as_list = lambda value: np.asarray(value).tolist()  # noqa: E731
    assert as_list(features["reals"]) == [1, 2.5] and as_list(features["vector"]) == [0, 1, 2, 3]
    assert as_list(features["matrix"]) == [0, 1, 2, 3, 4, 5] and as_list(features["matrix/shape"]) == [2, 3]
    assert as_list(features["boxes"]) == list(range(1, 9)) and as_list(features["boxes/shape"]) == [2, 4]
    assert as_list(features["polygons"]) == [1, 2, 3, 4, 5] and as_list(features["polygons/lengths"]) == [2, 3]
    types = split.features
    assert (types["flag"], types["real"], types["boxes"], types["bytes"]) == ("int64", "float", "int64", "bytes")
    boxed = [{"key": "a", "image/object/bbox": [[0, 0, 0.5, 1]]}, {"key": "b", "image/object/bbox": []}]
    written(tmp_path / "boxed", boxed)
    assert set(st.Dataset(tmp_path / "boxed").features) == {"image/key", "image/object/bbox"}
    # Declared features: no boxes at all, lists that happen to have equal lengths, integers as floats.
    declared = {"boxes": "float", "boxes/shape": "int64", "rows": "int64", "rows/lengths": "int64"}
    two = [{"key": "a", "boxes": [], "rows": [[1, 2], [3, 4]]}, {"key": "b", "boxes": np.zeros((0, 4)), "rows": []}]
    written(tmp_path / "declared", two, features=declared)
    first, second = (record["features"] for record in records(tmp_path / "declared"))
    assert as_list(first["rows/lengths"]) == [2, 2] and as_list(second["boxes/shape"]) == [0, 4]


def test_errors_name_the_sample_and_the_feature(tmp_path):
    features = {"weight": "float", "count": "int64", "name": "bytes"}
    image = np.zeros((4, 4, 3), np.uint8)
    with st.Writer(tmp_path / "out", features=features, classes=["a", "b"]) as writer:

        def refused(message, **changes):
            sample = {"key": "k1", "image": image, "label": 0, **changes}
            with pytest.raises(Exception, match=message) as found:
                writer.write(sample)
            notes = getattr(found.value, "__notes__", [])
            assert "k1" in "\n".join([str(found.value), *notes])
            return found.value

        assert isinstance(refused("`wieght` is not among", wieght=1.0), st.OptionError)
        assert isinstance(refused("`count` is of type int64", count=1.5), st.OptionError)
        refused("`name` is of type bytes", name=3)
        refused("`weight`: expected float", weight="heavy")
        refused('add "weight/shape": "int64"', weight=[[1.0], [2.0]])
        refused("uint8", image=np.zeros((4, 4, 3)))
        refused("expected bytes of an image file", image=3)
        refused("more than 8 bits", image=Image.new("I;16", (3, 3)))
        refused("not an image", image=b"text")
        assert isinstance(refused("No such file", image="nowhere.jpg"), FileNotFoundError)
        refused("`c` is not among the 2 classes", label="c")
        refused("expected a class id", label=1.5)
        refused("it has no label", label=None)
        with pytest.raises(st.OptionError, match="needs a `key`"):
            writer.write({"image": image, "label": 0})
        assert writer.write({"key": "k1", "image": image, "label": np.int64(1), "weight": 2})
        refused("written before")
    assert writer.result.images == 1
    with pytest.raises(TypeError, match="belongs to its process"):
        __import__("pickle").dumps(writer)


def test_samples_may_have_no_image(tmp_path):
    written(tmp_path / "out", ({"key": str(i), "text": f"line {i}", "score": i / 2} for i in range(10)))
    split = st.Dataset(tmp_path / "out").split("train")
    batch = next(iter(st.Loader(split, 5, ["score"], order=st.Sequential())))
    assert batch.keys() == {"score", "id", "valid"} and batch["score"].tolist() == [0, 0.5, 1, 1.5, 2]
    batch = next(iter(st.Loader(split, 5, [st.Image(), "score"], order=st.Sequential())))
    assert batch["image"] == [None] * 5 and batch["score"].tolist() == [0, 0.5, 1, 1.5, 2]
    with pytest.raises(st.OptionError, match="no feature `image/encoded`"):
        st.Loader(split, 5, [st.ResizeTo(8)])
    assert st.verify(tmp_path / "out").good
    with pytest.raises(st.OptionError, match="no images or arrays; verify without `decode`"):
        st.verify(tmp_path / "out", decode=True)
    assert split[3]["image"] is None and split.columns["score"].tolist() == [i / 2 for i in range(10)]


def photo(height, width, shade):
    return np.full((height, width, 3), shade, np.uint8)


@pytest.mark.parametrize(
    "boxes, first, second",
    [
        ("xywh", [0, 0, 20, 10], [10.1, 6.3, 9.6, 2.8]),
        ("xyxy", [0, 0, 20, 10], [10.1, 6.3, 19.7, 9.1]),
        ("cxcywh", [10, 5, 20, 10], [14.9, 7.7, 9.6, 2.8]),
    ],
)
def test_objects_become_the_features_of_pack(tmp_path, boxes, first, second):
    """They equal those that `pack` stores for the same objects in a JSONL list."""
    objects = [
        {"bbox": [first, second], "category": [1, 0], "area": [200.0, 40.0], "segmentation": [[[1, 2, 3]], [[4]]],
         "keypoints": [[1, 2, 2], [10, 5, 0]]},
        {"bbox": [], "category": [], "area": [], "segmentation": [], "keypoints": []},
    ]  # fmt: skip
    images = [photo(10, 20, 10), photo(10, 20, 200)]
    lines = []
    for number, (image, each) in enumerate(zip(images, objects, strict=True)):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
        lines.append(json.dumps({"path": f"{number}.png", "objects": each}))
    (tmp_path / "list.jsonl").write_text("\n".join(lines))
    st.pack(tmp_path / "list.jsonl", tmp_path / "packed", boxes=boxes, seed=None)
    packed = st.Dataset(tmp_path / "packed")["train"]
    with st.Writer(tmp_path / "written", boxes=boxes) as writer:
        arrays = {name: np.array(values) for name, values in objects[0].items() if name in ("bbox", "area")}
        writer.write({"key": "0", "image": images[0], "objects": {**objects[0], **arrays}})
        writer.write({"key": "1", "image": images[1], "objects": objects[1]})
    written = st.Dataset(tmp_path / "written")["train"]
    mine = {name: kind for name, kind in written.features.items() if name.startswith("image/object/")}
    assert mine == {name: kind for name, kind in packed.features.items() if name.startswith("image/object/")}
    for a, b in zip(written, packed, strict=True):
        for name in mine:
            assert a["features"].get(name) == b["features"].get(name), name
    found = np.array(written[0]["features"]["image/object/bbox"]).reshape(2, 4)
    np.testing.assert_allclose(found, [[0, 0, 1, 1], [0.505, 0.63, 0.985, 0.91]], rtol=1e-6)


def test_objects_may_be_dicts_with_class_names(tmp_path):
    sample = {"key": "a", "image": photo(10, 20, 0), "objects": [{"bbox": [0, 0, 10, 5], "label": "cat"}]}
    features = {"image/object/bbox": "float", "image/object/class/text": "bytes"}
    with st.Writer(tmp_path / "out", features=features) as writer:
        writer.write(sample)
        writer.write({"key": "b", "image": photo(5, 5, 0), "objects": {"bbox": [], "label": []}})
    record = st.Dataset(tmp_path / "out")["train"][0]
    assert record["features"]["image/object/class/text"] == b"cat"
    assert record["features"]["image/object/bbox"] == [0.0, 0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    "objects, message",
    [
        ({"bbox": [[0, 0, 1, 1]], "category": []}, "`category` has 0 values: expected 1, one for each box"),
        ({"bbox": [[0, 0, 1]]}, "expected four numbers for each object"),
        ({"bbox": [[0, 0, 1, 1, 0, 0, 1, 1]]}, "expected four numbers for each object"),
        ({"bbox": [[0, 0, 1, 1]], "category": [0.5]}, "expected whole numbers, or names"),
        ({"bbox": [[0, 0, 1, 1]], "keypoints": [[1, 2]]}, "x, y and visibility"),
    ],
)
def test_invalid_objects_are_rejected(tmp_path, objects, message):
    with pytest.raises(st.OptionError, match=message):
        with st.Writer(tmp_path / "out") as writer:
            writer.write({"key": "a", "image": photo(10, 20, 0), "objects": objects})


def test_boxes_need_an_image_and_a_known_format(tmp_path):
    with pytest.raises(st.PackError, match="image"):
        with st.Writer(tmp_path / "out") as writer:
            writer.write({"key": "a", "objects": {"bbox": [[0, 0, 1, 1]]}})
    with pytest.raises(st.OptionError, match="`boxes` is 'yolo'"):
        st.Writer(tmp_path / "other", boxes="yolo")


def test_records_of_a_split_can_be_written_back(photos, tmp_path):
    listed = tmp_path / "list.jsonl"
    lines = []
    for number, path in enumerate(sorted(photos.glob("*/*.jpg"))[:6]):
        objects = {"bbox": [[1, 2, 10 + number, 12]], "category": [number % 2]}
        row = {"path": str(path), "key": f"photo {number}", "label": path.parent.name, "objects": objects}
        lines.append({**row, "weight": number / 4, "tags": ["a", str(number)]})
    listed.write_text("".join(json.dumps(line) + "\n" for line in lines))
    st.pack(listed, tmp_path / "first", seed=None)
    first = st.Dataset(tmp_path / "first")
    names = [record["features"]["image/filename"].decode() for record in records(tmp_path / "first")]
    assert names == [os.path.basename(line["path"]) for line in lines], "a key does not replace the file's name"

    for name, options in [("inferred", {}), ("declared", {"features": first.features})]:
        with st.Writer(tmp_path / name, classes=first.classes, **options) as writer:
            assert writer.write_many(first.split("train")[:]) == 6
        assert st.Dataset(tmp_path / name).features == first.features
        for ours, theirs in zip(records(tmp_path / name), records(tmp_path / "first"), strict=True):
            # The writer is given no file, but a key.
            ours["features"]["image/filename"] = theirs["features"]["image/filename"]
            assert ours == theirs


def test_names_in_features_that_are_wrong_are_named(photos, tmp_path):
    image = next(photos.glob("*/*.jpg")).read_bytes()
    with st.Writer(tmp_path / "out", features={"weight": "float"}) as writer:
        for features, message in [
            ({"weigth": 1.0}, "feature `weigth` is not among the writer's features"),
            ({"weight": {"a": 1}}, "feature `weight`"),
            ({"label": 3}, "`label` in `features` is 3"),
        ]:
            with pytest.raises(st.OptionError, match=message):
                writer.write({"key": "a", "image": image, "features": features})
        with pytest.raises(st.OptionError, match="feature `weight` is given twice"):
            writer.write({"key": "a", "image": image, "weight": 1.0, "features": {"weight": 2.0}})
        writer.write({"key": "a", "image": image, "features": {"weight": 2.0, "image/width": 1}})
    (record,) = records(tmp_path / "out")
    assert record["features"]["weight"] == 2.0 and record["features"]["image/width"] != 1


def test_ids_of_classes_that_the_dataset_does_not_have(tmp_path):
    with st.Writer(tmp_path / "dataset", classes=["cat", "dog"], labels=False) as writer:
        writer.write({"key": "a", "image": np.zeros((8, 8, 3), np.uint8), "objects": {"bbox": [[0, 0, 2, 2]], "category": [1]}})
        with pytest.raises(st.PackError, match="image/object/class/label 2.*the id of a class of the dataset"):
            writer.write({"key": "b", "image": np.zeros((8, 8, 3), np.uint8), "objects": {"bbox": [[0, 0, 2, 2]], "category": [2]}})
    assert len(st.Dataset(tmp_path / "dataset").split("train")) == 1
