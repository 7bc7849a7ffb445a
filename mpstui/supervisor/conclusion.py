"""The exit record of an attempt, put together from everything that was seen."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from ..wire.records import ExitRecord, Request, Spec
from ..wire.rundir import RunDir
from . import causes, progress
from .exits import Ending
from .journal import complain_of


def conclude(
    run: RunDir,
    spec: Spec,
    attempt: int,
    ending: Ending,
    *,
    now: float,
    started: float | None,
    asked: Request | None,
    survivors: Sequence[int],
    evidence: dict[str, str],
) -> ExitRecord:
    """Build the record. A cause is named for failures alone: whoever asked for an end got what they asked for."""
    try:
        cause, notes = _explained(run, spec, attempt, ending, asked, started)
    except Exception as error:  # noqa: BLE001  how it ended is known now and never again; why, the log still tells
        complain_of(error)
        cause, notes = None, {}
    return ExitRecord(
        attempt=attempt,
        ended=now,
        code=ending.code,
        signal=ending.signal,
        cause=cause,
        requested_by=asked.by if asked else None,
        action=asked.action if asked else None,
        started=started,
        rusage=dict(ending.rusage),
        survivors=sorted(survivors),
        unknown=ending.unknown,
        evidence={**evidence, **notes},
    )


def _explained(
    run: RunDir, spec: Spec, attempt: int, ending: Ending, asked: Request | None, started: float | None
) -> tuple[str | None, dict[str, str]]:
    """The cause, if a rule names one, and all that was noticed beside it."""
    cause, notes = None, {}
    if asked is None and ending.code != 0:
        found = causes.find_cause(spec.causes, ending, causes.read_tail(run.attempt(attempt).output))
        if found and not (ending.unknown and _says_done(run, spec, attempt, started)):
            cause, notes["cause"] = found
    return cause, notes | _unasked(run, spec, attempt, ending, asked, started)


def _unasked(
    run: RunDir, spec: Spec, attempt: int, ending: Ending, asked: Request | None, started: float | None
) -> dict[str, str]:
    """What the record cannot say in its fields: a signal of somebody else, an end before the end."""
    notes = {}
    if asked is None and ending.signal is not None:
        notes["sender"] = f"{_name(ending.signal)} was not sent by mpstui"
    if ending.core:
        notes["core"] = "a core file was written"
    beat = progress.newest_beat(run, spec, attempt, started)
    if beat is not None and ending.unknown:
        notes["heartbeat"] = f"the last heartbeat says phase {beat.phase}, step {beat.step}"
    if beat is not None and beat.phase is not None and beat.phase != "done" and ending.code == 0 and asked is None:
        notes["unfinished"] = (
            f"exit code 0, but the last heartbeat says phase {beat.phase}, step {beat.step}: "
            "it was asked to end from outside, or left early"
        )
    return notes


def _says_done(run: RunDir, spec: Spec, attempt: int, started: float | None) -> bool:
    beat = progress.newest_beat(run, spec, attempt, started)
    return beat is not None and beat.phase == "done"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def sentence(record: ExitRecord) -> str:
    """An attempt's end in a few words, for events and answers."""
    if record.spawn_error:
        return f"could not be started: {record.spawn_error}"
    if record.unknown:
        return "ended; nobody saw how"
    how = f"ended by {_name(record.signal)}" if record.signal is not None else f"exit code {record.code}"
    if record.action:
        return f"{how}, after {record.requested_by or 'somebody'} asked for a {record.action}"
    return how + (f" ({record.cause})" if record.cause else "")
