"""Numbers keep their value from every source to every reader: float64 and uint64 where float32 and int64 would change them, and a
named refusal where no type holds them. The expected values are those that were written, never those that were read."""

import io
import json
import struct
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import shardtool as st
from PIL import Image

#: What float32 would make 1700000000.0, 16777216.0 and infinity of.
WIDE = [1700000000.123, 16777217.0, 1e300, -0.1234567]
#: What float32, float64 and int64 would change.
LARGE = [2**63, 2**64 - 1, 2**53 + 1, 0]


def png(number=0):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (number, 0, 0)).save(file, "PNG")
    return file.getvalue()


def images(folder, count=4):
    for number in range(count):
        (folder / f"{number}.png").write_bytes(png(number))


def jsonl(folder, rows):
    images(folder, len(rows))
    lines = [json.dumps({"path": f"{number}.png", **row}) for number, row in enumerate(rows)]
    (folder / "list.jsonl").write_text("\n".join(lines))
    return folder / "list.jsonl"


def csv(folder, header, rows):
    images(folder, len(rows))
    lines = [f"path,{header}", *(f"{number}.png,{row}" for number, row in enumerate(rows))]
    (folder / "list.csv").write_text("\n".join(lines))
    return folder / "list.csv"


def tar(folder, rows):
    path = folder / "samples.tar"
    with tarfile.open(path, "w") as file:
        for number, row in enumerate(rows):
            for name, data in ((f"{number}.png", png(number)), (f"{number}.json", json.dumps(row).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                file.addfile(member, io.BytesIO(data))
    return path


def mds(folder, columns, rows):
    """Writes a shard of Mosaic's format: sizes of the columns that have no fixed one, then the values."""
    fixed = {"float64": "<d", "uint64": "<Q", "int": "<q", "float32": "<f"}
    names, samples = sorted(columns), []
    for row in rows:
        values = [row[n] if columns[n] not in fixed else struct.pack(fixed[columns[n]], row[n]) for n in names]
        sizes = [len(v) for n, v in zip(names, values, strict=True) if columns[n] not in fixed]
        samples.append(struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(values))
    offsets = np.cumsum([4 * (len(samples) + 2), *map(len, samples)])
    shard = np.array([len(samples), *offsets], "<u4").tobytes() + b"".join(samples)
    folder.mkdir()
    (folder / "shard.00000.mds").write_bytes(shard)
    index = {
        "column_encodings": [columns[n] for n in names], "column_names": names, "compression": None, "format": "mds",
        "column_sizes": [struct.calcsize(fixed[columns[n]]) if columns[n] in fixed else None for n in names],
        "hashes": [], "raw_data": {"basename": "shard.00000.mds", "bytes": len(shard), "hashes": {}},
        "samples": len(samples), "size_limit": 1 << 26, "version": 2, "zip_data": None,
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"shards": [index], "version": 2}))
    return folder


def parquet(folder, columns, types=None):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    count = len(next(iter(columns.values())))
    table = {name: pa.array(values, (types or {}).get(name)) for name, values in columns.items()}
    table["image"] = pa.array([{"bytes": png(n), "path": f"{n}.png"} for n in range(count)])
    pq.write_table(pa.table(table), folder / "train.parquet")
    return folder / "train.parquet"


def packed(source, tmp_path, **options):
    st.pack(source, tmp_path / "dataset", **options)
    return st.Dataset(tmp_path / "dataset").split("train")


def stored(split, name):
    """Returns the values of a feature, in the order of the images' numbers."""
    records = [split[i] for i in range(len(split))]
    key = lambda record: int(record["key"].split("/")[-1].split(".")[0])
    return [record["features"].get(name) for record in sorted(records, key=key)]


def equal(found, expected):
    assert [type(value) for value in found] == [type(value) for value in expected]
    assert found == expected


def command(*arguments):
    run = [sys.executable, "-m", "shardtool", *map(str, arguments)]
    return subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout


