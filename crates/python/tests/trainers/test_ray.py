"""Ray Train with two workers: a resumed run equals an uninterrupted one."""

from __future__ import annotations

import pytest
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
