"""The threads: they post when something changed, wait until it was drawn, and tell their trouble."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mpstui.core.model.errors import UsageError
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.telemetry.model import SystemSample, TreeSample
from mpstui.core.telemetry.run_telemetry import RunTelemetry
from mpstui.ui.messages import (
    LogGrew,
    RequestAnswered,
    SettingsMistaken,
    SnapshotsReady,
    SystemReady,
    Toast,
)
from mpstui.ui.terminal import Terminal
from mpstui.ui.workers import system as system_worker
from mpstui.ui.workers.requests import RequestWorker
from mpstui.ui.workers.runs import Focus, LogWatch, Pace, RunWorker, Schedule, differ
from mpstui.ui.workers.system import SystemWorker, TerminalWorker
from mpstui.wire import storage
from mpstui.wire.records import Ack, Request
from tests.snapshots import changed as altered
from tests.waiting import wait_until

from . import fakes

if TYPE_CHECKING:
    from textual.message import Message

PATIENCE_SECONDS = 60.0


class Inbox:
    """Where a worker posts."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._news = threading.Condition()

    def post(self, message: Message) -> bool:
        with self._news:
            self.messages.append(message)
            self._news.notify_all()
        return True

    def wait_for(self, kind: type[Message], count: int = 1) -> Message:
        with self._news:
            ready = self._news.wait_for(lambda: len(self.of(kind)) >= count, PATIENCE_SECONDS)
        assert ready, f"{count} of {kind.__name__} never came: {self.messages}"
        return self.of(kind)[count - 1]

    def of(self, kind: type[Message]) -> list[Message]:
        return [message for message in self.messages if isinstance(message, kind)]


