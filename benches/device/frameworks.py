#!/usr/bin/env python3
"""Trains on batches that the Python module uploads, with each framework installed on this machine:

    frameworks.py DATASET [--batches N]

DATASET is a packed dataset with at least N batches of 64. For PyTorch, JAX and CuPy, `values` compares every array with
`(x / 255 - mean) / std` of the host loader's pixels in double precision, and `lagging` drops each batch while slow work that
reads it is still queued on the framework's own stream. Both need the module `shardtool` on PYTHONPATH. Prints JSON lines;
exits with 1 if a value is wrong. Without a GPU the loaders normalise on the host: that only shows that this script works.
"""

import argparse
import importlib.util
import json
import shutil
import sys
import time

import numpy as np

import shardtool as st

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: Half a unit in the last place, relative, of each type.
ROUNDING = {"float32": 1.2e-7, "float16": 4.9e-4, "bfloat16": 3.95e-3}
#: Where batches are delivered.
DEVICE = "cuda:0" if shutil.which("nvidia-smi") else "cpu"
#: Side of the matrices that keep the device busy.
SIDE = 4096 if DEVICE != "cpu" else 256
STEPS = [st.RandomResizedCrop(224), st.HorizontalFlip()]
BATCH = 64


def normalised(pixels, layout):
    exact = (pixels.astype(np.float64) / 255 - MEAN) / STD
    return exact if layout == "NHWC" else exact.transpose(0, 3, 1, 2)


class Torch:
    """PyTorch: `shardtool.torch.Loader`."""

    def __init__(self):
        import torch
        import shardtool.torch

        self.torch, self.loader = torch, shardtool.torch.Loader
        self.version = torch.__version__
        self.weights = torch.randn(SIDE, SIDE, device=DEVICE)

    def host(self, array):
        return array.double().cpu().numpy()

    def slow(self):
        """Queues a few milliseconds of work on the current stream."""
        product = self.weights
        for _ in range(8):
            product = product @ self.weights
        return product

    def total(self, array):
        """Queues the sum of an array after the slow work on the same stream, without waiting for it."""
        self.slow()
        return array.double().sum()


class Jax:
    """JAX: `shardtool.jax.Loader`, without synchronisation in the loop."""

    def __init__(self):
        import jax
        import jax.numpy as jnp
        import shardtool.jax

        jax.config.update("jax_enable_x64", True)
        self.version, self.loader = jax.__version__, shardtool.jax.Loader
        weights = jnp.asarray(np.random.default_rng(0).standard_normal((SIDE, SIDE), np.float32))

        @jax.jit
        def total(array, weights):
            product = weights
            for _ in range(8):
                product = product @ weights
            # A dependency, so that the array is read after the slow product.
            zero = jnp.where(jnp.isnan(product.sum()), 0.0, 0.0)
            return array.astype(jnp.float64).sum() + zero

        self.total = lambda array: total(array, weights)

    def host(self, array):
        return np.asarray(array.astype("float64"))


class CuPy:
    """CuPy: `cupy.from_dlpack` of the arrays of `shardtool.Loader`."""

    def __init__(self):
        import cupy

        self.cupy, self.version = cupy, cupy.__version__
        self.weights = cupy.random.standard_normal((SIDE, SIDE), dtype=cupy.float32)

    def loader(self, *arguments, **options):
        for batch in st.Loader(*arguments, **options):
            yield {"image": self.cupy.from_dlpack(batch["image"]), "host": batch["host"]}

    def host(self, array):
        return self.cupy.asnumpy(array.astype(self.cupy.float64))

    def total(self, array):
        product = self.weights
        for _ in range(8):
            product = product @ self.weights
        return array.astype(self.cupy.float64).sum()


def values(name, framework, split):
    cases = [(d, l) for d in ROUNDING for l in ("NCHW", "NHWC") if (name, d) != ("cupy", "bfloat16")]
    for dtype, layout in cases:
        options = dict(order=st.Shuffled(5), remainder="drop")
        host = st.Loader(split, BATCH, STEPS, **options)
        image = st.Image(STEPS, mean=MEAN, std=STD, dtype=dtype, layout=layout)
        device = framework.loader(split, BATCH, image, device=DEVICE, **options)
        worst = 0.0
        for number, (theirs, ours) in enumerate(zip(host, device)):
            exact = normalised(theirs["image"], layout)
            found = framework.host(ours["image"])
            worst = max(worst, float((abs(found - exact) - abs(exact) * ROUNDING[dtype]).max()))
            del ours
            if number == 2:
                break
        yield {"check": "frameworks", "case": "values", "framework": name, "dtype": dtype, "layout": layout,
               "beyond_rounding": worst, "good": worst <= 4e-7}


def lagging(name, framework, split, batches):
    """Drops each batch while the work that reads it is still queued."""
    options = dict(order=st.Shuffled(1), remainder="drop")
    expected = {}
    for number, batch in zip(range(batches), st.Loader(split, BATCH, STEPS, **options)):
        expected[number] = normalised(batch["image"], "NHWC").sum()
    image = st.Image(STEPS, mean=MEAN, std=STD, dtype="float32", layout="NHWC")
    loader = framework.loader(split, BATCH, image, device=DEVICE, **options)
    totals = []
    began = time.perf_counter()
    for _, batch in zip(range(batches), loader):
        totals.append(framework.total(batch["image"]))
        del batch
    seconds = time.perf_counter() - began
    found = [float(total) for total in totals]
    # A sum of 9.6 million f32 values, each within its rounding.
    worst = float(max(abs(found[n] - e) / BATCH for n, e in expected.items()))
    return {"check": "frameworks", "case": "lagging", "framework": name, "on": DEVICE, "batches": len(found),
            "images_per_s": BATCH * len(found) / seconds, "largest_difference_per_image": worst,
            "good": len(found) == batches and worst < 0.05}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--batches", type=int, default=40)
    options = parser.parse_args()
    split = st.Dataset(options.dataset).split("train")
    bad = 0
    for name, module, make in [("torch", "torch", Torch), ("jax", "jax", Jax), ("cupy", "cupy", CuPy)]:
        if importlib.util.find_spec(module) is None:
            print(json.dumps({"check": "frameworks", "framework": name, "skipped": f"no {module} here"}), flush=True)
            continue
        framework = make()
        for line in [*values(name, framework, split), lagging(name, framework, split, options.batches)]:
            bad += not line["good"]
            print(json.dumps(line | {"version": framework.version}), flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
