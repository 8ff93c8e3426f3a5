"""Answers the arguments of PyTorch's `DataLoader` with those of the loader."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .errors import OptionTypeError

#: What to write in place of an argument of `torch.utils.data.DataLoader`.
_INSTEAD = {
    "shuffle": "samples are shuffled by default; `order=st.Sequential()` keeps their order",
    "num_workers": "`workers` is the number of threads, by default one for each CPU",
    "drop_last": '`remainder="drop"`, `"pad"` or `"mask"`',
    "sampler": "`source=st.Subset(...)`, `st.Balanced()`, `st.Weighted(...)` or `st.Mixture(...)`",
    "batch_sampler": "`buckets=...` groups samples of one shape; `source=...` chooses the samples",
    "prefetch_factor": "`prefetch` is the number of batches ahead",
    "generator": "`seed` is the seed of order and augmentation",
    "worker_init_fn": "workers are threads; `seed` decides all random numbers",
    "timeout": "`starve_after` is the time limit in seconds",
    "pin_memory": 'leave it out: `device="cuda"` uploads from pinned memory',
    "pin_memory_device": 'leave it out: `device="cuda"` uploads from pinned memory',
    "persistent_workers": "leave it out: threads live as long as the loader",
    "multiprocessing_context": "leave it out: workers are threads",
    "in_order": "leave it out: batches are always in order",
    "dataset": "the split is the first argument, `data`",
}


def refuse(unknown: Iterable[str], known: Iterable[str]) -> None:
    """Raises `OptionTypeError` for the first unknown argument, with what to write in its place."""
    for name in unknown:
        instead = _INSTEAD.get(name)
        if instead is None:
            close = difflib.get_close_matches(name, list(known), 1)
            instead = f"did you mean `{close[0]}`?" if close else "see `help(st.Loader)`"
        raise OptionTypeError(f"`Loader` has no argument `{name}`: {instead}")
