"""What a scheduler offers: its partitions, their limits and GPUs. Queried in the background, so that no form waits."""

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
    """Query a scheduler's offers in the background, unless that was done in the last few minutes."""
    engine, now = engine_named(name), time.monotonic()
    with _lock:
        if not engine.offers() or now - _asked.get(name, -_KEPT_SECONDS) < _KEPT_SECONDS:
            return
        _asked[name] = now

    def hear() -> None:
        with suppress(OperationError):  # forms then show their examples
            _known[name] = engine.offered(ask(engine, engine.offers()))

    threading.Thread(target=hear, name=f"offers of {name}", daemon=True).start()


def offered(name: str) -> Mapping[str, str]:
    """Return a scheduler's offers by option; empty until it has answered."""
    return _known.get(name, {})
