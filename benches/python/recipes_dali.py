"""The recipes of recipes.py as CPU pipelines of DALI: recipes_dali.py LIST RECIPE WORKERS

`recipes.py --dali INTERPRETER` runs it with an interpreter that has DALI (scripts/python-env dali), and checks what it prints. Tags
and captions are Python's: the pipeline delivers the number of each row's record.
"""

import json
import pathlib
import random
import sys
import time
from typing import Any

import numpy as np
from nvidia.dali import fn, math, pipeline_def, types
from nvidia.dali.auto_aug import rand_augment
from recipes_check import check_last
from recipes_data import DEPTH_SIZE, IGNORED, LONGEST, PADDING, SHORT_SIDES, TAGS, UNIT, batch_of, tokens_of

#: Recipes that DALI cannot run, and why.
IMPOSSIBLE = {"instances": "readers.coco makes one map of class ids for all objects, or polygons, which no operator draws"}


def chance(probability):
    return fn.random.coin_flip(probability=probability, dtype=types.BOOL)


def region(images, scale):
    """Returns corner and size of RandomResizedCrop in decoded images."""
    area = fn.random.uniform(range=scale)
    ratio = fn.random.uniform(range=[0.75, 4 / 3])
    shape = images.shape(dtype=types.FLOAT)
    total = shape[0] * shape[1] * area
    height = math.min(math.sqrt(total / ratio), shape[0])
    width = math.min(math.sqrt(total * ratio), shape[1])
    at = [fn.random.uniform(range=[0, 1]) * (shape[0] - height), fn.random.uniform(range=[0, 1]) * (shape[1] - width)]
    return fn.stack(*at), fn.stack(height, width)


def cut(images, at):
    return fn.slice(images, *at, axes=[0, 1], normalized_anchor=False, normalized_shape=False, out_of_bounds_policy="trim_to_shape")


def crop(images, side, scale):
    """RandomResizedCrop of decoded images."""
    return fn.resize(cut(images, region(images, scale)), size=[side, side], antialias=True)


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