SOURCES = ["jsonl", "csv", "tar", "parquet", "mds", "writer", "writer-numpy"]


def source(kind, folder, name, values):
    """Makes a source with one column of numbers."""
    is_float = isinstance(values[0], float)
    if kind == "jsonl":
        return jsonl(folder, [{name: value} for value in values])
    if kind == "csv":
        return csv(folder, name, [repr(value) for value in values])
    if kind == "tar":
        return tar(folder, [{name: value} for value in values])
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        return parquet(folder, {name: values}, {name: pa.float64() if is_float else pa.uint64()})
    columns = {"image": "png", name: "float64" if is_float else "uint64"}
    return mds(folder / "mds", columns, [{"image": png(n), name: value} for n, value in enumerate(values)])


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("name, values", [("time", WIDE), ("hash", LARGE)])
def test_every_source_keeps_the_value(kind, name, values, tmp_path):
    dtype = "float64" if name == "time" else "uint64"
    if kind.startswith("writer"):
        to = np.array(values, dtype) if kind == "writer-numpy" else values
        with st.Writer(tmp_path / "dataset", "train", features={name: dtype} if kind == "writer" else None) as writer:
            for number, value in enumerate(to):
                writer.write({"key": f"{number}.png", "image": png(number), name: value})
        split = st.Dataset(tmp_path / "dataset").split("train")
    else:
        split = packed(source(kind, tmp_path, name, values), tmp_path, seed=1)
    assert split.features[name] == dtype
    if kind == "mds":
        assert sorted(stored_any(split, name)) == sorted(values)
    else:
        equal(stored(split, name), values)
    column = split.columns[name]
    assert column.dtype == np.dtype(dtype) and sorted(column.tolist()) == sorted(values)
    batch = next(iter(st.Loader(split, 4, [st.Image([st.CenterCrop(8)]), name])))
    assert batch[name].dtype == np.dtype(dtype) and sorted(batch[name].tolist()) == sorted(values)


def stored_any(split, name):
    return [split[i]["features"][name] for i in range(len(split))]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tar"])
@pytest.mark.parametrize(
    "values, dtype",
    [
        ([0.1, 2.5, 123456.0, 1e-30], "float"),
        ([1, 2.5, 16777216, 0], "float"),
        ([1, 2.5, 16777217, 0], "float64"),
        ([-(2**63), 2**63 - 1, 0, 1], "int64"),
        ([0, 1, 2, 2**63], "uint64"),
        ([0.5, 3.4e38, 1, 2], "float"),
        ([0.5, 3.5e38, 1, 2], "float64"),
    ],
)
def test_the_type_holds_all_numbers_of_the_column(kind, values, dtype, tmp_path):
    split = packed(source(kind, tmp_path, "x", values), tmp_path)
    assert split.features["x"] == dtype
    found = stored(split, "x")
    if dtype == "float":
        assert found == [float(np.float32(value)) for value in values]
        assert [float(f"{value:.6g}") for value in found] == [float(f"{value:.6g}") for value in values]
    else:
        assert found == values


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tar"])
@pytest.mark.parametrize("values, named", [([-1, 2**63, 0, 0], [-1, 2**63]), ([0.5, 2**53 + 1, 0, 0], [2**53 + 1, 0.5])])
def test_numbers_that_no_type_holds_are_refused_with_both_values(kind, values, named, tmp_path):
    path = source(kind, tmp_path, "x", values)
    with pytest.raises(st.PackError) as refused:
        st.pack(path, tmp_path / "dataset")
    assert all(str(value) in str(refused.value) for value in named) and "x:float64" in str(refused.value)
    assert not (tmp_path / "dataset" / "dataset.json").exists()
    assert packed(path, tmp_path, columns={"x": "float64"}).features["x"] == "float64"
    assert sorted(stored_any(st.Dataset(tmp_path / "dataset").split("train"), "x")) == sorted(map(float, values))


