"""FFCV with images stored as JPEG: ffcv_loader.py WORK FOLDER REPEATS SCRATCH"""

import sys

import ffcv
import torchvision
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip
from ffcv.writer import DatasetWriter

from measure import measure

THREADS = 2


class Repeated:
    """Images of a folder, several times over."""

    def __init__(self, folder, repeats):
        self.images, self.repeats = torchvision.datasets.ImageFolder(folder), repeats

    def __len__(self):
        return len(self.images) * self.repeats

    def __getitem__(self, at):
        return self.images[at % len(self.images)]


def main(work, folder, repeats, scratch):
    path = f"{scratch}/train.beton"
    # FFCV re-encodes the pixels; this quality is closest to that of the photographs.
    fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()}
    DatasetWriter(path, fields, num_workers=THREADS).from_indexed_dataset(Repeated(folder, repeats))
    steps, order = [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip()], OrderOption.RANDOM
    if work == "eval":
        steps, order = [CenterCropRGBImageDecoder((224, 224), 224 / 256)], OrderOption.SEQUENTIAL

    def epoch():
        loader = Loader(path, 256, num_workers=THREADS, order=order, pipelines={"image": steps, "label": None})
        return (batch[0] for batch in loader)

    measure("FFCV", ffcv.__version__, epoch)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
