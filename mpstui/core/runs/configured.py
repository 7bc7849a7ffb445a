"""The settings that a training reports with ``report.config``, which are kept with each attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...wire import storage
from ...wire.rundir import RunDir
from ...wire.secrets import masked
from ..formats.told import flattened


def settings_in(found: Mapping[str, Any]) -> Mapping[str, str]:
    """Return at most 500 settings by name, nested ones by dotted names (``optimizer.lr``), with secrets masked."""
    return masked(flattened("", dict(found)))


def settings_before(run: RunDir, attempt: int) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the number and the settings of each earlier attempt that reported any, the newest first."""
    for number in reversed([one for one in run.attempt_numbers() if one < attempt]):
        try:
            found = storage.read_json(run.attempt(number).config)
        except (OSError, storage.UnreadableRecord):
            continue
        if found:
            yield number, settings_in(found)
