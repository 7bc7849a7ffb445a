"""Saving a training: by one rank, or by all at once where each holds a part.

Of a divided training every rank writes its rows into a hidden folder; when all of them are on the disk, the leading
rank adds the manifest and gives the folder its name. A process that is killed before that leaves the checkpoints that
were there as they were. Where the ranks share no folder, the leading one gathers everything and writes it alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from . import parts
from .job import Job

T = TypeVar("T")


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
