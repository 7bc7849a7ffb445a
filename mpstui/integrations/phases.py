"""What a training is silent for, and what writes its checkpoints, in whatever framework."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..reporting import report

EVALUATION_SECONDS, SAVING_SECONDS = 3600.0, 600.0


def tell_of_saves(owner: Any, name: str, tell: Callable[..., None]) -> None:
    """Have the method of an object that writes its checkpoints say so, whoever calls it; a second time does nothing.

    Args:
        owner: a model, a trainer, a learner; :func:`leave_saves` makes it as it was.
        name: of the method.
        tell: takes what the method has returned, and then its arguments.
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
    """Take the telling method away again: an object that is pickled or exported is as it was."""
    vars(owner).pop(name, None)
