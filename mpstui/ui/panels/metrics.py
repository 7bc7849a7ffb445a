"""Every value that a run has reported: newest, least, greatest, how often, and its course."""

from __future__ import annotations

from ...core import present as shown
from ...core.model.snapshot import SeriesView
from ..rows import Row, Span, clean, fit, row, sparkline
from . import ListPanel, Panel, RunFacts, nothing_yet

_NUMBER = 10


def metric_rows(facts: RunFacts, width: int) -> list[Row]:
    snapshot = facts.snapshot
    numbers = snapshot.numbers
    known = {name: value for name, value in (("loss", numbers.loss), ("lr", numbers.lr)) if value is not None}
    named: dict[str, SeriesView | float | None] = {**known, **numbers.metrics, **snapshot.series}
    if not named:
        return [nothing_yet("no metrics reported yet", unread=snapshot.loading or snapshot.brief)]
    by = numbers.told_by if len(set(numbers.told_by.values())) > 1 else {}
    names = {name: f"{name} · {by[name]}" if name in by else name for name in named}  # whose word it is, of several
    name_width = max(10, min(28, max(map(len, names.values())) + 1, max(18, width // 3)))
    columns = width - 3 - name_width
    values = max(1, min(4, columns // (_NUMBER + 1)))
    trend = columns - values * (_NUMBER + 1) - 1
    titles = [Span(fit(title, _NUMBER, "right") + " ", "heading") for title in ("last", "min", "max", "count")]
    lines = [row(" ", (fit("metric", name_width), "heading"), *titles[:values])]
    for name, value in named.items():
        texts, curve, tone = _told(value, trend)
        cells = [Span(fit(text, _NUMBER, "right") + " ", "dim" if place else "") for place, text in enumerate(texts)]
        lines.append(row(" ", fit(clean(names[name], 60), name_width), *cells[:values], (" " + curve, tone)))
    return lines


def _told(value: SeriesView | float | None, width: int) -> tuple[list[str], str, str]:
    """The numbers of a metric, its curve and the curve's role."""
    if not isinstance(value, SeriesView):
        return [shown.number(value), "", "", ""], "", ""
    # A series holds at least one point: where none of them is known, none is finite.
    known = (value.last, value.minimum, value.maximum)
    texts = [shown.NOT_FINITE if one is None else shown.number(one) for one in known]
    curve = sparkline(value.mean, min(40, width)) if width >= 6 else ""
    return [*texts, shown.short_count(value.count)], curve, "val" if value.evaluation else "train"


PANEL = Panel(
    order=30,
    help="every metric: newest, least and greatest value",
    widget=lambda: ListPanel(metric_rows, heading_rows=1),
)
