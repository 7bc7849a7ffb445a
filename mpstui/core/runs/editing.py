"""Change a small record that several people may edit at once: edits wait for each other, and none is lost."""

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
"""How long to wait for others that are changing the record: the disk may be slow, or there may be many of them."""
Edited = TypeVar("Edited")


def edited(
    what: str, place: Path, edit: Callable[[], Edited], *, folders: tuple[Path, ...], busy: type[OSError]
) -> Edited:
    """Call ``edit``, repeatedly while it raises ``busy``, and return its result.

    Args:
        what: what is changed, in words for an error.
        place: the file.
        folders: folders that only this user may be able to write to.

    Raises:
        OperationError: the record could not be changed; it is as it was before.
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
