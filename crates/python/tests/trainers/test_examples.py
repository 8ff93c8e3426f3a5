"""Every program in `examples` trains an epoch on a tiny dataset, and resumes from its checkpoint for another."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pathlib
import re
import runpy
import socket
import subprocess
import sys

import numpy as np
import pytest
from conftest import COUNT, photograph
from frameworks import ENVIRONMENT
from PIL import Image
from test_typing import LENIENT, check, pyright

import shardtool as st

EXAMPLES = pathlib.Path(__file__).parents[4] / "examples"
#: Packages that each needs, its arguments, and those that resume in addition.
PROGRAMS = {
    "imagenet_ddp": (("torchvision",), ["--model", "resnet18", "--checkpoint", "run.pt", "--save-every", "3"], []),
    "jax_train": (("jax",), ["--checkpoint", "run.pkl"], []),
    "lightning_train": (
        ("lightning", "torchvision"),
        ["--accelerator", "cpu", "--save-every", "3", "--checkpoints", "kept"],
        ["--resume", "kept/last.ckpt"],
    ),
    "hf_trainer": (("transformers",), ["--save-steps", "3", "--accumulate", "2", "--output", "run"], None),
    "timm_train": (("timm",), ["--model", "test_resnet", "--checkpoint", "run.pt"], []),
    "dino_train": (("torchvision",), ["--model", "resnet18", "--checkpoint", "run.pt"], []),
    "detection_train": (("torchvision",), ["--classes", "4", "--checkpoint", "run.pt"], []),
    "segmentation_train": (("torchvision",), ["--classes", "4", "--checkpoint", "run.pt"], []),
    "depth_train": (("torchvision",), ["--checkpoint", "run.pt"], []),
    "detr_train": (("torchvision", "transformers"), ["--classes", "3", "--width", "32", "--checkpoint", "run.pt"], []),
    "multilabel_train": (("torchvision",), ["--model", "resnet18", "--classes", "3", "--checkpoint", "run.pt"], []),
    "clip_train": (("torchvision",), ["--model", "resnet18", "--checkpoint", "run.pt"], []),
    "language_train": (("torch",), ["--vocabulary", "50", "--capacity", "64", "--batch-size", "4", "--checkpoint", "run.pt"], []),
    "video_train": (("torch",), ["--frames", "4", "--stride", "2", "--checkpoint", "run.pt"], []),
    "accelerate_train": (("accelerate", "torchvision"), ["--accumulate", "4", "--state", "run"], []),
}

#: The program for volumes, which needs PyTorch and another dataset.
VOLUMES = "volume_patches"


@pytest.fixture
def prepared(monkeypatch, tmp_path):
    """A folder to run in, and an environment without a launcher."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    monkeypatch.chdir(tmp_path)
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]


#: The program for Ray Train, which `test_ray.py` runs.
RAY = "ray_train"

#: Programs that need more than images and labels.
ANNOTATED = ("depth_train", "detection_train", "detr_train", "segmentation_train", "multilabel_train", "clip_train", "language_train")


@pytest.fixture(scope="session")
def annotated(tmp_path_factory):
    """Photographs with a box, a polygon, a label map, tags, captions and tokens."""
    folder = tmp_path_factory.mktemp("annotated") / "dataset"
    random = np.random.default_rng(7)
    for split in ("train", "single"):
        with st.Writer(folder, split) as writer:
            for number in range(70):
                image = np.asarray(photograph(number % 3, number))
                height, width, _ = image.shape
                left, top = random.integers(0, width // 2), random.integers(0, height // 2)
                labels = np.full((height, width), 3, np.uint8)
                labels[top : top + 18, left : left + 18] = number % 3
                stored = io.BytesIO()
                Image.fromarray(labels).save(stored, "PNG")
                depth = io.BytesIO()
                Image.fromarray(np.where(labels == 3, 8000, 2000).astype(np.uint16)).save(depth, "PNG")
                box = {"bbox": [[float(left), float(top), 18.0, 18.0]], "category": [number % 3]}
                box["segmentation"] = [[[float(x) for x in (left, top, left + 18, top, left + 9, top + 18)]]]
                tokens = 1 + np.arange(5 + number % 3 * 16) % 40
                writer.write(
                    {"key": f"{number}", "image": image, "objects": box, "mask": stored.getvalue(), "tokens": tokens}
                    | {"depth": depth.getvalue()}
                    | {"length": len(tokens), "tags": [number % 3], "caption": [f"number {number}", f"kind {number % 3}"]}
                )
    return folder


def arguments(dataset, *more):
    return [str(dataset), "--eval-split", "single", "--batch-size", "14", *more]


def clips(folder):
    """Packs videos of a bright square that moves to the left or to the right, as two splits."""
    for split, videos in (("train", 28), ("single", 10)):
        for video in range(videos):
            path = folder / split / ("left", "right")[video % 2] / f"{video}"
            path.mkdir(parents=True)
            for number in range(12):
                pixels = np.random.default_rng((video, number)).integers(0, 60, (36, 48, 3), np.uint8)
                x = 3 * (number if video % 2 else 11 - number)
                pixels[video % 20 : video % 20 + 12, x : x + 12] += 180
                Image.fromarray(pixels).save(path / f"{number}.jpg")
        st.pack(folder / split, folder / "clips", kind="clips", split=split)
    return folder / "clips"


@contextlib.contextmanager
def replaced(checkpoint):
    """Checks that a program puts a new file in the place of its checkpoint, so that one that is killed in the write leaves the old one."""
    link, before = checkpoint.with_name("before"), checkpoint.read_bytes()
    link.unlink(missing_ok=True)
    link.hardlink_to(checkpoint)
    yield
    assert not checkpoint.samefile(link) and link.read_bytes() == before, f"{checkpoint} was written in place"


#: Programs that `test_training.py` trains and resumes, mostly with a smaller network. Here the campaign runs them as they are.
LEARNING = {"segmentation_train", "depth_train", "dino_train", "multilabel_train", "clip_train", "detection_train", "detr_train"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.campaign] * (name in LEARNING)) for name in PROGRAMS])
def test_example_trains_and_resumes(name, dataset, annotated, prepared, monkeypatch, capsys, tmp_path):
    needs, options, resume = PROGRAMS[name]
    dataset = annotated if name in ANNOTATED else dataset
    if missing := next((each for each in needs if importlib.util.find_spec(each) is None), None):
        pytest.skip(f"{missing} is not installed")
    if name == "video_train":
        dataset = clips(tmp_path)
    path = EXAMPLES / f"{name}.py"
    if name != "language_train":
        options = ["--size", "32", *options]
    monkeypatch.setattr(sys, "argv", [str(path), *arguments(dataset, *options, "--epochs", "1")])
    runpy.run_path(str(path), run_name="__main__")
    first = capsys.readouterr().out
    if resume is None:
        # The last checkpoint of 7 steps in windows of 2.
        resume = ["--resume", "run/checkpoint-3"]
    monkeypatch.setattr(sys, "argv", [str(path), *arguments(dataset, *options, *resume, "--epochs", "2")])
    checkpoint = pathlib.Path(options[options.index("--checkpoint") + 1]) if "--checkpoint" in options else None
    with replaced(checkpoint) if checkpoint else contextlib.nullcontext():
        runpy.run_path(str(path), run_name="__main__")
    second = capsys.readouterr().out
    measured = "error" if name == "depth_train" else "accuracy"
    assert measured in first and measured in second
    if "epoch 0" in first:
        assert "epoch 0" not in second and "epoch 1" in second, "it resumed"
    if name == "accelerate_train":
        assert sorted(os.listdir("run")) == ["0000", "0001"], "a folder for each epoch, and none that is incomplete"
    if name == "hf_trainer":
        assert f"'eval_samples': {COUNT}" in second or f"'eval_samples': '{COUNT}'" in second


