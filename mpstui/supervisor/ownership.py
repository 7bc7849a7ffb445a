"""Whose a checkpoint is, in a folder that several runs save into.

What a file says of itself comes first. Else it is of a run one of whose attempts lived when it was written; where the
attempts of two runs did, the one that is known to have lived then.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..wire import liveness, records
from ..wire.checkpoints import owner_of
from ..wire.records import ExitRecord, LaunchRecord, LaunchTemplate, Spec
from ..wire.rundir import AttemptDir, RunDir
from ..wire.storage import UnreadableRecord
from .checkpoints import Found, candidates

EARLY_SECONDS = 2.0
"""File systems round times, the coarsest to two seconds."""
LATE_SECONDS = 60.0
"""What outlived its trainer, or wrote to a slow disk, may finish a file this long after the end."""


class Life(NamedTuple):
    """When one attempt lived, Unix seconds."""

    begin: float
    seen: float
    """Until then it certainly did."""
    end: float
    """Later it certainly did not."""


class Claim(NamedTuple):
    """What is known of one file."""

    own: bool
    other: str | None = None
    """Another run that wrote it, or may have."""


class Sifted(NamedTuple):
    """The files that a run's pattern finds, newest first."""

    own: list[Found]
    passed_over: list[tuple[Found, str | None]]
    """Files of other runs, or of nobody who is known."""
    doubtful: Mapping[Path, str]
    """Own ones that another run, which saved into the folder at the same time, may have written."""

    def remark(self, chosen: Found | None, *, best: bool = False) -> str:
        """What must be said of other runs' files where ``chosen`` is taken; empty most of the time."""
        if chosen is not None and chosen.path in self.doubtful:
            return f"run {self.doubtful[chosen.path]} saved there at the same time and may have written it"
        kind = ((item, name) for item, name in self.passed_over if item.best or not best)
        newer = next(((item, name) for item, name in kind if chosen is None or item.time > chosen.time), None)
        if newer is None:
            return ""
        whose = f"is of run {newer[1]}" if newer[1] else "was not written while this run trained"
        return f"{newer[0].path} {whose}; --from PATH takes it all the same"


def sift(run: RunDir, template: LaunchTemplate) -> Sifted:
    """The checkpoints of a run, and those of others that its pattern finds as well."""
    found, shared = candidates(template, run)
    if not shared:
        return Sifted(found, [], {})
    owners = Owners(run, template)
    claims = [(item, owners.claim(item)) for item in found]
    return Sifted(
        [item for item, claim in claims if claim.own],
        [(item, claim.other) for item, claim in claims if not claim.own],
        {item.path: claim.other for item, claim in claims if claim.own and claim.other},
    )


class Owners:
    """Tells a run's own checkpoints from those of others in the same folder."""

    def __init__(self, run: RunDir, template: LaunchTemplate) -> None:
        self._run, self._place = run, _place(template)
        self._lives = lives(run)
        self._others: dict[str, list[Life]] | None = None

    def claim(self, item: Found) -> Claim:
        """Whether a file is this run's, and who else's it may be."""
        named = owner_of(item.path) if item.path.is_file() else None
        if named is not None:
            return Claim(named == self._run.run, named if named != self._run.run else None)
        surely = _surely_covers(self._lives, item.time)
        # One that died unseen may have lived on for ever: it is no rival of one that is known to have lived then.
        covers = _surely_covers if surely else _covers
        other = next((name for name, theirs in self._neighbours().items() if covers(theirs, item.time)), None)
        return Claim(_covers(self._lives, item.time) and (other is None or surely), other)

    def _neighbours(self) -> dict[str, list[Life]]:
        """The lives of the other runs that save into the same folder, the newest run first."""
        if self._others is None:
            beside = (run for run in _beside(self._run) if _saves_into(run, self._place))
            self._others = {run.run: lives(run, now=liveness.is_held(run.run_lock)) for run in beside}
        return self._others


def lives(run: RunDir, *, now: bool = False) -> list[Life]:
    """When the attempts of a run lived, as far as its records tell; ``now``: the newest is known to."""
    found: list[Life] = []
    for number in reversed(run.attempt_numbers()):
        attempt = run.attempt(number)
        launched = _read(LaunchRecord, attempt.launch)
        if launched is not None:
            ended = _read(ExitRecord, attempt.exit)
            end = ended.ended + LATE_SECONDS if ended else found[-1].begin if found else math.inf
            known = ended or (now and not found)
            found.append(Life(launched.time, end if known else min(end, _last_sign(attempt)), end))
    return found


def _last_sign(attempt: AttemptDir) -> float:
    """When an attempt whose end is not on record last wrote anything."""
    return max((_changed(path) for path in (attempt.output, attempt.heartbeat())), default=0.0)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _covers(found: Iterable[Life], moment: float) -> bool:
    return any(life.begin - EARLY_SECONDS <= moment <= life.end for life in found)


def _surely_covers(found: Iterable[Life], moment: float) -> bool:
    return any(life.begin - EARLY_SECONDS <= moment <= life.seen for life in found)


def _beside(run: RunDir) -> Iterator[RunDir]:
    try:
        names = sorted(os.listdir(run.path.parent), reverse=True)  # noqa: PTH208 - names are all that is needed
    except OSError:
        return
    yield from (RunDir(run.path.parent / name) for name in names if name != run.run and not name.startswith("."))


def _saves_into(run: RunDir, place: str) -> bool:
    spec = _read(Spec, run.spec)
    return spec is not None and _place(spec.launch) == place


def _place(template: LaunchTemplate) -> str:
    return str(Path(template.cwd) / (template.checkpoints or ""))


def _read(kind: type[records.R], path: Path) -> records.R | None:
    try:
        return records.read(kind, path)
    except (OSError, UnreadableRecord):
        return None
