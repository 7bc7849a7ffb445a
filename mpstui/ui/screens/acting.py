"""What every screen that shows runs can do: the action keys, their questions and refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual import on

from ...core import present as shown
from ...core.actions import ACTIONS, BY_ID, Action, Question, RunFacts, pasted
from ...core.model.errors import OperationError
from ...core.present import failed_or_stuck
from ..bindings import Key
from ..context import allowed
from ..messages import DetailsRead, RemovalExamined, RunsLookedInto, Toast
from ..rows import clean
from ..toasts import ANY_RUN
from ..workers.runs import Focus
from .pictures import PictureScreen

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..context import Context
    from ..messages import GhostReady, RequestAnswered, SystemReady
    from .palette import Entry


_HELD = ("stop", "restart")
"""Requests that can be undone for a moment if no question was asked; a kill is carried out at once."""


class ActingScreen(PictureScreen):
    """A screen that shows runs and acts on the selected one, or on all marked ones."""

    no_run = "no run is selected: press n to launch one"
    """Message for a key that acts on a run while there is none."""

    def __init__(self, context: Context, place: str = ANY_RUN) -> None:
        super().__init__()
        self.context = context
        self.place = place
        """What this screen is about, used for its toasts: a run id, or ``ANY_RUN``."""
        self._pressed_early: tuple[str, Callable[[], None]] | None = None
        """The run whose key was pressed before it was read, and what the key does."""
        self._refill: Callable[[], None] = lambda: None  # makes an open palette show what is known by now

    @property
    def can_draw(self) -> bool:
        """True if the panels exist: they are mounted, and not being removed."""
        # `display` turns false as soon as removal of a widget begins.
        return self.is_mounted and self.is_attached and self.display

    @property
    def is_current(self) -> bool:
        """True if any part of this screen is visible.

        Textual always includes the screen below the topmost one. If one of its regions was dirty when it was covered,
        the whole topmost screen would be repainted for ever (15 times a second, 20 kB each).
        """
        return super().is_current and (self.app.screen is self or self.app.screen.is_modal)

    @property
    def acting_on(self) -> RunSnapshot | None:
        """The run that the action keys act on."""
        raise NotImplementedError

    @property
    def targets(self) -> Sequence[RunSnapshot]:
        """All runs that the action keys act on: the one in view, or all that are marked."""
        return () if self.acting_on is None else (self.acting_on,)

    @property
    def beside(self) -> Sequence[str]:
        """Sentences to add to a question about several runs."""
        return ()

    @property
    def reading(self) -> Focus:
        """What the workers should read closely while this screen is in view."""
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        self.context.toasts.arrive(self.place)
        self.context.redraw()
        self.context.focus()

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Draw the new snapshots."""
        raise NotImplementedError

    def show_system(self, message: SystemReady) -> None:
        """Draw the machine, if this screen shows it."""

    def show_ghost(self, message: GhostReady) -> None:
        """Draw the best earlier run, if this screen shows it."""

    def show_log(self, run: str) -> None:
        """Draw the new end of a run's log, if this screen shows it."""

    def show_answer(self, message: RequestAnswered) -> None:
        """Show the result of a request, if this screen has a place for it."""

    # -- keys that act on a run

    def usable(self, key: Key) -> bool:
        """True if a key of the footer can work now and would change something."""
        if key.acts is None:
            return True
        if len(self.targets) > 1:
            takes_several = key.acts.id == "remove" or not key.acts.screen_action
            return takes_several and any(not _refusal(one, meant(one, key.acts)) for one in self.targets)
        snapshot = next(iter(self.targets), None)
        if snapshot is None or not allowed(snapshot, meant(snapshot, key.acts)).ok:
            return False
        if key.acts.id == "restart_cpu" and failed_or_stuck(snapshot):
            found = self.context.state.known_findings(snapshot)
            return found is None or any(finding.restart_on_cpu_helps for finding in found)
        return key.acts.id != "fix" or not self._why_no_fix(snapshot)

    def key_labels(self) -> dict[str, str]:
        """Return the key names in the footer that depend on the run."""
        snapshot = next(iter(self.targets), None)
        toggles = [action for action in ACTIONS if action.when_frozen]
        if snapshot is None:
            return {}
        tried = self.context.state.rehearsed(snapshot)
        proven = {"fix": "go on"} if tried is not None and tried.proven else {}
        return {f"act('{one.id}')": meant(snapshot, one).name for one in toggles} | proven

    def able(self, action: Action, again: Callable[[], None]) -> RunSnapshot | None:
        """Return the run to act on if the action is possible; otherwise say why it is not.

        Only the worker that reads runs can tell. A key pressed before it has is pressed ``again`` once it has.
        """
        snapshot = next(iter(self.targets), None)
        if snapshot is None:
            self.context.say(self.no_run, "warning")
            return None
        if len(self.targets) > 1:
            self.context.say(f"{action.name}: works on one run, not on {len(self.targets)}", "warning")
            return None
        if not snapshot.available:
            self._pressed_early = snapshot.run, again
            return None
        found = allowed(snapshot, action)
        if not found.ok:
            self.context.say(f"{action.name}: {found.why}", "warning")
        return snapshot if found.ok else None

    def catch_up(self) -> None:
        """Do what a key asked for too early, unless another run is in view by now; update an open palette."""
        self._refill()
        if self._pressed_early is not None:
            (run, again), snapshot = self._pressed_early, next(iter(self.targets), None)
            if snapshot is None or snapshot.run != run:
                self._pressed_early = None
            elif snapshot.available and not self.context.state.is_diagnosing(snapshot):
                self._pressed_early = None
                again()

    def why_not(self, key: Key) -> str:
        """Return why a key cannot work now, or an empty string."""
        action, snapshot = key.acts, self.acting_on
        if action is None:
            return ""
        if snapshot is None:
            return self.no_run
        found = allowed(snapshot, meant(snapshot, action))
        if not found.ok:
            return found.why
        return self._why_no_fix(snapshot) if action.id == "fix" else ""

    def places(self) -> Iterable[Entry]:
        """Return what the palette offers on this screen."""
        return ()

    def action_palette(self) -> None:
        from .copying import entries as copies
        from .palette import entries, open_palette, profiles_for

        profiles = profiles_for(self)

        def known() -> Iterable[Entry]:
            run = self.acting_on
            written = (one for one in copies(self, run, self.metric_in_view) if one.writes) if run is not None else ()
            return (*entries(self, profiles), *written)

        self._refill = open_palette(self, known, "what to do: an action, a run, a metric, a profile, a panel")

    @property
    def metric_in_view(self) -> str:
        """The metric to use if none is named."""
        return "loss"

    def action_copy(self) -> None:
        """Offer what can be copied from the run, or written to a file."""
        from .copying import entries as copies

        if (run := self.acting_on) is None:
            self.context.say(self.no_run)
            return
        self.choose_copy(lambda: copies(self, self.acting_on or run, self.metric_in_view))

    def choose_copy(self, known: Callable[[], Iterable[Entry]]) -> None:
        """Let the user choose one of these entries."""
        from .palette import open_palette

        self._refill = open_palette(self, known, "what to copy, or to write to a file")

    async def action_act(self, name: str) -> None:
        """Carry out an action: refuse with the reason, ask, or send the request."""
        hurried = await self.context.hurried()
        self._act(name, hurried=hurried)

    def _act(self, name: str, *, hurried: bool) -> None:
        targets = self.targets
        action = meant(targets[0], BY_ID[name]) if targets else BY_ID[name]
        if len(targets) > 1:
            look = lambda: RunsLookedInto(action, self.context.services.looked_into(targets), hurried)  # noqa: E731
            self.context.requests.do(action.name, look, self.post_message)
            return
        snapshot = self.able(action, partial(self._act, name, hurried=hurried))
        if snapshot is not None:
            send = lambda: self.context.services.actions.send(snapshot, action.id)  # noqa: E731
            caution = allowed(snapshot, action).why
            named = self.named(snapshot)
            asked = action.question(named, caution) or (pasted(action, named) if hurried else None)
            told = "" if asked else action.cost(snapshot, caution)
            go = lambda: self.context.requests.ask(snapshot, action.name, send, told)  # noqa: E731
            undo, key = self.context.undo, (snapshot.run, action.id)
            if asked is None and action.request in _HELD:
                undo.hold(key, action.name, go, send, snapshot.run)
            else:
                undo.settle()
                self.confirm(asked, go)

    @on(RunsLookedInto)
    def _ask_for_several(self, message: RunsLookedInto) -> None:
        """Act on all runs that can do it, after one question if trainings would end or the key was pasted."""
        from .dialogs import MOST_NAMED, question_for_several

        action, send = message.action, self.context.services.actions.send
        able = [one for one in message.runs if allowed(one, action).ok]
        reasons = Counter(allowed(one, action).why for one in message.runs if not allowed(one, action).ok)
        refused = [f"{count} cannot: {why}." for why, count in reasons.items()]
        if not able:
            self.context.say(
                f"{action.name}: none of the {len(message.runs)} runs can: {next(iter(reasons))}", "warning"
            )
            return
        ends = message.ask or action.request in ("stop", "kill", "restart")
        named = [*map(self.named, able[:MOST_NAMED]), *able[MOST_NAMED:]]
        asked = question_for_several(action, named, [*refused, *self.beside]) if ends else None
        each = [(one, partial(send, one, action.id)) for one in able]
        self.confirm(asked, lambda: self.context.requests.ask_all(action.name, each))

    def named(self, snapshot: RunSnapshot) -> RunSnapshot:
        """Return the run as a question names it: if others share its name, with what distinguishes it."""
        known = self.context.state.snapshots or ()
        if all(one.run == snapshot.run or one.name != snapshot.name for one in known):
            return snapshot
        from ...core.runs.comparison import full_name

        return replace(snapshot, name=full_name(snapshot, known))

    def confirm(self, asked: Question | None, go: Callable[[], None]) -> None:
        """Go ahead, after a yes if there is a question."""
        if asked is None:
            go()
            return
        from .dialogs import Confirm

        self.app.push_screen(Confirm(asked), lambda answer: go() if answer == "yes" else None)

    def action_edit(self) -> None:
        snapshot = self.able(BY_ID["edit_restart"], self.action_edit)
        if snapshot is not None:
            self.context.launch(snapshot, None)

    def action_fix(self) -> None:
        """Open the launch form with the diagnosis's remedy filled in; if it could do harm, ask first.

        What a rehearsal has proven to work is started for real right away.
        """
        snapshot = self.able(BY_ID["fix"], self.action_fix)
        if snapshot is None:
            return
        if failed_or_stuck(snapshot) and self.context.state.findings(snapshot) is None:
            self._pressed_early = snapshot.run, self.action_fix
            self.context.say("fix: reading the log …")
            return
        cure, tried = self.context.state.cure(snapshot), self.context.state.rehearsed(snapshot)
        if why_not := self._why_no_fix(snapshot):
            self.context.say(f"fix: {why_not}", "warning")
            return
        if cure is None or (tried is not None and tried.proven):
            go_on = lambda: self.context.services.actions.go_on(snapshot)  # noqa: E731
            restart, caution = BY_ID["restart"], allowed(snapshot, BY_ID["restart"]).why
            cost = restart.cost(snapshot, caution)
            asked = restart.question(self.named(snapshot), caution) if snapshot.state.active else None
            self.confirm(asked, lambda: self.context.requests.ask(snapshot, restart.name, go_on, cost))
            return
        lines = (cure.finding.remedy.text, cure.risk or "")
        asked = Question("Apply a remedy that can do harm?", lines, "fill in the form with it") if lines[1] else None
        self.confirm(asked, lambda: self.context.launch(snapshot, cure))

    def _why_no_fix(self, snapshot: RunSnapshot) -> str:
        """Return why there is no remedy to apply, as far as is known yet, or an empty string."""
        if not failed_or_stuck(snapshot):
            return "it has not failed"
        if (found := self.context.state.known_findings(snapshot)) is None:
            return "its log is still being read"
        cure, tried = self.context.state.cure(snapshot), self.context.state.rehearsed(snapshot)
        if tried is not None and tried.proven:
            return ""
        if cure is None:
            return "no change of the launch helps: its card says what does" if found else "no fix is known for this"
        return "" if cure.works else cure.sentence

    def action_info(self) -> None:
        """Read what is known about the run besides its numbers, then show it."""
        snapshot = self.acting_on
        if snapshot is None:
            self.context.say(self.no_run)
            return
        read = lambda: DetailsRead(snapshot.name, self.context.services.details(snapshot))  # noqa: E731
        self.context.requests.do("info", read, self.post_message)

    @on(DetailsRead)
    def _show_details(self, message: DetailsRead) -> None:
        from .info import Info

        if self.app.screen is self:
            self.app.push_screen(Info(message.name, message.sections))

    def action_remove(self) -> None:
        """Find out what removing the runs would delete, then ask."""
        action, services, targets = BY_ID["remove"], self.context.services, self.targets
        if len(targets) < 2 and self.able(action, self.action_remove) is None:
            return

        def examined() -> RemovalExamined:
            found, refused = [], []
            for snapshot in targets:
                try:
                    found.append((snapshot, services.examine_removal(snapshot)))
                except OperationError as error:
                    if len(targets) < 2:
                        raise
                    refused.append(f"{clean(self.named(snapshot).name, 60)} stays: {error.sentence}.")
            if not found:
                raise OperationError(f"none of the {len(targets)} runs can be removed", refused[0])
            named = [replace(one, name=self.named(snapshot).name) for snapshot, one in found]
            return RemovalExamined([snapshot for snapshot, _ in found], named, refused)

        self.context.requests.do(action.name, examined, self.post_message)

    @on(RemovalExamined)
    def _ask_removal(self, message: RemovalExamined) -> None:
        from .dialogs import Answer, Confirm, removal_of_several, removal_question

        runs, found, services = message.snapshots, message.found, self.context.services

        def remove(*, keep: bool) -> Toast:
            done = [services.remove(one, keep_checkpoints=keep) for one in runs]
            what = clean(found[0].name, 60) if len(runs) == 1 else f"{len(runs)} runs"
            freed = [one.freed_bytes for one in done if one.freed_bytes is not None]
            text = f"removed {what}" + (f", freed {shown.size(sum(freed))}" if len(freed) == len(done) else "")
            kept = next((one.kept for one in done if one.kept), None)
            text += f"; checkpoints: {clean(str(kept if len(runs) == 1 else kept.parent), 300)}" if kept else ""
            left = next((one.left for one in done if one.left), None)
            return Toast(f"{text}; {clean(left, 300)}", "warning") if left else Toast(text)

        def answered(answer: Answer | None) -> None:
            if answer in ("yes", "keep"):
                if self.place != ANY_RUN:
                    self.context.close_run()
                self.context.requests.do(BY_ID["remove"].name, partial(remove, keep=answer == "keep"))

        alone = len(found) == 1 and not message.refused
        refused = [*message.refused, *self.beside]
        asked = removal_question(found[0], services.clock()) if alone else removal_of_several(found, refused)
        self.app.push_screen(Confirm(asked), answered)


def meant(snapshot: RunSnapshot, action: Action) -> Action:
    """Return the action that a key stands for on this run: one key both pauses and continues."""
    return BY_ID[action.when_frozen] if action.when_frozen and snapshot.is_frozen else action


def _refusal(snapshot: RunSnapshot, action: Action) -> str:
    """The reason for the footer; for a run that is not read closely, as far as its state tells."""
    found = snapshot.available.get(action.id)
    return action.refusal(snapshot, RunFacts()) if found is None else "" if found.ok else found.why
