"""Every test of the screen sees the same clock zone and no user's own terminal settings."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def same_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """UTC, no colour wishes, no SSH."""
    monkeypatch.setenv("TZ", "UTC")
    for name in ("NO_COLOR", "COLORTERM", "SSH_CONNECTION", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
