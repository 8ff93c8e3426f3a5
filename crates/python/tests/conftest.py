"""A small dataset, made by Pillow and packed by the module under test, a stand-in for a device, and a server of object stores."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

import shardtool as st

CLASSES = ["heron", "owl", "teapot"]
EACH = 35
COUNT = len(CLASSES) * EACH


def pytest_configure(config):
    config.addinivalue_line("markers", "campaign: run by scripts/campaign only")
    # A shell ignores it for programs in the background, and tests send it.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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


HERE = pathlib.Path(__file__).parent
#: The first lines of programs that `on_device` runs.
BEGIN = """
import gc, sys
import numpy as np
import shardtool as st
from consumer import Context, Taken, read
split = st.Dataset(sys.argv[1]).split("train")
STEPS = [st.RandomResizedCrop(24), st.HorizontalFlip()]
"""


#: Whether tests of devices run on a GPU, as `benches/device/run` runs them.
GPU = os.environ.get("SHARDTOOL_TEST_GPU") == "1"


@pytest.fixture(scope="session")
def driver(tmp_path_factory) -> pathlib.Path:
    """The folder of the stand-in `libcuda.so.1`, built from crates/cuda's tests; an empty one with SHARDTOOL_TEST_GPU=1, where the tests
    run on the driver of the machine."""
    folder = tmp_path_factory.mktemp("driver")
    if GPU:
        return folder
    source = HERE.parents[1] / "cuda" / "tests" / "standin"
    command = [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", folder / "libcuda.so.1"]
    subprocess.run([*command, source / "cuda.c", source / "kernel.cpp", "-lpthread", "-lm"], check=True)
    return folder


@pytest.fixture
def on_device(driver, dataset, tmp_path):
    """Runs a program with the stand-in, and checks its report for violations, leaks, and whether batches were mixed there."""

    def run(code, *arguments, clean=True, mixed=False, **environment):
        report = tmp_path / "report.json"
        path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        if GPU and environment.keys() - {"STANDIN_DELAY_US"}:
            pytest.skip("what it sets is for the stand-in driver")
        if not GPU:
            environment = {"LD_LIBRARY_PATH": str(driver), "STANDIN_REPORT": str(report), **environment}
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + textwrap.dedent(code), str(dataset), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": path, **environment},
        )
        assert done.returncode == 0, done.stderr
        if GPU:
            return done.stdout
        seen = json.loads(report.read_text())
        assert seen["violations"] == 0 and (seen["mixed"] > 0) == mixed, seen
        if clean:
            left = {n: seen[n] for n in ("device_memory", "pinned_memory", "events", "streams", "modules", "contexts")}
            assert not any(left.values()), left
        return done.stdout

    return run


#: Built by `cargo test`; `SHARDTOOL_STORE_SERVER` names another place.
SERVER = pathlib.Path(__file__).parents[3] / "target/debug/examples/store-server"
#: The port of the first server: a process keeps its connections to a bucket, and the servers of later modules take its place.
PORTS: list[str] = []


@pytest.fixture(scope="module")
def bucket(tmp_path_factory) -> Iterator[pathlib.Path]:
    """The folder of the bucket `s3://bucket` of a server, to which the environment variables lead."""
    binary = pathlib.Path(os.environ.get("SHARDTOOL_STORE_SERVER", SERVER))
    if not binary.exists():
        pytest.skip(f"no {binary} (cargo test builds it)")
    root = tmp_path_factory.mktemp("s3")
    (root / "bucket").mkdir()
    command = [binary, root, *(f"--port={port}" for port in PORTS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        with pytest.MonkeyPatch.context() as patch:
            for _ in range(5):
                name, value = server.stdout.readline().removeprefix("export ").rstrip("\n").split("=", 1)
                patch.setenv(name, value)
            PORTS[:] = [os.environ["AWS_ENDPOINT_URL"].rsplit(":", 1)[1]]
            yield root / "bucket"
            # Ends the server, which then prints its counts.
            server.communicate("")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Ray on this machine, for a module. If the module has `IN_STORES`, its workers reach the server of `bucket`."""
    ray: Any = pytest.importorskip("ray")
    if getattr(request.module, "IN_STORES", False):
        request.getfixturevalue("bucket")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Workers do not have the module.
    ray.cloudpickle.register_pickle_by_value(request.module)
    # Tests without a cluster may have started one.
    ray.shutdown()
    ray.init("local", num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", configure_logging=False)
    yield ray
    ray.shutdown()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def frame(data: bytes) -> bytes:
    """Returns a TFRecord frame."""

    def masked(data: bytes) -> bytes:
        crc = crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def frames(data: bytes) -> list[bytes]:
    """Returns the data of the frames of a TFRecord file."""
    found = []
    while data:
        end = 12 + struct.unpack("<Q", data[:8])[0]
        found.append(data[12:end])
        data = data[end + 4 :]
    return found
