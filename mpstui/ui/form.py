"""The launch form as values: its fields, what they would start, what is wrong with one of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnvironmentLine:
    """One variable that a launch sets, with its reason, and the doubt about it where there is one."""

    name: str
    value: str
    reason: str = ""
    doubtful: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the launch form. ``choices`` make it a choice, else it is text."""

    key: str
    label: str
    value: str
    choices: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """Exactly what would be started."""

    command: str
    environment: tuple[EnvironmentLine, ...] = ()
    warnings: tuple[str, ...] = ()
    cwd: str = ""
    runs: tuple[str, ...] = ()
    """Names of all runs where there are several; ``command`` is that of the first."""
