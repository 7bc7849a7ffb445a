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
    """A cause as it is told to people: who sent a SIGKILL, the system or somebody, it does not say."""
    return "SIGKILL" if cause == "killed_os" else cause
