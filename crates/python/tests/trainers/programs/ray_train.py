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


def train(job: Job, storage: pathlib.Path, checkpoint: str | None = None) -> str:
    """Trains on two workers, from a checkpoint if given; returns the path of the last checkpoint."""
    trainer = ray.train.torch.TorchTrainer(
        worker,
        train_loop_config={"job": asdict(job), "checkpoint": checkpoint},
        scaling_config=ray.train.ScalingConfig(num_workers=job.ranks, resources_per_worker={"CPU": 1}),
        run_config=ray.train.RunConfig(name=job.name, storage_path=str(storage)),
        torch_config=ray.train.torch.TorchConfig(backend="gloo"),
    )
    return trainer.fit().checkpoint.path


def worker(config: dict) -> None:
    job, checkpoint = Job(**config["job"]), config["checkpoint"]
    context = ray.train.get_context()
    run = Run(rank=context.get_world_rank())
    net = networks.make()
    model = ray.train.torch.prepare_model(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loader = job.loader(Loader)
    first_epoch = 0
    if checkpoint:
        with ray.train.Checkpoint(checkpoint).as_directory() as folder:
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
