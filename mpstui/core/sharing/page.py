"""One or several runs as one self-contained HTML page: no server, no network, nothing a mail program would block.

What is written here is HTML that needs no script: facts, table, events, the end of the log. ``page.js`` adds the
curves, whose points are embedded as JSON, and sorts the table. All text of a run is escaped, and the page's
Content-Security-Policy forbids it to load or to send anything.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ... import __version__
from ...wire import storage
from ...wire.secrets import masked_text
from .. import present as shown
from ..formats.console import strip_controls
from ..logview.document import LogDocument
from ..model.snapshot import RunSnapshot, SeriesView
from ..runs.comparison import columns, full_name, metrics_of, of_one_teller
from ..runs.details import details
from ..runs.listing import main_metric
from ..runs.report import EXPLAINED
from ..runs.story import story
from ..series.direction import best, better
from ..series.metric_words import drawn_over, measured, reading_order
from .anonymous import without_the_user
from .page_images import images_on_a_page

POINTS_ON_A_PAGE = 400_000
"""The most points of all curves together: some 10 MB, which a phone can still draw."""
LEAST_COLUMNS, MOST_COLUMNS = 64, 1024
MOST_RUNS = 100
LOG_LINES = 200
_CHARTS = "<section id=charts><noscript><p>The curves need JavaScript.</p></noscript></section>"
"""For a single run, the charts are below its outcome: why it failed is read first."""
_HERE = Path(__file__).parent
_DIGITS = 6


def page(
    snapshots: Sequence[RunSnapshot], *, now: float | None = None, reload_seconds: float | None = None, title: str = ""
) -> str:
    """The page of these runs, the first one first.

    Args:
        reload_seconds: how often an open page looks for a newer version of itself; None if it is final.
        title: if empty, the runs' names.
    """
    now = time.time() if now is None else now
    title = title or " · ".join(dict.fromkeys(one.name for one in snapshots[:4])) + (" …" if len(snapshots) > 4 else "")
    names = [without_the_user(name, snapshots) for name in _names(snapshots)]
    live = [one for one in snapshots if not one.is_over]
    made = f"{time.strftime('%Y-%m-%d %H:%M:%S %Z', time.localtime(now))} · mpstui {__version__}"
    body = [
        f"<header><h1>{_text(title)}</h1>",
        f"<p class=dim>{_text(made)}{' · rewritten while it runs' if reload_seconds and live else ''}</p></header>",
        *([_table(snapshots, names)] if len(snapshots) > 1 else []),
        *([] if len(snapshots) == 1 else [_CHARTS]),
        *(_run(one, place, now, names) for place, one in enumerate(snapshots)),
    ]
    shown_runs = without_the_user("\n".join(body), snapshots)
    open_name = lambda name: without_the_user(strip_controls(masked_text(name)), snapshots)  # noqa: E731
    drawn = {**_curves(snapshots, names), "images": images_on_a_page(snapshots, open_name)}
    reload = f'<meta name="reload" content="{reload_seconds:g}">' if reload_seconds and live else ""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">",
            f"{reload}<title>{without_the_user(_text(title), snapshots)} – mpstui</title>",
            f"<style>\n{_part('page.css')}</style></head><body>",
            shown_runs,
            f'<script type="application/json" id="data">{_json(drawn)}</script>',
            f"<script>\n{_part('page.js')}</script></body></html>\n",
        ]
    )


def columns_for(curves: int) -> int:
    """How many points each of this many curves may have on one page."""
    return max(LEAST_COLUMNS, min(MOST_COLUMNS, POINTS_ON_A_PAGE // max(1, 4 * curves)))


def _part(name: str) -> str:
    return storage.read_text(_HERE / name)


def _text(words: object) -> str:
    """Escape text from outside, without secrets of a known shape and control characters."""
    return escape(strip_controls(masked_text(str(words))))


def _json(value: Any) -> str:
    """JSON that cannot end its element: a metric named ``</script>`` stays a name."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


# -- what the script draws


def _curves(snapshots: Sequence[RunSnapshot], names: Sequence[str]) -> dict[str, Any]:
    """The charts, each with all runs' curves of one metric; training and validation share a chart."""
    charts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    titles: dict[tuple[str, str], str] = {}
    for place, one in enumerate(snapshots):
        over = drawn_over(tuple((name, view.evaluation, view.axis) for name, view in one.series.items()))
        for name, view in one.series.items():
            if not len(view.x):
                continue
            drawn = over.get(name, name)
            key = measured(drawn), view.axis
            charts.setdefault(key, []).append({"run": place, **_curve(name, view)})
            titles[key] = min(titles.get(key, drawn), drawn, key=len)
    keys = sorted(charts, key=lambda key: (key[0] != "loss", "loss" not in key[0], reading_order(key[0]), key[1]))
    named = [{"title": strip_controls(titles[key]), "axis": key[1], "curves": charts[key]} for key in keys]
    return {"runs": [strip_controls(name) for name in names], "charts": named}


