"""The text of ``settings.toml``, read and checked; loaded only where there is such a file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..wire.alerts import EVENTS, WHEN, is_safe_address
from .errors import UsageError
from .profiles import checks
from .profiles.checks import Check
from .profiles.problems import LineIndex
from .settings import THEMES, AlertSettings, EnergySettings, ScreenSettings, Settings

_DEAREST = 1e6
_LONGEST_CURRENCY = 4
_POSITION = re.compile(r"\s*\(at line (\d+), column \d+\)$")


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
        raise UsageError("\n".join(problems), "docs/alerts.md, docs/telemetry.md and docs/screen.md list the keys")
    return Settings(
        AlertSettings(**_values(data, "alerts")),
        EnergySettings(**_values(data, "energy")),
        ScreenSettings(**_values(data, "screen")),
    )


def _values(data: Mapping[str, Any], section: str) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.get(section, {}).items()}


def _address(value: Any) -> str | None:
    return None if isinstance(value, str) and is_safe_address(value) else 'an address that begins with "https://"'


def _price(value: Any) -> str | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if is_number and 0 <= value < _DEAREST else "the price of a kilowatt hour, a number from 0 on"


def _currency(value: Any) -> str | None:
    fits = isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST_CURRENCY
    return None if fits else f"a text of at most {_LONGEST_CURRENCY} characters, as in EUR"


_ALERTS: Mapping[str, Check] = {
    "on": checks.list_of(checks.one_of(*EVENTS), "events (crash, stall, finish)"),
    "when": checks.one_of(*WHEN),
    "bell": checks.flag,
    "notify": checks.one_of("auto", "osc9", "osc777", "off"),
    "hook": checks.command,
    "webhook": _address,
}


_ENERGY: Mapping[str, Check] = {"price": _price, "currency": _currency}
_SCREEN: Mapping[str, Check] = {"theme": checks.one_of(*THEMES)}
_SECTIONS: Mapping[str, Mapping[str, Check]] = {"alerts": _ALERTS, "energy": _ENERGY, "screen": _SCREEN}


def _problems(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in data.items():
        if key not in _SECTIONS:
            yield (key,), _unknown_at_the_top(key)
        elif not isinstance(value, dict):
            yield (key,), f"`{key}` must be a table, [{key}], not {checks.described(value)}"
        else:
            yield from _section_problems(key, value)


def _section_problems(section: str, table: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    known = _SECTIONS[section]
    for key, value in table.items():
        check = known.get(key)
        if check is None:
            yield (section, key), _unknown(key, f"[{section}]", tuple(known))
        elif expected := check(value):
            # An address may hold a token, so what was written there is not repeated.
            seen = "" if key == "webhook" else f", not {checks.described(value)}"
            yield (section, key), f"`{key}` in [{section}] must be {expected}{seen}"


def _unknown_at_the_top(key: str) -> str:
    owners = {name: section for section, keys in _SECTIONS.items() for name in keys}
    likely = checks.nearest(key, (*_SECTIONS, *owners))
    if likely in owners:
        return f"`{key}` is not a key of the settings; did you mean `{likely}` in [{owners[likely]}]?"
    return _unknown(key, "the settings", (*_SECTIONS, *owners))


def _unknown(key: str, where: str, known: tuple[str, ...]) -> str:
    likely = checks.nearest(key, known)
    meant = f"did you mean `{likely}`?" if likely else f"known: {', '.join(known)}"
    return f"`{key}` is not a key of {where}; {meant}"
