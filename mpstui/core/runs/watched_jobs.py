"""Jobs of a scheduler that mpstui did not submit: ``slurm:17`` is one job, ``slurm:`` all jobs of this user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..engines.board import board_of
from ..engines.engine import ENGINES, ask, engine_named
from ..follow import Budget
from ..model.errors import OperationError, UsageError
from ..model.jobs import JobPhase
from ..model.snapshot import RunSnapshot
from .follower import RunFollower
from .local_machine import LocalMachine
from .watched import WatchedReader

ALL_JOBS = tuple(f"{engine}:" for engine in ENGINES)
LOOK_SECONDS = 5.0
"""How often to ask where a job writes its output, until that is known: perhaps only when it starts."""


def job_named(text: str) -> tuple[str, str] | None:
    """Return scheduler and job id of ``slurm:17``; the id is empty if all are meant. None for the name of a file."""
    engine, colon, job = text.partition(":")
    return (engine, job) if colon and engine in ENGINES and "/" not in job else None


def require_job(text: str, state: Path) -> None:
    """Make sure that there is something to watch.

    Args:
        state: the home's state folder.

    Raises:
        UsageError: the scheduler does not know the job. OperationError: it does not answer, or is not installed here.
    """
    engine, job = job_named(text) or ("", "")
    scheduler, board = engine_named(engine), board_of(engine, state)
    if job and board is not None and board.view(job).phase in (JobPhase.UNKNOWN, JobPhase.GONE):
        try:
            ask(scheduler, scheduler.output_of(job))
        except OperationError as error:
            hint = f"`mpstui watch {engine}:` watches all of yours"
            raise UsageError(f"{scheduler.title} tells nothing of a job {job}: {error.sentence}", hint) from error
    elif not job:
        ask(scheduler, scheduler.listing())


def other_jobs(engine: str, ours: Iterable[RunFollower], state: Path) -> list[Path]:
    """Return this user's unfinished jobs that do not belong to ``ours``, as names to watch; none without a scheduler.

    Of the waiting tasks of an array, perhaps hundreds, the first stands for all.
    """
    board = board_of(engine, state) if engine else None
    seen = [one.snapshot for one in ours] if board is not None else []
    if None in seen:
        return []  # until all runs have been read, it is unknown which jobs are ours
    known = {one.job.id for one in seen if one is not None and one.job is not None}
    jobs = [job for job in (board.all() if board is not None else ()) if job.id not in known and not job.phase.is_over]
    first = {job.array: job.id for job in reversed(jobs) if job.phase.waits}
    return [Path(f"{engine}:{job.id}") for job in jobs if first.get(job.array, job.id) == job.id or not job.phase.waits]


class WatchedJob(WatchedReader):
    """Follows a job's output, and what its scheduler says about it."""

    def __init__(self, engine: str, job: str, machine: LocalMachine, columns: int | None, state: Path) -> None:
        super().__init__(Path(f"/{engine} job {job}"), machine, columns)
        self._engine, self._job, self._state = engine_named(engine), job, state
        self._look_at = machine.monotonic()
        self._found = False

    def _find_files(self) -> None:
        now, board = self.machine.monotonic(), board_of(self._engine.name, self._state)
        # For an array task that has not begun, the scheduler would name the output of the whole array.
        waits = board is not None and board.view(self._job).phase.waits
        if not self._found and not waits and now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            try:
                told = self._engine.output_path(ask(self._engine, self._engine.output_of(self._job)))
            except OperationError:
                told = ""  # it will be asked again; the scheduler's silence is shown with the job
            if told:
                self.path, self._found, self._find_at = Path(told), True, None
        super()._find_files()

    def _sees_writer(self) -> bool | None:
        """True if the scheduler says that the job runs, on whatever node."""
        board = board_of(self._engine.name, self._state)
        return True if board is not None and board.view(self._job).phase is JobPhase.RUNNING else super()._sees_writer()

    def _refreshed(self, full: bool, budget: Budget) -> RunSnapshot:
        found, board = super()._refreshed(full, budget), board_of(self._engine.name, self._state)
        if board is None:
            return found
        job = board.view(self._job)
        beside = sum(one.array == job.array and one.phase.waits for one in board.all()) - 1 if job.phase.waits else 0
        more = f", as {beside} more of its array" if beside > 0 else ""
        reason = job.sentence() + more + job.silence() + ("" if found.updated is None else f"; {found.reason}")
        name = f"{job.name} ({self._engine.name} {self._job})" if job.name else found.name
        return replace(found, run=f"{self._engine.name}:{self._job}", name=name, job=job, reason=reason)
