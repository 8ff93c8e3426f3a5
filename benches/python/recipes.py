#!/usr/bin/env python3
"""Compares the rates of training recipes with those of torchvision v2 in a DataLoader, and of DALI, alternately, in one run.

    python benches/python/recipes.py PHOTOS [--rounds N] [--workers N] [--copies N] [--recipe NAME]
        [--dali INTERPRETER]

PHOTOS is a folder of class folders of JPEGs. Run it with an interpreter that has torch, torchvision and the wheel. Recipes:

    crop          RandomResizedCrop(224), flip; also with scaled_decode (large.py)
    randaugment   RandomResizedCrop(224), flip, RandAugment, RandomErasing
    dino          two crops of 224 and six of 96 pixels, each with flip, jitter, greyscale and blur
    detection     photometric distortion behind ScaleJitter(512) and FixedSizeCrop(512), flip, boxes
    instances     ScaleJitter(512) and FixedSizeCrop(512), flip, boxes and masks drawn from polygons of 24 points; the peer draws
                  them with pycocotools, as torchvision's references do, which the interpreter needs

Both sides decode the same files with the same number of workers, each in another process; the first batch is not measured.
torchvision decodes with `torchvision.io.decode_image`, once for all views, and transforms u8 tensors. Every batch's arrays are
checked for their shapes, and each epoch for its number of samples. Prints one JSON object per side and round, then the median
of the ratios. `--dali` names an interpreter that has DALI (scripts/python-env dali): its pipelines (recipes_dali.py) run on the
CPU as well, with as many threads, and without boxes.
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

BATCH = 32
#: Those that are compared by default.
RECIPES = ["randaugment", "dino", "detection", "instances"]


def boxes_of(path: str, width: int, height: int) -> list[list[float]]:
    """Returns some boxes that depend on the file only: left, top, width, height."""
    draw = random.Random(pathlib.Path(path).name)
    boxes = []
    for _ in range(draw.randint(1, 8)):
        w, h = width * draw.uniform(0.1, 0.5), height * draw.uniform(0.1, 0.5)
        boxes.append([draw.uniform(0, width - w), draw.uniform(0, height - h), w, h])
    return boxes


def polygon_of(box: list[float]) -> list[float]:
    """Returns the 24 points of an ellipse with notches in a box: x, y, x, y, …"""
    x, y, w, h = box
    corners = []
    for step in range(24):
        angle, reach = step * math.tau / 24, 0.5 if step % 2 else 0.35
        corners += [round(x + w * (0.5 + reach * math.cos(angle)), 2), round(y + h * (0.5 + reach * math.sin(angle)), 2)]
    return corners


def pack(photos: list[str], folder: str) -> None:
    """Packs the photographs, with boxes, into `folder`."""
    from PIL import Image

    import shardtool as st

    with st.Writer(folder, "train", annotated="coded") as writer:
        for number, path in enumerate(photos):
            with Image.open(path) as image:
                boxes = boxes_of(path, *image.size)
            objects = {"bbox": boxes, "category": [1] * len(boxes), "segmentation": [[polygon_of(box)] for box in boxes]}
            writer.write({"key": f"{number}", "image": path, "label": number % 10, "objects": objects})


def ours(recipe: str, folder: str, workers: int, scaled: bool = False) -> tuple[int, float]:
    """Returns samples and seconds of an epoch after the first batch."""
    import shardtool as st

    split = st.Dataset(folder).split("train")
    flip = st.RandomHorizontalFlip()
    if recipe == "crop":
        fields = [st.Image([st.RandomResizedCrop(224), flip], scaled_decode=scaled)]
        shapes = {"image": (224, 224, 3)}
    elif recipe == "randaugment":
        fields = [st.Image([st.RandomResizedCrop(224), flip, st.RandAugment(), st.RandomErasing(0.25)])]
        shapes = {"image": (224, 224, 3)}
    elif recipe == "dino":
        colours = [st.RandomApply([st.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), st.RandomGrayscale(0.2)]
        large = [st.RandomResizedCrop(224, scale=(0.4, 1)), flip, *colours, st.RandomApply([st.GaussianBlur(23)], 0.5)]
        small = [st.RandomResizedCrop(96, scale=(0.05, 0.4)), flip, *colours, st.RandomApply([st.GaussianBlur(9)], 0.5)]
        fields = [st.Views({"large": (large, 2), "small": (small, 6)})]
        shapes = {f"image.large.{n}": (224, 224, 3) for n in range(2)} | {f"image.small.{n}": (96, 96, 3) for n in range(6)}
    elif recipe == "instances":
        steps = [st.ScaleJitter(512, (0.5, 1.5)), st.FixedSizeCrop(512), flip]
        fields, shapes = [st.Image(steps), st.Objects(masks=True)], {"image": (512, 512, 3)}
    else:
        steps = [st.ScaleJitter(512, (0.5, 1.5)), st.FixedSizeCrop(512), flip, st.RandomPhotometricDistort()]
        fields, shapes = [st.Image(steps), st.Objects()], {"image": (512, 512, 3)}
    samples, began = 0, 0.0
    with st.Loader(split, BATCH, fields, workers=workers) as loader:
        for number, batch in enumerate(loader):
            if number == 0:
                began = time.perf_counter()
                continue
            for name, shape in shapes.items():
                assert batch[name].shape == (BATCH, *shape)
            if recipe == "instances":
                masks, boxes = batch["masks"].values, batch["boxes"].values
                assert masks.shape == (len(boxes), 512, 512) and masks.any((1, 2)).mean() > 0.9
            samples += len(batch["label"])
        return samples, time.perf_counter() - began


class Torchvision:
    """The photographs as a dataset of torch."""

    def __init__(self, recipe: str, photos: list[str]):
        import torch
        from torchvision.transforms import v2

        self.recipe, self.photos = recipe, photos
        flip = v2.RandomHorizontalFlip()
        if recipe == "crop":
            self.steps = v2.Compose([v2.RandomResizedCrop(224, antialias=True), flip])
        elif recipe == "randaugment":
            steps = [v2.RandomResizedCrop(224, antialias=True), flip, v2.RandAugment()]
            # Erasing is defined for floats and u8 alike.
            self.steps = v2.Compose([*steps, v2.RandomErasing(0.25, value=0)])
        elif recipe == "dino":
            colours = [v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), v2.RandomGrayscale(0.2)]

            def view(side, scale, kernel):
                blur = v2.RandomApply([v2.GaussianBlur(kernel)], 0.5)
                return v2.Compose([v2.RandomResizedCrop(side, scale=scale, antialias=True), flip, *colours, blur])

            self.steps = [view(224, (0.4, 1), 23)] * 2 + [view(96, (0.05, 0.4), 9)] * 6
        else:
            colours = [v2.RandomPhotometricDistort()] if recipe == "detection" else []
            self.steps = v2.Compose(
                [
                    v2.ScaleJitter((512, 512), (0.5, 1.5), antialias=True),
                    v2.RandomCrop(512, pad_if_needed=True),
                    flip,
                    *colours,
                    v2.SanitizeBoundingBoxes(),
                ]
            )
        torch.set_num_threads(1)

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, number):
        import torch
        from torchvision import tv_tensors
        from torchvision.io import ImageReadMode, decode_image, read_file

        path = self.photos[number]
        image = tv_tensors.Image(decode_image(read_file(path), mode=ImageReadMode.RGB))
        if self.recipe in ("crop", "randaugment"):
            return self.steps(image), number % 10
        if self.recipe == "dino":
            return [view(image) for view in self.steps], number % 10
        height, width = image.shape[-2:]
        drawn = boxes_of(path, width, height)
        boxes = torch.tensor([[x, y, x + w, y + h] for x, y, w, h in drawn])
        boxes = tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(height, width))
        target = {"boxes": boxes, "labels": torch.ones(len(boxes), dtype=torch.int64)}
        if self.recipe == "instances":
            from pycocotools import mask as coco

            lengths = [coco.merge(coco.frPyObjects([polygon_of(box)], height, width)) for box in drawn]
            masks = torch.from_numpy(coco.decode(lengths)).permute(2, 0, 1)
            target["masks"] = tv_tensors.Mask(masks)
        return self.steps(image, target)


def collate(samples):
    """Stacks images, and keeps targets as lists, as torchvision's detection references do."""
    import torch

    images, targets = zip(*samples)
    return torch.stack(images), list(targets)


