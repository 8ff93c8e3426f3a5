"""Boxes, keypoints and polygons refer to the image that was annotated: as coded or as shown, or a copy of another size."""

import io
import json
import pathlib

import numpy as np
import pytest
import shardtool as st
from PIL import Image, ImageOps

WIDTH, HEIGHT = 100, 80
#: A rectangle of another colour in the image as shown, in its pixels: left, top, width, height.
OBJECT = (10, 20, 30, 16)


def shown_size(orientation):
    return (WIDTH, HEIGHT) if orientation < 5 else (HEIGHT, WIDTH)


def photograph(orientation):
    """A PNG with a bright rectangle, which lies at `OBJECT` when the EXIF orientation is applied."""
    shown = np.zeros((*reversed(shown_size(orientation)), 3), np.uint8)
    left, top, width, height = OBJECT
    shown[top : top + height, left : left + width] = 255
    # The orientation that undoes this one leads to the image as coded.
    undo = {6: 8, 8: 6}.get(orientation, orientation)
    exif = Image.Exif()
    exif[0x0112] = undo
    upright = Image.fromarray(shown)
    file = io.BytesIO()
    upright.save(file, "PNG", exif=exif)
    coded = ImageOps.exif_transpose(Image.open(file))
    exif[0x0112] = orientation
    file = io.BytesIO()
    coded.save(file, "PNG", exif=exif)
    assert (np.asarray(ImageOps.exif_transpose(Image.open(file))) == shown).all()
    return file.getvalue()


def coco(folder, images, annotations, **others):
    """Writes a COCO file. `images` are bytes and further members; `annotations` members, with the image's number."""
    folder.mkdir(exist_ok=True)
    listed = []
    for number, (data, members) in enumerate(images):
        (folder / f"{number}.png").write_bytes(data)
        listed.append({"id": number, "file_name": f"{number}.png", **members})
    objects = [{"id": n, "category_id": 7, **members} for n, members in enumerate(annotations)]
    document = {"images": listed, "annotations": objects, "categories": [{"id": 7, "name": "thing"}], **others}
    path = folder / "annotations.json"
    path.write_text(json.dumps(document))
    return path


def size(width, height):
    return {"width": width, "height": height}


def bright(batch):
    """Returns the bounds of the bright pixels of an image: left, top, right, bottom."""
    rows, columns = np.nonzero(batch["image"][0, :, :, 0] > 128)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def delivered(path, **options):
    """Returns box and bright pixels of the first record, without and with the orientation applied."""
    split = st.Dataset(path)["train"]
    for apply in (False, True):
        shape = split[0]["features"]
        sides = shown_size(shape["image/orientation"]) if apply else (shape["image/width"], shape["image/height"])
        steps = [st.ResizeTo((sides[1], sides[0]))]
        with st.Loader(split, 1, [st.Image(steps, apply_orientation=apply), st.Objects(**options)]) as loader:
            batch = next(iter(loader))
        yield batch["boxes"].values[0].tolist(), bright(batch)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("scale", [1, 2, 0.5])
def test_boxes_annotated_as_shown_lie_on_their_object(orientation, scale, tmp_path):
    width, height = (int(side * scale) for side in shown_size(orientation))
    bbox = [number * scale for number in OBJECT]
    polygon = [bbox[0], bbox[1], bbox[0] + bbox[2], bbox[1], bbox[0] + bbox[2], bbox[1] + bbox[3]]
    annotation = {"image_id": 0, "bbox": bbox, "area": bbox[2] * bbox[3], "segmentation": [polygon]}
    # From 5 on the size decides; before, the user does.
    options = {"annotated": "upright"} if 1 < orientation < 5 else {}
    path = coco(tmp_path / "in", [(photograph(orientation), size(width, height))], [annotation])
    if options:
        with pytest.raises(st.errors.PackError, match=f"EXIF orientation is {orientation}.*annotated="):
            st.pack(path, tmp_path / "out", shards=1)
    st.pack(path, tmp_path / "out", shards=1, **options)
    for box, pixels in delivered(tmp_path / "out"):
        assert np.abs(np.subtract(box, pixels)).max() < 0.01, (box, pixels)
    features = st.Dataset(tmp_path / "out")["train"][0]["features"]
    # In pixels of the image as coded.
    assert features["image/object/area"] == OBJECT[2] * OBJECT[3]
    corners = np.reshape(json.loads(features["image/object/segmentation"])[0], (-1, 2))
    coded = next(delivered(tmp_path / "out"))[1]
    assert [*corners.min(0), *corners.max(0)] == coded


