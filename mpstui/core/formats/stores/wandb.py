"""Weights & Biases: folders ``wandb/run-*`` and ``wandb/offline-run-*``, each with the transaction log of one run.

A resumed run has a folder for each launch, with the same id at the end of the name.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ....wire import storage
from ...follow import last_lines
from ...model.snapshot import State
from ..media import Media
from ..points import Point, Priority
from ..told import RunTold
from . import Store, StoredRun
from ._curves import Curves

if TYPE_CHECKING:
    from ..files import MetricFile

_ENDING = ".wandb"
_NAMED_BY_TIME = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-.{1,255}")
_INTERRUPTED = 255
_END_BYTES = 1 << 12


class WandbRun(StoredRun):
    """One transaction log with the few files beside it, and the logs of later launches that resumed it."""

    store = "W&B"
    records_ends = True

    def __init__(self, log: Path, *, alone: bool) -> None:
        """``alone``: the log is the only one in its folder, which then represents the run."""
        super().__init__(log.parent if alone else log, log.stem.removeprefix("run-"))
        self._log = log
        self._argv: tuple[str, ...] | None = None
        self._parts: tuple[WandbRun, ...] = (self,)
        self._joins = f"{self.path.parent}/{log.stem}" if _NAMED_BY_TIME.fullmatch(self.path.name) else ""

    @property
    def joins(self) -> str:
        return self._joins

    @property
    def parts(self) -> Sequence[WandbRun]:
        return self._parts

    def join(self, other: StoredRun) -> None:
        if isinstance(other, WandbRun):
            known = {one.key: one for one in (*other.parts, *self._parts)}
            self._parts = tuple(sorted(known.values(), key=lambda run: run.begun))

    @property
    def begun(self) -> str:
        """The time of its launch, as in the name of its folder."""
        return self.path.name.rpartition("run-")[2]

    def others(self) -> Sequence[WandbRun]:
        found, above = [], self.path.parent
        if not self.joins:
            return ()
        with contextlib.suppress(OSError), os.scandir(above) as entries:
            for entry in entries:
                log = Path(above, entry.name, self._log.name)
                is_like_it = entry.name.endswith(self._log.stem.removeprefix("run")) and entry.name != self.path.name
                if is_like_it and entry.is_dir(follow_symlinks=False) and log.is_file():
                    found.append(WandbRun(log, alone=True))
        return found

    @property
    def output(self) -> Path | None:
        return self.outputs[-1]

    @property
    def outputs(self) -> Sequence[Path | None]:
        found = [one._log.parent / "files" / "output.log" for one in self._parts]
        return [one if one.is_file() else None for one in found]

    def files(self) -> Sequence[Path]:
        return [one._log for one in self._parts]

    def open(self) -> MetricFile | None:
        from ..files.wandb import WandbFile

        return WandbFile(self._log) if len(self._parts) == 1 else WandbCurves(self.files())

    def told(self, reader: MetricFile | None) -> RunTold:
        """Return what the log says; the command of an older client is read from a file beside the log."""
        from ..files.wandb import WandbFile

        if self._parts[-1] is not self:
            return self._parts[-1].told(reader)
        told = reader.told if isinstance(reader, (WandbFile, WandbCurves)) else RunTold()
        if not told.argv:
            if self._argv is None:
                self._argv = self._command()
            told = told._replace(argv=self._argv)
        if told.exit_code is not None:
            told = told._replace(says=f"exit code {told.exit_code}")
        if told.exit_code == _INTERRUPTED and self._was_interrupted():
            told = told._replace(state=State.KILLED, says=f"{told.says} after Ctrl-C")
        return told

    def _was_interrupted(self) -> bool:
        """True if its output ends with the traceback of Ctrl-C: a program may use that exit code on its own."""
        found = self.output
        return found is not None and last_lines(found, _END_BYTES).rstrip().endswith(b"KeyboardInterrupt")

    def _command(self) -> tuple[str, ...]:
        try:
            found = storage.read_json(self._log.parent / "files" / "wandb-metadata.json") or {}
        except (OSError, storage.UnreadableRecord):
            return ()
        program, words = found.get("program"), found.get("args")
        if not isinstance(program, str) or not isinstance(words, list):
            return ()
        return (program, *(word for word in words if isinstance(word, str)))


class WandbCurves(Curves):
    """Reads the logs of a resumed run, one after the other."""

    name: ClassVar[str] = "wandb"

    def __init__(self, logs: Sequence[Path]) -> None:
        from ..files.wandb import WandbFile

        super().__init__(logs[0])
        self.media = Media()
        self._files = [WandbFile(log, self.rows, self.media) for log in logs]
        self._heard = [math.nan] * len(logs)
        """The time of each log's newest value, in Unix seconds."""

    @property
    def told(self) -> RunTold:
        """What the logs say together: the start is from the first, the settings from all, the rest from the last."""
        first, last = self._files[0].told, self._files[-1].told
        config = {name: value for file in self._files for name, value in file.told.config.items()}
        return last._replace(
            config=config,
            started=first.started,
            resumed=last.started,
            idle=self._idle(),
            runtime=None,
            name=last.name or first.name,
        )

    def _idle(self) -> float:
        """Return the seconds between each log's newest value and the start of the next, as far as known."""
        starts = [file.told.started or math.nan for file in self._files[1:]]
        gaps = [start - heard for heard, start in zip(self._heard, starts, strict=False)]
        return sum(gap for gap in gaps if gap > 0)

    def _hear(self, number: int, points: Sequence[Point]) -> None:
        told = (point.newest.time for point in points)
        known = [time for time in (*told, self._heard[number]) if time is not None and math.isfinite(time)]
        self._heard[number] = max(known, default=math.nan)

    def take(self, limit: int) -> Sequence[Point]:
        found: list[Point] = []
        for number, file in enumerate(self._files):
            self.rows.attempt, self.media.attempt = number, number + 1
            before = file.position
            new = file.take(limit)
            self._hear(number, new)
            found += new
            limit -= file.position - before
            if limit <= 0:
                break
        self.position = sum(file.position for file in self._files)
        damaged = sum(file.damaged for file in self._files)
        self.failure = f"{damaged} damaged block{'s' * (damaged > 1)} passed over" if damaged else None
        return found

    def glance(self) -> Sequence[Point]:
        """Read both ends of long logs, and short ones in full: facts of the run, its newest values, how it ended."""
        from ..files.wandb import WandbFile

        ends = [file.glance() for file in self._files]
        if not any(ends):
            return ()
        for number, file in enumerate(self._files):
            if not ends[number]:
                short = WandbFile(file.path)
                ends[number], file.told = short.take(file.path.stat().st_size), short.told
            self._hear(number, ends[number])
        return next(points for points in reversed(ends) if points)


class WandbStore:
    """Recognised by the extension of the log."""

    priority: ClassVar[Priority] = Priority.EXACT
    alone: ClassVar[bool] = True
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        logs = [name for name in names if name.endswith(_ENDING)]
        return [WandbRun(folder / name, alone=len(logs) == 1) for name in sorted(logs)] or None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return [WandbRun(file, alone=False)] if file.name.endswith(_ENDING) else []


STORE: Store = WandbStore()