@pytest.mark.parametrize("kind", ["jsonl", "tar"])
def test_integers_of_more_than_64_bits_are_named(kind, tmp_path):
    path = source(kind, tmp_path, "x", [1, 2**64, 3, 4])
    if kind == "jsonl":
        with pytest.raises(st.PackError, match="18446744073709551616"):
            st.pack(path, tmp_path / "dataset")
    else:
        result = st.pack(path, tmp_path / "dataset")
        assert (result.images, result.rejected) == (3, 1)
        assert "18446744073709551616" in open(result.rejected_file).read()


def test_digits_that_a_number_would_not_keep_are_text(tmp_path):
    split = packed(csv(tmp_path, "zip,plain", ["01234,1", "90210,2", "00000,3", "12345,4"]), tmp_path)
    assert split.features["zip"] == "bytes" and split.features["plain"] == "int64"
    assert stored(split, "zip") == [b"01234", b"90210", b"00000", b"12345"]


def test_long_digits_are_text_among_integers(tmp_path):
    values = ["18446744073709551616", "1", "2", "3"]
    assert stored(packed(csv(tmp_path, "x", values), tmp_path), "x") == [value.encode() for value in values]


@pytest.mark.parametrize(
    "line, part",
    [
        ('{"path": "0.png", "x": NaN}', "NaN at column 24 is not JSON"),
        ('{"path": "0.png", "x": -Infinity}', "-Infinity at column"),
        ('{"path": "0.png", "x": 1, "x": 2}', "`x` occurs twice"),
        ('{"path": "0.png", "a/b": 1, "a": {"b": 2}}', "two values are named `a/b`"),
        ('{"path": "0.png", "a": {"b/c": 1, "b": {"c": 2}}}', "two values are named `a/b/c`"),
        ('{"path": "0.png", "b": [[1], [2]], "b/shape": 5}', "two values are named `b/shape`"),
    ],
)
def test_what_json_would_lose_is_named(line, part, tmp_path):
    images(tmp_path, 1)
    (tmp_path / "list.jsonl").write_text(line)
    with pytest.raises(st.PackError) as refused:
        st.pack(tmp_path / "list.jsonl", tmp_path / "dataset")
    assert part in "\n".join([str(refused.value), *map(str, getattr(refused.value, "__notes__", []))])


def test_two_columns_of_one_name_reject_their_sample(tmp_path):
    result = st.pack(tar(tmp_path, [{"a": {"b": 1}}, {"a": {"b": 1}, "a/b": 2}]), tmp_path / "dataset")
    assert (result.images, result.rejected) == (1, 1)
    assert "two values are named `a/b`" in open(result.rejected_file).read()


def test_typed_sources_map_by_type_and_not_by_value(tmp_path):
    pa = pytest.importorskip("pyarrow")
    types = {"d": pa.float64(), "u": pa.uint64(), "f": pa.float32(), "l": pa.list_(pa.float64()), "n": pa.list_(pa.list_(pa.float64()))}
    columns = {"d": [0.5, 1.0], "u": [1, 2], "f": [0.1, 0.2], "l": [[0.5], []], "n": [[[0.5, 1.0]], [[2.0, 3.0]]]}
    split = packed(parquet(tmp_path, columns, types), tmp_path)
    found = {name: split.features[name] for name in columns}
    assert found == {"d": "float64", "u": "uint64", "f": "float", "l": "float64", "n": "float64"}


def test_nulls_and_several_values(tmp_path):
    rows = [{"t": 1e300, "many": [1e300, 2**53]}, {"t": None, "many": []}, {"many": [0.1]}, {"t": -1e-300, "many": None}]
    split = packed(jsonl(tmp_path, rows), tmp_path)
    assert stored(split, "t") == [1e300, [], [], -1e-300]
    assert stored(split, "many") == [[1e300, 2.0**53], [], 0.1, []]
    assert split.columns["t"].tolist().count(None) == 2 and 1e300 in split.columns["t"].tolist()
    arrow = pytest.importorskip("pyarrow")
    column = split.columns.arrow("t")
    assert column.type == arrow.float64() and column.null_count == 2 and set(column.drop_null().to_pylist()) == {1e300, -1e-300}
    loader = st.Loader(split, 4, [st.Image([st.CenterCrop(8)]), "many"])
    batch = next(iter(loader))
    assert batch["many"].values.dtype == np.float64 and sorted(batch["many"].values.tolist()) == [0.1, 2.0**53, 1e300]


