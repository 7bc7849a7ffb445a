"""Every test of the screen sees the same clock zone and no user's own terminal settings."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator

import pytest

from mpstui.ui import app
from mpstui.ui.workers import runs, system


@pytest.fixture(autouse=True)
def same_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """UTC, no colour wishes, no SSH, one host; all workers at once; the list has its machine only on request."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(platform, "node", lambda: "studio.local")
    monkeypatch.setattr(system, "_FIRST_SECONDS", 3600.0)
    monkeypatch.setattr(app, "_LATER_SECONDS", 0.03)
    monkeypatch.setattr(runs, "_KEYS_FIRST_SECONDS", 0.0)
    for name in ("NO_COLOR", "COLORTERM", "SSH_CONNECTION", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
