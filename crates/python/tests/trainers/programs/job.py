"""The job of a training program of the matrix, and its report. The programs and the tests share this module.

Every program is a module with `main(job, run)`. A test calls it in its own process, or starts one process per rank:
`python programs/job.py PROGRAM JOBS.json`, directly or through a launcher. Each rank writes a report of each job to a file.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pathlib
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import shardtool as st

#: Pixels of a side of every image.
SIZE = 32
SEED = 7
#: Transforms of a training loader and of an evaluation loader.
TRAINING = [st.RandomResizedCrop(SIZE), st.HorizontalFlip()]
EVALUATION = [st.ResizeTo(SIZE)]


@dataclass(frozen=True)
class Job:
    """One run of a program."""

    dataset: str
    #: Folder for the ranks' reports.
    reports: str
    batch_size: int
    ranks: int = 1
    #: The job's name in the reports.
    name: str = "run"
    epochs: int = 2
    #: Batches for each optimiser step.
    accumulate: int = 1
    #: Stop after this many batches, with the framework's own way of stopping; 0 trains all epochs.
    stop_after: int = 0
    #: Where to save a checkpoint when stopping, and where to resume from.
    save: str | None = None
    resume: str | None = None
    #: Evaluate an untrained network instead of training.
    evaluate: bool = False

    @property
    def split(self) -> st.Split:
        return st.Dataset(self.dataset).split("train")

    def loader(self, kind: Callable[..., Any], pixels: Mapping[str, Any] = {}, **options: Any) -> Any:
        """Returns the loader of a training run, with rank and world size from the launcher. `pixels` are those of the image."""
        return kind(self.split, self.batch_size, st.Image(TRAINING, **pixels), order=st.Shuffled(SEED), **options)

    def evaluation_loader(self, kind: Callable[..., Any], pixels: Mapping[str, Any] = {}, **options: Any) -> Any:
        """Returns a loader that delivers every sample exactly once over all ranks, with a masked remainder."""
        return kind(self.split, self.batch_size, st.Image(EVALUATION, **pixels), order=st.Sequential(), **options)

    def one_by_one(self, kind: Callable[..., Any]) -> Any:
        """Returns a loader of all evaluation samples on this rank, one per batch, as a reference for the evaluation."""
        return kind(self.split, 1, EVALUATION, order=st.Sequential(), replica=st.Replica(0, 1))


@dataclass
class Run:
    """What one rank did."""

    rank: int = 0
    #: Ids of each batch, −1 for rows without a sample.
    ids: list[list[int]] = field(default_factory=list)
    #: A checksum of each batch's pixels.
    pixels: list[int] = field(default_factory=list)
    #: Loss of each batch.
    losses: list[float] = field(default_factory=list)
    #: Optimiser steps.
    updates: int = 0
    #: A checksum of the weights after training.
    weights: int = 0
    #: Ids of the first batch of another epoch after stopping early.
    again: list[int] = field(default_factory=list)
    #: Evaluation: samples that the framework's metric counted, correct ones among them, and correct ones one by one.
    counted: int = 0
    correct: int = 0
    correct_one_by_one: int = 0
    #: Number of loader threads left after the program.
    threads: int = 0
    #: Warnings of the module.
    warnings: list[str] = field(default_factory=list)

    def saw(self, ids: Any, image: Any) -> None:
        """Records a delivered batch of host arrays."""
        self.ids.append(np.asarray(ids).tolist())
        self.pixels.append(zlib.crc32(np.ascontiguousarray(np.asarray(image))))

    def weigh(self, parameters: Any) -> None:
        """Records the final weights: tensors or arrays on the host."""
        value = 0
        for parameter in parameters:
            value = zlib.crc32(np.ascontiguousarray(parameter), value)
        self.weights = value


def loader_threads() -> int:
    """Returns the number of threads of loaders in this process. (`st.verify` keeps a pool for its next call.)"""
    names = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text())
        except OSError:
            # The thread ended meanwhile.
            continue
    return sum(name.startswith("shardtool-load") for name in names)


def execute(program: str, job: Job) -> Run:
    """Runs a program in this process and writes its report."""
    run = Run(rank=int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", 0))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        importlib.import_module(program).main(job, run)
    run.warnings = [str(each.message) for each in caught if "shardtool" in f"{each.category.__module__} {each.message}"]
    # Frameworks leave reference cycles, and threads take a moment to end after the loader is freed.
    gc.collect()
    deadline = time.monotonic() + 5
    while loader_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    run.threads = loader_threads()
    path = pathlib.Path(job.reports) / f"{job.name}-{run.rank}.json"
    path.write_text(json.dumps(asdict(run)))
    return run


if __name__ == "__main__":
    for one in json.loads(pathlib.Path(sys.argv[2]).read_text()):
        execute(sys.argv[1], Job(**one))
