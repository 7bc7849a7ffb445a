"""One JSON object that is rewritten whole: heartbeats, Hugging Face's trainer_state.json, summaries."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from ....wire import storage
from ..loss_series import first_known
from ..points import MetricPoint, ParsedLog, as_number
from ..tracker import Tracker
from . import Records

_MAX_BYTES = 256 << 20


class JsonDocument(Records):
    """A heartbeat is one point per rewrite; a file with a ``log_history`` is one point per entry."""

    name = "json"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._stamp: tuple[int, int, int] | None = None
        self._state: dict[str, object] = {}
        self._entries = 0

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """An object that is not ended by the line it starts on, or is alone in the file."""
        text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        if not text.startswith(b"{"):
            return False
        if b'"log_history"' in text or len(text.split(b"\n", 1)[0].strip()) <= 2:
            return _load(path) is not None
        return text.count(b"\n") <= 1 and path.suffix != ".jsonl" and _load(path) is not None

    @property
    def position(self) -> int:
        """The whole document, once it was read."""
        return self._stamp[2] if self._stamp is not None else 0

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """The new entries, or the new heartbeat; a file caught half-written is left for the next call."""
        stamp = storage.stamp(self.path)
        if stamp == self._stamp:
            return []
        document = _load(self.path)
        if document is None:
            return []
        self._stamp = stamp
        history = document.get("log_history")
        if isinstance(history, list):
            if len(history) < self._entries:  # another run's, read from its start
                self._entries, self._tracker = 0, Tracker()
            news, self._entries = history[self._entries :], len(history)
            self._state = {key: value for key, value in document.items() if key != "log_history"}
            state = self._state
            plan = {name: state[name] for name in ("max_steps", "num_train_epochs") if _planned(state.get(name))}
            entries = [entry for entry in news if isinstance(entry, dict)]
            if entries and as_number(state.get("global_step")) != as_number(entries[-1].get("step")):
                entries.append({"step": state.get("global_step"), "epoch": state.get("epoch")})
            return [point for entry in entries for point in self.points_of({**plan, **entry})]
        self._state = {}
        # mpstui's heartbeat carries NaN and infinity as null and names them: the fact is the news.
        names = document.get("nonfinite")
        nonfinite = {str(name): math.nan for name in names} if isinstance(names, list) else {}
        return self.points_of({**document, **nonfinite})

    def close(self) -> list[MetricPoint]:
        """Nothing is held back."""
        return self.poll()

    def summary(self) -> ParsedLog:
        """The newest heartbeat, or the history with the totals of the document around it."""
        found = super().summary()
        if not self._state:
            return found
        return replace(
            found,
            format="hugging face trainer_state",
            epoch=first_known(as_number(self._state.get("epoch")), found.epoch),
            step=first_known(as_number(self._state.get("global_step")), found.step),
            epochs=first_known(_planned(self._state.get("num_train_epochs")), found.epochs),
            steps=first_known(_planned(self._state.get("max_steps")), found.steps),
        )


def _planned(value: object) -> int | float | None:
    number = as_number(value)
    return number if number is not None and number > 0 else None


def _load(path: Path) -> dict[str, object] | None:
    if path.stat().st_size > _MAX_BYTES:
        return None
    try:
        value = json.loads(storage.read_bytes(path, _MAX_BYTES))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


FILE = JsonDocument
