"""Queued runs on the screen: where they stand, and that an open screen gives them their supervisor back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.launching.actions import Actions
from mpstui.core.model.home import Home
from mpstui.core.model.queue_place import QueuePlace
from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.ui.services import Services
from mpstui.ui.widgets.peek import peek
from mpstui.ui.widgets.run_row import run_row
from mpstui.ui.workers import runs as run_worker
from mpstui.ui.workers.runs import PausedQueues, RunWorker
from mpstui.wire import queues, storage
from mpstui.wire.queues import QueueFiles
from mpstui.wire.records import Status
from mpstui.wire.rundir import RunDir
from tests.waiting import wait_until

from . import fakes
from .driving import Driver, drive


def test_a_queued_row_shows_its_place() -> None:
    waiting = fakes.bare(state=State.QUEUED, queue=QueuePlace("default", 2, True))
    world = fakes.world((waiting, fakes.running()))

    async def play(driver: Driver) -> None:
        await driver.sees("2nd in default (paused)")

    drive(world, play)


@pytest.mark.parametrize(
    ("key", "change", "said"),
    [
        ("less_than_sign", (fakes.bare().run, "up"), "1st of 3 in queue mps"),
        ("greater_than_sign", (fakes.bare().run, "down"), "1st of 3 in queue mps"),
        ("P", ("mps", True), "queue mps paused"),
    ],
)
def test_a_key_changes_the_queue_and_says_how_it_is_now(key: str, change: tuple[str, object], said: str) -> None:
    world = fakes.world((fakes.bare(state=State.QUEUED, queue=QueuePlace("mps", 2)),))

    async def play(driver: Driver) -> None:
        await driver.press(key)
        await driver.hears(said)

    drive(world, play)
    assert world.services.queue_changes == [change]


def test_a_paused_queue_is_resumed_by_the_same_key() -> None:
    world = fakes.world((fakes.bare(state=State.QUEUED, queue=QueuePlace("mps", 2, True)),))

    async def play(driver: Driver) -> None:
        await driver.sees("P resume queue")
        await driver.press("P")
        await driver.hears("queue mps resumed")

    drive(world, play, size=(200, 40))
    assert world.services.queue_changes == [("mps", False)]


@pytest.mark.parametrize("runs", [(), (fakes.running(),)])
def test_a_paused_queue_that_nobody_waits_in_is_named_and_resumed(runs: tuple[RunSnapshot, ...]) -> None:
    world = fakes.world(runs)
    world.services.paused = ("mps",)

    async def play(driver: Driver) -> None:
        await driver.sees("‖ queue mps paused")
        assert "P resume queue" in driver.lines[-1]
        await driver.press("P")
        await driver.hears("queue mps resumed")
        await driver.until(lambda: "queue mps paused" not in driver.text, "the notice to go")

    drive(world, play, size=(200, 40))
    assert world.services.queue_changes == [("mps", False)]


def set_paused_in(home: Home, paused: bool) -> None:
    queues.edit(QueueFiles(home.queue, "night"), lambda group: group._replace(paused=paused))


def test_the_screen_learns_of_paused_groups_from_their_files(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    now = [1000.0]
    queue = PausedQueues(Services(home, {}, tmp_path, lambda: now[0]))
    assert queue.read() == ()
    for paused in (True, False):
        set_paused_in(home, paused)
        os.utime(home.queue, (1000, 1000))  # both within one tick of the file system's clock
        assert queue.read() == (("night",) if paused else ())
    now[0] += 60.0
    assert queue.read() == ()
    set_paused_in(home, True)
    assert queue.read() == ("night",)


@pytest.mark.parametrize("key", ["less_than_sign", "greater_than_sign", "P"])
def test_what_does_not_wait_in_a_queue_says_so(key: str) -> None:
    world = fakes.world((fakes.running(),))

    async def play(driver: Driver) -> None:
        await driver.press(key)
        await driver.hears("is not in a queue")

    drive(world, play)
    assert world.services.queue_changes == []


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_the_place_keeps_to_the_width_of_other_rows(width: int) -> None:
    waiting = fakes.bare(state=State.QUEUED, queue=QueuePlace(after=("\x1b[31mstage 1" * 20,)))
    row = run_row(waiting, width)
    assert row.width == run_row(fakes.running(), width).width
    assert "\x1b" not in row.text


def test_an_open_screen_respawns_missing_supervisors_every_few_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, started = Home(tmp_path, tmp_path), list[str]()
    run = RunDir(home.runs / "a")
    run.path.mkdir(parents=True)
    storage.write_json(run.status, Status("a", "queued", 1, 2.0))

    class Noting(Actions):
        def supervise(self, run: RunDir, *_: Any, **__: Any) -> None:
            started.append(run.run)

    services = Services(home, {}, tmp_path, lambda: fakes.NOW)
    services.__dict__["actions"] = Noting({})
    monkeypatch.setattr(run_worker, "_RESPAWN_SECONDS", 0.3)
    worker = RunWorker(services, lambda message: None)
    worker.start()
    wait_until(lambda: started == ["a"], what="a supervisor")
    worker.stop()


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (
            QueuePlace("mps", 1, behind=("lr=0.1",), starts_in=112.0),
            ("1st in mps", "behind  lr=0.1", "in about 1m 52s"),
        ),
        (QueuePlace("mps", 5, behind=tuple("abcde")), ("a, b, c and 2 more", "how long they take is unknown")),
        (QueuePlace("mps", 1, paused=True), ("1st in mps (paused)", "once its queue is resumed")),
        (QueuePlace(after=("stage1",)), ("after stage1", "how long they take is unknown")),
    ],
)
def test_the_look_at_a_queued_run_says_whom_it_waits_for_and_until_when(
    place: QueuePlace, told: tuple[str, ...]
) -> None:
    waits = fakes.bare(state=State.QUEUED, queue=place)
    text = "\n".join(line.text for line in peek(waits, 80, 10))
    assert all(words in text for words in told), text


def test_the_look_at_a_queued_run_says_with_what_it_starts_and_what_became_of_those_before_it() -> None:
    waits = fakes.running("q", name="third", profile="cifar", state=State.QUEUED, queue=QueuePlace("mps", 1))
    before = fakes.finished(profile="cifar", name="first")
    told = [line.text for line in peek(waits, 120, 30, like=(waits, before))]
    assert any(line.startswith(" with") and "=" in line for line in told)
    at = next(place for place, line in enumerate(told) if "earlier runs  1" in line)
    assert "first" in told[at + 1]
    assert any("┤" in line for line in told[at:]), "their curves"
    assert all(len(line) <= 120 for line in told)
    assert len(told) <= 30
