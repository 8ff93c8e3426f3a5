"""Ray Train: a TorchTrainer with two workers on this machine."""

from __future__ import annotations

import json
import pathlib
import tempfile
from dataclasses import asdict

import networks
import ray
import ray.train.torch
import torch
from job import Job, Run

from shardtool.torch import Loader


def worker(config: dict) -> None:
    job = Job(**config)
    context = ray.train.get_context()
    run = Run(rank=context.get_world_rank())
    net = networks.make()
    model = ray.train.torch.prepare_model(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loader = job.loader(Loader)
    first_epoch = 0
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            saved = torch.load(pathlib.Path(folder) / "state.pt")
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first_epoch = saved["loader"]["epoch"]
    for _ in range(first_epoch, job.epochs):
        for batch in loader:
            run.saw(batch["id"], batch["image"])
            loss = networks.loss_of(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.losses.append(loss.item())
            if len(run.ids) == job.stop_after:
                break
        if len(run.ids) == job.stop_after:
            break
    networks.weigh(run, net)
    with tempfile.TemporaryDirectory() as folder:
        saved = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
        torch.save(saved, pathlib.Path(folder) / "state.pt")
        checkpoint = ray.train.Checkpoint.from_directory(folder) if run.rank == 0 else None
        ray.train.report({"loss": run.losses[-1]}, checkpoint=checkpoint)
    (pathlib.Path(job.reports) / f"{job.name}-{run.rank}.json").write_text(json.dumps(asdict(run)))
