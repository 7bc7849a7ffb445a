"""The log's own keys, apart from the screen that holds the log."""

from __future__ import annotations

from collections.abc import Callable

from ..panels.log import LogPane
from ..rows import clean

AskForPattern = Callable[[str, Callable[[str | None], None]], object]
"""Ask the person for a pattern, the last one being offered, and hand it on."""


class LogKeys:
    """What the log's keys do to a log pane; each returns a sentence when there is nothing to do."""

    def __init__(
        self, pane: LogPane, ask: AskForPattern, say: Callable[[str], None], copy: Callable[[str], object]
    ) -> None:
        self._pane = pane
        self._ask = ask
        self._say = say
        self._copy = copy

    def press(self, what: str) -> None:
        """One key."""
        doing: dict[str, Callable[[], str | None]] = {
            "search": self._search,
            "next": lambda: self._again(backwards=False),
            "previous": lambda: self._again(backwards=True),
            "error": lambda: self._error(backwards=False),
            "previous_error": lambda: self._error(backwards=True),
            "level": self._level,
            "select": self._select,
            "copy": self._copy_lines,
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
        else:
            self._follow(reading.find(pattern, self._pane.page), f"nothing matches {clean(pattern, 40)}")
        self._pane.repaint()

    def _follow(self, told: bool | None, why_not: str) -> None:
        self._pane.follow_search(told, lambda found: None if found else self._say(why_not))

    def _again(self, *, backwards: bool) -> str | None:
        reading = self._pane.reading
        if reading is None or not reading.pattern:
            return "nothing is searched for: / searches"
        why_not = f"no {'earlier' if backwards else 'later'} match for {clean(reading.pattern, 40)}"
        self._follow(reading.find(reading.pattern, self._pane.page, backwards=backwards, again=True), why_not)
        return None

    def _error(self, *, backwards: bool) -> str | None:
        reading = self._pane.reading
        told = reading.next_error(self._pane.page, backwards=backwards) if reading is not None else False
        self._follow(told, f"no {'earlier' if backwards else 'later'} error")
        return None

    def _select(self) -> str | None:
        if self._pane.reading is not None:
            self._pane.reading.select(self._pane.page)
        return None

    def _copy_lines(self) -> str | None:
        reading = self._pane.reading
        lines = reading.chosen(self._pane.page) if reading is not None else ()
        if reading is None or not lines:
            return "there is nothing to copy"
        self._copy("\n".join(line.text for line in lines))
        reading.selection = None
        return f"handed {len(lines)} line{'s' * (len(lines) > 1)} to the terminal's clipboard (OSC 52)"

    def _level(self) -> str | None:
        if self._pane.reading is not None:
            self._pane.reading.next_level()
        return None
