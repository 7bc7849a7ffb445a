"""The log's own keys, apart from the screen that holds the log."""

from __future__ import annotations

from collections.abc import Callable

from ..rows import clean
from ..widgets.log_pane import LogPane

AskForPattern = Callable[[str, Callable[[str | None], None]], object]
"""Ask the person for a pattern, the last one being offered, and hand it on."""


class LogKeys:
    """What the log's keys do to a log pane; each returns a sentence when there is nothing to do."""

    def __init__(self, pane: LogPane, ask: AskForPattern, say: Callable[[str], None]) -> None:
        self._pane = pane
        self._ask = ask
        self._say = say

    def press(self, what: str) -> None:
        """One key."""
        doing: dict[str, Callable[[], str | None]] = {
            "search": self._search,
            "next": lambda: self._again(backwards=False),
            "previous": lambda: self._again(backwards=True),
            "error": lambda: self._error(backwards=False),
            "previous_error": lambda: self._error(backwards=True),
            "level": self._level,
        }
        why_not = doing[what]() if self._pane.reading is not None else "there is no output yet"
        if why_not:
            self._say(why_not)
        self._pane.repaint()

    def _search(self) -> str | None:
        reading = self._pane.reading
        self._ask(reading.pattern if reading else "", self._look_for)
        return None

    def _look_for(self, pattern: str | None) -> None:
        reading = self._pane.reading
        if reading is None or pattern is None:
            return
        if not pattern:
            reading.pattern, reading.found = "", None
        elif not reading.find(pattern, self._pane.page):
            self._say(f"nothing matches {clean(pattern, 40)}")
        self._pane.repaint()

    def _again(self, *, backwards: bool) -> str | None:
        reading = self._pane.reading
        if reading is None or not reading.pattern:
            return "nothing is searched for: / searches"
        if reading.find(reading.pattern, self._pane.page, backwards=backwards, again=True):
            return None
        return f"no {'earlier' if backwards else 'later'} match for {clean(reading.pattern, 40)}"

    def _error(self, *, backwards: bool) -> str | None:
        reading = self._pane.reading
        if reading is not None and reading.next_error(self._pane.page, backwards=backwards):
            return None
        return f"no {'earlier' if backwards else 'later'} error"

    def _level(self) -> str | None:
        if self._pane.reading is not None:
            self._pane.reading.next_level()
        return None
