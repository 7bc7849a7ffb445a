"""Going about: lists, runs, panels, sizes, and what must never end the program."""

from __future__ import annotations

import math
from typing import Any

import pytest
from textual.events import MouseScrollDown, MouseScrollUp

from mpstui.core.model.snapshot import Health, State
from mpstui.ui.bindings import Scope, footer_keys
from mpstui.ui.screens.run import RunScreen
from mpstui.ui.screens.run_body import PANELS, RunBody, Shape, run_layout
from mpstui.ui.screens.runs import RunsScreen
from mpstui.ui.widgets.peek import peek_height
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive

LIST_SCOPES = (Scope.RUNS, Scope.ACTIONS, Scope.QUEUE, Scope.EVERYWHERE)


def selected(driver: Driver) -> str:
    return next(line for line in driver.lines if line.startswith("▌"))


def test_without_a_run_only_what_needs_none_is_offered() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("no runs yet")
        screen = driver.app.screen
        assert isinstance(screen, RunsScreen)
        ready = [key.label for key in footer_keys(*Scope) if screen.usable(key) and key.scope in LIST_SCOPES]
        assert ready == ["launch", "help", "quit", "palette"]

    drive(fakes.world(()), play)


def test_a_run_that_was_opened_by_name_is_selected_behind_it() -> None:
    async def play(driver: Driver) -> None:
        await driver.until(lambda: getattr(driver.app.screen, "snapshot", None) is not None, "the run")
        await driver.press("escape")
        await driver.sees("launch")
        screen = driver.app.screen
        assert isinstance(screen, RunsScreen)
        await driver.until(lambda: screen.table.selected == fakes.failed().run, "the run it was about")

    drive(fakes.world(fakes.several()), play, opening=fakes.failed().run)


def test_open_and_back_keep_the_selection() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("j", "enter")
        await driver.sees("Apple M2 Max · bf16  ·  attempt 2")
        assert isinstance(driver.app.screen, RunScreen)
        await driver.press("escape")
        await driver.sees("LLaMA")
        assert "CIFAR-10" in selected(driver)

    drive(fakes.world(fakes.several()), play)


def test_the_selection_never_shifts_when_runs_arrive() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("down", "down", "down")
        assert "LLaMA" in selected(driver)
        newer = tuple(fakes.bare(f"20261121-13000{place}-x", name=f"new {place}") for place in range(9))
        world.monitor.snapshots = (*newer, *fakes.several())
        await driver.sees("14 runs")
        assert "LLaMA" in selected(driver)
        world.monitor.snapshots = tuple(item for item in world.monitor.snapshots if item.state is not State.RUNNING)
        await driver.until(lambda: "LLaMA" not in driver.text)
        assert selected(driver)

    drive(world, play)


def test_five_hundred_runs_scroll_to_their_end() -> None:
    runs = tuple(fakes.running(f"r{999 - place}", name=f"number {place}") for place in range(500))

    async def play(driver: Driver) -> None:
        await driver.press("G")
        assert "number 499" in selected(driver)
        await driver.press("pageup")
        await driver.press("home")
        assert "number 0" in selected(driver)

    drive(fakes.world(runs), play)


def test_attention_goes_from_trouble_to_trouble() -> None:
    async def play(driver: Driver) -> None:
        assert "✗ 1 failed · ▲ 1 stalled" in driver.lines[0]
        await driver.press("a")
        assert "failed" in selected(driver)
        await driver.press("a")
        assert "stalled" in selected(driver)
        await driver.press("a")
        assert "failed" in selected(driver)

    drive(fakes.world(fakes.several()), play)


def test_no_trouble_no_attention() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("a")
        await driver.hears("No run needs attention.")

    drive(fakes.world((fakes.running(),)), play)


def test_the_list_follows_the_monitor_and_the_focus_follows_the_list() -> None:
    world = fakes.world((fakes.running(),))

    async def play(driver: Driver) -> None:
        await driver.until(lambda: world.monitor.focus == fakes.running().run, "focus")
        world.monitor.snapshots = (fakes.running(loss=0.1234, step=22_302),)
        await driver.sees("0.1234")
        world.monitor.snapshots = (fakes.running(loss=None, loss_is_finite=False, step=22_303),)
        await driver.sees(" NaN/inf ")

    drive(world, play)


