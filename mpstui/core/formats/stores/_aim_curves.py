"""The metrics of an Aim run: values, steps, epochs and times, each number under a key of its own."""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ....wire import storage
from ..points import Point
from ..rows import Row, Rows
from ..told import SYSTEM, setting_text
from ._curves import Curves
from ._rocksdb import RocksFolder, StartOver
from ._rocksdb_files import Change
from .aim import Word, decoded_value, mapping, words_in, words_of

_BEGIN = b"seqs\xfe"
_OF_MACHINE = "__system__"
_PARTS = ("val", "epoch", "time", "step")
_NUMBER_BYTES = 10
"""Length of the end of a key: a mark, the index of the value (8 bytes), a mark."""
_MOST_METRICS = 2000
_NAN = math.nan


class _Columns(NamedTuple):
    """New values of one metric, placed together."""

    name: str
    steps: array[float]
    epochs: array[float]
    times: array[float]
    values: array[float]


class _Metric:
    """A metric whose parts (values, steps, ...) arrive one after the other."""

    def __init__(self, context: int, name: str, *, has_steps: bool) -> None:
        self.context, self.name = context, name
        self.parts: dict[str, dict[bytes, bytes]] = {part: {} for part in _PARTS}
        self._has_steps = has_steps
        """True if steps are stored; in older versions of Aim the index of a value is its step."""

    def whole(self) -> list[tuple[float, float, float, float]]:
        """Remove and return the complete values as (step, epoch, time, value), sorted by step."""
        values, epochs, times, steps = (self.parts[part] for part in _PARTS)
        ready = [number for number in values if number in times and (number in steps or not self._has_steps)]
        found = []
        for number in ready:
            value, time = _number(values.pop(number)), _number(times.pop(number))
            told, epoch = steps.pop(number, b""), _number(epochs.pop(number, b""))
            step = _number(told) if self._has_steps else float(int.from_bytes(number, "big", signed=True))
            if value is not None and step is not None:
                found.append((step, _NAN if epoch is None else epoch, _NAN if time is None else time, value))
        return sorted(found, key=lambda one: one[0])


