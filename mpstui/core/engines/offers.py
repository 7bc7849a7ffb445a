"""What a scheduler offers: its partitions, their limits and GPUs. Asked in the background, so that no form waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from ..model.errors import OperationError
from .engine import ask, engine_named

_KEPT_SECONDS = 300.0
_known: dict[str, Mapping[str, str]] = {}
_asked: dict[str, float] = {}
_lock = threading.Lock()


def ask_aside(name: str) -> None:
    """Ask a scheduler what it offers, unless it was asked some minutes ago."""
    engine, now = engine_named(name), time.monotonic()
    with _lock:
        if not engine.offers() or now - _asked.get(name, -_KEPT_SECONDS) < _KEPT_SECONDS:
            return
        _asked[name] = now

    def hear() -> None:
        with suppress(OperationError):  # then a form shows its examples
            _known[name] = engine.offered(ask(engine, engine.offers()))

    threading.Thread(target=hear, name=f"offers of {name}", daemon=True).start()


def offered(name: str) -> Mapping[str, str]:
    """By option, what a scheduler has said it offers; nothing before it has answered."""
    return _known.get(name, {})
