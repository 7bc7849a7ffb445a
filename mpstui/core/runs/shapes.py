"""Records as the monitor may rely on them: a field of a wrong type makes the record unreadable, and nothing worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...wire.jsontext import UnreadableRecord
from ...wire.records import ExitRecord, LaunchRecord, LaunchTemplate, Record, Spec, Status

R = TypeVar("R", bound=Record)
Test = Callable[[Any], bool]


def _is(*kinds: type) -> Test:
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool)


def _maybe(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _identity(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(part, int) for part in value)


def _list_of(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(test(item) for item in value)


_TEXT, _WHOLE, _NUMBER, _FLAG, _MAP = _is(str), _is(int), _is(int, float), lambda v: isinstance(v, bool), _is(dict)

SHAPES: Mapping[type[Record], Mapping[str, Test]] = {
    LaunchTemplate: {"device": _TEXT, "cwd": _TEXT, "checkpoints": _maybe(_TEXT)},
    Spec: {
        "name": _TEXT,
        "created": _NUMBER,
        "launch": lambda value: isinstance(value, LaunchTemplate) and fits(value),
        "profile": _maybe(_TEXT),
        "recipe": _maybe(_TEXT),
        "watch": lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
    },
    Status: {
        "phase": _TEXT,
        "attempt": _WHOLE,
        "boot_id": _TEXT,
        "trainer": _maybe(_identity),
        "tree": _list_of(_identity),
        "paused": _FLAG,
        "survivors": _list_of(_WHOLE),
        "message": _maybe(_TEXT),
        "action": _maybe(_TEXT),
        "next_start": _maybe(_NUMBER),
        "template": _maybe(_MAP),
    },
    LaunchRecord: {"attempt": _WHOLE, "time": _NUMBER, "argv": _list_of(_TEXT), "device": _TEXT, "env": _MAP},
    ExitRecord: {
        "ended": _NUMBER,
        "code": _maybe(_WHOLE),
        "signal": _maybe(_WHOLE),
        "cause": _maybe(_TEXT),
        "requested_by": _maybe(_TEXT),
        "action": _maybe(_TEXT),
        "spawn_error": _maybe(_TEXT),
        "survivors": _list_of(_WHOLE),
        "evidence": _MAP,
    },
}


def fits(record: Record) -> bool:
    """Whether every field that is relied upon has its type."""
    return _misfit(record) is None


def reader_of(kind: type[R]) -> Callable[[Mapping[str, Any]], R]:
    """A parser for records of this kind that refuses fields of a wrong type.

    The parser raises UnreadableRecord, which names the field.
    """

    def parse(found: Mapping[str, Any]) -> R:
        record = kind.from_json(found)
        wrong = _misfit(record)
        if wrong is not None:
            raise UnreadableRecord(f"{wrong!r} has a value of a wrong type")
        return record

    return parse


def _misfit(record: Record) -> str | None:
    tests = SHAPES[type(record)]
    return next((name for name, test in tests.items() if not test(getattr(record, name))), None)
