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
KILLS = int(os.environ.get("SHARDTOOL_RAY_KILLS", "8"))


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", configure_logging=False)
    yield ray
    ray.shutdown()


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
                for process in times.sample(workers(), k=min(1, len(workers()))):
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
