"""The tasks of the shipped trainer, asked of it before anything is measured."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from difflib import get_close_matches

from ..machine import trainer_module
from ..model.errors import UsageError

_ASK = "from {trainer}.tasks import TASKS; print(*TASKS)"
_ASK_SECONDS = 30.0


def require_task(task: str, python: str, environ: Mapping[str, str]) -> None:
    """Say at once what the trainer would say after its first start; where it cannot be asked, leave it to that.

    Raises:
        UsageError: it knows no such task.
    """
    try:
        done = subprocess.run(
            [python, "-P", "-c", _ASK.format(trainer=trainer_module())],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    known = done.stdout.split()
    if done.returncode == 0 and known and task not in known:
        near = get_close_matches(task, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"tasks: {', '.join(known)}"
        raise UsageError(f"there is no task {task!r}", hint, field="task", near=next(iter(near), None))
