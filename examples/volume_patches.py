"""3D segmentation: random patches of CT volumes and their label maps for a small convolutional network.

    python examples/volume_patches.py DATASET --checkpoint run.pt

DATASET has the arrays `ct` (floats, [depth, height, width]) and `organs` (uint8, the class of each voxel), written by
`shardtool.Writer`, or packed from .npy files (`docs/recipes.md`). Run again, it resumes from the checkpoint.
"""

import argparse
import os

import torch
from torch import nn

import shardtool as st
from shardtool.torch import Loader


class Net(nn.Module):
    """Three convolutions at full resolution, two at half of it."""

    def __init__(self, classes: int, width: int = 16):
        super().__init__()
        self.first = block(1, width)
        coarse = block(width, 2 * width), block(2 * width, width)
        self.coarse = nn.Sequential(nn.MaxPool3d(2), *coarse, nn.Upsample(scale_factor=2))
        self.last = nn.Sequential(block(2 * width, width), nn.Conv3d(width, classes, 1))

    def forward(self, ct: torch.Tensor) -> torch.Tensor:
        fine = self.first(ct)
        logits: torch.Tensor = self.last(torch.cat([fine, self.coarse(fine)], dim=1))
        return logits


def block(before: int, after: int) -> nn.Module:
    return nn.Sequential(nn.Conv3d(before, after, 3, padding=1), nn.InstanceNorm3d(after), nn.ReLU(inplace=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--size", type=int, default=64, help="side of a patch, an even number of voxels")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    args = parser.parse_args()

    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    patches = st.Arrays(
        ["ct", "organs"],
        crop=(args.size,) * 3,
        flip=(0.5, 0.5, 0.5),
        rotate90=(1, 2),
        pad_value={"ct": -1000, "organs": 0},
    )
    loader = Loader(st.Dataset(args.dataset).split("train"), args.batch_size, patches, remainder="pad")
    net = Net(args.classes).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), args.lr)
    epoch = 0
    if os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint, map_location=device)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        epoch = saved["epoch"]
        print(f"resumed before epoch {epoch}")

    while epoch < args.epochs:
        total, correct, voxels = 0.0, 0, 0
        for batch in loader:
            ct, organs = batch["ct"].to(device).unsqueeze(1), batch["organs"].to(device).long()
            logits = net(ct / 1000)
            loss = nn.functional.cross_entropy(logits, organs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * organs.numel()
            correct += int((logits.argmax(1) == organs).sum())
            voxels += organs.numel()
        epoch += 1
        print(f"epoch {epoch}: loss {total / voxels:.4f}, {correct / voxels:.1%} of voxels")
        state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save({**state, "loader": loader.state_dict()}, f"{args.checkpoint}.tmp")
        os.replace(f"{args.checkpoint}.tmp", args.checkpoint)


if __name__ == "__main__":
    main()
