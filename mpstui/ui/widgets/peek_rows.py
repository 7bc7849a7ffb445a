"""A run in short: how far it is, and its curve or its failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.runs.snapshot import RunSnapshot
from ..charting.plot import ChartView, draw
from ..rows import Row
from .failure_card import Failure, card, wants_card
from .loss_chart import chart_data, metric_names
from .progress import progress

if TYPE_CHECKING:
    from ...core.diagnosis.model import Finding

_CARD_LINES = 7


def peek(
    snapshot: RunSnapshot, width: int, height: int, findings: Sequence[Finding] | None = None, *, on_cpu: bool = True
) -> list[Row]:
    """Progress, then the chart; a failed run says why before anything else."""
    lines: list[Row] = []
    if wants_card(snapshot):
        lines += card(Failure(snapshot, findings, on_cpu), width, min(_CARD_LINES, height), log_in_reach=False)
    else:
        lines += progress(snapshot, width)
    name = next(iter(metric_names(snapshot)), "loss")
    return [*lines, *draw(chart_data(snapshot, name), ChartView(), width, max(0, height - len(lines)))]
