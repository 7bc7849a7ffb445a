"""Which run a checkpoint belongs to when several save into one folder; restarts and lists share this rule.

A mark in the file comes first, then the run that reported saving it. Otherwise the file belongs to a run with an
attempt alive when it was written; if there are two, to the one that was certainly alive then.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple, Optional

from . import liveness, storage
from .checkpoints import owner_of, tellers
from .records import ExitRecord, LaunchRecord, LaunchTemplate, Spec
from .rundir import RunDir

EARLY_SECONDS = 2.0
"""File systems round times, the coarsest to two seconds."""
LATE_SECONDS = 60.0
"""A process that outlives its trainer, or writes to a slow disk, may finish a file this long after the end."""


class Life(NamedTuple):
    """When one attempt lived, Unix seconds."""

    begin: float
    seen: float
    """Certainly alive until then."""
    end: float
    """Certainly dead after that."""


class Claim(NamedTuple):
    """What is known about the owner of one file."""

    own: bool
    other: Optional[str] = None
    """Another run that wrote it, or may have."""


class Owners:
    """Tells a run's own checkpoints from those of others in the same folder.

    Args:
        since: Unix seconds; no file asked about is older, so runs that ended before need not be looked at.
    """

    def __init__(self, run: RunDir, template: LaunchTemplate, *, since: float = 0.0) -> None:
        self._run, self._place, self._since = run, _place(template), since
        self._lives = lives(run, now=liveness.is_held(run.run_lock))
        self._others: dict[str, list[Life]] | None = None
        self._tellers: dict[str, tuple[float, str]] | None = None

    def claim(self, path: Path, time: float) -> Claim:
        """Return whether a file written at ``time`` (Unix seconds) is this run's, and who else may own it."""
        named = owner_of(path) or self._teller(path, time)
        if named is not None:
            return Claim(named == self._run.run, named if named != self._run.run else None)
        moment = time + EARLY_SECONDS
        surely = any(life.begin <= moment and time <= life.seen for life in self._lives)
        perhaps = any(life.begin <= moment and time <= life.end for life in self._lives)

        def rivals(theirs: Life) -> bool:
            # The end of a run that died unnoticed is unknown: it is no rival to one known to have been alive.
            return theirs.begin <= moment and time <= (theirs.seen if surely else theirs.end)

        other = next((name for name, found in self._neighbours().items() if any(map(rivals, found))), None)
        return Claim(perhaps and (other is None or surely), other)

    def _teller(self, path: Path, time: float) -> Optional[str]:
        """Return the run that reported saving this file, None if no report is as new as the file: an older one is about
        a previous file of that name, and a run killed while saving has not reported yet."""
        if self._tellers is None:
            self._tellers = tellers(self._run.path.parent)
        told_at, run = self._tellers.get(str(path), (0.0, None))
        return run if time <= told_at + EARLY_SECONDS else None

    def _neighbours(self) -> dict[str, list[Life]]:
        """The lives of the other runs that save into the same folder, the newest run first."""
        if self._others is None:
            self._others = {}
            try:
                names = sorted(os.listdir(self._run.path.parent), reverse=True)  # noqa: PTH208 - names are enough
            except OSError:
                names = []
            for run in (RunDir(self._run.path.parent / name) for name in names if not name.startswith(".")):
                if run == self._run or not self._may_have_lived(run):
                    continue
                spec = storage.read_or_none(Spec, run.spec)
                if spec is not None and _place(spec.launch) == self._place:
                    self._others[run.run] = lives(run, now=liveness.is_held(run.run_lock))
        return self._others

    def _may_have_lived(self, run: RunDir) -> bool:
        """False if a run ended before the oldest file was written: its status is written at its end."""
        told = storage.stat_of(run.status)
        ended_before = told is not None and told.st_mtime + LATE_SECONDS < self._since
        return not ended_before or liveness.is_held(run.run_lock)


def lives(run: RunDir, *, now: bool = False) -> list[Life]:
    """Return when the attempts of a run were alive, by its records; ``now``: the newest is known to be alive."""
    found: list[Life] = []
    for number in reversed(run.attempt_numbers()):
        attempt = run.attempt(number)
        launched = storage.read_or_none(LaunchRecord, attempt.launch)
        if launched is not None and launched.rehearsal is None:
            ended = storage.read_or_none(ExitRecord, attempt.exit)
            end = ended.ended + LATE_SECONDS if ended else found[-1].begin if found else math.inf
            known = ended or (now and not found)
            signs = filter(None, map(storage.stat_of, (attempt.output, attempt.heartbeat())))
            last_sign = max((info.st_mtime for info in signs), default=0.0)
            found.append(Life(launched.time, end if known else min(end, last_sign), end))
    return found


def _place(template: LaunchTemplate) -> str:
    return str(Path(template.cwd) / (template.checkpoints or ""))
