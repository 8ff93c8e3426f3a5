"""Progress of long calls in notebooks. On a terminal the native module draws a bar itself."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, Protocol

__all__ = ["Reporter", "reporter"]

#: Seconds between two lines.
_INTERVAL = 2.0


class Reporter(Protocol):
    """Shows the progress of one call."""

    def __call__(self, done: int, total: int, nbytes: int) -> None:
        """Shows that `done` units of `total`, with `nbytes` bytes, are done."""

    def close(self) -> None:
        """Shows the end of the call."""


def reporter(verb: str, unit: str) -> Reporter | None:
    """Returns a reporter for a notebook: a tqdm bar if tqdm is installed, else lines on stderr. Returns `None` outside of
    notebooks. `verb` and `unit` are its labels, for example `packed` and `images`."""
    if not _in_notebook():
        return None
    try:
        tqdm: Any = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _Lines(verb, unit)
    return _Bar(tqdm(desc=verb, unit=f" {unit}", total=None))


def _in_notebook() -> bool:
    """Returns whether this process is the kernel of a notebook, whose output is not a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class _Bar:
    """A tqdm bar."""

    def __init__(self, bar: Any):
        self._bar = bar

    def __call__(self, done: int, total: int, nbytes: int) -> None:
        if total and self._bar.total != total:
            self._bar.reset(total)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _Lines:
    """Prints a line every two seconds, and one at the end."""

    def __init__(self, verb: str, unit: str):
        self._verb, self._unit = verb, unit
        self._printed = time.monotonic()
        self._last = ""

    def __call__(self, done: int, total: int, nbytes: int) -> None:
        self._last = f"{self._verb} {done:,} of {total:,} {self._unit}, {nbytes / 1e6:,.1f} MB"
        if time.monotonic() - self._printed >= _INTERVAL:
            self._print()

    def close(self) -> None:
        self._print()

    def _print(self) -> None:
        self._printed = time.monotonic()
        if self._last:
            print(self._last, file=sys.stderr, flush=True)