def until(true: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextlib.contextmanager
def following(world: fakes.World, inbox: Inbox, log: Path) -> Iterator[RunWorker]:
    """A worker at work on a log of one line, whose first growth has been told and drawn."""
    log.write_text("one\n")
    worker = RunWorker(world.services, inbox.post)
    worker.focus_on(Focus("r", log))
    worker.start()
    try:
        inbox.wait_for(LogGrew)
        worker.log_drawn()
        yield worker
    finally:
        worker.stop()


def test_a_snapshot_is_posted_once_until_something_changes() -> None:
    world, inbox = fakes.world((fakes.running(),)), Inbox()
    worker = RunWorker(world.services, inbox.post)
    worker.start()
    try:
        inbox.wait_for(SnapshotsReady)
        worker.drawn()
        world.monitor.snapshots = (fakes.running(),)
        time.sleep(0.4)
        assert len(inbox.of(SnapshotsReady)) == 1, "an equal snapshot is no news"
        world.monitor.snapshots = (fakes.running(step=99),)
        inbox.wait_for(SnapshotsReady, 2)
    finally:
        worker.stop()


def test_nothing_is_posted_while_the_last_snapshot_is_not_drawn() -> None:
    world, inbox = fakes.world((fakes.running(),)), Inbox()
    worker = RunWorker(world.services, inbox.post)
    worker.start()
    try:
        inbox.wait_for(SnapshotsReady)
        for step in range(20):
            world.monitor.snapshots = (fakes.running(step=step),)
            time.sleep(0.03)
        assert len(inbox.of(SnapshotsReady)) == 1
        wait_until(lambda: worker._read is not None and worker._read[0][0].numbers.step == 19, what="the last reading")
        worker.drawn()
        newest = inbox.wait_for(SnapshotsReady, 2)
        assert isinstance(newest, SnapshotsReady)
        assert newest.snapshots[0].numbers.step == 19
    finally:
        worker.stop()


def test_growth_of_the_log_in_focus_is_told(tmp_path: Path) -> None:
    world, inbox, log = fakes.world((fakes.running(),)), Inbox(), tmp_path / "output.log"
    with following(world, inbox, log):
        time.sleep(0.2)
        assert len(inbox.of(LogGrew)) == 1
        with log.open("a") as file:
            file.write("two\n")
        inbox.wait_for(LogGrew, 2)
        assert world.monitor.focus == "r"


def test_a_long_history_is_read_between_the_refreshes() -> None:
    world, inbox = fakes.world((fakes.running(),)), Inbox()
    world.monitor.pending_bytes = 200
    worker = RunWorker(world.services, inbox.post)
    worker.focus_on(Focus("r"))
    worker.start()
    try:
        until(lambda: world.monitor.pending_bytes == 0)
        assert world.monitor.refreshes < 100, "two hundred slices, at one or two the snapshots"
    finally:
        worker.stop()


def test_a_flood_is_read_at_the_pace_of_the_refreshes_until_it_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpstui.ui.workers.runs._FLOOD_SECONDS", 3600.0)
    world, inbox, log = fakes.world((fakes.running(),)), Inbox(), tmp_path / "output.log"
    with following(world, inbox, log):
        with log.open("a") as file:
            file.write("flood\n" * 10_000)
        inbox.wait_for(LogGrew, 2)
        world.monitor.pending_bytes = 1000
        time.sleep(0.3)
        assert world.monitor.pending_bytes == 1000
        monkeypatch.setattr("mpstui.ui.workers.runs._FLOOD_SECONDS", 0.0)  # nothing more came for a while
        until(lambda: world.monitor.pending_bytes == 0)


def test_the_end_of_a_flood_is_drawn_as_soon_as_it_pauses(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_text("one\n")
    watch = LogWatch(storage.stamp, slow=False)
    assert watch.grew(log, 0.0)
    watch.drawn()
    flood = "flood\n" * 1000
    for now, told in ((0.1, True), (0.125, False), (0.15, False)):
        with log.open("a") as file:
            file.write(flood)
        assert watch.grew(log, now) is told
        watch.drawn()
    assert watch.grew(log, 0.175), "no growth since the last look, and the newest lines are not drawn"
    watch.drawn()
    assert not watch.grew(log, 0.2)


def test_the_longer_reading_takes_and_the_less_happens_the_less_often_it_is_done() -> None:
    schedule = Schedule()

    def seconds_until(took: float, *, hinted: bool = False, unread: bool = False, active: bool = True) -> float:
        schedule.note_reading(100.0, took, unread=unread, behind=False, active=active)
        return schedule.due(hinted=hinted) - 100.0

    schedule.note_change(99.0)
    lively = seconds_until(0.001)
    assert lively < seconds_until(0.02) < seconds_until(0.04) < seconds_until(9.0) <= 1.0
    assert seconds_until(0.001, hinted=True) < lively
    assert seconds_until(0.02, unread=True) < seconds_until(0.02)
    schedule.note_change(90.0)
    assert lively < seconds_until(0.001) < seconds_until(0.001, active=False)
    assert seconds_until(0.001, hinted=True, active=False) < lively
    schedule.read_now()
    assert schedule.due(hinted=False) <= 100.0


def test_trouble_is_told_once_and_reading_goes_on() -> None:
    world, inbox = fakes.world((fakes.running(),)), Inbox()
    world.monitor.failure = OSError("the disk is gone")
    worker = RunWorker(world.services, inbox.post)
    worker.start()
    try:
        failed = inbox.wait_for(Toast)
        assert isinstance(failed, Toast)
        assert failed.text == "reading runs failed, trying again: OSError: the disk is gone"
        world.monitor.failure = None
        inbox.wait_for(SnapshotsReady)
        assert len(inbox.of(Toast)) == 1
    finally:
        worker.stop()


CHANGES: tuple[dict[str, Any], ...] = (
    {"step": 1},
    {"paused": True},
    {"health_note": "x"},
    {"series": {}},
    {"events": ()},
    {"checkpoints": ()},
    {"exit": None},
    {"loading": True},
)


@pytest.mark.parametrize("changed", CHANGES, ids=lambda change: next(iter(change)))
def test_what_can_be_seen_makes_a_difference(changed: dict[str, Any]) -> None:
    run = fakes.failed(checkpoints=fakes.running().checkpoints)
    assert differ((run,), (altered(run, **changed),))
    assert not differ((run,), (replace(run, seen=run.seen + 9),))
    assert differ((run,), ())


def test_the_machine_is_sampled_only_while_somebody_looks() -> None:
    world, inbox = fakes.world((fakes.running(),)), Inbox()
    worker = SystemWorker(world.services, inbox.post, lambda: ())
    worker.start()
    try:
        time.sleep(0.2)
        assert not inbox.messages
        worker.sample_for(fakes.running())
        ready = inbox.wait_for(SystemReady)
        assert isinstance(ready, SystemReady)
        assert ready.tree is not None
        worker.sample_for(None)
    finally:
        worker.stop()
    until(lambda: world.sampler.closed)


def test_a_hidden_panel_is_sampled_less_and_one_that_comes_into_view_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_worker, "_SAMPLE_SECONDS", 0.05)
    monkeypatch.setattr(system_worker, "_HIDDEN_SECONDS", 60.0)
    world, inbox = fakes.world((fakes.running(),)), Inbox()
    worker = SystemWorker(world.services, inbox.post, lambda: ())
    worker.start()
    try:
        worker.sample_for(fakes.running(), in_view=False)
        inbox.wait_for(SystemReady)
        time.sleep(0.4)
        assert len(inbox.of(SystemReady)) == 1
        worker.sample_for(fakes.running(), in_view=True)
        inbox.wait_for(SystemReady, 3)
    finally:
        worker.stop()
    until(lambda: world.recorder.closed)


def test_the_newest_snapshot_of_the_run_is_noted() -> None:
    world, inbox = fakes.world((fakes.running(),)), Inbox()
    seen: list[int | None] = []

    class Noting(fakes.FakeRecorder):
        def poll(self, snapshot: RunSnapshot, system: SystemSample, tree: TreeSample | None) -> RunTelemetry:
            seen.append(snapshot.numbers.step)
            return self.known

    world.services.recording = Noting()
    worker = SystemWorker(world.services, inbox.post, lambda: (fakes.failed(), fakes.running(step=2)))
    worker.sample_for(fakes.running(step=1))
    worker.start()
    try:
        inbox.wait_for(SystemReady)
        assert seen == [2]
    finally:
        worker.stop()


def test_mistakes_in_the_settings_are_said_and_cost_the_price_alone() -> None:
    world, inbox = fakes.world((fakes.running(),)), Inbox()
    world.services.mistakes = ((2, "`price` must be a number"),)
    worker = SystemWorker(world.services, inbox.post, lambda: ())
    worker.sample_for(fakes.running())
    worker.start()
    try:
        ready, said = inbox.wait_for(SystemReady), inbox.wait_for(SettingsMistaken)
        assert isinstance(ready, SystemReady)
        assert isinstance(said, SettingsMistaken)
        assert (ready.prices, said.mistakes) == (None, ("settings.toml:2: `price` must be a number",))
    finally:
        worker.stop()


def test_a_request_is_sent_and_its_answer_brought_back() -> None:
    world, inbox = fakes.world(), Inbox()
    requests = RequestWorker(world.services, inbox.post)
    requests.start()
    try:
        run = fakes.running()
        requests.ask(run, "stop", lambda: world.actions.send(run, "stop"))
        sent = inbox.wait_for(Toast)
        assert isinstance(sent, Toast)
        assert (sent.text, sent.run) == ("stop requested", run.run)
        assert not inbox.of(RequestAnswered)
        world.actions.answers["r1"] = Ack("r1", True, "supervisor", 0.0, "stopped")
        answered = inbox.wait_for(RequestAnswered)
        assert isinstance(answered, RequestAnswered)
        assert answered.ack is not None
        assert answered.ack.text == "stopped"
    finally:
        requests.stop()


def test_an_answer_that_never_comes_is_said() -> None:
    world, inbox = fakes.world(), Inbox()
    requests = RequestWorker(world.services, inbox.post, patience_seconds=0.05)
    requests.start()
    try:
        run = fakes.running()
        requests.ask(run, "stop", lambda: world.actions.send(run, "stop"))
        answered = inbox.wait_for(RequestAnswered)
        assert isinstance(answered, RequestAnswered)
        assert answered.ack is None
    finally:
        requests.stop()


def test_a_job_that_fails_does_not_end_the_worker() -> None:
    world, inbox = fakes.world(), Inbox()

    def wrong() -> Request:
        raise UsageError("that is wrong", "do this")

    requests = RequestWorker(world.services, inbox.post)
    requests.start()
    try:
        requests.ask(fakes.running(), "stop", wrong)
        failed = inbox.wait_for(Toast)
        assert isinstance(failed, Toast)
        assert (failed.text, failed.severity) == ("stop: that is wrong · do this", "error")
        requests.do("other", lambda: LogGrew("r"))
        inbox.wait_for(LogGrew)
    finally:
        requests.stop()


@pytest.mark.parametrize("reason", ["gone", "overdue"])
def test_a_terminal_that_is_gone_ends_the_program(reason: str) -> None:
    died, found = threading.Event(), set[str]()

    class Watched(Terminal):
        def gone(self) -> bool:
            return "gone" in found

        def overdue(self) -> bool:
            return "overdue" in found

        def die(self) -> None:
            died.set()

    watch = TerminalWorker(lambda message: None, Watched(0))
    watch.start()
    try:
        assert not died.wait(0.2)
        found.add(reason)
        assert died.wait(PATIENCE_SECONDS)
    finally:
        watch.stop()


@pytest.mark.parametrize(("age", "later", "seen"), [(10.0, 1.0, True), (125.0, 3.0, False), (125.0, 6.0, True)])
def test_a_run_that_prints_nothing_grows_older_on_the_screen(age: float, later: float, seen: bool) -> None:
    run = replace(fakes.running(), started=1000.0, attempt_started=1000.0, seen=1000.0 + age)
    assert differ((run,), (replace(run, seen=run.seen + later),)) is seen
    ended = replace(fakes.finished(), started=1000.0, attempt_started=1000.0)
    assert not differ((ended,), (replace(ended, seen=ended.seen + 3600),))


def test_a_frame_that_is_written_late_counts_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 50.0)
    written = [0]
    pace = Pace(lambda: written[0], slow=True)
    pace.begin()
    pace.drawn()
    assert pace.next == 50.0
    written[0] = 700  # now only
    pace.begin()
    pace.drawn()
    assert pace.next == pytest.approx(51.0, abs=0.1)
    written[0] = 9000  # what a key wrote between two frames
    pace.begin()
    written[0] = 9070
    pace.drawn()
    assert pace.next < 51.1