def test_the_index_lends_numbers_without_a_copy(tmp_path):
    split = packed(jsonl(tmp_path, [{"t": value} for value in WIDE]), tmp_path)
    column = split.columns["t"]
    assert not column.flags.owndata and not column.flags.writeable


@pytest.mark.parametrize("kind", ["jsonl", "tar"])
def test_a_later_split_takes_the_types_and_rejects_what_they_would_change(kind, tmp_path):
    packed(jsonl(tmp_path, [{"t": value} for value in WIDE]), tmp_path)
    (tmp_path / "more").mkdir()
    st.pack(source(kind, tmp_path / "more", "t", [0.5, 1]), tmp_path / "dataset", split="val")
    val = st.Dataset(tmp_path / "dataset").split("val")
    assert val.features["t"] == "float64" and stored(val, "t") == [0.5, 1.0]
    packed(jsonl(tmp_path, [{"t": 0.5}]), tmp_path / "narrow", split="train")
    (tmp_path / "wide").mkdir()
    result = st.pack(source(kind, tmp_path / "wide", "t", [0.25, 16777217.0, 3]), tmp_path / "narrow" / "dataset", split="val")
    assert (result.images, result.rejected) == (2, 1)
    assert "`t` is not float" in open(result.rejected_file).read()
    val = st.Dataset(tmp_path / "narrow" / "dataset").split("val")
    assert val.features["t"] == "float" and sorted(stored_any(val, "t")) == [0.25, 3.0]


@pytest.mark.parametrize("to", ["parquet", "webdataset"])
def test_exports_pack_to_the_same_values(to, tmp_path):
    rows = [{"t": t, "h": h, "f": 0.1234567 if n else 0.1, "l": [t, 1.5]} for n, (t, h) in enumerate(zip(WIDE, LARGE, strict=True))]
    split = packed(jsonl(tmp_path, rows), tmp_path, columns={"f": "float"})
    command("export", tmp_path / "dataset", tmp_path / "exported", "--to", to)
    st.pack(tmp_path / "exported", tmp_path / "again", split="train")
    again = st.Dataset(tmp_path / "again").split("train")
    for name, dtype in [("t", "float64"), ("h", "uint64"), ("f", "float"), ("l", "float64")]:
        assert (name, again.features[name]) == (name, dtype)
        assert stored(again, name) == stored(split, name)
    assert stored(again, "h") == LARGE and stored(again, "t") == WIDE


def test_commands_compare_and_show_numbers(tmp_path):
    rows = [{"t": t, "h": h} for t, h in zip(WIDE, LARGE, strict=True)]
    packed(jsonl(tmp_path, rows), tmp_path)
    dataset = str(tmp_path / "dataset")

    def listed(where):
        out = command("ls", dataset, "--where", where, "--column", "t", "--column", "h", "--json")
        return [(row["columns"]["t"], row["columns"]["h"]) for row in json.loads(out)["listed"]]

    assert listed("h=18446744073709551615") == [(16777217.0, 2**64 - 1)]
    assert sorted(listed("h<9223372036854775808")) == sorted([(1e300, 2**53 + 1), (-0.1234567, 0)])
    assert listed("t=1700000000.123") == [(1700000000.123, 2**63)]
    assert listed("t>1e299") == [(1e300, 2**53 + 1)]
    assert listed("t=1700000000") == []
    assert json.loads(command("verify", dataset, "--json"))["good"]
    shown = json.loads(command("show", dataset, "0", "--json"))["features"]
    assert shown["h"][0] in LARGE and shown["t"][0] in WIDE


