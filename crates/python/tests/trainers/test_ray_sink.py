"""`shardtool.ray.Sink`: rows of Ray Data in a split, each once, whatever attempts of tasks fail."""

from __future__ import annotations

import collections
import hashlib
import json
import os
import pathlib
import random
import signal
import threading
import subprocess
import sys
import time
import types

import numpy as np
import pytest

import shardtool as st

#: Failures that are injected. `SHARDTOOL_RAY_FAILURES` sets another number.
FAILURES = int(os.environ.get("SHARDTOOL_RAY_FAILURES", "12"))
#: Tasks of a write: most of the time passes while Ray starts failed ones again.
BLOCKS = 24 if FAILURES > 100 else 12
#: Where an attempt fails. The last one is after its shard is complete, before Ray has the result.
STAGES = ("begin", "rows", "finish", "end")
#: The same with a process that is killed, one failure in ten: Ray takes seconds to start another.
KILLED = ("kill", "timer", "kill at the end")
#: The workers reach the server.
IN_STORES = True
CLASSES = ["a", "b", "c"]
ROWS = 120


@pytest.fixture(params=["folder", "store"])
def place(request, tmp_path):
    """A folder in which files are looked at, and its path or URL, in which datasets are written."""
    if request.param == "folder":
        return tmp_path, str(tmp_path)
    return request.getfixturevalue("bucket") / tmp_path.name, f"s3://bucket/{tmp_path.name}"


def row(number):
    """A row of each kind of column. The label of some is not a class."""
    pixels = np.random.default_rng(number).integers(0, 255, (12, 16, 3), np.uint8)
    label = "unknown" if number % 40 == 13 else CLASSES[number % 3]
    return {
        "key": f"k{number:05}",
        "image": pixels,
        "label": label,
        "weight": number / 8,
        "count": None if number % 7 == 3 else number,
        "caption": "word " * (number % 5),
        "points": [float(number)] * (number % 4),
        "nested": [[number], [1, 2]],
        "matrix": np.full((2, 3), number, np.float32),
        "more": {"camera": "x", "iso": number},
    }


def stored(folder, split="train"):
    """Returns the multiset of the checksums of a split's rows."""
    records = st.Dataset(folder).split(split)
    found = collections.Counter()
    for record in records[0 : len(records)]:
        content = [record["key"], hashlib.sha256(record["image"]).hexdigest(), record["label"]]
        features = {name: repr(value) for name, value in record["features"].items()}
        found[hashlib.sha256(json.dumps([content, features], sort_keys=True).encode()).hexdigest()] += 1
    return found


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*"))


def expected_files(folder, *more):
    """Returns the files of a dataset: what its manifest names, and nothing else."""
    manifest = json.loads((pathlib.Path(folder) / "dataset.json").read_text())
    shards = [shard["file"] for split in manifest["splits"] for shard in split["shards"]]
    return sorted(["dataset.json", "_index", *more, *shards, *(f"_index/{shard}.index" for shard in shards)])


def block(rows):
    """Returns a block as Ray makes it from rows."""
    from ray.data._internal.delegating_block_builder import DelegatingBlockBuilder

    builder = DelegatingBlockBuilder()
    for each in rows:
        builder.add(each)
    return builder.build()


def blocks(numbers):
    return [block(row(number) for number in part) for part in numbers]


def context(task):
    return types.SimpleNamespace(task_idx=task)


def attempts(sink, task, numbers):
    return sink.write(iter(blocks(numbers)), context(task))


def test_one_attempt_of_each_task_is_committed_in_task_order(place, tmp_path):
    pytest.importorskip("ray")
    folder, base = place
    from shardtool.ray import Sink

    sink = Sink(f"{base}/set", classes=CLASSES)
    sink.on_write_start("any", argument="of any version")
    late, second = attempts(sink, 1, [range(20, 40)]), attempts(sink, 0, [range(10), range(10, 20)])
    again = attempts(sink, 1, [range(20, 40)])
    assert attempts(sink, 2, []) is None
    assert late["shard"]["crc32c"] == again["shard"]["crc32c"] and late["shard"]["file"] != again["shard"]["file"]
    sink.on_write_complete(types.SimpleNamespace(write_returns=[again, None, second], num_rows=40))
    assert files(folder / "set") == expected_files(folder / "set", "rejected-train.jsonl")
    assert (sink.result.images, sink.result.rejected, sink.result.shards) == (39, 1, 2)
    assert sink.result.rejected_file == f"{base}/set/rejected-train.jsonl"
    rejected = json.loads((folder / "set" / "rejected-train.jsonl").read_text())
    assert rejected["input"] == "k00013" and "`unknown` is not among the 3 classes" in rejected["reason"]
    split = st.Dataset(f"{base}/set").split("train")
    assert [record["key"] for record in split[0:39]] == [f"k{number:05}" for number in range(40) if number != 13]
    found, number = split[25], 26
    assert found["label"] == number % 3 and found["features"]["weight"] == number / 8
    assert found["features"]["nested"] == [number, 1, 2] and found["features"]["nested/lengths"] == [1, 2]
    assert found["features"]["matrix"] == [number] * 6 and found["features"]["matrix/shape"] == [2, 3]
    assert found["features"]["more/iso"] == number and found["features"]["more/camera"] == b"x"
    assert found["features"]["points"] == [number] * 2 and split[3]["features"]["count"] == []
    assert st.verify(f"{base}/set", decode=True).good
    # The split is that of a `Writer` with the same samples, record by record.
    with st.Writer(tmp_path / "one", classes=CLASSES, features=split_features(split)) as writer:
        for number in range(40):
            if number != 13:
                values = row(number)
                more = values.pop("more")
                writer.write({**values, **{f"more/{name}": value for name, value in more.items()}})
    assert stored(tmp_path / "one") == stored(f"{base}/set")


