"""Answers arguments that a loader does not have: those of PyTorch's `DataLoader`, and options that belong to a field."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .errors import OptionTypeError

#: What to write in place of an argument.
_INSTEAD = {
    "shuffle": "samples are shuffled by default; `order=st.Sequential()` keeps their order",
    "num_workers": "`workers` is the number of threads, by default one for each CPU",
    "seed": "the seed belongs to the order: `order=st.Shuffled(seed=7)`",
    "drop_last": '`remainder="drop"`, `"pad"` or `"mask"`',
    "sampler": "`source=st.Subset(...)`, `st.Balanced()`, `st.Weighted(...)`, `st.Mixture(...)` or `st.Scheduled(...)`",
    "batch_sampler": "`buckets=...` groups samples of one shape; `source=...` chooses the samples",
    "prefetch_factor": "`prefetch` is the number of batches ahead",
    "generator": "`order=st.Shuffled(seed=7)` has the seed of order and augmentation",
    "worker_init_fn": "workers are threads; the seed of the order decides all random numbers",
    "timeout": "`prefetch=st.Prefetch(starve_after=10)` is the time limit in seconds",
    "pin_memory": 'leave it out: `device="cuda"` uploads from pinned memory',
    "pin_memory_device": 'leave it out: `device="cuda"` uploads from pinned memory',
    "persistent_workers": "leave it out: threads live as long as the loader",
    "multiprocessing_context": "leave it out: workers are threads",
    "in_order": "leave it out: batches are always in order",
    "dataset": "the split is the first argument, `data`",
    "transform": "the steps of an image are the third argument, or `st.Image([...])` in a list of `fields`",
    "columns": "list the names of features, or `st.Column(...)`, among the `fields`: `[st.Image(steps), \"caption\"]`",
    "mask": "add `st.Mask(\"mask\")` to the `fields`",
    "mask_dtype": "`st.Mask(\"mask\", dtype=\"uint16\")`",
    "mask_fill": "`st.Mask(\"mask\", fill=0)`",
    "more_images": "add `st.FurtherImage(\"depth\", kind=\"values\")` to the `fields`",
    "clip": "give `st.Clip(\"frames\", steps, 8)` among the `fields`",
    "objects": "add `st.Objects(...)` to the `fields`",
    "arrays": "add `st.Arrays(...)` to the `fields`",
    "packing": "add `st.Tokens(...)` to the `fields`",
    **dict.fromkeys(
        (
            "mean", "std", "dtype", "layout", "mode", "bits", "apply_orientation", "scaled_decode", "float_range", "truncated",
            "decoded_cache",
        ),
        "it belongs to the image: `st.Image(steps, mean=..., std=..., ...)`",
    ),
    **dict.fromkeys(("on_bad", "max_bad"), "`bad_samples=st.BadSamples(\"mask\", max_bad=100)`"),
    **dict.fromkeys(
        ("rank", "world_size", "world", "local_replicas", "policy"), "`replica=st.Replica(rank, world_size, policy=...)`"
    ),
    "memory_budget": "`memory=\"4GiB\"`",
    **dict.fromkeys(
        ("read_ahead", "fetch_gap", "fetch_size", "page_cache", "starve_after"), "`prefetch=st.Prefetch(read_ahead=..., ...)`"
    ),
    **dict.fromkeys(("slots", "device_memory_limit", "devices"), "`device=st.Device(\"cuda:0\", memory_limit=..., slots=4)`"),
}


def refuse(unknown: Iterable[str], known: Iterable[str]) -> None:
    """Raises `OptionTypeError` for the first unknown argument, with what to write in its place."""
    for name in unknown:
        instead = _INSTEAD.get(name)
        if instead is None:
            close = difflib.get_close_matches(name, list(known), 1)
            instead = f"did you mean `{close[0]}`?" if close else "see `help(st.Loader)`"
        raise OptionTypeError(f"`Loader` has no argument `{name}`: {instead}")
