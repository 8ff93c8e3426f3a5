"""DETR: class ids, boxes as fractions, and padding that is masked, for the models of transformers.

    shardtool pack annotations.json DATASET --from coco --images photos
    python examples/detr_train.py DATASET --checkpoint run.pt

Run again, it resumes from the checkpoint. The accuracy is the share of boxes that are found, with an overlap of at least a half.
"""

import argparse
import os
from functools import partial
from typing import Any

import torch
from torchvision.ops import box_convert, box_iou
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

import shardtool as st
from shardtool.torch import Loader

MEAN, STD, PADDING = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), (124, 116, 104)


def inputs_of(batch: dict[str, Any]) -> dict[str, Any]:
    """Returns images, the mask of their pixels, and the objects, as the model takes them."""
    images = batch["image"]
    rows = [(batch["labels"].row(i), box_convert(batch["boxes"].row(i), "xyxy", "cxcywh")) for i in range(len(images))]
    labels = [{"class_labels": classes, "boxes": boxes / images.shape[-1]} for classes, boxes in rows]  # of square images
    return {"pixel_values": images, "pixel_mask": batch["pixel_mask"], "labels": labels}


@torch.no_grad()
def accuracy_of(model: torch.nn.Module, loader: Loader[dict[str, Any]]) -> float:
    """Returns the share of boxes that one of the queries overlaps and gives their class."""
    found = []
    for inputs in loader:
        result = model(pixel_values=inputs["pixel_values"], pixel_mask=inputs["pixel_mask"])
        for logits, boxes, target in zip(result.logits, result.pred_boxes, inputs["labels"]):
            overlaps = box_iou(boxes, target["boxes"], fmt="cxcywh")
            found.append(((overlaps >= 0.5) & (logits[:, :-1].argmax(-1)[:, None] == target["class_labels"])).any(0))
    return float(torch.cat(found).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--size", type=int, default=1333, help="longest side")
    parser.add_argument("--classes", type=int, default=80)
    parser.add_argument("--width", type=int, default=256, help="of the transformer; that of ResNet-50 follows it")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    sides, crop = [args.size * side // 1333 for side in range(480, 801, 32)], st.FixedSizeCrop(args.size, fill=PADDING)
    steps = [st.RandomHorizontalFlip(), st.RandomShortestSize(sides, max_size=args.size), crop]
    image, plain = partial(st.Image, mean=MEAN, std=STD), [st.Resize(sides[-1], args.size), crop]
    fields: list[Any] = [st.PixelMask(), st.Objects()]
    loader = Loader(train, args.batch_size, [image(steps), *fields], collate_fn=inputs_of)
    test = Loader(val, args.batch_size, [image(plain), *fields], order=st.Sequential(), collate_fn=inputs_of)
    channels = [args.width * n for n in (1, 2, 4, 8)]
    sizes: Any = {"hidden_sizes": channels, "embedding_size": args.width // 4, "out_features": ["stage4"]}
    wide: Any = {"d_model": args.width, "encoder_ffn_dim": 8 * args.width, "decoder_ffn_dim": 8 * args.width}
    model = DetrForObjectDetection(DetrConfig(backbone_config=ResNetConfig(**sizes), **wide | {"num_labels": args.classes}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        random, states = torch.load(args.checkpoint)
        torch.set_rng_state(random)
        for name, state in states.items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        model.train()
        for step, inputs in enumerate(loader, loader.steps_done + 1):
            loss = model(**inputs).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.save_every == 0 or step == len(loader):
                torch.save((torch.get_rng_state(), {n: p.state_dict() for n, p in parts.items()}), f"{args.checkpoint}.tmp")
                os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        print(f"epoch {epoch}: accuracy {accuracy_of(model.eval(), test):.3f}", flush=True)


if __name__ == "__main__":
    main()
