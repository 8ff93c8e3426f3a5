"""The recipes of recipes.py with our loader: the steps of examples/*_train.py, and batches of u8."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from recipes_check import check_last
from recipes_data import (
    DEPTH_SIZE,
    IGNORED,
    LONGEST,
    PADDING,
    SHORT_SIDES,
    SMALLEST,
    TAGS,
    UNIT,
    batch_of,
    tokens_of,
)

import shardtool as st

FLIP = st.RandomHorizontalFlip()


class Recipe(NamedTuple):
    """What a loader delivers: `shapes` are those of a row by the array's name, `finish` makes what a trainer takes of a batch."""

    fields: list[Any]
    shapes: dict[str, tuple[int, ...]]
    finish: Callable[[dict[str, Any]], dict[str, Any]] = dict


def in_metres(batch: dict[str, Any]) -> dict[str, Any]:
    """Returns the batch with depths in metres, float32 `[N, H, W]`."""
    return batch | {"depth": batch["depth"][..., 0].astype(np.float32) / np.float32(UNIT)}


def with_tokens(batch: dict[str, Any]) -> dict[str, Any]:
    """Returns the batch with the tokens of its captions."""
    return batch | {"tokens": tokens_of(batch["caption"])}


def for_detr(batch: dict[str, Any]) -> dict[str, Any]:
    """Returns the batch with boxes as centre, width and height, as fractions of the padded images."""
    left_top, right_bottom = np.hsplit(batch["boxes"].values, 2)
    boxes = np.hstack([(left_top + right_bottom) / 2, right_bottom - left_top]) / np.float32(LONGEST)  # of square images
    rows = np.split(boxes, batch["boxes"].offsets[1:-1])
    return batch | {"shown": batch["pixel_mask"].view(bool), "boxes": rows}


def simple(recipe: str, scaled: bool) -> Recipe:
    """Returns a recipe whose dataset has images only, or objects."""
    square = {"image": (224, 224, 3)}
    if recipe == "crop":
        return Recipe([st.Image([st.RandomResizedCrop(224), FLIP], scaled_decode=scaled)], square)
    if recipe == "randaugment":
        return Recipe([st.Image([st.RandomResizedCrop(224), FLIP, st.RandAugment(), st.RandomErasing(0.25)])], square)
    if recipe == "dino":
        colours = [st.RandomApply([st.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), st.RandomGrayscale(0.2)]
        large = [st.RandomResizedCrop(224, scale=(0.4, 1)), FLIP, *colours, st.RandomApply([st.GaussianBlur(23)], 0.5)]
        small = [st.RandomResizedCrop(96, scale=(0.05, 0.4)), FLIP, *colours, st.RandomApply([st.GaussianBlur(9)], 0.5)]
        shapes = {f"image.large.{n}": (224, 224, 3) for n in range(2)} | {f"image.small.{n}": (96, 96, 3) for n in range(6)}
        return Recipe([st.Views({"large": (large, 2), "small": (small, 6)})], shapes)
    steps = [st.ScaleJitter(512, (0.5, 1.5)), st.FixedSizeCrop(512), FLIP]
    shapes = {"image": (512, 512, 3)}
    if recipe == "instances":
        return Recipe([st.Image(steps), st.Objects(masks=True)], shapes)
    return Recipe([st.Image([*steps, st.RandomPhotometricDistort()]), st.Objects()], shapes)


#: Steps without random numbers, for photographs of at least SMALLEST pixels a side, by which recipes_check.py compares both sides.
STILL = {
    "crop": [st.CenterCrop(SMALLEST), st.RandomHorizontalFlip(1)],
    "resize": [st.Resize(320), st.CenterCrop(256), st.RandomHorizontalFlip(1)],
    "detr": [st.RandomHorizontalFlip(1), st.Resize(640, LONGEST), st.FixedSizeCrop(LONGEST, fill=PADDING)],
}


def recipe_of(recipe: str, scaled: bool = False, still: str | None = None) -> Recipe:
    """Returns the recipe, or with `still` its fields with those steps."""
    if recipe.startswith("segmentation"):
        steps = [st.ScaleJitter(512, (0.5, 2.0)), st.FixedSizeCrop(512, fill=PADDING), FLIP]
        if recipe == "segmentation":
            steps += [st.RandomRotation(10, interpolation="bilinear"), st.ColorJitter(0.4, 0.4, 0.4)]
        field, finish, shapes = st.Mask("mask", fill=IGNORED), dict, {"image": (512, 512, 3), "mask": (512, 512)}
    elif recipe.startswith("depth"):
        steps = [st.RandomResizedCrop(DEPTH_SIZE, (0.5, 1.0)), FLIP]
        if recipe == "depth":
            steps += [st.RandomRotation(3, interpolation="bilinear"), st.ColorJitter(0.4, 0.4, 0.4)]
        field, finish = st.FurtherImage("depth", kind="values"), in_metres
        shapes = {"image": (*DEPTH_SIZE, 3), "depth": DEPTH_SIZE}
    elif recipe == "detr":
        padded = st.FixedSizeCrop(LONGEST, fill=PADDING)
        steps = [FLIP, st.RandomShortestSize(SHORT_SIDES, max_size=LONGEST), padded]
        shapes = {"image": (LONGEST, LONGEST, 3), "shown": (LONGEST, LONGEST)}
        return Recipe([st.Image(STILL[still] if still else steps), st.PixelMask(), st.Objects()], shapes, for_detr)
    elif recipe == "multilabel":
        steps = [st.RandomResizedCrop(448, scale=(0.5, 1.0)), FLIP]
        field, finish, shapes = st.Column("tags", multi_hot=TAGS), dict, {"image": (448, 448, 3), "tags": (TAGS,)}
    elif recipe == "captions":
        steps = [st.RandomResizedCrop(224, scale=(0.9, 1.0), interpolation="bicubic")]
        field, finish, shapes = st.Column("caption", draw=True), with_tokens, {"image": (224, 224, 3)}
    else:
        return simple(recipe, scaled)
    return Recipe([st.Image(STILL[still] if still else steps), field], shapes, finish)


def rate(recipe: str, dataset: str, workers: int, scaled: bool = False) -> tuple[int, float]:
    """Returns samples and seconds of an epoch after the first batch."""
    fields, shapes, finish = recipe_of(recipe, scaled)
    samples, began, size = 0, 0.0, batch_of(recipe)
    with st.Loader(st.Dataset(dataset).split("train"), size, fields, workers=workers, bad_samples="error") as loader:
        for number, batch in enumerate(loader):
            if number == 0:
                began = time.perf_counter()
                continue
            batch = finish(batch)
            for name, shape in shapes.items():
                assert batch[name].shape == (size, *shape), (name, batch[name].shape)
            if recipe == "instances":
                masks, boxes = batch["masks"].values, batch["boxes"].values
                assert masks.shape == (len(boxes), 512, 512) and masks.any((1, 2)).mean() > 0.9
            samples += len(batch["label"])
        seconds = time.perf_counter() - began
        check_last(recipe, batch)
        return samples, seconds


def rows(recipe: str, dataset: str, numbers: list[int], still: str) -> dict[str, Any]:
    """Returns a batch of the records of these numbers, with the steps of `STILL`."""
    fields, _, finish = recipe_of(recipe, still=still)
    options = {"order": st.Sequential(), "source": st.Subset(numbers), "bad_samples": "error"}
    with st.Loader(st.Dataset(dataset).split("train"), len(numbers), fields, **options) as loader:
        return finish(next(iter(loader)))
