"""Lightning: the loaders are passed directly, also for DDP; its checkpoints contain the loader's state.

    python examples/lightning_train.py DATASET --devices 2
    python examples/lightning_train.py DATASET --devices 2 --resume checkpoints/last.ckpt
"""

import argparse
from functools import partial

import lightning
import torch
import torchmetrics.classification
import torchvision
from lightning.pytorch.callbacks import ModelCheckpoint

import shardtool as st
from shardtool.torch import Loader


class Classifier(lightning.LightningModule):
    def __init__(self, model: str, classes: int, lr: float):
        super().__init__()
        self.save_hyperparameters()
        self.net = torchvision.models.get_model(model, num_classes=classes)
        # Rows without a sample have label −100.
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(classes, average="micro", ignore_index=-100)

    def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
        loss = torch.nn.functional.cross_entropy(self.net(batch["image"]), batch["label"])
        self.log("loss", loss, prog_bar=True, batch_size=len(batch["label"]))
        return loss

    def validation_step(self, batch: dict[str, torch.Tensor], _: int) -> None:
        self.accuracy.update(self.net(batch["image"]), batch["label"])

    def on_validation_epoch_end(self) -> None:
        self.log("accuracy", self.accuracy.compute(), prog_bar=True)
        self.accuracy.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.hparams["lr"], momentum=0.9, weight_decay=1e-4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=256, help="rows on each device")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--checkpoints", default="checkpoints")
    parser.add_argument("--resume")
    args = parser.parse_args()

    dataset = st.Dataset(args.dataset)
    train, val = dataset.split("train"), dataset.split(args.eval_split)
    # The loader's threads normalise on the host; Lightning moves batches to its devices.
    image = partial(st.Image, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    loader = Loader(train, args.batch_size, image([st.RandomResizedCrop(args.size), st.HorizontalFlip()]))
    plain = image([st.Resize(args.size * 256 // 224), st.CenterCrop(args.size)])
    evaluation = Loader(val, args.batch_size, plain, order=st.Sequential())

    trainer = lightning.Trainer(
        max_epochs=args.epochs,
        accelerator=args.accelerator,
        devices=args.devices,
        strategy="ddp" if args.devices > 1 else "auto",
        # The loader divides each epoch among the ranks itself.
        use_distributed_sampler=False,
        callbacks=[ModelCheckpoint(args.checkpoints, save_last=True, every_n_train_steps=args.save_every)],
        logger=False,
    )
    model = Classifier(args.model, train.num_classes, lr=0.1)
    trainer.fit(model, loader, evaluation, ckpt_path=args.resume)
    print(f"accuracy {trainer.callback_metrics['accuracy']:.4f}", flush=True)


if __name__ == "__main__":
    main()
