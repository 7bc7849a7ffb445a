"""Whether the machine goes to sleep by itself: a training stands still then, and is cut off where it is not alone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .report import Finding, Status

TIMEOUT_SECONDS = 3.0
_PMSET_LINE = re.compile(r"^ (?P<name>[A-Za-z]+) +(?P<value>\d+)(?: .*)?$", re.MULTILINE)
# In the order in which systemd reads them: what comes later wins (logind.conf(5)).
_LOGIND_FOLDERS = ("usr/lib/systemd", "run/systemd", "etc/systemd")
_HARMLESS_ACTIONS = ("ignore", "lock", "")


@dataclass(frozen=True, slots=True)
class SleepSettings:
    """What is set for an idle machine. None is unknown."""

    system: str
    idle_minutes: int | None = None
    """macOS: until it sleeps by itself; 0 is never."""
    idle_action: str | None = None
    """systemd-logind: what it does with an idle machine."""
    low_power: bool | None = None


def sleep_settings(system: str, root: Path = Path("/")) -> SleepSettings:
    """Ask ``pmset`` on macOS, read logind's configuration elsewhere; what does not answer is unknown."""
    if system != "Darwin":
        return SleepSettings(system, idle_action=idle_action(root))
    try:
        done = subprocess.run(
            ["pmset", "-g"], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return SleepSettings(system)
    return from_pmset(done.stdout)


def from_pmset(text: str) -> SleepSettings:
    """What ``pmset -g`` prints (pmset(1)): a name and a number a line, `` sleep  1 (sleep prevented by powerd)``."""
    values = {match["name"]: int(match["value"]) for match in _PMSET_LINE.finditer(text)}
    low = values.get("lowpowermode")
    return SleepSettings("Darwin", idle_minutes=values.get("sleep"), low_power=bool(low) if low is not None else None)


def idle_action(root: Path) -> str | None:
    """``IdleAction`` of systemd-logind, ``ignore`` unless a file sets it; None where no systemd manages logins."""
    if not (root / "run/systemd/system").is_dir():
        return None
    found = "ignore"
    for folder in _LOGIND_FOLDERS:
        place = root / folder
        for path in (place / "logind.conf", *sorted((place / "logind.conf.d").glob("*.conf"))):
            found = _setting(path, "IdleAction") or found
    return found


def judge_sleep(settings: SleepSettings) -> Iterator[Finding]:
    """Runs that mpstui starts hold a Mac awake; nothing holds it awake under a closed lid on battery."""
    if settings.idle_minutes == 0:
        yield Finding("sleep", Status.OK, "this Mac does not go to sleep by itself")
    elif settings.idle_minutes is not None:
        text = f"this Mac sleeps after {settings.idle_minutes} min idle; runs that mpstui starts keep it awake"
        advice = "programs started otherwise: caffeinate -i COMMAND; a closed lid sleeps all the same without a display"
        yield Finding("sleep", Status.NOTE, text, advice)
    if settings.low_power:
        text, advice = "low power mode is on: the GPU is throttled", "System Settings, Battery, Low Power Mode: never"
        yield Finding("low_power", Status.WARNING, text, advice)
    yield from _judge_idle_action(settings.idle_action)


def facts(settings: SleepSettings) -> Mapping[str, object]:
    """The settings as plain data."""
    return {
        "idle_minutes": settings.idle_minutes,
        "idle_action": settings.idle_action,
        "low_power": settings.low_power,
    }


def _judge_idle_action(action: str | None) -> Iterator[Finding]:
    if action is None:
        return
    if action in _HARMLESS_ACTIONS:
        yield Finding("sleep", Status.OK, f"logind leaves an idle machine alone (IdleAction={action or 'ignore'})")
    else:
        text = f"logind puts this machine into {action} when nobody uses it, trainings or not"
        advice = "set IdleAction=ignore in /etc/systemd/logind.conf, or train under systemd-inhibit --what=idle"
        yield Finding("sleep", Status.WARNING, text, advice)


def _setting(path: Path, name: str) -> str | None:
    """The last value that an INI file gives a name; None when it does not, or cannot be read."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    values = re.findall(rf"^\s*{name}\s*=\s*(\S*)\s*$", text, re.MULTILINE)
    return str(values[-1]) if values else None
