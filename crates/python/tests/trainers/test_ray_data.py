"""Ray: a pack whose tasks are killed, and datasets in Ray Data."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import threading

import numpy as np
import pytest
from PIL import Image

import shardtool as st

#: Workers that are killed. `SHARDTOOL_RAY_KILLS` sets another number.
KILLS = int(os.environ.get("SHARDTOOL_RAY_KILLS", "4"))


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Photographs of two classes with a weight, and a file that is not an image."""
    folder = tmp_path_factory.mktemp("photographs")
    numbers, lines = np.random.default_rng(1), ["path,label,weight"]
    for number in range(60):
        name = f"{number:02}.jpg"
        Image.fromarray(numbers.integers(0, 255, (36, 48, 3), np.uint8)).save(folder / name)
        lines.append(f"{name},{'ab'[number % 2]},{number / 4}")
    (folder / "broken.jpg").write_bytes(b"not a photograph")
    lines.append("broken.jpg,a,0")
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    return folder / "list.csv"


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file()}


def workers():
    """Returns the ids of the processes that run tasks of a pack."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(b"ray::shardtool.pack"):
                found.append(int(process.name))
        except OSError:
            pass
    return found


@pytest.mark.campaign
def test_a_pack_whose_workers_are_killed_is_that_of_one_machine(cluster, photographs, tmp_path):
    from shardtool import ray as st_ray

    whole = st.pack(photographs, tmp_path / "one", shards=30)
    killed, packs = 0, 0
    while killed < KILLS:
        done, times = threading.Event(), random.Random(packs)

        def kill():
            nonlocal killed
            mine = 0
            while not done.wait(times.random() * 0.15) and mine < 10 and killed < KILLS:
                running = workers()
                for process in times.sample(running, k=min(1, len(running))):
                    try:
                        os.kill(process, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
                    killed, mine = killed + 1, mine + 1

        killer = threading.Thread(target=kill)
        killer.start()
        packed = st_ray.pack(photographs, tmp_path / f"many{packs}", shards=30, parts=10, max_retries=-1)
        done.set()
        killer.join()
        assert (packed.images, packed.rejected, packed.fingerprint) == (60, 1, whole.fingerprint)
        assert files(tmp_path / f"many{packs}") == files(tmp_path / "one")
        packs += 1
        assert packs < 20 * KILLS
    print(f"{killed} workers killed in {packs} packs: 0 differences")
    assert st_ray.pack(photographs, tmp_path / "many0", shards=30).already_complete
    with pytest.raises(Exception, match="seed"):
        st_ray.pack(photographs, tmp_path / "many0", shards=30, seed=5)


@pytest.mark.campaign
def test_rows_are_those_of_the_dataset(cluster, photographs, tmp_path):
    from shardtool import ray as st_ray

    st.pack(photographs, tmp_path / "set", shards=7)
    split = st.Dataset(tmp_path / "set").split("train")
    dataset = st_ray.read(tmp_path / "set", columns=["weight"], override_num_blocks=3)
    rows = {row["key"]: row for row in dataset.take_all()}
    assert len(rows) == dataset.count() == len(split)
    for record in split[0 : len(split)]:
        row = rows[record["key"]]
        assert row["image"] == record["image"] and row["label"] == record["label"]
        assert row["weight"] == record["features"]["weight"]
    # Damage is an error of the task, by name.
    shard = tmp_path / "set" / "train-00002.tfrecord"
    stored = bytearray(shard.read_bytes())
    stored[len(stored) // 2] ^= 1
    shard.write_bytes(stored)
    with pytest.raises(Exception, match="train-00002"):
        st_ray.read(tmp_path / "set").take_all()


def table(split, *arguments, **options):
    pytest.importorskip("ray")
    from shardtool.ray import reading

    return reading.read_table(split, *arguments, **options)


def test_tables_are_the_records(dataset, tmp_path):
    split = st.Dataset(dataset).split("train")
    count = len(split)
    found = table(split, 0, count, [("image/height", False), ("image/format", False)], "encoded").to_pylist()
    for row, record in zip(found, split[0:count], strict=True):
        assert (row["key"], row["image"], row["label"]) == (record["key"], record["image"], record["label"])
        assert row["image/height"] == record["features"]["image/height"]
        assert row["image/format"] == record["features"]["image/format"]
    # A table ends with the record that brings it to the limit, and is never empty.
    sizes = np.cumsum([len(record["image"]) for record in split[5:count]])
    assert table(split, 5, count, [], "encoded", limit=int(sizes[3])).num_rows == 4
    assert table(split, 5, count, [], "encoded", limit=1).num_rows == 1
    assert table(split, 5, 6, [], None).column_names == ["key", "label"]


def test_missing_values_are_null_and_lists_are_lists(tmp_path):
    rows = [{"n": 1, "t": "é", "l": [1.5, 2.5]}, {"t": "b", "l": []}, {"n": 3, "l": [0.5]}, {}]
    with st.Writer(tmp_path / "set", features={"n": "int64", "t": "bytes", "l": "float"}, images=False, labels=False) as writer:
        for number, row in enumerate(rows):
            writer.write({"key": f"{number}", **row})
    split = st.Dataset(tmp_path / "set").split("train")
    found = table(split, 0, 4, [("n", False), ("t", False), ("l", True)], None)
    assert found["n"].to_pylist() == [1, None, 3, None]
    assert found["t"].to_pylist() == ["é".encode(), b"b", None, None]
    assert found["l"].to_pylist() == [[1.5, 2.5], None, [0.5], None]
    with pytest.raises(st.errors.ColumnError, match='has 2 values.*columns={"l": "list"}'):
        table(split, 0, 4, [("l", False)], None)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("pixels", ["encoded", "raw", "raw-zstd"])
def test_decoded_images_are_tensors(same, pixels, tmp_path):
    images = [np.random.default_rng(n).integers(0, 255, (12, 16 + (0 if same else n), 3), np.uint8) for n in range(5)]
    with st.Writer(tmp_path / "set", pixels=pixels) as writer:
        for number, image in enumerate(images):
            writer.write({"key": f"{number}", "image": image})
    split = st.Dataset(tmp_path / "set").split("train")
    found = table(split, 0, 5, [], "decoded")["image"].chunk(0).to_numpy(zero_copy_only=False)
    assert all((one == other).all() for one, other in zip(found, images, strict=True))


def test_groups_of_shards_are_neighbours_of_about_the_same_size():
    pytest.importorskip("ray")
    from shardtool.ray.groups import groups_of

    sizes = [5, 1, 1, 1, 8, 0, 3, 3]
    for groups in range(1, 12):
        found = groups_of(range(8), sizes, groups)
        assert [item for group in found for item in group] == list(range(8)) and len(found) <= groups
        assert all(sum(sizes[item] for item in group) <= sum(sizes) / groups + max(sizes) for group in found)
    assert groups_of([], [], 3) == []


@pytest.mark.campaign
def test_decoded_batches_and_verification(cluster, dataset, tmp_path):
    from shardtool import ray as st_ray

    split = st.Dataset(dataset).split("train")
    shapes = {}
    for batch in st_ray.read(dataset, images="decoded", override_num_blocks=2).iter_batches(batch_size=16, batch_format="numpy"):
        for key, image in zip(batch["key"], batch["image"], strict=True):
            shapes[key] = np.asarray(image).shape
    features = [(record["key"], record["features"]) for record in split[0 : len(split)]]
    assert shapes == {key: (found["image/height"], found["image/width"], 3) for key, found in features}
    with pytest.raises(st.errors.ColumnError, match="no feature `nothing`"):
        st_ray.read(dataset, columns=["nothing"])
    assert st_ray.verify(dataset, decode=True) == st.verify(dataset, decode=True)
    # Damage in two shards, and one that is gone.
    import shutil

    shutil.copytree(dataset, tmp_path / "set")
    for number, at in ((0, 100), (2, -40)):
        shard = tmp_path / "set" / f"train-{number:05}.tfrecord"
        stored = bytearray(shard.read_bytes())
        stored[at] ^= 1
        shard.write_bytes(stored)
    (tmp_path / "set" / "single-00000.tfrecord").unlink()
    report = st_ray.verify(tmp_path / "set", tasks=3)
    assert report == st.verify(tmp_path / "set") and len(report.damages) >= 3
    manifest = tmp_path / "set" / "dataset.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"train", b"trial"))
    assert st_ray.verify(tmp_path / "set") == st.verify(tmp_path / "set")
