#!/usr/bin/env python3
"""Measures the cost of Python: CPU time per image of `shardtool bench` and of a Python loop over the same loader,
alternately.

    python benches/python/overhead.py DATASET [--rounds N] [--epochs N] [--size N] [--batch N]

Run it with an interpreter that has the wheel (`pip install ./crates/python`): the command in the wheel is the same build.
Each side runs in a separate process: a warm-up epoch, then the measured epochs, with RandomResizedCrop and flip and
otherwise default options. The CPU time is that of all threads. The loop accesses the arrays of every batch, as a training
step would before it copies them to its device. It checks that both sides get the same number of samples, and that each
epoch of the loop has each sample at most once.

Prints one JSON object per round, then the median of the ratios; exit status 1 if the numbers of samples differ.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time


def loop(arguments: argparse.Namespace) -> None:
    """The Python side, in its own process."""
    import numpy as np

    import shardtool as st

    split = st.Dataset(arguments.dataset).split("train")
    steps = [st.RandomResizedCrop(arguments.size), st.HorizontalFlip()]
    loader = st.Loader(split, arguments.batch, steps)
    epochs: list[list[np.ndarray]] = []
    began = 0.0
    for epoch in range(1 + arguments.epochs):
        if epoch == 1:
            began = time.process_time()
        ids = []
        for batch in loader:
            image, label = batch["image"], batch["label"]
            assert image.shape[0] == len(label) and image.flags.c_contiguous
            ids.append(batch["id"])
        epochs.append(ids)
    cpu = time.process_time() - began
    # The command makes no such checks: they are not part of the measured time.
    shown = list(map(np.concatenate, epochs))
    assert all(len(np.unique(ids)) == len(ids) for ids in shown), "an epoch shows each sample once"
    samples = sum(map(len, shown[1:]))
    print(json.dumps({"samples": samples, "cpu_s_per_1000": cpu / samples * 1e3}))


def command(arguments: argparse.Namespace) -> list[str]:
    options = {"epochs": arguments.epochs, "size": arguments.size, "batch": arguments.batch}
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [sys.executable, "-m", "shardtool", "bench", arguments.dataset, "--split", "train", "--json", *flags]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--loop", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.loop:
        loop(arguments)
        return 0
    sides = {"command": command(arguments), "loop": [sys.executable, __file__, *sys.argv[1:], "--loop"]}
    ratios = []
    for number in range(arguments.rounds):
        found = {}
        # The order of a pair alternates.
        for name in sorted(sides, reverse=number % 2 == 1):
            found[name] = json.loads(subprocess.run(sides[name], check=True, capture_output=True, text=True).stdout)
        if found["command"]["samples"] != found["loop"]["samples"]:
            print(f"the command saw {found['command']['samples']} samples, the loop {found['loop']['samples']}")
            return 1
        seconds = {name: answer["cpu_s_per_1000"] for name, answer in found.items()}
        ratios.append(seconds["loop"] / seconds["command"])
        print(json.dumps({"cpu_s_per_1000": seconds, "ratio": ratios[-1]}), flush=True)
    print(json.dumps({"rounds": len(ratios), "ratio": statistics.median(ratios), "from": min(ratios), "to": max(ratios)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