def test_volume_example_trains_and_resumes(prepared, monkeypatch, capsys, tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    random = np.random.default_rng(0)
    with st.Writer(tmp_path / "volumes", features={"ct": st.Array(), "organs": st.Array()}) as writer:
        for number in range(6):
            organs = np.zeros((20 + number, 24, 24), np.uint8)
            organs[5:15, 6:18, 6:18] = 1
            ct = (organs * 900.0 - 400 + random.normal(size=organs.shape) * 50).astype(np.float32)
            writer.write({"key": f"{number}", "ct": ct, "organs": organs})
    path = EXAMPLES / f"{VOLUMES}.py"
    common = [str(path), str(tmp_path / "volumes"), "--size", "16", "--batch-size", "2", "--lr", "0.01", "--checkpoint", "run.pt"]
    monkeypatch.setattr(sys, "argv", [*common, "--epochs", "4"])
    runpy.run_path(str(path), run_name="__main__")
    first = [float(loss) for loss in re.findall(r"epoch \d+: loss ([\d.]+)", capsys.readouterr().out)]
    assert len(first) == 4 and first[-1] < first[0]
    monkeypatch.setattr(sys, "argv", [*common, "--epochs", "5"])
    with replaced(pathlib.Path("run.pt")):
        runpy.run_path(str(path), run_name="__main__")
    assert "resumed before epoch 4\nepoch 5: loss" in capsys.readouterr().out


@pytest.mark.campaign
def test_example_on_two_ranks(dataset, prepared):
    """torchrun: two ranks resume what they saved, and evaluate every sample once."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    _, options, _ = PROGRAMS["imagenet_ddp"]
    for epochs, expected in (("1", ["0"]), ("2", ["1"])):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
        program = [str(EXAMPLES / "imagenet_ddp.py"), *arguments(dataset, "--size", "32", *options, "--epochs", epochs)]
        command = [sys.executable, *launcher, "--master-port", str(port), *program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-6000:]
        assert re.findall(r"epoch (\d+): accuracy", done.stdout) == expected


def installed_examples():
    """Examples whose packages are all installed here."""
    found = [name for name, (needs, _, _) in PROGRAMS.items() if all(map(importlib.util.find_spec, needs))]
    if importlib.util.find_spec("torch"):
        found.append(VOLUMES)
    if importlib.util.find_spec("ray") and importlib.util.find_spec("torchvision"):
        found.append(RAY)
    if not found:
        pytest.skip("none of the examples' packages is installed")
    return [EXAMPLES / f"{name}.py" for name in found]


def test_examples_pass_mypy_in_strict_mode(tmp_path):
    # Ignores what torch and the trainers do not annotate or re-export.
    foreign = ["--ignore-missing-imports", "--allow-untyped-calls", "--implicit-reexport"]
    run = check(tmp_path, *foreign, *installed_examples())
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.campaign
def test_examples_pass_pyright_in_strict_mode(tmp_path):
    pyright(tmp_path, installed_examples(), LENIENT)


def test_an_example_passes_pyright_in_strict_mode(tmp_path):
    pyright(tmp_path, installed_examples()[-1:], LENIENT)


def test_examples_are_short():
    paths = sorted(EXAMPLES.glob("*.py"))
    assert {path.stem for path in paths} == {*PROGRAMS, VOLUMES, RAY}
    for path in paths:
        assert len(path.read_text().splitlines()) <= 90, path.name
