#!/usr/bin/env python3
"""Measures how fast datasets are delivered to the device, compared with PyTorch's DataLoader on the same machine:

    datasets.py SHARDTOOL PHOTOS SCRATCH [--images N] [--epochs N] [--rounds N]

SHARDTOOL is the binary, PHOTOS a folder of class folders of JPEG files, SCRATCH a folder to put datasets into. Prints JSON
lines. Needs PyTorch; torchvision for the comparison. Without a GPU everything stays on the host, and the output says
so: that only shows that this script works.

`raw`         photographs of shorter side 256 stored as pixels: no decoding, so reading, cropping and uploading bound the rate
`dataloader`  JPEG files, RandomResizedCrop(224) and flip, batches of 256 normalised f16 [N, 3, H, W] on the device:
              `torch.utils.data.DataLoader(ImageFolder, num_workers=CPUs, pin_memory=True)` and `shardtool bench`, alternately
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import torch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def shardtool(binary, *arguments):
    """Runs the command, and returns its output if `--json` is given."""
    run = subprocess.run([binary, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout) if "--json" in arguments else None


def bench(options, dataset, on_device):
    device = ["--device", "cuda:0", "--dtype", "float16"] if on_device else []
    sizes = ["--batch", options.batch, "--size", 224, "--epochs", options.epochs]
    return shardtool(options.shardtool, "bench", dataset, "--json", *sizes, *device)


def prepare(options):
    """Packs the photographs, repeated until there are enough, as JPEG and as pixels."""
    files = sorted(f for f in options.photos.glob("*/*") if f.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"{options.photos} has no folders of JPEG files")
    rows = [f"{files[i % len(files)]},{files[i % len(files)].parent.name},key {i}" for i in range(options.images)]
    listed = options.scratch / "list.csv"
    listed.write_text("\n".join(["path,label,key", *rows]) + "\n")
    jpeg, raw = options.scratch / "jpeg", options.scratch / "raw"
    shardtool(options.shardtool, "pack", listed, jpeg)
    shardtool(options.shardtool, "pack", listed, raw, "--pixels", "raw", "--resize-shorter", 256)
    return jpeg, raw


def raw_rate(options, raw, gpu):
    host = bench(options, raw, False)
    line = {"check": "raw", "host_images_per_s": host["images_per_s"], "batch": options.batch, "on": gpu or "CPU"}
    if gpu:
        device = bench(options, raw, True)
        line |= {"device_images_per_s": device["images_per_s"], "share": device["images_per_s"] / host["images_per_s"], **device["device"]}
    print(json.dumps(line), flush=True)


def dataloader(options, gpu):
    """Runs a warm-up epoch, then the measured epochs with the same workers; returns images per second."""
    from torchvision import transforms
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    steps = transforms.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.PILToTensor()])
    folder = ImageFolder(str(options.photos), steps)
    numbers = [i % len(folder) for i in range(options.images)]
    target = torch.device("cuda:0" if gpu else "cpu")
    loader = torch.utils.data.DataLoader(
        torch.utils.data.Subset(folder, numbers),
        batch_size=options.batch,
        shuffle=True,
        drop_last=True,
        num_workers=options.workers,
        pin_memory=bool(gpu),
        persistent_workers=True,
    )
    mean, std = (torch.tensor(v, device=target).view(1, 3, 1, 1) for v in (MEAN, STD))
    images, began = 0, 0.0
    for epoch in range(1 + options.epochs):
        if epoch == 1:
            began = time.perf_counter()
        for batch, _ in loader:
            batch = batch.to(target, non_blocking=True)
            batch = ((batch.float() / 255 - mean) / std).half()
            images += len(batch) if epoch else 0
        if gpu:
            torch.cuda.synchronize()
    return images / (time.perf_counter() - began)


def compare(options, jpeg, gpu):
    if importlib.util.find_spec("torchvision") is None:
        print(json.dumps({"check": "dataloader", "skipped": "no torchvision here"}), flush=True)
        return
    theirs, ours, ratios = [], [], []
    for _ in range(options.rounds):
        theirs.append(dataloader(options, gpu))
        ours.append(bench(options, jpeg, bool(gpu))["images_per_s"])
        ratios.append(ours[-1] / theirs[-1])
    line = {"dataloader_images_per_s": statistics.median(theirs), "shardtool_images_per_s": statistics.median(ours)}
    line |= {"ratio": statistics.median(ratios), "ratios": ratios, "workers": options.workers, "batch": options.batch}
    print(json.dumps({"check": "dataloader", **line, "torch": torch.__version__, "on": gpu or "CPU"}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shardtool", type=pathlib.Path)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--images", type=int, default=8192)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    jpeg, raw = prepare(options)
    raw_rate(options, raw, gpu)
    compare(options, jpeg, gpu)


if __name__ == "__main__":
    main()
