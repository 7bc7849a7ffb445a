"""Whether a new picture of the runs shows anything that the last one did not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.present.format import settled

if TYPE_CHECKING:
    from ..core.model.snapshot import RunSnapshot


def differ(before: Sequence[RunSnapshot], after: Sequence[RunSnapshot]) -> bool:
    """Whether two pictures show something different; of the time between them counts what an age in words shows."""
    if len(before) != len(after):
        return True
    return any(old is not new and _face(old) != _face(new) for old, new in zip(before, after, strict=True))


def _face(snapshot: RunSnapshot) -> tuple[object, ...]:
    """What of a snapshot can be seen, as plain values."""
    plain = [value for name in _PLAIN_FIELDS for value in [getattr(snapshot, name)]]
    ending = snapshot.exit.sentence() if snapshot.exit else None
    curves = [(name, view.count, view.last, len(view.x), view.complete) for name, view in snapshot.series.items()]
    return (*plain, _age(snapshot), ending, curves, len(snapshot.events), [item.path for item in snapshot.checkpoints])


def _age(snapshot: RunSnapshot) -> float | None:
    """How long it has been running, as closely as the screen tells it: one that prints nothing grows older too."""
    if snapshot.started is None or not snapshot.state.active:
        return None
    return settled(snapshot.seen - (snapshot.attempt_started or snapshot.started)) // 1


_PLAIN_FIELDS = (
    "run",
    "name",
    "state",
    "reason",
    "health",
    "health_note",
    "numbers",
    "attempt",
    "pid",
    "ended",
    "paused",
    "queue",
    "output",
    "tree_memory_bytes",
    "log_exception",
    "gone",
    "loading",
    "brief",
)