def split_features(split):
    own = ("image/class/label", "image/class/text")
    return {name: kind for name, kind in split.features.items() if not name.startswith("image/") and name not in own}


def test_a_failed_write_leaves_nothing_that_clean_does_not_remove(place):
    pytest.importorskip("ray")
    folder, base = place
    from shardtool.ray import Sink

    sink = Sink(f"{base}/set", classes=CLASSES)
    sink.on_write_start()
    attempts(sink, 0, [range(10)])
    sink.on_write_failed(RuntimeError("a task failed"))
    assert files(folder / "set") in ([], ["_index"])
    # An attempt that ends after that.
    attempts(sink, 1, [range(10, 20)])
    assert len(files(folder / "set")) > 1
    clean(f"{base}/set")
    assert files(folder / "set") in ([], ["_index"])
    with pytest.raises(st.errors.PackError, match="has a split"):
        done = Sink(f"{base}/set", "train", classes=CLASSES)
        done.on_write_complete([attempts(done, 0, [range(3)])])
        Sink(f"{base}/set", "train").on_write_start()


def test_a_probe_that_a_killed_task_left_in_a_store_is_removed(bucket):
    pytest.importorskip("ray")
    from shardtool.ray import Sink

    folder = bucket / "killed" / "set"
    sink = Sink("s3://bucket/killed/set", classes=CLASSES)
    sink.on_write_start()
    shard = attempts(sink, 0, [range(10)])
    # With it, a task finds out what the store does with conditions; the task was killed.
    (folder / ".pack-train.lock.4368732196f0c7a4.joined.d2b35b5b2be64c93.probe").write_text("3")
    sink.on_write_complete([shard])
    assert files(folder) == expected_files(folder)


def test_wrong_rows_are_refused_by_name(tmp_path):
    pytest.importorskip("ray")
    from shardtool.ray import Sink

    def write(rows, tasks=1, **options):
        sink = Sink(tmp_path / f"set{len(list(tmp_path.iterdir()))}", **options)
        sink.on_write_start()
        try:
            results = [sink.write(iter([block(part)]), context(task)) for task, part in enumerate(rows)]
            sink.on_write_complete(results)
        except Exception as error:
            sink.on_write_failed(error)
            raise
        return sink.result

    with pytest.raises(st.errors.PackError, match="key `x` occurs twice"):
        write([[{"key": "x", "n": 1}], [{"key": "x", "n": 2}]])
    with pytest.raises(st.errors.OptionError, match="is int64 in task 0, but float64 in task 1"):
        write([[{"n": 1}], [{"n": 1.5}]])
    with pytest.raises(st.errors.OptionError, match="is text, 'a': give the names of all classes"):
        write([[{"label": "a"}]])
    with pytest.raises(st.errors.OptionError, match="labels, but not"):
        write([[{"label": 1}], [{"n": 1}]])
    with pytest.raises(st.errors.PackError, match="is not among"):
        write([[{"label": "x"}]], classes=CLASSES, on_error="fail")
    # Repeated within a task: the second row is rejected. Without keys, rows have numbers.
    assert write([[{"key": "x", "n": 1}, {"key": "x", "n": 2}]]).rejected == 1
    assert write([[{"n": 1}], [{"n": 1.5}]], features={"n": "float"}).images == 2