def _curve(name: str, view: SeriesView) -> dict[str, Any]:
    way = better(name)
    single = all(low == high or math.isnan(low) for low, high in zip(view.low, view.high, strict=True))
    return {
        "name": strip_controls(name),
        "val": view.evaluation,
        "better": way and str(way),
        "x": _numbers(view.x),
        "y": _numbers(view.mean),
        "low": None if single else _numbers(view.low),
        "high": None if single else _numbers(view.high),
        "t": _numbers(view.times, 13) if any(map(math.isfinite, view.times)) else None,
        "marks": _numbers(view.attempt_marks),
        "bad": _numbers(view.gaps),
        "count": view.count,
    }


def _numbers(values: Iterable[float], digits: int = _DIGITS) -> list[float | int | None]:
    """Round to what a page needs, so that a curve takes a third of the bytes."""
    out: list[float | int | None] = []
    for value in values:
        if not math.isfinite(value):
            out.append(None)
        else:
            out.append(int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.{digits}g}"))
    return out


# -- what is on the page without a script


def _table(snapshots: Sequence[RunSnapshot], names: Sequence[str]) -> str:
    """The table of the screen's comparison: the runs' results, and the settings in which they differ."""
    snapshots = of_one_teller(snapshots)
    metric = main_metric(tuple(metrics_of(snapshots))) or "loss"
    told = columns(snapshots, metric)
    named = [f"{one.name} {metric}" if one.name in ("best", "last") else one.name for one in told]
    rows, bests = [], [one.best() for one in told]
    for place, one in enumerate(snapshots):
        cells = [
            f'<td><input type=checkbox checked data-run={place} aria-label="show its curves"></td>',
            f'<td data-run={place}><a href="#run{place}">{_text(names[place])}</a></td><td>{_badge(one)}</td>',
        ]
        for column, best_places in zip(told, bests, strict=True):
            value, broken = column.values[place], column.broken.get(place, "")
            mark = " class=best" if place in best_places else ""
            sort = f' data-value="{value!r}"' if isinstance(value, float) and math.isfinite(value) else ""
            why = f" <span class=bad>{_text(broken)}</span>" if broken else ""
            cells.append(f"<td{mark}{sort}>{_text(column.text(place))}{why}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    heads = (f"<button>{_text(name)}</button>" for name in ("run", "state", *named))
    head = "".join(f"<th>{one}</th>" for one in ("", *heads))
    table = f"<table id=runs><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<section class=wide>{table}</section>"


def _badge(one: RunSnapshot) -> str:
    badge = shown.badge(one)
    return f'<span class="state {badge.tone}">{badge.glyph} {_text(badge.word)}</span>'


def _run(one: RunSnapshot, place: int, now: float, names: Sequence[str]) -> str:
    alone = len(names) == 1
    parts: list[tuple[str, str, bool]] = [
        ("Metrics", _metrics(one), alone),
        *((title, html, alone and is_open) for title, html, is_open in _details(one)),
        ("Checkpoints", _checkpoints(one, now), False),
        ("Events", _events(one, now), False),
        ("End of the log", _log(one), one.state in EXPLAINED),
    ]
    folded = "".join(
        f"<details{' open' if is_open else ''}><summary>{name}</summary>{html}</details>"
        for name, html, is_open in parts
        if html
    )
    heading = "" if alone else f"<h2 data-run={place}>{_text(names[place])}</h2>"
    facts = _pairs((label, text) for label, text in _facts(one, now) if text)
    state = f"<p>{_badge(one)} {_text(one.reason)}</p>"
    images = f"<div class=images data-run={place}></div>"  # filled by the script
    charts = _CHARTS if alone else ""
    return f'<section class=run id="run{place}">{heading}{state}{facts}{_card(one)}{charts}{images}{folded}</section>'


def _names(snapshots: Sequence[RunSnapshot]) -> list[str]:
    """What each run is called on the page: its name, and what tells it from others of the same name."""
    return [full_name(one, snapshots) for one in snapshots]


def _facts(one: RunSnapshot, now: float) -> Iterable[tuple[str, str]]:
    numbers = one.numbers
    share = shown.total_progress(numbers)
    yield "run", one.run
    yield "profile", one.profile or ""
    yield "progress", shown.percent(share) if share is not None else ""
    yield "epoch", shown.epoch_text(numbers) if numbers.epoch is not None else ""
    steps = f" of {shown.whole(numbers.steps)}" if numbers.steps is not None else ""
    yield "step", shown.whole(numbers.step) + steps if numbers.step is not None else ""
    yield "loss", shown.loss_text(numbers) if numbers.loss is not None or not numbers.loss_is_finite else ""
    yield "device", " · ".join(filter(None, (numbers.device.type, numbers.device.name, numbers.device.precision)))
    if one.started is not None:
        yield "started", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.started))
        end = shown.until(one, now)
        yield "for" if end == now else "took", "" if end is None else shown.duration(one.lasted(end))
    yield "attempts", str(one.attempts) if one.attempts > 1 else ""
    yield "remaining", shown.duration(numbers.eta_seconds) if numbers.eta_seconds is not None else ""


