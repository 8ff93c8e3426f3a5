"""The recipes of recipes.py with transforms.v2 of torchvision in a DataLoader: tv_tensors of u8, each file decoded once."""

import random
import time
from typing import Any

import torch
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
    polygon_of,
    tokens_of,
)
from torchvision import tv_tensors
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import v2
from torchvision.transforms.functional import InterpolationMode

FLIP, FLIPPED = v2.RandomHorizontalFlip(), v2.RandomHorizontalFlip(1)
OBJECTS = ("detection", "instances", "detr")


def resize_exact(mask: tv_tensors.Mask) -> tv_tensors.Mask:
    """Resizes as v2.Resize(320) does, but takes the nearest centre of a pixel, as our loader does; v2.Resize takes one that lies up
    to a pixel to the left and above."""
    plain = mask.as_subclass(torch.Tensor)[None]
    return tv_tensors.wrap(v2.functional.resize_image(plain, [320], InterpolationMode.NEAREST_EXACT)[0], like=mask)


#: Steps without random numbers, by which recipes_check.py compares both sides.
STILL = {
    "crop": [v2.CenterCrop(SMALLEST), FLIPPED],
    "resize": [v2.Lambda(resize_exact, tv_tensors.Mask), v2.Resize(320, antialias=True), v2.CenterCrop(256), FLIPPED],
    "detr": [FLIPPED, v2.Resize(640, max_size=LONGEST, antialias=True)],
}


def dino() -> list[v2.Transform]:
    """Returns the transform of each view."""
    colours = [v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), v2.RandomGrayscale(0.2)]

    def view(side: int, scale: tuple[float, float], kernel: int) -> v2.Transform:
        blur = v2.RandomApply([v2.GaussianBlur(kernel)], 0.5)
        return v2.Compose([v2.RandomResizedCrop(side, scale=scale, antialias=True), FLIP, *colours, blur])

    return [view(224, (0.4, 1), 23)] * 2 + [view(96, (0.05, 0.4), 9)] * 6


def steps_of(recipe: str) -> list[v2.Transform]:
    """Returns the transforms of all recipes with one view."""
    if recipe == "crop":
        return [v2.RandomResizedCrop(224, antialias=True), FLIP]
    if recipe == "randaugment":
        # Erasing is defined for floats and u8 alike.
        return [v2.RandomResizedCrop(224, antialias=True), FLIP, v2.RandAugment(), v2.RandomErasing(0.25, value=0)]
    jitter, bilinear = v2.ColorJitter(0.4, 0.4, 0.4), InterpolationMode.BILINEAR
    if recipe.startswith("segmentation"):
        crop = v2.RandomCrop(512, pad_if_needed=True, fill={tv_tensors.Image: PADDING, tv_tensors.Mask: IGNORED})
        steps = [v2.ScaleJitter((512, 512), (0.5, 2.0), antialias=True), crop, FLIP]
        turn = v2.RandomRotation(10, bilinear, fill={tv_tensors.Image: 0, tv_tensors.Mask: IGNORED})
        return [*steps, turn, jitter] if recipe == "segmentation" else steps
    if recipe.startswith("depth"):
        steps = [v2.RandomResizedCrop(DEPTH_SIZE, scale=(0.5, 1.0), antialias=True), FLIP]
        return [*steps, v2.RandomRotation(3, bilinear), jitter] if recipe == "depth" else steps
    if recipe == "detr":
        sides = v2.RandomShortestSize(list(SHORT_SIDES), max_size=LONGEST, antialias=True)
        return [FLIP, sides, v2.SanitizeBoundingBoxes()]
    if recipe == "multilabel":
        return [v2.RandomResizedCrop(448, scale=(0.5, 1.0), antialias=True), FLIP]
    if recipe == "captions":
        return [v2.RandomResizedCrop(224, scale=(0.9, 1.0), interpolation=InterpolationMode.BICUBIC, antialias=True)]
    colours = [v2.RandomPhotometricDistort()] if recipe == "detection" else []
    jittered = v2.ScaleJitter((512, 512), (0.5, 1.5), antialias=True)
    return [jittered, v2.RandomCrop(512, pad_if_needed=True), FLIP, *colours, v2.SanitizeBoundingBoxes()]


