"""PyTorch: tensors without a copy, several processes, torchvision's pixels, and a network that learns."""

import importlib.util
import json
import math
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from conftest import COUNT
from PIL import Image

import shardtool as st

torch = pytest.importorskip("torch")
from shardtool.torch import Loader, Records  # noqa: E402

STEPS = [st.RandomResizedCrop(32), st.HorizontalFlip()]


def test_tensors_share_the_loaders_memory(train):
    loader = Loader(train, 16, [st.Image(STEPS), "image/width", "image/filename"], prefetch=4)
    (native,) = loader._native.next(loader._native.begin(loader._launch().place))
    batch = loader._convert(native)
    assert batch["image"].data_ptr() == native["image"].ctypes.data
    assert batch["image"].shape == (16, 32, 32, 3) and batch["image"].dtype == torch.uint8
    assert batch["label"].dtype == torch.int64 and batch["valid"].dtype == torch.bool
    assert batch["label"].data_ptr() == native["label"].ctypes.data
    through_dlpack = torch.from_dlpack(native["image"])
    assert through_dlpack.data_ptr() == native["image"].ctypes.data
    image, copy = batch["image"], batch["image"].clone()
    del native, batch, through_dlpack
    for other in loader:
        assert other["image"].data_ptr() != image.data_ptr()
    assert torch.equal(image, copy)


def test_records_work_in_dataloader_workers(train):
    records = Records(train, transform=label_of)
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(records, batch_size=10, num_workers=2, multiprocessing_context=context)
        labels = torch.cat(list(loader))
        assert labels.tolist() == [train[i]["label"] for i in range(COUNT)]


def label_of(record):
    """A transform that a spawned worker can import."""
    return record["label"]


class _Inside(torch.utils.data.IterableDataset):
    """A loader that is made where it is iterated: in each worker of a `DataLoader`."""

    def __init__(self, split):
        self.split = split

    def __iter__(self):
        with st.torch.Loader(self.split, 4, [st.RandomResizedCrop(8)], order=st.Shuffled(1)) as loader:
            yield from (batch["id"] for batch in loader)


def test_a_loader_in_workers_of_a_dataloader_is_refused(train):
    alone = torch.utils.data.DataLoader(_Inside(train), batch_size=None)
    assert sum(len(ids) for ids in alone) == len(train) // 4 * 4
    for workers in (1, 2):
        several = torch.utils.data.DataLoader(_Inside(train), batch_size=None, num_workers=workers)
        with pytest.raises(RuntimeError, match="in place of the `DataLoader`"):
            list(several)


def test_pickled_loader_keeps_its_type_and_state(train):
    loader = Loader(train, 16, STEPS)
    next(iter(loader))
    again = pickle.loads(pickle.dumps(loader))
    assert type(again) is Loader and again.state_dict() == loader.state_dict()


RANK = """
    import datetime, json, os, sys
    import torch.distributed as dist
    import shardtool as st
    from shardtool.torch import Loader

    path, port, rank, world, state, steps = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5], int(sys.argv[6])
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=60))
    split = st.Dataset(path).split("train")
    loader = Loader(split, 8, [st.ResizeTo(8)], order=st.Shuffled(4), remainder="mask", workers=1)
    loader.load_state_dict(json.loads(state)) if state else None
    shown = []
    for step, batch in enumerate(loader):
        # If a rank ran fewer steps, the others would wait here until the timeout.
        dist.barrier()
        shown += batch["id"][batch["valid"]].tolist()
        if step + 1 == steps:
            break
    print(json.dumps({"shown": shown, "state": loader.state_dict(), "ended": step + 1 != steps}))
    dist.destroy_process_group()
"""


def ranks(dataset, world, state, steps, port):
    """Runs `world` ranks for `steps` steps (0: to the end of the epoch); returns what each printed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    arguments = [[dataset, port, rank, world, state, steps] for rank in range(world)]
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RANK), *map(str, argument)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for argument in arguments
    ]
    answers = [run.communicate(timeout=300) for run in runs]
    assert all(run.returncode == 0 for run in runs), answers
    return [json.loads(out.splitlines()[-1]) for out, _ in answers]


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_two_processes_then_three_show_every_sample_once(dataset):
    """105 samples: two processes stop after three steps of 2 x 8, and three processes resume with steps of 3 x 8."""
    first = ranks(dataset, 2, "", 3, free_port())
    assert first[0]["state"] == first[1]["state"] and first[0]["state"]["p"] == 48
    rest = ranks(dataset, 3, json.dumps(first[0]["state"]), 0, free_port())
    shown = [i for run in [*first, *rest] for i in run["shown"]]
    assert sorted(shown) == list(range(COUNT))
    assert all(run["state"]["epoch"] == 1 for run in rest)


VERSIONS = """
    import datetime, sys
    import torch.distributed as dist
    import shardtool as st
    from shardtool.torch import Loader

    path, port, rank, newer = sys.argv[1], *map(int, sys.argv[2:5])
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=60))
    for version in (1, 1 + rank * newer):
        loader = Loader(st.Dataset(path, version=version).split("train"), 8, [st.ResizeTo(8)], remainder="mask", workers=1)
        try:
            next(iter(loader))
            print("good")
        except st.UsageError as error:
            print(error)
    dist.barrier()
    dist.destroy_process_group()
