"""What training frameworks expect of a loader. The tests in `trainers` run the frameworks themselves."""

import numpy as np
import pytest
from conftest import COUNT

import shardtool as st

torch = pytest.importorskip("torch")
from shardtool.torch import Loader  # noqa: E402

STEPS = [st.RandomResizedCrop(16), st.HorizontalFlip()]


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """Removes rank variables that another test left."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


def test_loader_has_a_length_a_plain_state_and_repeats_epochs(train):
    """The length is that of a whole epoch, also inside one; the state is plain data."""
    loader = Loader(train, 15, STEPS, order=st.Shuffled(7))
    assert len(loader) == COUNT // 15 and not isinstance(loader, torch.utils.data.DataLoader)
    next(iter(loader))
    assert len(loader) == COUNT // 15
    state = loader.state_dict()
    assert all(isinstance(value, (int, str, dict, type(None))) for value in state.values())
    loader.set_epoch(4)
    fresh = st.Loader(train, 15, STEPS, order=st.Shuffled(7))
    fresh.set_epoch(4)
    for ours, theirs in zip(loader, fresh, strict=True):
        assert np.array_equal(ours["id"], theirs["id"])
