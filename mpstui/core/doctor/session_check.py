"""Whether the system lets runs live on after the last logout: systemd ends them unless the user lingers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from .report import Finding, Status

TIMEOUT_SECONDS = 3.0


def lingers(root: Path = Path("/")) -> bool | None:
    """What ``loginctl`` says of this user; None where no systemd manages logins, or it does not answer.

    With ``KillUserProcesses=yes`` (systemd's own default since v230) every process of a user is ended at the last
    logout; with ``systemd --user`` services that holds for those in any case (loginctl(1), enable-linger).
    """
    if not (root / "run/systemd/system").is_dir():
        return None
    command = ["loginctl", "show-user", "--property=Linger", "--value"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_linger(done.stdout)


def parse_linger(text: str) -> bool | None:
    """``yes`` or ``no``, as loginctl prints it."""
    return {"yes": True, "no": False}.get(text.strip())


def judge_linger(linger: bool | None) -> Iterator[Finding]:
    """Nothing is said where systemd has no part in it."""
    if linger:
        yield Finding("linger", Status.OK, "runs may live on after the last logout (linger is enabled)")
    elif linger is False:
        text = "systemd may end your runs at the last logout: linger is not enabled for this user"
        yield Finding("linger", Status.WARNING, text, "loginctl enable-linger")