"""


def test_ranks_that_would_read_two_versions_get_an_error(dataset, tmp_path):
    """A change came between the openings of two ranks: neither waits for the other, and the later one names both versions."""
    shutil.copytree(dataset, tmp_path / "set")
    st.Dataset(tmp_path / "set").delete(split="train", ids=[0])
    for newer in (0, 1):
        port, runs = free_port(), []
        for rank in range(2):
            command = [sys.executable, "-c", textwrap.dedent(VERSIONS), str(tmp_path / "set"), *map(str, (port, rank, newer))]
            runs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        said = [run.communicate(timeout=120) for run in runs]
        assert all(run.returncode == 0 for run in runs), said
        lines = [line for out, _ in said for line in out.splitlines()]
        errors = [line for line in lines if line != "good"]
        assert len(lines) == 4 and len(errors) == newer, lines
        for error in errors:
            assert "train of version 1," in error and "train of version 2," in error and "`version=`" in error


KILLED = """
    import datetime, json, os, sys
    import torch.distributed as dist
    import shardtool as st
    from shardtool.torch import Loader

    path, port, rank, world, folder = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=60))
    loader = Loader(st.Dataset(path).split("train"), 8, [st.ResizeTo(8)], order=st.Shuffled(4), remainder="mask", workers=1)
    for step, batch in enumerate(loader):
        shown = batch["id"][batch["valid"]].tolist()
        # A checkpoint of this step, renamed into place once every rank has written its own.
        temporary = f"{folder}/rank{rank}.step{step}.tmp"
        with open(temporary, "w") as file:
            json.dump({"shown": shown, "state": loader.state_dict()}, file)
        dist.barrier()
        os.rename(temporary, f"{folder}/rank{rank}.step{step}")
        print(step, flush=True)
        if step == 2:
            # Waits to be killed, inside a step and with prefetched batches.
            sys.stdin.read()
