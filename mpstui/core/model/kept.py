"""An image or a text that a program has logged into a file of its own."""

from __future__ import annotations

from typing import NamedTuple

from .moment import Moment


class Kept(NamedTuple):
    """Its name and step, and where it lies; nothing of an image is read until somebody looks at it."""

    number: int
    """From 1, higher than those of everything logged before."""
    name: str
    step: int | None
    time: Moment
    """0: unknown."""
    text: str | None = None
    """None: it is an image."""
    file: str = ""
    """Of an image: the path of the file that holds it."""
    offset: int = 0
    """Where in the file it begins; 0: the image is the whole file."""
    bytes: int = 0
    """How long it is there."""
    attempt: int = 0
