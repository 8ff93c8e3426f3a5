"""PyTorch without a framework: one process, or DistributedDataParallel under torchrun."""

from __future__ import annotations

import atexit
import contextlib
import os

import networks
import torch
import torch.distributed as dist
from job import Job, Run
from torch.nn.parallel import DistributedDataParallel

from shardtool.torch import Loader


def main(job: Job, run: Run) -> None:
    distributed = "TORCHELASTIC_RUN_ID" in os.environ
    if distributed and not dist.is_initialized():
        dist.init_process_group("gloo")
        atexit.register(dist.destroy_process_group)
    evaluate(job, run, distributed) if job.evaluate else train(job, run, distributed)


def train(job: Job, run: Run, distributed: bool) -> None:
    net = networks.make()
    model = DistributedDataParallel(net) if distributed else net
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = job.loader(Loader)
    first_epoch = 0
    if job.resume:
        saved = torch.load(job.resume)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first_epoch = saved["loader"]["epoch"]
    for _ in range(first_epoch, job.epochs):
        batches = iter(loader)
        # Keeps a window of batches, as trainers that scale the loss by the window's samples do.
        while window := [batch for _, batch in zip(range(job.accumulate), batches)]:
            for number, batch in enumerate(window, 1):
                run.saw(batch["id"], batch["image"])
                last = number == len(window)
                with contextlib.nullcontext() if last or not distributed else model.no_sync():
                    loss = networks.loss_of(model, batch) / len(window)
                    loss.backward()
                run.losses.append(loss.item())
            optimizer.step()
            optimizer.zero_grad()
            run.updates += 1
            if len(run.ids) == job.stop_after:
                break
        if job.stop_after and len(run.ids) >= job.stop_after:
            break
    if job.save and run.rank == 0:
        saved = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
        torch.save(saved, job.save)
    if job.stop_after and not job.save:
        run.again = next(iter(loader))["id"].tolist()
    networks.weigh(run, net)


@torch.no_grad()
def evaluate(job: Job, run: Run, distributed: bool) -> None:
    net = networks.make().eval()
    totals = torch.zeros(2, dtype=torch.int64)
    for batch in job.evaluation_loader(Loader):
        run.saw(batch["id"], batch["image"])
        right = net(networks.floats(batch["image"])).argmax(1) == batch["label"]
        totals += torch.stack([batch["valid"].sum(), (right & batch["valid"]).sum()])
    if distributed:
        dist.all_reduce(totals)
    run.counted, run.correct = totals.tolist()
    networks.one_by_one(job, run, net)
