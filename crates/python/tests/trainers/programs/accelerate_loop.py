"""Hugging Face Accelerate: one process, or several under torchrun."""

from __future__ import annotations

import contextlib

import networks
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from job import Job, Run

from shardtool.torch import Loader


def main(job: Job, run: Run) -> None:
    # Accelerate's states are singletons of the process.
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=job.accumulate)
    evaluate(job, run, accelerator) if job.evaluate else train(job, run, accelerator)


def train(job: Job, run: Run, accelerator: Accelerator) -> None:
    loader = job.loader(Loader)
    net = networks.make()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    model, optimizer, prepared = accelerator.prepare(net, optimizer, loader)
    assert prepared is loader, "it wraps what is a DataLoader, and nothing else"
    accelerator.register_for_checkpointing(loader)
    first_epoch = 0
    if job.resume:
        accelerator.load_state(job.resume)
        first_epoch = loader.state_dict()["epoch"]
    steps, window = len(loader), []
    for _ in range(first_epoch, job.epochs):
        for number, batch in enumerate(loader, loader.steps_done + 1):
            run.saw(batch["id"], batch["image"])
            window = [*window, batch][-job.accumulate :]
            # `accelerator.accumulate` detects the end of an epoch only for a DataLoader, so windows end here.
            accelerator.sync_gradients = number % job.accumulate == 0 or number == steps
            with contextlib.nullcontext() if accelerator.sync_gradients else accelerator.no_sync(model):
                loss = networks.loss_of(model, batch)
                accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            run.updates += accelerator.sync_gradients
            run.losses.append(loss.item())
            # All ranks follow the decision of one.
            if len(run.ids) == job.stop_after and accelerator.is_main_process:
                accelerator.set_trigger()
            if accelerator.check_trigger():
                break
        if job.stop_after and len(run.ids) >= job.stop_after:
            break
    if job.save:
        accelerator.save_state(job.save)
    if job.stop_after and not job.save:
        run.again = next(iter(loader))["id"].tolist()
    networks.weigh(run, net)


@torch.no_grad()
def evaluate(job: Job, run: Run, accelerator: Accelerator) -> None:
    net = networks.make().eval()
    for batch in accelerator.prepare(job.evaluation_loader(Loader)):
        run.saw(batch["id"], batch["image"])
        right = net(networks.floats(batch["image"])).argmax(1) == batch["label"]
        right, valid = accelerator.gather_for_metrics((right, batch["valid"]))
        run.counted += int(valid.sum())
        run.correct += int((right & valid).sum())
    networks.one_by_one(job, run, net)
