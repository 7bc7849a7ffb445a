"""A single JSON document, rewritten as a whole: heartbeats, Hugging Face's trainer_state.json, summaries, histories."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ....wire import storage
from ..loss_series import first_known
from ..measures import is_measure
from ..points import MetricPoint, ParsedLog, as_number
from ..records import ALIASES, EPOCH, STEP
from ..thrift import LineChoice, passed_over
from ..tracker import Tracker
from . import CHUNK, SNIFF_BYTES, Records

_WHOLE_BYTES = storage.MOST_RECORD_BYTES
"""Of a longer document only the history is read, entry by entry."""
_HISTORY = re.compile(rb'"log_history"\s{0,64}:\s{0,64}\[')
_LIST = re.compile(rb"\[\s{0,64}\{")
_BETWEEN_ENTRIES = re.compile(rb"\}\s*,\s*\{")
_STATE = re.compile(rb'"(epoch|global_step|max_steps|num_train_epochs)"\s{0,8}:\s{0,8}([\d.eE+-]{1,24})')
_ENDED = re.compile(rb"\}\s*\]")
_DECODER = json.JSONDecoder()


class JsonDocument(Records):
    """Gives one point per rewrite of a heartbeat, and one per entry of a ``log_history``."""

    name = "json"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._stamp: tuple[int, int, int] | None = None
        self._state: dict[str, object] = {}
        self._entries = 0
        """Entries of the history that have been read."""
        self._offset = self._passed = 0
        """How far a long document has been scanned, in bytes and in entries."""
        self._torn = b""
        self._choice = LineChoice()

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """True for a list of records, and for an object that spans several lines or is alone in the file."""
        text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        if _LIST.match(text) is not None:
            return path.stat().st_size <= _WHOLE_BYTES and _load(path) is not None
        if not text.startswith(b"{"):
            return False
        if path.stat().st_size > _WHOLE_BYTES:
            return _HISTORY.search(text) is not None
        if b'"log_history"' in text or len(text.split(b"\n", 1)[0].strip()) <= 2:
            return _load(path) is not None
        return text.count(b"\n") <= 1 and path.suffix != ".jsonl" and _load(path) is not None

    @property
    def position(self) -> int:
        """The size of the document once it was read; of a long one, the bytes scanned so far."""
        return self._offset or (self._stamp[2] if self._stamp is not None else 0)

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """Return the new entries, or the new heartbeat; a half-written file is left for the next call."""
        stamp = storage.stamp(self.path)
        if stamp is not None and stamp[2] > _WHOLE_BYTES:
            return self._poll_long(stamp, limit)
        if stamp == self._stamp:
            return []
        self._offset = 0
        document = _load(self.path)
        if document is None:
            return []
        self._stamp = stamp
        history = document.get("log_history")
        if isinstance(history, list):
            if len(history) < self._entries:  # of another run: read from its start
                self._entries, self._tracker = 0, Tracker()
            news, self._entries = history[self._entries :], len(history)
            self._state = {key: value for key, value in document.items() if key != "log_history"}
            state = self._state
            entries = [entry for entry in news if isinstance(entry, dict)]
            if entries and state and as_number(state.get("global_step")) != as_number(entries[-1].get("step")):
                entries.append({"step": state.get("global_step"), "epoch": state.get("epoch")})
            return self._points_of_entries(entries)
        self._state = {}
        # mpstui's heartbeat has null for NaN and infinity, and lists their names.
        names = document.get("nonfinite")
        nonfinite = {str(name): math.nan for name in names} if isinstance(names, list) else {}
        return self.points_of({**document, **nonfinite})

    def _points_of_entries(self, entries: Iterable[dict[str, object]]) -> list[MetricPoint]:
        """Return the points of history entries, each with the totals that the document states.

        If the document has a ``global_step``, the ``step`` of each entry is one too, also in evaluations.
        """
        names = ("max_steps", "num_train_epochs")
        plan = {name: self._state[name] for name in names if _planned(self._state.get(name))}
        counts_all = "global_step" in self._state
        found: list[MetricPoint] = []
        for entry in entries:
            step = {"global_step": entry["step"]} if counts_all and "step" in entry else {}
            found += self.points_of({**plan, **entry, **step})
        return found

    def _poll_long(self, stamp: tuple[int, int, int], limit: int | None) -> list[MetricPoint]:
        """Return the new entries of a document too long to hold; an entry with nested objects may be lost."""
        points: list[MetricPoint] = []
        with storage.open_file(self.path) as file:
            if stamp != self._stamp:
                head = file.read(SNIFF_BYTES)
                history = _HISTORY.search(head)
                file.seek(max(0, stamp[2] - SNIFF_BYTES))
                told = dict(_STATE.findall(head[: history.start() if history else 0]))
                told |= {name: value for name, value in _STATE.findall(file.read()) if name not in told}
                self._state = {name.decode(): as_number(value.decode()) for name, value in told.items()}
                self._stamp, self._passed, self._torn = stamp, 0, b""
                self._offset = history.end() if history else stamp[2]
            stop = stamp[2] if limit is None else min(stamp[2], self._offset + limit)
            while self._offset < stop:
                file.seek(self._offset)
                data = file.read(CHUNK)
                self._offset += len(data)
                points += self._entries_in(data, last=self._offset >= stamp[2] or not data)
        return points

    def _entries_in(self, data: bytes, *, last: bool) -> list[MetricPoint]:
        entries = _BETWEEN_ENTRIES.sub(b"}\n{", (self._torn + data).replace(b"\n", b" "))
        whole = entries.rfind(b"\n") + 1
        entries, self._torn = entries[:whole], entries[whole:][:CHUNK]
        complete = last and _ENDED.search(self._torn) is not None
        lines = entries.split(b"\n")[:-1] + ([self._torn] if complete else [])
        new = lines[max(0, self._entries - self._passed) :]
        self._passed += len(lines)
        if complete and self._passed < self._entries:  # of another run: read from its start
            self._entries, self._stamp, self._tracker = 0, None, Tracker()
        self._entries = max(self._entries, self._passed) if self._stamp else 0
        found = (_entry(line) for line in self._choice.each(b"\n".join(new)))
        return self._points_of_entries(entry for entry in found if entry)

    def close(self) -> list[MetricPoint]:
        """Return the new points: nothing is held back."""
        return self.poll()

    def summary(self) -> ParsedLog:
        """Return the newest heartbeat, or the history with the totals of its document."""
        found = super().summary()
        if not self._state:
            return found
        return replace(
            found,
            read_in_part=passed_over(self._choice.passed_over, 0) or None,
            format="hugging face trainer_state",
            epoch=first_known(as_number(self._state.get("epoch")), found.epoch),
            step=first_known(as_number(self._state.get("global_step")), found.step),
            epochs=first_known(_planned(self._state.get("num_train_epochs")), found.epochs),
            steps=first_known(_planned(self._state.get("max_steps")), found.steps),
        )


def _planned(value: object) -> int | float | None:
    number = as_number(value)
    return number if number is not None and number > 0 else None


def _entry(text: bytes) -> dict[str, object] | None:
    """Return the JSON object that a text begins with, or None."""
    try:
        value, _ = _DECODER.raw_decode(text.decode(errors="replace").lstrip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _load(path: Path) -> dict[str, object] | None:
    try:
        value = json.loads(storage.read_bytes(path, _WHOLE_BYTES))
    except (ValueError, RecursionError, storage.TooLarge):
        return None
    if isinstance(value, list):
        return {"log_history": value} if _are_records(value) else None
    if not isinstance(value, dict):
        return None
    columns = _columns(value)
    return {"log_history": columns} if columns else value


def _columns(document: dict[str, object]) -> list[dict[str, object]]:
    """Return a history with one list per measure as one record per epoch; empty for any other document.

    This is how the history that Keras returns is often saved. Other values (the best epoch) are ignored.
    """
    lists = {
        name: values
        for name, values in document.items()
        if isinstance(values, list) and values and all(as_number(value) is not None for value in values)
    }
    lengths = {len(values) for values in lists.values()}
    measured = sum(map(is_measure, lists))
    if len(lengths) != 1 or 2 * measured < len(lists) or "log_history" in document or 2 * len(lists) < len(document):
        return []
    counted = any(ALIASES.get(name.lower()) in (EPOCH, STEP) for name in lists)
    return [
        {**({} if counted else {EPOCH: place + 1}), **{name: values[place] for name, values in lists.items()}}
        for place in range(lengths.pop())
    ]


def _are_records(entries: list[object]) -> bool:
    """True if a list holds records of a training, not a data set: its objects name an epoch or step."""
    first = entries[0] if entries and all(isinstance(entry, dict) for entry in entries) else None
    return isinstance(first, dict) and any(ALIASES.get(name.lower()) in (EPOCH, STEP) for name in first)


FILE = JsonDocument
