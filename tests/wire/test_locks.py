"""Locks: a file system that refuses one must not cost a descriptor at every look."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpstui.wire import liveness


@pytest.mark.parametrize("take", [liveness.acquire, liveness.share, liveness.is_held, liveness.is_shared])
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
    with pytest.raises(OSError, match=r"no locks.*a\.lock"):
        take(path)
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert after == before


def test_who_was_held_up_between_two_tries_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, tries = [0.0], [0]

    def refused_once(descriptor: int, operation: int) -> None:
        tries[0] += 1
        if tries[0] == 1:
            now[0] += 10.0  # a reader looked, and the machine had no time for us until long after
            raise BlockingIOError

    monkeypatch.setattr(fcntl, "flock", refused_once)
    monkeypatch.setattr(liveness, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: None))
    lock = liveness.acquire(tmp_path / "a.lock")
    assert lock is not None
    liveness.release(lock)
