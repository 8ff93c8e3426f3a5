"""Semantic segmentation: the label map follows the crops of its image.

    shardtool pack photos.csv DATASET --column mask:file
    python examples/segmentation_train.py DATASET --classes 21 --checkpoint run.pt

Run again, it resumes from the checkpoint. The accuracy is that of the pixels that have a label.
"""

import argparse
import os
from functools import partial
from typing import Any

import torch
from torch.nn import functional
from torchvision.models import segmentation

import shardtool as st
from shardtool.torch import Loader

#: The label of pixels without a class, and of those outside the image.
IGNORED = 255


@torch.no_grad()
def accuracy_of(model: torch.nn.Module, loader: Loader) -> float:
    """Returns the share of labelled pixels whose class is right."""
    right = pixels = 0
    for batch in loader:
        label = batch["mask"]
        right += int((model(batch["image"])["out"].argmax(1) == label).sum())
        pixels += int((label != IGNORED).sum())
    return right / max(pixels, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--classes", type=int, default=21)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    steps = [
        st.ScaleJitter(args.size, (0.5, 2.0)),
        st.FixedSizeCrop(args.size, fill=(124, 116, 104)),
        st.RandomHorizontalFlip(),
        st.RandomRotation(10, interpolation="bilinear"),
        st.ColorJitter(0.4, 0.4, 0.4),
    ]
    image = partial(st.Image, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    mask = st.Mask("mask", fill=IGNORED)
    loader = Loader(train, args.batch_size, [image(steps), mask])
    plain = image([st.ResizeTo((args.size, args.size))])
    test = Loader(val, args.batch_size, [plain, mask], order=st.Sequential())
    model = segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=args.classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        random, states = torch.load(args.checkpoint)
        torch.set_rng_state(random)
        for name, state in states.items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        model.train()
        for step, batch in enumerate(loader, loader.steps_done + 1):
            loss = functional.cross_entropy(model(batch["image"])["out"], batch["mask"].long(), ignore_index=IGNORED)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.save_every == 0 or step == len(loader):
                torch.save((torch.get_rng_state(), {n: p.state_dict() for n, p in parts.items()}), f"{args.checkpoint}.tmp")
                os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        print(f"epoch {epoch}: accuracy {accuracy_of(model.eval(), test):.3f}", flush=True)


if __name__ == "__main__":
    main()
