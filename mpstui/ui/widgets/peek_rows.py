"""A run in short: how far it is, and its curve or its failure."""

from __future__ import annotations

from ...core.model.snapshot import RunSnapshot
from ...core.present.states import needs_explaining
from ..charting.plot import ChartView, chart_data, draw, metric_names
from ..rows import Row
from .failure_card import Failure, card
from .progress import progress

_CARD_LINES = 7


def peek(snapshot: RunSnapshot, width: int, height: int, failure: Failure | None = None) -> list[Row]:
    """Progress, then the chart; a failed run says why before anything else."""
    lines: list[Row] = []
    if needs_explaining(snapshot):
        lines += card(failure or Failure(snapshot), width, min(_CARD_LINES, height), log_in_reach=False)
    else:
        lines += progress(snapshot, width)
    name = next(iter(metric_names(snapshot)), "loss")
    return [*lines, *draw(chart_data(snapshot, name), ChartView(), width, max(0, height - len(lines)))]
