"""ImageNet classification with DistributedDataParallel: evaluation over all ranks, checkpoints inside an epoch.

    shardtool pack train imagenet && shardtool pack val imagenet --split val
    torchrun --nproc-per-node 8 examples/imagenet_ddp.py imagenet --checkpoint run.pt

Run again, it resumes from the checkpoint, on any number of ranks.
"""

import argparse
import os
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel

import shardtool as st
from shardtool.torch import Loader


@torch.no_grad()
def evaluate(model: torch.nn.Module, loader: Loader, device: str) -> float:
    """Returns the accuracy over every sample exactly once. Rows without a sample have label −100."""
    model.eval()
    totals = torch.zeros(2, device=device)
    for batch in loader:
        right = model(batch["image"]).argmax(1) == batch["label"]
        totals += torch.stack([right.sum(), (batch["label"] >= 0).sum()])
    if dist.is_initialized():
        dist.all_reduce(totals)
    model.train()
    return float(totals[0] / totals[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--model", default="resnet50", help="name of a torchvision model")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    args = parser.parse_args()
    cuda = torch.cuda.is_available()
    device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if cuda else "cpu"
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if cuda else "gloo")
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    # Images arrive on the device as normalised float32 [N, 3, H, W].
    image = partial(st.Image, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    loader = Loader(train, args.batch_size, image([st.RandomResizedCrop(args.size), st.HorizontalFlip()]), device=device)
    plain = image([st.Resize(args.size * 256 // 224), st.CenterCrop(args.size)])
    evaluation = Loader(val, args.batch_size, plain, order=st.Sequential(), device=device)
    net = torchvision.models.get_model(args.model, num_classes=train.num_classes).to(device)
    model = DistributedDataParallel(net) if dist.is_initialized() else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))
    parts: dict[str, Any] = {"net": net, "optimizer": optimizer, "schedule": schedule, "loader": loader}
    if os.path.exists(args.checkpoint):
        for name, state in torch.load(args.checkpoint, map_location=device).items():
            parts[name].load_state_dict(state)
    first = not dist.is_initialized() or dist.get_rank() == 0

    def save() -> None:
        if first:  # the loader's state is the same on every rank
            torch.save({name: part.state_dict() for name, part in parts.items()}, f"{args.checkpoint}.tmp")
            os.replace(f"{args.checkpoint}.tmp", args.checkpoint)

    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        for step, batch in enumerate(loader, loader.steps_done + 1):
            loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % args.save_every == 0 or step == len(loader):
                save()
        accuracy = evaluate(model, evaluation, device)
        if first:
            print(f"epoch {epoch}: accuracy {accuracy:.4f}", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
