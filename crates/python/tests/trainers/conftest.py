"""A Ray cluster for the tests of a module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Ray on this machine, for a module. If the module has `IN_STORES`, its workers reach the server of `bucket`."""
    ray = pytest.importorskip("ray")
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
