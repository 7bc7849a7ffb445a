"""Saving a training: by one rank, or by all at once if each holds a part.

In a divided training every rank writes its rows into a hidden folder. Once all of them are on the disk, the leading
rank adds the manifest and gives the folder its name. A process killed before that leaves the existing checkpoints
intact. If the ranks share no folder, the leading one gathers everything and writes it alone.

The state of a single process on a GPU is copied, which takes milliseconds, and written while the training goes on.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch

from . import parts
from .job import Job

T = TypeVar("T")
_MOST_COPIED_BYTES = 1 << 30
"""The host might not have the memory for a larger copy."""


class Writing:
    """A checkpoint of a training's current state, written by a separate thread."""

    def __init__(self, job: Job, state: dict[str, Any], *, best: bool) -> None:
        self.step = job.progress.step
        self._path: Path | None = None
        self._error: BaseException | None = None
        arguments = job.folder.save, job.device.copied(state), self.step, best
        self._thread = threading.Thread(target=self._write, args=arguments, name="checkpoint")
        self._thread.start()  # not a daemon: the process does not end before it is written

    @property
    def is_done(self) -> bool:
        """Whether it is written, or could not be."""
        return not self._thread.is_alive()

    def path(self) -> Path:
        """Wait until it is written, and return where.

        Raises:
            OSError: it could not be written; what was there before is intact.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._path is not None
        return self._path

    def _write(self, save: Callable[..., Path], state: dict[str, Any], step: int, best: bool) -> None:
        try:
            self._path = save(state, step, best=best)
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody asks for the path
            self._error = error


def begin(job: Job, *, best: bool = False) -> Writing | None:
    """Start writing a checkpoint in the background; None if it must be written at once (:func:`save`)."""
    if job.layout.divided or job.group.ranks.world_size > 1 or not job.device.copies_quickly:
        return None
    state = job.state_dict()
    if sum(tensor.nbytes for tensor in _tensors(state)) > _MOST_COPIED_BYTES:
        return None
    try:
        return Writing(job, state, best=best)
    except (RuntimeError, MemoryError):  # the host has no memory for a copy
        return None


def save(job: Job, *, best: bool = False) -> Path | None:
    """Write a checkpoint of a training's current state, all ranks together; only the leading one gets its path.

    Raises:
        OSError: some rank could not write it; what was there before is intact.
    """
    state, step, group = job.state_dict(), job.progress.step, job.group
    leads, rank, of = group.ranks.leads, group.ranks.rank, group.ranks.world_size
    if not job.layout.divided:
        return job.folder.save(state, step, best=best) if leads else None
    begun, failure = _tried(lambda: job.folder.begin(step)) if leads else (None, "")
    (place, key, failure), *_ = group.told((begun, secrets.token_hex(8), failure))
    if place is None:
        raise OSError(failure)
    if not all(group.told(place.is_dir())):
        if leads:
            job.folder.forget(place)
        state = job.layout.gathered(state)
        return job.folder.save(state, step, best=best) if leads else None
    found, path = parts.split(state), None
    _, failure = _tried(lambda: parts.write_rows(place, rank, of, key, found))
    failures = group.told(failure)
    if not any(failures):
        if leads:
            path, failure = _tried(lambda: job.folder.commit(parts.manifest(found, of, key), step, best=best))
        failures = group.told(failure)
    if any(failures):
        if leads:
            job.folder.forget(place)
        raise OSError(next(filter(None, failures)))
    return path


def _tried(do: Callable[[], T]) -> tuple[T | None, str]:
    """The result, or None and the reason: no rank may leave the others waiting."""
    try:
        return do(), ""
    except OSError as error:
        return None, str(error) or type(error).__name__


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
