"""What the agent does on request: it frees cached memory, and has the program save."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from ..wire.heartbeat import MemoryReading
from ..wire.records import Request
from . import saving
from .reporter import Reporter

_PATIENCE_SECONDS = 60.0
_EVALUATES = (
    'this program evaluates by its own rules; report.requested("evaluate") in its loop (from mpstui import report) '
    "would let it hear this"
)


def answer(
    request: Request, reporter: Reporter, memory: Callable[[], MemoryReading], backend: Any, step: int | None
) -> None:
    """Carry out a request and answer it.

    Args:
        memory: reads the device's counters.
        backend: ``torch.mps`` or ``torch.cuda``; None if the device has neither.
        step: how many steps are done.
    """
    if request.action == "save":
        _save(request, reporter, step)
        return
    if request.action == "evaluate":
        reporter.answer(request, ok=False, text=_EVALUATES)
        return
    before = memory().driver
    gc.collect()
    if before is not None and backend is not None:
        backend.empty_cache()
    after = memory().driver
    freed = max(0, before - after) if before is not None and after is not None else 0
    text = "nothing to free" if before is None else f"freed {freed / 2**20:,.0f} MiB"
    reporter.answer(request, ok=True, text=text, before=before, after=after, freed=freed)


def _save(request: Request, reporter: Reporter, step: int | None) -> None:
    hook = saving.hook()
    if hook is None:
        reporter.answer(request, ok=False, text=saving.NO_HOOK)
        return
    reporter.beat("save", expect_next_in=saving.LONGEST_SECONDS)
    ok, text = saving.saved(hook, step)
    reporter.beat("train", expect_next_in=_PATIENCE_SECONDS)
    reporter.answer(request, ok=ok, text=text)
