"""The heartbeats of one run: the newest attempt's, the one before it, and the one another program's file holds."""

from __future__ import annotations

from pathlib import Path

from ...wire.heartbeat import Heartbeat
from ...wire.rundir import AttemptDir, RunDir
from .beats import BeatFile, Silence
from .pace import Pace
from .ranks import LateRank, RankBeats
from .witness import Machine

OLDER_ATTEMPTS = 3


class Beating:
    """Follows a run's heartbeat from attempt to attempt."""

    def __init__(self, run: RunDir, machine: Machine, pace: Pace) -> None:
        self._run = run
        self._machine = machine
        self._pace = pace
        self._own: BeatFile | None = None
        self._older: BeatFile | None = None
        self._watched: BeatFile | None = None
        self._ranks: RankBeats | None = None
        self._launched = 0.0

    def begin_attempt(self, number: int, folder: AttemptDir) -> None:
        """Turn to the heartbeat of this attempt."""
        self._older = self._own if self._own and self._own.beat else self._last_before(number)
        self._own = BeatFile(folder.heartbeat(), self._machine)
        self._ranks = RankBeats(folder, self._machine)

    def watch(self, path: Path | None, launched: float) -> None:
        """Follow another program's file too; what it holds from before ``launched`` is of an earlier training."""
        self._launched = launched
        if path is not None and (self._watched is None or self._watched.path != path):
            self._watched = BeatFile(path, self._machine)
        if self._watched is not None:
            self._take(self._watched)

    def read(self) -> None:
        """Look at the attempt's heartbeat."""
        if self._own is not None:
            self._take(self._own)

    @property
    def phase(self) -> str | None:
        """The phase in the attempt's newest heartbeat of our schema; None when it wrote none."""
        beat = self._own.beat if self._own and self._own.ours else None
        return beat.phase if beat else None

    @property
    def file(self) -> BeatFile | None:
        """The file that is relied upon, once a beat of this attempt was read from it."""
        if self._own is not None and self._own.beat is not None:
            return self._own
        watched = self._watched
        return watched if watched and watched.beat and watched.beat.time >= self._launched else None

    @property
    def beat(self) -> Heartbeat | None:
        """This attempt's newest heartbeat."""
        return self.file.beat if self.file else None

    @property
    def older(self) -> Heartbeat | None:
        """Where the run stood before this attempt."""
        return self._older.beat if self._older else None

    @property
    def silence(self) -> Silence | None:
        """How old the newest heartbeat is."""
        return self.file.silence() if self.file else None

    @property
    def late_rank(self) -> LateRank | None:
        """The rank above 0 that is later than it promised; None in a training of one process."""
        beat = self.beat
        alone = beat is None or beat.world_size is None or beat.world_size < 2
        return None if alone or self._ranks is None else self._ranks.latest()

    def _take(self, file: BeatFile) -> None:
        slept = file.read()
        if slept is not None and file.beat is not None and file.beat.step is not None:
            self._pace.note_beat(file.beat.time, float(file.beat.step), slept)

    def _last_before(self, attempt: int) -> BeatFile | None:
        for number in range(attempt - 1, max(0, attempt - 1 - OLDER_ATTEMPTS), -1):
            file = BeatFile(self._run.attempt(number).heartbeat(), self._machine)
            file.read()
            if file.beat is not None:
                return file
        return None
