"""Every test of the screen sees the same clock zone and no user's own terminal settings."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from mpstui.ui import app
from mpstui.ui.workers import system

_PARSE = Stylesheet._parse_rules
_PARSED: dict[object, list[RuleSet]] = {}


def _parse_once(self: Stylesheet, *source: object, **more: object) -> list[RuleSet]:
    """The same style sheets in the same colours are parsed for the first app alone: an eighth of a screen's test."""
    key = (source, *more.items(), frozenset(self._variables.items()))
    if key not in _PARSED:
        _PARSED[key] = _PARSE(self, *source, **more)  # type: ignore[arg-type]
    return _PARSED[key]


@pytest.fixture(autouse=True)
def same_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """UTC, no colour wishes, no SSH, one host; all workers at once; the list has its machine only on request."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(platform, "node", lambda: "studio.local")
    monkeypatch.setattr(system, "_FIRST_SECONDS", 3600.0)
    monkeypatch.setattr(app, "_LATER_SECONDS", 0.03)
    monkeypatch.setattr(Stylesheet, "_parse_rules", _parse_once)
    for name in ("NO_COLOR", "COLORTERM", "SSH_CONNECTION", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
