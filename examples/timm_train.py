"""timm: `(image, label)` tuples for its loops, with RandAugment, erasing, MixUp, CutMix, soft targets and an averaged model.

    python examples/timm_train.py DATASET --model resnet50 --checkpoint run.pt

Run again, it resumes from the checkpoint.
"""

import argparse
import os
from functools import partial
from typing import Any

import timm
import timm.data
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch

import shardtool as st
from shardtool.torch import Loader


@torch.no_grad()
def validate(model: torch.nn.Module, loader: Loader[tuple[Any, Any]]) -> float:
    model.eval()
    top1 = timm.utils.AverageMeter()
    for image, target in loader:
        shown = target >= 0  # rows without a sample have label −100
        (accuracy,) = timm.utils.accuracy(model(image)[shown], target[shown], topk=(1,))
        top1.update(accuracy.item(), int(shown.sum()))
    return float(top1.avg)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    args = parser.parse_args()

    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    classes = train.num_classes
    model = timm.create_model(args.model, pretrained=False, num_classes=classes).to(device)
    config = timm.data.resolve_data_config({}, model=model)
    image = partial(st.Image, mean=config["mean"], std=config["std"])
    make = partial(Loader[Any], device=device, collate_fn=st.image_label)
    crop = [st.RandomResizedCrop(args.size, interpolation="bicubic"), st.RandomHorizontalFlip()]
    augmented = [*crop, st.RandAugment(2, 9), st.RandomErasing(0.25, value="random")]
    loader = make(train, args.batch_size, image(augmented), batch_transform=[st.MixUp(0.2), st.CutMix(1.0)])
    plain = image([st.Resize(args.size), st.CenterCrop(args.size)])
    evaluation = make(val, args.batch_size, plain, order=st.Sequential())

    optimizer = timm.optim.create_optimizer_v2(model, opt="sgd", lr=args.lr, momentum=0.9)
    schedule, _ = timm.scheduler.create_scheduler_v2(optimizer, num_epochs=args.epochs, warmup_epochs=0)
    assert schedule is not None
    average = timm.utils.ModelEmaV3(model, decay=0.999)
    criterion = timm.loss.SoftTargetCrossEntropy()
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "average": average.module, "loader": loader}
    if os.path.exists(args.checkpoint):
        for name, state in torch.load(args.checkpoint, map_location=device).items():
            parts[name].load_state_dict(state)

    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        schedule.step(epoch)
        model.train()
        losses = timm.utils.AverageMeter()
        for images, target in loader:
            loss = criterion(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
            losses.update(loss.item(), len(images))
        torch.save({name: part.state_dict() for name, part in parts.items()}, f"{args.checkpoint}.tmp")
        os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        accuracy = validate(average.module, evaluation)
        print(f"epoch {epoch}: loss {losses.avg:.4f}, accuracy {accuracy:.2f} %", flush=True)


if __name__ == "__main__":
    main()
