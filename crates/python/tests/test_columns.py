"""Columns of the index: numbers with nulls, byte strings, and the same memory in numpy and pyarrow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shardtool as st

pa = pytest.importorskip("pyarrow")

ROWS = [
    {"caption": "a red car", "score": 0.5, "count": 3},
    {"caption": None, "score": None, "count": 4},
    {"caption": "", "score": -2.0, "count": None},
    {"caption": "é" * 100, "score": 1e30, "count": -(2**63)},
]
KINDS = {"caption": "bytes", "score": "float", "count": "int64"}


def write(folder: Path, rows: list, shard_size: int | None = None) -> st.Split:
    with st.Writer(folder, "train", features=KINDS, images=False, labels=False, shard_size=shard_size) as writer:
        for number, row in enumerate(rows):
            writer.write({"key": str(number), **{name: value for name, value in row.items() if value is not None}})
    return st.Dataset(folder)["train"]


@pytest.fixture
def split(tmp_path: Path) -> st.Split:
    return write(tmp_path / "data", ROWS)


def expected(name: str) -> list:
    values = [row[name] for row in ROWS]
    return [value.encode() if isinstance(value, str) else value for value in values]


def test_missing_numbers_are_masked_and_missing_byte_strings_are_none(split: st.Split) -> None:
    assert split.columns["caption"].tolist() == expected("caption")
    counts = split.columns["count"]
    assert counts.dtype == np.int64 and counts.tolist() == expected("count")
    scores = split.columns["score"]
    assert scores.dtype == np.float32
    assert scores.tolist() == [None if value is None else float(np.float32(value)) for value in expected("score")]


def addresses(array: pa.ChunkedArray) -> list:
    return [None if buffer is None else buffer.address for chunk in array.chunks for buffer in chunk.buffers()]


@pytest.mark.parametrize("name", ["caption", "score", "count"])
def test_pyarrow_and_numpy_see_the_mapped_index(split: st.Split, name: str) -> None:
    array = split.columns.arrow(name)
    array.validate(full=True)
    want = [None if value is None else float(np.float32(value)) if name == "score" else value for value in expected(name)]
    assert array.to_pylist() == want
    assert array.null_count == 1
    # The same addresses each time, all inside the mapping of the index.
    assert addresses(array) == addresses(split.columns.arrow(name))
    index = next(iter(split.shards)).path
    index = index.parent / "_index" / f"{index.name}.index"
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    ranges = [[int(part, 16) for part in line[0].split("-")] for line in maps if line[-1] == str(index.resolve())]
    assert ranges, "the index is mapped"
    assert all(any(low <= address < high for low, high in ranges) for address in addresses(array) if address)


def test_numbers_without_nulls_are_views_of_the_index(tmp_path: Path) -> None:
    split = write(tmp_path / "data", [{**row, "count": 7} for row in ROWS])
    counts = split.columns["count"]
    assert type(counts) is np.ndarray and not counts.flags.owndata and not counts.flags.writeable
    assert counts.ctypes.data == split.columns.arrow("count").chunks[0].buffers()[1].address


def test_several_shards_are_joined(tmp_path: Path) -> None:
    # Each shard has one record with all values, and one without.
    rows = [{"caption": f"c{i}", "score": i, "count": i} if i % 2 else {"caption": None, "score": i, "count": 1} for i in range(8)]
    split = write(tmp_path / "data", rows, shard_size=130)
    assert len(split.shards) > 1
    try:
        captions = split.columns["caption"].tolist()
    except st.ColumnError as error:
        # A shard whose records all lack the caption has no such column: its values are unknown, not null.
        assert "train-0000" in str(error)
    else:
        assert captions == [None if i % 2 == 0 else f"c{i}".encode() for i in range(8)]
    assert split.columns["score"].tolist() == [float(i) for i in range(8)]
    assert split.columns.arrow("score").num_chunks == len(split.shards)


def test_a_feature_with_several_values_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with st.Writer(folder, "train", features={"tags": "bytes"}, images=False, labels=False) as writer:
        writer.write({"key": "a", "tags": ["x", "y"]})
    with pytest.raises(st.ColumnError, match="no column `tags`"):
        st.Dataset(folder)["train"].columns["tags"]


def test_single_values_are_read_by_their_ranges(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    frames = [bytes([i]) * 1000 for i in range(5)]
    with st.Writer(folder, "train", features={"frames": "bytes"}, images=False, labels=False) as writer:
        writer.write({"key": "a", "frames": frames})
    split = st.Dataset(folder)["train"]
    assert split.values(0, "frames", [3, 0]) == [frames[3], frames[0]]
    assert split.values(0, "frames") == frames
    with pytest.raises(st.ColumnError, match="frames"):
        split.values(0, "frames", [5])
    # Damage of one value costs this value only.
    shard = Path(split.shards[0].path)
    data = bytearray(shard.read_bytes())
    data[data.index(frames[2]) + 500] ^= 1
    shard.write_bytes(data)
    damaged = st.Dataset(folder)["train"]
    assert damaged.values(0, "frames", [1, 3]) == [frames[1], frames[3]]
    with pytest.raises(st.DamageError) as caught:
        damaged.values(0, "frames", [2])
    assert caught.value.name == "DataCrc"


def test_all_columns_are_a_table_that_arrow_reads(split: st.Split) -> None:
    table = split.columns.table()
    table.validate(full=True)
    assert table.column_names == sorted(KINDS) == split.columns.keys()
    assert table["caption"].type == pa.large_string() and table["caption"].to_pylist() == [row["caption"] for row in ROWS]
    for name in ("count", "score"):
        assert table[name].to_pylist() == split.columns.arrow(name).to_pylist()
    # Without a copy, also of texts.
    assert all(addresses(table[name]) == addresses(split.columns.arrow(name)) for name in KINDS)
    # As programs read it that know nothing of the module.
    reader = pa.RecordBatchReader.from_stream(split.columns)
    assert reader.read_all() == table
    assert split.columns.table(["score"]).column_names == ["score"]
    with pytest.raises(st.ColumnError, match="no column `scores`"):
        split.columns.table(["scores"])


def test_a_table_has_bytes_where_they_are_no_text_and_names_what_a_shard_lacks(tmp_path: Path) -> None:
    kinds = {"code": "bytes", "tags": "int64"}
    with st.Writer(tmp_path / "data", "train", features=kinds, images=False, labels=False, shard_size=130) as writer:
        for number in range(8):
            writer.write({"key": str(number), "code": b"\xff" if number == 5 else b"a", "tags": [1, 2] if number == 5 else 1})
    columns = st.Dataset(tmp_path / "data")["train"].columns
    assert columns.table(["code"])["code"].to_pylist() == [b"\xff" if number == 5 else b"a" for number in range(8)]
    with pytest.raises(st.ColumnError, match="train-0000.*no column `tags`, since a record has several values"):
        columns.table()


def test_duckdb_and_polars_read_the_columns(tmp_path: Path) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    with st.Writer(tmp_path / "data", "train", features={"group": "bytes", "x": "float64"}, images=False, labels=False, shard_size=4000) as writer:
        for number in range(1000):
            x = {} if number % 11 == 0 else {"x": number / 3}
            writer.write({"key": f"{number}", "group": f"g{number % 7}", **x})
    split = st.Dataset(tmp_path / "data")["train"]
    assert len(split.shards) > 3
    columns = split.columns
    wanted = {f"g{group}": [n / 3 for n in range(group, 1000, 7) if n % 11] for group in range(7)}
    found = duckdb.sql('select "group", count(*), count(x), max(x) from columns group by "group" order by "group"').fetchall()
    assert found == [(name, len(range(int(name[1:]), 1000, 7)), len(values), max(values)) for name, values in sorted(wanted.items())]
    frame = polars.DataFrame(columns)
    assert frame.height == 1000 and frame["x"].null_count() == len(range(0, 1000, 11))
    high = frame.with_row_index("id").filter((polars.col("group") == "g3") & (polars.col("x") > 300))["id"].to_list()
    assert high == [n for n in range(3, 1000, 7) if n % 11 and n / 3 > 300]
    batch = next(iter(st.Loader(split, len(high), ["x"], source=st.Subset(high), order=st.Sequential())))
    assert batch["x"].values.tolist() == [n / 3 for n in high]
