"""Detection: boxes follow the crops, as SSD's recipe has them; with `--masks`, instance segmentation by Mask R-CNN.

    shardtool pack annotations.json DATASET --from coco --images photos
    python examples/detection_train.py DATASET --checkpoint run.pt [--masks]

Run again, it resumes from the checkpoint. The accuracy is the share of boxes that are found, with an overlap of at least a half.
"""

import argparse
import os
from typing import Any

import torch
from torchvision.models import get_model
from torchvision.ops import box_iou

import shardtool as st
from shardtool.torch import Loader


def targets_of(batch: dict[str, Any], first: int) -> list[dict[str, torch.Tensor]]:
    """Returns boxes, classes and perhaps masks of every sample; `first` is the number that models give to the first class."""
    names = [name for name in ("boxes", "labels", "masks") if name in batch]
    targets = [{name: batch[name].row(i) for name in names} for i in range(len(batch["image"]))]
    return [target | {"labels": target["labels"] + first} for target in targets]


@torch.no_grad()
def accuracy_of(model: torch.nn.Module, loader: Loader) -> float:
    """Returns the share of boxes that one of the ten surest results of their class overlaps."""
    found = boxes = 0
    for batch in loader:
        targets = targets_of(batch, 1)
        for result, target, valid in zip(model(list(batch["image"])), targets, batch["valid"]):
            if valid and len(target["boxes"]):
                same = result["labels"][:10, None] == target["labels"]
                overlaps = box_iou(result["boxes"][:10], target["boxes"]) * same
                found += int((overlaps.amax(0) >= 0.5).sum()) if len(overlaps) else 0
                boxes += len(target["boxes"])
    return found / max(boxes, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--size", type=int, default=320)
    parser.add_argument("--classes", type=int, default=91, help="number of classes, the background included")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--masks", action="store_true", help="train Mask R-CNN on the masks of objects")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    zoom, resize = st.RandomZoomOut(fill=(123, 117, 104), side_range=(1.0, 3.0), p=0.5), st.ResizeTo(args.size)
    steps = [zoom, st.RandomIoUCrop(), resize, st.RandomHorizontalFlip(), st.RandomPhotometricDistort()]
    loader = Loader(train, args.batch_size, [st.Image(steps, dtype="float32"), st.Objects(masks=args.masks)])
    plain = st.Image([resize], dtype="float32")
    test = Loader(val, args.batch_size, [plain, st.Objects()], order=st.Sequential())
    name = "maskrcnn_resnet50_fpn" if args.masks else "ssdlite320_mobilenet_v3_large"
    sides = {"min_size": args.size, "max_size": args.size} if args.masks else {}
    model = get_model(name, weights=None, weights_backbone=None, num_classes=args.classes, **sides)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        random, states = torch.load(args.checkpoint)
        torch.set_rng_state(random)
        for name, state in states.items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        model.train()
        for step, batch in enumerate(loader, loader.steps_done + 1):
            # Classes count from 1, since 0 is the background.
            losses = model(list(batch["image"]), targets_of(batch, 1))
            loss = torch.stack(list(losses.values())).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.save_every == 0 or step == len(loader):
                torch.save((torch.get_rng_state(), {n: p.state_dict() for n, p in parts.items()}), f"{args.checkpoint}.tmp")
                os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        print(f"epoch {epoch}: accuracy {accuracy_of(model.eval(), test):.3f}", flush=True)


if __name__ == "__main__":
    main()