def test_python_floats_of_a_writer_are_never_rounded_in_silence(tmp_path):
    with st.Writer(tmp_path / "dataset") as writer:
        writer.write({"key": "0", "image": png(), "x": 0.5, "n": 1, "a": [0.1, 0.2]})
        with pytest.raises(st.OptionError, match=r'`x`: float, .*1700000000\.123.*"float64"'):
            writer.write({"key": "1", "image": png(), "x": 1700000000.123})
        with pytest.raises(st.OptionError, match="16777217"):
            writer.write({"key": "2", "image": png(), "x": 16777217})
        with pytest.raises(st.OptionError, match="9223372036854775808 does not fit into int64"):
            writer.write({"key": "3", "image": png(), "n": 2**63})
        with pytest.raises(st.OptionError, match="int64"):
            writer.write({"key": "4", "image": png(), "n": 0.5})
        with pytest.raises(st.OptionError, match="`a`"):
            writer.write({"key": "5", "image": png(), "a": [0.1, 1e300]})
        with pytest.raises(st.OptionError, match="no type holds all"):
            writer.write({"key": "6", "image": png(), "a": [-1, 2**64 - 1]})
    assert st.Dataset(tmp_path / "dataset").split("train").features["x"] == "float"
    with st.Writer(tmp_path / "wide") as writer:
        writer.write({"key": "0", "image": png(), "x": 1700000000.123, "y": np.float32(0.1), "z": np.float64(0.5), "h": 2**63})
    features = st.Dataset(tmp_path / "wide").split("train").features
    assert [features[name] for name in "xyzh"] == ["float64", "float", "float64", "uint64"]
    with st.Writer(tmp_path / "rounded", features={"x": "float"}) as writer:
        writer.write({"key": "0", "image": png(), "x": 1700000000.123})
    assert st.Dataset(tmp_path / "rounded").split("train")[0]["features"]["x"] == 1.7e9


def test_splits_of_other_number_types_do_not_meet(tmp_path):
    splits = []
    for name, values in (("a", [0.5, 1.5]), ("b", [1e300, 1.5])):
        (tmp_path / name).mkdir()
        st.pack(jsonl(tmp_path / name, [{"x": value} for value in values]), tmp_path / f"{name}.dataset")
        splits.append(st.Dataset(tmp_path / f"{name}.dataset").split("train"))
    with pytest.raises(st.OptionError, match="float64"):
        st.Loader(splits, 2, [st.Image(), "x"])


def test_a_column_is_not_lost_behind_a_member_of_the_batch(tmp_path):
    objects = {"bbox": [[1, 1, 3, 3]]}
    columns = {"id": 7, "valid": 0, "image": 1, "boxes": 2, "mask": 3, "host": "a.example", "labels": 4}
    (tmp_path / "mask.png").write_bytes(png())
    rows = [{"shape": "mask.png", "objects": objects, **columns}]
    split = packed(jsonl(tmp_path, rows), tmp_path, columns={"shape": "file", "mask": "int64"}, kind=None)
    image, objects = st.Image([st.CenterCrop(8)]), st.Objects(properties=[])
    others = {"boxes": [objects], "labels": [objects], "mask": [st.Mask("shape")]}
    for name in ("id", "valid", "image", "boxes", "labels", "mask"):
        with pytest.raises(st.OptionError, match=f'by the name "{name}".*another name'):
            st.Loader(split, 1, [image, name, *others.get(name, [])])
    # Names that this batch does not use are those of columns.
    batch = next(iter(st.Loader(split, 1, [image, "host", "boxes", "mask"])))
    assert (batch["host"], batch["boxes"].tolist(), batch["mask"].tolist()) == ([b"a.example"], [2], [3])


