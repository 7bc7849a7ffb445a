"""Alert people: the supervisor only starts a process that delivers the alert, and never waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ..wire.records import AlertRule, ExitRecord, Spec
from ..wire.rundir import RunDir
from . import witnesses
from .family import HELPER, helpers
from .journal import complain
from .machine import Clock

POLL_SECONDS = 5.0
DEFAULT_PROMISE_SECONDS = 60.0
"""Assumed if a heartbeat promises nothing."""
OVERDUE_TIMES = 3.0
OVERDUE_MARGIN_SECONDS = 60.0
"""Silence is a stall after three times the promised interval, and at least a minute after its end."""
STOPPED_BY_ANOTHER = "paused: stopped by a signal that mpstui did not send; `mpstui continue` resumes it"
_PROGRAM = Path(__file__).resolve().parent / "notify" / "__main__.py"


class Alerts:
    """Starts the notifier in a session of its own; the outcome of an alert is in the run's ``alerts.log``."""

    def __init__(self, run: RunDir, rule: AlertRule | None) -> None:
        self._run, self._rule = run, rule
        self._started: list[subprocess.Popen[bytes]] = []

    def tell(self, event: str, attempt: int, text: str) -> None:
        """Send an alert about ``event`` (crash, stall or finish), if the user has configured alerts."""
        rule = self._rule
        if rule is None or not Path(rule.settings).exists():
            return
        words = [event, str(self._run.path), str(attempt), text, rule.settings, rule.screen_lock]
        try:
            started = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_PROGRAM), *words],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, HELPER: "1"},
            )
            self._started.append(started)
            helpers.add(started.pid)
        except (OSError, ValueError) as error:
            complain(f"no alert could be sent for the {event}: {error}")

    def reap(self) -> None:
        """Reap notifiers that are done; one that outlives this supervisor is reaped by init."""
        done = [process for process in self._started if process.poll() is not None]
        self._started = [process for process in self._started if process not in done]
        helpers.difference_update(process.pid for process in done)


def event_of(run: RunDir, spec: Spec, record: ExitRecord) -> str | None:
    """Return what an end means to somebody who is not watching: crash or finish; None if it was asked for."""
    if record.action is not None:
        return None
    if record.unknown:
        beat = witnesses.newest_beat(run, spec, record.attempt, record.started)
        return "finish" if beat is not None and beat.phase == "done" else "crash"
    return "finish" if record.code == 0 and "unfinished" not in record.evidence else "crash"


class StallWatch:
    """Notices a trainer whose promised heartbeat is long overdue while nothing is printed either."""

    def __init__(self, run: RunDir, spec: Spec, clock: Clock) -> None:
        self._run, self._spec, self._clock = run, spec, clock
        self._next = 0.0
        self._signs: tuple[object, ...] = ()
        self._since = 0.0
        self._told = False

    def poll(self, attempt: int, started: float | None) -> str | None:
        """Return the sentence to send, once per stall; checks at most every five seconds.

        Only the monotonic clock counts: neither a sleeping machine nor a clock that was set causes a stall.
        """
        now = self._clock.monotonic()
        if now < self._next:
            return None
        self._next = now + POLL_SECONDS
        beat = witnesses.newest_beat(self._run, self._spec, attempt, started)
        if beat is None or beat.phase == "done":
            return None
        signs = (attempt, beat.seq, beat.time, witnesses.size_of(self._run.attempt(attempt).output))
        if signs != self._signs:
            self._signs, self._since, self._told = signs, now, False
            return None
        promise = beat.expect_next_in or DEFAULT_PROMISE_SECONDS
        silent = now - self._since
        if self._told or silent <= max(OVERDUE_TIMES * promise, promise + OVERDUE_MARGIN_SECONDS):
            return None
        self._told = True
        return f"hung: no sign of life for {silent:.0f} s; the next heartbeat was promised within {promise:.0f} s"

    def forget(self) -> None:
        """Start over, when the trainer is paused or being stopped: its silence means nothing then."""
        self._signs = ()
