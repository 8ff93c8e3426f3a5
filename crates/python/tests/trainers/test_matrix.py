"""Every framework trains two epochs, resumes in mid-epoch, accumulates gradients, stops early, and evaluates each sample
once. `scripts/campaign trainers` runs all cells and prints a table; `scripts/test-python` those without the mark."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import pytest
from conftest import COUNT
from frameworks import ENVIRONMENT, FRAMEWORKS, Framework, Job, Run

EPOCHS = 2


@pytest.fixture(params=FRAMEWORKS, ids=str)
def framework(request, monkeypatch):
    if request.param.missing:
        pytest.skip(f"{request.param.missing} is not installed")
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    yield request.param
    # Frameworks leave variables for processes that they would start.
    for name in set(os.environ) - set(before):
        del os.environ[name]


@pytest.fixture
def job(dataset):
    """The job that a test changes; `Framework.launch` fills in the rest."""
    return Job(str(dataset), reports="", batch_size=0, epochs=EPOCHS)


@pytest.fixture(scope="session")
def whole(dataset, tmp_path_factory):
    """The uninterrupted run of a framework, made once."""
    runs: dict[str, list[Run]] = {}

    def find(framework: Framework) -> list[Run]:
        if framework.name not in runs:
            folder = tmp_path_factory.mktemp("whole") / "run"
            runs[framework.name] = framework.launch(folder, Job(str(dataset), "", 0, epochs=EPOCHS))
        return runs[framework.name]

    return find


def steps(framework: Framework) -> int:
    return COUNT // framework.rows


def check(runs: list[Run]) -> None:
    """What holds after every run."""
    assert [run.threads for run in runs] == [0] * len(runs)
    assert len({run.weights for run in runs}) == 1, "all ranks have the same weights"
    for run in runs:
        assert all(map(math.isfinite, run.losses))
        assert len(run.warnings) <= 1, run.warnings


@pytest.mark.campaign
def test_two_epochs(framework, dataset, whole):
    runs = whole(framework)
    check(runs)
    for run, told in zip(runs, framework.expected(str(dataset), EPOCHS), strict=True):
        assert run.ids == told.ids
        assert run.pixels == told.pixels
        assert len(run.losses) == EPOCHS * steps(framework)
    for epoch in range(EPOCHS):
        first = epoch * steps(framework)
        shown = [i for run in runs for ids in run.ids[first : first + steps(framework)] for i in ids]
        assert len(shown) == len(set(shown)) == steps(framework) * framework.rows
        assert set(shown) <= set(range(COUNT)) and COUNT - len(shown) < framework.rows


def test_resume_in_mid_epoch(framework, job, whole, tmp_path):
    """The checkpoint is the framework's own; what follows it is what an uninterrupted run does, bit for bit."""
    saved = str(tmp_path / "saved")
    stop = steps(framework) + 2
    if framework.program == "hf_trainer":
        # Trainer names its folders.
        saved = str(tmp_path / f"checkpoint-{stop}")
    first = framework.launch(tmp_path / "first", replace(job, stop_after=stop, save=saved))
    rest = framework.launch(tmp_path / "rest", replace(job, resume=saved))
    check(first)
    check(rest)
    for one, two, all_ in zip(first, rest, whole(framework), strict=True):
        assert len(one.ids) == stop
        assert one.ids + two.ids == all_.ids
        assert one.pixels + two.pixels == all_.pixels
        assert one.losses + two.losses == all_.losses
        assert two.weights == all_.weights


def test_accumulation(framework, job, whole, tmp_path):
    """Four batches for each optimiser step, all alive at once, with the default memory budget."""
    runs = framework.launch(tmp_path / "run", replace(job, accumulate=4))
    check(runs)
    for run, all_ in zip(runs, whole(framework), strict=True):
        assert run.ids == all_.ids and run.pixels == all_.pixels
        assert run.updates == EPOCHS * math.ceil(steps(framework) / 4)
        assert run.weights != all_.weights


@pytest.mark.campaign
def test_early_stop(framework, job, whole, tmp_path):
    runs = framework.launch(tmp_path / "run", replace(job, stop_after=3))
    check(runs)
    for run, all_ in zip(runs, whole(framework), strict=True):
        assert run.ids == all_.ids[:3] and run.pixels == all_.pixels[:3]
        assert run.again == all_.ids[steps(framework)], "iterating again is the next epoch"


@pytest.mark.campaign
def test_evaluation(framework, job, tmp_path):
    runs = framework.launch(tmp_path / "run", replace(job, evaluate=True))
    check(runs)
    shown = [i for run in runs for ids in run.ids for i in ids if i >= 0]
    assert sorted(shown) == list(range(COUNT))
    assert [run.counted for run in runs] == [COUNT] * framework.ranks
    for run in runs:
        assert 0 < run.correct == run.correct_one_by_one