def _card(one: RunSnapshot) -> str:
    """Why the run failed and what helps, as `mpstui diagnose` says."""
    if one.state not in EXPLAINED or not shown.can_be_explained(one):
        return f"<p class=bad>{_text(one.log_exception)}</p>" if one.log_exception else ""
    from ..diagnosis.engine import diagnosis_of
    from ..diagnosis.evidence import evidence_of
    from ..diagnosis.log_text import unexplained

    found = diagnosis_of(one)
    if not found:
        return f"<div class=card><p>{_text(unexplained((), evidence_of(one)) or one.reason)}</p></div>"
    first = found[0]
    seen = "".join(f"<li>{_text(line.text)}</li>" for line in first.evidence)
    remedy = " ".join(filter(None, (first.remedy.from_checkpoint, first.remedy.text, first.remedy.risk)))
    return (
        f"<div class=card><h3>{_text(first.title)}</h3><p>{_text(first.numbers)}</p>"
        f"<p>{_text(first.cause)}</p><p><b>What helps:</b> {_text(remedy)}</p><ul>{seen}</ul></div>"
    )


def _details(one: RunSnapshot) -> Iterable[tuple[str, str, bool]]:
    """Yield the sections of the details page on mpstui's own screen: title, HTML, and True if it starts unfolded."""
    for section in details(one):
        pairs = [(name, text) for name, text in section.pairs if name != "host"]
        lines = "\n".join(_text(line) for line in section.lines)
        html = _pairs(pairs) + (f"<pre>{lines}</pre>" if lines else "")
        yield section.title.capitalize(), html, section.title == "arguments"


def _metrics(one: RunSnapshot) -> str:
    rows = []
    for name, view in one.series.items():
        known = best(view)
        last = "NaN/inf" if view.last is None else shown.number(view.last)
        others = ("" if value is None else shown.number(value) for value in (known, view.minimum, view.maximum))
        cells = "".join(f"<td>{_text(text)}</td>" for text in (last, *others))
        rows.append(f"<tr><td>{_text(name)}</td><td>{shown.whole(view.standing)}</td>{cells}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("metric", "points", "last", "best", "min", "max"))
    return (
        f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        if rows
        else ""
    )


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in pairs if value)
    return f"<dl>{rows}</dl>" if rows else ""


def _checkpoints(one: RunSnapshot, now: float) -> str:
    newest_first = sorted(one.checkpoints, key=lambda item: item.time, reverse=True)[:20]
    notes = (shown.why_not_its_own(item, one) or ("" if item.complete else "incomplete") for item in newest_first)
    rows = (
        f"<tr><td>{_text(item.path.name)}</td><td>{'' if item.step is None else shown.whole(item.step)}</td>"
        f"<td>{_text(shown.size(item.size_bytes))}</td><td>{_text(shown.moment_of_day(item.time, now))}</td>"
        f"<td>{_text(note or ('best' if item.best else ''))}</td></tr>"
        for item, note in zip(newest_first, notes, strict=True)
    )
    return f"<div class=wide><table><tbody>{''.join(rows)}</tbody></table></div>" if newest_first else ""


def _events(one: RunSnapshot, now: float) -> str:
    told = (event for event in one.events if event.event != "text")
    events = story(told, was_cancelled=one.was_cancelled)[-50:]
    texts = ((shown.moment_of_day(item.time, now), shown.short_paths(item.text, one.dir)) for item in events)
    return _pairs((moment, text) for moment, text in texts)


def _log(one: RunSnapshot) -> str:
    """The last lines of the output, with errors and warnings marked."""
    if one.output is None:
        return ""
    document = LogDocument(one.output)
    try:
        document.refresh()
        lines = document.tail(LOG_LINES)
    finally:
        document.close()
    as_html: Callable[[str, str | None], str] = lambda text, level: (  # noqa: E731
        f'<span class="{level}">{_text(text)}</span>' if level in ("error", "warning") else _text(text)
    )
    return f"<pre class=log>{chr(10).join(as_html(line.text, line.level) for line in lines)}</pre>" if lines else ""
