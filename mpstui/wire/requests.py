"""Requests and their answers: one file each, whole or not there, so that any number of clients can ask at once."""

from __future__ import annotations

import getpass
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

from . import atomic, records
from .jsontext import UnreadableRecord
from .records import Ack, Request
from .rundir import RunDir

_asked = itertools.count()
_KINDS: Mapping[str, type] = {"action": str, "by": str, "attempt": int, "options": dict}


def asker() -> str:
    """Who asks, for the record: ``user@host:pid``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename.split('.')[0]}:{os.getpid()}"


def new_request(
    action: str, attempt: int, now: float, *, by: str | None = None, options: Mapping[str, Any] | None = None
) -> Request:
    """A request that does not exist yet; ids sort by time, those of one process also within the same moment."""
    request_id = f"{int(now * 1000):013d}-{next(_asked):06d}-{os.urandom(4).hex()}"
    return Request(request_id, action, attempt, by or asker(), now, dict(options or {}))


def submit(run: RunDir, request: Request) -> Request:
    """Write a request where its run will find it.

    Raises:
        OSError: it could not be written (disk full, read-only home).
    """
    atomic.make_private_folder(run.requests)
    atomic.create_json(run.request(request.id), request.to_json())
    return request


def unanswered(run: RunDir) -> Iterator[Request]:
    """Requests without an answer, oldest first; an unreadable or misnamed one is passed over and left where it is."""
    try:
        names = sorted(entry.name for entry in run.requests.iterdir())
    except OSError:
        return
    answered = {name[: -len(".ack.json")] for name in names if name.endswith(".ack.json")}
    for name in names:
        if name.startswith(".") or not name.endswith(".json") or name.endswith(".ack.json"):
            continue
        if name[: -len(".json")] in answered:
            continue
        try:
            found = records.read(Request, run.requests / name)
        except (UnreadableRecord, OSError):
            continue
        if found is not None and found.id == name[: -len(".json")] and _is_sound(found):
            yield found


def _is_sound(request: Request) -> bool:
    """Whether every field is of its type: anybody may write a request, and one must not cost those beside it."""
    values: Mapping[str, object] = vars(request)
    return all(isinstance(values[name], kind) for name, kind in _KINDS.items())


def answer(run: RunDir, ack: Ack) -> bool:
    """Write an answer; the first one stands. True when it was ours."""
    return atomic.create_json(run.ack(ack.id), ack.to_json())


def answer_to(run: RunDir, request_id: str) -> Ack | None:
    """The answer to a request, None while there is none."""
    try:
        return records.read(Ack, run.ack(request_id))
    except UnreadableRecord:
        return None
