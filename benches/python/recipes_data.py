"""What the datasets of recipes.py have: photographs, and annotations that depend on each file's name only.

A record is a dict with the path `image`, its `size` (width, height), and what its recipe needs: `boxes`, the path `mask` or
`depth`, `tags`, or `captions`.
"""

import math
import pathlib
import random

import numpy as np

#: Rows of a batch; those of DETR have a longest side of 1,333 pixels.
BATCHES = {"detr": 8}
BATCH = 32
#: What the dataset of each recipe has besides images. Recipes with the same content share a dataset.
CONTENTS = {
    "crop": "objects",
    "randaugment": "objects",
    "dino": "objects",
    "detection": "objects",
    "instances": "objects",
    "detr": "objects",
    "segmentation": "mask",
    "segmentation_crop": "mask",
    "depth": "depth",
    "depth_crop": "depth",
    "multilabel": "tags",
    "captions": "captions",
}
#: Classes of label maps and of tags, the label of pixels without a class, and units of a stored depth for a metre.
CLASSES, TAGS, IGNORED, UNIT = 21, 80, 255, 1000
#: The colour of padding, and the height and width of the crops of depth models for photographs as NYU's.
PADDING, DEPTH_SIZE = (124, 116, 104), (416, 544)
#: The short sides of DETR, and its longest side.
SHORT_SIDES, LONGEST = range(480, 801, 32), 1333
#: The shorter side of photographs whose values are compared, in pixels: of smaller ones, our CenterCrop makes a bad sample.
SMALLEST = 160
WORDS = "a the two some old red small large dog cat bird fish boat street table on near under with stands looks runs green".split()
#: Tokens of a text, whose bytes are the tokens, as in examples/clip_train.py.
TOKENS = 77


def batch_of(recipe: str) -> int:
    """Returns the rows of a batch."""
    return BATCHES.get(recipe, BATCH)


def boxes_of(draw: random.Random, width: int, height: int) -> list[list[float]]:
    """Returns some boxes: left, top, width, height."""
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


def smooth(numbers: np.random.Generator, cells: int, width: int, height: int) -> np.ndarray:
    """Returns float32 `[height, width]`: noise of `cells` × `cells` values between 0 and 1, with bicubic values in between."""
    from PIL import Image

    noise = Image.fromarray(numbers.random((cells, cells), np.float32))
    return np.asarray(noise.resize((width, height), Image.Resampling.BICUBIC))


def mask_of(numbers: np.random.Generator, width: int, height: int) -> np.ndarray:
    """Returns a label map, uint8 `[height, width]`: some dozens of regions, and `IGNORED` along some of their borders."""
    labels = numbers.permutation(CLASSES).astype(np.uint8)
    level = smooth(numbers, 7, width, height) * CLASSES
    mask = labels[np.clip(level, 0, CLASSES - 1).astype(int)]
    mask[np.abs(level - 10) < 0.1] = IGNORED
    return mask


def depth_of(numbers: np.random.Generator, width: int, height: int) -> np.ndarray:
    """Returns depths, uint16 `[height, width]`, in units of 1/UNIT m: a floor, objects in front of it, the coarser steps of
    larger depths that a structured-light camera has, and 0 where it sees nothing."""
    metres = np.linspace(8, 1.5, height, dtype=np.float32)[:, None] + 2 * smooth(numbers, 3, width, height)
    for level in (0.55, 0.7, 0.8):
        objects = smooth(numbers, 6, width, height)
        metres = np.where(objects > level, metres * 0.7 + objects * 0.2, metres)
    metres += 0.002 * metres * numbers.standard_normal(metres.shape, np.float32)
    steps = np.round(350 / np.clip(metres, 0.4, 10) * 8) / 8
    depth = np.round(350 / steps * UNIT).astype(np.uint16)
    depth[smooth(numbers, 20, width, height) > 0.9] = 0
    return depth


def caption_of(draw: random.Random) -> str:
    """Returns some words."""
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(6, 18)))


def records_of(photos: list[str], content: str, folder: pathlib.Path) -> list[dict]:
    """Returns a record for each path, in which some may occur several times; writes label maps and depths into `folder`."""
    from PIL import Image

    records: dict[str, dict] = {}
    for path in photos:
        if path in records:
            continue
        draw = random.Random(pathlib.Path(path).name)
        with Image.open(path) as image:
            width, height = image.size
        record = records[path] = {"image": path, "size": [width, height]}
        if content == "objects":
            record["boxes"] = boxes_of(draw, width, height)
        elif content == "tags":
            record["tags"] = sorted(draw.sample(range(TAGS), draw.randint(1, 6)))
        elif content == "captions":
            record["captions"] = [caption_of(draw) for _ in range(5)]
        else:
            array = (mask_of if content == "mask" else depth_of)(np.random.default_rng(draw.getrandbits(64)), width, height)
            record[content] = str(folder / f"{len(records)}.{content}.png")
            Image.fromarray(array).save(record[content])
    return [records[path] for path in photos]


def pack(records: list[dict], content: str, folder: pathlib.Path) -> None:
    """Packs the records into a dataset."""
    import shardtool as st

    with st.Writer(folder, "train", annotated="coded") as writer:
        for number, record in enumerate(records):
            sample = {"key": f"{number}", "image": record["image"], "label": number % 10}
            if content == "objects":
                polygons = [[polygon_of(box)] for box in record["boxes"]]
                categories = [1] * len(polygons)
                sample["objects"] = {"bbox": record["boxes"], "category": categories, "segmentation": polygons}
            elif content == "tags":
                sample["tags"] = record["tags"]
            elif content == "captions":
                sample["caption"] = record["captions"]
            else:
                sample[content] = pathlib.Path(record[content]).read_bytes()
            writer.write(sample)


def tokens_of(texts: list[bytes]) -> np.ndarray:
    """Returns the tokens of the texts: int64 `[N, TOKENS]`, 0 after the last one."""
    tokens = np.zeros((len(texts), TOKENS), np.int64)
    for row, text in zip(tokens, texts):
        text = text[:TOKENS]
        row[: len(text)] = np.frombuffer(text, np.uint8)
    return tokens
