"""Two screens: one to choose a profile, one to change its arguments, see the exact command and start it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantBlur, DescendantFocus, Resize
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from ...core.actions import BY_ID
from ...core.model.errors import ReportedError
from ...core.model.snapshot import RunSnapshot
from ...core.present import failed_or_stuck
from ...core.runs.query import Findable
from ..bindings import Scope, bindings, footer_keys
from ..messages import Launched, Toast
from ..rows import Row, clean, cut, row
from ..widgets.earlier_runs import earlier_runs
from ..widgets.launching import Choice, Completion, FieldLabel, FieldNote, Fields, LaunchPreview
from ..widgets.lines import KeyLine, LinePanel
from ..widgets.profile_list import Opened, ProfileList
from ..widgets.search_line import FilterLine
from ..widgets.text_field import TextField
from ..workers.requests import aside, attend

if TYPE_CHECKING:
    from ...core.launching.drafts import Draft, Launcher
    from ...core.launching.form_fields import Field, Preview
    from ...core.profiles.library import ProfileEntry
    from ..context import Context


class _LaunchingScreen(Screen[None]):
    """What both screens have in common."""

    CSS_PATH = "../styles/launch.tcss"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    def on_screen_resume(self) -> None:
        """Remove the messages of the previous screen and those about runs, which do not concern a launch."""
        if self.is_current:  # otherwise the user only passed it on the way back
            self.context.toasts.arrive(id(self))

    def action_back(self) -> None:
        self.app.pop_screen()


class TitleLine(LinePanel):
    """One line that says what this screen is about."""

    def __init__(self, title: str, note: str = "") -> None:
        super().__init__()
        self._title, self._note = title, note

    def rows(self, width: int, height: int) -> list[Row]:
        title = cut(clean(self._title, 100), width - 2)
        return [row(" ", (title, "title"), ("   " + cut(clean(self._note, 200), width - len(title) - 5), "dim"))]


class ProfilesScreen(_LaunchingScreen):
    """The list of profiles."""

    SCOPES = (Scope.PROFILES,)
    BINDINGS = bindings(*SCOPES)
    AUTO_FOCUS = ""

    def __init__(self, context: Context, launcher: Launcher) -> None:
        super().__init__(context)
        self._launcher = launcher

    def compose(self) -> ComposeResult:
        yield TitleLine("launch", "choose a profile")
        yield FilterLine("part of a name, or of what it does", self._filter_changed, self.action_move)
        context = self.context
        yield ProfileList(self._launcher.entries(), context.state.snapshots or (), context.services.clock())
        yield KeyLine(footer_keys(Scope.PROFILES))

    def action_move(self, by: int) -> None:
        self.query_one(ProfileList).scroll_rows(by)

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def action_back(self) -> None:
        if not self.query_one(FilterLine).drop():
            super().action_back()

    def _filter_changed(self) -> None:
        line, shown, entries = self.query_one(FilterLine), self.query_one(ProfileList), self._launcher.entries()
        found = [one for one in entries if line.wanted is None or line.wanted.matches(_findable(one))]
        line.show(len(found), len(entries), "profiles")
        self.query_one(KeyLine).offer(footer_keys(Scope.FILTER if line.typing else Scope.PROFILES))
        shown.show(found)

    @on(Opened)
    def action_choose(self) -> None:
        entry = self.query_one(ProfileList).selected
        if entry is None:
            return
        if entry.error:
            # The message covers the line of the list that says so.
            mistake = clean(entry.error.splitlines()[0], 300)
            self.context.say(f"{clean(entry.name, 40)} cannot be launched: {mistake}", "warning")
            return
        from .opening import open_form

        open_form(self, self.context, lambda launcher: launcher.draft(entry.name))


def _findable(entry: ProfileEntry) -> Findable:
    return Findable((entry.name, entry.title, entry.origin, entry.description))


class LaunchForm(_LaunchingScreen):
    """The form for a launch or, given a snapshot, for a new attempt of that run."""

    SCOPES = (Scope.LAUNCH,)
    BINDINGS = bindings(*SCOPES)

    class Learned(Message):
        """The program has listed its arguments: show the form again with a field for each."""

        def __init__(self, draft: Draft) -> None:
            super().__init__()
            self.draft = draft

    def __init__(self, context: Context, draft: Draft, restarting: RunSnapshot | None = None) -> None:
        super().__init__(context)
        self._draft = draft
        self._asked: dict[str, str] | None = None
        """The values that another machine is being asked about."""
        self._answer: tuple[dict[str, str], Preview | ReportedError] | None = None
        """The last values it answered for, with what it would start, or why it cannot."""
        self._wish: tuple[Callable[[], object], str] | None = None
        """What to do as soon as it has answered, and the name of that action."""
        self._restarting = restarting
        can = restarting.available.get("restart") if restarting else None
        self._caution = can.why if can else ""
        """A caution for the user before the run is restarted."""
        self._fields = draft.fields
        self._timer: Any = None

    def compose(self) -> ComposeResult:
        verb = BY_ID["edit_restart"].name if self._restarting else "launch"
        cost = BY_ID["restart"].cost(self._restarting, self._caution) if self._restarting else ""
        yield TitleLine(f"{verb} · {self._draft.title}", cost or self._draft.description.strip().partition("\n")[0])
        with Horizontal(id="form"):
            with Fields(id="fields"):
                for place, field in enumerate(self._fields):
                    yield from self._field(place, field)
            yield LaunchPreview(self._earlier)
        can = self._can_rehearse()
        yield KeyLine([key for key in footer_keys(Scope.LAUNCH) if can or key.action != "rehearse"])

    def _field(self, place: int, field: Field) -> Iterator[Widget]:
        with Horizontal(classes="field", id=f"field-{place}") as line:
            line.display = self._is_there(field, {one.key: one.value for one in self._fields})
            yield FieldLabel(field.label)
            if field.choices:
                yield Choice(field.value, field.choices, id=f"value-{place}")
            else:
                completion = Completion(lambda text: aside(self._draft.completed, field.key, text))
                hint = f"({field.hint})" if field.hint else ""  # in few colours nothing else marks it as no value
                yield TextField(field.value, hint, suggester=completion, compact=True, id=f"value-{place}")
        note = FieldNote(id=f"note-{place}")
        note.display = False
        yield note

    @staticmethod
    def _is_there(field: Field, values: Mapping[str, str]) -> bool:
        return field.when is None or values[field.when[0]] in field.when[1]

    @on(DescendantFocus)
    @on(DescendantBlur)
    def _mark_label(self) -> None:
        for label in self.query(FieldLabel):
            label.repaint()

    def on_mount(self) -> None:
        self._preview()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= 100, "-wide")
        self.set_class(event.size.width < 45, "-narrow")

    @property
    def values(self) -> dict[str, str]:
        """The values of the form, by field key."""
        found = [self.query_one(f"#value-{place}") for place in range(len(self._fields))]
        values = [widget.value for widget in found if isinstance(widget, (Input, Choice))]
        return {field.key: value for field, value in zip(self._fields, values, strict=True)}

    @on(Input.Changed)
    @on(Choice.Changed)
    def _changed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        if self._wish is not None and self._asked != self.values:
            self._wish = None
            self.context.say("Not started: a field was changed before the machine answered.", "warning")
        self._timer = self.set_timer(0.15, self._preview)
        values = self.values
        for place, (label, field) in enumerate(zip(self.query(FieldLabel), self._fields, strict=True)):
            label.changed = values[field.key] != field.value
            label.repaint()
            self.query_one(f"#field-{place}").display = self._is_there(field, values)

    def _preview(self) -> bool:
        """Show what the values would start; False if one is invalid, or another machine has not answered yet."""
        values = self.values
        try:
            preview = self._draft.preview(values)
            if self._answer is not None and self._answer[0] == values:
                if isinstance(self._answer[1], ReportedError):
                    raise self._answer[1]
                preview = self._answer[1]
        except ReportedError as error:
            self._mark(error.field, " · ".join(part for part in (error.sentence, error.hint) if part))
            self.query_one(LaunchPreview).show(None, error)
            return False
        self._mark(None, "")
        self.query_one(LaunchPreview).show(preview)
        if preview.is_asked_for:
            self._examine(values)
            return False
        return True

    def _examine(self, values: dict[str, str]) -> None:
        """Ask the other machine, one question at a time."""
        if self._asked is None:
            self._asked = values
            attend(self, self._answered(values))

    async def _answered(self, values: dict[str, str]) -> None:
        try:
            self._answer = values, await aside(self._draft.examine, values)
        except ReportedError as error:
            self._answer = values, error
        self._asked, (then, what) = None, self._wish or (None, "")
        known = self._preview()
        if self._asked is None:
            self._wish = None
            if then is not None and known and self.is_current:
                then()
            elif then is not None:
                self.context.say(f"Not {what}: correct what is marked ✗.", "warning")

    def _once_known(self, then: Callable[[], object], what: str) -> None:
        """Do something with what the values would start, once that is known; not at all if a value is invalid."""
        if self._preview():
            then()
        elif self._asked is not None:
            self._wish = then, what
            self.context.say("Asking the machine what it would start; this continues with its answer.")
        else:
            self.context.say(f"Not {what}: correct what is marked ✗.", "warning")

    def on_unmount(self) -> None:
        self.context.sends.let_go(self._draft.close)

    def _mark(self, key: str | None, text: str) -> None:
        for place, field in enumerate(self._fields):
            note = self.query_one(f"#note-{place}", FieldNote)
            wrong = field.key == key
            if wrong or note.display:
                note.tell(text if wrong else "")

    def action_all_arguments(self) -> None:
        """Ask the program for its arguments, and show the form again with a field for each."""

        def ask() -> None:
            values, draft = self.values, self._draft
            self.context.say("Asking the program for its arguments…")
            learn = lambda: self.Learned(draft.asking_the_program(values))  # noqa: E731
            self.context.requests.do("arguments", learn, self.post_message)

        self._once_known(ask, "asked")

    @on(Learned)
    def _offer_arguments(self, message: Learned) -> None:
        if self.is_current:
            self.app.switch_screen(LaunchForm(self.context, message.draft, self._restarting))

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.focus_next()

    def _earlier(self, profile: str, width: int, height: int) -> list[Row]:
        return earlier_runs(
            self.context.state.snapshots or (), profile, self.context.services.clock(), width, height, margin=1
        )

    def action_scroll_preview(self, by: int) -> None:
        self.query_one(LaunchPreview).scroll_rows(by)

    def action_start(self, *, rehearse: bool = False) -> None:
        if self._answer is not None and isinstance(self._answer[1], ReportedError):
            self._answer = None  # it may be reachable by now
        self._once_known(partial(self._start, rehearse), "started")

    def _start(self, rehearse: bool) -> None:
        values, draft, restarting = self.values, self._draft, self._restarting
        if restarting is None:
            self._launch(values)
            return
        name = "rehearsal" if rehearse else BY_ID["edit_restart"].name

        def restart(answer: str | None = "yes") -> None:
            if answer == "yes":
                ask = lambda: draft.restart(restarting, values, rehearse=rehearse)  # noqa: E731
                self.context.requests.ask(restarting, name, ask)
                self.action_back()

        now = next((one for one in self.context.state.snapshots or () if one.run == restarting.run), restarting)
        asked = BY_ID["restart"].question(now, self._caution) if now.state.active else None
        if asked is None:
            restart()
        else:
            from .dialogs import Confirm

            self.app.push_screen(Confirm(asked), restart)

    def _launch(self, values: dict[str, str]) -> None:
        """Start it; ask first if there are several runs, saying how long they take, or if something is to be sent."""
        draft, shown = self._draft, self.query_one(LaunchPreview)
        runs, preview = shown.runs, shown.preview

        def launch(answer: str | None = "yes") -> None:
            if answer == "yes" and preview is not None and preview.sends:
                from .carrying import send

                send(self.context, self.app, draft, values, runs, preview.host or "")
            elif answer == "yes":
                elsewhere = preview is not None and preview.host is not None
                worker = self.context.sends if elsewhere else self.context.requests
                self.context.say(f"Starting {runs} runs…" if runs > 1 else "Starting…")
                worker.do("launch", lambda: Launched(draft.launch(values), runs))

        if preview is None or (runs == 1 and not preview.sends):
            launch()
            return
        from ...core.runs.expected import expected
        from .dialogs import Confirm, question_of_launch

        known = expected(preview.profile, preview.epochs, self.context.state.snapshots or ())
        self.app.push_screen(Confirm(question_of_launch(preview, known)), launch)

    def _can_rehearse(self) -> bool:
        """True if there is a failed attempt to compare with."""
        return self._restarting is not None and failed_or_stuck(self._restarting)

    def action_rehearse(self) -> None:
        """Try it for a few steps, without touching the run."""
        if self._can_rehearse():
            self.action_start(rehearse=True)
        else:
            self.context.say("Nothing to rehearse against: no attempt has failed.", "warning")

    def action_save_profile(self) -> None:
        """Ask for a name, and save the values as a profile under it."""
        from .dialogs import Prompt

        prompt = Prompt("name of your new profile")
        self._once_known(lambda: self.app.push_screen(prompt, self._save), "saved")

    def _save(self, name: str | None) -> None:
        if name and name.strip():
            values, draft, chosen = self.values, self._draft, name.strip()
            self.context.requests.do(
                "save profile", lambda: Toast(f"saved as {clean(str(draft.save(values, chosen)), 300)}")
            )
