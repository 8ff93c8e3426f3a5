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