def test_every_panel_can_be_reached_and_enlarged() -> None:
    async def play(driver: Driver) -> None:
        screen = driver.app.screen
        assert isinstance(screen, RunScreen)
        for number, name in enumerate(PANELS, start=1):
            await driver.press(str(number))
            assert screen.panel == name
            assert f"{number} {name}" in driver.text
        await driver.press("tab")
        assert screen.panel == "chart"
        await driver.press("shift+tab", "z")
        assert screen.panel == PANELS[-1]
        assert "1 chart ─" not in driver.text
        await driver.press("z")
        assert "1 chart ─" in driver.text

    drive(fakes.world(fakes.several()), play, size=(120, 40), opening=fakes.running().run)


def test_neighbours_are_one_key_away() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("right_square_bracket")
        await driver.sees("batch 4096")
        await driver.press("left_square_bracket", "left_square_bracket")
        await driver.sees("just launched")
        await driver.press("left_square_bracket")
        await driver.hears("no newer run")

    drive(fakes.world(fakes.several()), play, opening=fakes.running().run)


def test_a_run_that_vanishes_leads_back_to_the_list() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.sees("Apple M2 Max")
        world.monitor.snapshots = (fakes.finished(),)
        await driver.hears("no longer there")
        await driver.sees("1 run · 0 live")

    drive(world, play, opening=fakes.running().run)


def test_the_chart_keys_work_and_say_when_they_cannot() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("1", "y")
        await driver.sees("log · step")
        await driver.press("t")
        await driver.sees("log · epoch")
        await driver.press("plus", "plus", "shift+left", "left", "B")
        await driver.sees("zoom · log · epoch")
        await driver.press("minus", "shift+right", "right", "0", "m")
        await driver.sees("val_accuracy")
        await driver.press("m", "m")

    drive(fakes.world(fakes.several()), play, opening=fakes.running().run)


def test_the_average_grows_stronger_and_weaker_and_says_how_strong_it_is() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("1", "z")
        await driver.sees("(0.95)")
        await driver.press("~")
        await driver.sees("(0.98)")
        await driver.press("~", "~")
        await driver.hears("The average is at its strongest, 0.99")
        await driver.sees("(0.99)")
        await driver.press(*["`"] * 7)
        await driver.until(lambda: "avg" not in driver.lines[5], "values as they are")
        await driver.press("`")
        await driver.hears("The average is at its weakest, 0")

    drive(fakes.world(fakes.several()), play, opening=fakes.running().run, size=(120, 40))


def test_the_wheel_zooms_into_the_chart() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("1")
        chart = driver.app.screen.query_one("#chart")
        turned = (chart, 40, 5, 0, -1, 0, False, False, False)
        chart.post_message(MouseScrollUp(*turned))
        await driver.sees("zoom · ")
        chart.post_message(MouseScrollDown(*turned))
        await driver.until(lambda: "zoom · " not in driver.text, "all of the curve")

    drive(fakes.world(fakes.several()), play, opening=fakes.running().run)


def test_chart_keys_on_nothing() -> None:
    async def play(driver: Driver) -> None:
        for key, words in (("t", "are known: the axis stays"), ("m", "no other metric"), ("plus", "Nothing is drawn")):
            await driver.press(key)
            await driver.hears(words)
        await driver.press("y", "0", "B")

    drive(fakes.world(fakes.several()), play, opening=fakes.bare().run)


def test_help_shows_every_key() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("question_mark")
        await driver.sees("mark all that are shown, or none")
        await driver.press("pagedown", "pagedown", "down", "up")
        await driver.sees("restart on CPU from newest checkpoint")
        await driver.press("escape")
        await driver.sees("5 runs")

    drive(fakes.world(fakes.several()), play)


def test_quit_leaves_everything_alone() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("q")
        await driver.until(lambda: not driver.app.is_running, "the end")

    drive(world, play)
    assert not world.actions.asked


