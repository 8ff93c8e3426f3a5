"""Ray Train with two workers: a resumed run equals an uninterrupted one. The example restarts with other numbers of workers."""

from __future__ import annotations

import importlib.util
import json
import pathlib

import pytest
from conftest import COUNT
from frameworks import ENVIRONMENT, PROGRAMS, Framework

RAY = Framework("Ray Train", "ray_train", ("ray", "torch"), ranks=2)


@pytest.mark.campaign
def test_ray_train(dataset, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    from ray_train import train

    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    variables = {**ENVIRONMENT, "PYTHONPATH": str(PROGRAMS), "RAY_USAGE_STATS_ENABLED": "0"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value, prepend=":" if name == "PYTHONPATH" else None)
    jobs = RAY.jobs(str(dataset), tmp_path)
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", configure_logging=False)
    try:
        train(jobs["whole"], tmp_path / "storage")
        checkpoint = train(jobs["first"], tmp_path / "storage")
        train(jobs["rest"], tmp_path / "storage", checkpoint)
    finally:
        ray.shutdown()
    whole, first, rest = (RAY.reports(tmp_path, name) for name in ("whole", "first", "rest"))
    for one, two, all_, expected in zip(first, rest, whole, RAY.expected(str(dataset)), strict=True):
        assert all_.ids == expected.ids and all_.pixels == expected.pixels
        assert one.ids + two.ids == all_.ids and one.pixels + two.pixels == all_.pixels
        assert one.losses + two.losses == all_.losses
        assert two.weights == all_.weights
        assert len(one.ids) == jobs["first"].stop_after


EXAMPLE = pathlib.Path(__file__).parents[4] / "examples" / "ray_train.py"


def example():
    """Returns the example as a module."""
    spec = importlib.util.spec_from_file_location("example_ray_train", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def work(config):
    """Trains in one worker, and records the ids of each step; after `stop` steps of the epoch, the worker fails."""
    module = example()
    make = module.make_loader

    class Recording:
        """A loader that records what it delivers."""

        def __init__(self, loader):
            self._loader = loader

        def __getattr__(self, name):
            return getattr(self._loader, name)

        def __len__(self):
            return len(self._loader)

        def __iter__(self):
            context = module.ray.train.get_context()
            name = f"{context.get_world_size()}-{context.get_world_rank()}.jsonl"
            for step, batch in enumerate(self._loader, self._loader.steps_done + 1):
                if step == config["stop"]:
                    raise RuntimeError("a node is lost")
                with open(pathlib.Path(config["records"]) / name, "a") as file:
                    ids = batch["id"][batch["label"] >= 0].tolist()
                    print(json.dumps([step, self._loader.state_dict()["epoch"], ids]), file=file)
                yield batch

    module.make_loader = lambda config: Recording(make(config))
    module.work(config)


@pytest.mark.campaign
def test_example_sees_each_image_once_with_changing_workers(dataset, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    pytest.importorskip("torchvision")
    pytest.importorskip("ray.train")
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    tests = pathlib.Path(__file__).parent
    variables = {**ENVIRONMENT, "PYTHONPATH": f"{tests}:{tests.parent}:{PROGRAMS}", "RAY_USAGE_STATS_ENABLED": "0"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value, prepend=":" if name == "PYTHONPATH" else None)
    (tmp_path / "records").mkdir()
    config = {"dataset": str(dataset), "size": 32, "batch_size": 7, "model": "resnet18", "save_every": 2, "epochs": 1}
    config |= {"records": str(tmp_path / "records")}
    ray.init(num_cpus=3, include_dashboard=False, _node_ip_address="127.0.0.1", configure_logging=False)
    try:
        run = ray.train.RunConfig(name="run", storage_path=str(tmp_path / "storage"))
        # Two workers fail in their fourth step: the checkpoint is of the second one. One worker fails in its eighth after that.
        for workers, stop in ((2, 4), (1, 10)):
            with pytest.raises(Exception):
                example().train({**config, "stop": stop}, workers, False, run, work)
        result = example().train({**config, "stop": None}, 2, False, run, work)
        assert result.metrics["epoch"] == 0
    finally:
        ray.shutdown()
    # What was trained before the checkpoints from which the runs continued: steps 1 and 2 of two workers, then, of 7 images
    # instead of 14, steps 5 to 8 of one, then steps 5 to 8 of two.
    kept = {"1": {5, 6, 7, 8}, "2": {1, 2, 5, 6, 7, 8}}
    seen = []
    for path in (tmp_path / "records").iterdir():
        steps = [json.loads(line) for line in path.read_text().splitlines()]
        assert all(epoch == 0 for _, epoch, _ in steps[:-1])
        seen += [id for step, _, ids in steps if step in kept[path.name[0]] for id in ids]
    assert sorted(seen) == list(range(COUNT))
