"""Saving a training: by one rank, or by all at once where each holds a part.

Of a divided training every rank writes its rows into a hidden folder; when all of them are on the disk, the leading
rank adds the manifest and gives the folder its name. A process that is killed before that leaves the checkpoints that
were there as they were. Where the ranks share no folder, the leading one gathers everything and writes it alone.

What one process holds of a training on a GPU is copied, which takes milliseconds, and written while it goes on.
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
"""Of more a copy might be what the host has no memory for."""


class Writing:
    """A checkpoint of where a training stands, written by a thread of its own."""

    def __init__(self, job: Job, state: dict[str, Any], *, best: bool) -> None:
        self.step = job.progress.step
        self._path: Path | None = None
        self._error: BaseException | None = None
        arguments = job.folder.save, job.device.copied(state), self.step, best
        self._thread = threading.Thread(target=self._write, args=arguments, name="checkpoint")
        self._thread.start()  # no daemon: a process that ends has written it

    @property
    def is_done(self) -> bool:
        """Whether it is written, or could not be."""
        return not self._thread.is_alive()

    def path(self) -> Path:
        """Where it is, as soon as it is there.

        Raises:
            OSError: it could not be written; what was there before still is.
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
    """Write a checkpoint while the training goes on; None where it has to be written at once (:func:`save`)."""
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
    """Write a checkpoint of where a training stands, all ranks together; the leading one is told where.

    Raises:
        OSError: it could not be written by some rank; what was there before still is.
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
    """What came of it, and why nothing did: no rank may leave the others waiting."""
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
