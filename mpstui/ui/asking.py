"""The keys that act on a run: what each is called, what it will do in words, when it asks first. No widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.present import format as shown
from .rows import clean

if TYPE_CHECKING:
    from ..core.runs.queueing import Moved
    from ..wire.queues import Queue
    from ..wire.records import Ack

NO_RUN = "no run is selected: press n to launch one"


def moved_text(moved: Moved) -> str:
    """Where a queued run stands now."""
    from ..core.model.snapshot import ordinal

    return f"{ordinal(moved.place)} of {moved.count} in {clean(moved.group, 40)}"


def paused_text(queue: Queue) -> str:
    """What became of a queue group."""
    doing = "paused: nothing of it starts, what runs goes on" if queue.paused else "goes on"
    return f"queue {clean(queue.group, 40)} {doing}"


def answer_text(label: str, ack: Ack | None) -> tuple[str, bool]:
    """The answer in one sentence that names who gave it, and whether it is good news."""
    if ack is None:
        return f"{label}: no answer yet; the request stays and is carried out when somebody reads it", False
    text = clean(ack.text, 300)
    freed = ""
    if ack.before is not None and ack.after is not None:
        freed = f" ({shown.size(ack.before)} → {shown.size(ack.after)})"
        if ack.freed is not None:
            freed = f": freed {shown.size(ack.freed)}" + freed
    verdict = "done" if ack.ok else "refused"
    return f"{label}: {verdict} by the {clean(ack.by, 20)}{freed}" + (f" · {text}" if text else ""), ack.ok
