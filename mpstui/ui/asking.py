"""The keys that act on a run: what each is called, what it will do in words, when it asks first. No widgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..core.present import format as shown
from .rows import clean

if TYPE_CHECKING:
    from ..core.model.snapshot import RunSnapshot
    from ..core.runs.queueing import Moved
    from ..wire.queues import Queue
    from ..wire.records import Ack, Request
    from .ports import ActionsPort

LABELS = {
    "restart_cpu": "restart on CPU",
    "clear_cache": "clear cache",
    "stop": "stop",
    "kill": "kill",
    "restart": "restart",
    "pause": "pause",
    "continue": "continue",
    "edit_restart": "edit and restart",
    "queue_move": "order",
    "queue_pause": "pause queue",
    "remove": "remove",
}
NO_RUN = "no run is selected: press n to launch one"


class Question(NamedTuple):
    """What a dialog asks: the consequences in sentences, and what the two keys do."""

    title: str
    lines: tuple[str, ...]
    yes: str
    dangerous: bool = True


def meant(snapshot: RunSnapshot, action: str) -> str:
    """One key pauses and continues: which of the two it is now."""
    return "continue" if action == "pause" and snapshot.is_frozen else action


def question(snapshot: RunSnapshot, action: str, caution: str = "") -> Question | None:
    """What must be asked before ``action``; None: it goes ahead. ``caution`` is what the core says of it."""
    name = clean(snapshot.name, 60)
    if action == "kill":
        return Question(f"Kill {name}?", (_killing(snapshot), *_loss(snapshot)), "kill it")
    if action in ("restart", "restart_cpu") and (caution or not has_checkpoint(snapshot)):
        where = " on CPU" if action == "restart_cpu" else ""
        begins = caution or "it begins from scratch: there is no checkpoint"
        lines = (*_ending_first(snapshot), f"{begins[:1].upper()}{begins[1:]}.")
        return Question(f"Restart {name}{where}?", lines, "restart it")
    return None


def has_checkpoint(snapshot: RunSnapshot) -> bool:
    """Whether a new attempt has something to go on from."""
    from ..core.present.states import why_not_its_own  # with the first key that restarts

    own = (item for item in snapshot.checkpoints if not why_not_its_own(item, snapshot))
    return snapshot.numbers.checkpoint is not None or any(item.complete for item in own)


def _killing(snapshot: RunSnapshot) -> str:
    return f"Process {snapshot.pid or '?'} and all it started end at once. Nothing is saved."


def _loss(snapshot: RunSnapshot) -> tuple[str, ...]:
    newest = snapshot.numbers.checkpoint
    if newest is None and not snapshot.checkpoints:
        return (
            "There is no checkpoint: everything since the start is lost.",
            "s (stop) lets a program that can save do so.",
        )
    step = newest.step if newest is not None else max((item.step or 0 for item in snapshot.checkpoints), default=None)
    if step is None or snapshot.numbers.step is None:
        return ("What was trained since the newest checkpoint is lost.", "s (stop) lets it save first.")
    lost = max(0, snapshot.numbers.step - step)
    return (f"{shown.whole(lost)} steps since the newest checkpoint are lost.", "s (stop) lets it save first.")


def _ending_first(snapshot: RunSnapshot) -> tuple[str, ...]:
    return ("The attempt that runs now is stopped first.",) if snapshot.state.active else ()


def send(actions: ActionsPort, snapshot: RunSnapshot, action: str) -> Request:
    """Write the request of a key.

    Raises:
        OperationError: it could not be written.
    """
    doing: dict[str, Callable[[], Request]] = {
        "stop": lambda: actions.stop(snapshot),
        "kill": lambda: actions.kill(snapshot),
        "pause": lambda: actions.pause(snapshot),
        "continue": lambda: actions.resume(snapshot),
        "clear_cache": lambda: actions.clear_cache(snapshot),
        "restart": lambda: actions.restart(snapshot),
        "restart_cpu": lambda: actions.restart(snapshot, device="cpu"),
    }
    return doing[action]()


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
