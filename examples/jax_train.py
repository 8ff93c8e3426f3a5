"""JAX: one loader feeds every local device; the jitted step normalises images, and the loop does not wait for it.

    python examples/jax_train.py DATASET --checkpoint run.pkl

Run again, it resumes from the checkpoint.
"""

import argparse
import os
import pickle

import jax
import jax.numpy as jnp

import shardtool as st
from shardtool.jax import Loader

Weights = dict[str, jax.Array]


def make(key: jax.Array, classes: int) -> Weights:
    """Returns the weights of a small convolutional network."""
    shapes = {"first": (3, 3, 3, 16), "second": (3, 3, 16, 32), "last": (32, classes)}
    keys = jax.random.split(key, len(shapes))
    return {name: 0.1 * jax.random.normal(each, shape) for each, (name, shape) in zip(keys, shapes.items(), strict=True)}


def logits_of(weights: Weights, image: jax.Array) -> jax.Array:
    x = (image / 255.0 - 0.45) / 0.225
    for name in ("first", "second"):
        x = jax.lax.conv_general_dilated(x, weights[name], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x)
    return x.mean((1, 2)) @ weights["last"]


def loss_of(weights: Weights, image: jax.Array, label: jax.Array) -> jax.Array:
    chosen = jax.nn.log_softmax(logits_of(weights, image))
    return -jnp.take_along_axis(chosen, label[:, None], 1).mean()


@jax.jit
def train_step(weights: Weights, image: jax.Array, label: jax.Array) -> tuple[Weights, jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(weights, image, label)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss


@jax.jit
def count(weights: Weights, image: jax.Array, label: jax.Array) -> jax.Array:
    """Returns the number of correct rows and of rows with a sample. The others have label −100."""
    return jnp.stack([(logits_of(weights, image).argmax(1) == label).sum(), (label >= 0).sum()])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=256, help="rows on each device")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--checkpoint", default="checkpoint.pkl")
    args = parser.parse_args()
    dataset = st.Dataset(args.dataset)
    devices = jax.local_devices()
    steps = [st.RandomResizedCrop(args.size), st.HorizontalFlip()]
    loader = Loader(dataset.split("train"), args.batch_size, steps, device=devices)
    split, order = dataset.split(args.eval_split), st.Sequential()
    evaluation = Loader(split, args.batch_size, [st.ResizeTo(args.size)], order=order, device=devices)
    weights = make(jax.random.key(0), len(dataset.split("train").classes))
    if os.path.exists(args.checkpoint):
        with open(args.checkpoint, "rb") as file:
            weights, state = pickle.load(file)
        loader.load_state_dict(state)

    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        loss = jnp.zeros(())
        for batch in loader:
            weights, loss = train_step(weights, batch["image"], batch["label"])
        with open(f"{args.checkpoint}.tmp", "wb") as file:
            pickle.dump((jax.device_get(weights), loader.state_dict()), file)
        os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        correct, samples = sum((count(weights, batch["image"], batch["label"]) for batch in evaluation), jnp.zeros(2))
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {correct / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