def test_no_member_of_a_batch_hides_another(tmp_path):
    grey = io.BytesIO()
    Image.new("L", (8, 8), 3).save(grey, "PNG")
    others = dict.fromkeys(("after", "frames", "mask"), grey.getvalue())
    features = {"volume": st.Array(), "after": "bytes", "frames": "bytes", "mask": "bytes", "tokens": "int64", "length": "int64"}
    with st.Writer(tmp_path / "d", "train", labels=False, features=features) as writer:
        for number in range(4):
            numbers = {"volume": np.zeros((2, 2)), "tokens": [1, 2], "length": 2}
            writer.write({"key": f"{number}", "image": png(), **others, **numbers})
    split = st.Dataset(tmp_path / "d").split("train")
    steps = [st.ResizeTo(8)]
    image, tokens = st.Image(steps), st.Tokens("length", 8, {"tokens": 0})
    for fields, name in (
        ([st.Image(), image], "image"),
        ([image, st.Arrays("volume"), "volume"], "volume"),
        ([image, st.FurtherImage("after"), "after"], "after"),
        ([image, st.FurtherImage("mask"), st.Mask("after")], "mask"),
        ([st.Clip("frames", steps, 1), "frames"], "frames"),
    ):
        with pytest.raises(st.OptionError, match=f'by the name "{name}".*another name'):
            st.Loader(split, 1, fields)
    # Columns that packed rows have already may be listed; several masks have the names of their features.
    assert next(iter(st.Loader(split, 1, [tokens, "tokens"])))["tokens"].shape == (1, 8)
    batch = next(iter(st.Loader(split, 1, [image, st.Mask("mask"), st.Mask("after"), st.FurtherImage("frames")])))
    assert {"image", "mask", "after", "frames"} < set(batch)


def test_boxes_and_areas_stay_float32(tmp_path):
    objects = {"bbox": [[1.123456789, 2.0, 3.0, 4.0]], "area": [12.123456789], "score": [0.123456789]}
    split = packed(jsonl(tmp_path, [{"objects": objects}]), tmp_path)
    names = ["image/object/bbox", "image/object/area", "image/object/score"]
    assert [split.features[name] for name in names] == ["float", "float", "float64"]


def test_a_missing_text_is_empty(tmp_path):
    split = packed(csv(tmp_path, "caption", ["owl", "", "cat", ""]), tmp_path)
    batch = next(iter(st.Loader(split, 4, [st.Image([st.CenterCrop(8)]), "caption"], bad_samples="error")))
    assert sorted(batch["caption"]) == [b"", b"", b"cat", b"owl"]
    (tmp_path / "more").mkdir()
    long = packed(jsonl(tmp_path / "more", [{"caption": "x" * 300}, {}, {"caption": None}]), tmp_path / "more")
    batch = next(iter(st.Loader(long, 3, [st.Image([st.CenterCrop(8)]), "caption"], bad_samples="error")))
    assert sorted(map(len, batch["caption"])) == [0, 0, 300]


@pytest.mark.parametrize("first", [0, 3])
def test_several_texts_are_refused_when_the_loader_is_made(first, tmp_path):
    rows = [{"labels": ["a"]} for _ in range(8)]
    rows[first]["labels"] = ["a", "b"]
    split = packed(jsonl(tmp_path, rows), tmp_path)
    with pytest.raises(st.OptionError, match=rf"`labels` holds 2 values in the record `{first}\.png`"):
        st.Loader(split, 4, [st.Image([st.CenterCrop(8)]), "labels"])


def test_lengths_may_be_uint64(tmp_path):
    with st.Writer(tmp_path / "dataset", images=False, features={"tokens": "int64", "length": "uint64"}) as writer:
        for number in range(24):
            writer.write({"key": f"{number}", "tokens": np.arange(number % 8 + 1), "length": number % 8 + 1})
    split = st.Dataset(tmp_path / "dataset").split("train")
    buckets = st.LengthBuckets("length", [4, 8], max_tokens=16, padded={"tokens": -1})
    shapes = {batch["tokens"].shape[1] for batch in st.Loader(split, 4, ["tokens", "length"], buckets=buckets)}
    assert shapes == {4, 8}
