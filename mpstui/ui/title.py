"""The terminal's title and progress bar, which show how the training is going while another tab is in view."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..core import present as shown
from .alarms import BELL, ESC, passed_on
from .rows import clean

if TYPE_CHECKING:
    from ..core.model.snapshot import RunSnapshot

_PAUSE_SECONDS = 3.0
"""Seconds between two titles that differ only in numbers."""
SAVE, RESTORE = f"{ESC}[22;0t", f"{ESC}]0;{BELL}{ESC}[23;0t"
"""Save and restore the title; a terminal that cannot is left with an empty one rather than an outdated one."""
_VTE_WITH_PROGRESS = 7900


class Title:
    """The current title of a terminal."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._mute = environ.get("TERM", "") in ("", "dumb", "linux", "unknown")
        self._bar = has_progress_bar(environ)
        self._told: tuple[str, float | None] | None = None
        self._next = 0.0

    def change(self, snapshots: Sequence[RunSnapshot], place: str, now: float) -> str:
        """Return the control sequences that update it; empty if it is up to date, or was updated a moment ago.

        Args:
            place: the run in view, if any.
            now: monotonic seconds.
        """
        run = in_focus(snapshots, place)
        wanted = title(snapshots, run), share_done(run)
        turned = self._told is None or re.sub(r"\d", "", wanted[0]) != re.sub(r"\d", "", self._told[0])
        if self._mute or wanted == self._told or (now < self._next and not turned):
            return ""
        before, self._told, self._next = self._told, wanted, now + _PAUSE_SECONDS
        return (SAVE if before is None else "") + f"{ESC}]0;{wanted[0]}{BELL}" + self._progress(run, wanted[1])

    def restored(self) -> str:
        """Return the control sequences that restore the earlier title."""
        return "" if self._told is None else RESTORE + self._progress(None, None)

    def _progress(self, run: RunSnapshot | None, share: float | None) -> str:
        """ConEmu's progress bar (OSC 9;4): kind 1 is normal, 2 is an error, 0 shows none."""
        if not self._bar:
            return ""
        kind = 0 if run is None or share is None else 2 if shown.needs_attention(run) else 1
        return passed_on(f"{ESC}]9;4;{kind};{round(100 * (share or 0.0)) if kind else 0}{ESC}\\", self._environ)


def in_focus(snapshots: Sequence[RunSnapshot], place: str) -> RunSnapshot | None:
    """Return the run in view; on the list, the only live one."""
    live = [one for one in snapshots if one.is_live]
    seen = [one for one in snapshots if one.run == place] or (live if len(live) == 1 else [])
    return seen[0] if seen else None


def title(snapshots: Sequence[RunSnapshot], run: RunSnapshot | None) -> str:
    """``63 % 0.9142 resnet · 3m 42s``; unknown parts are left out."""
    if run is None:
        worst = [f"{count} {look.word}" for count, look in shown.attention(snapshots)]
        live = sum(one.is_live for one in snapshots)
        return " · ".join([*worst, *([f"{live} live"] if live else []), "mpstui"])
    look, name = shown.badge(run), clean(run.name, 40)
    if not run.state.active or shown.needs_attention(run):
        return f"{look.glyph} {look.word} {name}"
    share, left = share_done(run), run.numbers.eta_seconds
    words = [f"{share:.0%}".replace("%", " %")] if share is not None else []
    words += [shown.loss_text(run.numbers)] if shown.loss_text(run.numbers) != shown.UNKNOWN else []
    return " ".join([*words, name]) + (f" · {shown.duration(left)}" if left is not None else "")


def share_done(run: RunSnapshot | None) -> float | None:
    """Return the progress of a run that is not over."""
    return shown.total_progress(run.numbers) if run is not None and run.state.active else None


def has_progress_bar(environ: Mapping[str, str]) -> bool:
    """True if the terminal is known to understand OSC 9;4: others show it as a notification."""
    name = f"{environ.get('TERM', '')} {environ.get('TERM_PROGRAM', '')}".lower()
    vte = environ.get("VTE_VERSION", "")
    known = "ghostty" in name or bool(environ.get("WT_SESSION")) or environ.get("ConEmuANSI") == "ON"
    return known or (vte.isdigit() and int(vte) >= _VTE_WITH_PROGRESS)
