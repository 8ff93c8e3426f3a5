"""The frameworks of the matrix, how each is started, and the batches that each must deliver."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from conftest import COUNT

import shardtool as st

EPOCHS = 2
PROGRAMS = pathlib.Path(__file__).parent / "programs"
sys.path.insert(0, str(PROGRAMS))
from job import SEED, TRAINING, Job, Run, execute  # noqa: E402

#: No downloads, no other machines, and sums in one order.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class Framework:
    """A row of the matrix."""

    name: str
    program: str
    #: The packages that it needs.
    needs: tuple[str, ...]
    ranks: int = 1
    #: Devices that one loader feeds.
    devices: int = 1
    #: `"here"`: in the process of the test. `"own"`: one process is started, the framework launches the other ranks.
    #: `"torchrun"`: PyTorch launches all ranks.
    launcher: str = "here"
    #: Options of the image that change pixels.
    output: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def missing(self) -> str | None:
        """Returns the first package that is not installed."""
        return next((name for name in self.needs if importlib.util.find_spec(name) is None), None)

    @property
    def batch_size(self) -> int:
        """Rows on each rank or device. One rank's batches fill the 105 samples exactly; several ranks drop a remainder."""
        # Mixup requires an even batch size.
        return {1: 14 if self.program == "timm_loop" else 15, 2: 8, 4: 4}[self.ranks * self.devices]

    @property
    def rows(self) -> int:
        """Rows of a step over all ranks and devices."""
        return self.batch_size * self.ranks * self.devices

    def jobs(self, dataset: str, folder: pathlib.Path) -> dict[str, Job]:
        """Returns the jobs of the cells, by name."""
        # Inside the second epoch. The checkpoint of Hugging Face's Trainer is in a folder that it names itself.
        stop = COUNT // self.rows + 2
        saved = str(folder / f"checkpoint-{stop}")
        options = {"reports": str(folder), "batch_size": self.batch_size, "ranks": self.ranks, "epochs": EPOCHS}
        changes: dict[str, dict[str, Any]] = {
            "whole": {},
            "first": {"stop_after": stop, "save": saved},
            "rest": {"resume": saved},
            "accumulate": {"accumulate": 4},
            "early stop": {"stop_after": 3},
            "evaluate": {"evaluate": True},
        }
        return {name: Job(dataset, name=name, **options, **each) for name, each in changes.items()}

    def launch(self, folder: pathlib.Path, jobs: list[Job]) -> None:
        """Runs the program once, with these jobs one after the other; each rank writes a report of each."""
        if self.launcher == "here":
            for job in jobs:
                execute(self.program, job)
            return
        path = folder / "jobs.json"
        path.write_text(json.dumps(list(map(dataclasses.asdict, jobs))))
        environment = {**os.environ, **ENVIRONMENT}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "MASTER_ADDR"):
            environment.pop(name, None)
        command = [sys.executable]
        if self.devices > 1:
            environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={self.devices}"
        if self.launcher == "torchrun":
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                port = listener.getsockname()[1]
            command += ["-m", "torch.distributed.run", "--nproc-per-node", str(self.ranks)]
            command += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
        command += [str(PROGRAMS / "job.py"), self.program, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]

    def reports(self, folder: pathlib.Path, name: str) -> list[Run]:
        """Returns the reports of a job, by rank."""
        paths = [folder / f"{name}-{rank}.json" for rank in range(self.ranks)]
        return [Run(**json.loads(path.read_text())) for path in paths]

    def expected(self, dataset: str) -> list[Run]:
        """Returns ids and pixels of two epochs on each rank, from loaders with a given rank and without a framework."""
        split = st.Dataset(dataset).split("train")
        world, found, image = self.ranks * self.devices, [], st.Image(TRAINING, **dict(self.output))
        for rank in range(world):
            options = {"order": st.Shuffled(SEED), "replica": st.Replica(rank, world), "workers": 1}
            loader = st.Loader(split, self.batch_size, image, **options)
            found.append([(b["id"].copy(), b["image"].copy()) for _ in range(EPOCHS) for b in loader])
        if self.devices > 1:
            # One array over all devices: the concatenated rows.
            steps = zip(*found, strict=True)
            found = [[tuple(map(np.concatenate, zip(*parts, strict=True))) for parts in steps]]
        runs = []
        for rank, batches in enumerate(found):
            run = Run(rank=rank, ids=[ids.tolist() for ids, _ in batches])
            if self.program == "plain_jax":
                from plain_jax import checksums

                run.pixels = [checksums(image) for _, image in batches]
            else:
                run.pixels = [zlib.crc32(image) for _, image in batches]
            runs.append(run)
        return runs


_FLOAT = (("dtype", "float32"),)
_NORMALISED = (*_FLOAT, ("mean", (0.485, 0.456, 0.406)), ("std", (0.229, 0.224, 0.225)))

FRAMEWORKS = [
    Framework("torch", "plain_torch", ("torch",)),
    Framework("torch DDP, torchrun", "plain_torch", ("torch",), ranks=2, launcher="torchrun"),
    Framework("JAX", "plain_jax", ("jax",)),
    Framework("JAX, 4 devices", "plain_jax", ("jax",), devices=4, launcher="own"),
    Framework("Lightning", "lightning_fit", ("lightning",)),
    Framework("Lightning DDP, own launcher", "lightning_fit", ("lightning",), ranks=2, launcher="own"),
    Framework("Lightning DDP, torchrun", "lightning_fit", ("lightning",), ranks=2, launcher="torchrun"),
    Framework("HF Trainer", "hf_trainer", ("transformers", "accelerate"), output=_FLOAT),
    Framework("HF Trainer, torchrun", "hf_trainer", ("transformers", "accelerate"), 2, launcher="torchrun", output=_FLOAT),
    Framework("Accelerate", "accelerate_loop", ("accelerate",)),
    Framework("Accelerate, torchrun", "accelerate_loop", ("accelerate",), ranks=2, launcher="torchrun"),
    Framework("timm", "timm_loop", ("timm",), output=_NORMALISED),
]
