"""How an attempt ended and why, pieced together from everything that was seen, and whether to restart it.

Automatic restarts are off by default, and never loop.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..wire.endings import signal_name, told_cause
from ..wire.jobs import CANCEL
from ..wire.records import CauseRule, ExitRecord, Request, RestartRule, Spec
from ..wire.rundir import RunDir
from .attempt import Ending
from .journal import complain_of
from .witnesses import newest_beat, read_tail

LONGEST_LINE = 4096
"""Characters of a line to search: a pattern must not spend minutes on a progress bar of a megabyte."""


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
    """Build the exit record. Only failures have a cause: an end that was asked for needs none."""
    cause: str | None = None
    notes: dict[str, str] = {}
    try:
        cause, notes = _explained(run, spec, attempt, ending, asked, started)
    except Exception as error:  # noqa: BLE001  how it ended is known only now; why, the log will still tell
        complain_of(error)
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
    """Return the cause, if a rule names one, and notes the record has no field for: a foreign signal, an early end."""
    cause: str | None = None
    notes: dict[str, str] = {}
    beat = newest_beat(run, spec, attempt, started)
    phase = beat.phase if beat is not None else None
    if asked is None and ending.code != 0 and not (ending.unknown and phase == "done"):
        found = find_cause(spec.causes, ending, read_tail(run.attempt(attempt).output))
        if found:
            cause, notes["cause"] = found
    if asked is None and ending.signal is not None:
        notes["sender"] = f"{signal_name(ending.signal)} was not sent by mpstui"
    if ending.core:
        notes["core"] = "a core file was written"
    if beat is not None and ending.unknown:
        notes["heartbeat"] = f"the last heartbeat says phase {phase}, step {beat.step}"
    if beat is not None and phase not in (None, "done") and ending.code == 0 and asked is None:
        notes["unfinished"] = (
            f"exit code 0, but the last heartbeat says phase {phase}, step {beat.step}: "
            "something else asked it to end, or it left early"
        )
    return cause, notes


def sentence(record: ExitRecord) -> str:
    """Say in a few words how an attempt ended, for events and answers."""
    if record.spawn_error:
        return f"could not be started: {record.spawn_error}"
    if record.unknown:
        return "ended, exit code unknown"
    how = f"ended by {signal_name(record.signal)}" if record.signal is not None else f"exit code {record.code}"
    if record.action == CANCEL:
        return f"{how}, after its job was cancelled through {record.requested_by}"
    if record.action:
        return f"{how}, after {record.requested_by or 'somebody'} asked for a {record.action}"
    told = told_cause(record.cause)
    return how if told is None or how.endswith(told) else f"{how} ({told})"


def find_cause(rules: Sequence[CauseRule], ending: Ending, output: str) -> tuple[str, str] | None:
    """Return ``(rule id, evidence)`` of the first rule that matches, or None.

    A program's own output says more than how it ended: patterns are tried first, then signals, then exit codes.
    """
    lines = [line[-LONGEST_LINE:] for line in re.split(r"[\r\n]+", output) if line]
    for rule in rules:
        line = _last_line(rule.patterns, lines)
        if line is not None and not _is_found(rule.unless, lines):
            return rule.id, line.strip()
    for rule in rules:
        if ending.signal is not None and ending.signal in rule.signals and not _is_found(rule.unless, lines):
            return rule.id, f"signal {ending.signal}"
    for rule in rules:
        if ending.code and ending.code in rule.codes:
            return rule.id, f"exit code {ending.code}"
    return None


def _last_line(patterns: Sequence[str], lines: Sequence[str]) -> str | None:
    """Return the last line in which one of the patterns is found."""
    readable = _readable(patterns)
    return next((line for line in reversed(lines) if any(pattern.search(line) for pattern in readable)), None)


def _is_found(patterns: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether one of the patterns is found, in one line or across several."""
    text = "\n".join(lines)
    return any(pattern.search(text) for pattern in _readable(patterns))


def _readable(patterns: Sequence[str]) -> list[re.Pattern[str]]:
    readable = []
    for pattern in patterns:
        with contextlib.suppress(re.error):  # an invalid pattern names no cause, and must not cost the record
            readable.append(re.compile(pattern))
    return readable


class Crash(NamedTuple):
    """The facts on which the restart rule decides."""

    exit: ExitRecord
    step: int | None
    """The global step it reached; None if none was ever reported."""
    saved: bool = False
    """A checkpoint was written during this attempt, which is progress even if no steps are reported."""
    counted_anew: bool = False
    """It resumed from a checkpoint but counted steps from 0: they cannot be compared with other attempts' steps."""


class Decision(NamedTuple):
    """What happens next, and a sentence saying why."""

    again: bool
    reason: str
    delay_seconds: float = 0.0


def decide(rule: RestartRule, crash: Crash, history: Sequence[Mapping[str, Any]], now: float) -> Decision | None:
    """Apply the rule; None if there is nothing to decide (it did not fail, or restarts are off).

    Args:
        history: ``Status.restarts``.
        now: Unix seconds. Restarts dated in the future (the clock was set back) count as recent.
    """
    record = crash.exit
    if record.code == 0 or record.requested_by is not None or not rule.on:
        return None
    refusal = _refusal(rule, crash, history, now)
    if refusal:
        return Decision(False, f"not restarted: {refusal}")
    recent = _recent(history, now)
    delays = rule.delays_seconds or [0.0]
    delay = float(delays[min(len(recent), len(delays) - 1)])
    return Decision(True, f"{told_cause(record.cause)}: attempt {record.attempt + 1} starts in {delay:g} s", delay)


def _refusal(rule: RestartRule, crash: Crash, history: Sequence[Mapping[str, Any]], now: float) -> str | None:
    record = crash.exit
    if record.spawn_error:
        return "the program could not be started"
    if record.unknown:
        return "its exit code is unknown"
    if record.cause not in rule.on:
        return f"{record.cause or 'no known cause'} is not in the profile's list ({', '.join(rule.on)})"
    if not crash.step and not crash.saved:
        return "it ended before its first step"
    if len(_recent(history, now)) >= rule.most_per_hour:
        return f"{rule.most_per_hour} restarts in the last hour are enough"
    # Require progress: a crash that got no further than the one before will happen again.
    steps = [entry["step"] for entry in history if isinstance(entry.get("step"), int)]
    if crash.step is None or crash.counted_anew or not steps or crash.step > steps[-1]:
        return None
    if crash.step == steps[-1]:
        return f"it crashed at the same step twice ({crash.step})"
    return f"it crashed at step {crash.step}, before it reached the step of the last crash ({steps[-1]})"


def _recent(history: Sequence[Mapping[str, Any]], now: float) -> list[Mapping[str, Any]]:
    return [entry for entry in history if now - float(entry.get("time") or 0.0) < 3600.0]
