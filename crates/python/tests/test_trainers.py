"""Lightning and Accelerate, with the loader handed over as it is: a fit, a checkpoint inside an epoch, and going on."""

import os

import numpy as np
import pytest
from conftest import COUNT

import shardtool as st

torch = pytest.importorskip("torch")
from shardtool.torch import Loader  # noqa: E402

STEPS = [st.RandomResizedCrop(16), st.HorizontalFlip()]


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """No rank left behind by another test."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


def make_net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16 * 16 * 3, 3))


def loss_of(net, batch):
    return torch.nn.functional.cross_entropy(net(batch["image"] / 255), batch["label"])


def expected(train, epochs, seed):
    """Ids of each batch of so many epochs, one after the other."""
    loader = st.Loader(train, 15, STEPS, seed=seed)
    return [batch["id"].tolist() for _ in range(epochs) for batch in loader]


class Stop(Exception):
    """What ends a run in the middle."""


def test_lightning(train, tmp_path):
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):
        def __init__(self, stop_after=None):
            super().__init__()
            self.net, self.stop_after, self.shown = make_net(), stop_after, []

        def training_step(self, batch, _):
            self.shown.append(batch["id"].tolist())
            return loss_of(self.net, batch)

        def on_train_batch_end(self, *_):
            if len(self.shown) == self.stop_after:
                self.trainer.save_checkpoint(tmp_path / "last.ckpt")
                raise Stop

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    def trainer():
        return lightning.Trainer(
            max_epochs=3,
            accelerator="cpu",
            use_distributed_sampler=False,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )

    # Three epochs, each in its order.
    whole = Module()
    trainer().fit(whole, Loader(train, 15, STEPS, seed=7))
    assert whole.shown == expected(train, 3, 7) and len(whole.shown) == 3 * COUNT // 15

    # Ended inside the second one; the checkpoint holds the loader's state, and another run goes on from there.
    first = Module(stop_after=10)
    with pytest.raises(Stop):
        trainer().fit(first, Loader(train, 15, STEPS, seed=7))
    second = Module()
    trainer().fit(second, Loader(train, 15, STEPS, seed=7), ckpt_path=tmp_path / "last.ckpt", weights_only=False)
    assert first.shown + second.shown == whole.shown


def test_accelerate(train, tmp_path):
    accelerate = pytest.importorskip("accelerate")
    os.environ.pop("ACCELERATE_USE_CPU", None)

    def run(steps, state=None):
        """So many steps; their ids."""
        accelerator = accelerate.Accelerator(cpu=True)
        loader = Loader(train, 15, STEPS, seed=7)
        net = make_net()
        net, optimizer, prepared = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.01), loader)
        # It wraps what is a DataLoader, and nothing else.
        assert prepared is loader
        accelerator.register_for_checkpointing(loader)
        if state:
            accelerator.load_state(state)
        shown = []
        while True:
            for batch in loader:
                shown.append(batch["id"].tolist())
                optimizer.zero_grad()
                accelerator.backward(loss_of(net, batch))
                optimizer.step()
                if len(shown) == steps:
                    accelerator.save_state(str(tmp_path / "state"))
                    return shown

    first = run(10)
    assert first + run(11, str(tmp_path / "state")) == expected(train, 3, 7)


def test_what_they_expect_of_a_loader(train):
    """Sized by the whole epoch, also inside one; iterable again; a state that is plain data."""
    loader = Loader(train, 15, STEPS, seed=7)
    assert len(loader) == COUNT // 15 and not isinstance(loader, torch.utils.data.DataLoader)
    next(iter(loader))
    assert len(loader) == COUNT // 15
    state = loader.state_dict()
    assert all(isinstance(value, (int, str, dict, type(None))) for value in state.values())
    loader.set_epoch(4)
    fresh = st.Loader(train, 15, STEPS, seed=7)
    fresh.set_epoch(4)
    for ours, theirs in zip(loader, fresh, strict=True):
        assert np.array_equal(ours["id"], theirs["id"])
