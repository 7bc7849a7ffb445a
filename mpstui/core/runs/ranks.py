"""The other ranks of a distributed training: one that has fallen silent holds up all, while rank 0 may still beat."""

from __future__ import annotations

from typing import NamedTuple

from ...wire.rundir import AttemptDir
from .beats import BeatFile
from .health import DEFAULT_PROMISE_SECONDS
from .witness import Machine

MOST_RANKS = 64
LOOK_SECONDS = 2.0


class LateRank(NamedTuple):
    """A rank above 0 that is later than it promised."""

    rank: int
    silent_seconds: float
    promised_seconds: float


class RankBeats:
    """Follows ``heartbeat.rank<r>.json`` of one attempt. Most trainings write none."""

    def __init__(self, folder: AttemptDir, machine: Machine) -> None:
        self._folder = folder
        self._machine = machine
        self._files: dict[int, BeatFile] = {}
        self._looked = -LOOK_SECONDS

    def latest(self) -> LateRank | None:
        """The rank that is latest; None when every one keeps its promise."""
        now = self._machine.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            for rank, path in sorted(self._folder.rank_heartbeats().items())[:MOST_RANKS]:
                self._files.setdefault(rank, BeatFile(path, self._machine))
        late = (self._lateness(rank, file) for rank, file in self._files.items())
        return max((one for one in late if one), key=lambda one: one.silent_seconds, default=None)

    def _lateness(self, rank: int, file: BeatFile) -> LateRank | None:
        file.read()
        silence, beat = file.silence(), file.beat
        if silence is None or beat is None or beat.phase == "done":
            return None
        promise = beat.expect_next_in or DEFAULT_PROMISE_SECONDS
        return LateRank(rank, silence.awake, promise) if silence.awake > promise else None
