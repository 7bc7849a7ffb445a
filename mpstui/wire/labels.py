"""What people add to a run: another name, tags, a note. Kept in its directory; who may write there may change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from . import liveness, storage
from .records import Spec
from .rundir import RunDir

LONGEST_NAME, LONGEST_TAG, LONGEST_NOTE, MOST_TAGS = 200, 40, 4000, 32


class LabelsBusy(OSError):
    """Somebody else is changing the labels at this moment."""


class Labels(NamedTuple):
    """``labels.json``. An empty field was never set."""

    name: str = ""
    """Replaces the name that the run was launched under."""
    tags: tuple[str, ...] = ()
    note: str = ""


def parse(found: Mapping[str, Any]) -> Labels:
    """The labels in a file's object; an invalid value is dropped, the others are kept."""
    name, tags, note = (found.get(key) for key in Labels._fields)
    words = [tag for tag in tags if is_tag(tag)] if isinstance(tags, list) else []
    return Labels(
        name[:LONGEST_NAME] if isinstance(name, str) else "",
        tuple(dict.fromkeys(words))[:MOST_TAGS],
        note[:LONGEST_NOTE] if isinstance(note, str) else "",
    )


def is_tag(word: object) -> bool:
    """True if ``word`` can be a tag: a short printable word without spaces or commas."""
    return (
        isinstance(word, str)
        and 0 < len(word) <= LONGEST_TAG
        and word.isprintable()
        and not set(word) & set(" ,#")
        and word[0] not in "+-"
    )


def read(run: RunDir) -> Labels:
    """The labels of a run; empty ones if the file is missing or cannot be read."""
    try:
        return parse(storage.read_json(run.labels) or {})
    except (OSError, storage.UnreadableRecord):
        return Labels()


def name_of(run: RunDir, spec: Spec | None) -> str:
    """Return a run's name: the one it was given later, else the one it was launched under, else its id."""
    return read(run).name or (spec.name if spec is not None else run.run)


def edit(run: RunDir, change: Callable[[Labels], Labels]) -> Labels:
    """Change the labels of a run, starting from what the file holds now; simultaneous editors take turns.

    Raises:
        LabelsBusy: somebody else keeps the lock for longer than a moment.
        NewerSchema: the file was written by a newer mpstui, and was left alone.
        OSError: it could not be read or written; nothing has changed.
    """
    lock = liveness.acquire(run.labels_lock)
    if lock is None:
        raise LabelsBusy(f"the labels of {run.run} are being changed by somebody else")
    try:
        try:
            found = storage.read_json(run.labels) or {}
        except storage.UnreadableRecord:
            found = {}  # nothing in it is worth keeping
        schema = found.get("schema", storage.SCHEMA)
        if not isinstance(schema, int) or schema > storage.SCHEMA:
            raise storage.NewerSchema(f"schema {schema!r} is newer than {storage.SCHEMA}")
        before = parse(found)
        after = change(before)
        if after != before:
            storage.write_json(run.labels, {**found, "schema": storage.SCHEMA, **after._asdict()})
        return after
    finally:
        liveness.release(lock)
