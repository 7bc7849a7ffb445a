"""One moment for all panels: the chart leads the log, the log the chart; what nobody can place is said to be so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core import present as shown
from mpstui.core.launching import branching
from mpstui.core.launching.actions import Actions
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.drafts import Launcher
from mpstui.core.logview.document import LogDocument
from mpstui.core.logview.times import time_at
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.profiles.model import profile_of_command
from mpstui.core.telemetry.headroom import MemoryPoint
from mpstui.ui.panels import Moment, RunFacts
from mpstui.ui.panels.events import event_rows
from mpstui.ui.panels.memory import memory_then
from mpstui.ui.panels.metrics import MetricTable
from mpstui.ui.screens.run import RunScreen
from mpstui.wire.records import Branch
from tests.core.runs.build import FakeClock, RunBuilder, make_home, make_monitor

from . import fakes
from .driving import Driver, drive

BEGUN = fakes.NOW - 4488


def timed(known: bool = True) -> RunSnapshot:
    """A run whose curve goes on to the step of its log's last line, a step every 0.2 s."""
    train = fakes.curve(points=406)
    times = [BEGUN + x / 5 for x in train.x] if known else [float("nan")] * len(train.x)
    return replace(fakes.running(), series={"loss": replace(train, times=times)})


def screen_of(driver: Driver) -> RunScreen:
    screen = driver.app.screen
    assert isinstance(screen, RunScreen)
    return screen


def lit(driver: Driver) -> str:
    pane = screen_of(driver).body.log_pane
    return next((row.text for row in pane.rows(*pane.rows_size) if row.base == "selected"), "")


