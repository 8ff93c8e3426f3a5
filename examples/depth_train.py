"""Monocular depth: a PNG of depths follows the crops of its image, without values between those of two pixels.

    shardtool pack SOURCE DATASET --map image='rgb/**.jpg' --map depth='depth/**.png'
    python examples/depth_train.py DATASET --checkpoint run.pt

Run again, it resumes from the checkpoint. The error is the mean relative one of the pixels that have a depth, not 0.
"""

import argparse
import os
from functools import partial
from typing import Any

import torch
from torchvision.models import segmentation

import shardtool as st
from shardtool.torch import Loader


def metres_of(batch: Any, unit: float) -> torch.Tensor:
    """Returns the depths in metres, `[N, H, W]`; 0 without a depth, and outside the image."""
    return batch["depth"][..., 0].float() / unit  # type: ignore[no-any-return]


def loss_of(output: torch.Tensor, depth: torch.Tensor) -> torch.Tensor:
    """Returns the scale-invariant error of the logarithms (Eigen et al., 2014), of the pixels with a depth."""
    known = depth > 0
    difference = output[known] - depth[known].log()
    return (difference**2).mean() - 0.85 * difference.mean() ** 2


@torch.no_grad()
def error_of(model: torch.nn.Module, loader: Loader, unit: float) -> float:
    """Returns the mean relative error of the pixels with a depth."""
    total = pixels = 0.0
    for batch in loader:
        depth = metres_of(batch, unit)
        known = depth > 0
        found = model(batch["image"])["out"][:, 0].exp()
        total += float(((found - depth).abs() / depth)[known].sum())
        pixels += float(known.sum())
    return total / max(pixels, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--unit", type=float, default=1000.0, help="of a stored depth, for a metre: 1000 of NYU, 256 of KITTI")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    crop, rotation = st.RandomResizedCrop(args.size, (0.5, 1.0)), st.RandomRotation(3, interpolation="bilinear")
    steps = [crop, st.RandomHorizontalFlip(), rotation, st.ColorJitter(0.4, 0.4, 0.4)]
    image = partial(st.Image, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    depth = st.FurtherImage("depth", kind="values")
    loader = Loader(train, args.batch_size, [image(steps), depth])
    plain = image([st.ResizeTo((args.size, args.size))])
    test = Loader(val, args.batch_size, [plain, depth], order=st.Sequential())
    model = segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=1)
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
            loss = loss_of(model(batch["image"])["out"][:, 0], metres_of(batch, args.unit))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.save_every == 0 or step == len(loader):
                torch.save((torch.get_rng_state(), {n: p.state_dict() for n, p in parts.items()}), f"{args.checkpoint}.tmp")
                os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        print(f"epoch {epoch}: relative error {error_of(model.eval(), test, args.unit):.3f}", flush=True)


if __name__ == "__main__":
    main()
