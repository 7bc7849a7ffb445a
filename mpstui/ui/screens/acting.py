"""What every screen with a run in view can do: the action keys, their questions and refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen

from ...core.actions import ACTIONS, BY_ID, Action, Question, meant
from ..asking import NO_RUN
from ..bindings import Key
from ..widgets.lines import ExactCompositor
from ..workers import Focus

if TYPE_CHECKING:
    from ...core.diagnosis.model import Finding
    from ...core.model.snapshot import Availability, RunSnapshot
    from ..app import MpstuiApp
    from ..messages import SystemReady


class ActingScreen(Screen[None]):
    """A screen that shows runs and acts on one of them."""

    no_run = NO_RUN
    """Why a key that acts on a run cannot work where there is none."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = ExactCompositor()

    @property
    def mpstui(self) -> MpstuiApp:
        """The program, by its own type."""
        return cast("MpstuiApp", cast(Any, self.app))

    @property
    def can_draw(self) -> bool:
        """Whether the panels are there: not before they are mounted, not while they are taken down."""
        # `display` is false as soon as a widget is on its way out.
        return self.is_mounted and self.is_attached and self.display

    @property
    def is_current(self) -> bool:
        """Whether anything of this screen can be seen.

        Textual counts the screen under the topmost one in any case; a region of it that was dirty when it was covered
        then has the whole topmost screen painted again, for ever (15 times a second, 20 kB each).
        """
        return super().is_current and (self.app.screen is self or self.app.screen.is_modal)

    @property
    def acting_on(self) -> RunSnapshot | None:
        """The run that the action keys mean."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        """The run that this screen is about, for what is said in passing."""
        raise NotImplementedError

    @property
    def focus_of_reading(self) -> Focus:
        """What the pumps should look at closely while this screen is in view."""
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        """In view again: catch up."""
        self.mpstui.toasts.arrive(self.place)
        self.mpstui.redraw()
        self.mpstui.look()

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Draw new pictures."""
        raise NotImplementedError

    @property
    def watched_processes(self) -> RunSnapshot | None:
        """The run whose processes and machine are shown here, None where nobody looks at them."""
        return None

    @property
    def shows_machine(self) -> bool:
        """Whether the panel with the machine is in view."""
        return False

    def show_system(self, news: SystemReady) -> None:
        """Draw the machine, where this screen shows it."""

    def show_log(self, run: str) -> None:
        """Draw the new end of a run's log, where this screen shows it."""

    def usable(self, key: Key) -> bool:
        """Whether a key of the footer can work now."""
        if key.acts is None:
            return True
        snapshot = self.acting_on
        if snapshot is None or not self._allowed(snapshot, meant(snapshot, key.acts)).ok:
            return False
        return key.acts.id != "fix" or not self._no_fix(snapshot, self.mpstui.board.known_findings(snapshot))

    def key_labels(self) -> dict[str, str]:
        """Names in the footer that depend on the run."""
        snapshot = self.acting_on
        toggles = [action for action in ACTIONS if action.when_frozen]
        return {} if snapshot is None else {f"act('{one.id}')": meant(snapshot, one).name for one in toggles}

    def action_act(self, name: str) -> None:
        """One of the action keys: refuse with the reason, ask, or send its request."""
        action = self._meant(name)
        snapshot = self.able(action)
        if snapshot is not None:
            asked = action.question(snapshot, self._allowed(snapshot, action).why)
            send = lambda: self.mpstui.courier.ask(  # noqa: E731
                snapshot, action.name, lambda: self.mpstui.services.actions.send(snapshot, action.id)
            )
            self._confirm(asked, send)

    def _meant(self, name: str) -> Action:
        selected = self.acting_on
        return meant(selected, BY_ID[name]) if selected is not None else BY_ID[name]

    def _confirm(self, asked: Question | None, go: Callable[[], None]) -> None:
        """Go, after a yes where something is asked."""
        if asked is None:
            go()
            return
        from .dialogs import Confirm

        self.app.push_screen(Confirm(asked), lambda yes: go() if yes else None)

    def action_edit(self) -> None:
        """Open the form of the run's launch."""
        snapshot = self.able(BY_ID["edit_restart"])
        if snapshot is not None:
            self.mpstui.launch(snapshot)

    def action_fix(self) -> None:
        """Open that form with the diagnosis's remedy filled in; one that can do harm is asked about first."""
        snapshot = self.able(BY_ID["fix"])
        if snapshot is None:
            return
        from ...core.present.states import needs_attention

        findings = self.mpstui.board.findings(snapshot) if needs_attention(snapshot) else ()
        why_not = self._no_fix(snapshot, findings)
        if why_not:
            self.mpstui.say(f"fix: {why_not}", "warning")
        elif findings:
            remedy = findings[0].remedy
            asked = remedy.risk and Question(
                "Apply a remedy that can do harm?", (remedy.text, remedy.risk), "fill in the form with it"
            )
            self._confirm(asked or None, lambda: self.mpstui.launch(snapshot, remedy))

    @staticmethod
    def _no_fix(snapshot: RunSnapshot, findings: Sequence[Finding] | None) -> str:
        """Why there is nothing to apply to a run of which so much is known; empty where there is."""
        from ...core.present.states import needs_attention

        if not needs_attention(snapshot):
            return "it has not failed"
        if findings is None:
            return "still diagnosing"
        return "" if findings and findings[0].can_be_cured else "no remedy is known that could be applied here"

    def able(self, action: Action) -> RunSnapshot | None:
        """The run in view, where the action can work for it; else the reason is said."""
        snapshot = self.acting_on
        if snapshot is None:
            self.mpstui.say(self.no_run, "warning")
            return None
        found = self._allowed(snapshot, action)
        if not found.ok:
            self.mpstui.say(f"{action.name}: {found.why}", "warning")
        return snapshot if found.ok else None

    def _allowed(self, snapshot: RunSnapshot, action: Action) -> Availability:
        return self.mpstui.services.availability(snapshot, action.id)