@pytest.mark.parametrize("orientation", [6, 8])
def test_boxes_annotated_as_coded_lie_on_their_object(orientation, tmp_path):
    data = photograph(orientation)
    pixels = np.asarray(Image.open(io.BytesIO(data)))[:, :, 0]
    rows, columns = np.nonzero(pixels)
    left, top = int(columns.min()), int(rows.min())
    bbox = [left, top, int(columns.max()) + 1 - left, int(rows.max()) + 1 - top]
    path = coco(tmp_path / "in", [(data, size(WIDTH, HEIGHT))], [{"image_id": 0, "bbox": bbox}])
    st.pack(path, tmp_path / "out", shards=1)
    for box, pixels in delivered(tmp_path / "out"):
        assert np.abs(np.subtract(box, pixels)).max() < 0.01


def test_an_annotated_size_that_fits_no_image_is_rejected(tmp_path):
    data = photograph(1)
    images = [(data, size(WIDTH, HEIGHT)), (data, size(HEIGHT, WIDTH)), (data, size(WIDTH, HEIGHT + 30)), (data, {})]
    annotations = [{"image_id": number, "bbox": list(OBJECT)} for number in range(4)]
    with pytest.warns(st.ShardtoolWarning, match="rejected 2 inputs"):
        packed = st.pack(coco(tmp_path / "in", images, annotations), tmp_path / "out", shards=1)
    rejected = [json.loads(line) for line in pathlib.Path(packed.rejected_file).read_text().splitlines()]
    rejected.sort(key=lambda line: line["input"])
    assert [line["input"] for line in rejected] == ["1.png", "2.png"]
    assert "annotations are for an image of 80 x 100" in rejected[0]["reason"]
    assert packed.images == 2


def rows(folder, objects, **members):
    """Writes a JSONL list of one image of 100 × 80 with these objects."""
    folder.mkdir()
    (folder / "a.png").write_bytes(photograph(1))
    (folder / "list.jsonl").write_text(json.dumps({"path": "a.png", "objects": objects, **members}) + "\n")
    return folder / "list.jsonl"


def test_fractions_are_not_read_as_pixels(tmp_path):
    fractions = {"bbox": [[0.1, 0.25, 0.3, 0.2]], "category": [0]}
    path = rows(tmp_path / "in", fractions)
    with pytest.raises(st.errors.PackError, match="at most 1, as fractions are.*box_unit="):
        st.pack(path, tmp_path / "out")
    st.pack(path, tmp_path / "out", box_unit="fraction")
    box, pixels = next(delivered(tmp_path / "out"))
    assert np.abs(np.subtract(box, pixels)).max() < 0.01
    # Pixels, if the user says so; and pixels are no fractions.
    st.pack(path, tmp_path / "pixels", box_unit="pixel")
    whole = rows(tmp_path / "whole", {"bbox": [[10, 20, 30, 16]]})
    with pytest.raises(st.errors.PackError, match="above 2, as pixels are"):
        st.pack(whole, tmp_path / "whole-out", box_unit="fraction")


@pytest.mark.parametrize(
    ("bbox", "boxes", "problem"),
    [
        ([400, 10, 20, 20], "xywh", "outside of the image"),
        ([10, -50, 20, 20], "xywh", "outside of the image"),
        ([50, 50, -20, 10], "xywh", "right or bottom edge before"),
        ([50, 20, 30, 40], "xyxy", "right or bottom edge before"),
    ],
)
def test_boxes_that_are_none_in_the_image_are_rejected_by_name(bbox, boxes, problem, tmp_path):
    path = rows(tmp_path / "in", {"bbox": [[1, 2, 30, 40], bbox], "category": [0, 1]})
    with pytest.raises(st.errors.PackError, match=f"box 1 of its objects.*{problem}"):
        st.pack(path, tmp_path / "out", boxes=boxes)
    with st.Writer(tmp_path / "written", "train", boxes=boxes, labels=False) as writer:
        good = {"key": "good", "image": photograph(1), "objects": {"bbox": [[1, 2, 30, 40]], "category": [1]}}
        writer.write(good)
        with pytest.raises(st.errors.PackError, match=problem):
            writer.write({**good, "key": "bad", "objects": {"bbox": [bbox], "category": [0]}})


