"""What the list shows of ended runs, kept in one file, so that the first frame is complete however long the logs are.

Each line is the summary of a run, whose newest line counts. It is valid as long as every file it was read from has
the same size and times; a damaged line, or one from another mpstui, is skipped. Losing the file costs only time.
"""

from __future__ import annotations

import contextlib
import json
import stat
from array import array
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

from ...wire import heartbeat, storage
from ...wire.heartbeat import CheckpointNote, DeviceReading, MemoryReading
from ...wire.records import Branch
from ...wire.rundir import RunDir
from ..model.exits import ExitSummary
from ..model.jobs import JobPhase, JobView
from ..model.moves import Moving
from ..model.reader_version import reader_version
from ..model.snapshot import Numbers, Piece, RunSnapshot, SeriesView, State

MOST_BYTES = 1 << 26
_MOST_DEAD_LINES = 100
_OF_THE_MOMENT = frozenset({"run", "dir", "seen", "name", "tags", "note", "available", "queue", "brief"})
"""Fields that are determined anew each time, or do not apply to ended runs."""
_IN_FULL_ALONE = frozenset({"events", "checkpoints", "images", "kept", "outputs", "ranks"})
_COLUMNS = tuple(spec.name for spec in fields(SeriesView) if spec.type in ("Sequence[float]", "Sequence[Moment]"))
_PIECES = tuple(spec.name for spec in fields(Piece))
_RECORDS: Mapping[str, Any] = {"device": DeviceReading, "memory": MemoryReading, "checkpoint": CheckpointNote}
"""Fields of the numbers that are named tuples, which JSON turns into lists."""
_OF_RUN: Mapping[str, Any] = {"branch": Branch, "moving": Moving}
"""The same for fields of the run."""
_OF_ATTEMPT = ("launch.json", "config.json", "output.log", "heartbeat.json", "exit.json")
_FIELDS = [[spec.name for spec in fields(kind)] for kind in (RunSnapshot, Numbers, SeriesView)]
_FIELDS += [[*ExitSummary._fields], [*JobView._fields]]
_SHAPE = format(crc32(repr([_FIELDS, *_RECORDS.values(), *_OF_ATTEMPT]).encode()), "08x")
"""Lines with another shape, or from another version of the readers, were written by another mpstui."""

Stamps = Mapping[str, Sequence[int] | None]


def _shape() -> bytes:
    return f"{reader_version()}-{_SHAPE}".encode()


def files_of(run: RunDir, attempt: int, others: Collection[Path] = ()) -> list[str]:
    """Return the names of the files from which the row of an ended run is read."""
    names = ["spec.json", "status.json", "job.json", "moving.json", "moved.json", "metrics.jsonl", "attempts"]
    names += [f"attempts/{attempt}/{name}" for name in _OF_ATTEMPT]
    return [*names, *(str(path) for path in others if run.path not in path.parents)]


def stamps_of(run: RunDir, names: Collection[str]) -> Stamps:
    """Return for each file what reveals a change, by name."""
    folder = str(run.path)
    return {name: storage.stamp(name if name.startswith("/") else f"{folder}/{name}") for name in names}


