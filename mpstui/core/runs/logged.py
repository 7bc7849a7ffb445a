"""Find one logged image or text of a run and prepare it for a terminal: an image's pixels fit a box, in a few colours.

All that a screen wants to know is one question with one answer of bounded size, so that it can be asked over a
connection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..model.patterns import line_pattern
from .gallery import Gallery, Item
from .png import Colour, Paletted, decoded, in_few_colours


class Wanted(NamedTuple):
    """Which image or text to show, and how large."""

    name: str = ""
    """Empty: the name of the newest image or, if there is none, of the newest text."""
    is_text: bool = False
    after: int | None = None
    """The number of the item of that name from which ``by`` counts; None: the newest."""
    by: int = 0
    """How many items of that name to move on from there."""
    step: float | None = None
    """Used instead of ``after`` and ``by``: the last item logged up to this step, else the first."""
    pattern: str = ""
    """Only items whose name or text matches this regular expression; without capitals it ignores case."""
    box: tuple[int, int] = (0, 0)
    """Maximum width and height in pixels; zero if no pixels are needed."""
    ground: Colour = (0, 0, 0)
    """The background behind transparent pixels."""


class Shelf(NamedTuple):
    """Everything logged under one name."""

    name: str
    size: int
    is_text: bool = False


class Seen(NamedTuple):
    """One item that a run has logged, and what other items there are."""

    shelves: tuple[Shelf, ...] = ()
    """In the order of their first items, images before texts."""
    place: int = 0
    """The item's position among those of its name, from 0."""
    item: Item | None = None
    """None: no item was found."""
    kind: str = ""
    """``png`` or ``jpeg``; empty: it is a text, or could not be read."""
    size: tuple[int, int] = (0, 0)
    """Width and height in pixels, as stored."""
    pixels: Paletted | None = None
    why_not: str = ""
    """Why there are no pixels."""


def seen_item(gallery: Gallery, wanted: Wanted) -> Seen:
    """Find what is wanted and read it. Whatever an image contains, the result has its pixels or says why not.

    Raises:
        PatternMistake: the pattern is invalid.
    """
    named = _named(gallery, wanted.pattern)
    shelves = tuple(Shelf(name, len(of), is_text) for (name, is_text), of in named.items())
    if not named:
        return Seen(why_not="nothing has that in it" if wanted.pattern else "nothing is there any more")
    newest = max(named, key=lambda one: (not one[1], named[one][-1].time))
    of = named.get((wanted.name, wanted.is_text)) or named[newest]
    place = _place(of, wanted)
    seen = Seen(shelves, place, of[place])
    return seen if of[place].text is not None else _drawn(gallery, seen, of[place], wanted)


def _named(gallery: Gallery, pattern: str) -> dict[tuple[str, bool], list[Item]]:
    """Return the items that match the pattern, by name and whether they are texts."""
    named: dict[tuple[str, bool], list[Item]] = {}
    wanted = line_pattern(pattern, re.IGNORECASE if pattern == pattern.lower() else 0) if pattern else None
    for one in gallery.items():
        lines = one.text.splitlines() if one.text is not None else ()
        if wanted is None or wanted.search(one.name) or any(map(wanted.search, lines)):
            named.setdefault((one.name, one.text is not None), []).append(one)
    return named


def _drawn(gallery: Gallery, seen: Seen, item: Item, wanted: Wanted) -> Seen:
    try:
        found = gallery.image(item)
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
    if wanted.after is not None:  # that item may have been thinned out meanwhile
        start = max([at for at, one in enumerate(of) if one.number <= wanted.after], default=0)
    return max(0, min(len(of) - 1, start + wanted.by))