class AimCurves(Curves):
    """Reads the metrics of one run and the readings of its machine."""

    name: ClassVar[str] = "aim"

    def __init__(self, folder: Path, run: str, files: Callable[[], Sequence[Path]]) -> None:
        super().__init__(folder / "seqs" / "chunks" / run)
        self._folder, self._run, self._files = folder, run, files
        self._start()

    def _start(self) -> None:
        self._database = RocksFolder(self.path)
        self._metrics: dict[tuple[int, str], _Metric] = {}
        self._parts: dict[bytes, tuple[_Metric, dict[bytes, bytes]]] = {}
        """Metric and part by key prefix, the key without the index of the value."""
        self._current: _Metric | None = None
        """The metric of the newest value; it is complete when another follows, since the keys of a table are sorted."""
        self._contexts: dict[Word, str] = {}
        self._steps, self._times = array("d"), array("d")

    def take(self, limit: int) -> Sequence[Point]:
        marks = [storage.stamp(file) for file in self._files()]
        size = sum(mark[2] for mark in marks if mark is not None)
        before, found = self._database.bytes_read, list[_Columns]()
        try:
            for changes in self._database.news(_BEGIN, limit):
                found += self._noted(changes)
            if not self._database.is_within_table:
                found += self._whole()
        except StartOver:
            self._start()
            self.position = -1 - abs(self.position)  # any new position: signals that there is more to read
            return []
        except OSError as error:
            self.failure = str(error)
            return self._placed(found)
        damaged, read = self._database.damaged, self._database.bytes_read - before
        self.failure = f"{damaged} damaged block{'s' * (damaged > 1)} passed over" if damaged else None
        is_all = not self._database.is_within_table and read < limit
        self.position = size if is_all else min(size - 1, max(0, self.position) + read)
        return self._placed(found)

    def glance(self) -> Sequence[Point]:
        """Return the newest values, which are stored with the settings."""
        words, found = words_of(self._folder, self._run), list[Row]()
        contexts = mapping(words.get("contexts"))
        for context, metrics in mapping(words.get("traces")).items():
            for name, told in mapping(metrics).items():
                last, step = mapping(told).get("last"), mapping(told).get("last_step")
                if isinstance(last, (int, float)) and isinstance(step, int):
                    shown = _shown(str(name), _prefix(contexts.get(context)))
                    found.append(Row({shown: float(last)}, float(step), _NAN))
        return Rows(self.name).place(sorted(found, key=lambda row: row.step))

    def _noted(self, changes: Sequence[Change]) -> list[_Columns]:
        """Take in changes; return the metrics completed by them."""
        found: list[_Columns] = []
        for _, _, key, value in changes:
            known = self._parts.get(key[:-_NUMBER_BYTES]) or self._known(key)
            if known is None:
                continue
            if known[0] is not self._current:
                found += self._whole()
                self._current = known[0]
            known[1][key[1 - _NUMBER_BYTES : -1]] = value
        return found

    def _known(self, key: bytes) -> tuple[_Metric, dict[bytes, bytes]] | None:
        """Return the metric and the part that a key belongs to; None if the key is not one of a number."""
        try:
            words = list(words_in(key))
        except (ValueError, struct.error):
            return None
        has_steps = words[1:2] == ["v2"]
        place = words[4 if has_steps else 3 :]
        if len(place) != 4 or place[2] not in _PARTS or not isinstance(place[0], int) or not isinstance(place[3], int):
            return None
        context, name = place[0], str(place[1])
        if (context, name) not in self._metrics and len(self._metrics) >= _MOST_METRICS:
            return None
        metric = self._metrics.setdefault((context, name), _Metric(context, name, has_steps=has_steps))
        found = self._parts[key[:-_NUMBER_BYTES]] = metric, metric.parts[str(place[2])]
        return found

    def _whole(self) -> list[_Columns]:
        """Return the complete values of the current metric."""
        metric, self._current = self._current, None
        whole = metric.whole() if metric is not None else []
        if metric is None or not whole:
            return []
        if metric.context not in self._contexts:
            told: dict[Word, Any] = {}
            with suppress(OSError):
                told = mapping(words_of(self._folder, self._run).get("contexts"))
            self._contexts = {metric.context: "", **{one: _prefix(inner) for one, inner in told.items()}}
        name = _shown(metric.name, self._contexts[metric.context])
        return [_Columns(name, *(array("d", column) for column in zip(*whole, strict=True)))]

    def _placed(self, found: list[_Columns]) -> list[Point]:
        """Return the points of metrics, those that are furthest last: they determine where the run stands."""
        found.sort(key=lambda one: (not one.name.startswith(SYSTEM), one.steps[-1]))
        self.rows.learn([one.name for one in found if not one.name.startswith(SYSTEM)])
        self._note_times([one for one in found if not one.name.startswith(SYSTEM)])
        points: list[Point] = []
        for name, steps, epochs, times, values in found:
            of_machine = name.startswith(SYSTEM)
            placed = array("d", map(self._step_at, times)) if of_machine else steps
            points += self.rows.columns({name: values}, placed, times, epochs)
        return points

    def _note_times(self, found: Sequence[_Columns]) -> None:
        last = self._steps[-1] if self._steps else -math.inf
        pairs = (pair for one in found for pair in zip(one.steps, one.times, strict=True) if pair[0] > last)
        for step, moment in sorted({step: moment for step, moment in pairs if not math.isnan(moment)}.items()):
            self._steps.append(step)
            self._times.append(moment)

    def _step_at(self, moment: float) -> float:
        """Return the newest step at that time: readings of the machine have a count of their own."""
        return self._steps[max(0, bisect_right(self._times, moment) - 1)] if self._steps else _NAN


def _shown(name: str, prefix: str) -> str:
    """Return the metric's name with its context in front: ``train/loss``."""
    if name.startswith(_OF_MACHINE):
        return f"{SYSTEM}{prefix}{name.removeprefix(_OF_MACHINE)}"
    return f"{prefix}{name}"


def _prefix(context: Any) -> str:
    words = [
        str(value) if isinstance(value, str) else f"{key}={setting_text(value)}"
        for key, value in mapping(context).items()
        if not isinstance(value, dict)
    ]
    return "".join([f"{word}/" for word in words])


def _number(value: bytes) -> float | None:
    try:
        found = decoded_value(value) if value else None
    except struct.error:
        return None
    return float(found) if isinstance(found, (int, float)) else None