class Summaries:
    """The saved summaries of one home."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = b""
        """The whole file as one object, whose memory goes back to the system: it saves 7 MB with 500 runs."""
        self._lines: dict[str, tuple[int, int]] = {}
        """Where the line of each run begins and ends in it."""
        self._dead = 0
        with contextlib.suppress(OSError):
            self._text = storage.read_bytes(path, MOST_BYTES)
        start, shape = 0, _shape()
        while start < len(self._text):
            end = self._text.find(b"\n", start)
            end = len(self._text) if end < 0 else end
            told = self._text.find(b"\t", start, end) + 1
            rest = self._text.find(b"\t", told, end) + 1
            self._dead += end > start
            if 0 < told < rest < end and self._text[start : told - 1] == shape:
                self._lines[self._text[told : rest - 1].decode("utf-8", "replace")] = rest, end
            start = end + 1
        self._dead -= len(self._lines)

    def find(self, run: RunDir, seen: float) -> tuple[RunSnapshot, Stamps] | None:
        """Return the saved summary of a run, with the name it was launched under; None if there is no valid one.

        Args:
            seen: the current time, Unix seconds.
        """
        if run.run not in self._lines:
            return None
        try:
            told, _, text = self._line(run.run).partition(b"\t")
            if int(told, 16) != crc32(text):
                return None
            found = json.loads(text)
            stamps = stamps_of(run, found["files"])
            if any(found["files"][name] != (now and list(now)) for name, now in stamps.items()):
                return None
            return _decoded(found["run"], run, seen), stamps
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, storage.UnreadableRecord):
            return None

    def keep(self, run: RunDir, name: str, files: Stamps, snapshot: RunSnapshot) -> None:
        """Save the summary of an ended run; if the disk refuses, only time is lost.

        Args:
            name: the name it was launched under.
            files: the stamps of its files, taken before it was read.
        """
        text = json.dumps({"files": files, "run": {**_encoded(snapshot), "name": name}}).encode()
        line = b"%s\t%s\t%08x\t%s" % (_shape(), run.run.encode("utf-8", "replace"), crc32(text), text)
        with contextlib.suppress(OSError):
            storage.make_private_folder(self._path.parent)
            there = storage.stat_of(self._path)
            if there is None or (stat.S_ISREG(there.st_mode) and there.st_size + len(line) < MOST_BYTES):
                # The leading line break ends a line that a full disk may have torn.
                storage.append_text(self._path, f"\n{line.decode()}\n")

    def forget(self, runs: Collection[str]) -> None:
        """Free the memory; if most lines of the file have become useless, keep only those of ``runs``."""
        if not self._lines and not self._dead:
            return
        kept = [run for run in self._lines if run in runs]
        self._dead += len(self._lines) - len(kept)
        if self._dead > max(_MOST_DEAD_LINES, len(kept)):
            with contextlib.suppress(OSError):
                lines = (b"%s\t%s\t%s\n" % (_shape(), run.encode(), self._line(run)) for run in kept)
                storage.write_bytes(self._path, b"".join(lines), sync=False)
        self._text, self._lines, self._dead = b"", {}, 0

    def _line(self, run: str) -> bytes:
        start, end = self._lines[run]
        return self._text[start:end]


def _encoded(snapshot: RunSnapshot) -> dict[str, Any]:
    left_out = _OF_THE_MOMENT | _IN_FULL_ALONE
    found = {spec.name: getattr(snapshot, spec.name) for spec in fields(snapshot) if spec.name not in left_out}
    numbers = {spec.name: getattr(snapshot.numbers, spec.name) for spec in fields(Numbers)}
    numbers["beat"] = numbers["beat"] and heartbeat.to_json(numbers["beat"])
    series = {name: _encoded_view(view) for name, view in snapshot.series.items()}
    output = None if snapshot.output is None else str(snapshot.output)
    ended, job = (one and one._asdict() for one in (snapshot.exit, snapshot.job))
    return {**found, "numbers": numbers, "series": series, "output": output, "exit": ended, "job": job}


def _encoded_view(view: SeriesView) -> dict[str, Any]:
    found = {spec.name: getattr(view, spec.name) for spec in fields(view)}
    found |= {name: _packed(found[name]) for name in _COLUMNS}
    found["superseded"] = [{name: _packed(getattr(piece, name)) for name in _PIECES} for piece in view.superseded]
    return found


def _decoded(found: dict[str, Any], run: RunDir, seen: float) -> RunSnapshot:
    told = found["numbers"]
    told |= {name: kind(*told[name]) for name, kind in _RECORDS.items() if told[name] is not None}
    told["beat"] = told["beat"] and heartbeat.from_json(told["beat"])
    series = {}
    for name, view in found["series"].items():
        once = lru_cache(_unpacked)  # columns may be equal: minimum, mean and maximum of single points are
        columns = {column: once(view[column]) for column in _COLUMNS}
        pieces = [Piece(**{part: once(one[part]) for part in _PIECES}) for one in view["superseded"]]
        series[name] = SeriesView(**{**view, **columns, "superseded": pieces})
    found |= {
        "state": State(found["state"]),
        "numbers": Numbers(**told),
        "series": series,
        "output": None if found["output"] is None else Path(found["output"]),
        "exit": found["exit"] and ExitSummary(**found["exit"]),
        "job": found["job"] and JobView(**{**found["job"], "phase": JobPhase(found["job"]["phase"])}),
        "extremes": {name: tuple(ends) for name, ends in found["extremes"].items()},
    }
    found |= {name: tuple(found[name]) for name in ("argv", "survivors")}
    found |= {name: kind(*found[name]) for name, kind in _OF_RUN.items() if found[name] is not None}
    return RunSnapshot(run=run.run, dir=run.path, seen=seen, brief=True, **found)


def _packed(values: Sequence[float]) -> str:
    return b64encode(array("d", values).tobytes()).decode()


def _unpacked(text: str) -> array[float]:
    found = array("d")
    found.frombytes(b64decode(text))
    return found
