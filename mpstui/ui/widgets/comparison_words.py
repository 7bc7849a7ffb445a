"""The words in the table of a comparison. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.model.snapshot import RunSnapshot
from ...core.runs.comparison import Column
from ..rows import clean, width_of

WIDEST_VALUE = 16


def cell_text(column: Column, place: int) -> str:
    """One value as it is shown; the end of a long one tells more than its beginning."""
    text = clean(column.text(place), 200)
    while width_of(text) > WIDEST_VALUE:
        text = f"…{text[2:]}"
    return text


def lack(run: RunSnapshot, metric: str) -> str:
    """Why there is no curve of a metric to draw: not yet read, not yet measured, or there is none."""
    if run.brief or run.unread or run.loading:
        return "still being read"
    return f"no {clean(metric, 30)}{' yet' if run.state.active else ''}"


def own_words(names: Sequence[str]) -> list[str]:
    """The names without what all of them share: the words they begin with, and the ``key=`` of values at one place."""
    words = [name.split() for name in names]
    same = 0
    while len(words) > 1 and all(len(one) > same + 1 and one[same] == words[0][same] for one in words):
        same += 1
    left = [one[same:] for one in words]
    for place in range(min(map(len, left), default=0)):
        keys = {one[place].partition("=")[:2] for one in left}
        if len(keys) == 1 and (key := keys.pop())[1]:
            left = [[*one[:place], one[place].removeprefix(f"{key[0]}=") or "–", *one[place + 1 :]] for one in left]
    return [" ".join(one) for one in left]
