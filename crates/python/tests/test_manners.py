"""Behaviour in a Python process: Ctrl-C, progress, forks, pickles, early ends, the interpreter's exit."""

import gc
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import time
import types

import numpy as np
import pytest
from PIL import Image
from test_loader import STEPS, ids_of, one_epoch

import shardtool as st


def python(code, *arguments, **options):
    """Runs a program in a separate process, with a time limit."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def workers():
    """Returns the number of threads of loaders in this process."""
    names = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text())
        except FileNotFoundError:  # it has just ended
            pass
    return sum(name.startswith("shardtool-load") for name in names)


def test_holding_every_batch_raises_with_their_number(train):
    loader = st.Loader(train, 32, [st.ResizeTo(64)], memory="2200KiB", prefetch=st.Prefetch(starve_after=0.2), workers=1)
    with pytest.raises(st.StarvedError, match="holds 2 of 2 batches that the given memory budget allows"):
        list(loader)
    # The list and its batches are freed: a new iteration works.
    assert next(iter(loader))["image"].shape[0] == 32


def test_ctrl_c_interrupts_waiting_and_loses_no_batch(train):
    """The consumer holds every batch, so the loader waits; the signal arrives while it does."""
    loader = st.Loader(train, 32, [st.ResizeTo(64)], memory="2200KiB", prefetch=st.Prefetch(starve_after=60), workers=1)
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


def test_pack_resumes_after_ctrl_c(photos, tmp_path):
    """4000 images, at the slowest compression level, into 200 shards; the signal arrives before the last shard."""
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


@pytest.mark.parametrize("kind", ["files", "archive"])
def test_ctrl_c_ends_a_pack_within_a_shard_and_keeps_its_plan(photos, tmp_path, kind):
    """All images belong to one shard, which takes many seconds: the pack ends within about a second of the signal."""
    random = np.random.default_rng(0)
    for number in range(8):
        noise = random.integers(0, 255, (512, 512, 3), np.uint8)
        Image.fromarray(noise).save(tmp_path / f"{number}.png")
    if kind == "files":
        source = tmp_path / "list.csv"
        source.write_text("\n".join(["path,key", *(f"{i % 8}.png,key {i}" for i in range(600))]))
    else:
        source = tmp_path / "source.tar"
        with tarfile.open(source, "w") as archive:
            for i in range(600):
                archive.add(tmp_path / f"{i % 8}.png", f"{i:04}.png")
    program = """
        import os, signal, sys, threading, time
        import shardtool as st
        def interrupt():
            while not os.path.exists(sys.argv[2]):
                time.sleep(0.01)
            time.sleep(1.0)
            global sent
            sent = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            st.pack(sys.argv[1], sys.argv[2], pixels="raw-zstd", zstd_level=19, shard_size="1GiB")
        except KeyboardInterrupt:
            print(time.monotonic() - sent)
        """
    run = python(program, source, tmp_path / "out")
    assert run.returncode == 0, run.stderr
    # An image takes about 0.2 s here; the limit leaves room for a loaded machine.
    assert float(run.stdout) < 3, run.stdout
    assert list((tmp_path / "out").glob("*.tfrecord")) == [] and list((tmp_path / "out").glob("*.tmp")) == []
    resumed = python(
        """
        import sys
        import shardtool as st
        options = dict(pixels="raw-zstd", zstd_level=19, shard_size="1GiB")
        try:
            print(st.pack(sys.argv[1], sys.argv[2], **{**options, "seed": 3}))
        except st.PackError as error:
            print(error)
        """,
        source,
        tmp_path / "out",
    )
    assert "an interrupted pack left" in resumed.stdout, resumed.stdout + resumed.stderr


@pytest.fixture
def notebook(monkeypatch):
    """Makes this process look like the kernel of a notebook."""
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


def test_notebook_progress_uses_tqdm(photos, tmp_path, notebook, monkeypatch, capfd):
    bars = []

    class Bar:
        def __init__(self, **options):
            self.options, self.n, self.total, self.closed = options, 0, None, False
            bars.append(self)

        def reset(self, total):
            self.total = total

        def update(self, by):
            self.n += by

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    packed = st.pack(photos, tmp_path / "out", progress=True)
    (bar,) = bars
    assert (bar.n, bar.total, bar.closed) == (packed.images, packed.images, True)
    assert bar.options["desc"] == "packed" and capfd.readouterr().err == ""


def test_notebook_progress_without_tqdm_prints_lines(photos, tmp_path, notebook, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    st.pack(photos, tmp_path / "out", progress=True)
    assert "packed 105 of 105 images" in capsys.readouterr().err


def test_exception_in_the_progress_bar_ends_the_pack(photos, tmp_path, notebook, monkeypatch):
    class Bar:
        def __init__(self, **options):
            self.n, self.total = 0, None

        def reset(self, total):
            raise ZeroDivisionError("mine")

        def close(self):
            pass

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    with pytest.raises(ZeroDivisionError, match="mine"):
        st.pack(photos, tmp_path / "out", progress=True)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """200 noisy images of 1200 x 900 pixels: about 15 seconds of decoding."""
    folder = tmp_path_factory.mktemp("large")
    noise = np.random.default_rng(0).integers(0, 255, (900, 1200, 3), np.uint8)
    Image.fromarray(noise).save(folder / "noise.jpg", quality=95)
    rows = [f"{folder / 'noise.jpg'},key {i}" for i in range(200)]
    (folder / "list.csv").write_text("\n".join(["path,key", *rows]))
    st.pack(folder / "list.csv", folder / "out", shards=2)
    return folder / "out"


def test_ctrl_c_ends_a_verification(large):
    """Runs in a separate process, so that the CPU time used after the interrupt can be measured."""
    run = python(
        """
        import os, signal, sys, threading, time
        import shardtool as st
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            st.verify(sys.argv[1], decode=True)
        except KeyboardInterrupt:
            used = time.process_time()
            time.sleep(0.5)
            print(time.monotonic() - began, time.process_time() - used, st.verify(sys.argv[1]).good)
        """,
        large,
    )
    assert run.returncode == 0, run.stderr
    seconds, after, good = run.stdout.split()
    assert good == "True"
    # The thread was joined: it may finish images in work, and starts no other.
    assert float(after) < 0.3 and float(seconds) < 30


def test_verify_progress_does_not_change_the_report_or_print_to_stdout(dataset, capfd):
    report = st.verify(dataset, decode=True, progress=True)
    assert report.good and report == st.verify(dataset)
    assert capfd.readouterr().out == ""


def test_other_threads_run_while_the_loader_waits(train):
    loader = st.Loader(train, 32, [st.ResizeTo(64)], memory="2200KiB", prefetch=st.Prefetch(starve_after=1.0), workers=1)
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


def wait_for_workers(count):
    """A thread gets its name shortly after it was started, and the system counts it until shortly after it was joined."""
    deadline = time.monotonic() + 10
    while workers() != count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert workers() == count


def test_with_block_and_deletion_end_the_threads(train):
    gc.collect()  # loaders of other tests
    wait_for_workers(0)
    with st.Loader(train, 8, STEPS, workers=3) as loader:
        batch = next(iter(loader))
        wait_for_workers(3)
    wait_for_workers(0)
    assert batch["image"].shape == (8, 32, 32, 3)
    with pytest.raises(RuntimeError, match="closed"):
        next(iter(loader))
    loader = st.Loader(train, 8, STEPS, workers=3)
    for _ in loader:
        break
    del loader
    wait_for_workers(0)


def test_pickled_loader_continues_the_epoch(train):
    loader = st.Loader(train, 8, STEPS, order=st.Shuffled(2), remainder="mask")
    first = iter(loader)
    next(first), next(first)
    again = pickle.loads(pickle.dumps(loader))
    assert again.state_dict() == loader.state_dict()
    assert [ids_of([b]) for b in again] == [ids_of([b]) for b in first]


def test_spawned_process_delivers_the_same_epoch(train):
    loader = st.Loader(train, 8, STEPS, order=st.Shuffled(2))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(one_epoch, (loader,)) == one_epoch(loader)


def test_forked_child_can_open_its_own_loader(dataset):
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


def test_every_use_of_the_parents_loader_in_a_forked_child_raises(dataset):
    """Every use raises instead of hanging, even while the parent's threads work, and the exit of the child does not affect
    the parent's loader."""
    run = python(
        """
        import os, signal, sys, warnings
        warnings.simplefilter("ignore")
        import shardtool as st
        split = st.Dataset(sys.argv[1]).split("train")
        loader = st.Loader(split, 8, [st.RandomResizedCrop(64)], workers=2)
        batches = iter(loader)
        batch = next(batches)
        uses = {
            "next": lambda: next(batches), "iter": lambda: next(iter(loader)), "len": lambda: len(loader),
            "state": loader.state_dict, "load": lambda: loader.load_state_dict({"version": 1}),
            "epoch": lambda: loader.set_epoch(1), "stats": loader.stats, "bad": loader.bad_samples,
        }
        for round in range(12):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                for name, use in uses.items():
                    try:
                        use()
                    except (RuntimeError, st.StateError):
                        continue
                    os._exit(1)
                loader.close()
                copy = batch["image"].copy()
                # Half of the children exit normally, with finalization of the interpreter.
                sys.exit(0) if round % 2 else os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, round
            batch = next(batches)
        print(len(list(b["id"].sum() for b in loader)))
        """,
        dataset,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["13"]


def test_interpreter_exits_while_workers_call_a_function(dataset):
    """Workers are about to call a Python function when the interpreter exits or the loader is dropped."""
    for end in ("pass", "del loader", "loader.close()", "loader = None; import gc; gc.collect()", "sys.exit(0)"):
        run = python(
            f"""
            import sys
            import shardtool as st
            def slow(image, seed):
                for i in range(2000):
                    image[0, 0, 0] = i % 256
            split = st.Dataset(sys.argv[1]).split("train")
            loader = st.Loader(split, 8, [st.ResizeTo(8), slow], workers=3)
            next(iter(loader))
            {end}
            """,
            dataset,
        )
        assert (run.returncode, run.stderr) == (0, ""), end


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "batches = iter(loader); next(batches)"])
def test_interpreter_exits_cleanly(dataset, end):
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


def test_iteration_after_an_exception_starts_the_next_epoch(train):
    loader = st.Loader(train, 8, STEPS)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            for _ in loader:
                1 / 0
    assert loader.state_dict()["epoch"] == 2


def test_module_runs_the_command_line(dataset, tmp_path):
    command = [sys.executable, "-m", "shardtool"]
    run = subprocess.run([*command, "info", str(dataset)], capture_output=True, text=True)
    assert run.returncode == 0 and "train" in run.stdout
    run = subprocess.run([*command, "info", str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 2 and "is not a dataset" in run.stderr
    run = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert run.stdout == f"shardtool {st.__version__}\n"


def test_repr_shows_split_and_options(train):
    loader = st.Loader(train, 8, STEPS, memory="2MiB")
    assert "train of" in repr(loader) and "batch_size=8" in repr(loader) and "memory='2MiB'" in repr(loader)


def test_unknown_vector_instructions_are_refused_at_once():
    run = subprocess.run(
        [sys.executable, "-c", "import shardtool"],
        env={**os.environ, "SHARDTOOL_SIMD": "sse9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1 and 'ValueError: SHARDTOOL_SIMD is "sse9"' in run.stderr and "portable" in run.stderr
