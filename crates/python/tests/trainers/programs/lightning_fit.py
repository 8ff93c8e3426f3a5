"""Lightning: one process, DDP with Lightning's own launcher, and DDP under torchrun."""

from __future__ import annotations

import lightning
import networks
import torch
import torchmetrics
from job import Job, Run

from shardtool.torch import Loader


class Module(lightning.LightningModule):
    def __init__(self, job: Job, run: Run):
        super().__init__()
        self.job, self.run = job, run
        self.net = networks.make()
        self.window: list[dict] = []
        self.counted = torchmetrics.SumMetric()
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(3, average="micro", ignore_index=-100)

    def training_step(self, batch, _):
        self.run.rank = self.global_rank
        self.run.saw(batch["id"], batch["image"])
        # The inputs of a whole accumulation window are kept, for example to log them.
        self.window = [*self.window, batch][-self.job.accumulate :]
        loss = networks.loss_of(self.net, batch)
        self.run.losses.append(loss.item())
        return loss

    def on_train_batch_end(self, *_):
        if len(self.run.ids) == self.job.stop_after:
            if self.job.save:
                self.trainer.save_checkpoint(self.job.save)
            self.trainer.should_stop = True

    def validation_step(self, batch, _):
        self.run.rank = self.global_rank
        self.run.saw(batch["id"], batch["image"])
        self.counted.update(batch["valid"].sum())
        self.accuracy.update(self.net(networks.floats(batch["image"])), batch["label"])

    def on_validation_epoch_end(self):
        # Metrics are reduced over all ranks here.
        counted = int(self.counted.compute())
        self.run.counted, self.run.correct = counted, round(float(self.accuracy.compute()) * counted)

    def configure_optimizers(self):
        return torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)


def main(job: Job, run: Run) -> None:
    module = Module(job, run)
    # Made before Lightning launches the other ranks: rank and world size are not known yet.
    loader = job.evaluation_loader(Loader) if job.evaluate else job.loader(Loader)
    trainer = lightning.Trainer(
        max_epochs=job.epochs,
        min_epochs=0,
        accelerator="cpu",
        devices=job.ranks,
        strategy="ddp" if job.ranks > 1 else "auto",
        accumulate_grad_batches=job.accumulate,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    if job.evaluate:
        trainer.validate(module, loader, verbose=False)
        networks.one_by_one(job, run, module.net)
        return
    trainer.fit(module, loader, ckpt_path=job.resume, weights_only=False if job.resume else None)
    run.updates = trainer.global_step
    if job.stop_after and not job.save:
        run.again = next(iter(loader))["id"].tolist()
    networks.weigh(run, module.net)
