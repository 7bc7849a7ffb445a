"""Alarms of an open screen: which changes the terminal is notified of, and by which control sequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..core.model.snapshot import Health, RunSnapshot, State
from .rows import clean

if TYPE_CHECKING:
    from ..core.settings import AlertSettings

BELL, ESC = "\a", "\x1b"
_WAYS = dict.fromkeys(("iterm.app", "iterm2", "wezterm", "ghostty", "kitty"), "osc9")
_WAYS |= dict.fromkeys(("foot", "rxvt", "vte"), "osc777")


class Alarm(NamedTuple):
    """One change that may be worth a bell: crash, stall or finish."""

    event: str
    text: str
    run: str = ""
    words: str = ""
    """The text without the run's name."""


def alarms(before: Iterable[RunSnapshot], after: Iterable[RunSnapshot]) -> list[Alarm]:
    """Return what happened between two readings; a run seen for the first time has not changed."""
    known = {one.run: one for one in before}
    pairs = ((known[one.run], one) for one in after if one.run in known)
    return [
        Alarm(event, f"{clean(new.name, 60)} {words}", new.run, words)
        for old, new in pairs
        for event, words in _change(old, new)
    ]


def heard(found: Iterable[Alarm], settings: AlertSettings) -> list[Alarm]:
    """Return the alarms that the user wants."""
    return [alarm for alarm in found if alarm.event in settings.on and settings.when != "never"]


def _change(old: RunSnapshot, new: RunSnapshot) -> Iterable[tuple[str, str]]:
    if (
        old.state.active
        and new.state in (State.FAILED, State.KILLED, State.LOST)
        and not (new.exit and new.exit.requested_by)
        and not new.was_cancelled
    ):
        yield "crash", f"{new.state}: {clean(new.exit.sentence() if new.exit else new.reason, 120)}"
    elif old.state.active and new.state is State.FINISHED:
        yield "finish", "finished"
    elif new.health is Health.HUNG and old.health is not Health.HUNG:
        yield "stall", f"hung: {clean(new.health_note, 120)}"


def words_for(found: Sequence[Alarm], settings: AlertSettings, environ: Mapping[str, str]) -> str:
    """Return the control sequences that notify a terminal of alarms; empty if the user wants none of them."""
    wanted = heard(found, settings)
    if not wanted:
        return ""
    ways = _ways(settings.notify, environ)
    notes = [passed_on(_notification(way, alarm.text), environ) for alarm in wanted for way in ways]
    return (BELL if settings.bell else "") + "".join(notes)


def _ways(wish: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Both are sent if the terminal cannot be identified: it ignores the one that it does not know."""
    if wish != "auto":
        return () if wish == "off" else (wish,)
    names = [environ.get(name, "").lower() for name in ("TERM_PROGRAM", "LC_TERMINAL", "TERM")]
    if environ.get("VTE_VERSION"):
        names.append("vte")
    known = next((way for name in names for key, way in _WAYS.items() if key in name), None)
    return (known,) if known else ("osc9", "osc777")


def _notification(way: str, text: str) -> str:
    if way == "osc777":
        return f"{ESC}]777;notify;mpstui;{text.replace(';', ',')}{ESC}\\"
    # ConEmu and Windows Terminal take a number after "9;" for a command of theirs (9;4 is a progress bar).
    return f"{ESC}]9;mpstui: {text}{ESC}\\"


def passed_on(sequence: str, environ: Mapping[str, str]) -> str:
    """Wrap a sequence so that tmux or screen passes it to the outer terminal (tmux needs allow-passthrough)."""
    if environ.get("TMUX"):
        return f"{ESC}Ptmux;{sequence.replace(ESC, ESC + ESC)}{ESC}\\"
    if environ.get("STY"):
        # screen ends its own string at the first ESC \; a notification may end with BEL as well.
        return f"{ESC}P{sequence.removesuffix(ESC + chr(92))}{BELL}{ESC}\\"
    return sequence
