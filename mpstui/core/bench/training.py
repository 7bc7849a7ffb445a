"""A training that runs only to be looked at: its own process group, a run directory that nobody keeps."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil  # type: ignore[import-untyped]

from ...wire import storage
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord
from ..follow.tail import LineTail

_END_SECONDS = 10.0
_LONGEST_FAILURE = 300


class Training:
    """One process that trains, and what it has reported so far. Leaving the context ends it and all it started."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        self.points: list[dict[str, Any]] = []
        """Reported training steps, oldest first."""
        self.notes: list[dict[str, Any]] = []
        """Events in which it says that something is not as asked."""
        self.memory_bytes: int | None = None
        """The most it held: on the device where that has memory of its own, else of the process."""
        self.precision: str | None = None
        """What it really trains in."""
        self._run = RunDir(folder)
        self._run.attempt(1).path.mkdir(parents=True)
        self._run.requests.mkdir()
        self._metrics, self._events = LineTail(self._run.metrics), LineTail(self._run.events)
        self._errors = folder / "errors.log"
        own = {"MPSTUI_RUN_ID": "bench", "MPSTUI_RUN_DIR": str(folder), "MPSTUI_ATTEMPT": "1"}
        with self._errors.open("wb") as errors, (folder / "output.log").open("wb") as output:
            self._process = subprocess.Popen(
                words,
                env={**environ, **own},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def look(self) -> int | None:
        """Read what is new; the exit code once it has ended."""
        code = self._process.poll()
        self.points += [record for record in _records(self._metrics) if "loss" in record and "step" in record]
        self.notes += [record for record in _records(self._events) if record.get("event") == "note"]
        self._read_beat()
        return code

    def failure(self) -> str:
        """Its last words, or how it ended."""
        lines = self._errors.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line.strip() for line in lines if line.strip()]
        if said:
            return said[-1].removeprefix("trainer: ")[:_LONGEST_FAILURE]
        code = self._process.returncode
        return f"ended by signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def end(self) -> None:
        """Kill it with everything it started, workers and compilers in sessions of their own too."""
        if self._process.poll() is not None:
            return
        try:
            family = psutil.Process(self._process.pid).children(recursive=True)
        except psutil.Error:
            family = []
        with contextlib.suppress(ProcessLookupError, PermissionError):  # gone meanwhile; macOS says so by EPERM
            os.killpg(self._process.pid, signal.SIGKILL)
        for member in family:
            try:
                member.kill()
            except psutil.Error:
                continue
        self._process.wait(_END_SECONDS)

    def _read_beat(self) -> None:
        try:
            beat = storage.read_json(self._run.attempt(1).heartbeat()) or {}
        except (UnreadableRecord, OSError):
            return
        memory, device = beat.get("memory") or {}, beat.get("device") or {}
        self.precision = device.get("precision") or self.precision
        held = memory.get("driver") or memory.get("footprint") or memory.get("rss")
        self.memory_bytes = max(filter(None, (held, self.memory_bytes)), default=None)


def _records(tail: LineTail) -> list[dict[str, Any]]:
    """Complete lines that were added, as objects; a damaged one is none."""
    found = []
    for line in tail.read().data.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found
