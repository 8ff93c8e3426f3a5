"""Datasets in an S3 server: the batches of files, also in processes that are forked while requests are under way.

`SHARDTOOL_STORE_FORKS` is the number of forks (default 5; `scripts/campaign stores` asks for 200).
"""

import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import shardtool as st

ROOT = pathlib.Path(__file__).parents[3]
STEPS = [st.RandomResizedCrop(16), st.HorizontalFlip()]


@pytest.fixture(scope="module")
def url(dataset, bucket):
    """The URL of the dataset in a bucket."""
    shutil.copytree(dataset, bucket / "imagenet")
    return "s3://bucket/imagenet"


def epoch(loader):
    return [(batch["id"].tolist(), np.array(batch["image"]).tobytes()) for batch in loader]


def test_batches_and_states_equal_those_of_files(dataset, url):
    local = st.Loader(st.Dataset(dataset).split("train"), 8, STEPS, order=st.Shuffled(4))
    remote = st.Loader(st.Dataset(url).split("train"), 8, STEPS, order=st.Shuffled(4))
    assert epoch(local) == epoch(remote)
    assert local.state_dict() == remote.state_dict()
    store = remote.stats()["store"]
    assert store["requests"] > 0 and store["bytes"] > 0
    assert "store" not in local.stats()


def test_a_path_in_a_store_is_its_url(url):
    opened = st.Dataset(url)
    train = opened.split("train")
    assert (opened.path, train.path) == (url, url)
    assert train.shards[0].path == f"{url}/train-00000.tfrecord"
    assert st.Dataset(train.path).splits == opened.splits


def test_a_dataset_is_packed_into_a_store(photos, url, tmp_path):
    base = url.rpartition("/")[0]
    packed = st.pack(photos, tmp_path / "here", shards=2)
    for name, options in (("there", {}), ("alone", {"single_writer": True})):
        remote = st.pack(photos, f"{base}/{name}", shards=2, **options)
        assert (remote.images, remote.fingerprint) == (packed.images, packed.fingerprint)
        here, there = (st.Dataset(path)["train"] for path in (tmp_path / "here", f"{base}/{name}"))
        assert [dict(record) for record in there] == [dict(record) for record in here]
        # Complete: nothing is packed again.
        assert st.pack(photos, f"{base}/{name}", shards=2).fingerprint == packed.fingerprint


#: Prints the mean bytes of a request during the epochs after the first one, in which manifest and indexes are read.
MEAN_BYTES = """
import sys
import shardtool as st
train = st.Dataset(sys.argv[1]).split("train")
prefetch = st.Prefetch(**eval(sys.argv[2]))
with st.Loader(train, 8, [st.RandomResizedCrop(16)], order=st.Sequential(), prefetch=prefetch) as loader:
    stores = []
    for epoch in range(6):
        assert sum(int(batch["valid"].sum()) for batch in loader) == len(train)
        stores.append(loader.stats()["store"])
print((stores[-1]["bytes"] - stores[0]["bytes"]) / (stores[-1]["requests"] - stores[0]["requests"]))
"""


def test_requests_are_as_large_as_the_options_say(url):
    # Each in a process, because requests are counted for the whole process, those of a closed loader that still arrive
    # included; with a long time limit, because a worker that waits for the planner reads the record itself after a part of it.
    def mean_bytes(options):
        command = [sys.executable, "-c", MEAN_BYTES, url, repr(options)]
        environment = {**os.environ, "SHARDTOOL_STORE_TIMEOUT": "3000"}
        return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)

    assert mean_bytes({}) > 2 * mean_bytes({"fetch_size": "1KiB", "fetch_gap": 0})


def test_records_and_slices(dataset, url):
    local, remote = (st.Dataset(path).split("train") for path in (dataset, url))
    assert len(remote) == len(local)
    assert remote[3]["key"] == local[3]["key"]
    assert (remote.columns["image/class/label"] == local.columns["image/class/label"]).all()


def test_errors_name_the_url(url):
    with pytest.raises(st.ShardtoolError, match="s3://bucket/nothing"):
        st.Dataset("s3://bucket/nothing")
    with pytest.raises(st.ShardtoolError, match="as a string"):
        st.Dataset(pathlib.Path("s3://bucket/imagenet"))