def random_resized_crop(files, side=224, area=(0.08, 1.0), filter=types.INTERP_LINEAR):
    stored, labels = fn.readers.file(files=files, labels=list(range(len(files))), random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(stored, random_area=list(area), random_aspect_ratio=[3 / 4, 4 / 3])
    return fn.resize(images, size=[side, side], antialias=True, interp_type=filter), labels


def flipped(images, labels):
    return fn.flip(images, horizontal=fn.random.coin_flip()), labels


@pipeline_def
def crop_alone(files):
    return flipped(*random_resized_crop(files))


@pipeline_def
def multilabel(files):
    return flipped(*random_resized_crop(files, 448, (0.5, 1.0)))


@pipeline_def
def captions(files):
    return random_resized_crop(files, area=(0.9, 1.0), filter=types.INTERP_CUBIC)


@pipeline_def(enable_conditionals=True)
def randaugment(files):
    images, labels = flipped(*random_resized_crop(files))
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


def pairs(records, name, **options):
    """Returns decoded images, the maps that belong to them, and the numbers that both readers deliver."""
    numbers, columns = list(range(len(records))), ([record[which] for record in records] for which in ("image", name))
    # Equal seeds: both readers shuffle alike.
    (stored, first), (stored_map, second) = (fn.readers.file(files=c, labels=numbers, random_shuffle=True, seed=1) for c in columns)
    return fn.decoders.image(stored), fn.decoders.image(stored_map, **options), first, second


def moved(images, maps, turned, degrees, outside):
    """Flips, and with `turned` rotates both by the same numbers and changes the colours of images."""
    coin = fn.random.coin_flip()
    images, maps = fn.flip(images, horizontal=coin), fn.flip(maps, horizontal=coin)
    if not turned:
        return images, maps
    angle = fn.random.uniform(range=[-degrees, degrees])
    images = fn.rotate(images, angle=angle, keep_size=True, fill_value=0, interp_type=types.INTERP_LINEAR)
    maps = fn.rotate(maps, angle=angle, keep_size=True, fill_value=outside, interp_type=types.INTERP_NN)
    drawn = {name: fn.random.uniform(range=[0.6, 1.4]) for name in ("brightness", "contrast", "saturation")}
    return fn.color_twist(images, **drawn), maps


@pipeline_def
def segmentation(records, turned):
    images, maps, first, second = pairs(records, "mask", output_type=types.GRAY)
    side = 512 * fn.random.uniform(range=[0.5, 2.0])
    size = {"size": fn.stack(side, side), "mode": "not_larger"}
    images, maps = fn.resize(images, antialias=True, **size), fn.resize(maps, interp_type=types.INTERP_NN, **size)
    at = {f"crop_pos_{axis}": fn.random.uniform(range=[0, 1]) for axis in "xy"}
    at |= {"crop": (512, 512), "out_of_bounds_policy": "pad"}
    images, maps = fn.crop(images, fill_values=list(PADDING), **at), fn.crop(maps, fill_values=IGNORED, **at)
    return (*moved(images, maps, turned, 10.0, IGNORED), first, second)


@pipeline_def
def depth(records, turned):
    images, maps, first, second = pairs(records, "depth", output_type=types.ANY_DATA, dtype=types.UINT16)
    at, size = region(images, [0.5, 1.0]), list(DEPTH_SIZE)
    images = fn.resize(cut(images, at), size=size, antialias=True)
    maps = fn.resize(cut(maps, at), size=size, interp_type=types.INTERP_NN)
    metres = fn.cast(maps, dtype=types.FLOAT) / float(UNIT)
    return (*moved(images, metres, turned, 3.0, 0), first, second)


@pipeline_def
def detr(annotations):
    stored, boxes, classes = fn.readers.coco(
        file_root="/", annotations_file=annotations, ltrb=True, ratio=True, random_shuffle=True, name="reader"
    )
    images, coin = fn.decoders.image(stored), fn.random.coin_flip()
    side = SHORT_SIDES[0] + SHORT_SIDES.step * fn.random.uniform(values=list(range(len(SHORT_SIDES))))
    images = fn.resize(fn.flip(images, horizontal=coin), resize_shorter=side, max_size=LONGEST, antialias=True)
    shape = images.shape(dtype=types.INT32)
    shown = fn.pad(fn.ones(shape=shape[:2], dtype=types.UINT8))
    boxes = fn.pad(fn.bb_flip(boxes, ltrb=True, horizontal=coin), fill_value=-1)
    return fn.pad(images, axes=[0, 1], fill_value=PADDING[1]), shown, boxes, shape, fn.pad(classes, fill_value=-1)


def coco_of(records: list[dict], file: pathlib.Path) -> str:
    """Writes the records' boxes as annotations of COCO and returns the path."""
    images, objects = [], []
    for number, record in enumerate(records):
        width, height = record["size"]
        images.append({"id": number, "file_name": record["image"].lstrip("/"), "width": width, "height": height})
        for box in record["boxes"]:
            objects.append({"id": len(objects), "image_id": number, "category_id": 1, "bbox": box, "area": 1.0, "iscrowd": 0})
    file.write_text(json.dumps({"images": images, "annotations": objects, "categories": [{"id": 1, "name": "object"}]}))
    return str(file)


SIDES = {"crop": [224], "randaugment": [224], "dino": [224] * 2 + [96] * 6, "detection": [512]}
SIDES |= {"multilabel": [448], "captions": [224]}
BUILD = {"crop": crop_alone, "randaugment": randaugment, "dino": dino, "detection": detection, "multilabel": multilabel}
BUILD |= {"captions": captions}


def pipeline_of(recipe: str, records: list[dict], names: pathlib.Path, **options: Any) -> Any:
    """Returns the pipeline of a recipe."""
    if recipe == "detr":
        return detr(coco_of(records, names.with_name("coco.json")), **options)
    if recipe.startswith(("segmentation", "depth")):
        build = segmentation if recipe.startswith("segmentation") else depth
        return build(records, not recipe.endswith("_crop"), **options)
    return BUILD[recipe]([record["image"] for record in records], **options)


def finished(recipe: str, records: list[dict], outputs: list[np.ndarray]) -> dict[str, Any]:
    """Returns the batch that a trainer takes of the pipeline's outputs; raises if shapes are wrong."""
    size = batch_of(recipe)
    if recipe == "detr":
        images, shown, boxes, shapes, classes = outputs
        padded = np.array(shown.shape[1:])
        assert images.shape == (size, *padded, 3) and max(padded) <= LONGEST
        boxes = boxes * np.tile((shapes[:, :2] / padded)[:, ::-1], 2)[:, None].astype(np.float32)
        boxes = np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1)
        return {"image": images, "shown": shown.astype(bool), "boxes": [row[of >= 0] for row, of in zip(boxes, classes)]}
    if recipe.startswith(("segmentation", "depth")):
        images, maps, first, second = outputs
        name, shape = ("mask", (512, 512)) if recipe.startswith("segmentation") else ("depth", DEPTH_SIZE)
        assert (first == second).all() and images.shape == (size, *shape, 3) and maps.shape == (size, *shape, 1)
        return {"image": images, name: maps[..., 0]}
    *images, numbers = outputs
    assert [view.shape for view in images] == [(size, side, side, 3) for side in SIDES[recipe]]
    batch: dict[str, Any] = {"image": images[0] if len(images) == 1 else images}
    if recipe == "multilabel":
        batch["tags"] = np.zeros((size, TAGS), np.float32)
        for row, number in zip(batch["tags"], numbers[:, 0]):
            row[records[number]["tags"]] = 1
    if recipe == "captions":
        batch["tokens"] = tokens_of([random.choice(records[number]["captions"]).encode() for number in numbers[:, 0]])
    return batch


def main() -> None:
    names, recipe, workers = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if recipe in IMPOSSIBLE:
        print(json.dumps({"side": "dali", "recipe": recipe, "reason": IMPOSSIBLE[recipe]}))
        return
    records, size = json.loads(names.read_text()), batch_of(recipe)
    pipeline = pipeline_of(recipe, records, names, batch_size=size, num_threads=workers, device_id=None, seed=1)
    pipeline.build()
    samples, began = 0, 0.0
    for number in range(len(records) // size):
        batch = finished(recipe, records, [np.asarray(output.as_array()) for output in pipeline.run()])
        if number == 0:
            began = time.perf_counter()
            continue
        samples += size
    seconds = time.perf_counter() - began
    assert all(view.std() > 10 for view in (batch["image"] if recipe == "dino" else [batch["image"]]))
    check_last(recipe, batch)
    print(json.dumps({"side": "dali", "recipe": recipe, "images_per_s": samples / seconds}))


main()
