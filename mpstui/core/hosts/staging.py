"""Hidden folders in which something arrives: each has one writer, and is removed once nobody can be writing to it.

The writer holds a lock in the folder, which the kernel drops when the writer dies.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from ...wire import liveness, storage
from ...wire.moves import Move
from ...wire.rundir import RunDir
from ..model.home import Home

ARRIVING = ".arriving-"
"""Prefix of the names of such folders, which no list of runs or of code shows."""
_LOCK = "arriving.lock"
_BEGINNING_SECONDS = 60.0
"""The creator of a folder younger than this may be about to lock it."""
TRIED_AGAIN_SECONDS = 86_400.0
"""How long the files sent by an interrupted move are kept for the next attempt."""
_POLL_SECONDS = 0.1


def run_stage(home: Home, name: str) -> Path:
    """The folder in which a run arrives."""
    return home.runs / f"{ARRIVING}{name}"


def code_folder(home: Home) -> Path:
    """The place of code that was sent here: one folder for each state of it."""
    return home.state / "code"


def is_taken(folder: Path) -> bool:
    """True if somebody is writing there now."""
    return liveness.is_held(folder / _LOCK)


def take(folder: Path, patience: float = 0.0) -> int | None:
    """Create the folder if necessary, and become its writer; return the lock to be released, None if it has a writer.

    Args:
        patience: seconds to wait for another writer to end.

    Raises:
        OSError: it cannot be created.
    """
    deadline = time.monotonic() + patience
    while True:
        lock = None
        with suppress(FileNotFoundError):  # it was removed a moment ago
            storage.make_private_folder(folder)
            lock = liveness.acquire(folder / _LOCK)
        if lock is not None and _is_of(lock, folder):
            return lock
        if lock is not None:
            liveness.release(lock)
        elif time.monotonic() >= deadline:
            return None
        else:
            time.sleep(_POLL_SECONDS)


def remove_abandoned(home: Home) -> None:
    """Remove arrivals that will never be taken over: their writer has died, and nobody can still ask for them."""
    for folder in (*home.runs.glob(f"{ARRIVING}*"), *code_folder(home).glob(f"{ARRIVING}*")):
        with suppress(OSError):  # removed by somebody else, or not ours to remove
            if _is_beginning(folder) or is_taken(folder) or (lock := take(folder)) is None:
                continue
            try:
                if folder.parent != home.runs or not _is_awaited(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                liveness.release(lock)


def _is_awaited(stage: Path) -> bool:
    """True if what arrived of a run may still become that run, or save the next attempt some work."""
    name = stage.name.removeprefix(ARRIVING)
    run = RunDir(stage.with_name(name))
    if storage.read_or_none(Move, RunDir(stage / name).arrived) is not None:
        # Only the other machine knows whether it handed the run over; if the run is here by now, this is left over.
        return not run.path.exists() or run.moved.exists()
    return time.time() - stage.stat().st_mtime < TRIED_AGAIN_SECONDS


def _is_beginning(folder: Path) -> bool:
    return not (folder / _LOCK).exists() and time.time() - folder.stat().st_mtime < _BEGINNING_SECONDS


def _is_of(lock: int, folder: Path) -> bool:
    """True if the lock is still in place: after waiting, we may hold that of a folder just removed."""
    found = storage.stat_of(folder / _LOCK)
    return found is not None and os.path.samestat(found, os.fstat(lock))
