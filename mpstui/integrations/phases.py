"""Silent phases of a training, and the methods that write its checkpoints, for all frameworks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..reporting import report

EVALUATION_SECONDS, SAVING_SECONDS = 3600.0, 600.0


def tell_of_saves(owner: Any, name: str, tell: Callable[..., None]) -> None:
    """Wrap an object's checkpoint-writing method so that every call is reported; a second time does nothing.

    Args:
        owner: a model, a trainer, a learner; :func:`leave_saves` undoes this.
        name: the method's name.
        tell: called with what the method returned, and then its arguments.
    """
    save = getattr(owner, name)
    if hasattr(save, "tells"):
        return

    @functools.wraps(save)
    def saved(*args: Any, **kwargs: Any) -> Any:
        with report.phase("saving", expect_seconds=SAVING_SECONDS):
            result = save(*args, **kwargs)
        tell(result, *args, **kwargs)
        return result

    saved.tells = True  # type: ignore[attr-defined]
    setattr(owner, name, saved)


def leave_saves(owner: Any, name: str) -> None:
    """Remove the wrapper again, so that an object that is pickled or exported is as it was."""
    vars(owner).pop(name, None)