@pytest.mark.parametrize("orientation", [3, 6])
def test_a_writer_asks_for_the_annotated_image(orientation, tmp_path):
    sample = {"key": "a", "image": photograph(orientation), "objects": {"bbox": [list(OBJECT)], "category": [0]}}
    with st.Writer(tmp_path / "asks", "train", labels=False) as writer:
        with pytest.raises(st.errors.PackError, match="annotated="):
            writer.write(sample)
        writer.write({**sample, "image": photograph(1)})
    with st.Writer(tmp_path / "given", "train", labels=False, annotated="upright") as writer:
        writer.write(sample)
    for box, pixels in delivered(tmp_path / "given"):
        assert np.abs(np.subtract(box, pixels)).max() < 0.01


def test_objects_follow_a_smaller_image(tmp_path):
    polygon = [10, 20, 40, 20, 40, 36]
    annotation = {"image_id": 0, "bbox": list(OBJECT), "area": 480, "segmentation": [polygon], "keypoints": [10, 20, 2, 0, 0, 0]}
    path = coco(tmp_path / "in", [(photograph(1), size(WIDTH, HEIGHT))], [annotation])
    st.pack(path, tmp_path / "out", shards=1, resize_shorter=40)
    features = st.Dataset(tmp_path / "out")["train"][0]["features"]
    assert (features["image/width"], features["image/height"]) == (50, 40)
    assert features["image/object/area"] == 120
    assert json.loads(features["image/object/segmentation"]) == [[5, 10, 20, 10, 20, 18]]
    assert np.allclose(features["image/object/bbox"], [0.1, 0.25, 0.4, 0.45])
    assert np.allclose(features["image/object/keypoints"], [0.1, 0.25, 2, 0, 0, 0])
    mask = {**annotation, "segmentation": {"size": [HEIGHT, WIDTH], "counts": "abc"}, "iscrowd": 1}
    path = coco(tmp_path / "crowd", [(photograph(1), size(WIDTH, HEIGHT))], [mask])
    st.pack(path, tmp_path / "kept", shards=1)
    with pytest.raises(st.errors.PackError, match="`segmentation` of its objects: expected polygons"):
        st.pack(path, tmp_path / "small", shards=1, resize_shorter=40)


@pytest.mark.parametrize("objects", [1, 2])
@pytest.mark.parametrize("area", [480, 480.5])
def test_records_with_fractions_follow_a_smaller_image(objects, area, tmp_path):
    polygon = [10, 20, 40, 20, 40, 36]
    annotation = {"image_id": 0, "bbox": list(OBJECT), "area": area, "segmentation": [polygon]}
    path = coco(tmp_path / "in", [(photograph(1), size(WIDTH, HEIGHT))], [annotation] * objects)
    st.pack(path, tmp_path / "out", shards=1)
    stored = st.Dataset(tmp_path / "out")["train"]
    st.pack(stored.shards[0].path, tmp_path / "small", resize_shorter=40)
    features = st.Dataset(tmp_path / "small")["train"][0]["features"]
    # One object is a value, several are a list.
    areas, texts = (features[f"image/object/{name}"] for name in ("area", "segmentation"))
    assert np.allclose(np.ravel(areas), [area / 4] * objects)
    assert [json.loads(text) for text in ([texts] if objects == 1 else texts)] == [[[5, 10, 20, 10, 20, 18]]] * objects
    assert features["image/object/bbox"] == stored[0]["features"]["image/object/bbox"]
    # Of the same size, they stay to the bit.
    st.pack(stored.shards[0].path, tmp_path / "same")
    again = st.Dataset(tmp_path / "same")["train"][0]["features"]
    assert {**again, "image/filename": None} == {**stored[0]["features"], "image/filename": None}


