"""`shardtool.ray.ColumnSink`: columns that a cluster computes, in one change, whatever attempts of tasks fail."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest

import shardtool as st

#: The workers reach the server.
IN_STORES = True
ROWS = 40


@pytest.fixture(params=["folder", "store"])
def dataset(request, tmp_path):
    """The path or URL of a dataset of two splits, in which a record is deleted."""
    folder = str(tmp_path) if request.param == "folder" else f"s3://bucket/{tmp_path.name}"
    for split, numbers in (("train", range(ROWS)), ("test", range(ROWS, ROWS + 4))):
        with st.Writer(tmp_path / "set", split, shard_size=2000) as writer:
            for number in numbers:
                writer.write({"key": f"k{number:03}", "image": np.full((8, 8, 3), number, np.uint8)})
    st.Dataset(tmp_path / "set").delete(keys=["k003"])
    if request.param == "store":
        shutil.copytree(tmp_path / "set", request.getfixturevalue("bucket") / tmp_path.name / "set")
    return f"{folder}/set"


def number_of(key):
    return int(key[1:])


def described(row):
    """What a model says of a record."""
    number = number_of(row["key"])
    return {
        "key": row["key"],
        "caption": f"photograph {number}",
        "mean": float(row["image"].mean()),
        "embedding": np.arange(4, dtype=np.float32) + number,
        "tags": ["even"] * (number % 3),
    }


def check(dataset, seen=None):
    """Compares all records with what was computed."""
    for split in dataset.splits:
        for record in dataset[split]:
            number, features = number_of(record["key"]), record["features"]
            assert features["caption"] == f"photograph {number}".encode()
            assert features["mean"] == float(number) and features["embedding"] == [number + value for value in range(4)]
            tags = features.get("tags", [])
            assert (tags if isinstance(tags, list) else [tags]) == [b"even"] * (number % 3)


def test_columns_of_a_model_over_the_cluster(cluster, dataset):
    from shardtool.ray import ColumnSink, read

    rows = [read(dataset, split=split, images="decoded") for split in ("train", "test")]
    sink = ColumnSink(dataset, message="described")
    rows[0].union(rows[1]).map(described).write_datasink(sink)
    changed = st.Dataset(dataset)
    # One version, after that of the deletion.
    assert changed.version == sink.result.version == 3 and changed.log()[0]["message"] == "described"
    assert sum(len(changed[split]) for split in changed.splits) == ROWS + 3
    check(changed)
    assert st.verify(dataset).good
    # Other values, of some records.
    few = cluster.data.from_items([{"key": "k001", "mean": -1.0}, {"key": "k041", "mean": -2.0}])
    few.write_datasink(ColumnSink(dataset, replace=True, missing="keep"))
    means = {record["key"]: record["features"]["mean"] for split in changed.splits for record in st.Dataset(dataset)[split]}
    assert means["k001"] == -1.0 and means["k041"] == -2.0 and means["k002"] == 2.0


def test_failed_attempts_change_nothing_twice(cluster, dataset, tmp_path):
    from shardtool.ray import ColumnSink, read

    class Failing(ColumnSink):
        def write(self, blocks, ctx):
            done = super().write(blocks, ctx)
            mark = pathlib.Path(tmp_path, f"failed-{ctx.task_idx}")
            if not mark.exists():
                mark.touch()
                raise RuntimeError("injected")
            return done

    rows = read(dataset, split="train", images="decoded").repartition(5).map(described)
    rows.write_datasink(Failing(dataset, split="train"), ray_remote_args={"retry_exceptions": True})
    assert len(list(tmp_path.glob("failed-*"))) == 5
    changed = st.Dataset(dataset)
    assert changed.version == 3
    for record in changed["train"]:
        assert record["features"]["caption"] == f"photograph {number_of(record['key'])}".encode()

    class Refusing(ColumnSink):
        def write(self, blocks, ctx):
            raise RuntimeError("injected")

    with pytest.raises(Exception, match="injected"):
        rows.write_datasink(Refusing(dataset, split="train", replace=True))
    assert st.Dataset(dataset).version == 3


def test_what_does_not_belong_is_refused_by_name(cluster, dataset):
    from shardtool.ray import ColumnSink

    def blocks(*rows):
        first, *others = (cluster.data.from_items(block, override_num_blocks=1) for block in rows)
        return first.union(*others) if others else first

    def refused(rows, match, *more, **options):
        with pytest.raises(Exception, match=match):
            blocks(rows, *more).write_datasink(ColumnSink(dataset, **options))
        assert st.Dataset(dataset).version == 2

    all_rows = [{"key": f"k{number:03}", "score": number} for number in range(ROWS + 4) if number != 3]
    refused(all_rows[:-1], "1 record has no row")
    refused([*all_rows, {"key": "k003", "score": 1}], "k003")
    refused([*all_rows, all_rows[0]], "occurs twice")
    refused([{"name": "k001", "score": 1}], "no column 'key' of keys")
    refused(all_rows, "no column 'other'", names=["other"])
    refused([{**row, "matrix": np.zeros((2, 2))} for row in all_rows], "more than one dimension")
    halves = [{**row, "score": row["score"] / 2} for row in all_rows[20:]]
    refused(all_rows[:20], "of type double and int64 in different blocks: declare one", halves)
    blocks(all_rows[:20], halves).write_datasink(ColumnSink(dataset, columns={"score": "float64"}))
    changed = st.Dataset(dataset)
    assert [record["features"]["score"] for record in changed["test"]] == [row["score"] for row in halves[-4:]]
