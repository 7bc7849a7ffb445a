"""``settings.toml``: what a person set for all runs. Checked like a profile: every mistake with file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..wire.alerts import EVENTS, WHEN, is_safe_address
from .errors import UsageError
from .home import Home
from .profiles import checks
from .profiles.checks import Check
from .profiles.problems import LineIndex

_POSITION = re.compile(r"\s*\(at line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """Who is told of what. The hook and the webhook are run for the supervisor, bell and notification by the screen."""

    on: tuple[str, ...] = EVENTS
    when: str = "always"
    """always, no_screen (hook and webhook only while no screen is open) or never."""
    bell: bool = True
    notify: str = "auto"
    """How the terminal is asked for a notification: auto, osc9, osc777 or off."""
    hook: tuple[str, ...] = ()
    webhook: str = field(default="", repr=False)
    """May hold a token: never shown."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set."""

    alerts: AlertSettings = field(default_factory=AlertSettings)


def load_settings(home: Home) -> Settings:
    """The settings of a home; the defaults where there is no file.

    Raises:
        UsageError: the file cannot be read or has mistakes; all are named.
    """
    try:
        text = home.settings.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{home.settings}: cannot be read: {error}") from error
    return parse_settings(text, home.settings)


def parse_settings(text: str, path: Path) -> Settings:
    """Read and check one file.

    Raises:
        UsageError: with every mistake on a line of its own.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = _POSITION.search(str(error))
        where = f"{path}:{position[1]}" if position else str(path)
        raise UsageError(f"{where}: this is not TOML: {_POSITION.sub('', str(error))}") from error
    index = LineIndex(text)
    problems = [f"{path}:{index.line_of(key) or 1}: {sentence}" for key, sentence in _problems(data)]
    if problems:
        raise UsageError("\n".join(problems), "docs/alerts.md lists the keys")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in data.get("alerts", {}).items()
    }
    return Settings(AlertSettings(**values))


def _address(value: Any) -> str | None:
    return None if isinstance(value, str) and is_safe_address(value) else 'an address that begins with "https://"'


_ALERTS: Mapping[str, Check] = {
    "on": checks.list_of(checks.one_of(*EVENTS), "events (crash, stall, finish)"),
    "when": checks.one_of(*WHEN),
    "bell": checks.flag,
    "notify": checks.one_of("auto", "osc9", "osc777", "off"),
    "hook": checks.command,
    "webhook": _address,
}


def _problems(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in data.items():
        if key != "alerts":
            yield (key,), _unknown(key, "the settings", ("alerts", *_ALERTS))
        elif not isinstance(value, dict):
            yield (key,), f"`alerts` must be a table, [alerts], not {checks.described(value)}"
        else:
            yield from _alert_problems(value)


def _alert_problems(table: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in table.items():
        check = _ALERTS.get(key)
        if check is None:
            yield ("alerts", key), _unknown(key, "[alerts]", tuple(_ALERTS))
        elif expected := check(value):
            # An address may hold a token, so what was written there is not repeated.
            seen = "" if key == "webhook" else f", not {checks.described(value)}"
            yield ("alerts", key), f"`{key}` in [alerts] must be {expected}{seen}"


def _unknown(key: str, where: str, known: tuple[str, ...]) -> str:
    likely = checks.nearest(key, known)
    if likely and where == "the settings" and likely != "alerts":
        return f"`{key}` is not a key of {where}; did you mean `{likely}` in [alerts]?"
    meant = f"did you mean `{likely}`?" if likely else f"known: {', '.join(known)}"
    return f"`{key}` is not a key of {where}; {meant}"
