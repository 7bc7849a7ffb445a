"""The checkpoints of a run, newest first; the best, incomplete ones and those of other runs are marked as such."""

from __future__ import annotations

from ...core import present as shown
from ...core.model.snapshot import Checkpoint, RunSnapshot
from ...core.present import why_not_its_own
from ..rows import Row, Span, clean, clip, fit, row
from . import ListPanel, Panel, RunFacts, moments, nothing_yet


def checkpoint_rows(facts: RunFacts, width: int) -> list[Row]:
    """A line for each file; until one is found, what the trainer reports."""
    snapshot = facts.snapshot
    if not snapshot.checkpoints:
        reported = snapshot.numbers.checkpoint
        if reported is None:
            unnamed = "none known: `mpstui run --checkpoints` names them" if snapshot.is_ours else "none known"
            why = "no checkpoint yet" if snapshot.profile else unnamed
            return [nothing_yet(why, unread=snapshot.brief)]
        return [row(*clip((Span(" reported: ", "dim"), Span(clean(reported.path, 300))), width))]
    files = sorted(snapshot.checkpoints, key=lambda file: file.time, reverse=True)
    times = moments((file.time for file in files), snapshot.seen)
    return [_checkpoint_row(file, time, snapshot, width) for file, time in zip(files, times, strict=True)]


def _checkpoint_row(file: Checkpoint, moment: str, snapshot: RunSnapshot, width: int) -> Row:
    stranger = why_not_its_own(file, snapshot) or (f"perhaps of run {file.rival}" if file.rival is not None else "")
    parts = (
        Span(" "),
        Span(moment, "dim"),
        Span(fit(f"step {shown.whole(file.step)}" if file.step is not None else "", 12)),
        Span(fit(shown.size(file.size_bytes), 9, "right") + "  "),
        Span("★ best  " if file.best else "", "good"),
        Span("" if file.complete else "! incomplete  ", "warn"),
        Span("" if file.finite else "✗ NaN  ", "bad"),
        Span(clean(file.path.name, 200), "dim"),
        Span(f"  {stranger}" if stranger else "", "warn"),
    )
    return row(*clip(parts, width))


_OF_THE_RUN = ("snapshot.run", "snapshot.started", "snapshot.ended", "snapshot.brief", "snapshot.profile", "hour")
_DRAWN_FROM = ("snapshot.checkpoints", "snapshot.numbers.checkpoint", *_OF_THE_RUN)
PANEL = Panel(order=50, help="what it has saved, newest first", widget=lambda: ListPanel(checkpoint_rows, _DRAWN_FROM))
