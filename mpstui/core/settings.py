"""``settings.toml``: what a person set for all runs. Checked like a profile: every mistake with file, line and key."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..wire.alerts import EVENTS
from .errors import UsageError
from .home import Home


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySettings:
    """What electricity costs. Without a price energy is shown in watt hours alone."""

    price: float | None = None
    """Of one kilowatt hour."""
    currency: str = ""
    """Shown behind the amount, as it is written: EUR, $, kr."""


THEMES = ("auto", "dark", "light")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenSettings:
    """How the screen looks."""

    theme: str = "auto"
    """One of :data:`THEMES`; auto goes by what the terminal says of its background."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set."""

    alerts: AlertSettings = field(default_factory=AlertSettings)
    energy: EnergySettings = field(default_factory=EnergySettings)
    screen: ScreenSettings = field(default_factory=ScreenSettings)


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
    from .settings_file import parse_settings  # TOML and its checks: most homes have no settings

    return parse_settings(text, home.settings)
