"""Datasets in an S3 server: the batches of files, also in processes that are forked while requests are under way.

The server is built by `cargo test`; `SHARDTOOL_STORE_SERVER` names another place. `SHARDTOOL_STORE_FORKS` is the number of
forks (default 5; `scripts/campaign stores` asks for 200).
"""

import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import shardtool as st

ROOT = pathlib.Path(__file__).parents[3]
SERVER = pathlib.Path(os.environ.get("SHARDTOOL_STORE_SERVER", ROOT / "target/debug/examples/store-server"))
STEPS = [st.RandomResizedCrop(16), st.HorizontalFlip()]


@pytest.fixture(scope="module")
def url(dataset, tmp_path_factory):
    """The URL of the dataset in a bucket; the environment variables lead to the server."""
    if not SERVER.exists():
        pytest.skip(f"no {SERVER} (cargo test builds it)")
    root = tmp_path_factory.mktemp("s3")
    shutil.copytree(dataset, root / "bucket" / "imagenet")
    with subprocess.Popen([SERVER, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        with pytest.MonkeyPatch.context() as patch:
            for _ in range(5):
                name, value = server.stdout.readline().removeprefix("export ").rstrip("\n").split("=", 1)
                patch.setenv(name, value)
            yield "s3://bucket/imagenet"
            # Ends the server, which then prints its counts.
            server.communicate("")


def epoch(loader):
    return [(batch["id"].tolist(), np.array(batch["image"]).tobytes()) for batch in loader]


def test_batches_and_states_equal_those_of_files(dataset, url):
    local = st.Loader(st.Dataset(dataset).split("train"), 8, STEPS, seed=4)
    remote = st.Loader(st.Dataset(url).split("train"), 8, STEPS, seed=4)
    assert epoch(local) == epoch(remote)
    assert local.state_dict() == remote.state_dict()
    store = remote.stats()["store"]
    assert store["requests"] > 0 and store["bytes"] > 0
    assert "store" not in local.stats()


def test_requests_are_as_large_as_the_options_say(url):
    def requests(**options):
        train = st.Dataset(url).split("train")
        with st.Loader(train, 8, STEPS, order=st.Sequential(), epochs=1, **options) as loader:
            assert sum(int(batch["valid"].sum()) for batch in loader) == len(train)
            return loader.stats()["store"]["requests"]

    assert requests() < 20
    assert requests(fetch_size="1KiB", fetch_gap=0) >= len(st.Dataset(url).split("train"))


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
    return [ids for ids, _ in epoch(st.Loader(st.Dataset(url).split("train"), 8, STEPS, seed=4))]


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


def test_snippet_of_the_page(url, capsys):
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/stores.md").read_text(), re.DOTALL)[1]
    exec(code, {})
    assert "requests" in capsys.readouterr().out
