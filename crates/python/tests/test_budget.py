"""The default budget grows with the batches that the consumer holds, so that no run fails. A given one is kept exactly."""

import gc
import warnings

import numpy as np
import pytest
from test_loader import STEPS, ids_of, one_epoch

import shardtool as st


@pytest.fixture
def loader(train):
    # 105 batches per epoch.
    return st.Loader(train, 1, STEPS, order=st.Shuffled(2), prefetch=st.Prefetch(starve_after=2.0))


def expected(train):
    return one_epoch(st.Loader(train, 1, STEPS, order=st.Shuffled(2)))


def test_consumer_may_hold_a_window_of_any_size(train, loader):
    ids, sums = expected(train)
    for window in (2, 4, 16, 64):
        loader.set_epoch(0)
        batches, held = iter(loader), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while len(held) < window:
                held.append(next(batches))
        assert ids_of(held) == ids[:window]
        assert [int(batch["image"].astype(np.uint64).sum()) for batch in held] == sums[:window]
        assert loader.stats()["batches_held"] == window
        del batches
        held.clear()
        gc.collect()
    assert loader.stats()["extra_batches"] <= 2, "returned batches are freed"


def test_holding_whole_epochs_warns_once(train, loader):
    with pytest.warns(st.ShardtoolWarning) as caught:
        batches = list(loader)
        batches += list(loader)
    assert len(batches) == 210 and ids_of(batches[:105]) == expected(train)[0]
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 1 and "the consumer keeps" in texts[0] and "90 %" in texts[0], texts


def test_later_batches_are_right_while_views_and_batches_are_held(train, loader):
    ids, sums = expected(train)
    batches = iter(loader)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        views = [next(batches)["image"][0, 3, 5] for _ in range(20)]
        skipped = [next(batches) for _ in range(30)]
        rest = [int(batch["image"].astype(np.uint64).sum()) for batch in batches]
    assert len(views) == 20 and len(skipped) == 30 and rest == sums[50:]


def test_plain_loop_causes_no_extra_memory_and_no_warning(loader):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            for batch in loader:
                assert loader.stats()["extra_batches"] == 0
    assert batch["id"].size == 1


def test_holding_every_batch_of_a_given_budget_raises(train):
    loader = st.Loader(train, 8, STEPS, memory="1500KiB", prefetch=st.Prefetch(starve_after=0.2), workers=1)
    with pytest.raises(st.StarvedError, match="given memory budget allows") as raised:
        list(loader)
    assert isinstance(raised.value, RuntimeError)
    assert len(next(iter(loader))["id"]) == 8


@pytest.mark.parametrize("budget", [None, "2MiB"])
def test_jax_loop_without_synchronisation_gets_every_batch(train, budget):
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp
    from shardtool.jax import Loader

    @jax.jit
    def step(weights, image):
        for _ in range(20):
            weights = jnp.tanh(weights @ weights)
        return weights + image.astype(jnp.float32).mean()

    loader = Loader(train, 8, STEPS, order=st.Shuffled(2), memory=budget, prefetch=st.Prefetch(starve_after=5.0))
    weights, ids = jnp.eye(256), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            for batch in loader:
                weights = step(weights, batch["image"])
                ids.append(batch["id"])
    plain = [batch["id"].tolist() for _, batch in zip(range(13), st.Loader(train, 8, STEPS, order=st.Shuffled(2)))]
    assert np.isfinite(np.asarray(weights)).all() and [np.asarray(i).tolist() for i in ids[:13]] == plain


def test_held_jax_arrays_keep_their_values(train):
    pytest.importorskip("jax")
    from shardtool.jax import Loader

    for budget in (None, "3MiB"):
        loader = Loader(train, 8, STEPS, order=st.Shuffled(2), memory=budget, prefetch=st.Prefetch(starve_after=5.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept = [batch["image"] for batch in loader]
        expected = [batch["image"].copy() for batch in st.Loader(train, 8, STEPS, order=st.Shuffled(2))]
        assert all(np.array_equal(np.asarray(a), b) for a, b in zip(kept, expected, strict=True))


@pytest.mark.parametrize("accumulate", [1, 4, 64])
def test_gradient_accumulation_shows_every_sample_once(train, accumulate):
    torch = pytest.importorskip("torch")
    from shardtool.torch import Loader

    image, prefetch = st.Image(STEPS, mean=(0.5,) * 3, std=(0.25,) * 3), st.Prefetch(starve_after=2.0)
    loader = Loader(train, 1, image, order=st.Shuffled(2), prefetch=prefetch)
    net = torch.nn.Linear(3 * 32 * 32, 3)
    batches, shown = iter(loader), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while True:
            # Reads the whole window first, as Hugging Face's Trainer does.
            window = [batch for _, batch in zip(range(accumulate), batches)]
            for batch in window:
                torch.nn.functional.cross_entropy(net(batch["image"].flatten(1)), batch["label"]).backward()
                shown += batch["id"].tolist()
            if len(window) < accumulate:
                break
    assert sorted(shown) == list(range(105))
