"""`report` counts the objects of a dataset: compared with counts of the annotations themselves."""

import collections
import itertools
import json
import shutil
import statistics
import subprocess
import sys

import numpy as np
import pytest
import shardtool as st
from conftest import frame, frames
from PIL import Image

CATEGORIES = {11: "person", 5: "dog", 42: "kite", 90: "a class whose name is longer than a table is wide"}
#: Classes have the ranks of the categories' ids.
RANKS = {category: rank for rank, category in enumerate(sorted(CATEGORIES))}


def report(dataset, *options, status=0):
    command = [sys.executable, "-m", "shardtool", "report", str(dataset), *options]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == status, run.stderr
    return run.stdout if status == 0 else run.stderr


def annotations(folder, split, images, seed):
    """Writes images and a COCO file; returns its document."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    document = {"images": [], "annotations": [], "categories": [{"id": i, "name": name} for i, name in CATEGORIES.items()]}
    for number in range(images):
        width, height = (int(side) for side in rng.integers(150, 400, 2))
        name = f"{split}{number:03}.png"
        Image.new("L", (width, height)).save(folder / name)
        document["images"].append({"id": number, "file_name": name, "width": width, "height": height})
        for _ in range(int(rng.choice([0, 1, 1, 2, 3, 6, 9]))):
            # Sides of COCO's bounds, which fractions of 32 bits must not move, and others.
            w, h = (int(side) for side in (rng.choice([32, 96], 2) if rng.random() < 0.3 else rng.integers(2, 149, 2)))
            left, top = int(rng.integers(0, width - w + 1)), int(rng.integers(0, height - h + 1))
            if rng.random() < 0.2:
                left = int(rng.choice([-1, -(w // 2), width - w + 1, width - 1]))
            points = [(int(rng.integers(0, width)), int(rng.integers(0, height)), int(rng.integers(0, 3))) for _ in range(3)]
            document["annotations"].append({
                "id": len(document["annotations"]), "image_id": number, "bbox": [left, top, w, h], "area": w * h,
                "category_id": int(rng.choice(list(CATEGORIES), p=[0.5, 0.3, 0.15, 0.05])),
                "keypoints": [float(value) for point in points for value in point], "iscrowd": 0,
            })
    (folder / "annotations.json").write_text(json.dumps(document))
    return document


def expected(document):
    """Counts the annotations of a COCO document."""
    sizes = {image["id"]: (image["width"], image["height"]) for image in document["images"]}
    names = {image["id"]: image["file_name"] for image in document["images"]}
    of_image = {number: [] for number in sizes}
    for annotation in document["annotations"]:
        of_image[annotation["image_id"]].append(annotation)
    numbers = [len(objects) for objects in of_image.values()]
    areas = np.array([a["bbox"][2] * a["bbox"][3] for a in document["annotations"]])
    whole = np.array([np.prod(sizes[a["image_id"]]) for a in document["annotations"]])
    outside = []
    for annotation in document["annotations"]:
        (left, top, w, h), (width, height) = annotation["bbox"], sizes[annotation["image_id"]]
        if left < 0 or top < 0 or left + w > width or top + h > height:
            outside.append(names[annotation["image_id"]])
    objects, images, pairs = collections.Counter(), collections.Counter(), collections.Counter()
    for found in of_image.values():
        labels = [RANKS[annotation["category_id"]] for annotation in found]
        objects.update(labels)
        images.update(set(labels))
        pairs.update(itertools.combinations(sorted(set(labels)), 2))
    visible = collections.Counter(v for a in document["annotations"] for v in a["keypoints"][2::3])
    return {
        "numbers": numbers,
        "sizes": {
            "small": int((areas < 32**2).sum()),
            "medium": int(((areas >= 32**2) & (areas < 96**2)).sum()),
            "large": int((areas >= 96**2).sum()),
        },
        "shares": np.histogram(areas / whole, [0, 0.001, 0.01, 0.1, 0.5, np.inf])[0].tolist(),
        "outside": outside,
        "objects": objects,
        "images": images,
        "pairs": pairs,
        "visible": [visible[v] for v in range(3)],
    }


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coco")
    documents = {split: annotations(folder / split, split, images, seed) for split, images, seed in (("train", 60, 1), ("val", 25, 2))}
    for split in documents:
        source = folder / split / "annotations.json"
        st.pack(source, folder / "dataset", images=folder / split, split=split, shards=3)
    return folder / "dataset", {split: expected(document) for split, document in documents.items()}


def test_counts_are_those_of_the_annotations(coco):
    dataset, counted = coco
    splits = json.loads(report(dataset, "--json"))["splits"]
    assert {split["split"] for split in splits} == set(counted)
    for split in splits:
        found, want = split["objects"], counted[split["split"]]
        numbers = want["numbers"]
        assert found["records"] == len(numbers) == split["records"] and found["unreadable"] == 0
        per_image = found["per_image"]
        assert found["objects"] == sum(numbers) == found["boxes"]["number"] and per_image["most"] == max(numbers)
        assert per_image["mean"] == pytest.approx(statistics.mean(numbers)) and per_image["median"] == statistics.median(numbers)
        assert {c["objects"]: c["images"] for c in per_image["counts"]} == collections.Counter(numbers)
        assert {name: found["boxes"][name] for name in want["sizes"]} == want["sizes"] and found["boxes"]["unknown"] == 0
        assert [share["boxes"] for share in found["boxes"]["shares"]] == want["shares"]
        assert [share["below"] for share in found["boxes"]["shares"]] == [0.001, 0.01, 0.1, 0.5, None]
        assert {c["label"]: (c["objects"], c["images"]) for c in found["classes"]} == {
            label: (number, want["images"][label]) for label, number in want["objects"].items()
        }
        assert {c["name"] for c in found["classes"]} <= set(CATEGORIES.values())
        assert {tuple(pair["labels"]): pair["images"] for pair in found["together"]} == want["pairs"]
        assert found["pairs"] == len(want["pairs"])
        images = [pair["images"] for pair in found["together"]]
        assert images == sorted(images, reverse=True) and images[0] > 2
        names = ["not_labelled", "not_visible", "visible", "other"]
        assert [found["keypoints"][name] for name in names] == [*want["visible"], 0]
        outside = found["problems"]["partly_outside"]
        assert outside["number"] == len(want["outside"]) > 5
        assert sorted(outside["keys"]) == sorted(set(outside["keys"])) and len(outside["keys"]) == 5
        assert set(outside["keys"]) <= set(want["outside"])
        assert {name: problem["number"] for name, problem in found["problems"].items() if name != "partly_outside"} == {
            "outside": 0, "no_area": 0, "not_finite": 0, "misfit": 0
        }


def test_the_first_records_are_named_in_their_order(coco):
    dataset, counted = coco
    split = json.loads(report(dataset, "--json"))["splits"][0]
    order = [record["key"] for record in st.Dataset(dataset)[split["split"]]]
    outside = set(counted[split["split"]]["outside"])
    assert split["objects"]["problems"]["partly_outside"]["keys"] == [key for key in order if key in outside][:5]


def test_a_card_and_a_page_have_the_counts(coco):
    dataset, counted = coco
    card, page = report(dataset, "--markdown"), report(dataset, "--thumbnails", "0")
    for want in counted.values():
        small, sizes = want["sizes"]["small"], sum(want["sizes"].values())
        assert f"| small: below 32² pixels | {small} | {100 * small / sizes:.1f} % |" in card
        assert f"<span class=\"count\">{small} · {100 * small / sizes:.1f} %</span>" in page
        label, number = want["objects"].most_common(1)[0]
        name = CATEGORIES[sorted(CATEGORIES)[label]]
        assert f"| {name} | {number} | in {want['images'][label]} images |" in card and f">{name}</span>" in page
        for text in (card, page):
            assert f"{len(want['outside'])} boxes partly outside the image" in text
    # The tables of objects fit a terminal.
    objects = [line for line in card.splitlines() if not line.startswith(("| `", "shards", "dataset", "Shards"))]
    assert max(map(len, objects)) <= 80, max(objects, key=len)


def test_boxes_that_cannot_be_right_are_named(tmp_path):
    boxes = {
        "good": [[0, 0, 1, 1]],
        "partly": [[-0.25, 0, 0.5, 1], [0, 0, 1.001, 1]],
        "outside": [[1.0, 0, 1.5, 1], [0, -1, 1, 0], [2, 2, 3, 3]],
        "none": [[0.5, 0.5, 0.5, 0.75], [0.75, 0.1, 0.25, 0.9]],
        "nan": [[float("nan"), 0, 1, 1], [0, 0, float("inf"), 1]],
        "rounded": [[0, 0, np.nextafter(np.float32(1), np.float32(2)), 1]],
    }
    # A writer refuses them: they are written by other names.
    renamed = {"image/object/bbox": "image/object/bbax", "image/object/class/label": "image/object/class/labal"}
    box, label = renamed.values()
    with st.Writer(tmp_path / "renamed", "train") as writer:
        for key, corners in boxes.items():
            labels = np.zeros(len(corners) + (key == "good"), np.int64)
            writer.write({"key": key, "image": np.zeros((80, 100, 3), np.uint8), box: np.float32(corners).ravel(), label: labels})
    (tmp_path / "set").mkdir()
    with open(tmp_path / "set/train-00000.tfrecord", "wb") as file:
        for data in frames((tmp_path / "renamed/train-00000.tfrecord").read_bytes()):
            for name, other in renamed.items():
                data = data.replace(other.encode(), name.encode())
            file.write(frame(data))
    st.index(tmp_path / "set")
    found = json.loads(report(tmp_path / "set", "--json"))["splits"][0]["objects"]
    assert found["problems"] == {
        "partly_outside": {"number": 2, "keys": ["partly"]},
        "outside": {"number": 3, "keys": ["outside"]},
        "no_area": {"number": 2, "keys": ["none"]},
        "not_finite": {"number": 2, "keys": ["nan"]},
        "misfit": {"number": 1, "keys": ["good"]},
    }
    assert found["boxes"]["number"] == 11 and sum(share["boxes"] for share in found["boxes"]["shares"]) == 7
    card = report(tmp_path / "set", "--markdown")
    assert "2 boxes without an area, first in\n- none\n" in card


def test_damage_is_counted(coco, tmp_path):
    dataset, counted = coco
    copy = tmp_path / "copy"
    shutil.copytree(dataset, copy)
    shard = sorted(copy.glob("train-*.tfrecord"))[0]
    data = bytearray(shard.read_bytes())
    data[40] ^= 1
    shard.write_bytes(data)
    found = json.loads(report(copy, "--json"))["splits"]
    train = next(split for split in found if split["split"] == "train")["objects"]
    assert (train["unreadable"], train["records"]) == (1, 59)
    assert "1 record could not be read and counted: see shardtool verify." in report(copy, "--markdown")


def test_objects_in_a_store_are_not_counted(coco, bucket):
    dataset, _ = coco
    shutil.copytree(dataset, bucket / "boxes")
    for split in json.loads(report("s3://bucket/boxes", "--json", "--labels", "image/object/class/label"))["splits"]:
        assert split["objects"] is None and split["label_lists"] is None
    assert "Objects and labels were not counted: in a store" in report("s3://bucket/boxes", "--markdown")


def test_labels_of_a_column_are_counted(tmp_path):
    rng = np.random.default_rng(3)
    lists = [sorted({int(label) for label in rng.integers(0, 6, rng.integers(0, 5))}) for _ in range(50)]
    with st.Writer(tmp_path / "set", "train") as writer:
        for number, labels in enumerate(lists):
            writer.write({"key": f"{number}", "image": np.zeros((8, 8, 3), np.uint8), "tags": np.int64(labels), "text": "a"})
    plain = json.loads(report(tmp_path / "set", "--json"))["splits"][0]
    assert "objects" not in plain and "label_lists" not in plain
    assert "object" not in report(tmp_path / "set", "--markdown")
    found = json.loads(report(tmp_path / "set", "--json", "--labels", "tags"))["splits"][0]
    assert {name: value for name, value in found.items() if name != "label_lists"} == plain
    lists_found = found["label_lists"]
    assert {c["label"]: c["values"] for c in lists_found["classes"]} == collections.Counter(itertools.chain(*lists))
    pairs = collections.Counter(pair for labels in lists for pair in itertools.combinations(labels, 2))
    assert {tuple(pair["labels"]): pair["images"] for pair in lists_found["together"]} == pairs
    assert "Labels of the same record" in report(tmp_path / "set", "--markdown", "--labels", "tags")
    for column, message in {"text": "holds bytes", "none": "does not exist"}.items():
        error = report(tmp_path / "set", "--labels", column, status=2)
        assert message in error and "`tags`" in error, error


def test_names_of_classes_without_ids_are_counted(tmp_path):
    animals = [["owl", "cat"], [], ["cat", "cat"], ["emu", "owl", "<b>"]]
    lines = []
    for number, names in enumerate(animals):
        Image.new("L", (40, 30)).save(tmp_path / f"{number}.png")
        objects = {"bbox": [[1, 1, 9, 9] for _ in names], "category": names}
        lines.append(json.dumps({"path": f"{number}.png", "objects": objects}))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    st.pack(tmp_path / "rows.jsonl", tmp_path / "dataset")
    found = json.loads(report(tmp_path / "dataset", "--json"))["splits"][0]["objects"]
    objects = collections.Counter(name for names in animals for name in names)
    images = collections.Counter(name for names in animals for name in set(names))
    names = sorted(objects)
    expected_classes = [{"label": at, "name": name, "objects": objects[name], "images": images[name]} for at, name in enumerate(names)]
    assert found["classes"] == expected_classes and found["objects"] == sum(map(len, animals))
    pairs = collections.Counter(pair for row in animals for pair in itertools.combinations(sorted(set(row)), 2))
    assert {tuple(pair["names"]): pair["images"] for pair in found["together"]} == pairs
