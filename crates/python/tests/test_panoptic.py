"""Panoptic segmentations: COCO's file and its PNGs, as ids of 32 bits that no step mixes."""

import json

import numpy as np
import pytest
from PIL import Image

import shardtool as st

HEIGHT, WIDTH, N = 30, 44, 5
CATEGORIES = [{"id": 7, "name": "train", "isthing": 1}, {"id": 21, "name": "cow", "isthing": 1}, {"id": 200, "name": "rug", "isthing": 0}]


def ids(number: int) -> np.ndarray:
    """Ids as panopticapi draws them: of all 24 bits, 0 outside of segments."""
    segments = np.random.default_rng(number).integers(1, 2**24, 4)
    coarse = np.random.default_rng((1, number)).choice([0, *segments], (5, 4))
    return np.kron(coarse, np.ones((6, 11), np.int64)).astype(np.int32)


def coded(values: np.ndarray) -> Image.Image:
    """panopticapi's `id2rgb`."""
    rgb = np.stack([values % 256, values // 256 % 256, values // 256 // 256], -1)
    return Image.fromarray(rgb.astype(np.uint8))


def write(root, above=False, **changes):
    """The layout of COCO: the PNGs in a folder of the name of the file, next to it or next to its folder."""
    (root / "annotations").mkdir(parents=True)
    pngs = root / ("panoptic_val2017" if above else "annotations/panoptic_val2017")
    pngs.mkdir()
    (root / "val2017").mkdir()
    images, annotations = [], []
    for number in range(N):
        pixels = np.random.default_rng((2, number)).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
        Image.fromarray(pixels).save(root / f"val2017/{number}.jpg")
        coded(ids(number)).save(pngs / f"{number}.png")
        segments = []
        for at, segment in enumerate(np.unique(ids(number))):
            if segment:
                rows, columns = np.nonzero(ids(number) == segment)
                box = [int(columns.min()), int(rows.min()), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1]
                segments.append({"id": int(segment), "category_id": (7, 21, 200)[at % 3], "bbox": box, "area": len(rows), "iscrowd": at % 2})
        images.append({"id": number, "file_name": f"{number}.jpg", "height": HEIGHT, "width": WIDTH})
        annotations.append({"image_id": number, "file_name": f"{number}.png", "segments_info": segments})
    document = {"images": images, "annotations": annotations, "categories": CATEGORIES} | changes
    path = root / "annotations/panoptic_val2017.json"
    path.write_text(json.dumps(document))
    return path, document


def pack(path, out):
    return st.pack(path, out, images=path.parent.parent / "val2017", progress=False)


@pytest.fixture(scope="module")
def panoptic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panoptic")
    path, document = write(folder / "coco")
    pack(path, folder / "set")
    return st.Dataset(folder / "set").split("val"), document


def rows(split, steps, *more, **options):
    found = {}
    mask = st.Mask("image/panoptic", dtype="int32")
    for batch in st.Loader(split, N, [st.Image(steps), mask, "image/id", *more], remainder="mask", **options):
        for row in np.flatnonzero(batch["valid"]):
            found[int(batch["image/id"][row])] = batch["mask"][row].copy()
    assert sorted(found) == list(range(N)) and all(values.dtype == np.int32 for values in found.values())
    return found


def test_ids_and_segments_are_those_of_the_file(panoptic):
    split, document = panoptic
    for number, values in rows(split, [st.ResizeTo((HEIGHT, WIDTH))]).items():
        np.testing.assert_array_equal(values, ids(number))
    assert split.classes == ["train", "cow", "rug"]
    for record in split[:]:
        features = record["features"] if "features" in record else record
        segments = document["annotations"][int(np.ravel(features["image/id"])[0])]["segments_info"]
        assert list(features["image/object/id"]) == [segment["id"] for segment in segments]
        assert list(features["image/object/category_id"]) == [segment["category_id"] for segment in segments]
        assert list(features["image/object/iscrowd"]) == [segment["iscrowd"] for segment in segments]
        boxes = np.reshape(features["image/object/bbox"], (-1, 4)) * [WIDTH, HEIGHT, WIDTH, HEIGHT]
        expected = [[x, y, x + w, y + h] for x, y, w, h in (segment["bbox"] for segment in segments)]
        np.testing.assert_allclose(boxes, expected, atol=1e-4)


def test_ids_move_with_the_image(panoptic):
    split, _ = panoptic
    for number, values in rows(split, [st.ResizeTo((60, 33)), st.RandomHorizontalFlip(1)]).items():
        expected = Image.fromarray(ids(number)).resize((33, 60), Image.Resampling.NEAREST)
        np.testing.assert_array_equal(values, np.asarray(expected)[:, ::-1])
    steps = [st.RandomZoomOut(fill=9, side_range=(1.5, 2)), st.ResizeTo((50, 50)), st.RandomRotation(30), st.RandomPerspective(0.3, 1)]
    for number, values in rows(split, steps).items():
        assert set(np.unique(values)) <= {-1, *np.unique(ids(number))}
        assert 0.1 < (values == -1).mean() < 0.95


def test_a_fill_and_narrower_labels(panoptic, tmp_path):
    split, _ = panoptic
    with pytest.raises(st.OptionError, match="`fill` is 300, which uint8 does not hold"):
        st.Loader(split, 2, [st.Image([st.ResizeTo(8)]), st.Mask("image/panoptic", fill=300)])
    with pytest.raises(st.OptionError, match="`fill` is -1, which uint16"):
        st.Loader(split, 2, [st.Image([st.ResizeTo(8)]), st.Mask("image/panoptic", dtype="uint16", fill=-1)])
    with pytest.raises(st.BadSampleError, match="not a label map"):
        list(st.Loader(split, 2, [st.Image([st.ResizeTo(8)]), st.Mask("image/panoptic")], bad_samples="error"))
    with st.Writer(tmp_path / "set", "train", features={"eight": "bytes", "sixteen": "bytes"}) as writer:
        for name, dtype in (("eight", np.uint8), ("sixteen", np.uint16)):
            values = np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
            Image.fromarray((values % np.iinfo(dtype).max).astype(dtype)).save(tmp_path / f"{name}.png")
        files = {name: (tmp_path / f"{name}.png").read_bytes() for name in ("eight", "sixteen")}
        writer.write({"key": "a", "image": np.zeros((HEIGHT, WIDTH, 3), np.uint8), **files})
    fields = [st.Image([st.Pad(2), st.ResizeTo((HEIGHT + 4, WIDTH + 4))]), st.Mask("eight", dtype="int32", fill=-7), st.Mask("sixteen", dtype="int32")]
    batch = next(iter(st.Loader(st.Dataset(tmp_path / "set").split("train"), 1, fields)))
    np.testing.assert_array_equal(batch["sixteen"][0], np.pad(values, 2, constant_values=-1))
    np.testing.assert_array_equal(batch["eight"][0], np.pad(values % 255, 2, constant_values=-7))


def test_masked_rows_have_no_id(panoptic):
    split, _ = panoptic
    last = list(st.Loader(split, 4, [st.Image([st.ResizeTo(8)]), st.Mask("image/panoptic", dtype="int32")], remainder="mask"))[-1]
    assert last["valid"].tolist() == [True, False, False, False]
    assert (last["mask"][1:] == -1).all()


def test_folders_and_refusals(tmp_path):
    path, _ = write(tmp_path / "above", above=True)
    assert pack(path, tmp_path / "set").images == N
    path, document = write(tmp_path / "coco")
    (path.parent / "panoptic_val2017/2.png").unlink()
    Image.fromarray(np.zeros((3, 3, 3), np.uint8)).save(path.parent / "panoptic_val2017/1.png")
    report = pack(path, tmp_path / "missing")
    assert (report.images, report.rejected) == (N - 2, 2)
    lines = (tmp_path / "missing/rejected-val.jsonl").read_text().splitlines()
    reasons = {line["input"]: line["reason"] for line in map(json.loads, lines)}
    assert "image/panoptic" in reasons["2.jpg"] and "3x3" in reasons["1.jpg"] and "RGB PNG of ids" in reasons["1.jpg"]
    for change, message in [
        ({"annotations": document["annotations"] * 2}, "two panoptic segmentations of image 0"),
        ({"annotations": [{"image_id": 0, "file_name": "0.png"}, *document["annotations"][1:]]}, "no `file_name` or no `segments_info`"),
        ({"annotations": [{**document["annotations"][0], "score": 1}]}, "the member `score`"),
        ({"categories": CATEGORIES[:2]}, "category 200"),
    ]:
        path.write_text(json.dumps(document | change))
        with pytest.raises(st.PackError, match=message):
            pack(path, tmp_path / "wrong")
    (path.parent / "panoptic_val2017").rename(tmp_path / "elsewhere")
    path.write_text(json.dumps(document))
    with pytest.raises(st.PackError, match="its PNGs were expected in .*panoptic_val2017"):
        pack(path, tmp_path / "wrong")


def test_the_layout_of_coco_is_indexed_in_place(panoptic, tmp_path):
    path, _ = write(tmp_path / "coco")
    images, steps = tmp_path / "coco/val2017", [st.ResizeTo((HEIGHT, WIDTH))]
    with pytest.raises(st.PackError, match=r"write the index to a folder that both are in \(`--out`\)"):
        st.index(path, images=images)
    st.index(path, tmp_path / "coco", images=images)
    split = st.Dataset(tmp_path / "coco").split("val")
    assert split.fingerprint == panoptic[0].fingerprint
    assert all(np.array_equal(values, ids(number)) for number, values in rows(split, steps).items())
    # Images were not copied: one that is replaced is missed. These small maps are in the index.
    (images / "2.jpg").write_bytes(b"other")
    with pytest.raises(st.BadSampleError, match=r"val2017/2\.jpg"):
        rows(st.Dataset(tmp_path / "coco").split("val"), steps, bad_samples="error")


def test_ids_of_the_png_and_of_the_segments_agree(tmp_path):
    path, document = write(tmp_path / "coco")
    pngs = path.parent / "panoptic_val2017"
    unknown = ids(0).copy()
    unknown[0, 0] = 77
    coded(unknown).save(pngs / "0.png")
    coded(np.where(ids(1) == document["annotations"][1]["segments_info"][0]["id"], 0, ids(1))).save(pngs / "1.png")
    # A palette has indices, and no ids.
    coded(ids(2)).quantize(256).save(pngs / "2.png")
    document["annotations"].pop()
    path.write_text(json.dumps(document))
    report = pack(path, tmp_path / "set")
    assert (report.images, report.rejected) == (1, 4)
    lines = (tmp_path / "set/rejected-val.jsonl").read_text().splitlines()
    reasons = {line["input"]: line["reason"] for line in map(json.loads, lines)}
    assert "the id 77 has pixels" in reasons["0.jpg"] and "no pixel has it" in reasons["1.jpg"]
    assert "image/panoptic" in reasons["2.jpg"] and "no annotation is one of this image, whose id is 4" in reasons["4.jpg"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda of: of["segments_info"][0].update(id=0), "the id 0; expected 1 to 16,777,215"),
        (lambda of: of["segments_info"][0].update(id=2**24), "the id 16777216"),
        (lambda of: of["segments_info"][0].update(id=-1), "the id -1"),
        (lambda of: of["segments_info"].append(of["segments_info"][0]), "two segments with the id"),
        (lambda of: of.update(file_name="../0.png"), "lies outside of the folder"),
        (lambda of: of.update(file_name="/etc/hostname"), "lies outside of the folder"),
    ],
)
def test_wrong_ids_and_names_are_refused(tmp_path, change, message):
    path, document = write(tmp_path / "coco")
    change(document["annotations"][1])
    path.write_text(json.dumps(document))
    with pytest.raises(st.PackError, match=message):
        pack(path, tmp_path / "set")
