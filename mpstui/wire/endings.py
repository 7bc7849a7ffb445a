"""The words for what ended a program, the same in records, events and lists."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; the number itself if this system has no such signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def told_cause(cause: str | None) -> str | None:
    """Return a cause as people see it: it does not say who sent a SIGKILL, the system or a person."""
    return "SIGKILL" if cause == "killed_os" else cause