def test_trouble_of_the_monitor_is_told_and_survived() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        world.monitor.failure = RuntimeError("a [bold] surprise")
        await driver.hears("reading runs failed, trying again: RuntimeError: a [bold] surprise")
        world.monitor.failure = None
        world.monitor.snapshots = (fakes.finished(),)
        await driver.sees("1 run ·")

    drive(world, play)


HOSTILE = fakes.running(
    name="[red]no[/foo] \x1b[31mred\x1b]0;title\x07 \n" + "x" * (1 << 20),
    data="[/]\x1b[2J" + "日本" * 500,
    health_note="\x1b[?1049l",
    metrics={"[x]\x1b[1m": math.nan, "inf": math.inf},
    series={"loss": fakes.curve(gap=range(400)), "\x1b[2J[b]": fakes.curve(gap=range(0, 400, 2))},
    loss=math.nan,
    steps=0,
    epochs=0,
    eta_seconds=math.inf,
    steps_per_second=math.nan,
    reason="[/]",
)


@pytest.mark.parametrize("size", [(20, 8), (60, 15), (80, 24), (120, 40), (200, 60), (3, 2)], ids=str)
def test_hostile_data_survives_every_size(size: tuple[int, int]) -> None:
    broken = fakes.failed(name=HOSTILE.name, reason=HOSTILE.numbers.data or "", health=Health.HUNG)
    world = fakes.world((HOSTILE, broken, *fakes.several()), log=["\x1b[31m[/x]" * 40, "y" * 9000])

    async def play(driver: Driver) -> None:
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, RunScreen))
        for key in (
            "1",
            "2",
            "3",
            "4",
            "5",
            "6",
            "z",
            "z",
            "right_square_bracket",
            "question_mark",
            "escape",
            "escape",
        ):
            await driver.press(key)
        assert "\x1b" not in driver.text
        width, height = size
        await driver.pilot.resize_terminal(height * 4, width)
        await driver.pilot.resize_terminal(width, height)
        await driver.press("down")
        assert driver.app.is_running

    drive(world, play, size=size)


@pytest.mark.parametrize(
    ("size", "shape"),
    [((20, 8), Shape.TINY), ((60, 15), Shape.TINY), ((80, 24), Shape.STACKED), ((120, 40), Shape.WIDE)],
)
def test_arrangements(size: tuple[int, int], shape: Shape) -> None:
    plan = run_layout(*size)
    assert plan.shape is shape
    assert plan.header + plan.progress + plan.card < size[1]


@pytest.mark.parametrize("height", range(1, 61))
def test_the_peek_leaves_room_for_the_list(height: int) -> None:
    assert peek_height(80, height) == 0 or height - peek_height(80, height) >= 10
    assert peek_height(40, height) == 0


def test_a_covered_screen_is_never_painted_and_one_under_a_dialog_is() -> None:
    async def look(driver: Driver) -> None:
        await driver.press("enter")
        covered, shown = driver.app.screen_stack[-2:]
        assert (covered.is_current, shown.is_current) == (False, True)
        await driver.press("question_mark")
        assert shown.is_current

    drive(fakes.world(fakes.several()), look)


def test_a_key_that_comes_before_the_run_is_read_is_done_when_it_is() -> None:
    world = fakes.world((fakes.running(),))

    async def play(driver: Driver) -> None:
        screen: Any = driver.app.screen
        screen.snapshot = None  # as in the moment between opening a run and its first snapshot
        await driver.press("g")
        assert not driver.toasts
        world.monitor.snapshots = (fakes.running(step=22_400),)
        await driver.sees("metrics of CIFAR-10")

    drive(world, play, size=(120, 40), opening=fakes.running().run)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_a_run_that_has_ended_without_output_gives_the_lines_of_its_log_to_the_chart(size: tuple[int, int]) -> None:
    ended = changed(fakes.finished(), output=None)

    async def play(driver: Driver) -> None:
        await driver.sees("no output was kept")
        body = driver.app.screen.query_one(RunBody)
        await driver.until(lambda: body.log_pane.size.height == 2, "two lines for what is not there")
        await driver.until(lambda: body.chart.size.height >= size[1] - 12, "the chart has the others")

    drive(fakes.world((ended,)), play, size=size, opening=ended.run)