"""


def test_three_processes_resume_after_two_were_killed(dataset, tmp_path):
    """SIGKILL inside an epoch: prefetched batches are lost with the processes, but no sample of the epoch is."""
    port = free_port()
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), *map(str, [dataset, port, rank, 2, tmp_path])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        for run in runs:
            while run.stdout.readline().strip() != "2":
                assert run.poll() is None
    finally:
        for run in runs:
            run.kill()
    assert [run.wait() for run in runs] == [-signal.SIGKILL] * 2
    kept = [[json.loads((tmp_path / f"rank{r}.step{s}").read_text()) for s in range(3)] for r in range(2)]
    assert not list(tmp_path.glob("*.step3*"))
    states = [steps[-1]["state"] for steps in kept]
    assert states[0] == states[1] and states[0]["p"] == 48
    rest = ranks(dataset, 3, json.dumps(states[0]), 0, free_port())
    shown = [i for steps in kept for step in steps for i in step["shown"]]
    shown += [i for run in rest for i in run["shown"]]
    assert sorted(shown) == list(range(COUNT))


def stored(train, row):
    """A stored image as Pillow decodes it."""
    import io

    return np.array(Image.open(io.BytesIO(train[row]["image"])).convert("RGB"))


def test_evaluation_pixels_match_torchvision(train):
    """The usual evaluation steps, on the same JPEGs decoded by Pillow; both round once per pass."""
    transforms = pytest.importorskip("torchvision.transforms.v2")
    steps = transforms.Compose([transforms.Resize(24, antialias=True), transforms.CenterCrop(20)])
    batch = next(iter(Loader(train, 32, [st.Resize(24), st.CenterCrop(20)], order=st.Sequential())))
    for row, ours in enumerate(batch["image"]):
        theirs = steps(torch.from_numpy(stored(train, row)).permute(2, 0, 1)).permute(1, 2, 0)
        assert (ours.int() - theirs.int()).abs().max() <= 1


def order_spec():
    """Loads the checker of order-spec.md, which was written from the text and not from the Rust code: keys and draws."""
    path = pathlib.Path(__file__).parents[3] / "fixtures" / "conformance" / "order" / "check.py"
    spec = importlib.util.spec_from_file_location("order_check", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def training_box(width, height, spec, draws):
    """Returns top, left, height, width, and whether to flip: as torchvision's RandomResizedCrop.get_params and
    RandomHorizontalFlip, with the specification's draws instead of torch's."""

    def unit():
        return (next(draws) >> 11) * 2.0**-53

    box = None
    for _ in range(10):
        area = width * height * (0.08 + (1.0 - 0.08) * unit())
        low, high = math.log(3 / 4), math.log(4 / 3)
        aspect = math.exp(low + (high - low) * unit())
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            box = spec.scale(next(draws), height - h + 1), spec.scale(next(draws), width - w + 1), h, w
            break
    assert box, "photographs are not so narrow that ten tries fail"
    return *box, unit() < 0.5


def test_training_crops_match_torchvision(train):
    """The usual training steps. The boxes are computed from order-spec.md, then torchvision crops and resizes Pillow's pixels.
    torchvision rounds differently: about three values in ten thousand differ by one (in the worst image eight in a
    thousand), and none by more."""
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    spec = order_spec()
    seed = 11
    loader = Loader(train, 35, [st.RandomResizedCrop((40, 32)), st.HorizontalFlip()], order=st.Sequential(seed=seed))
    largest, flips, differences = 0, 0, []
    for epoch in range(2):
        for batch in loader:
            for number, ours in zip(batch["id"].tolist(), batch["image"], strict=True):
                image = torch.from_numpy(stored(train, number)).permute(2, 0, 1)
                draws = spec.words(spec.key("augment", seed, epoch, number))
                top, left, h, w, flipped = training_box(image.shape[2], image.shape[1], spec, draws)
                theirs = functional.resized_crop(image, top, left, h, w, [40, 32], antialias=True)
                theirs = functional.horizontal_flip(theirs) if flipped else theirs
                difference = (ours.int() - theirs.permute(1, 2, 0).int()).abs()
                largest = max(largest, difference.max().item())
                differences.append(difference.float().mean().item())
                flips += flipped
    assert len(differences) == 2 * COUNT and 70 < flips < 140
    assert largest <= 1 and max(differences) < 0.02


def test_network_learns(train):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 3),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    loader = Loader(train, 15, STEPS, order=st.Shuffled(1))

    def forward(batch):
        return net(batch["image"].permute(0, 3, 1, 2) / 127.5 - 1)

    for _ in range(12):
        for batch in loader:
            loss = torch.nn.functional.cross_entropy(forward(batch), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    right = total = 0
    with torch.no_grad():
        for batch in Loader(train, 15, [st.ResizeTo(32)], order=st.Sequential()):
            right += (forward(batch).argmax(1) == batch["label"])[batch["valid"]].sum().item()
            total += batch["valid"].sum().item()
    assert total == COUNT and right / total > 0.9


def test_every_array_on_a_device_becomes_a_tensor(on_device, tmp_path):
    """PyTorch here has no CUDA: its import through DLPack is replaced by a copy to the host."""
    with st.Writer(tmp_path / "d", "train", features={"volume": st.Array(), "tokens": "int64", "text": "bytes"}) as writer:
        for number in range(12):
            pixels = np.random.default_rng(number).integers(0, 256, (40, 40, 3), np.uint8)
            writer.write({
                "key": f"{number}", "label": number, "image": pixels, "volume": np.full((2, 3), number, np.int16),
                "tokens": np.arange(number % 5), "text": "t",
            })  # fmt: skip
    code = """
    import torch
    from shardtool.torch import Loader
    split = st.Dataset(sys.argv[2]).split("train")
    context = Context()
    def from_dlpack(array):
        values = torch.from_numpy(read(array, context))
        return values.view(torch.bfloat16) if array.dtype == "bfloat16" else values
    torch.utils.dlpack.from_dlpack = from_dlpack
    views = st.Views({"a": [st.RandomResizedCrop(16)], "b": [st.RandomResizedCrop(8)]}, dtype=torch.bfloat16)
    fields = [views, "tokens", "text", st.Arrays("volume")]
    loader = Loader(split, 4, fields, order=st.Shuffled(5), device="cuda:0")
    for ours, theirs in zip(loader, Loader(split, 4, fields, order=st.Shuffled(5)), strict=True):
        assert set(ours) == {*theirs, "host"}
        for name, value in theirs.items():
            if isinstance(value, st.Ragged):
                assert all(torch.equal(a, b) for a, b in zip(ours[name], value, strict=True)), name
                assert ours[name].row(1).tolist() == value.row(1).tolist()
            elif isinstance(value, list):
                assert ours[name] == value
            else:
                assert ours[name].dtype == value.dtype and torch.equal(ours[name], value), name
        assert torch.equal(ours["host"]["label"], theirs["label"])
    del ours
    loader.close()
    context.close()
    """
    on_device(code, tmp_path / "d")
