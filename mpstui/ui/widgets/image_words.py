"""The text about an image in view: its index, its step and size, what was measured then. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from textual.geometry import Region

from ...core import present as shown
from ...core.model.patterns import line_pattern
from ...core.model.snapshot import RunSnapshot
from ...core.runs.gallery import Item
from ...core.runs.logged import Seen, Shelf
from ...core.series.overview import measured_at, metrics_of
from ..rows import EMPTY, Row, Span, clean, clip, cut, row, spread, width_of, wrap

_LEAST_BESIDE, _MOST_NAME = 60, 28
"""Width from which names are listed beside the image, and the greatest width of that list."""
_LEAST_FOR_CAPTION, _LEAST_FOR_METRICS = 5, 9
"""In lines."""
_LEAST_FOR_WORDS = 56
_MOST, _TABS = 500, str.maketrans({"\t": "    "})


class Places(NamedTuple):
    """Positions and sizes, in cells."""

    names: int
    """Width of the list of names at the left; 0 if there is none."""
    picture: Region
    caption: bool
    metrics: bool


def places(width: int, height: int, shelves: tuple[Shelf, ...]) -> Places:
    """Divide the space; image and slider come first."""
    longest = max(
        (width_of(clean(name)) + len(str(count)) + 4 + 2 * is_text for name, count, is_text in shelves), default=0
    )
    beside = min(longest, _MOST_NAME) if len(shelves) > 1 and width >= _LEAST_BESIDE else 0
    caption, metrics = height >= _LEAST_FOR_CAPTION, height >= _LEAST_FOR_METRICS
    left = beside + bool(beside)
    return Places(beside, Region(left, 0, width - left, max(0, height - 1 - caption - metrics)), caption, metrics)


def words_of(snapshot: RunSnapshot, seen: Seen, image: Item, width: int, pattern: str) -> list[Row]:
    """Return a text with search matches marked, or words about an image that is not drawn."""
    if image.text is not None:
        lines = image.text.translate(_TABS).splitlines()
        return [
            row(" ", *_marked(part, pattern)) for one in lines for part in wrap(clean(one), width - 2, _MOST) or [""]
        ]
    size = f"{seen.size[0]:,} x {seen.size[1]:,} pixels, " if seen.kind else ""
    about = f"{size}{seen.kind.upper() or 'unreadable'}, {shown.size(image.bytes)}"
    path, room = clean(str(snapshot.dir / "images" / image.file)), max(1, width - 2)
    why = wrap(f"not drawn: {clean(seen.why_not)}", room, 4) if seen.why_not else []
    told = [(clean(image.name), "title"), *((line, "warn") for line in why), (about, "")]
    told += [(path[at : at + room], "dim") for at in range(0, len(path), room)]
    return [EMPTY, *(row(" ", (cut(text, width - 1), role)) for text, role in told)]


def slider(place: int, count: int, width: int, *, follows: bool) -> Row:
    """The image's index among those of its name; the track is the three spans after the first."""
    told = f" {place + 1:,} of {count:,}"
    newest = " · newest" if follows and width >= _LEAST_FOR_WORDS else ""
    room = max(1, width - 2 - len(told) - len(newest))
    at = round(place / (count - 1) * (room - 1)) if count > 1 else 0
    track = Span("━" * at, "bar"), Span("●", "key"), Span("─" * (room - 1 - at), "track")
    return Row(clip((Span(" "), *track, Span(told), Span(newest, "good")), width))


def caption(snapshot: RunSnapshot, seen: Seen, image: Item, width: int, *, waits: bool) -> Row:
    """Name, step and time; at the right the size of the image."""
    step = f"step {shown.whole(image.step)}" if image.step is not None else "step unknown"
    attempt = f" · attempt {image.attempt}" if snapshot.attempts > 1 else ""
    when = f" · {step} · {shown.moment_of_day(image.time, snapshot.seen or image.time)}{attempt}"
    size = f"{seen.size[0]:,} x {seen.size[1]:,} {seen.kind.upper()} " if seen.kind else ""
    name = cut(clean(image.name), max(4, width - 1 - width_of(when)))
    left = Span(" "), Span(name, "strong"), Span(when + " …" * waits, "dim")
    taken = sum(width_of(span.text) for span in left)
    return spread(left, (Span(size, "dim"),) if taken + width_of(size) < width else (), width)


def measured(snapshot: RunSnapshot, step: float, width: int) -> Row:
    """The last values of the metrics up to a step."""
    told: list[Span] = [Span(" ")]
    for metric in metrics_of(snapshot):
        found = measured_at(metric, step)
        if found is not None:
            told += [Span(f"{clean(metric.name, 40)} ", "dim"), Span(f"{shown.number(found[0])}   ")]
    return row(*clip(tuple(told), width))


def _marked(text: str, pattern: str) -> list[Span]:
    """Return the text with search matches marked."""
    spans, at = list[Span](), 0
    flags = re.IGNORECASE if pattern == pattern.lower() else 0
    for found in line_pattern(pattern, flags).finditer(text) if pattern else ():
        spans += [Span(text[at : found.start()]), Span(found[0], "match")]
        at = found.end()
    return [*spans, Span(text[at:])]
