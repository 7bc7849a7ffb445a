"""The log on a run's screen: which file it shows, and its own keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.screen import Screen

from ...wire.rundir import RunDir
from ..panels.log import LogMoved
from ..rows import clean
from ..widgets.search_line import SearchLine
from ..workers.window import WindowWorker

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..context import Context
    from ..panels.log import LogPane
    from ..widgets.log_reading import LogReading
    from .run_body import RunBody


class RunLog:
    """Opens the run's output in the log pane, and handles the log's keys."""

    def __init__(self, screen: Screen[None], body: RunBody, context: Context) -> None:
        self._screen, self._body, self._context = screen, body, context
        self._shown: Path | None = None
        self._attempt = 0
        self._windows = WindowWorker(context.services, body.log_pane.post_message)
        self.search_line = SearchLine(self._typed, self._look_for, self._leave, self._step)

    @property
    def _pane(self) -> LogPane:
        return self._body.log_pane

    def close(self) -> None:
        """Stop what reads in the background."""
        self._windows.stop()

    def open(self, path: Path | None, attempt: int = 0, attempts: int = 0) -> None:
        """Show a log, or that there is none yet; for an earlier attempt, the title says which."""
        self._attempt = attempt
        self._pane.attempt = f"attempt {attempt} of {attempts}" if attempt < attempts else ""
        if path is None or path != self._shown or self._pane.reading is None:
            document = self._context.services.open_log(path) if path is not None else None
            if document is not None:
                document.refresh()
            self._pane.open(document)
        self._shown = path

    def turn(self, snapshot: RunSnapshot, by: int) -> bool:
        """Show the output of an earlier or later attempt; return False if there is none."""
        wanted, attempts = self._attempt + by, snapshot.attempts
        if not 0 < wanted <= attempts:
            return False
        own = snapshot.outputs[wanted - 1] if snapshot.outputs else RunDir(snapshot.dir).attempt(wanted).output
        timed = self._pane.times is not None
        self.open(snapshot.output if wanted == attempts else own, wanted, attempts)
        if timed:
            self.tell_times()
        return True

    def tell_times(self) -> None:
        """Show when the lines were printed, as far as known."""
        from ...core.logview.times import LogTimes

        pane = self._pane
        if pane.reading is not None:
            pane.tell_times(LogTimes(pane.reading.document, pane.reading.steps), self._windows.read)

    def turn_times(self) -> None:
        """Show or hide when the lines were printed; if that is unknown, say so."""
        pane = self._pane
        if pane.times is not None:
            pane.tell_times(None)
        else:
            self.tell_times()
            why_not = "The times of these lines are unknown: they have no timestamps, and name no measured step."
            if pane.reading is not None and not pane.known_times:
                if pane.asks_for_times:
                    pane.unknown = lambda: self._context.say(why_not)
                else:
                    self._context.say(why_not)
        pane.repaint()

    def press(self, what: str) -> None:
        doing: dict[str, Callable[[LogReading], str | None]] = {
            "search": self._search,
            "next": lambda reading: self._again(reading, backwards=False),
            "previous": lambda reading: self._again(reading, backwards=True),
            "error": lambda reading: self._error(reading, backwards=False),
            "previous_error": lambda reading: self._error(reading, backwards=True),
            "level": self._level,
            "select": lambda reading: reading.select(self._pane.page),
            "copy": self._copy_lines,
            "wrap": lambda reading: self._pane.wrap(),
        }
        reading = self._pane.reading
        why_not = doing[what](reading) if reading is not None else "There is no output yet."
        if why_not:
            self._context.say(why_not)
        self._pane.repaint()

    def _search(self, reading: LogReading) -> None:
        reading.begin_search()
        self.search_line.open(reading.pattern)

    def _typed(self, pattern: str) -> None:
        reading = self._pane.reading
        if reading is not None:
            self._pane.follow_search(reading.find_typed(pattern, self._pane.page), lambda found: None)

    def _look_for(self, pattern: str) -> None:
        reading = self._pane.reading
        if reading is None:
            return
        if not pattern:
            reading.stop_search()
        elif pattern != reading.pattern or reading.found is None:
            self._follow(reading.find_typed(pattern, self._pane.page), f"no line matches {clean(pattern, 40)}")
        self._pane.count()
        self._pane.repaint()

    def _leave(self) -> None:
        if self._pane.reading is not None:
            self._pane.reading.cancel_search()
            self._pane.post_message(LogMoved())
            self._pane.count()
            self._pane.repaint()

    def _step(self, by: int) -> None:
        reading = self._pane.reading
        if reading is not None and reading.pattern:
            self._again(reading, backwards=by < 0)

    def _follow(self, found: bool | None, why_not: str) -> None:
        self._pane.follow_search(found, lambda found: None if found else self._context.say(why_not))

    def _again(self, reading: LogReading, *, backwards: bool) -> str | None:
        if not reading.pattern:
            return "No search yet: press / to search."
        why_not = f"no line matches {clean(reading.pattern, 40)}"
        self._follow(reading.find(reading.pattern, self._pane.page, backwards=backwards, again=True), why_not)
        return None

    def _error(self, reading: LogReading, *, backwards: bool) -> None:
        found = reading.next_error(self._pane.page, backwards=backwards)
        self._follow(found, f"no {'earlier' if backwards else 'later'} error")

    def _level(self, reading: LogReading) -> None:
        reading.next_level()
        self._pane.count()

    def _copy_lines(self, reading: LogReading) -> str:
        lines = reading.chosen(self._pane.page)
        if not lines:
            return "Nothing to copy."
        self._screen.app.copy_to_clipboard("\n".join(line.text for line in lines))
        reading.selection = None
        return f"sent {len(lines)} line{'s' * (len(lines) > 1)} to the terminal's clipboard (OSC 52)"
