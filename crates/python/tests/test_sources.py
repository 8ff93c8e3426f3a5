"""What `pack` makes of the same case from each kind of source: docs/sources.md holds the table, and this test makes it again.

`SHARDTOOL_WRITE_TABLES=1` writes the table instead of comparing it.
"""

import io
import json
import os
import pathlib
import shutil
import tarfile
import warnings

import numpy as np
import pytest
import shardtool as st
from PIL import Image
from test_numbers import mds, png

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "sources.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
#: A sample: file name, class, and further columns.
ROWS = [("a", "cat", {}), ("b", "dog", {}), ("c", "cat", {})]


def folder(at, rows, stem):
    for number, (name, label, _) in enumerate(rows):
        (at / stem / label).mkdir(parents=True, exist_ok=True)
        path = at / stem / label / f"{name}.png"
        assert not path.exists()
        path.write_bytes(png(number))


def listed(at, rows, stem, write):
    at.mkdir(exist_ok=True)
    found = []
    for number, (name, label, columns) in enumerate(rows):
        (at / f"{number}.png").write_bytes(png(number))
        found.append({"path": f"{number}.png", "key": f"{name}.png", "label": label, **columns})
    write(at, stem, found)


def jsonl(at, rows, stem):
    def write(at, stem, found):
        (at / f"{stem}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))

    listed(at, rows, stem, write)


def csv(at, rows, stem):
    def write(at, stem, found):
        names = list(dict.fromkeys(name for row in found for name in row)) or ["path"]
        cells = [["" if row.get(name) is None else repr(row[name]).strip("'") for name in names] for row in found]
        (at / f"{stem}.csv").write_text("".join(",".join(row) + "\n" for row in [names, *cells]))

    listed(at, rows, stem, write)


def tar(at, rows, stem):
    at.mkdir(exist_ok=True)
    with tarfile.open(at / f"{stem}.tar", "w") as file:
        for number, (name, label, columns) in enumerate(rows):
            members = {"png": png(number), "cls": label.encode(), "json": json.dumps(columns).encode()}
            for extension, data in members.items():
                member = tarfile.TarInfo(f"{name}.{extension}")
                member.size = len(data)
                file.addfile(member, io.BytesIO(data))


def parquet(at, rows, stem):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    at.mkdir(exist_ok=True)
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    types = {"wide": pa.float64(), "large": pa.uint64(), "score": pa.float32()}
    columns = {"image": pa.array([{"bytes": png(n), "path": f"{name}.png"} for n, (name, _, _) in enumerate(rows)], image)}
    columns["label"] = pa.array([label for _, label, _ in rows], pa.string())
    for name in dict.fromkeys(name for _, _, more in rows for name in more):
        columns[name] = pa.array([more.get(name) for _, _, more in rows], types[name])
    pq.write_table(pa.table(columns), at / f"{stem}.parquet")


def mosaic(at, rows, stem):
    """Mosaic's format has no nulls, and a folder for each split."""
    types = {"image": "png", "label": "str", "key": "str", **{"wide": "float64", "large": "uint64"}}
    columns = {name: types[name] for name in ("image", "label", "key", *(rows[0][2] if rows else ()))}
    at.mkdir(exist_ok=True)
    values = [{"image": png(n), "label": label.encode(), "key": f"{name}.png".encode(), **more} for n, (name, label, more) in enumerate(rows)]
    mds(at / stem, columns, values)


def tfrecord(at, rows, stem):
    """TFRecord has no float64, no uint64. A file without records is empty."""
    at.mkdir(exist_ok=True)
    if not rows:
        (at / f"{stem}.tfrecord").touch()
        return
    # A writer refuses equal keys, so each record is written apart, and the files are joined.
    joined = b""
    for number, (name, label, columns) in enumerate(rows):
        made = at / f".{stem}{number}"
        with st.Writer(made, "made", classes=["cat", "dog", "bird"]) as writer:
            writer.write({"key": f"{name}.png", "image": png(number), "label": label, **columns})
        joined += (made / "made-00000.tfrecord").read_bytes()
        shutil.rmtree(made)
    (at / f"{stem}.tfrecord").write_bytes(joined)


def coco(at, rows, stem):
    (at / stem).mkdir(parents=True)
    images = []
    for number, (name, _, columns) in enumerate(rows):
        (at / stem / f"{name}.png").write_bytes(png(number))
        images.append({"id": number, "file_name": f"{name}.png", "width": 8, "height": 8, **columns})
    labels = sorted({label for _, label, _ in rows})
    boxes = [{"id": n, "image_id": n, "category_id": labels.index(label), "bbox": [1, 1, 3, 3]} for n, (_, label, _) in enumerate(rows)]
    document = {"images": images, "annotations": boxes, "categories": [{"id": n, "name": label} for n, label in enumerate(labels)]}
    (at / stem / "annotations.json").write_text(json.dumps(document))


def voc(at, rows, stem):
    for name in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (at / "voc" / name).mkdir(parents=True, exist_ok=True)
    for number, (name, label, columns) in enumerate(rows):
        (at / "voc" / "JPEGImages" / f"{name}.png").write_bytes(png(number))
        members = "".join(f"<{column}>{value!r}</{column}>" for column, value in columns.items() if value is not None)
        box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox>"
        text = f"<annotation>{members}<object><name>{label}</name>{box}</object></annotation>"
        (at / "voc" / "Annotations" / f"{name}.xml").write_text(text)
    (at / "voc" / "ImageSets" / "Main" / f"{stem}.txt").write_text("".join(f"{name}\n" for name, _, _ in rows))


def yolo(at, rows, stem):
    """Labels have no further columns."""
    labels = sorted({label for _, label, _ in rows})
    for folder in ("images", "labels"):
        (at / "yolo" / folder / stem).mkdir(parents=True)
    for number, (name, label, _) in enumerate(rows):
        (at / "yolo" / "images" / stem / f"{name}.png").write_bytes(png(number))
        (at / "yolo" / "labels" / stem / f"{name}.txt").write_text(f"{labels.index(label)} 0.5 0.5 0.25 0.5\n")
    splits = "".join(f"{folder.name}: images/{folder.name}\n" for folder in (at / "yolo" / "images").iterdir())
    (at / "yolo" / "data.yaml").write_text(f"{splits}names: {json.dumps(labels)}\n")


def pairs(at, rows, stem):
    """Masks have no classes."""
    for number, (name, _, _) in enumerate(rows):
        for folder in ("images", "masks"):
            (at / "pairs" / folder / stem).mkdir(parents=True, exist_ok=True)
        image = Image.open(io.BytesIO(png(number)))
        (at / "pairs" / "images" / stem / f"{name}.png").write_bytes(png(number))
        Image.new("L", image.size, number).save(at / "pairs" / "masks" / stem / f"{name}.png")
    (at / "pairs").mkdir(exist_ok=True)


SOURCES = {
    "folder of classes": folder, "JSONL": jsonl, "CSV": csv, "WebDataset": tar, "Parquet": parquet, "MDS": mosaic,
    "TFRecord": tfrecord, "COCO": coco, "Pascal VOC": voc, "YOLO": yolo, "images and masks": pairs,
}  # fmt: skip
#: Kinds whose `at` holds one source, not several files that are packed together.
SINGLE = {"JSONL": "{}.jsonl", "CSV": "{}.csv", "COCO": "{}/annotations.json"}
#: Kinds whose `at` holds one folder with all splits.
ROOTS = {"Pascal VOC": "voc", "YOLO": "yolo", "images and masks": "pairs"}
#: Kinds whose classes are those of objects.
OBJECTS = ("COCO", "Pascal VOC", "YOLO")
#: Kinds that have an image and nothing else to store, or files only.
NO_COLUMNS = ("folder of classes", "YOLO", "images and masks")
HOLDS = {"wide": "columns", "large": "columns", "score": "columns"}


def source_of(kind, at, stem):
    if kind in ROOTS:
        return at / ROOTS[kind]
    return at / SINGLE[kind].format(stem) if kind in SINGLE else (at / stem if kind in ("folder of classes", "MDS") else at)


def pack(case, tmp_path, rows, name="one", **options):
    at = tmp_path / name
    at.mkdir()
    SOURCES[case](at, rows, "train")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = st.pack(source_of(case, at, "train"), tmp_path / f"{name}.dataset", **options)
    return result, st.Dataset(tmp_path / f"{name}.dataset")


def only(dataset):
    return dataset.split(dataset.splits[0])


def refusal(error, *named):
    text = " ".join([str(error), *getattr(error, "__notes__", [])])
    assert any(name in text for name in named), text
    return "refused"


def classes_differ(kind, tmp_path):
    if kind == "images and masks":
        return "no classes"
    one, two = [pack(kind, tmp_path, rows, name)[1] for name, rows in (("one", ROWS), ("two", [("d", "dog", {}), ("e", "bird", {})]))]
    splits = [only(one), only(two)]
    fields = [st.Image([st.CenterCrop(8)]), *(["image/object/class/label"] if kind in OBJECTS else [])]
    with pytest.raises(st.OptionError) as error:
        st.Loader(splits, 2, fields)
    assert "class" in str(error.value)
    loader = st.Loader(splits, 2, fields, classes="union")
    assert set(loader.classes) >= {"cat", "dog", "bird"}
    return "refused where they meet; `classes=` maps by name"


def split_names(kind, tmp_path):
    if kind in SINGLE and kind != "COCO":
        return "one file is one split"
    at = tmp_path / "both"
    at.mkdir()
    for stem in ("train", "val"):
        # An image is in one split.
        SOURCES[kind](at, [(f"{stem}-{name}", label, more) for name, label, more in ROWS], stem)
    if kind == "COCO":
        # As COCO is distributed.
        (at / "annotations").mkdir()
        for stem in ("train", "val"):
            (at / stem / "annotations.json").rename(at / "annotations" / f"instances_{stem}2017.json")
            (at / stem).rename(at / f"{stem}2017")
        with pytest.raises(st.PackError) as error:
            st.pack(at, tmp_path / "dataset")
        return refusal(error.value, "a COCO file with `images=`") + ": name one file of annotations"
    st.pack(source_of(kind, at, "") if kind in ROOTS else at, tmp_path / "dataset")
    dataset = st.Dataset(tmp_path / "dataset")
    found = {name: len(dataset.split(name)) for name in dataset.splits}
    assert found == {"train": len(ROWS), "val": len(ROWS)}
    return "two splits"


def dotted_names(kind, tmp_path):
    rows = [(f"cam_0.{n}", label, {}) for n, (_, label, _) in enumerate(ROWS)]
    try:
        _, dataset = pack(kind, tmp_path, rows)
    except st.PackError as error:
        text = refusal(error, "member_key")
        _, dataset = pack(kind, tmp_path, rows, "again", member_key="last-dot")
        assert len(only(dataset)) == 3
        return text + " with both readings; `--member-key`"
    keys = {only(dataset)[i]["key"].split("/")[-1] for i in range(3)}
    assert keys == {f"cam_0.{n}.png" for n in range(3)}, keys
    return "kept"


def column(name, values):
    def run(kind, tmp_path):
        if kind in NO_COLUMNS:
            return "no columns"
        if kind == "TFRecord" and name != "score":
            return "has no such type"
        rows = [(key, label, {name: value}) for (key, label, _), value in zip(ROWS, values, strict=True)]
        split = only(pack(kind, tmp_path, rows)[1])
        found = sorted(split[i]["features"][name] for i in range(3))
        assert found == sorted(values), (found, values)
        return f"`{split.features[name]}`"

    return run


def nulls(kind, tmp_path):
    if kind in NO_COLUMNS:
        return "no columns"
    if kind == "MDS":
        return "has no nulls"
    rows = [(key, label, {"score": value} if value is not None or kind != "TFRecord" else {}) for (key, label, _), value in zip(ROWS, (0.5, None, 1.5), strict=True)]
    split = only(pack(kind, tmp_path, rows)[1])
    assert np.ma.getmaskarray(split.columns["score"]).sum() == 1
    return "kept"


def empty(kind, tmp_path):
    try:
        # Without a file, nothing says what it is.
        named = {"Pascal VOC": {"kind": "voc"}, "images and masks": {"kind": "pairs"}}
        pack(kind, tmp_path, [], **named.get(kind, {}))
    except (st.PackError, st.FileError) as error:
        assert not (tmp_path / "one.dataset" / "dataset.json").exists()
        return refusal(error, "no ", "empty", "does not") + ", nothing published"
    raise AssertionError("an empty split")


def duplicate_keys(kind, tmp_path):
    if kind == "folder of classes" or kind in ROOTS:
        return "cannot occur"
    rows = [("a", "cat", {}), ("b", "dog", {}), ("a", "cat", {})]
    try:
        result, dataset = pack(kind, tmp_path, rows)
    except st.PackError as error:
        return refusal(error, "same key", "have the file name") + (" with both lines" if "lines" in str(error) else " by name")
    keys = {only(dataset)[i]["key"] for i in range(len(only(dataset)))}
    assert len(keys) == len(only(dataset)) == result.samples - result.rejected
    return "each is made unique: `KEY#FILE#N`" if any("#" in key for key in keys) else f"{result.rejected} rejected by name"


CASES = {
    "classes differ": classes_differ,
    "files named for splits": split_names,
    "names with dots": dotted_names,
    "float64": column("wide", [1700000000.123, 1e300, 0.5]),
    "uint64": column("large", [2**63, 2**64 - 1, 1]),
    "nulls": nulls,
    "no sample": empty,
    "equal keys": duplicate_keys,
}


def test_the_page_says_what_each_source_becomes(tmp_path):
    pytest.importorskip("pyarrow")
    lines = [f"| case | {' | '.join(SOURCES)} |", f"|{'---|' * (1 + len(SOURCES))}"]
    for case, run in CASES.items():
        cells = []
        for kind in SOURCES:
            at = tmp_path / f"{case} {kind}"
            at.mkdir()
            cells.append(run(kind, at))
        lines.append(f"| {case} | {' | '.join(cells)} |")
    table = "\n".join(lines) + "\n"
    before, rest = PAGE.read_text().split(BEGIN)
    found, after = rest.split(END)
    if os.environ.get("SHARDTOOL_WRITE_TABLES"):
        PAGE.write_text(before + BEGIN + table + END + after)
    else:
        assert found == table
