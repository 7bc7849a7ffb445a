"""The program on the screen: starts the pumps, hands pictures to the screen in view, changes screens. No logic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.app import App
from textual.message import Message
from textual.screen import Screen

from ..core.model.errors import OperationError, UsageError
from . import messages
from .alarms import Announcer
from .bindings import Scope, bindings
from .board import Board
from .news import Severity, news
from .screens.acting import ActingScreen
from .screens.runs import RunsScreen
from .terminal import Terminal
from .theme import ANSI_THEME, ANSI_THEMES, THEMES
from .toasts import Toasts
from .workers import Courier, HintPump, RunPump, SystemPump, TerminalWatch

if TYPE_CHECKING:
    from ..core.diagnosis.model import Remedy
    from ..core.model.snapshot import RunSnapshot
    from .services import Services


_PAINT_SECONDS = 0.03


class MpstuiApp(App[None]):
    """See ``screens/`` for what it shows and ``pumps/`` for what it runs."""

    CSS_PATH = ["styles/app.tcss", "styles/runs.tcss"]  # noqa: RUF012 - a default screen is not asked for its own
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = bindings(Scope.EVERYWHERE)

    def __init__(
        self,
        services: Services,
        *,
        opening: str | None = None,
        log: Path | None = None,
        theme: str = ANSI_THEME,
        terminal: Terminal | None = None,
        blocks: bool = False,
    ) -> None:
        # Not left to the theme: with NO_COLOR, Textual chooses its filter before it has our theme, and the one for true
        # colour turns a terminal's own colours into black on black.
        super().__init__(ansi_color=theme in ANSI_THEMES)
        self.services = services
        self.courier = Courier(services, self.post_message)
        self.board = Board(self.courier.explain)
        self.toasts = Toasts(self)
        self._runs = RunPump(services, self.post_message)
        self._system = SystemPump(services, self.post_message)
        folder = services.runs_folder
        watcher = [] if folder is None else [HintPump(folder, self._runs.hint, self.post_message)]
        self._pumps = (self._runs, self._system, self.courier, *watcher)
        self._terminal = terminal
        self._announcer = Announcer(
            services.announce,
            lambda text: self._driver and self._driver.write(text),
            lambda sentence: self.post_message(messages.SettingsMistaken(sentence)),
        )
        self._opening = opening
        self._first_log = log
        self.blocks = blocks
        """Draw with blocks, for fonts without braille."""
        for designed in THEMES:
            self.register_theme(designed)
        self.theme = theme

    def get_default_screen(self) -> Screen[None]:
        """The list of runs is the first screen; no empty one is drawn before it."""
        return RunsScreen()

    def on_mount(self) -> None:
        """Start reading."""
        if self._opening is not None:
            self.open_run(self._opening, self._first_log)
        if self._terminal is not None:
            watched = self._terminal
            watched.end_on_signals(self.exit)
            TerminalWatch(self.post_message, watched.gone, watched.overdue, watched.die).start()
        self.set_timer(_PAINT_SECONDS, self._start_pumps)

    def _start_pumps(self) -> None:
        """After the first paint: importing what reads would take the interpreter from what writes to the terminal."""
        for pump in self._pumps:
            pump.start()
        mistake = self.services.settings_mistake()
        if mistake:
            self.post_message(messages.SettingsMistaken(mistake))

    def on_unmount(self) -> None:
        """Stop reading; the runs do not notice."""
        for pump in self._pumps:
            pump.stop()

    # -- what the pumps bring

    @on(messages.SnapshotsReady)
    def _draw_runs(self, message: messages.SnapshotsReady) -> None:
        self._announcer.look(message.snapshots)
        self.board.snapshots, self.board.paused_groups = message.snapshots, message.paused_groups
        self._system.follow(message.snapshots)
        self.redraw()
        self.call_after_refresh(self._runs.drawn)

    @on(messages.SystemReady)
    def _draw_system(self, message: messages.SystemReady) -> None:
        shown = self.acting_screen
        if shown is not None and shown.can_draw:
            shown.show_system(message)

    @on(messages.LogGrew)
    def _draw_log(self, message: messages.LogGrew) -> None:
        shown = self.acting_screen
        if shown is not None and shown.can_draw:
            shown.show_log(message.run)
        self.call_after_refresh(self._runs.log_drawn)

    @on(messages.DiagnosisReady)
    def _draw_diagnosis(self, message: messages.DiagnosisReady) -> None:
        self.board.note_diagnosis(message)
        self.redraw()

    @on(messages.RequestSent)
    @on(messages.RequestAnswered)
    @on(messages.JobFailed)
    @on(messages.PumpFailed)
    @on(messages.SettingsMistaken)
    @on(messages.ProfileSaved)
    @on(messages.QueueChanged)
    @on(messages.RunRemoved)
    def _tell(self, message: Message) -> None:
        if isinstance(message, messages.RequestAnswered):
            self.board.note_answer(message)
            self.redraw()
        if isinstance(message, messages.SettingsMistaken) and not self.board.is_news(message):
            return
        text, severity = news(message)
        about: str | None = getattr(message, "run", None)
        shown = self.acting_screen
        self.toasts.say(self.board.named(about, shown.acting_on if shown else None) + text, severity, about)

    @on(messages.Launched)
    def _show_launched(self, message: messages.Launched) -> None:
        self.close_run()
        if message.runs > 1:
            self.say(f"{message.runs} runs are queued, one at a time on each accelerator")
        else:
            self.open_run(message.run)

    # -- what the screens ask for

    @property
    def acting_screen(self) -> ActingScreen | None:
        """The topmost screen with runs, under whatever dialog is open."""
        return next((item for item in reversed(self.screen_stack) if isinstance(item, ActingScreen)), None)

    def redraw(self) -> None:
        """Hand the newest pictures to the screen in view."""
        shown = self.acting_screen
        if shown is not None and shown.can_draw and self.board.snapshots is not None:
            shown.show_runs(self.board.snapshots)

    def look(self) -> None:
        """Have the pumps look at what the screen in view shows."""
        shown = self.acting_screen
        if shown is None or not shown.is_mounted:
            return
        self._runs.look_at(shown.focus_of_reading)
        self._system.want(shown.watched_processes, in_view=shown.shows_machine)

    def say(self, text: str, severity: Severity = "information") -> None:
        """Tell the person something in passing."""
        self.toasts.say(text, severity)

    def open_run(self, run: str, log: Path | None = None) -> None:
        """Show one run; its output at once where that is known."""
        from .screens.run import RunScreen

        self.push_screen(RunScreen(run, blocks=self.blocks, log=log))

    def close_run(self) -> None:
        """Back to the list of runs."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def launch(self, snapshot: RunSnapshot | None = None, remedy: Remedy | None = None) -> None:
        """Choose a profile and launch it; with a snapshot, change that run's launch (with a remedy) and restart it."""
        from .screens.launch import launch_screen

        try:
            self.push_screen(launch_screen(self.services.launcher(), snapshot, remedy))
        except (UsageError, OperationError) as error:
            self.say(f"{error.sentence} {error.hint}", "error")

    def action_help(self) -> None:
        """Show every key."""
        from .screens.dialogs import Help

        self.push_screen(Help())

    def action_leave(self) -> None:
        """End the screen."""
        self.exit()