def test_the_log_goes_to_the_line_of_the_step_under_the_cursor_and_back_to_now() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("following")
        screen = screen_of(driver)
        await driver.press("left", "left", "left")
        await driver.until(lambda: screen._moments.moment is not None)
        moment = screen._moments.moment
        assert moment is not None
        assert moment.leader == "chart"
        await driver.until(lambda: "step" in lit(driver))
        told = re.search(r"step (\d+)", lit(driver))
        assert told is not None
        assert 0 <= moment.step - int(told[1]) < 6  # the log tells every sixth step
        await driver.sees("until step")
        await driver.press("escape")
        await driver.sees("following")
        assert screen._moments.moment is None
        assert "until step" not in driver.text
        assert driver.app.screen is screen

    run = timed()
    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def test_the_log_tells_when_its_steps_were_measured_and_says_so_where_nobody_knows() -> None:
    run = timed()

    async def play(driver: Driver) -> None:
        await driver.sees("following")
        log = screen_of(driver).body.log_pane
        await driver.press("W")
        await driver.until(lambda: log.known_times)
        told = re.search(r"~(\d\d:\d\d) .*step (\d+)", driver.text)
        assert told is not None, driver.text
        assert told[1] == shown.clock(BEGUN + int(told[2]) // 5)[:5]
        await driver.press("W")
        await driver.until(lambda: "~" not in driver.text)
        unknown = timed(known=False).series
        driver.world.monitor.snapshots = (replace(run, series=unknown),)
        await driver.until(lambda: log.facts is not None and log.facts.snapshot.series == unknown)
        await driver.press("W")
        await driver.hears("The times of these lines are unknown")

    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def test_steps_that_a_curve_has_no_point_for_are_looked_up_for_the_lines_in_view(tmp_path: Path) -> None:
    """Of a long run a curve has a point for every so many steps, of one that is far away for fewer still."""
    home = make_home(tmp_path)
    built = RunBuilder(home, "long", BEGUN).status("ended").launch().exit(code=0, ended=BEGUN + 400_000.0)
    built.points(*({"attempt": 1, "step": at, "loss": 1 / (at + 1), "time": BEGUN + 70 * at} for at in range(5000)))
    built.output("".join(f"step {at} loss {1 / (at + 1):.4f}\n" for at in range(5000)))
    run = make_monitor(home, FakeClock(BEGUN + 400_100.0)).snapshot(built.run.run)
    assert len(run.series["loss"].x) < 2500

    def right(driver: Driver) -> bool:
        told = re.findall(r"\b(\d\d:\d\d:\d\d) .*step (\d+) loss", driver.text)
        log = screen_of(driver).body.log_pane
        return len(told) == log.page and all(one == shown.clock(BEGUN + 70 * int(step)) for one, step in told)

    async def play(driver: Driver) -> None:
        await driver.sees("step 4999")
        await driver.press("W")
        await driver.until(lambda: right(driver), "the time of each line")
        await driver.press("2", *["pageup"] * 3)
        await driver.until(lambda: "step 4999" not in driver.text and right(driver), "those of earlier lines")

    world = fakes.world((run,))
    world.services.open_log = LogDocument  # type: ignore[method-assign]
    drive(world, play, size=(120, 40), opening=run.run)


def test_the_chart_goes_to_the_step_of_the_line_that_the_log_is_at() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("following")
        screen = screen_of(driver)
        await driver.press("2", "up", "up", "up")
        await driver.sees("chart at step")
        moment, cursor = screen._moments.moment, screen.body.chart.view.cursor
        assert moment is not None
        assert moment.leader == "log"
        assert cursor == moment.step
        await driver.press("G")
        await driver.sees("following")
        assert screen.body.chart.view.cursor is None

    run = timed()
    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def test_a_step_that_no_line_tells_is_said_to_be_unknown() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("following")
        await driver.press("left", *["left"] * 40)  # long before the first line of the log
        await driver.sees("no line names step")
        assert lit(driver) == ""

    run = timed(known=False)
    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def test_events_and_memory_are_those_of_the_moment_and_say_where_its_time_is_unknown() -> None:
    run = timed()
    early = RunFacts(snapshot=run, moment=Moment(9000.0, fakes.NOW - 2595, "chart"))
    texts = [row.text for row in event_rows(early, 100)]
    assert "until step 9,000 · 11:16:45" in texts[0] or "until step 9,000" in texts[0]
    assert not any("best.pt" in text for text in texts)
    assert any("crash" in text or "SIGABRT" in text or "failed" in text for text in texts)
    unknown = replace(early, moment=Moment(9000.0, None, "chart"))
    assert "time unknown" in event_rows(unknown, 100)[0].text
    course = [MemoryPoint(time=fakes.NOW - 2590 + second, footprint=5 << 30) for second in range(3)]
    assert any("5.0 GiB" in row.text for row in memory_then(early, course))
    assert (
        "memory was not measured then" in memory_then(replace(early, moment=Moment(1.0, 5.0, "chart")), course)[1].text
    )
    assert "time of this step is unknown" in memory_then(unknown, course)[1].text


def test_the_table_tells_what_was_last_measured_at_the_step_and_where() -> None:
    run = timed()
    table = MetricTable()
    table.facts = RunFacts(snapshot=run, moment=Moment(1000.0, None, "chart"))
    head, loss, *others = [row.text.split() for row in table.rows(80, 10)]
    assert head == ["metric", "then", "of", "step"]
    assert loss[:1] == ["loss"]
    assert loss[2] == "990"
    assert all("n/a" in other for other in others)  # of numbers without a history nobody knows what they were


@pytest.mark.parametrize(
    ("step", "told"), [(0.0, BEGUN), (110.0, BEGUN + 22), (60.0, BEGUN + 12), (-5.0, None), (1e9, None)]
)
def test_the_time_of_a_step_is_measured_or_between_two_that_are_near(step: float, told: float | None) -> None:
    assert time_at(timed().series.values(), step)[0] == (pytest.approx(told) if told is not None else None)
    assert time_at(timed(known=False).series.values(), step)[0] is None


def test_b_refuses_with_a_sentence_what_cannot_be_branched() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("following")
        await driver.press("b")
        await driver.hears("cannot branch from CIFAR-10 · ResNet-18 · Adam: it was not started by mpstui")
        assert screen_of(driver).is_mounted

    run = timed()
    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def test_b_opens_the_form_of_a_new_run_from_the_step_under_the_cursor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[float] = []

    def branch_at(snapshot: RunSnapshot, step: float) -> Branch:
        asked.append(step)
        return Branch(snapshot.run, 21_896, "/runs/x/epoch-056.pt")

    def branch_choice(snapshot: RunSnapshot, branch: Branch) -> LaunchChoice:
        profile = profile_of_command(("python", "train.py", "--lr", "0.1"), cwd=tmp_path, name="train")
        return LaunchChoice(profile, name=f"{snapshot.name} from {branch.step}", branch=branch)

    monkeypatch.setattr(branching, "branch_at", branch_at)
    monkeypatch.setattr(branching, "branch_choice", branch_choice)

    async def play(driver: Driver) -> None:
        await driver.sees("following")
        screen = screen_of(driver)
        await driver.press("left", "left")
        await driver.until(lambda: screen._moments.moment is not None)
        moment = screen._moments.moment
        await driver.press("b")
        await driver.sees("^s start")
        assert moment is not None
        assert asked == [moment.step]

    world = fakes.world((timed(),))
    launcher = Launcher(Home(tmp_path, tmp_path), {"PATH": "/usr/bin"}, tmp_path, Actions({}), lambda: fakes.NOW)
    monkeypatch.setattr(type(world.services), "launcher", lambda services: launcher)
    drive(world, play, size=(120, 40), opening=timed().run)


def test_memory_of_full_size_shows_the_moment_and_what_is_now_below_it() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("following")
        await driver.press("left", "left", "4", "z")
        await driver.sees("at step")
        await driver.until(lambda: any(line.strip() == "now" for line in driver.lines), "a title for what is now")
        await driver.sees("system")

    drive(fakes.world((timed(),)), play, size=(120, 40), opening=timed().run)
