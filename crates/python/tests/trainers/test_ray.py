"""Ray Train: a resumed run equals an uninterrupted one. The example restarts with other numbers of workers, by hand and by Ray."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import threading
import time
import uuid

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
    ray.init("local", num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", configure_logging=False)
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


class Watched:
    """A loader, which a subclass watches while it delivers."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def __len__(self):
        return len(self._loader)


def environment(monkeypatch, **more):
    """Sets the variables of the workers that run the example."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    tests = pathlib.Path(__file__).parent
    variables = {**ENVIRONMENT, "PYTHONPATH": f"{tests}:{tests.parent}:{PROGRAMS}", "RAY_USAGE_STATS_ENABLED": "0", **more}
    for name, value in variables.items():
        monkeypatch.setenv(name, value, prepend=":" if name == "PYTHONPATH" else None)


def work(config):
    """Trains in one worker, and records the ids of each step; after `stop` steps of the epoch, the worker fails."""
    module = example()
    make = module.make_loader

    class Recording(Watched):
        """A loader that records what it delivers."""

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
    environment(monkeypatch)
    (tmp_path / "records").mkdir()
    config = {"dataset": str(dataset), "size": 32, "batch_size": 7, "model": "resnet18", "save_every": 2, "epochs": 1}
    config |= {"records": str(tmp_path / "records")}
    ray.init("local", num_cpus=3, include_dashboard=False, _node_ip_address="127.0.0.1", configure_logging=False)
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


def elastic_work(config):
    """Trains in one worker of an elastic group. Records where it begins, and the ids of each step. In a step that `pauses` names
    for the number of workers, it waits to be stopped."""
    module = example()
    make = module.make_loader

    class Recording(Watched):
        """A loader that records what it delivers."""

        def __iter__(self):
            context = module.ray.train.get_context()
            world, begun = context.get_world_size(), self._loader.steps_done
            name = f"{time.time():.3f}-{context.get_world_rank()}-{uuid.uuid4().hex}.jsonl"
            rows = config["batch_size"] * world
            with open(pathlib.Path(config["records"]) / name, "a") as file:
                print(json.dumps({"world": world, "begun": begun * rows}), file=file, flush=True)
                for step, batch in enumerate(self._loader, begun + 1):
                    ids = batch["id"][batch["label"] >= 0].tolist()
                    print(json.dumps({"end": step * rows, "ids": ids}), file=file, flush=True)
                    # The second group of two workers is not stopped.
                    while step == config["pauses"].get(world) and not (world == 2 and begun):
                        time.sleep(0.1)
                    yield batch

    module.make_loader = lambda config: Recording(make(config))
    module.work(config)


@pytest.mark.campaign
def test_example_is_elastic_when_nodes_leave_and_join(dataset, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    pytest.importorskip("torchvision")
    pytest.importorskip("ray.train")
    from ray.cluster_utils import Cluster

    # Ray tries to start two workers once more before it notices that the node is lost.
    environment(monkeypatch, RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S="15")
    records = tmp_path / "records"
    records.mkdir()
    config = {"dataset": str(dataset), "size": 32, "batch_size": 7, "model": "resnet18", "save_every": 2, "epochs": 1}
    config |= {"records": str(records), "pauses": {2: 3, 1: 9}}

    def runs():
        """Returns the lines of each worker, in the order of their starts."""
        found = [[json.loads(line) for line in path.read_text().splitlines()] for path in sorted(records.iterdir())]
        return [lines for lines in found if lines]

    def wait_for(world, end):
        """Waits until as many workers have gone so far, and Ray knows of a checkpoint."""
        for _ in range(1800):
            known = (tmp_path / "storage" / "run" / "checkpoint_manager_snapshot.json").exists()
            if known and any((lines[0]["world"], lines[-1].get("end")) == (world, end) for lines in runs()):
                return
            time.sleep(0.1)
        raise AssertionError(runs())

    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    results = []
    try:
        node = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, configure_logging=False)
        run = ray.train.RunConfig(
            name="run", storage_path=str(tmp_path / "storage"), failure_config=ray.train.FailureConfig(max_failures=3)
        )
        module = example()
        # Ray looks for new nodes once a minute by default.
        scaling = ray.train.ScalingConfig
        monkeypatch.setattr(
            module.ray.train, "ScalingConfig", lambda **options: scaling(**options, elastic_resize_monitor_interval_s=5)
        )
        # Nodes are started in the main thread only.
        training = threading.Thread(target=lambda: results.append(module.train(config, (1, 2), False, run, elastic_work)))
        training.start()
        # Two workers wait in their third step; the checkpoint is of the second.
        wait_for(world=2, end=3 * 14)
        cluster.remove_node(node, allow_graceful=False)
        # One worker continues, and waits in a later step.
        wait_for(world=1, end=9 * 7)
        cluster.add_node(num_cpus=1)
        training.join(180)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert [result.metrics["epoch"] for result in results] == [0]
    groups = {}
    for lines in runs():
        groups.setdefault((lines[0]["begun"], lines[0]["world"]), []).append(lines)
    assert [world for _, world in sorted(groups)] == [2, 1, 2], sorted(groups)
    starts = [begun for begun, _ in sorted(groups)]
    assert starts == [0, 2 * 14, 8 * 7]
    # What each group delivered before the checkpoint from which the next one continued.
    seen = []
    for group, until in zip(sorted(groups), [*starts[1:], COUNT + 14], strict=True):
        kept = [line for lines in groups[group] for line in lines[1:] if line["end"] <= until]
        seen += [id for line in kept for id in line["ids"]]
    assert sorted(seen) == list(range(COUNT))
