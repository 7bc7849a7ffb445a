"""What everybody who looks sees of a run while it is moved: on its way, and never as one that was stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from mpstui.cli.ps import table
from mpstui.cli.run_rows import list_rows
from mpstui.core.hosts.moving import MovePlan
from mpstui.core.hosts.progress import Cancelled
from mpstui.core.hosts.talk import Place
from mpstui.core.model.snapshot import State
from mpstui.core.runs.monitor import Monitor
from tests.core.hosts.machines import Machines, as_kind
from tests.waiting import wait_until

Seen = dict[tuple[str, State, str, str | None], None]
"""Machine, state, step of the move, where it went."""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    yield made
    made.end()


@contextlib.contextmanager
def looking(machines: Machines, run: str) -> Iterator[Seen]:
    """Two lists that are open all the while."""
    seen, over = Seen(), Event()

    def look() -> None:
        monitors = {name: Monitor(machines.homes[name]) for name in ("a", "b")}
        while not over.wait(0.005):
            for name, monitor in monitors.items():
                for one in monitor.refresh():
                    if one.run == run:
                        seen[name, one.state, one.moving.step if one.moving else "", one.moved_to] = None

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


class Slow(Place):
    """Goes on only once a list has shown how far it is."""

    seen: Seen
    awaited: tuple[tuple[str, str], ...] = (("lacks", "list"), ("settle", "send"))

    def ask(self, what: str, fields: Any, send: Any = None, receive: Any = None) -> dict[str, Any]:
        for question, step in self.awaited:
            if question == what:
                wait_until(lambda: ("a", State.MOVING, step, None) in self.seen, what=f"a list that shows {step}")  # noqa: B023
        return super().ask(what, fields, send, receive)


def test_neither_machine_shows_it_as_stopped(machines: Machines) -> None:
    run = machines.launch()
    machines.trains("a", run)
    with looking(machines, run) as Slow.seen, contextlib.closing(machines.mover(wrap=as_kind(Slow))) as mover:
        planned = mover.plan(run)
        assert isinstance(planned, MovePlan)
        printed = set[str]()

        def tell(now: Any) -> None:
            if now.doing == "its files are sent":
                rows, _ = list_rows(machines.homes["a"], None)
                printed.update(table(rows, 0, None))

        mover.carry_out(planned, tell)
        wait_until(lambda: ("b", State.RUNNING, "", None) in Slow.seen, what="its going on there")
        wait_until(lambda: ("a", State.STOPPED, "", "b") in Slow.seen, what="its having gone")
        seen = set(Slow.seen)
    assert any("  moving to b  " in line for line in printed)
    steps = {step for name, _, step, _ in seen if name == "a"}
    assert {"list", "send"} <= steps <= {"", "code", "save", "end", "list", "send"}
    ends = {one for one in seen if not one[1].active}
    assert ends == {("a", State.STOPPED, "", "b")}, "an end here only once it has gone"
    assert {state for name, state, *_ in seen if name == "b"} <= {State.STARTING, State.RUNNING}


def test_one_that_is_called_off_goes_on_without_having_looked_stopped(machines: Machines) -> None:
    run = machines.launch()
    machines.trains("a", run)
    with looking(machines, run) as Slow.seen, contextlib.closing(machines.mover(wrap=as_kind(Slow))) as mover:
        planned = mover.plan(run)
        assert isinstance(planned, MovePlan)
        with pytest.raises(Cancelled):
            mover.carry_out(planned, lambda now: mover.cancel() if now.doing == "its files are sent" else None)
        wait_until(lambda: (one := machines.seen("a", run)).state is State.RUNNING and one.attempt == 2)
        seen = set(Slow.seen)
    assert all(state.active for _, state, *_ in seen)
    assert not (machines.homes["a"].runs / run / "moving.json").exists()