def failing(folder, failures, seed):
    """Returns a sink whose attempts fail at stages drawn from a seed, as many as `failures`."""
    from shardtool.ray import Sink

    class Failing(Sink):
        """Counts the failures of all tasks in a file for each."""

        def write(self, blocks, ctx):
            task = ctx.task_idx
            number = sum(1 for _ in pathlib.Path(folder).glob(f"{task}-*"))
            draws = random.Random(f"{seed} {task} {number}")
            if number >= failures[task % len(failures)]:
                return super().write(blocks, ctx)
            stage = draws.choice(KILLED if draws.random() < 0.1 else STAGES)
            (pathlib.Path(folder) / f"{task}-{number}").write_text(stage)
            die = stage in KILLED

            def fail():
                if die:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(f"injected: {stage}")

            if stage == "begin":
                fail()
            if stage == "timer":
                threading.Thread(target=lambda: (time.sleep(draws.random() * 0.03), fail())).start()
            if stage in ("rows", "kill"):
                after = draws.randrange(3)

                def some(blocks=blocks):
                    for at, block in enumerate(blocks):
                        if at == after:
                            fail()
                        yield block
                    fail()

                return super().write(some(), ctx)
            if stage == "finish":
                from shardtool.ray import sink as module

                before = module._Task.finish

                def finish(task):
                    module._Task.finish = before
                    fail()

                module._Task.finish = finish
            super().write(blocks, ctx)
            time.sleep(0.05 if stage == "timer" else 0)
            fail()

    return Failing


@pytest.mark.campaign
def test_failed_attempts_neither_lose_nor_repeat_rows(cluster, place, tmp_path):
    import ray

    folder, base = place

    def dataset(numbers):
        return ray.data.range(numbers, override_num_blocks=BLOCKS).map(lambda found: row(int(found["id"])))

    from shardtool.ray import Sink

    whole = Sink(f"{base}/whole", classes=CLASSES)
    dataset(ROWS).write_datasink(whole)
    assert (whole.result.images, whole.result.rejected) == (ROWS - 3, 3)
    rows = stored(f"{base}/whole")
    assert sum(rows.values()) == ROWS - 3 and set(rows.values()) == {1}
    failed, stages, writes = 0, collections.Counter(), 0
    remote = {"max_retries": -1, "retry_exceptions": True}
    while failed < FAILURES:
        seen = tmp_path / f"seen{writes}"
        seen.mkdir()
        draws = random.Random(writes)
        failures = [draws.randrange(4) for _ in range(BLOCKS)]
        sink = failing(str(seen), failures, writes)(f"{base}/set{writes}", classes=CLASSES)
        dataset(ROWS).write_datasink(sink, ray_remote_args=remote)
        assert (sink.result.images, sink.result.rejected) == (ROWS - 3, 3)
        assert stored(f"{base}/set{writes}") == rows
        left = set(files(folder / f"set{writes}")) - set(expected_files(folder / f"set{writes}"))
        assert left == {"rejected-train.jsonl"}, left
        assert st.verify(f"{base}/set{writes}").good
        found = [path.read_text() for path in seen.iterdir()]
        failed, writes = failed + len(found), writes + 1
        stages.update(found)
    print(f"{failed} failures in {writes} writes: 0 rows lost or repeated, 0 files left ({dict(stages)})")
    # A task that fails for good ends the write, and leaves nothing.
    seen = tmp_path / "seen"
    seen.mkdir()
    sink = failing(str(seen), [10**6], 7)(f"{base}/failed", classes=CLASSES)
    with pytest.raises(Exception):
        dataset(ROWS).write_datasink(sink, ray_remote_args={"max_retries": 0})
    clean(f"{base}/failed")
    assert files(folder / "failed") in ([], ["_index"])


def clean(folder):
    subprocess.run([sys.executable, "-m", "shardtool", "clean", str(folder)], check=True, capture_output=True)


@pytest.mark.campaign
def test_rows_that_were_read_are_written_again(cluster, dataset, place):
    """A dataset goes through Ray Data, and is the same afterwards."""
    import shardtool.ray

    _, base = place
    rows = shardtool.ray.read(dataset, override_num_blocks=2)
    sink = shardtool.ray.Sink(f"{base}/set", classes=st.Dataset(dataset).classes)
    rows.write_datasink(sink)
    assert stored(f"{base}/set") == stored(dataset)
    assert shardtool.ray.verify(f"{base}/set", decode=True) == st.verify(f"{base}/set", decode=True)


@pytest.mark.campaign
def test_snippets_of_the_cluster_page(cluster, photos, tmp_path, monkeypatch, capsys):
    from test_docs import DOCS, SNIPPET

    (tmp_path / "photos").symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    snippets = [code for needed, code in SNIPPET.findall((DOCS / "cluster.md").read_text()) if needed == "ray"]
    assert len(snippets) == 5
    names = {}
    for code in snippets:
        exec(compile(code, str(DOCS / "cluster.md"), "exec"), names)
    assert "105 0" in capsys.readouterr().out
    assert 0 < len(st.Dataset("shared").split("small")) < 105
