"""JAX without a framework: a jitted step in a loop that never waits for it, on one device or sharded over several."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np
from job import SIZE, Job, Run

from shardtool.jax import Loader

#: The weight of each value of an image in its checksum.
WEIGHTS = np.arange(1, SIZE * SIZE * 3 + 1, dtype=np.uint32)


def checksums(image: np.ndarray) -> list[int]:
    """The checksum of each row's pixels, as the jitted step computes it."""
    return (image.reshape(len(image), -1).astype(np.uint32) * WEIGHTS).sum(1, dtype=np.uint32).tolist()


def logits_of(weights, image):
    return (image.reshape(len(image), -1) / 255.0) @ weights["w"] + weights["b"]


def loss_of(weights, batch):
    chosen = jax.nn.log_softmax(logits_of(weights, batch["image"]))
    return -jnp.take_along_axis(chosen, batch["label"][:, None], 1).mean()


@jax.jit
def gradient(weights, batch):
    """Returns the gradient, and the values that the test compares, none of which keeps memory of the loader."""
    loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
    rows = batch["image"].reshape(len(batch["image"]), -1).astype(jnp.uint32)
    return gradients, (loss, batch["id"] + 0, (rows * WEIGHTS).sum(1, dtype=jnp.uint32))


@jax.jit
def update(weights, gradients):
    return jax.tree.map(lambda w, *g: w - 0.05 * sum(g) / len(g), weights, *gradients)


def main(job: Job, run: Run) -> None:
    devices = jax.local_devices()
    placed = {"device": devices} if len(devices) > 1 else {}
    evaluate(job, run, placed) if job.evaluate else train(job, run, placed)


def initial():
    return {"w": jnp.zeros((SIZE * SIZE * 3, 3)), "b": jnp.zeros(3)}


def train(job: Job, run: Run, placed: dict) -> None:
    weights, seen, steps = initial(), [], 0
    loader = job.loader(Loader, **placed)
    first_epoch = 0
    if job.resume:
        with open(job.resume, "rb") as file:
            weights, state = pickle.load(file)
        loader.load_state_dict(state)
        first_epoch = state["epoch"]
    for _ in range(first_epoch, job.epochs):
        window, images = [], []
        for batch in loader:
            gradients, shown = gradient(weights, {name: batch[name] for name in ("image", "label", "id")})
            seen.append(shown)
            window.append(gradients)
            # The inputs of a whole window are kept as well, for example to log them.
            images.append(batch["image"])
            steps += 1
            if len(window) == job.accumulate:
                weights = update(weights, window)
                window, images = [], []
                run.updates += 1
            if steps == job.stop_after:
                break
        if window:
            weights = update(weights, window)
            run.updates += 1
        if steps == job.stop_after:
            break
    # The first synchronisation.
    weights = jax.block_until_ready(weights)
    for loss, ids, sums in seen:
        run.losses.append(float(loss))
        run.ids.append(np.asarray(ids).tolist())
        run.pixels.append(np.asarray(sums).tolist())
    if job.save:
        with open(job.save, "wb") as file:
            pickle.dump((jax.device_get(weights), loader.state_dict()), file)
    if job.stop_after and not job.save:
        run.again = np.asarray(next(iter(loader))["id"]).tolist()
    run.weigh(jax.device_get([weights["w"], weights["b"]]))


def evaluate(job: Job, run: Run, placed: dict) -> None:
    key = jax.random.key(0)
    weights = {"w": jax.random.normal(key, (SIZE * SIZE * 3, 3)), "b": jnp.zeros(3)}

    @jax.jit
    def count(image, label, valid):
        right = logits_of(weights, image).argmax(1) == label
        return jnp.stack([valid.sum(), (right & valid).sum()])

    totals, ids = jnp.zeros(2, int), []
    for batch in job.evaluation_loader(Loader, **placed):
        totals = totals + count(batch["image"], batch["label"], batch["valid"])
        ids.append(batch["id"] + 0)
    run.counted, run.correct = np.asarray(totals).tolist()
    run.ids = [np.asarray(each).tolist() for each in ids]
    for batch in job.one_by_one(Loader):
        run.correct_one_by_one += int(count(batch["image"], batch["label"], batch["valid"])[1])
