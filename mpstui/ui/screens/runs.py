"""The list of runs, and a look at the selected one where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.events import Resize

from ...core.actions import BY_ID
from ..asking import moved_text, paused_text
from ..bindings import Key, Scope, bindings, footer_keys
from ..messages import QueueChanged, RemovalExamined
from ..toasts import ANY_RUN
from ..widgets.lines import KeyLine
from ..widgets.peek import Peek, peek_height
from ..widgets.run_list import RunTable, TopLine
from ..workers import Focus
from .acting import ActingScreen

if TYPE_CHECKING:
    from ...core.model.snapshot import QueuePlace, RunSnapshot
    from ..widgets.failure_card import Failure

_SCOPES = (Scope.RUNS, Scope.ACTIONS, Scope.QUEUE)


class RunsScreen(ActingScreen):
    """The first screen."""

    BINDINGS = bindings(*_SCOPES)
    AUTO_FOCUS = None

    def compose(self) -> ComposeResult:
        """Top line, table, peek, keys."""
        yield TopLine()
        yield RunTable()
        peek = Peek()
        self._fit(peek, *self.app.size)
        yield peek
        yield KeyLine(footer_keys(*_SCOPES, Scope.EVERYWHERE), self.usable)

    @property
    def table(self) -> RunTable:
        """The list."""
        return self.query_one(RunTable)

    @property
    def acting_on(self) -> RunSnapshot | None:
        """The selected run."""
        table = self.table
        return table.snapshots[table.index] if table.index is not None else None

    def usable(self, key: Key) -> bool:
        """Without a run there is nothing to open, without a mark nothing to compare; a paused queue can be resumed."""
        if key.action == "pause_queue" and self._queue_in_view is None and self._paused_group is not None:
            return True
        if key.action == "compare":
            return bool(self.table.marked) and len(self.table.snapshots) > 1
        return super().usable(key) and (key.action not in ("open", "mark") or self.acting_on is not None)

    @property
    def place(self) -> str:
        """All runs."""
        return ANY_RUN

    @property
    def focus_of_reading(self) -> Focus:
        """The selected run, without its log."""
        return Focus(self.table.selected)

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Draw new pictures."""
        self.query_one(TopLine).show(snapshots, self.mpstui.board.paused_groups)
        self.table.show(snapshots)
        self._show_selected()

    def _show_selected(self) -> None:
        selected = self.acting_on
        peek = self.query_one(Peek)
        peek.show(selected)
        if selected is not None and peek.display:
            on_cpu = selected.state.active or self._allowed(selected, BY_ID["restart_cpu"]).ok
            peek.explain(self._failure(selected, on_cpu=on_cpu))
        keys = self.query_one(KeyLine)
        keys.labels = self.key_labels()
        keys.repaint()

    def _failure(self, selected: RunSnapshot, *, on_cpu: bool) -> Failure:
        from ...core.present.states import needs_explaining
        from ..widgets.failure_card import Failure

        board = self.mpstui.board
        findings = board.findings(selected) if needs_explaining(selected) else None
        return Failure(selected, findings, on_cpu, board.last_exception(selected))

    def on_resize(self, event: Resize) -> None:
        """Give the peek its lines, or none."""
        self._fit(self.query_one(Peek), *event.size)

    def _fit(self, peek: Peek, width: int, height: int) -> None:
        lines = peek_height(width, height)
        peek.display = lines > 0
        peek.styles.height = lines

    @on(RunTable.Selected)
    def _selected(self) -> None:
        self.mpstui.look()
        self._show_selected()

    @on(RunTable.Opened)
    def action_open(self) -> None:
        """Open the selected run."""
        snapshot = self.acting_on
        if snapshot is not None:
            self.mpstui.open_run(snapshot.run)

    def action_launch(self) -> None:
        """Choose a profile to launch."""
        self.mpstui.launch()

    def action_move(self, by: int) -> None:
        """Select another run."""
        self.table.move(by)

    def action_page(self, direction: int) -> None:
        """Select a run one window further."""
        self.table.move(direction * self.table.page)

    def action_edge(self, direction: int) -> None:
        """Select the newest or the oldest run."""
        self.table.move(direction * len(self.table.snapshots))

    def key_labels(self) -> dict[str, str]:
        """Names in the footer that depend on the run."""
        place = self._queue_in_view
        paused = place.paused if place is not None else self._paused_group is not None
        return {**super().key_labels(), **({"pause_queue": "resume queue"} if paused else {})}

    def action_queue(self, direction: str) -> None:
        """Let the selected run start earlier or later."""
        snapshot, queue = self.able(BY_ID["queue_move"]), self.mpstui.services.queue
        if snapshot is not None:
            self.mpstui.courier.do(
                BY_ID["queue_move"].name,
                lambda: QueueChanged(snapshot.run, moved_text(queue.move(snapshot, direction))),
            )

    @property
    def _queue_in_view(self) -> QueuePlace | None:
        """Where the selected run waits, if it waits in a queue."""
        place = self.acting_on.queue if self.acting_on is not None else None
        return place if place is not None and place.group is not None else None

    @property
    def _paused_group(self) -> str | None:
        """The paused queue that the top line names: nobody may wait in it, so that no row could resume it."""
        return next(iter(self.mpstui.board.paused_groups), None)

    def action_pause_queue(self) -> None:
        """Pause the queue of the selected run, or let it go on; elsewhere let the paused one go on."""
        place, named = self._queue_in_view, self._paused_group
        if place is None and named is not None:
            self._set_paused(None, named, paused=False)
        elif (
            (snapshot := self.able(BY_ID["queue_pause"])) is not None and place is not None and place.group is not None
        ):
            self._set_paused(snapshot.run, place.group, paused=not place.paused)

    def _set_paused(self, run: str | None, group: str, *, paused: bool) -> None:
        queue = self.mpstui.services.queue
        self.mpstui.courier.do(
            BY_ID["queue_pause"].name, lambda: QueueChanged(run, paused_text(queue.set_paused(group, paused)))
        )

    def action_mark(self) -> None:
        """Mark the selected run, to be compared."""
        self.table.mark()

    def action_compare(self) -> None:
        """Compare the marked runs; one alone with the selected one."""
        from ..widgets.comparison import MOST

        selected = [item.run for item in (self.acting_on,) if item is not None]
        runs = tuple(dict.fromkeys([*self.table.marked, *(selected if len(self.table.marked) < 2 else [])]))
        if len(runs) < 2:
            self.mpstui.say("compare: mark runs with space first, two or more", "warning")
        elif len(runs) > MOST:
            self.mpstui.say(f"compare: at most {MOST} curves can be told apart, {len(runs)} runs are marked", "warning")
        else:
            from .comparing import ComparisonScreen

            self.mpstui.push_screen(ComparisonScreen(runs, blocks=self.mpstui.blocks))

    def action_remove(self) -> None:
        """Find out what removing the selected run would delete, then ask."""
        snapshot, remover = self.able(BY_ID["remove"]), self.mpstui.services.remover
        if snapshot is not None:
            examined = lambda: RemovalExamined(snapshot, remover.examine(snapshot))  # noqa: E731
            self.mpstui.courier.do(BY_ID["remove"].name, examined, self.post_message)

    @on(RemovalExamined)
    def _ask_removal(self, message: RemovalExamined) -> None:
        from .removing import ask_removal

        ask_removal(self.mpstui, message)

    def action_next_attention(self) -> None:
        """Select the next run that needs a person."""
        from ...core.present.states import needs_attention

        table = self.table
        start = (table.index or 0) + 1
        around = [*table.snapshots[start:], *table.snapshots[:start]]
        found = next((item.run for item in around if needs_attention(item)), None)
        if found is None:
            self.mpstui.say("no run needs you now")
        else:
            table.select(found)
