"""The folder that keeps what was computed from data for the next run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str], kind: str) -> Path:
    """The folder for ``kind`` in the user's cache folder (XDG base directories; the same on a Mac)."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mpstui" / kind
