"""The settings that a training reports: ``report.config`` keeps them beside each attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...wire import storage
from ...wire.rundir import RunDir
from ...wire.secrets import masked
from ..formats.told import flattened


def settings_in(found: Mapping[str, Any]) -> Mapping[str, str]:
    """By name, nested ones by all of their names (``optimizer.lr``); secrets masked, at most 500."""
    return masked(flattened("", dict(found)))


def settings_before(run: RunDir, attempt: int) -> Iterator[tuple[int, Mapping[str, str]]]:
    """What earlier attempts reported, the newest first, each with its number; those without a report are left out."""
    for number in reversed([one for one in run.attempt_numbers() if one < attempt]):
        try:
            found = storage.read_json(run.attempt(number).config)
        except (OSError, storage.UnreadableRecord):
            continue
        if found:
            yield number, settings_in(found)