def one_epoch(url):
    return [ids for ids, _ in epoch(st.Loader(st.Dataset(url).split("train"), 8, STEPS, order=st.Shuffled(4)))]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_made_after_the_first_request(url, method):
    expected = one_epoch(url)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(one_epoch, [url] * 2) == [expected] * 2


def test_forks_with_requests_in_flight(url):
    forks = int(os.environ.get("SHARDTOOL_STORE_FORKS", "5"))
    program = textwrap.dedent(
        """
        import os, sys, threading, warnings
        warnings.simplefilter("ignore")
        import shardtool as st
        url, forks = sys.argv[1], int(sys.argv[2])
        split = st.Dataset(url).split("train")
        keys = [split[i]["key"] for i in range(len(split))]
        stop = threading.Event()
        def read(start):
            while not stop.is_set():
                for i in range(start, len(split), 16):
                    assert split[i]["key"] == keys[i]
        readers = [threading.Thread(target=read, args=(i,), daemon=True) for i in range(16)]
        for reader in readers:
            reader.start()
        for n in range(forks):
            child = os.fork()
            if child == 0:
                fresh = st.Dataset(url).split("train")
                good = all(fresh[i]["key"] == keys[i] for i in range(n % 7, len(fresh), 9))
                os._exit(0 if good else 3)
            assert os.waitpid(child, 0)[1] == 0, n
        stop.set()
        for reader in readers:
            reader.join()
        print("good", forks)
        """
    )
    run = subprocess.run([sys.executable, "-c", program, url, str(forks)], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0 and f"good {forks}" in run.stdout, run.stdout + run.stderr


def cached_ids(arguments):
    url, cache = arguments
    split = pickle.loads(pickle.dumps(st.Dataset(url, cache=cache, cache_size="1GiB").split("train")))
    return epoch(st.Loader(split, 8, STEPS, order=st.Shuffled(4)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_a_cache(dataset, url, method, tmp_path):
    expected = epoch(st.Loader(st.Dataset(dataset).split("train"), 8, STEPS, order=st.Shuffled(4)))
    with multiprocessing.get_context(method).Pool(3) as pool:
        assert pool.map(cached_ids, [(url, tmp_path / "cache")] * 6) == [expected] * 6
    split = st.Dataset(url, cache=tmp_path / "cache", cache_size=10**9).split("train")
    loader = st.Loader(split, 8, STEPS, order=st.Shuffled(4))
    assert epoch(loader) == expected
    store = loader.stats()["store"]
    # All records and indexes are there.
    assert store["cache_hits"] > 0 and store["requests"] == 0, store


def test_forks_while_the_cache_is_read(url, tmp_path):
    program = textwrap.dedent(
        """
        import os, sys, threading, warnings
        warnings.simplefilter("ignore")
        import shardtool as st
        split = st.Dataset(sys.argv[1], cache=sys.argv[2]).split("train")
        keys = [split[i]["key"] for i in range(len(split))]
        stop = threading.Event()
        def read(start):
            while not stop.is_set():
                for i in range(start, len(split), 8):
                    assert split[i]["key"] == keys[i]
        readers = [threading.Thread(target=read, args=(i,), daemon=True) for i in range(8)]
        for reader in readers:
            reader.start()
        for n in range(20):
            child = os.fork()
            if child == 0:
                # The dataset of the parent, and its cache.
                good = all(split[i]["key"] == keys[i] for i in range(n % 7, len(split), 9))
                os._exit(0 if good else 3)
            assert os.waitpid(child, 0)[1] == 0, n
        stop.set()
        for reader in readers:
            reader.join()
        # The children have not removed what is the parent's.
        assert len(os.listdir(os.path.join(sys.argv[2], "shardtool-cache-1", "users"))) >= 2
        print("good")
        """
    )
    run = subprocess.run([sys.executable, "-c", program, url, tmp_path], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and "good" in run.stdout, run.stdout + run.stderr


def test_a_cache_that_cannot_be_is_refused(url, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(st.ShardtoolError, match="cannot keep a cache in .*file"):
        st.Dataset(url, cache=tmp_path / "file")
    with pytest.raises(st.ShardtoolError, match="less than one block"):
        st.Dataset(url, cache=tmp_path, cache_size="1MiB")
    with pytest.raises(st.OptionError, match="cache_size"):
        st.Dataset(url, cache_size=10**9)


def test_snippets_of_the_page(url, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs/stores.md").read_text(), re.DOTALL):
        exec(code, names)
    assert "requests" in capsys.readouterr().out
