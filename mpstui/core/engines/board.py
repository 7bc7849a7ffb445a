"""What a scheduler says about this user's jobs: one query for all of them, every few seconds, in the background.

The last answer is kept in a file shared by all screens and commands of this home: even ten commands a second cause only
one query every few seconds, and what was known about a job outlives the scheduler's own memory of it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.jobs import plain_environment
from ...wire.storage import UnreadableRecord
from ..model.errors import UsageError
from ..model.jobs import JobPhase, JobView
from .engine import Engine, engine_named

ASK_EVERY_SECONDS = 4.0
EASY_TIMES, LONGEST_PAUSE_SECONDS = 10.0, 30.0
"""A slow scheduler is queried again only after a multiple of the time it took (capped): it serves others, too."""
FIRST_ANSWER_SECONDS = 3.0
"""How long a process waits for its first answer, or twice the time of the last one if longer; later it never waits."""
GIVE_UP_SECONDS = 20.0
"""squeue itself waits ten seconds or more for an unreachable controller."""
LATE_SECONDS = 10.0
"""A query is reported as unanswered if it was sent this long after the last answer."""
JUST_SUBMITTED_SECONDS = 3.0
MOST_KEPT = 2000
MOST_ASKED_FOR, ASKED_FOR_TIMES = 100, 3
"""Limits for the accounting: jobs per query, and queries about a job that it does not know (yet)."""


class JobBoard:
    """The jobs of one scheduler, as last reported. Safe to use from several threads."""

    def __init__(self, engine: Engine, path: Path, clock: Callable[[], float] = time.time) -> None:
        """``path``: the file shared by all processes of this home."""
        self.engine = engine
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._views: dict[str, JobView] = {}
        self._listed: set[str] = set()
        """Job ids in the newest answer."""
        self._lost: dict[str, int] = {}
        """Number of accounting queries so far for each job that is missing from the newest answer."""
        self._asked = self._answered = self._took = 0.0
        """Time of the last query and the last answer, Unix seconds, and how long that answer took."""
        self._silent_since: float | None = None
        self._why = ""
        self._question: _Question | None = None
        self._history: _Question | None = None
        self._stamp: object = None
        self._waited = False

    def view(self, job: str, submitted: float = 0.0) -> JobView:
        """Return a job as last reported; queries the scheduler in the background if that is some seconds old.

        Args:
            submitted: Unix seconds; an earlier answer says nothing about the job.
        """
        with self._lock:
            self._refresh()
            deadline = time.monotonic() + (0.0 if self._waited else self._patience)
            while (found := self._view(job, submitted)).silent_since is None and time.monotonic() < deadline:
                if self._question is None and self._history is None:
                    break
                time.sleep(0.01)
                self._take_answer()  # not _refresh(): after a slow answer, the next query is due at once
            self._waited = True
            return found

    def all(self) -> tuple[JobView, ...]:
        """Return every job in the newest answer."""
        self.view("")
        with self._lock:
            return tuple(self._view(job) for job in sorted(self._listed, key=_by_number))

    def hurry(self) -> None:
        """Make the next view, even in another process, query the scheduler again: something was just changed."""
        with self._lock:
            self._read()
            self._asked = min(self._asked, self._clock() - LONGEST_PAUSE_SECONDS)
            self._waited = False
            self._write()

    def _view(self, job: str, submitted: float = 0.0) -> JobView:
        found = self._views.get(job) or JobView(engine=self.engine.name, title=self.engine.title, id=job)
        since, question = self._silent_since, self._question
        if since is None and question is not None and question.asked - self._answered > LATE_SECONDS:
            # A command looks only once, and exits before the scheduler's own timeout.
            since = (self._answered or question.asked) if question.age >= self._patience else None
        if since is not None:
            return found._replace(silent_since=since, why_silent=self._why)
        heard = self._answered > submitted + JUST_SUBMITTED_SECONDS
        if job and heard and job not in self._listed and not found.phase.is_over:
            if job not in self._lost:
                self._lost[job] = 0
                self._ask_history()
            if self._history is not None and self._lost[job] == 1:
                return found  # how it ended is being queried: do not guess until that is known
            return found._replace(phase=JobPhase.GONE, state=None, reason=None)
        return found

    def _refresh(self) -> None:
        self._take_answer()
        now = self._clock()
        if self._question is None and self._is_due(now):
            self._read()
            if self._is_due(now):
                self._asked = now
                self._write()  # before the answer arrives, so that other processes need not query too
                self._question = _Question(self.engine.listing(), now)
                self._take_answer()

    @property
    def _patience(self) -> float:
        """How long an answer may take, judging by the last one, in seconds."""
        return min(max(FIRST_ANSWER_SECONDS, 2 * self._took), GIVE_UP_SECONDS)

    def _is_due(self, now: float) -> bool:
        pause = max(ASK_EVERY_SECONDS, min(self._took * EASY_TIMES, LONGEST_PAUSE_SECONDS))
        return not 0 <= now - self._asked < pause

    def _take_answer(self) -> None:
        self._take_history()
        question = self._question
        if question is None or not question.is_over():
            return
        self._question, self._took = None, question.took
        views: dict[str, JobView] = {}
        if not question.error:
            try:
                views = {view.id: view for view in self.engine.listed(question.output)}
            except ValueError as error:
                question.error = f"its answer cannot be read: {error}"
        if question.error:
            self._silent_since = self._silent_since or self._answered or question.asked
            self._why = question.error
        else:
            self._listed = set(views)
            self._views |= views
            self._answered, self._silent_since, self._why = self._clock(), None, ""
            lost = (job for job, view in self._views.items() if job not in views and not view.phase.is_over)
            self._lost = dict.fromkeys(lost, 0) | {job: n for job, n in self._lost.items() if job not in views}
            self._ask_history()
        self._write()

    def _ask_history(self) -> None:
        """Query the accounting, if there is one, about jobs that disappeared from the list."""
        lost = [job for job, times in self._lost.items() if times < ASKED_FOR_TIMES][:MOST_ASKED_FOR]
        if lost and self._history is None and (command := self.engine.history(lost)):
            self._lost |= {job: self._lost[job] + 1 for job in lost}
            self._history = _Question(command, self._clock())

    def _take_history(self) -> None:
        if self._history is not None and self._history.is_over():
            found = [] if self._history.error else self.engine.remembered(self._history.output)
            self._views |= {view.id: view for view in found if view.id not in self._listed}
            self._lost = {job: times for job, times in self._lost.items() if not self._knows_the_end_of(job)}
            self._history = None
            self._write()

    def _knows_the_end_of(self, job: str) -> bool:
        return job in self._views and self._views[job].phase.is_over

    def _read(self) -> None:
        """Read what other processes have received since."""
        stamp = storage.stamp(self._path)
        if stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        with contextlib.suppress(OSError, UnreadableRecord, TypeError, ValueError, KeyError):
            found = storage.read_json(self._path) or {}
            views = {one["id"]: _read_view(one) for one in found["jobs"]}
            self._asked = max(self._asked, float(found["asked"]))
            if float(found["answered"]) >= self._answered:
                self._views = {**self._views, **views}
                self._listed, self._lost = set(found["listed"]), {**self._lost, **found.get("lost", {})}
                self._answered, self._took = float(found["answered"]), float(found.get("took", 0.0))
                self._silent_since, self._why = found["silent_since"], str(found["why"])

    def _write(self) -> None:
        kept = dict(sorted(self._views.items(), key=lambda item: item[1].starts or 0.0)[-MOST_KEPT:])
        record: dict[str, Any] = {
            "asked": self._asked,
            "answered": self._answered,
            "took": self._took,
            "silent_since": self._silent_since,
            "why": self._why,
            "listed": sorted(self._listed),
            "lost": dict(list(self._lost.items())[-MOST_KEPT:]),
            "jobs": [{name: getattr(view, name) for name in _KEPT} for view in kept.values()],
        }
        with contextlib.suppress(OSError):  # a full or read-only disk: each process queries for itself
            storage.make_private_folder(self._path.parent)
            storage.write_json(self._path, record, sync=False)
            self._stamp = storage.stamp(self._path)


def _by_number(job: str) -> tuple[int, str]:
    return len(job), job


_KEPT = ("id", "phase", "state", "reason", "nodes", "partition", "user", "name", "starts", "ends", "engine", "title")


def _read_view(found: Mapping[str, Any]) -> JobView:
    fields: dict[str, Any] = {name: found.get(name) for name in _KEPT}
    return JobView(**{**fields, "phase": JobPhase(found["phase"])})


class _Question:
    """A scheduler's command, running in the background."""

    def __init__(self, command: Collection[str], asked: float) -> None:
        self.asked, self.took = asked, 0.0
        self.output, self.error = "", ""
        self._begun = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        self._said = bytearray()
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=plain_environment(),
            )
            if self._process.stdout is not None:
                os.set_blocking(self._process.stdout.fileno(), False)
        except OSError as error:
            self.error = f"{next(iter(command))}: {error.strerror}"

    @property
    def age(self) -> float:
        """Seconds since the command was started."""
        return time.monotonic() - self._begun

    def is_over(self) -> bool:
        """True once there is an answer, or a reason why there is none; never blocks for long."""
        process = self._process
        if process is None:
            return True
        if process.stdout is not None:
            with contextlib.suppress(BlockingIOError):
                while data := os.read(process.stdout.fileno(), 1 << 16):
                    self._said += data
        if process.poll() is None:
            if self.age < GIVE_UP_SECONDS:
                return False
            process.kill()
            process.wait()
            self.error = f"no answer within {GIVE_UP_SECONDS:g} s"
        elif process.returncode != 0:
            said = process.stderr.read(4096).decode("utf-8", "replace") if process.stderr is not None else ""
            self.error = " ".join(said.split())[:200] or f"exit code {process.returncode}"
        if process.stdout is not None and process.stderr is not None:
            with contextlib.suppress(OSError):
                self._said += process.stdout.read() or b""
            process.stdout.close()
            process.stderr.close()
        self.output, self._process = self._said.decode("utf-8", "replace"), None
        self.took = self.age
        return True


@lru_cache(maxsize=16)
def board_of(engine: str, state: Path) -> JobBoard | None:
    """Return the board of a scheduler for the home with this state folder; None if there is no such scheduler."""
    try:
        return JobBoard(engine_named(engine), state / "cache" / f"jobs-{engine}.json")
    except UsageError:
        return None
