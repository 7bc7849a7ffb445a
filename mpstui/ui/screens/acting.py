"""What every screen with a run in view can do: the action keys, their questions and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen

from ..asking import LABELS, NO_RUN, Question, meant, question, send
from ..bindings import Key
from ..painting import ExactCompositor
from ..workers import Focus

if TYPE_CHECKING:
    from ...core.diagnosis.model import Finding, Remedy
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
        if not key.needs:
            return True
        snapshot = self.acting_on
        if snapshot is None or not self._available(snapshot, meant(snapshot, key.needs)).ok:
            return False
        return key.action != "fix" or not self._no_fix(snapshot, self.mpstui.board.known_findings(snapshot))

    def key_labels(self) -> dict[str, str]:
        """Names in the footer that depend on the run."""
        snapshot = self.acting_on
        return {"act('pause')": "continue"} if snapshot is not None and snapshot.is_frozen else {}

    def action_act(self, action: str) -> None:
        """One of the action keys: refuse with the reason, ask, or do it."""
        selected = self.acting_on
        action = meant(selected, action) if selected is not None else action
        snapshot = self._able(action)
        if snapshot is None:
            return
        asked = question(snapshot, action, self._available(snapshot, action).why)
        if asked is None:
            self._go(snapshot, action)
            return
        from .dialogs import Confirm

        self.app.push_screen(Confirm(asked), lambda yes: self._go(snapshot, action) if yes else None)

    def action_fix(self) -> None:
        """Open the form of the run's launch with the diagnosis's remedy filled in."""
        snapshot = self.acting_on
        if snapshot is None:
            self.mpstui.say(self.no_run, "warning")
            return
        from ...core.present.states import needs_attention

        findings = self.mpstui.board.findings(snapshot) if needs_attention(snapshot) else ()
        found = self._available(snapshot, "edit_restart")
        why_not = self._no_fix(snapshot, findings) or ("" if found.ok else found.why)
        if why_not:
            self.mpstui.say(f"fix: {why_not}", "warning")
        elif findings:
            self._fix(snapshot, findings[0].remedy)

    @staticmethod
    def _no_fix(snapshot: RunSnapshot, findings: Sequence[Finding] | None) -> str:
        """Why there is nothing to apply to a run of which so much is known; empty where there is."""
        from ...core.present.states import needs_attention

        if not needs_attention(snapshot):
            return "it has not failed"
        if findings is None:
            return "the cause is still being looked for"
        return "" if findings and findings[0].can_be_cured else "no remedy is known that could be applied here"

    def _fix(self, snapshot: RunSnapshot, remedy: Remedy) -> None:
        """Open the form; a remedy that can do harm says so first."""
        if remedy.risk is None:
            self.mpstui.launch(snapshot, remedy)
            return
        from .dialogs import Confirm

        asked = Question("Apply a remedy that can do harm?", (remedy.text, remedy.risk), "fill in the form with it")
        self.app.push_screen(Confirm(asked), lambda yes: self.mpstui.launch(snapshot, remedy) if yes else None)

    def _able(self, action: str) -> RunSnapshot | None:
        """The run that an action means and can work for; else the reason is said."""
        snapshot = self.acting_on
        if snapshot is None:
            self.mpstui.say(self.no_run, "warning")
            return None
        found = self._available(snapshot, action)
        if not found.ok:
            self.mpstui.say(f"{LABELS[action]}: {found.why}", "warning")
        return snapshot if found.ok else None

    def _available(self, snapshot: RunSnapshot, action: str) -> Availability:
        return self.mpstui.services.availability(snapshot, action)

    def _go(self, snapshot: RunSnapshot, action: str) -> None:
        if action == "edit_restart":
            self.mpstui.launch(snapshot)
            return
        actions = self.mpstui.services.actions
        self.mpstui.courier.ask(snapshot, LABELS[action], lambda: send(actions, snapshot, action))
