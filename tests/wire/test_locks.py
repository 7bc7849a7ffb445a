"""Locks: a file system that refuses one must not cost a descriptor at every look."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from mpstui.wire import locks


@pytest.mark.parametrize("take", [locks.acquire, locks.share, locks.is_held, locks.is_shared])
def test_a_refused_lock_leaves_no_descriptor_open(
    take: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lock"
    path.touch()

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert callable(take)
    before = os.open(os.devnull, os.O_RDONLY)
    os.close(before)
    with pytest.raises(OSError, match="no locks"):
        take(path)
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert after == before
