"""The Textual app: starts the workers, hands what they read to the screen in view, and changes screens.

What it adds to Textual's own App comes first, one class for each concern: the terminal, the keyboard, leaving.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import on
from textual.events import Event, Key, Resize
from textual.message import Message
from textual.screen import Screen

from ..core.model.errors import SettingsError
from . import messages
from .bindings import Scope, bindings, unbound
from .context import AppState, Context
from .graphics import Answers, listen, may_ask
from .painting import PaintedApp
from .screens.acting import ActingScreen
from .screens.runs import RunsScreen
from .terminal import Terminal
from .theme import ANSI_THEME, ANSI_THEMES, THEMES
from .title import Title
from .toasts import ANY_RUN, Toasts, Undo, answer_text, mistake_text
from .widgets.lines import LetterTaker
from .workers.ghost import GhostWorker
from .workers.hints import HintWorker
from .workers.requests import RequestWorker
from .workers.runs import RunWorker
from .workers.system import SystemWorker, TerminalWorker
from .workers.worker import Worker

if TYPE_CHECKING:
    from ..core.launching.cure import Cure
    from ..core.model.snapshot import RunSnapshot
    from .services import Services

_LATER_SECONDS = 1.0
"""Delay before starting the workers that neither the first frame nor the first keys need."""
_FIRST_READING_SECONDS = 0.1
"""How long the first frame waits for the runs; if there are many or the disk is slow, an empty list is drawn first."""
_PACKET_SECONDS = 0.02
"""Letters sent in one packet arrive within this time of each other."""


class TerminalApp(PaintedApp):
    """Handle what terminal and app exchange besides cells of text: alarms, and charts in pixels.

    The terminal is asked whether it can show pixels after a frame, and again when its cell size may have changed.
    """

    _answers: Answers | None = None

    def ask_for_pixels(self, environ: Mapping[str, str]) -> None:
        """Ask after the first frame, unless the environment shows that another terminal would answer."""
        if may_ask(environ):
            self._answers = Answers(lambda found: self.post_message(messages.GraphicsKnown(found)), environ)
            listen(self._answers)

    def on_mount(self) -> None:
        if self._answers is not None:
            self.call_after_refresh(self._ask)
            self.app_resume_signal.subscribe(self, lambda _: self._measure_again())

    def _ask(self) -> None:
        if self._answers is not None:
            self.write(self._answers.question())

    @on(Resize)
    def _measure_again(self) -> None:
        """Draw no pixels until the terminal has reported its new cell size."""
        if self.paint.graphics is not None:
            self._take_graphics(messages.GraphicsKnown(None))
            self.call_after_refresh(self._ask)

    @on(messages.GraphicsKnown)
    def _take_graphics(self, message: messages.GraphicsKnown) -> None:
        self.write(self.paint.take_graphics(message.graphics))
        self.redraw()

    @on(messages.TerminalNotified)
    def _notify_terminal(self, message: messages.TerminalNotified) -> None:
        self.write(message.sequences)

    def redraw(self) -> None:
        """Redraw what is in view."""

    def on_unmount(self) -> None:
        self.write(self.paint.take_graphics(None))


class KeyboardApp(TerminalApp):
    """Handles keys strictly in turn: each is looked up only when the one before it has done its work."""

    _waiting = 0
    """Letters that have arrived but have not been handled yet."""
    _hurried = False
    """True if the letter being handled arrived together with others."""

    def post_message(self, message: Message) -> bool:
        if isinstance(message, Key) and not message.is_forwarded and message.is_printable:
            self._waiting += 1
        return super().post_message(message)

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key) or event.is_forwarded:
            await super().on_event(event)
            return
        self._waiting = max(0, self._waiting - event.is_printable)
        if self.screen_stack:
            await self._take_key(event)
        self._hurried = self._waiting > 0

    async def _take_key(self, key: Key) -> None:
        """Give a key to whatever the preceding keys have opened, however fast they were typed.

        Textual sends a key to the widget that has the focus when it arrives, and looks up its binding once it has come
        back. A letter that was typed before a question could be read does not answer it.
        """
        opened: Any = self.screen  # the event below is private to Textual
        await opened._mounted_event.wait()
        self.app_focus = True
        focused: object = self.focused
        if isinstance(focused, LetterTaker) and key.is_printable and key.character:
            focused.take(key.character)
        elif key.is_printable and await self._too_early(key):
            return
        elif not (await self._check_bindings(key.key, priority=True) or await self._check_bindings(key.key)):
            (self.focused or self.screen)._forward_event(key)
            here = getattr(self.screen, "SCOPES", ())  # empty if a page or a question is open
            if here and self.focused is None and key.is_printable and not await self.hurried():
                self.post_message(messages.Toast(unbound(key.key, key.character or key.key, here)))

    async def _too_early(self, key: Key) -> bool:
        asked: float | None = getattr(self.screen, "asked_at", None)
        return asked is not None and (key.time < asked or await self.hurried())

    async def hurried(self) -> bool:
        """True if the letter being handled arrived in one piece with others, as in a paste: then it is no command."""
        if not self._hurried and not self._waiting:
            await asyncio.sleep(_PACKET_SECONDS)
        return self._hurried or self._waiting > 0


class LeavableApp(KeyboardApp):
    """Leave at once, or after a question if that would end something; show past messages."""

    state: AppState
    context: Context

    async def action_quit(self) -> None:
        """Leave; while a run is being moved, only after a question: leaving would end the move."""
        carriage = self.state.carriage
        if carriage is None or carriage.over:
            self.exit()
            return
        from .screens.dialogs import Confirm

        def answered(answer: str | None) -> None:
            if answer == "yes":
                carriage.cancel()
                self.exit()

        self.push_screen(Confirm(carriage.before_leaving), answered)

    def action_messages(self) -> None:
        """Show the messages of past toasts."""
        from .screens.said import Messages

        self.push_screen(Messages(tuple(self.context.toasts.said), self.context.services.clock()))


class MpstuiApp(LeavableApp):
    """The mpstui app: see ``screens/`` for what it shows and ``workers/`` for what it runs."""

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
        graphics: bool = False,
    ) -> None:
        """``blocks``: draw with blocks, for fonts without braille. ``graphics``: ask the terminal for pixels."""
        # Set here, not by the theme: with NO_COLOR, Textual chooses its filter before it knows our theme, and the
        # filter for true colour turns the terminal's own colours into black on black.
        super().__init__(ansi_color=theme in ANSI_THEMES)
        self._title = Title(services.environ)
        if graphics and theme not in ANSI_THEMES:
            self.ask_for_pixels(services.environ)
        self.services = services
        self._runs = RunWorker(services, self.post_message, lambda: self.paint.written)
        self._system = SystemWorker(services, self.post_message, lambda: self.state.snapshots)
        self._ghost = GhostWorker(services, self.post_message, lambda: self.state.snapshots)
        self._requests, self._moves, self._sends = (RequestWorker(services, self.post_message) for _ in range(3))
        folder = services.watched_folder
        watchers = [HintWorker(folder, self._runs.hint, self.post_message)] if folder is not None else []
        self._background = (self._runs, self._requests)
        self._later = (*watchers, self._system, self._ghost, self._moves, self._sends)
        self.state = AppState(self._requests.explain)
        self.context = Context(
            services=services,
            state=self.state,
            toasts=Toasts(self, covering=partial(_make_room, self), today=services.clock),
            undo=Undo(self),
            requests=self._requests,
            moves=self._moves,
            sends=self._sends,
            blocks=blocks,
            open_run=self.open_run,
            close_run=self.close_run,
            launch=self.launch,
            focus=self.focus_workers,
            redraw=self.redraw,
            hurried=self.hurried,
        )
        self._terminal = terminal
        self._opening = opening
        self._first_log = log
        for designed in THEMES:
            self.register_theme(designed)
        self.theme = theme

    def get_default_screen(self) -> Screen[None]:
        """Make the list of runs the first screen, so that no empty one is drawn before it."""
        return RunsScreen(self.context)

    def on_mount(self) -> None:
        if self._opening is not None:
            self.open_run(self._opening, log=self._first_log)
        if self._terminal is not None:
            self._terminal.end_on_signals(self.exit)
            TerminalWorker(self.post_message, self._terminal).start()
        # A list is read before its first frame: an empty frame first, then a pause for reading, took 40 ms longer and
        # 6 ms of processor time. A single run is read after it: its reader must know what is in view.
        if self._opening is None:
            self._runs.start()
            self._runs.has_read.wait(_FIRST_READING_SECONDS)
            self.call_after_refresh(self._requests.start)
        else:
            self.call_after_refresh(self._start, self._background)
        self.set_timer(_LATER_SECONDS, partial(self._start, self._later))

    def _start(self, workers: Iterable[Worker]) -> None:
        for worker in workers:
            worker.start()
        if workers is not self._later:
            return
        gc.freeze()  # nearly all objects made so far stay: no key has to wait while the collector scans them
        gc.enable()
        try:
            self.services.settings()
        except SettingsError as error:
            self.post_message(messages.SettingsMistaken(error.mistakes))

    def on_unmount(self) -> None:
        self.context.undo.leave()
        self.write(self._title.restored())
        for worker in (*self._background, *self._later):
            worker.stop()

    # -- what the workers bring

    @on(messages.SnapshotsReady)
    def _draw_runs(self, message: messages.SnapshotsReady) -> None:
        self.state.snapshots, self.state.paused_queues = message.snapshots, message.paused_queues
        self.state.troubles = message.troubles
        self.redraw()
        self.call_after_refresh(self._runs.drawn)

    @on(messages.SystemReady)
    @on(messages.GhostReady)
    def _draw_system(self, message: messages.SystemReady | messages.GhostReady) -> None:
        shown = self.acting_screen
        if shown is not None and shown.can_draw:
            shown.show_system(message) if isinstance(message, messages.SystemReady) else shown.show_ghost(message)

    @on(messages.LogGrew)
    def _draw_log(self, message: messages.LogGrew) -> None:
        shown = self.acting_screen
        if shown is not None and shown.can_draw:
            shown.show_log(message.run)
        self.call_after_refresh(self._runs.log_drawn)

    @on(messages.DiagnosisReady)
    def _draw_diagnosis(self, message: messages.DiagnosisReady) -> None:
        self.state.note_diagnosis(message)
        self.redraw()

    @on(messages.RequestAnswered)
    def _show_answer(self, message: messages.RequestAnswered) -> None:
        self.state.note_answer(message)
        self.redraw()
        shown = self.acting_screen
        if shown is not None and shown.can_draw:
            shown.show_answer(message)
        if message.alone or message.ack is None or not message.ack.ok:
            self._tell(messages.Toast(*answer_text(message), run=message.run))

    @on(messages.Toast)
    @on(messages.SettingsMistaken)
    def _tell(self, message: messages.Toast | messages.SettingsMistaken) -> None:
        if isinstance(message, messages.SettingsMistaken):
            if not self.state.is_new(message):
                return
            message = messages.Toast(mistake_text(message), "error")
        shown = self.acting_screen
        name = self.state.prefix(message.run, shown.acting_on if shown else None)
        self.context.say(name + message.text, message.severity, message.run)

    @on(messages.Launched)
    def _show_launched(self, message: messages.Launched) -> None:
        self.close_run()
        host, colon, run = message.run.rpartition(":")
        if colon and all(one.host != host for one in self.state.snapshots or ()):
            self.context.say(f"started on {host}: {run}; `mpstui --host {host}` shows it", about=message.run)
        elif message.runs > 1:
            self.context.say(f"{message.runs} runs queued, one at a time on each accelerator", about=message.run)
        else:
            self.open_run(message.run)

    # -- what the screens ask for

    @property
    def acting_screen(self) -> ActingScreen | None:
        """The topmost screen that shows runs, below any open dialog."""
        return next((item for item in reversed(self.screen_stack) if isinstance(item, ActingScreen)), None)

    def redraw(self) -> None:
        self.state.graphics = self.paint.graphics
        shown = self.acting_screen
        if shown is not None and shown.can_draw and self.state.snapshots is not None:
            shown.show_runs(self.state.snapshots)
            shown.catch_up()
            if not self.is_headless:
                self.write(self._title.change(self.state.snapshots, shown.place, time.monotonic()))

    def focus_workers(self) -> None:
        shown = self.acting_screen
        if shown is not None and shown.is_mounted:
            focus = shown.reading
            self._runs.focus_on(focus)
            self._system.sample_for(focus.sampled, in_view=focus.machine_in_view)
            self._ghost.follow(focus.sampled.run if focus.sampled is not None else None)

    def open_run(self, run: str, metric: str = "", log: Path | None = None) -> None:
        """Show one run, with ``metric`` in its chart if one is named; ``log`` is its output, if already known."""
        from .screens.run import RunScreen

        screen = RunScreen(self.context, run, log)
        screen.body.chart.expected = metric
        self.push_screen(screen)

    def close_run(self) -> None:
        """Return to the list with the run in view selected: otherwise the next key would act on another one."""
        left = self.acting_screen
        while len(self.screen_stack) > 1:
            self.pop_screen()
        runs = self.screen_stack[0]
        if isinstance(runs, RunsScreen) and left is not None and left is not runs and left.place != ANY_RUN:
            runs.table.select(left.place)

    def launch(self, snapshot: RunSnapshot | None = None, cure: Cure | None = None) -> None:
        """Choose a profile to launch; given a snapshot, edit that run's launch, perhaps by a cure, and restart it."""
        from .screens.opening import open_form, open_profiles

        if snapshot is None:
            open_profiles(self, self.context)
        else:
            open_form(self, self.context, lambda launcher: launcher.draft_of(snapshot, cure), snapshot)

    def action_undo(self) -> None:
        self.context.undo.take_back()

    def action_help(self) -> None:
        """List the keys, those of the screen in view first."""
        from .screens.help import Help

        self.push_screen(Help(getattr(self.screen, "SCOPES", ())))


def _make_room(app: MpstuiApp, lines: int) -> None:
    shown = app.acting_screen
    if shown is not None:
        shown.make_room(lines)
