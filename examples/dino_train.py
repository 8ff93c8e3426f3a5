"""DINO: two global and six local crops of each image, which is decoded once.

    python examples/dino_train.py DATASET --model resnet18 --checkpoint run.pt

Run again, it resumes from the checkpoint. The accuracy is that of the nearest neighbours of the features.
"""

import argparse
import copy
import os
from typing import Any

import torch
import torchvision
from torch.nn import functional

import shardtool as st
from shardtool.torch import Loader


def views(size: int, **normal: Any) -> st.Views:
    """Returns the crops of the paper, which uses 224 and 96 pixels."""
    common = [st.RandomHorizontalFlip(), st.RandomApply([st.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), st.RandomGrayscale(0.2)]
    large = st.RandomResizedCrop(size, scale=(0.4, 1.0), interpolation="bicubic")
    small = st.RandomResizedCrop(size * 96 // 224, scale=(0.05, 0.4), interpolation="bicubic")
    blur, solarize = st.GaussianBlur(size // 10 * 2 + 1), st.RandomSolarize(128, 0.2)
    first, second = [large, *common, blur], [large, *common, st.RandomApply([blur], 0.1), solarize]
    return st.Views({"first": first, "second": second, "local": ([small, *common], 6)}, **normal)


def loss_of(student: list[torch.Tensor], teacher: list[torch.Tensor], centre: torch.Tensor) -> torch.Tensor:
    """Returns the mean cross-entropy of every pair of different views."""
    targets = [functional.softmax((t - centre) / 0.04, -1) for t in teacher]
    logs = [functional.log_softmax(s / 0.1, -1) for s in student]
    return torch.stack([-(t * s).sum(-1).mean() for i, t in enumerate(targets) for j, s in enumerate(logs) if i != j]).mean()


@torch.no_grad()
def accuracy_of(model: torch.nn.Module, known: Loader, asked: Loader) -> float:
    """Returns how often the nearest feature of the known samples has the label of the asked one."""
    each = [[(model(b["image"])[b["valid"]], b["label"][b["valid"]]) for b in loader] for loader in (known, asked)]
    (keys, labels), (queries, expected) = ([torch.cat(parts) for parts in zip(*found)] for found in each)
    keys, queries = functional.normalize(keys), functional.normalize(queries)
    return float((labels[(queries @ keys.T).argmax(1)] == expected).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--model", default="resnet50", help="name of a torchvision model")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    normal: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
    loader = Loader(train, args.batch_size, views(args.size, **normal))
    plain = st.Image([st.Resize(args.size), st.CenterCrop(args.size)], **normal)
    known, asked = (Loader(s, args.batch_size, plain, order=st.Sequential()) for s in (train, val))
    student = torchvision.models.get_model(args.model, num_classes=128)
    teacher, centre = copy.deepcopy(student).requires_grad_(False), torch.zeros(128)
    teacher.register_buffer("centre", centre)  # part of the checkpoint
    optimizer = torch.optim.AdamW(student.parameters(), lr=args.lr)
    parts: dict[str, Any] = {"student": student, "teacher": teacher, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        for name, state in torch.load(args.checkpoint).items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        for step, batch in enumerate(loader, loader.steps_done + 1):
            crops = [batch[f"image.{name}"] for name in ("first", "second", *(f"local.{n}" for n in range(6)))]
            ours = [teacher(crop) for crop in crops[:2]]
            loss = loss_of([student(crop) for crop in crops], ours, centre)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            centre.lerp_(torch.cat(ours).mean(0), 0.1)
            for old, new in zip(teacher.parameters(), student.parameters()):
                old.lerp_(new.detach(), 0.004)
            if step % args.save_every == 0 or step == len(loader):
                torch.save({name: part.state_dict() for name, part in parts.items()}, f"{args.checkpoint}.tmp")
                os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        print(f"epoch {epoch}: accuracy {accuracy_of(copy.deepcopy(teacher).eval(), known, asked):.3f}", flush=True)


if __name__ == "__main__":
    main()