class Photographs(torch.utils.data.Dataset):
    """The records as a dataset of torch; with `still`, those steps take the place of the recipe's."""

    def __init__(self, recipe: str, records: list[dict], still: str | None = None):
        self.recipe, self.records = recipe, records
        self.steps = dino() if recipe == "dino" else v2.Compose(STILL[still] if still else steps_of(recipe))

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, number: int) -> Any:
        record = self.records[number]
        image = tv_tensors.Image(decode_image(read_file(record["image"]), mode=ImageReadMode.RGB))
        if self.recipe == "dino":
            return [view(image) for view in self.steps], number % 10
        if self.recipe in OBJECTS:
            return self.steps(image, self.objects_of(record["boxes"], image.shape[-2:]))
        if "mask" in record:
            mask = decode_image(read_file(record["mask"]), mode=ImageReadMode.GRAY)
            image, mask = self.steps(image, tv_tensors.Mask(mask[0]))
            return {"image": image, "mask": mask, "label": number % 10}
        if "depth" in record:
            depth = decode_image(read_file(record["depth"]), mode=ImageReadMode.UNCHANGED)[0].float() / UNIT
            image, depth = self.steps(image, tv_tensors.Mask(depth))
            return {"image": image, "depth": depth, "label": number % 10}
        if "tags" in record:
            return {"image": self.steps(image), "tags": torch.zeros(TAGS).index_fill_(0, torch.tensor(record["tags"]), 1)}
        if "captions" in record:
            return self.steps(image), random.choice(record["captions"]).encode()
        return self.steps(image), number % 10

    def objects_of(self, stored: list[list[float]], size: torch.Size) -> dict[str, Any]:
        """Returns boxes and classes, and masks that are drawn from polygons if the recipe has them."""
        height, width = size
        boxes = torch.tensor([[x, y, x + w, y + h] for x, y, w, h in stored])
        boxes = tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(height, width))
        target = {"boxes": boxes, "labels": torch.ones(len(boxes), dtype=torch.int64)}
        if self.recipe == "instances":
            from pycocotools import mask as coco

            lengths = [coco.merge(coco.frPyObjects([polygon_of(box)], height, width)) for box in stored]
            masks = torch.from_numpy(coco.decode(lengths)).permute(2, 0, 1)
            target["masks"] = tv_tensors.Mask(masks)
        return target


def with_targets(samples: list[Any]) -> dict[str, Any]:
    """Stacks images, and keeps targets as lists, as torchvision's detection references do."""
    images, targets = zip(*samples)
    return {"image": torch.stack(images), "targets": list(targets)}


def for_detr(samples: list[Any]) -> dict[str, Any]:
    """Pads images on the right and at the bottom to the largest height and width, with the mask of their pixels; boxes are
    centre, width and height, as fractions of the padded images."""
    height, width = (max(image.shape[axis] for image, _ in samples) for axis in (-2, -1))
    images = torch.tensor(PADDING, dtype=torch.uint8)[:, None, None].repeat(len(samples), 1, height, width)
    shown = torch.zeros(len(samples), height, width, dtype=torch.bool)
    rows = []
    for number, (image, target) in enumerate(samples):
        images[number, :, : image.shape[1], : image.shape[2]] = image
        shown[number, : image.shape[1], : image.shape[2]] = True
        boxes = v2.functional.convert_bounding_box_format(target["boxes"], new_format="CXCYWH").as_subclass(torch.Tensor)
        rows.append(boxes / torch.tensor([width, height, width, height]))
    return {"image": images, "shown": shown, "boxes": rows}


def with_tokens(samples: list[Any]) -> dict[str, Any]:
    """Stacks images, and makes one tensor of the captions' tokens."""
    images, captions = zip(*samples)
    return {"image": torch.stack(images), "tokens": torch.from_numpy(tokens_of(list(captions))), "caption": captions}


def alone(samples: list[Any]) -> dict[str, Any]:
    """Stacks images, or lists of views, and labels."""
    images, labels = torch.utils.data.default_collate(samples)
    return {"image": images, "label": labels}


#: How samples become a batch; for the others, by `default_collate`.
COLLATE = {"detection": with_targets, "instances": with_targets, "detr": for_detr, "captions": with_tokens}
COLLATE |= dict.fromkeys(("crop", "randaugment", "dino"), alone)
SIDES = {"crop": 224, "randaugment": 224, "dino": 224, "captions": 224, "multilabel": 448}


def check_shapes(recipe: str, batch: dict[str, Any], size: int) -> None:
    """Raises if images, or what belongs to them, have other shapes than the recipe says."""
    images = batch["image"][0] if recipe == "dino" else batch["image"]
    if recipe == "detr":
        assert images.shape[:2] == (size, 3) and batch["shown"].shape == (size, *images.shape[2:])
        assert max(images.shape[2:]) <= LONGEST
        return
    expected = DEPTH_SIZE if recipe.startswith("depth") else (SIDES.get(recipe, 512),) * 2
    assert images.shape == (size, 3, *expected), images.shape
    for name in ("mask", "depth"):
        assert name not in batch or batch[name].shape == (size, *expected), batch[name].shape
    if recipe == "instances":
        assert all(len(target["masks"]) == len(target["boxes"]) for target in batch["targets"])


def rate(recipe: str, records: list[dict], workers: int) -> tuple[int, float]:
    """Returns samples and seconds of an epoch after the first batch."""
    torch.set_num_threads(1)
    size = batch_of(recipe)
    options: dict[str, Any] = {"collate_fn": COLLATE[recipe]} if recipe in COLLATE else {}
    loader = torch.utils.data.DataLoader(
        Photographs(recipe, records), size, shuffle=True, num_workers=workers, drop_last=True, persistent_workers=True, **options
    )
    samples, began = 0, 0.0
    for number, batch in enumerate(loader):
        if number == 0:
            began = time.perf_counter()
            continue
        check_shapes(recipe, batch, size)
        samples += size
    seconds = time.perf_counter() - began
    check_last(recipe, {name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in batch.items()})
    return samples, seconds


def rows(recipe: str, records: list[dict], numbers: list[int], still: str) -> dict[str, Any]:
    """Returns a batch of the records of these numbers, with the steps of `STILL`."""
    photographs = Photographs(recipe, records, still)
    return COLLATE.get(recipe, torch.utils.data.default_collate)([photographs[number] for number in numbers])
