"""Hugging Face's Trainer: a subclass returns the loaders, and a callback stores the loader's state in the checkpoints.

    torchrun --nproc-per-node 8 examples/hf_trainer.py DATASET --output run [--resume run/checkpoint-500]
"""

import argparse
import json
import pathlib
from functools import partial
from typing import Any

import numpy as np
import transformers
from transformers import ResNetConfig, ResNetForImageClassification

import shardtool as st
from shardtool.torch import Batch, Loader


class LoaderTrainer(transformers.Trainer):
    """A Trainer with given loaders."""

    loaders: tuple[Loader[Any], Loader[Any]]

    def get_train_dataloader(self) -> Any:
        return self.loaders[0]

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        return self.loaders[1]


class LoaderState(transformers.TrainerCallback):
    """Writes the loader's state into each checkpoint, and loads it when training resumes."""

    def __init__(self, loader: Loader[Any], resume: str | None):
        self.loader, self.resume = loader, resume

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            file = pathlib.Path(args.output_dir, f"checkpoint-{state.global_step}", "loader.json")
            file.with_suffix(".tmp").write_text(json.dumps(self.loader.state_dict()))
            file.with_suffix(".tmp").replace(file)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.resume:
            self.loader.load_state_dict(json.loads((pathlib.Path(self.resume) / "loader.json").read_text()))


def inputs(batch: Batch) -> dict[str, Any]:
    return {"pixel_values": batch["image"], "labels": batch["label"]}


def accuracy(prediction: transformers.EvalPrediction) -> dict[str, float]:
    label, predicted = np.asarray(prediction.label_ids), np.asarray(prediction.predictions).argmax(1)
    shown = label != -100  # rows without a sample have label −100
    return {"accuracy": float((predicted == label)[shown].mean()), "samples": int(shown.sum())}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=64, help="rows on each rank")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--save-steps", type=int, default=500)
    parser.add_argument("--output", default="run")
    parser.add_argument("--resume")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    image = partial(st.Image, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    crop = image([st.RandomResizedCrop(args.size), st.HorizontalFlip()])
    train_loader = Loader(train, args.batch_size, crop, collate_fn=inputs)
    plain = image([st.Resize(args.size), st.CenterCrop(args.size)])
    arguments = transformers.TrainingArguments(
        args.output, num_train_epochs=args.epochs, gradient_accumulation_steps=args.accumulate,
        save_steps=args.save_steps, report_to="none", ignore_data_skip=True,  # the loader resumes from its own state
    )
    config = ResNetConfig(layer_type="basic", hidden_sizes=[64, 128, 256, 512], depths=[2] * 4)
    config.num_labels = train.num_classes
    trainer = LoaderTrainer(ResNetForImageClassification(config), arguments, compute_metrics=accuracy, eval_dataset=val)
    trainer.loaders = train_loader, Loader(val, args.batch_size, plain, order=st.Sequential(), collate_fn=inputs)
    trainer.add_callback(LoaderState(train_loader, args.resume))
    trainer.train(resume_from_checkpoint=args.resume)
    print(trainer.evaluate(), flush=True)


if __name__ == "__main__":
    main()
