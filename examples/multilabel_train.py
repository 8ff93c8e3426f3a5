"""Several classes for each image: rows of 0 and 1, mixed with their images, and a loss for each class.

    shardtool pack photos.jsonl DATASET --column tags:int64
    python examples/multilabel_train.py DATASET --classes 80 --checkpoint run.pt

The records have the class ids of their image in the feature `tags`. Run again, it resumes from the checkpoint. The accuracy is
the mean of the classes' average precisions.
"""

import argparse
import os
from functools import partial
from typing import Any

import torch
import torchvision
from torch.nn import functional

import shardtool as st
from shardtool.torch import Loader


@torch.no_grad()
def accuracy_of(model: torch.nn.Module, loader: Loader) -> float:
    """Returns the mean of the average precisions of the classes that occur."""
    found = [(model(batch["image"])[batch["valid"]], batch["tags"][batch["valid"]]) for batch in loader]
    scores, truth = torch.cat([scores for scores, _ in found]), torch.cat([truth for _, truth in found])
    # Of each class, the samples from the surest one on.
    right = truth.gather(0, scores.argsort(0, descending=True))
    precisions = right.cumsum(0) / torch.arange(1, len(right) + 1)[:, None]
    occurs = right.sum(0) > 0
    return float(((precisions * right).sum(0)[occurs] / right.sum(0)[occurs]).mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--model", default="resnet50", help="name of a torchvision model")
    parser.add_argument("--size", type=int, default=448)
    parser.add_argument("--classes", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    image = partial(st.Image, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    tags = st.Column("tags", multi_hot=args.classes)
    crop = image([st.RandomResizedCrop(args.size, scale=(0.5, 1.0)), st.RandomHorizontalFlip()])
    mixed = st.MixUp(0.2, num_classes=args.classes)
    loader = Loader(train, args.batch_size, [crop, tags], batch_transform=mixed)
    plain = image([st.ResizeTo(args.size)])
    test = Loader(val, args.batch_size, [plain, tags], order=st.Sequential())
    model = torchvision.models.get_model(args.model, num_classes=args.classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        random, states = torch.load(args.checkpoint)
        torch.set_rng_state(random)
        for name, state in states.items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        model.train()
        for step, batch in enumerate(loader, loader.steps_done + 1):
            loss = functional.binary_cross_entropy_with_logits(model(batch["image"]), batch["tags"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.save_every == 0 or step == len(loader):
                torch.save((torch.get_rng_state(), {n: p.state_dict() for n, p in parts.items()}), f"{args.checkpoint}.tmp")
                os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        print(f"epoch {epoch}: accuracy {accuracy_of(model.eval(), test):.3f}", flush=True)


if __name__ == "__main__":
    main()
