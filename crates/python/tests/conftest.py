"""A small dataset, made by Pillow and packed by the module under test."""

import pathlib

import numpy as np
import pytest
from PIL import Image

import shardtool as st

CLASSES = ["heron", "owl", "teapot"]
EACH = 35
COUNT = len(CLASSES) * EACH


def pytest_configure(config):
    config.addinivalue_line("markers", "campaign: run by scripts/campaign only")


def photograph(kind: int, number: int) -> Image.Image:
    """Returns a photo-like image. Its class determines the colours, its number the pattern and the size."""
    random = np.random.default_rng((kind, number))
    coarse = random.integers(0, 60, (4, 4, 3))
    coarse[..., kind] += 150
    small = Image.fromarray(coarse.astype(np.uint8))
    return small.resize((40 + number % 23, 36 + number % 17), Image.Resampling.BICUBIC)


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> pathlib.Path:
    """A folder of class folders."""
    folder = tmp_path_factory.mktemp("photos")
    for kind, name in enumerate(CLASSES):
        (folder / name).mkdir()
        for number in range(EACH):
            photograph(kind, number).save(folder / name / f"{number:03}.jpg", quality=90)
    return folder


@pytest.fixture(scope="session")
def dataset(photos, tmp_path_factory) -> pathlib.Path:
    """The photographs in two splits: `train` of three shards, `single` of one."""
    path = tmp_path_factory.mktemp("datasets") / "dataset"
    st.pack(photos, path, shards=3)
    st.pack(photos, path, split="single", shards=1)
    return path


@pytest.fixture
def train(dataset) -> st.Split:
    return st.Dataset(dataset).split("train")
