"""Being a good guest in a Python process: Ctrl-C, forks, pickles, early ends, the interpreter's exit."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from test_loader import STEPS, ids_of, one_epoch

import shardtool as st


def python(code, *arguments, **options):
    """Runs a program of its own, which must end in time."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def threads():
    return len(os.listdir("/proc/self/task"))


def test_holding_every_batch_is_an_error_that_says_so(train):
    loader = st.Loader(train, 32, [st.ResizeTo(64)], prefetch=1, starve_after=0.2)
    with pytest.raises(st.StarvedError, match="holds 2 of 2 batches"):
        list(loader)
    # What was held is gone with the list: it goes on.
    assert next(iter(loader))["image"].shape[0] == 32


def test_ctrl_c_while_waiting(train):
    """The caller holds every batch, so that the loader waits; the signal arrives in the middle of that."""
    loader = st.Loader(train, 32, [st.ResizeTo(64)], prefetch=1, starve_after=60)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    held = []
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for batch in loader:
            held.append(batch)
    assert time.monotonic() - began < 30
    shown = ids_of(held)
    held.clear()
    del batch
    # Nothing was lost.
    state = loader.state_dict()
    assert state["p"] == len(shown)


def test_ctrl_c_while_packing_and_going_on(photos, tmp_path):
    """4000 images, compressed as slowly as can be, into 200 shards: the signal arrives in the middle."""
    files = sorted(photos.glob("*/*.jpg"))
    rows = [f"{files[i % len(files)]},key {i}" for i in range(4000)]
    (tmp_path / "list.csv").write_text("\n".join(["path,key", *rows]))
    options = dict(shards=200, pixels="raw-zstd", zstd_level=22)
    stop = threading.Event()

    def interrupt():
        # As soon as the first shards are finished.
        while len(list((tmp_path / "out" / "_index").glob("*.index"))) < 3:
            if stop.wait(0.005):
                return
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            st.pack(tmp_path / "list.csv", tmp_path / "out", **options)
    finally:
        stop.set()
        watcher.join()
    with pytest.raises(st.DatasetError):
        st.Dataset(tmp_path / "out")
    packed = st.pack(tmp_path / "list.csv", tmp_path / "out", **options)
    assert packed.images == 4000 and 3 <= packed.resumed_shards < 200
    assert st.verify(tmp_path / "out").good_records == 4000


def test_other_threads_run_while_the_loader_waits(train):
    loader = st.Loader(train, 32, [st.ResizeTo(64)], prefetch=1, starve_after=1.0)
    turns = 0

    def count():
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.01)

    done = threading.Event()
    counter = threading.Thread(target=count)
    counter.start()
    try:
        with pytest.raises(st.StarvedError):
            list(loader)
    finally:
        done.set()
        counter.join()
    assert turns > 20


def test_with_ends_the_threads(train):
    before = threads()
    with st.Loader(train, 8, STEPS, workers=3) as loader:
        batch = next(iter(loader))
        assert threads() >= before + 3
    assert threads() == before
    assert batch["image"].shape == (8, 32, 32, 3)
    with pytest.raises(RuntimeError, match="closed"):
        next(iter(loader))
    loader = st.Loader(train, 8, STEPS, workers=3)
    for _ in loader:
        break
    del loader
    deadline = time.monotonic() + 10
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() == before


def test_pickle_goes_on(train):
    loader = st.Loader(train, 8, STEPS, seed=2, remainder="mask")
    first = iter(loader)
    next(first), next(first)
    again = pickle.loads(pickle.dumps(loader))
    assert again.state_dict() == loader.state_dict()
    assert [ids_of([b]) for b in again] == [ids_of([b]) for b in first]


def test_spawned_worker(train):
    loader = st.Loader(train, 8, STEPS, seed=2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(one_epoch, (loader,)) == one_epoch(loader)


def test_fork_after_use(dataset):
    run = python(
        """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        import shardtool as st
        split = st.Dataset(sys.argv[1]).split("train")
        loader = st.Loader(split, 8, [st.ResizeTo(8)])
        batch = next(iter(loader))
        child = os.fork()
        if child == 0:
            try:
                next(iter(loader))
            except RuntimeError as error:
                print(error)
            own = st.Loader(split, 8, [st.ResizeTo(8)], workers=1)
            print("own", len(next(iter(own))["id"]), split[0]["key"] != "")
            del batch, loader
            sys.stdout.flush()
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        print("status", status, len(next(iter(loader))["id"]))
        """,
        dataset,
    )
    assert run.returncode == 0, run.stderr
    assert "forked child" in run.stdout and "own 8 True" in run.stdout and "status 0 8" in run.stdout


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "batches = iter(loader); next(batches)"])
def test_the_interpreter_ends(dataset, end):
    run = python(
        f"""
        import sys
        import shardtool as st
        loader = st.Loader(st.Dataset(sys.argv[1]).split("train"), 8, [st.ResizeTo(8)])
        for batch in loader:
            break
        {end}
        """,
        dataset,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_an_exception_in_the_loop(train):
    loader = st.Loader(train, 8, STEPS)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            for _ in loader:
                1 / 0
    assert loader.state_dict()["epoch"] == 2


def test_the_command_line(dataset, tmp_path):
    command = [sys.executable, "-m", "shardtool"]
    run = subprocess.run([*command, "info", str(dataset)], capture_output=True, text=True)
    assert run.returncode == 0 and "train" in run.stdout
    run = subprocess.run([*command, "info", str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 2 and "is not a dataset" in run.stderr
    run = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert run.stdout == f"shardtool {st.__version__}\n"


def test_repr(train):
    loader = st.Loader(train, 8, STEPS, memory_budget="1MiB")
    assert "train of" in repr(loader) and "batch_size=8" in repr(loader) and "memory_budget='1MiB'" in repr(loader)
