"""The text in the table of a comparison. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot
from ...core.runs.comparison import Column, told_apart
from ..rows import clean, width_of
from .overlay import LABELS

WIDEST_VALUE = 16


def cell_text(column: Column, place: int) -> str:
    """Format a value; the end of a long one says more than its beginning."""
    text = clean(column.text(place), 200)
    while width_of(text) > WIDEST_VALUE:
        text = f"…{text[2:]}"
    return text


def lack(run: RunSnapshot, metric: str) -> str:
    """Return why there is no curve of a metric to draw: not yet read, not yet measured, or there is none."""
    if run.brief or run.unread or run.loading:
        return "still being read"
    return f"no {clean(metric, 30)}{' yet' if run.state.active else ''}"


def labelled(places: Sequence[int]) -> str:
    """``runs 2, 4``: without the word, the labels would be read as a count."""
    return f"run{'s' * (len(places) > 1)} {', '.join(LABELS[place] for place in places)}"


def whole_names(runs: Sequence[RunSnapshot]) -> list[str]:
    """Names with the settings in which runs of the same name differ; if these do not suffice, with the start time."""
    apart = told_apart(runs)
    names = [clean(f"{one.name} {apart.get(one.run, '')}".strip(), 80) for one in runs]
    same = Counter(names)
    return [
        name if same[name] < 2 or one.started is None else f"{name} {shown.moment_of_day(one.started, one.seen)}"
        for name, one in zip(names, runs, strict=True)
    ]


def shared_words(names: Sequence[str]) -> str:
    """Return the words that all names begin with, which the table leaves out."""
    words = [name.split() for name in names]
    return " ".join(words[0][: _shared(words)]).rstrip(" ·") if words else ""


def _shared(words: Sequence[Sequence[str]]) -> int:
    same = 0
    while len(words) > 1 and all(len(one) > same + 1 and one[same] == words[0][same] for one in words):
        same += 1
    return same


def own_words(names: Sequence[str]) -> list[str]:
    """Names without the words that all begin with, and without a ``key=`` that all have at the same position."""
    words = [name.split() for name in names]
    same = _shared(words)
    left = [one[same:] for one in words]
    for place in range(min(map(len, left), default=0)):
        keys = {one[place].partition("=")[:2] for one in left}
        if len(keys) == 1 and (key := keys.pop())[1]:
            left = [[*one[:place], one[place].removeprefix(f"{key[0]}=") or "–", *one[place + 1 :]] for one in left]
    return [" ".join(one) for one in left]
