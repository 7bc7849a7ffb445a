"""The list of runs, with a preview of the selected one if there is room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from textual import on
from textual.app import ComposeResult
from textual.events import Resize

from ...core.actions import BY_ID
from ...core.model.queue_place import ordinal
from ...core.present import needs_attention, needs_explaining
from ..bindings import Key, Scope, bindings, footer_keys
from ..messages import MoveExamined, Toast
from ..rows import clean
from ..widgets.lines import KeyLine
from ..widgets.peek import Peek, next_in, peek_height
from ..widgets.run_list import RunTable, TopLine
from ..widgets.search_line import FilterLine
from ..workers.runs import Focus
from .arranging import ArrangingScreen
from .labelling import Label, edit_label

if TYPE_CHECKING:
    from ...core.model.queue_place import QueuePlace
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.listing import Group
    from ..context import Context
    from ..messages import SystemReady
    from .palette import Entry

_SCOPES = (Scope.RUNS, Scope.ACTIONS, Scope.QUEUE)
_FOOTER = footer_keys(*_SCOPES, Scope.EVERYWHERE)
_AROUND = 4
"""Lines of the screen that are not runs: the top line, the heading, a blank one, the footer."""
_AGE_SECONDS = 30.0
"""How often the ages in the list are updated."""
_NEIGHBOURS = 3
"""How many runs above and below the selected one are also made ready for the action keys."""


class RunsScreen(ArrangingScreen):
    """The first screen."""

    SCOPES = (*_SCOPES, Scope.FILTER)
    BINDINGS = bindings(*_SCOPES)
    AUTO_FOCUS = ""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.table = RunTable()

    def compose(self) -> ComposeResult:
        yield TopLine()
        hint = "name, state, profile, tag, lr>=0.01, val_loss<0.2, today, -word"
        yield FilterLine(hint, self._filter_changed, self.action_move)
        yield self.table
        peek = Peek()
        peek.take_lines(0)
        yield peek
        yield KeyLine(_FOOTER, self.usable)

    @property
    def acting_on(self) -> RunSnapshot | None:
        line = self.table.line
        return line.run if line is not None else None

    @property
    def no_run(self) -> str:  # type: ignore[override]
        """A group is not a run; and before the first reading it is unknown whether there are any runs."""
        if self.table.unread:
            return "the runs are still being read: press again in a moment"
        return "a group of runs is selected: enter opens it" if self.table.line is not None else super().no_run

    @property
    def targets(self) -> Sequence[RunSnapshot]:
        """The marked runs, even those that a filter hides; without marks, the selected run or its whole group."""
        marked, group = self.table.marked, self._selected_group
        if marked:
            return [one for one in self.context.state.snapshots or () if one.run in marked]
        return list(group.runs) if group is not None else super().targets

    @property
    def reading(self) -> Focus:
        """The selected run, without its log; or the only marked one, which the keys act on."""
        place, selected = self.table.index or 0, self.acting_on
        around = self.table.lines[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS + 1]
        listed = (*(line.run.run for line in around if line.run is not None), *self.table.marked[:1])
        return Focus(selected.run if selected is not None else None, listed=listed, compared=self._drawn_together)

    @property
    def _drawn_together(self) -> tuple[str, ...]:
        """The runs of the selected group whose curves are drawn below the list."""
        group = self._selected_group
        if group is None or not self.query_one(Peek).display:
            return ()
        from ..widgets.group_peek import chosen

        return tuple(one.run for one in chosen(group))

    @property
    def _selected_group(self) -> Group | None:
        """The group whose heading is selected; None if a single run is selected, even one in a group."""
        line = self.table.line
        return line.group if line is not None and line.run is None else None

    def usable(self, key: Key) -> bool:
        """True if a key can work: opening needs a run, comparing needs marks; a paused queue can be resumed."""
        if key.acts is BY_ID["queue_pause"] and self._queue is None and self.context.state.paused_queues:
            return True
        if key.action in ("filter", "columns") or key.action.startswith("sort("):
            return bool(self.context.state.snapshots)
        if key.action == "compare":
            return len(self.table.snapshots) > 1
        if key.action == "open" and self.table.folds:
            return True
        needs_run = ("open", "mark", "mark_all", "info", "copy", "carry")
        on_a_run = key.action in needs_run or key.action.startswith("label(")
        return super().usable(key) and (not on_a_run or self.acting_on is not None)

    def key_labels(self) -> dict[str, str]:
        paused = self._queue.paused if self._queue is not None else bool(self.context.state.paused_queues)
        fold = {"open": self.table.folds} if self.table.folds else {}
        return super().key_labels() | fold | ({"pause_queue": "resume queue"} if paused else {})

    # -- drawing

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        first = self.table.unread
        self._show_matching(snapshots)
        if first:
            self.context.focus()

    def _show_matching(self, snapshots: Sequence[RunSnapshot]) -> None:
        line, found = self.query_one(FilterLine), snapshots
        if wanted := line.wanted:
            from ...core.runs.query import findable

            found = [one for one in snapshots if wanted.matches(findable(one))]
        line.show(len(found), len(snapshots), "runs")
        if self.table.unread:
            self.table.want(self.context.services.list_view(), chosen=False)
            self.table.program = self.context.services.likely_program() if not snapshots else self.table.program
        self.table.show(found, snapshots, self.context.services.clock())
        self._place_peek()
        self.show_marks(snapshots)
        self.show_selected()

    def _filter_changed(self) -> None:
        typing = self.query_one(FilterLine).typing
        self.query_one(KeyLine).offer(footer_keys(Scope.FILTER) if typing else _FOOTER)
        self._show_matching(self.context.state.snapshots or ())

    def _grow_older(self) -> None:
        """Update how long ago runs have ended: nothing else shows that time passes."""
        if self.can_draw and self.context.state.snapshots:
            self._show_matching(self.context.state.snapshots)

    @on(RunTable.Rearranged)
    def _remember_view(self) -> None:
        view, services = self.table.view, self.context.services
        self.show_marks(self.context.state.snapshots or ())
        self._place_peek()
        self.show_selected()

        def keep() -> RunTable.Rearranged:
            services.keep_list_view(view)
            return RunTable.Rearranged()

        self.context.requests.do("list", keep, tell=lambda kept: None)

    def show_system(self, message: SystemReady) -> None:
        line = self.query_one(TopLine)
        line.past = message.past
        line.repaint()

    @on(RunTable.Selected)
    def _selected(self) -> None:
        self.context.focus()
        self.show_selected()

    def show_selected(self) -> None:
        selected, peek = self.acting_on, self.query_one(Peek)
        fails = selected is not None and peek.display and needs_explaining(selected)
        failure = self.context.state.failure(selected) if selected is not None and fails else None
        group = self._selected_group
        waiting = selected if group is None else next_in(group)
        waits = waiting is not None and waiting.queue is not None and peek.display
        known = self.context.state.snapshots or () if waits else ()
        like = tuple(one for one in known if waiting is not None and one.profile == waiting.profile)
        peek.show(selected, failure, group, like)
        self.query_one(KeyLine).name_keys(self.key_labels())

    def on_mount(self) -> None:
        self.set_interval(_AGE_SECONDS, self._grow_older)

    def on_resize(self, event: Resize) -> None:
        self._place_peek()

    def _place_peek(self) -> None:
        """Give the preview what the list leaves, except while a filter is typed: nothing should jump then."""
        peek, line = self.query_one(Peek), self.query_one(FilterLine)
        if line.typing and peek.display:
            return
        width, height = self.app.size
        spare = height - len(self.table.lines) - _AROUND - line.display
        peek.take_lines(peek_height(width, height, spare) if self.context.state.snapshots else 0)

    def places(self) -> Iterable[Entry]:
        """Return the metrics of the selected run, then those of the other runs."""
        from .palette import metrics_of_runs

        selected, known = self.acting_on, self.context.state.snapshots or ()
        return metrics_of_runs(self, [*([selected] if selected is not None else []), *known])

    # -- keys

    @on(RunTable.Opened)
    def action_open(self) -> None:
        if (line := self.table.line) is None:
            self.context.say(self.no_run, "warning")
        elif line.run is not None:
            self.context.open_run(line.run.run)
        else:
            self.table.fold(line.key)

    def action_launch(self) -> None:
        self.context.launch(None, None)

    def action_move(self, by: int, unit: Literal["line", "page", "edge"] = "line") -> None:
        """Select another run: the next one, one a page away, or the newest or oldest."""
        steps = {"line": 1, "page": self.table.page, "edge": len(self.table.lines)}
        self.table.move(by * steps[unit])

    def action_carry(self) -> None:
        """Move the selected run to another machine."""
        from .carrying import choose

        if self.acting_on is None:
            self.context.say(self.no_run)
        elif len(self.targets) > 1:
            self.context.say("move: works on one run at a time", "warning")
        else:
            choose(self, self.acting_on)

    @on(MoveExamined)
    def _ask_move(self, message: MoveExamined) -> None:
        from .carrying import ask

        ask(self, message)

    def action_next_attention(self) -> None:
        table = self.table
        runs, current = [item.run for item in table.snapshots], table.line
        here = current.run or (current.group.runs[0] if current.group else None) if current is not None else None
        start = runs.index(here.run) + (current is not None and current.run is not None) if here is not None else 0
        around = [*table.snapshots[start:], *table.snapshots[:start]]
        found = next((item.run for item in around if needs_attention(item)), None)
        if found is None:
            self.context.say("No run needs attention.")
        else:
            table.select(found)

    def action_label(self, what: Label) -> None:
        """Edit the note, tags or name of the marked runs, or of the selected one."""
        if self.acting_on is None:
            self.context.say(self.no_run, "warning")
            return
        edit_label(self, self.targets, what)

    @property
    def _queue(self) -> QueuePlace | None:
        """The position in its queue of the run that the keys act on, if it is queued."""
        place = self.targets[0].queue if len(self.targets) == 1 else None
        return place if place is not None and place.group is not None else None

    def action_queue(self, direction: str) -> None:
        """Let the selected run start earlier or later."""
        action, services = BY_ID["queue_move"], self.context.services
        snapshot = self.able(action, partial(self.action_queue, direction))
        if snapshot is not None:

            def move() -> Toast:
                moved = services.move_in_queue(snapshot, direction)
                return Toast(
                    f"now {ordinal(moved.place)} of {moved.count} in queue {clean(moved.group, 40)}", run=snapshot.run
                )

            self.context.requests.do(action.name, move)

    def action_pause_queue(self) -> None:
        """Pause or resume the queue of the selected run; if it has none, resume the one that the top line names."""
        action, services, place = BY_ID["queue_pause"], self.context.services, self._queue
        group, pause = next(iter(self.context.state.paused_queues), None), False
        if place is not None or group is None:
            if self.able(action, self.action_pause_queue) is None or place is None:
                return
            group, pause = place.group, not place.paused

        def change(queue: str) -> Toast:
            services.pause_queue(queue, pause)
            became = "paused: it starts nothing more, running trainings continue" if pause else "resumed"
            return Toast(f"queue {clean(queue, 40)} {became}")

        if group is not None:
            self.context.requests.do(action.name, partial(change, group))
