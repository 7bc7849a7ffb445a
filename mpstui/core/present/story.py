"""A run's events and files as a person reads them: each thing once, files by short names, strangers as strangers."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.snapshot import Checkpoint, RunEvent, RunSnapshot

_ECHO_SECONDS = 5.0
_LATE_SECONDS = 60.0
"""A file may be finished this long after its run has ended, by a process that outlived it or on a slow disk."""


def told_once(events: Iterable[RunEvent]) -> list[RunEvent]:
    """The events without echoes: a request's answer often says in the same words what has just been written down."""
    told: list[RunEvent] = []
    for one in events:
        if not any(_echoes(one, before) for before in told[-2:]):
            told.append(one)
    return told


def _echoes(one: RunEvent, before: RunEvent) -> bool:
    answered = "ack" in (one.event, before.event)
    return answered and one.text == before.text != "" and abs(one.time - before.time) <= _ECHO_SECONDS


def short_paths(text: str, folder: object) -> str:
    """``text`` with the files below ``folder`` named from there."""
    return text.replace(f"{folder}/", "")


def not_its_own(checkpoint: Checkpoint, snapshot: RunSnapshot) -> str:
    """Why a file that the run's pattern matches cannot be of this run; empty where it can be.

    Runs that share a folder find each other's checkpoints; of two that train at once nobody can tell whose one is,
    unless the file itself says so.
    """
    if checkpoint.owner is not None:
        return "" if checkpoint.owner == snapshot.run else f"of run {checkpoint.owner}"
    if snapshot.started is not None and checkpoint.time < snapshot.started:
        return "older than the run"
    if snapshot.ended is not None and checkpoint.time > snapshot.ended + _LATE_SECONDS:
        return "newer than the run"
    return ""
