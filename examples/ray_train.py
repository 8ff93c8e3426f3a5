"""Image classification with Ray Train: a loader in each worker, checkpoints inside an epoch, restarts with other workers.

    pip install "ray[train]" torch torchvision shardtool
    shardtool pack train s3://datasets/imagenet && shardtool pack val s3://datasets/imagenet --split val
    python examples/ray_train.py s3://datasets/imagenet --storage s3://runs --workers 4 8 --gpu

If nodes are lost, Ray starts the workers again from the last checkpoint, here with four at least, and with eight once there are
nodes. Run again, it continues there, also with another number: each image is seen once in an epoch, whatever the numbers were.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from typing import Any

import ray.train
import torch
import torchvision
from ray.train.torch import TorchTrainer, get_device, prepare_model

import shardtool as st
from shardtool.torch import Loader


def make_loader(config: dict[str, Any]) -> Loader:
    """Returns the loader of this worker, with its rank and the number of workers."""
    context = ray.train.get_context()
    split = st.Dataset(config["dataset"]).split("train")
    steps = [st.RandomResizedCrop(config["size"]), st.HorizontalFlip()]
    image = st.Image(steps, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    replica = st.Replica(context.get_world_rank(), context.get_world_size())
    # Rows without a sample, in the last step, have the label −100, which the loss ignores.
    return Loader(split, config["batch_size"], image, remainder="mask", replica=replica, device=str(get_device()))


def work(config: dict[str, Any]) -> None:
    """Trains in one worker."""
    loader = make_loader(config)
    net = torchvision.models.get_model(config["model"], num_classes=len(st.Dataset(config["dataset"]).classes))
    model = prepare_model(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    parts: dict[str, Any] = {"net": net, "optimizer": optimizer, "loader": loader}
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            for name, state in torch.load(os.path.join(folder, "state.pt"), map_location=get_device()).items():
                parts[name].load_state_dict(state)

    def save(loss: float, epoch: int) -> None:
        first = ray.train.get_context().get_world_rank() == 0
        with tempfile.TemporaryDirectory() as folder:
            if first:  # the loader's state is the same on every rank
                torch.save({name: part.state_dict() for name, part in parts.items()}, os.path.join(folder, "state.pt"))
            saved = ray.train.Checkpoint.from_directory(folder) if first else None
            ray.train.report({"loss": loss, "epoch": epoch}, checkpoint=saved)

    for epoch in range(loader.state_dict()["epoch"], config["epochs"]):
        for step, batch in enumerate(loader, loader.steps_done + 1):
            loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % config["save_every"] == 0 or step == len(loader):
                save(loss.item(), epoch)


def train(config: dict[str, Any], workers: Any, gpu: bool, run: ray.train.RunConfig, loop: Callable[..., None] = work) -> Any:
    """Trains with this number of workers, or with as many of (minimum, maximum) as there are, from its last checkpoint."""
    scaling = ray.train.ScalingConfig(num_workers=workers, use_gpu=gpu)
    return TorchTrainer(loop, train_loop_config=config, scaling_config=scaling, run_config=run).fit()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--storage", default=os.path.abspath("ray_runs"), help="folder or URL that all nodes share")
    parser.add_argument("--name", default="imagenet", help="name of the run")
    parser.add_argument("--workers", type=int, nargs="+", default=[2], help="a number, or minimum and maximum")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--model", default="resnet50", help="name of a torchvision model")
    for name, value in (("size", 224), ("batch-size", 256), ("epochs", 90), ("save-every", 500)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    run = ray.train.RunConfig(args.name, args.storage, failure_config=ray.train.FailureConfig(max_failures=3))
    result = train(vars(args), tuple(args.workers) if args.workers[1:] else args.workers[0], args.gpu, run)
    print(f"epoch {args.epochs - 1}: loss {result.metrics['loss']:.4f}" if result.metrics else "trained before")


if __name__ == "__main__":
    main()
