"""A look at the selected run below the list: how far it is, and its curve or its failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.runs.snapshot import RunSnapshot
from ..charting.plot import ChartView, draw
from ..rows import Row, Span, clean, cut
from .failure_card import Failure, card, wants_card
from .lines import LinePanel
from .loss_chart import chart_data, metric_names
from .progress import progress
from .run_header import device_text

if TYPE_CHECKING:
    from ...core.diagnosis.model import Finding

_CARD_LINES = 7


def peek(snapshot: RunSnapshot, width: int, height: int, findings: Sequence[Finding] | None = None) -> list[Row]:
    """Progress, then the chart; a failed run says why before anything else."""
    lines: list[Row] = []
    if wants_card(snapshot):
        lines += card(Failure(snapshot, findings), width, min(_CARD_LINES, height))
    else:
        lines += progress(snapshot, width)
    name = next(iter(metric_names(snapshot)), "loss")
    return [*lines, *draw(chart_data(snapshot, name), ChartView(), width, max(0, height - len(lines)))]


class Peek(LinePanel):
    """The look as a panel."""

    def __init__(self) -> None:
        super().__init__()
        self.titled = True
        self.snapshot: RunSnapshot | None = None
        self.findings: Sequence[Finding] | None = None

    def show(self, snapshot: RunSnapshot | None) -> None:
        """Another run, or a new picture of it."""
        if snapshot is None or self.snapshot is None or snapshot.run != self.snapshot.run:
            self.findings = None
        self.snapshot = snapshot
        self.TITLE = cut(clean(snapshot.name, 60), 40) if snapshot else ""
        self.repaint()

    def explain(self, findings: Sequence[Finding] | None) -> None:
        """Why the selected run ended."""
        self.findings = findings
        self.repaint()

    def status(self) -> tuple[Span, ...]:
        """The device in full."""
        return (Span(device_text(self.snapshot), "dim"),) if self.snapshot else ()

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`peek`."""
        return peek(self.snapshot, width, height, self.findings) if self.snapshot else []