def theirs(recipe: str, photos: list[str], workers: int) -> tuple[int, float]:
    """Returns samples and seconds of an epoch after the first batches, one of each worker."""
    import torch

    torch.set_num_threads(1)
    has_objects = recipe in ("detection", "instances")
    options = {"collate_fn": collate} if has_objects else {}
    loader = torch.utils.data.DataLoader(
        Torchvision(recipe, photos), BATCH, shuffle=True, num_workers=workers, drop_last=True, **options
    )
    samples, began = 0, 0.0
    for number, (images, labels) in enumerate(loader):
        if number == 0:
            began = time.perf_counter()
            continue
        side = 512 if has_objects else 224
        assert (images[0] if recipe == "dino" else images).shape == (BATCH, 3, side, side)
        if recipe == "instances":
            assert all(len(target["masks"]) == len(target["boxes"]) for target in labels)
        samples += len(labels)
    return samples, time.perf_counter() - began


def side(arguments: argparse.Namespace) -> None:
    photos = json.loads(pathlib.Path(arguments.list).read_text())
    if arguments.side in ("ours", "scaled"):
        samples, seconds = ours(arguments.recipe[0], arguments.dataset, arguments.workers, arguments.side == "scaled")
    else:
        samples, seconds = theirs(arguments.recipe[0], photos, arguments.workers)
    assert samples == (len(photos) // BATCH - 1) * BATCH, samples
    print(json.dumps({"side": arguments.side, "recipe": arguments.recipe[0], "images_per_s": samples / seconds}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--copies", type=int, default=1, help="how often each photograph occurs")
    parser.add_argument("--dali", help="an interpreter with DALI")
    parser.add_argument("--recipe", action="append", choices=["crop", *RECIPES])
    for hidden in ("--side", "--list", "--dataset"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        side(arguments)
        return 0
    if not arguments.photos:
        parser.error("a folder of photographs is needed")
    photos = sorted(str(path) for path in pathlib.Path(arguments.photos).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    photos *= arguments.copies
    with tempfile.TemporaryDirectory() as folder:
        names = f"{folder}/photos.json"
        pathlib.Path(names).write_text(json.dumps(photos))
        pack(photos, f"{folder}/dataset")
        for recipe in arguments.recipe or RECIPES:
            workers = str(arguments.workers)
            own = [sys.executable, __file__, "--list", names, "--dataset", f"{folder}/dataset", "--recipe", recipe]
            commands = {which: [*own, "--workers", workers, "--side", which] for which in ("ours", "theirs")}
            if recipe == "crop":
                commands["scaled"] = [*own, "--workers", workers, "--side", "scaled"]
            if arguments.dali:
                program = pathlib.Path(__file__).with_name("recipes_dali.py")
                commands["dali"] = [arguments.dali, str(program), names, recipe, workers]
            ratios: dict[str, list[float]] = {which: [] for which in commands if which != "ours"}
            for _ in range(arguments.rounds):
                rates = {}
                for which, command in commands.items():
                    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                    print(done.stdout.strip(), flush=True)
                    rates[which] = json.loads(done.stdout.splitlines()[-1])["images_per_s"]
                for which, of in ratios.items():
                    of.append(rates["ours"] / rates[which])
            if recipe == "crop":
                for which in ("theirs", "dali")[: len(commands) - 2]:
                    ratios[f"{which}, by scaled"] = [b / a for a, b in zip(ratios["scaled"], ratios[which])]
            for which, of in ratios.items():
                ratio = {"recipe": recipe, "peer": which, "ratio": round(statistics.median(of), 2)}
                print(json.dumps({**ratio, "of": [round(r, 2) for r in of]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
