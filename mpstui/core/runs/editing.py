"""Changing a small record that several people may change at once: each waits for the other, and neither is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ...wire.storage import UnreadableRecord
from ...wire.trust import distrust_of_any
from ..model.errors import OperationError
from ..model.home import HINT_OWN

PATIENCE_SECONDS = 10.0
"""Whoever is changing it may be writing to a slow disk, or be one of many."""
Edited = TypeVar("Edited")


def edited(
    what: str, place: Path, edit: Callable[[], Edited], *, folders: tuple[Path, ...], busy: type[OSError]
) -> Edited:
    """What ``edit`` returns, tried again while it raises ``busy``.

    Args:
        what: is changed, in words.
        place: its file.
        folders: that nobody else may be able to write to.

    Raises:
        OperationError: it could not be changed; what was there before still is.
    """
    if why := distrust_of_any(*folders, strict=True):
        raise OperationError(f"{what} cannot be changed: {why}", HINT_OWN)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return edit()
        except busy as error:
            if time.monotonic() >= deadline:
                raise OperationError(str(error), "try again in a moment") from error
            time.sleep(0.02)
        except (OSError, UnreadableRecord) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise OperationError(
                f"{what} cannot be changed: {why}", f"see {place}; what was there before still is"
            ) from error
