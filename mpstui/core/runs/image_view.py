"""One image of a run as a terminal shows it: which one is meant, and its pixels in a box, in a few colours.

All that a screen asks about images is one question with one answer of bounded size: it can be asked over a line.
"""

from __future__ import annotations

from typing import NamedTuple

from ...wire.rundir import RunDir
from .images import Logged, images_of, read_image
from .png import Colour, Paletted, decoded, in_few_colours


class Wanted(NamedTuple):
    """Which image somebody wants to see, and how large."""

    name: str = ""
    """Empty: the name of the newest one."""
    after: int | None = None
    """The number of an image of that name that ``by`` counts from; None: the newest."""
    by: int = 0
    step: float | None = None
    """Instead: the last one that was logged by this step, else the first."""
    box: tuple[int, int] = (0, 0)
    """Pixels; empty: none are wanted."""
    ground: Colour = (0, 0, 0)
    """What is seen through it."""


class Seen(NamedTuple):
    """An image of a run, and which others there are."""

    names: tuple[tuple[str, int], ...] = ()
    """Of all images, in the order in which they were first logged, with how many there are of each."""
    place: int = 0
    """Of those of its name, from 0."""
    number: int = 0
    """Its own, which is higher than those of all that were logged before."""
    image: Logged | None = None
    """None: there is none."""
    kind: str = ""
    """``png`` or ``jpeg``; empty: it could not be read."""
    size: tuple[int, int] = (0, 0)
    """Pixels, as it is kept."""
    pixels: Paletted | None = None
    why_not: str = ""
    """Why there are no pixels."""


def seen_image(run: RunDir, wanted: Wanted) -> Seen:
    """Find an image and read it; whatever it holds, it ends in pixels or in a reason."""
    named: dict[str, list[Logged]] = {}
    for one in images_of(run):
        named.setdefault(one.name, []).append(one)
    names = tuple((name, len(of)) for name, of in named.items())
    newest = max((of[-1] for of in named.values()), key=_number, default=None)
    if newest is None:
        return Seen(why_not="no image is there any more")
    of = named.get(wanted.name) or named[newest.name]
    place = _place(of, wanted)
    seen = Seen(names, place, _number(of[place]), of[place])
    try:
        found = read_image(run, of[place].file)
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


def _number(image: Logged) -> int:
    return int(image.file.partition("-")[0])


def _place(of: list[Logged], wanted: Wanted) -> int:
    if wanted.step is not None:
        return max([at for at, one in enumerate(of) if (one.step or 0) <= wanted.step], default=0)
    start = len(of) - 1
    if wanted.after is not None:  # it may be one of those that were thinned out meanwhile
        start = max([at for at, one in enumerate(of) if _number(one) <= wanted.after], default=0)
    return max(0, min(len(of) - 1, start + wanted.by))
