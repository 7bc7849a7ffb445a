"""One image or text of a run as a terminal shows it: which one is meant, and its pixels in a box, in a few colours.

All that a screen asks about them is one question with one answer of bounded size: it can be asked over a line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...wire.rundir import RunDir
from ..model.moment import Moment
from ..model.patterns import line_pattern
from .images import Logged, images_of, read_image
from .png import Colour, Paletted, decoded, in_few_colours
from .texts import LoggedText, texts_of


class Wanted(NamedTuple):
    """Which image or text somebody wants to see, and how large."""

    name: str = ""
    """Empty: the name of the newest one."""
    is_text: bool = False
    after: int | None = None
    """The number of one of that name that ``by`` counts from; None: the newest."""
    by: int = 0
    step: float | None = None
    """Instead: the last one that was logged by this step, else the first."""
    pattern: str = ""
    """Only texts in which this regular expression is found, and what is called so; without capitals it ignores case."""
    box: tuple[int, int] = (0, 0)
    """Pixels; empty: none are wanted."""
    ground: Colour = (0, 0, 0)
    """What is seen through it."""


class Shelf(NamedTuple):
    """What was logged under one name."""

    name: str
    size: int
    is_text: bool = False


class Item(NamedTuple):
    """An image or a text."""

    name: str
    step: int | None
    attempt: int
    time: Moment
    number: int
    """Higher than those of all of its kind that were logged before."""
    bytes: int
    file: str = ""
    """Of an image: what it is called in the folder of images."""
    text: str | None = None


class Seen(NamedTuple):
    """One of what a run has logged, and which others there are."""

    shelves: tuple[Shelf, ...] = ()
    """In the order in which their first ones were logged, images before texts."""
    place: int = 0
    """Of those of its name, from 0."""
    item: Item | None = None
    """None: there is none."""
    kind: str = ""
    """``png`` or ``jpeg``; empty: it could not be read, or is a text."""
    size: tuple[int, int] = (0, 0)
    """Pixels, as it is kept."""
    pixels: Paletted | None = None
    why_not: str = ""
    """Why there are no pixels."""


def seen_item(run: RunDir, wanted: Wanted) -> Seen:
    """Find what is wanted and read it; whatever an image holds, it ends in pixels or in a reason.

    Raises:
        PatternMistake: the pattern is none.
    """
    named = _named(run, wanted.pattern)
    shelves = tuple(Shelf(name, len(of), is_text) for (name, is_text), of in named.items())
    if not named:
        return Seen(why_not="nothing has that in it" if wanted.pattern else "nothing is there any more")
    newest = max(named, key=lambda one: named[one][-1].time)
    of = named.get((wanted.name, wanted.is_text)) or named[newest]
    place = _place(of, wanted)
    seen = Seen(shelves, place, of[place])
    return seen if of[place].text is not None else _drawn(run, seen, of[place].file, wanted)


def _named(run: RunDir, pattern: str) -> dict[tuple[str, bool], list[Item]]:
    """All that matches, by name and whether it is text."""
    named: dict[tuple[str, bool], list[Item]] = {}
    wanted = line_pattern(pattern, re.IGNORECASE if pattern == pattern.lower() else 0) if pattern else None
    for image in images_of(run):
        if wanted is None or wanted.search(image.name):
            named.setdefault((image.name, False), []).append(_of_image(image))
    for name, texts in texts_of(run).items():
        found = [
            _of_text(one)
            for one in texts
            if wanted is None or wanted.search(name) or any(map(wanted.search, one.text.splitlines()))
        ]
        if found:
            named[name, True] = found
    return named


def _of_image(one: Logged) -> Item:
    number = int(one.file.partition("-")[0])
    return Item(one.name, one.step, one.attempt, one.time, number, one.bytes, file=one.file)


def _of_text(one: LoggedText) -> Item:
    size = len(one.text.encode("utf-8", "replace"))
    return Item(one.name, one.step, one.attempt, one.time, int(one.time * 10_000), size, text=one.text)


def _drawn(run: RunDir, seen: Seen, file: str, wanted: Wanted) -> Seen:
    try:
        found = read_image(run, file)
        seen = seen._replace(kind=found.kind, size=(found.width, found.height))
        if found.kind != "png":
            return seen._replace(why_not="a terminal is shown PNG alone; reports have this one too")
        box = min(wanted.box[0], found.width), min(wanted.box[1], found.height)
        if min(box) > 0:
            seen = seen._replace(pixels=in_few_colours(decoded(found.data, box, wanted.ground)))
    except OSError as error:
        return seen._replace(why_not=f"it cannot be read: {error.strerror}")
    except ValueError as error:
        return seen._replace(why_not=str(error))
    return seen


def _place(of: Sequence[Item], wanted: Wanted) -> int:
    if wanted.step is not None:
        return max([at for at, one in enumerate(of) if (one.step or 0) <= wanted.step], default=0)
    start = len(of) - 1
    if wanted.after is not None:  # it may be one of those that were thinned out meanwhile
        start = max([at for at, one in enumerate(of) if one.number <= wanted.after], default=0)
    return max(0, min(len(of) - 1, start + wanted.by))
