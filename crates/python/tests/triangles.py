"""Pictures of triangles with boxes, crowds, polygons and keypoints, what is known of each, and the functions of
docs/frameworks.md that convert batches of them."""

import ast
import importlib.util
import io
import pathlib
import re
from types import SimpleNamespace

import numpy as np
import torch
from PIL import Image, ImageDraw

import shardtool as st
from shardtool.torch import Loader

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "frameworks.md"
#: Sections of the page, from their heading to the next one of their level.
SECTIONS = (r"### Image processors\n(.*?)\n##", r"## Detection targets\n(.*)")
N, SIZE, POINTS = 24, 64, 3
CLASSES = ["cat", "dog", "owl"]
COLORS = [(220, 40, 40), (40, 220, 40), (40, 40, 220)]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def documented():
    """Returns the constants and functions of the sections, without what they compute."""
    names = {"st": st, "torch": torch, "Loader": Loader, "mean": MEAN, "std": STD}
    text = PAGE.read_text()
    for section in SECTIONS:
        for code in re.findall(r"```python\n(.*?)```", re.search(section, text, re.DOTALL)[1], re.DOTALL):
            for node in ast.parse(code).body:
                imported = isinstance(node, ast.ImportFrom) and importlib.util.find_spec(node.module.split(".")[0])
                constant = isinstance(node, ast.Assign) and re.match(r"[A-Z]+\b", ast.unparse(node))
                if isinstance(node, ast.FunctionDef) or imported or constant:
                    exec(ast.unparse(node), names)
    return SimpleNamespace(**names)


page = documented()


def png(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


class Sample:
    """A picture of triangles in the colours of their classes, and what is known of each."""

    def __init__(self, number):
        random = np.random.default_rng(number)
        self.number, self.id = number, 1000 - number
        self.width, self.height = 60 + 4 * (number % 5), 44 + 4 * (number % 7)
        picture = Image.fromarray(random.integers(0, 60, (self.height, self.width, 3), dtype=np.uint8))
        label_map = Image.new("L", picture.size, len(CLASSES))
        self.objects = []
        for n in range(number % 4):
            left, top = random.integers(0, self.width - 28), random.integers(0, self.height - 28)
            corners = [left, top, left + 16 + n, top, left, top + 20 - n]
            category = (number + n) % 3
            for drawn, fill in ((picture, COLORS[category]), (label_map, category)):
                ImageDraw.Draw(drawn).polygon([int(x) for x in corners], fill=fill)
            points = [float(x) for i in range(POINTS) for x in (*corners[2 * i : 2 * i + 2], 2)]
            self.objects.append({
                "bbox": [float(left), float(top), 16.0 + n, 20.0 - n], "category": category, "iscrowd": int(n == 2),
                "segmentation": [[float(x) for x in corners]], "keypoints": points,
            })  # fmt: skip
        self.image, self.png, self.label_map = np.asarray(picture), png(picture), png(label_map)

    def kept(self, crowds=False):
        return [each for each in self.objects if crowds or not each["iscrowd"]]

    def corners(self, scale_x, scale_y, crowds=False):
        """Returns left, top, right and bottom of each object of the resized picture."""
        boxes = [(x, y, x + w, y + h) for x, y, w, h in (each["bbox"] for each in self.kept(crowds))]
        return np.array(boxes, np.float32).reshape(-1, 4) * [scale_x, scale_y, scale_x, scale_y]

    def squeezed(self, crowds=False):
        return self.corners(SIZE / self.width, SIZE / self.height, crowds)

    def fractions(self):
        """Returns centre, width and height of each object as fractions of the picture."""
        left, top, right, bottom = self.corners(1 / self.width, 1 / self.height).T
        return np.stack([(left + right) / 2, (top + bottom) / 2, right - left, bottom - top], -1)

    def classes(self, crowds=False):
        return [each["category"] for each in self.kept(crowds)]


SAMPLES = [Sample(number) for number in range(N)]
SQUEEZE = [st.ResizeTo(SIZE)]
OBJECTS = {"properties": [page.CLASS, page.CROWD]}
NORMAL = {"mean": MEAN, "std": STD}


def write(path, split="train", labels=False, count=N):
    """Writes the first `count` samples and returns their split. With labels, those of the first object, the records have also what
    programs for other tasks need: a label map, depths, tags, captions."""
    with st.Writer(path, split, labels=labels, classes=CLASSES) as writer:
        # The sample that decides about types has objects.
        for sample in sorted(SAMPLES[:count], key=lambda each: -len(each.objects)):
            members = ("bbox", "category", "iscrowd", "segmentation", "keypoints")
            objects = {name: [each[name] for each in sample.objects] for name in members}
            record = {"key": f"{sample.number}", "image": sample.png, "image/id": sample.id, "objects": objects}
            if labels:
                names = [CLASSES[each] for each in sample.classes(True)]
                record |= {"label": (sample.classes(True) or [0])[0], "mask": sample.label_map}
                # Each class has its distance, and the pixels without an object are far away.
                millimetres = np.array([1000, 2000, 4000, 16_000], np.uint16)[np.asarray(Image.open(io.BytesIO(sample.label_map)))]
                record["depth"] = png(Image.fromarray(millimetres))
                record |= {"tags": sorted(set(sample.classes(True))), "caption": [", ".join(names) or "nothing", " and ".join(names)]}
            writer.write(record)
    return st.Dataset(path)[split]


def loader_of(split, image, *, collate_fn=None, **objects):
    fields = [image, st.PixelMask(), st.Objects(**OBJECTS, **objects), "image/id"]
    return Loader(split, 8, fields, order=st.Sequential(), collate_fn=collate_fn, workers=1)


def samples_of(batch):
    """Returns the samples of a batch's rows."""
    return [SAMPLES[1000 - number] for number in batch["image/id"].tolist()]
