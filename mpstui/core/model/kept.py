"""An image or text that a program logged to a file of its own."""

from __future__ import annotations

from typing import NamedTuple

from .moment import Moment


class Kept(NamedTuple):
    """The name and step of an image or text, and where to find it; an image is only read when it is viewed."""

    number: int
    """From 1, rising in the order of logging."""
    name: str
    step: int | None
    time: Moment
    """When it was logged; 0: unknown."""
    text: str | None = None
    """The text; None for an image."""
    file: str = ""
    """For an image, the path of the file that holds it."""
    offset: int = 0
    """Where the image begins in the file; 0: the image is the whole file."""
    bytes: int = 0
    """The length of the image in the file."""
    attempt: int = 0
