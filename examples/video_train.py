"""Trains a small 3D network on clips of videos, each of which is a folder of frames:

    ffmpeg -i VIDEO.mp4 -vf fps=25,scale=-2:256 -q:v 2 videos/CLASS/VIDEO/%06d.jpg
    shardtool pack videos DATASET --from clips --fps 25
    python examples/video_train.py DATASET --checkpoint run.pt

Run again, it resumes from the checkpoint. The accuracy is that of the mean over several clips of each video.
"""

import argparse
import os
from functools import partial
from typing import Any

import torch
from torch import nn

import shardtool as st
from shardtool.torch import Loader


def network(classes: int) -> nn.Module:
    """Returns a network that takes [N, 3, frames, H, W]."""
    return nn.Sequential(
        nn.Conv3d(3, 16, (3, 5, 5), stride=(1, 2, 2), padding=(1, 2, 2)),
        nn.BatchNorm3d(16),
        nn.ReLU(),
        nn.Conv3d(16, 32, 3, stride=2, padding=1),
        nn.BatchNorm3d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(32, classes),
    )


@torch.no_grad()
def accuracy_of(model: nn.Module, loader: Loader) -> float:
    """Returns the share of videos whose class is right, by the mean over their clips."""
    right = total = 0
    model.eval()
    for batch in loader:
        clips = batch["frames"]  # [N, clips, frames, 3, H, W]
        scores = model(clips.flatten(0, 1).transpose(1, 2)).softmax(-1).unflatten(0, clips.shape[:2]).mean(1)
        valid = batch["valid"]
        right += int((scores.argmax(1) == batch["label"])[valid].sum())
        total += int(valid.sum())
    model.train()
    return right / total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--stride", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    args = parser.parse_args()
    dataset = st.Dataset(args.dataset)
    clip = partial(st.Clip, "frames", frames=args.frames, stride=args.stride, mean=(0.45,) * 3, std=(0.225,) * 3)
    random = clip([st.RandomResizedCrop(args.size, scale=(0.4, 1.0)), st.ColorJitter(0.2, 0.2)])
    loader = Loader(dataset.split("train"), args.batch_size, random)
    even = clip([st.Resize(args.size), st.CenterCrop(args.size)], sampling="even", clips=3)
    asked = Loader(dataset.split(args.eval_split), 4, even, order=st.Sequential())
    model = network(len(dataset.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        for name, state in torch.load(args.checkpoint).items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        for batch in loader:
            scores = model(batch["frames"].transpose(1, 2))
            loss = nn.functional.cross_entropy(scores, batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save({name: part.state_dict() for name, part in parts.items()}, f"{args.checkpoint}.tmp")
        os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        print(f"epoch {epoch}: accuracy {accuracy_of(model, asked):.3f}", flush=True)


if __name__ == "__main__":
    main()
