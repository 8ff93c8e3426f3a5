"""Rank, world size, workers and memory are bound at the first iteration: as given, else as found at that time."""

import logging
import pickle
import subprocess
import sys
import textwrap

import pytest
from conftest import COUNT
from test_loader import STEPS, ids_of, one_epoch

import shardtool as st

VARIABLES = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "SLURM_NTASKS", "SLURM_PROCID"]


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def first(loader):
    return next(iter(loader))["id"].tolist()


def sequential(train, **options):
    return st.Loader(train, 8, STEPS, order=st.Sequential(), **options)


def test_finds_rank_and_world_size_at_each_iteration(train, monkeypatch):
    loader = sequential(train)
    assert len(loader) == 14 and "rank 0 of 1, no launcher" in repr(loader)
    state = loader.state_dict()
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert len(loader) == 7 and "rank 1 of 2, from RANK and WORLD_SIZE" in repr(loader)
    assert loader.state_dict() == state
    assert first(loader) == list(range(8, 16))
    # A change counts from the next epoch on.
    monkeypatch.setenv("RANK", "0")
    assert "rank 1 of 2" in repr(loader)
    assert first(loader) == list(range(8)) and "rank 0 of 2" in repr(loader)
    # A pickled loader keeps the given arguments, and finds its rank again.
    monkeypatch.setenv("RANK", "1")
    assert first(pickle.loads(pickle.dumps(loader))) == list(range(24, 32)), "rank 1 of 2, after the first step"
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert len(loader) == 5


def test_given_rank_overrides_a_broken_environment(train, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "many")
    loader = sequential(train, replica=st.Replica(1, 2))
    assert first(loader) == list(range(8, 16)) and "rank 1 of 2, as given" in repr(loader)
    for rank, world_size in ((1, None), (None, 2), (2, 2)):
        with pytest.raises(st.OptionError, match="rank"):
            sequential(train, replica=st.Replica(rank, world_size))
    with pytest.raises(TypeError, match="`replica=st.Replica"):
        sequential(train, rank=1, world_size=2)


def test_invalid_rank_raises_when_the_epoch_begins(train, monkeypatch):
    loader = sequential(train)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(st.OptionError, match="rank 2"):
        next(iter(loader))
    monkeypatch.setenv("RANK", "0")
    assert first(loader) == list(range(0, 8))


@pytest.mark.parametrize(
    "variables, text",
    [
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "WORLD_SIZE=2 is ignored because RANK is not set"),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, "SLURM_NTASKS=8 is ignored because this process is not part of a"),
    ],
)
def test_ignored_variables_are_warned_about_once(train, monkeypatch, caplog, variables, text):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    loader = sequential(train)
    assert text in repr(loader) and len(loader) == 14
    with pytest.warns(st.ShardtoolWarning, match=text), caplog.at_level(logging.INFO, "shardtool"):
        assert sorted(one_epoch(loader)[0]) == list(range(COUNT))
    assert sum(text in record.message for record in caplog.records) == 1
    assert any("rank 0 of 1, no launcher" in record.message for record in caplog.records)
    one_epoch(loader)
    assert sum(text in record.message for record in caplog.records) == 1


def test_state_and_epoch_can_be_set_before_the_first_iteration(train, monkeypatch):
    whole = st.Loader(train, 5, STEPS, order=st.Shuffled(3))
    epochs = [one_epoch(whole) for _ in range(3)]
    state = None
    for number, _ in enumerate(whole):
        if number == 6:
            state = whole.state_dict()
            break
    loader = st.Loader(train, 5, STEPS, order=st.Shuffled(3))
    loader.set_epoch(1)
    assert loader.state_dict()["epoch"] == 1 and one_epoch(loader) == epochs[1]
    loader = st.Loader(train, 5, STEPS, order=st.Shuffled(3))
    loader.load_state_dict(state)
    loader.set_epoch(3)
    assert loader.state_dict() == state and (loader.steps_done, len(loader)) == (7, 21)
    assert loader.steps_done == 7 and len([*loader]) == 14
    with pytest.raises(st.StateError, match="seed"):
        st.Loader(train, 5, STEPS, order=st.Shuffled(4)).load_state_dict(state)
    with pytest.raises(st.UsageError, match="no iteration"):
        st.Loader(train, 5, STEPS).stats()
    assert st.Loader(train, 5, STEPS).bad_samples() == []


def test_epoch_without_a_step_raises_when_it_begins(train, monkeypatch):
    loader = st.Loader(train, 40, STEPS, remainder="drop")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert "rank 0 of 4" in repr(loader)
    with pytest.raises(st.OptionError, match="do not fill one step of 4 replicas"):
        next(iter(loader))
    with pytest.raises(st.OptionError, match="do not fill one step of 4 replicas"):
        st.Loader(train, 40, STEPS, replica=st.Replica(0, 4), remainder="drop")


def test_forked_child_may_only_use_a_loader_that_its_parent_has_not_iterated(train):
    code = """
        import os, sys, warnings
        import shardtool as st
        warnings.simplefilter("ignore")
        loader = st.Loader(st.Dataset(sys.argv[1])["train"], 8, [st.ResizeTo(8)], order=st.Sequential())
        child = os.fork()
        if child == 0:
            right = next(iter(loader))["id"].tolist() == list(range(8))
            loader.close()
            os._exit(0 if right else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert next(iter(loader))["id"].tolist() == list(range(8))
        child = os.fork()
        if child == 0:
            try:
                next(iter(loader))
            except st.UsageError as error:
                os._exit(0 if "forked child" in str(error) else 2)
            os._exit(3)
        assert os.waitpid(child, 0)[1] == 0
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(train.path)], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr


def test_torch_distributed_takes_precedence_over_the_environment(train, monkeypatch, tmp_path):
    torch = pytest.importorskip("torch")
    from shardtool.torch import Loader

    loader = Loader(train, 8, STEPS, order=st.Sequential())
    monkeypatch.setenv("WORLD_SIZE", "7")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        assert "rank 0 of 1, from torch.distributed" in repr(loader)
        assert ids_of([next(iter(loader))]) == list(range(8))
    finally:
        torch.distributed.destroy_process_group()


def test_steps_done_includes_steps_before_the_resume(train):
    loader = st.Loader(train, 5, STEPS)
    done = []
    for _ in loader:
        done.append(loader.steps_done)
        if len(done) == 4:
            break
    assert done == [1, 2, 3, 4]
    again = st.Loader(train, 5, STEPS)
    again.load_state_dict(loader.state_dict())
    assert again.steps_done == 4
    assert again.steps_done + sum(1 for _ in again) == len(again)
