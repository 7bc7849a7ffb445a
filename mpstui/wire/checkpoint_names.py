"""What the name of a checkpoint says of it, the same for the trainer, the supervisor and the screen."""

from __future__ import annotations

import re

_BEST = re.compile(r"(?<![a-z])best|best(?![a-z])", re.IGNORECASE)
_EARLIER = re.compile(r"^best-earlier-(\d+)$")


def is_best(stem: str) -> bool:
    """Whether a file's name without its ending calls it the best one; not that of a training that was begun anew."""
    return _BEST.search(stem) is not None and not is_earlier_best(stem)


def earlier_best(number: int) -> str:
    """The name without its ending under which the best of a training stays when the next one has a best of its own."""
    return f"best-earlier-{number}"


def is_earlier_best(stem: str) -> bool:
    """Whether a name is one of :func:`earlier_best`."""
    return earlier_number(stem) > 0


def earlier_number(stem: str) -> int:
    """The number in a name that :func:`earlier_best` gave, the highest is the newest; 0 for any other name."""
    found = _EARLIER.match(stem)
    return int(found[1]) if found else 0
