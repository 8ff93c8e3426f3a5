"""Paths that mean the same on every node."""

from __future__ import annotations

import os

__all__ = ["on_every_node"]


def on_every_node(path: str | os.PathLike[str]) -> str:
    """Returns a URL as it is, and a path as an absolute one, since tasks have another working directory."""
    text = os.fspath(path)
    return text if "://" in text else os.path.abspath(text)
