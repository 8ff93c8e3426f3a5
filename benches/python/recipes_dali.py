"""The recipes of recipes.py as CPU pipelines of DALI: recipes_dali.py LIST RECIPE WORKERS

`recipes.py --dali INTERPRETER` runs it with an interpreter that has DALI (scripts/python-env dali), and checks what it prints.
"""

import json
import pathlib
import sys
import time

import numpy as np
from nvidia.dali import fn, math, pipeline_def, types
from nvidia.dali.auto_aug import rand_augment

BATCH = 32


def chance(probability):
    return fn.random.coin_flip(probability=probability, dtype=types.BOOL)


def crop(images, side, scale):
    """RandomResizedCrop of decoded images."""
    area = fn.random.uniform(range=scale)
    ratio = fn.random.uniform(range=[0.75, 4 / 3])
    shape = images.shape(dtype=types.FLOAT)
    total = shape[0] * shape[1] * area
    height = math.min(math.sqrt(total / ratio), shape[0])
    width = math.min(math.sqrt(total * ratio), shape[1])
    at = [fn.random.uniform(range=[0, 1]) * (shape[0] - height), fn.random.uniform(range=[0, 1]) * (shape[1] - width)]
    cut = fn.slice(images, fn.stack(*at), fn.stack(height, width), axes=[0, 1], normalized_anchor=False, normalized_shape=False)
    return fn.resize(cut, size=[side, side], antialias=True)


def coloured(images, kernel):
    """Jitter, greyscale and blur, each with the probability of DINO."""
    if chance(0.8):
        images = fn.color_twist(
            images,
            brightness=fn.random.uniform(range=[0.6, 1.4]),
            contrast=fn.random.uniform(range=[0.6, 1.4]),
            saturation=fn.random.uniform(range=[0.8, 1.2]),
            hue=fn.random.uniform(range=[-36.0, 36.0]),
        )
    if chance(0.2):
        images = fn.hsv(images, saturation=0.0)
    if chance(0.5):
        images = fn.gaussian_blur(images, window_size=kernel, sigma=fn.random.uniform(range=[0.1, 2.0]))
    return images


def random_resized_crop(files):
    stored, labels = fn.readers.file(files=files, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(stored, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
    return fn.flip(fn.resize(images, size=[224, 224], antialias=True), horizontal=fn.random.coin_flip()), labels


@pipeline_def
def crop_alone(files):
    return random_resized_crop(files)


@pipeline_def(enable_conditionals=True)
def randaugment(files):
    images, labels = random_resized_crop(files)
    images = rand_augment.rand_augment(images, n=2, m=9, shape=[224, 224])
    if chance(0.25):
        anchor, shape = fn.random.uniform(range=[0, 0.7], shape=2), fn.random.uniform(range=[0.15, 0.55], shape=2)
        images = fn.erase(images, anchor=anchor, shape=shape, axes=[0, 1], normalized_anchor=True, normalized_shape=True)
    return images, labels


@pipeline_def(enable_conditionals=True)
def dino(files):
    stored, labels = fn.readers.file(files=files, random_shuffle=True, name="reader")
    images = fn.decoders.image(stored)
    views = [coloured(fn.flip(crop(images, 224, [0.4, 1.0]), horizontal=fn.random.coin_flip()), 23) for _ in range(2)]
    views += [coloured(fn.flip(crop(images, 96, [0.05, 0.4]), horizontal=fn.random.coin_flip()), 9) for _ in range(6)]
    return (*views, labels)


@pipeline_def(enable_conditionals=True)
def detection(files):
    """The images only, without boxes."""
    stored, labels = fn.readers.file(files=files, random_shuffle=True, name="reader")
    images = fn.decoders.image(stored)
    side = 512 * fn.random.uniform(range=[0.5, 1.5])
    images = fn.resize(images, size=fn.stack(side, side), mode="not_larger", antialias=True)
    images = fn.crop(images, crop=(512, 512), crop_pos_x=fn.random.uniform(range=[0, 1]), out_of_bounds_policy="pad")
    images = fn.flip(images, horizontal=fn.random.coin_flip())
    images = fn.color_twist(
        images,
        brightness=fn.random.uniform(range=[0.875, 1.125]),
        contrast=fn.random.uniform(range=[0.5, 1.5]),
        saturation=fn.random.uniform(range=[0.5, 1.5]),
        hue=fn.random.uniform(range=[-18.0, 18.0]),
    )
    return images, labels


SHAPES = {"crop": [224], "randaugment": [224], "dino": [224] * 2 + [96] * 6, "detection": [512]}


def main() -> None:
    names, recipe, workers = sys.argv[1:]
    photos = json.loads(pathlib.Path(names).read_text())
    build = {"crop": crop_alone, "randaugment": randaugment, "dino": dino, "detection": detection}[recipe]
    pipeline = build(photos, batch_size=BATCH, num_threads=int(workers), device_id=None, seed=1)
    pipeline.build()
    batches = len(photos) // BATCH
    samples, began = 0, 0.0
    for number in range(batches):
        *images, labels = pipeline.run()
        arrays = [np.asarray(view.as_array()) for view in images]
        assert [view.shape for view in arrays] == [(BATCH, side, side, 3) for side in SHAPES[recipe]]
        assert all(view.std() > 10 for view in arrays)
        if number == 0:
            began = time.perf_counter()
            continue
        samples += len(labels)
    print(json.dumps({"side": "dali", "recipe": recipe, "images_per_s": samples / (time.perf_counter() - began)}))


main()