def test_units_of_polygons_and_keypoints_are_not_mixed_up(tmp_path):
    polygon = [10, 20, 40, 20, 40, 36]
    fractions = {"bbox": [[0.1, 0.25, 0.3, 0.2]]}
    # Polygons are in pixels, whatever the unit of the boxes.
    path = rows(tmp_path / "pixels", {**fractions, "segmentation": [[polygon]], "area": [480]})
    st.pack(path, tmp_path / "out", box_unit="fraction")
    features = st.Dataset(tmp_path / "out")["train"][0]["features"]
    assert json.loads(features["image/object/segmentation"]) == [polygon] and features["image/object/area"] == 480
    path = rows(tmp_path / "fractions", {**fractions, "segmentation": [[[0.1, 0.25, 0.4, 0.25, 0.4, 0.45]]]})
    with pytest.raises(st.errors.PackError, match="polygons in pixels: all coordinates are at most 1"):
        st.pack(path, tmp_path / "refused", box_unit="fraction")
    # Keypoints in fractions next to boxes in pixels.
    mixed = {"bbox": [list(OBJECT)], "keypoints": [[0.1, 0.25, 2, 0, 0, 0]]}
    with pytest.raises(st.errors.PackError, match="keypoints`: all coordinates are at most 1, as fractions are"):
        st.pack(rows(tmp_path / "mixed", mixed), tmp_path / "refused")
    # Points that are not labelled have no unit.
    unlabelled = {"bbox": [list(OBJECT)], "keypoints": [[0, 0, 0, 0, 0, 0]]}
    st.pack(rows(tmp_path / "unlabelled", unlabelled), tmp_path / "kept")


def test_other_members_of_a_coco_file_are_kept_or_named(tmp_path):
    images = [(photograph(1), {**size(WIDTH, HEIGHT), "license": 3, "coco_url": "http://x/0"}), (photograph(1), {"license": 4})]
    annotations = [
        {"image_id": 0, "bbox": list(OBJECT), "score": 0.5, "track_id": 11, "attributes": {"color": "red"}, "num_keypoints": 0},
        {"image_id": 0, "bbox": [1, 2, 3, 4], "score": 0.25, "track_id": 12, "attributes": None, "num_keypoints": 3},
        {"image_id": 1, "bbox": [1, 2, 3, 4], "score": 1, "num_keypoints": 4},
    ]
    path = coco(tmp_path / "in", images, annotations, info={"year": 2026}, licenses=[])
    with pytest.warns(st.ShardtoolWarning, match="`info` of the file.*`licenses` of the file"):
        st.pack(path, tmp_path / "out", shards=1)
    first, second = sorted(st.Dataset(tmp_path / "out")["train"][:], key=lambda record: record["key"])
    features = first["features"]
    assert features["image/object/score"] == [0.5, 0.25] and features["image/object/num_keypoints"] == [0, 3]
    # An object lacks these, or they are nested: JSON text for each object.
    assert [json.loads(text) for text in features["image/object/track_id"]] == [11, 12]
    assert [json.loads(text) for text in features["image/object/attributes"]] == [{"color": "red"}, None]
    assert json.loads(second["features"]["image/object/track_id"]) is None
    assert (features["license"], features["coco_url"], features["width"]) == (3, b"http://x/0", WIDTH)
    assert second["features"]["license"] == 4 and second["features"]["coco_url"] == []


def test_objects_without_an_area_are_counted(tmp_path):
    boxes = [{"image_id": 0, "bbox": list(OBJECT)}, {"image_id": 0, "bbox": list(OBJECT), "area": 480}, {"image_id": 0, "bbox": list(OBJECT)}]
    packed = st.pack(coco(tmp_path / "coco", [(photograph(1), size(WIDTH, HEIGHT))], boxes), tmp_path / "dataset")
    assert packed.images == 1 and "2 objects have no `area`, and are stored with 0" in packed.left_out
    record = st.Dataset(tmp_path / "dataset").split("train")[0]
    assert list(record["features"]["image/object/area"]) == [0, 480, 0]
