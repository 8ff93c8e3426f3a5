"""Shared by the PyTorch programs: a tiny network, its loss, and an evaluation of one sample at a time."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch
from job import SIZE, Job, Run

import shardtool.torch


def seed() -> None:
    """Sets one thread and one seed, so that runs are equal bit for bit."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def make() -> torch.nn.Module:
    seed()
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIZE * SIZE * 3, 3))


def floats(image: torch.Tensor) -> torch.Tensor:
    """Converts u8 NHWC to float NCHW in [0, 1]."""
    return image.permute(0, 3, 1, 2) / 255


def loss_of(net: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(net(floats(batch["image"])), batch["label"])


def weigh(run: Run, net: torch.nn.Module) -> None:
    # Not the running statistics of batch normalisation, which are each rank's own.
    run.weigh(value.detach().numpy() for value in net.parameters())


@torch.no_grad()
def one_by_one(job: Job, run: Run, logits: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Counts correct predictions without batches, ranks or masks. `logits` maps float NCHW images to logits."""
    for batch in job.one_by_one(shardtool.torch.Loader):
        run.correct_one_by_one += int(logits(floats(batch["image"])).argmax(1) == batch["label"])
