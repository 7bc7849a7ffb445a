"""Which rank's heartbeat a process writes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from ..wire import liveness, rundir, storage
from .reporter import place_of

_MOST_RANKS = 64


def claimed(torch: Any, environ: Mapping[str, str]) -> tuple[dict[str, str], int | None]:
    """Return the variables ``RANK`` and ``WORLD_SIZE``, and the lock that makes the rank ours as long as it is held.

    Of several unrelated processes that all call themselves rank 0, only the first one is.
    """
    words = environ.get("RANK", "0"), environ.get("WORLD_SIZE", "1")
    asked, world = (int(word) if word.isdigit() else 0 for word in words)
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        asked, world = distributed.get_rank(), distributed.get_world_size()  # mp.spawn sets no variables
    run, attempt = place_of(environ)
    rank, lock = asked, None
    try:
        storage.make_private_folder(run.attempt(attempt).path)
        while rank < _MOST_RANKS:
            lock = liveness.acquire(run.attempt(attempt).rank_lock(rank))
            if lock is not None:
                break
            rank = max(rank + 1, world)
        if rank != asked:
            text = f"process {os.getpid()} trains beside another rank {asked}: it is shown as rank {rank}"
            storage.append_line(run.events, rundir.event(time.time(), attempt, "note", text))
    except OSError:
        rank = asked
    return {"RANK": str(rank), "WORLD_SIZE": str(max(1, world))}, lock
