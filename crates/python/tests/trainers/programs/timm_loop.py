"""timm: the loop of its training script, with Mixup, soft targets, an averaged model and its checkpoint saver."""

from __future__ import annotations

import networks
import numpy as np
import timm
import timm.data
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch
from job import Job, Run

import shardtool as st
from shardtool.torch import Loader

MEAN, STD = timm.data.IMAGENET_DEFAULT_MEAN, timm.data.IMAGENET_DEFAULT_STD


def main(job: Job, run: Run) -> None:
    networks.seed()
    model = timm.create_model("test_resnet", pretrained=False, num_classes=3)

    def pair(batch):
        run.saw(batch["id"], batch["image"])
        return st.image_label(batch)

    pixels = {"dtype": "float32", "mean": MEAN, "std": STD}
    if job.evaluate:
        validate(job, run, model, job.evaluation_loader(Loader, pixels, collate_fn=pair))
    else:
        train(job, run, model, job.loader(Loader, pixels, collate_fn=pair))


def train(job: Job, run: Run, model, loader) -> None:
    optimizer = timm.optim.create_optimizer_v2(model, opt="sgd", lr=0.01, momentum=0.9)
    scheduler, _ = timm.scheduler.create_scheduler_v2(optimizer, num_epochs=job.epochs, updates_per_epoch=len(loader))
    average = timm.utils.ModelEmaV3(model, decay=0.9)
    # Mixup pairs rows from both ends of a batch, so the batch size is even.
    mixup = timm.data.Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=3)
    criterion = timm.loss.SoftTargetCrossEntropy()
    first_epoch = 0
    if job.resume:
        saved = torch.load(job.resume, weights_only=False)
        model.load_state_dict(saved["state_dict"])
        optimizer.load_state_dict(saved["optimizer"])
        average.module.load_state_dict(saved["average"])
        loader.load_state_dict(saved["loader"])
        np.random.set_state(saved["random"])
        first_epoch = saved["loader"]["epoch"]
    model.train()
    steps = len(loader)
    for epoch in range(first_epoch, job.epochs):
        losses = timm.utils.AverageMeter()
        window = []
        for number, (image, target) in enumerate(loader, loader.steps_done + 1):
            window = [*window, image][-job.accumulate :]
            image, target = mixup(image, target)
            loss = criterion(model(image), target) / job.accumulate
            loss.backward()
            run.losses.append(loss.item())
            losses.update(loss.item(), len(image))
            if number % job.accumulate == 0 or number == steps:
                optimizer.step()
                optimizer.zero_grad()
                average.update(model)
                scheduler.step_update(num_updates=epoch * steps + number, metric=losses.avg)
                run.updates += 1
            if len(run.ids) == job.stop_after:
                break
        if len(run.ids) == job.stop_after:
            break
        scheduler.step(epoch + 1, losses.avg)
    if job.save:
        saved = {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
        saved |= {"average": average.module.state_dict(), "loader": loader.state_dict()}
        torch.save({**saved, "random": np.random.get_state()}, job.save)
    if job.stop_after and not job.save:
        next(iter(loader))
        run.again = run.ids.pop()
        run.pixels.pop()
    networks.weigh(run, average.module)


@torch.no_grad()
def validate(job: Job, run: Run, model, loader) -> None:
    model.eval()
    top1 = timm.utils.AverageMeter()
    for image, target in loader:
        # Masked rows have label −100.
        shown = target >= 0
        (accuracy,) = timm.utils.accuracy(model(image)[shown], target[shown], topk=(1,))
        top1.update(accuracy.item(), int(shown.sum()))
    run.counted, run.correct = top1.count, round(top1.sum / 100)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    networks.one_by_one(job, run, lambda image: model((image - mean) / std))
