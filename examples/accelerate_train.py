"""Hugging Face Accelerate: gradient accumulation, evaluation over all ranks, checkpoints with the loader's state.

    accelerate launch examples/accelerate_train.py DATASET --accumulate 4 --state run

Run again, it resumes from the state of the last epoch.
"""

import argparse
import contextlib
import os
import pathlib
from functools import partial

import torch
import torchvision
from accelerate import Accelerator

import shardtool as st
from shardtool.torch import Loader


@torch.no_grad()
def evaluate(accelerator: Accelerator, model: torch.nn.Module, loader: Loader) -> float:
    """Returns the accuracy over every sample exactly once. Rows without a sample have label −100."""
    model.eval()
    correct = samples = 0
    for batch in loader:
        label = batch["label"].to(accelerator.device)
        predicted = model(batch["image"].to(accelerator.device)).argmax(1)
        right, shown = accelerator.gather((predicted == label, label >= 0))
        correct += int(right.sum())
        samples += int(shown.sum())
    model.train()
    return correct / samples


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=256, help="rows on each rank")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--state", default="state", help="folder of the checkpoints")
    args = parser.parse_args()

    accelerator = Accelerator()
    dataset = st.Dataset(args.dataset)
    train, val = dataset.split("train"), dataset.split(args.eval_split)
    image = partial(st.Image, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    loader = Loader(train, args.batch_size, image([st.RandomResizedCrop(args.size), st.HorizontalFlip()]))
    plain = image([st.Resize(args.size), st.CenterCrop(args.size)])
    evaluation = Loader(val, args.batch_size, plain, order=st.Sequential())
    net = torchvision.models.get_model(args.model, num_classes=train.num_classes)
    # The loaders need no `prepare`: they divide each epoch among the ranks themselves.
    model, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    accelerator.register_for_checkpointing(loader)
    if saved := sorted(pathlib.Path(args.state).glob("[0-9]*")):
        accelerator.load_state(f"{saved[-1]}")

    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        for number, batch in enumerate(loader, loader.steps_done + 1):
            # Windows end with the epoch, whose end Accelerate detects only for a DataLoader.
            accelerator.sync_gradients = number % args.accumulate == 0 or number == len(loader)
            with contextlib.nullcontext() if accelerator.sync_gradients else accelerator.no_sync(model):
                output = model(batch["image"].to(accelerator.device))
                loss = torch.nn.functional.cross_entropy(output, batch["label"].to(accelerator.device))
                accelerator.backward(loss / args.accumulate)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.save_state(f"{args.state}/tmp")
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            os.replace(f"{args.state}/tmp", f"{args.state}/{epoch:04}")
        accelerator.print(f"epoch {epoch}: accuracy {evaluate(accelerator, model, evaluation):.4f}")


if __name__ == "__main__":
    main()
