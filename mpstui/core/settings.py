"""``settings.toml``: the user's settings for all runs. Every mistake is reported with file, line and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..wire import storage, trust
from ..wire.records import ALERT_EVENTS, ALERT_WHEN, is_safe_address
from .model import checks
from .model.checks import Check, LineIndex
from .model.errors import SettingsError
from .model.home import GRAPHICS, HINT_OWN, THEMES, Home
from .model.toml import TomlMistake, load_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """Which alerts go where. The supervisor runs the hook and the webhook; the screen rings the bell and notifies."""

    on: tuple[str, ...] = ALERT_EVENTS
    when: str = "always"
    """always, no_screen (hook and webhook only while no screen is open) or never."""
    bell: bool = True
    notify: str = "auto"
    """How to request a notification from the terminal: auto, osc9, osc777 or off."""
    hook: tuple[str, ...] = ()
    webhook: str = field(default="", repr=False)
    """May contain a token: never shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySettings:
    """The price of electricity. Without one, energy is only shown in watt-hours."""

    price: float | None = None
    """Per kilowatt-hour."""
    currency: str = ""
    """Shown verbatim after the amount: EUR, $, kr."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenSettings:
    """How the screen looks."""

    theme: str = "auto"
    """One of :data:`THEMES`; auto follows the background that the terminal reports."""
    graphics: str = "auto"
    """One of :data:`GRAPHICS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """One remote machine, ``[hosts.NAME]``. Paths are paths there, and a leading ~ is the home folder there."""

    address: str = ""
    """The destination for ssh; empty: the host's name."""
    python: str = ""
    """Its Python, 3.11 or newer, which is also ``{python}`` in profiles; empty: the first one found."""
    home: str = ""
    """Its MPSTUI_HOME; empty: the platform's folders there."""
    folder: str = ""
    """The base of relative paths and ``./profiles``; empty: the user's home folder."""
    paths: Mapping[str, str] = field(default_factory=dict)
    """Local folders, such as data, to their place on the remote machine; for launches that are sent there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsSettings:
    """The remote machines, and how to reach them."""

    ssh: tuple[str, ...] = ("ssh",)
    """The ssh program and its options."""
    show: tuple[str, ...] = ()
    """The hosts that the screen shows beside this machine if none is named."""
    named: Mapping[str, HostSettings] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings."""

    alerts: AlertSettings = field(default_factory=AlertSettings)
    energy: EnergySettings = field(default_factory=EnergySettings)
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    hosts: HostsSettings = field(default_factory=HostsSettings)


def load_settings(home: Home) -> Settings:
    """Load the settings of a home; the defaults if there is no file.

    Raises:
        SettingsError: the file cannot be read or has mistakes; all are listed.
    """
    if why := trust.distrust_of_any(home.config, home.settings):
        raise SettingsError(home.settings, [(None, f"not obeyed, because {why}")], HINT_OWN)
    try:
        text = storage.read_text(home.settings, errors="strict")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(home.settings, [(None, f"cannot be read: {error}")]) from error
    return parse_settings(text, home.settings)


_DEAREST = 1e6
_LONGEST_CURRENCY = 4


def parse_settings(text: str, path: Path) -> Settings:
    """Parse and check the text of a settings file.

    Raises:
        SettingsError: with every mistake.
    """
    try:
        data = load_toml(text)
    except TomlMistake as mistake:
        raise SettingsError(path, [(mistake.line, mistake.what)]) from mistake
    index = LineIndex(text)
    problems = [(index.line_of(key) or 1, sentence) for key, sentence in _problems(data)]
    if problems:
        raise SettingsError(
            path, problems, "docs/alerts.md, docs/telemetry.md, docs/screen.md and docs/hosts.md list the keys"
        )
    return Settings(
        AlertSettings(**_values(data, "alerts")),
        EnergySettings(**_values(data, "energy")),
        ScreenSettings(**_values(data, "screen")),
        _hosts(data.get("hosts", {})),
    )


def _values(data: Mapping[str, Any], section: str) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.get(section, {}).items()}


def _hosts(section: Mapping[str, Any]) -> HostsSettings:
    own = {key: tuple(value) for key, value in section.items() if key in _SECTIONS["hosts"]}
    named = {key: HostSettings(**value) for key, value in section.items() if key not in own}
    return HostsSettings(**own, named=named)


def _far_path(value: Any) -> str | None:
    """A path on a remote machine; it is sent in quotes, which every shell must read alike."""
    fits = checks.text(value) is None and value.isprintable() and not set(value) & set("'\\!")
    return None if fits else "a path without quotes, backslashes and exclamation marks"


def _paths(value: Any) -> str | None:
    fits = isinstance(value, dict) and all(
        here.startswith("/") and checks.text(there) is None and there.startswith(("/", "~/"))
        for here, there in value.items()
    )
    return None if fits else 'a table of whole paths here and there, such as { "/Users/me/data" = "/data" }'


def _address(value: Any) -> str | None:
    return None if isinstance(value, str) and is_safe_address(value) else 'an address that begins with "https://"'


def _price(value: Any) -> str | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if is_number and 0 <= value < _DEAREST else "the price of a kilowatt hour, a number from 0 on"


def _currency(value: Any) -> str | None:
    fits = isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST_CURRENCY
    return None if fits else f"a text of at most {_LONGEST_CURRENCY} characters, as in EUR"


_SECTIONS: Mapping[str, Mapping[str, Check]] = {
    "alerts": {
        "on": checks.list_of(checks.one_of(*ALERT_EVENTS), "events (crash, stall, finish)"),
        "when": checks.one_of(*ALERT_WHEN),
        "bell": checks.flag,
        "notify": checks.one_of("auto", "osc9", "osc777", "off"),
        "hook": checks.command,
        "webhook": _address,
    },
    "energy": {"price": _price, "currency": _currency},
    "screen": {"theme": checks.one_of(*THEMES), "graphics": checks.one_of(*GRAPHICS)},
    "hosts": {"ssh": checks.command, "show": checks.list_of(checks.text, "hosts")},
}
_OF_A_HOST: Mapping[str, Check] = {
    "address": checks.text,
    "python": _far_path,
    "home": _far_path,
    "folder": _far_path,
    "paths": _paths,
}


def _problems(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    owners = {name: section for section, keys in _SECTIONS.items() for name in keys}
    for key, value in data.items():
        if key not in _SECTIONS:
            likely = checks.nearest(key, (*_SECTIONS, *owners))
            found = f"`{key}` is not a key of the settings; did you mean `{likely}` in [{owners.get(likely or '')}]?"
            yield (key,), found if likely in owners else _unknown(key, "the settings", (*_SECTIONS, *owners))
        elif not isinstance(value, dict):
            yield (key,), f"`{key}` must be a table, [{key}], not {checks.described(value)}"
        else:
            for name, item in value.items():
                check = _SECTIONS[key].get(name)
                if check is None and key == "hosts" and isinstance(item, dict):
                    yield from _problems_of_host(name, item)
                elif check is None:
                    yield (key, name), _unknown(name, f"[{key}]", tuple(_SECTIONS[key]))
                elif expected := check(item):
                    # A webhook address may contain a token, so the value is not repeated.
                    seen = "" if name == "webhook" else f", not {checks.described(item)}"
                    yield (key, name), f"`{name}` in [{key}] must be {expected}{seen}"


def _problems_of_host(host: str, found: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, item in found.items():
        if name not in _OF_A_HOST:
            yield ("hosts", host, name), _unknown(name, f"[hosts.{host}]", tuple(_OF_A_HOST))
        elif expected := _OF_A_HOST[name](item):
            problem = f"`{name}` in [hosts.{host}] must be {expected}, not {checks.described(item)}"
            yield ("hosts", host, name), problem


def _unknown(key: str, where: str, known: tuple[str, ...]) -> str:
    likely = checks.nearest(key, known)
    hint = f"did you mean `{likely}`?" if likely else f"known: {', '.join(known)}"
    return f"`{key}` is not a key of {where}; {hint}"
