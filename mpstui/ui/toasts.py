"""Toasts: a few lines at the bottom that soon go, and at once when the user turns to another run; ``@`` shows them all.

While its toast is shown, an action that was done without a question can be undone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import present as shown
from ..core.model.errors import ReportedError
from .messages import RequestAnswered, SettingsMistaken, Severity, Toast
from .rows import clean, visible, wrap

if TYPE_CHECKING:
    from textual.app import App
    from textual.timer import Timer

UNDO_SECONDS = 5.0
TOAST_SECONDS = {"information": 4.0, "warning": 6.0, "error": 9.0}
ANY_RUN = "*"
"""Stands for any run, on a screen that shows all of them."""
_MOST_KEPT = 200
_LONGEST = 300
_WIDEST = 100
_FRAME_CELLS = 3
"""Cells of the edge and the blanks beside the text."""
_LEAST_LINES, _SCREEN_SHARE = 2, 7
"""Most lines of all toasts: the first or, if more, the window's divided by the second: a panel's end may be covered."""


class Note(NamedTuple):
    """One toast."""

    text: str
    severity: Severity
    about: str | None
    """The run it concerns; None: whatever was in view when it was shown."""
    until: float


class Said(NamedTuple):
    """A past message, as kept for ``@``."""

    time: float
    """When it was last shown, in Unix seconds."""
    text: str
    severity: Severity
    times: int = 1
    """How often it was shown in a row."""


class Toasts:
    """Shows messages and removes them again; an error stays until it has been read. Past messages are kept."""

    def __init__(
        self,
        app: App[Any],
        clock: Callable[[], float] = time.monotonic,
        covering: Callable[[int], object] = lambda lines: None,
        today: Callable[[], float] = time.time,
    ) -> None:
        """``covering`` is called with the number of covered lines when that changes; ``today`` returns Unix seconds."""
        self.said: deque[Said] = deque(maxlen=_MOST_KEPT)
        """The most recent messages, oldest first."""
        self._today = today
        self._covering = covering
        self._app = app
        self._clock = clock
        self._notes: list[Note] = []
        self._place: Hashable = ANY_RUN

    def say(self, text: str, severity: Severity, about: str | None = None) -> None:
        """Show a message; it replaces earlier ones about the same run."""
        again = self.said.pop().times if self.said and self.said[-1][1:3] == (text, severity) else 0
        self.said.append(Said(self._today(), text, severity, again + 1))
        note = Note(text, severity, about, self._clock() + TOAST_SECONDS[severity])
        others = [one for one in self._lasting() if one[:3] != note[:3]]  # a key pressed again shows its message once
        kept = [one for one in others if one.severity == "error" or about is None or one.about != about]
        self._show(self._newest([*kept, note]))

    def arrive(self, place: Hashable) -> None:
        """Note that the user now looks at a run, at all of them (``ANY_RUN``) or at something that concerns no run."""
        if place != self._place:
            self._place = place
            self._show([one for one in self._lasting() if one.severity == "error" or _concerns(one, place)])

    def _lasting(self) -> list[Note]:
        return [one for one in self._notes if one.until > self._clock()]

    def _newest(self, notes: list[Note]) -> list[Note]:
        """Return as many of the newest as there is room for."""
        left, first = self._most_lines, len(notes)
        while first > 0 and (left := left - len(self._lines(notes[first - 1].text))) >= 0:
            first -= 1
        return notes[first:]

    def _show(self, notes: list[Note]) -> None:
        gone = [one for one in self._notes if one not in notes]
        if gone:
            self._app.call_later(self._app.clear_notifications)  # after those that are still being shown
        for note in notes:
            if gone or note not in self._notes:
                self._app.notify(
                    "\n".join(map(visible, self._lines(note.text))),
                    severity=note.severity,
                    timeout=max(0.1, note.until - self._clock()),
                    markup=False,
                )
        self._notes = notes
        self._tell_covered()

    def _tell_covered(self) -> None:
        lasting = self._lasting()
        self._covering(sum(len(self._lines(one.text)) for one in lasting))
        if lasting:
            self._app.set_timer(max(0.1, min(one.until for one in lasting) - self._clock()), self._tell_covered)

    @property
    def _most_lines(self) -> int:
        return max(_LEAST_LINES, self._app.size.height // _SCREEN_SHARE)

    def _lines(self, text: str) -> list[str]:
        return wrap(text, min(self._app.size.width, _WIDEST) - _FRAME_CELLS, self._most_lines)


class _Held(NamedTuple):
    key: Hashable
    told: str
    do: Callable[[], object]
    at_once: Callable[[], object]


class Undo:
    """Undoes the last action: a request that is held back is never sent, a label gets its old value back.

    It holds one action at a time: the next one causes the previous one to be carried out.
    """

    def __init__(self, app: App[Any]) -> None:
        self.seconds = UNDO_SECONDS
        """Seconds to undo; 0: nothing is held."""
        self._app = app
        self._held: _Held | None = None
        self._back: Callable[[], object] | None = None
        self._timer: Timer | None = None

    def hold(
        self, key: Hashable, told: str, do: Callable[[], object], at_once: Callable[[], object], about: str
    ) -> None:
        """Do something in a moment, unless it is undone; at once if it is requested again.

        Args:
            key: identifies the action: equal for the same action on the same run.
            told: its name, as in ``stop``.
            at_once: does the same without a worker, in case the program ends before that moment.
            about: the run.
        """
        again = self._held is not None and self._held.key == key
        self.settle()
        if again:
            return
        if not self.seconds:
            do()
            return
        self._held = _Held(key, told, do, at_once)
        self._timer = self._app.set_timer(self.seconds, self.settle)
        self._app.post_message(
            Toast(f"{told} in {self.seconds:.0f} s · again: at once · U undoes it", "warning", run=about)
        )

    def did(self, back: Callable[[], object]) -> None:
        """Note that something was done, which ``back`` undoes."""
        self.settle()
        if not self.seconds:
            return
        self._back = back
        self._timer = self._app.set_timer(self.seconds, self.settle)

    def settle(self) -> None:
        """Do what was held back: the time to undo it is over."""
        held, self._held, self._back = self._held, None, None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if held is not None:
            held.do()

    def leave(self) -> None:
        """Do what was held back now, as the program is ending."""
        held, self._held = self._held, None
        if held is not None:
            with suppress(ReportedError):
                held.at_once()

    def take_back(self) -> None:
        held, back, self._held, self._back = self._held, self._back, None, None
        self.settle()
        if held is not None:
            self._app.post_message(Toast(f"{held.told} undone: nothing was sent"))
        elif back is not None:
            back()
        else:
            self._app.post_message(Toast("There is nothing to undo."))


def _concerns(note: Note, place: Hashable) -> bool:
    return note.about is not None and place in (note.about, ANY_RUN)


def answer_text(message: RequestAnswered) -> tuple[str, Severity]:
    """Return the answer to a request as one sentence: what was done, how much was freed, or why not."""
    ack = message.ack
    if ack is None:
        return f"{message.action}: no answer yet; its events will show the outcome", "warning"
    freed = ""
    if ack.before is not None and ack.after is not None:
        freed = f" ({shown.size(ack.before)} → {shown.size(ack.after)})"
        if ack.freed is not None:
            freed = f": freed {shown.size(ack.freed)}" + freed
    text = clean(ack.text, _LONGEST)
    if ack.ok and text and not freed:
        return text, "information"
    if ack.ok:
        return f"{message.action}{freed or ': done'}" + (f" · {text}" if text else ""), "information"
    return f"{message.action} was refused" + (f": {text}" if text else ""), "warning"


def mistake_text(message: SettingsMistaken) -> str:
    """Return the first mistake in the settings, and how many there are."""
    first, *more = message.mistakes
    told = clean(first, _LONGEST) + (f" (and {len(more)} more)" if more else "")
    return f"{told} · the whole file is ignored; `mpstui alerts` checks it"
