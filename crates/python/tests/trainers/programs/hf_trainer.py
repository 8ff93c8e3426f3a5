"""Hugging Face's Trainer: one process, or several under torchrun."""

from __future__ import annotations

import json
import pathlib
import tempfile

import networks
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from job import Job, Run
from transformers import (
    ResNetConfig,
    ResNetForImageClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from shardtool.torch import Loader

PIXELS = {"dtype": "float32"}


class LoaderTrainer(Trainer):
    """A Trainer whose loaders are ours."""

    def __init__(self, *args, train_loader=None, eval_loader=None, **options):
        super().__init__(*args, **options)
        self.train_loader, self.eval_loader = train_loader, eval_loader

    def get_train_dataloader(self):
        return self.train_loader

    def get_eval_dataloader(self, eval_dataset=None):
        return self.eval_loader


class LoaderState(TrainerCallback):
    """Writes the loader's state into each checkpoint, and loads it from the one that training resumes from."""

    def __init__(self, loader, resume):
        self.loader, self.resume = loader, resume

    def on_save(self, args, state, control, **_):
        if state.is_world_process_zero:
            file = pathlib.Path(args.output_dir, f"checkpoint-{state.global_step}", "loader.json")
            file.with_suffix(".tmp").write_text(json.dumps(self.loader.state_dict()))
            file.with_suffix(".tmp").replace(file)

    def on_train_begin(self, args, state, control, **_):
        if self.resume:
            self.loader.load_state_dict(json.loads((pathlib.Path(self.resume) / "loader.json").read_text()))


class Stop(TrainerCallback):
    """Stops after a number of optimiser steps, and saves before that if asked to."""

    def __init__(self, job: Job, run: Run):
        self.job, self.run = job, run

    def on_step_end(self, args, state, control, **_):
        self.run.updates += 1
        if state.global_step * self.job.accumulate == self.job.stop_after:
            control.should_training_stop = True
            control.should_save = bool(self.job.save)
        return control


def main(job: Job, run: Run) -> None:
    # Accelerate's states are singletons of the process.
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    networks.seed()
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8], depths=[1], layer_type="basic", num_labels=3)
    model = ResNetForImageClassification(config)

    def inputs(batch):
        run.saw(batch["id"], batch["image"])
        return {"pixel_values": batch["image"], "labels": batch["label"]}

    with tempfile.TemporaryDirectory() as scratch:
        folder = job.save or job.resume
        arguments = TrainingArguments(
            output_dir=str(pathlib.Path(folder).parent) if folder else scratch,
            num_train_epochs=job.epochs,
            per_device_train_batch_size=job.batch_size,
            per_device_eval_batch_size=job.batch_size,
            gradient_accumulation_steps=job.accumulate,
            learning_rate=0.01,
            # The loader resumes by its own state: Trainer need not read and drop batches.
            ignore_data_skip=True,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            ddp_backend="gloo" if job.ranks > 1 else None,
        )
        if job.evaluate:
            evaluate(job, run, model, arguments, job.evaluation_loader(Loader, PIXELS, collate_fn=inputs))
            return
        loader = job.loader(Loader, PIXELS, collate_fn=inputs)
        losses = []

        def loss_of(outputs, labels, num_items_in_batch=None):
            loss = torch.nn.functional.cross_entropy(outputs.logits, labels)
            losses.append(loss.item())
            return loss / job.accumulate if job.accumulate > 1 else loss

        trainer = LoaderTrainer(
            model,
            arguments,
            train_loader=loader,
            compute_loss_func=loss_of,
            callbacks=[LoaderState(loader, job.resume), Stop(job, run)],
        )
        trainer.train(resume_from_checkpoint=job.resume)
        run.losses = losses
        if job.stop_after and not job.save:
            next(iter(loader))
            run.again = run.ids.pop()
            run.pixels.pop()
        networks.weigh(run, model)


def evaluate(job: Job, run: Run, model, arguments, loader) -> None:
    def count(prediction):
        valid = prediction.label_ids != -100
        right = prediction.predictions.argmax(1) == prediction.label_ids
        return {"counted": int(valid.sum()), "correct": int((right & valid).sum())}

    trainer = LoaderTrainer(model, arguments, eval_loader=loader, eval_dataset=job.split, compute_metrics=count)
    metrics = trainer.evaluate()
    run.counted, run.correct = metrics["eval_counted"], metrics["eval_correct"]
    networks.one_by_one(job, run, lambda image: model(pixel_values=image).logits)
