"""Every framework trains two epochs, resumes in mid-epoch, accumulates gradients, stops early, and evaluates each sample
once. `scripts/campaign trainers` runs all cells and prints a table; `scripts/test torch` those without the mark."""

from __future__ import annotations

import math
import os
import pathlib

import pytest
from conftest import COUNT
from frameworks import ENVIRONMENT, EPOCHS, FRAMEWORKS, Framework, Run


#: Frameworks that only the campaign runs: the same programs run with one rank, and those of PyTorch and JAX with several.
CAMPAIGN = ["Lightning DDP, own launcher", "Lightning DDP, torchrun", "HF Trainer, torchrun", "Accelerate, torchrun"]


def _cell(framework: Framework):
    return pytest.param(framework, marks=[pytest.mark.campaign] if framework.name in CAMPAIGN else [], id=str(framework))


@pytest.fixture(params=map(_cell, FRAMEWORKS))
def framework(request, monkeypatch):
    if request.param.missing:
        pytest.skip(f"{request.param.missing} is not installed")
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    yield request.param
    # Frameworks leave environment variables for processes that they start.
    for name in set(os.environ) - set(before):
        del os.environ[name]


@pytest.fixture(scope="session")
def runs(dataset, tmp_path_factory):
    """`runs(framework, name)` returns each rank's report of a job, which runs at the first call.

    In the campaign each job runs in separate processes. Otherwise the jobs of the two cells without the mark share
    the processes: starting them takes longer than all of their work.
    """
    together = () if os.environ.get("SHARDTOOL_CAMPAIGN") else ("whole", "first", "rest", "accumulate")
    folders: dict[str, pathlib.Path] = {}
    ran: set[tuple[str, str]] = set()

    def find(framework: Framework, name: str) -> list[Run]:
        if framework.name not in folders:
            folders[framework.name] = tmp_path_factory.mktemp("runs")
        folder = folders[framework.name]
        if (framework.name, name) not in ran:
            jobs = framework.jobs(str(dataset), folder)
            names = together if name in together and framework.launcher != "here" else (name,)
            ran.update((framework.name, each) for each in names)
            framework.launch(folder, [jobs[each] for each in names])
        return framework.reports(folder, name)

    return find


def steps(framework: Framework) -> int:
    return COUNT // framework.rows


def check(runs: list[Run]) -> None:
    """Checks what holds after every run."""
    assert [run.threads for run in runs] == [0] * len(runs)
    assert len({run.weights for run in runs}) == 1, "all ranks have the same weights"
    for run in runs:
        assert all(map(math.isfinite, run.losses))
        assert len(run.warnings) <= 1, run.warnings


@pytest.mark.campaign
def test_two_epochs(framework, dataset, runs):
    whole = runs(framework, "whole")
    check(whole)
    for run, expected in zip(whole, framework.expected(str(dataset)), strict=True):
        assert run.ids == expected.ids
        assert run.pixels == expected.pixels
        assert len(run.losses) == EPOCHS * steps(framework)
    for epoch in range(EPOCHS):
        first = epoch * steps(framework)
        shown = [i for run in whole for ids in run.ids[first : first + steps(framework)] for i in ids]
        assert len(shown) == len(set(shown)) == steps(framework) * framework.rows
        assert set(shown) <= set(range(COUNT)) and COUNT - len(shown) < framework.rows


def test_resume_in_mid_epoch(framework, runs):
    """The run resumed from the framework's own checkpoint equals an uninterrupted run, bit for bit."""
    whole, first, rest = (runs(framework, name) for name in ("whole", "first", "rest"))
    check(first)
    check(rest)
    for one, two, all_ in zip(first, rest, whole, strict=True):
        assert len(one.ids) == steps(framework) + 2
        assert one.ids + two.ids == all_.ids
        assert one.pixels + two.pixels == all_.pixels
        assert one.losses + two.losses == all_.losses
        assert two.weights == all_.weights


def test_accumulation(framework, runs):
    """Four batches for each optimiser step, all alive at once, with the default memory budget."""
    accumulated = runs(framework, "accumulate")
    check(accumulated)
    for run, all_ in zip(accumulated, runs(framework, "whole"), strict=True):
        assert run.ids == all_.ids and run.pixels == all_.pixels
        assert run.updates == EPOCHS * math.ceil(steps(framework) / 4)
        assert run.weights != all_.weights


@pytest.mark.campaign
def test_early_stop(framework, runs):
    stopped = runs(framework, "early stop")
    check(stopped)
    for run, all_ in zip(stopped, runs(framework, "whole"), strict=True):
        assert run.ids == all_.ids[:3] and run.pixels == all_.pixels[:3]
        assert run.again == all_.ids[steps(framework)], "iterating again is the next epoch"


@pytest.mark.campaign
def test_evaluation(framework, runs):
    evaluated = runs(framework, "evaluate")
    check(evaluated)
    shown = [i for run in evaluated for ids in run.ids for i in ids if i >= 0]
    assert sorted(shown) == list(range(COUNT))
    assert [run.counted for run in evaluated] == [COUNT] * framework.ranks
    for run in evaluated:
        assert 0 < run.correct == run.correct_one_by_one
