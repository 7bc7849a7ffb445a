"""The list sorted, with chosen columns, with groups folded and opened: by keys and by the mouse, and remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpstui.core.model.snapshot import Health, RunSnapshot, State
from mpstui.core.runs.listing import ListView, load_view
from mpstui.ui.screens.runs import RunsScreen
from mpstui.ui.theme import ANSI_THEME
from mpstui.ui.widgets.run_list import RunTable
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive


def swept() -> tuple[RunSnapshot, ...]:
    """Six optimizers, three seeds each, newest first."""
    points = [(optimizer, seed) for optimizer in ("sgd", "adam", "radam") for seed in (1, 2, 3)]
    return tuple(
        replace(
            fakes.finished(f"20261120-2200{place:02d}-six"),
            name=f"CIFAR-10 · six optimizers seed={seed} optimizer={optimizer}",
            argv=("python", "t.py", "--optimizer", optimizer, "--seed", str(seed)),
            extremes={"val_loss": ((9 - place) / 10, 2.0), "loss": (0.1, 2.0)},
        )
        for place, (optimizer, seed) in enumerate(points)
    )[::-1]


def table_of(driver: Driver) -> RunTable:
    return driver.app.screen.query_one(RunTable)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 60)])
def test_a_sweep_is_one_line_until_it_is_opened(size: tuple[int, int]) -> None:
    world = fakes.world((*swept(), fakes.failed()))

    async def play(driver: Driver) -> None:
        await driver.sees("▸ CIFAR-10 · six optimizers")
        assert "9" in driver.lines[2]
        assert driver.lines[2].endswith("0.1000")
        assert "finished" not in "\n".join(driver.lines[3:5])
        await driver.press("home", "K")
        await driver.hears("kill: none of the 9 runs can")
        await driver.press("enter")
        await driver.sees("▾ CIFAR-10")
        rows = [line.partition("finished")[2] for line in driver.lines[3:12] if "finished" in line]
        told = [row[:30].replace("cpu", "").split("━")[0].strip() for row in rows]
        assert len(set(told)) == len(rows) >= 7, told
        await driver.press("down", "down", "enter")
        await driver.until(lambda: driver.app.screen_stack[1:], "the run opened")

    drive(world, play, size=size)


def test_the_list_is_sorted_by_keys_and_by_clicks_and_remembers_it() -> None:
    world = fakes.world(fakes.several())

    def states(driver: Driver) -> list[str]:
        return [line.run.name for line in table_of(driver).lines if line.run is not None]

    async def play(driver: Driver) -> None:
        before, selected = states(driver), table_of(driver).selected
        await driver.press("o", "o")
        await driver.sees("name▲")
        assert states(driver) == sorted(before, key=str.casefold)
        assert table_of(driver).selected == selected
        await driver.press("O")
        await driver.sees("name▼")
        assert states(driver) == sorted(before, key=str.casefold, reverse=True)
        x = driver.lines[1].index("loss") + 1
        await driver.pilot.click(RunTable, offset=(x, 0))
        await driver.sees("loss▲")
        assert states(driver)[-1] == "just launched"
        await driver.pilot.click(RunTable, offset=(x, 0))
        await driver.sees("loss▼")
        home = world.services.home
        await driver.until(lambda: load_view(home) == ListView(sort="loss", reverse=True), "remembered")

    drive(world, play)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
def test_columns_are_chosen_from_all_that_the_runs_have(size: tuple[int, int]) -> None:
    world = fakes.world(swept()[:2])

    async def play(driver: Driver) -> None:
        await driver.press("vertical_line")
        await driver.sees("columns of the list")
        names = driver.app.screen._list.names  # type: ignore[attr-defined]
        place = [name for name, _ in names].index("set:seed")
        for _ in range(place):
            await driver.press("down")
        await driver.press("space")
        await driver.sees("✓ seed")
        await driver.press("enter")
        await driver.until(lambda: load_view(world.services.home).columns[-1:] == ("set:seed",), "remembered")
        if size[0] >= 80:
            await driver.until(lambda: "seed" in driver.lines[1], "the column")
        await driver.press("vertical_line", "r")
        await driver.until(lambda: not load_view(world.services.home).columns, "forgotten")

    drive(world, play, size=size)


def test_a_mark_on_a_group_marks_all_of_it_and_attention_opens_one() -> None:
    bad = replace(swept()[4], state=fakes.failed().state)
    world = fakes.world((*swept()[:4], bad, *swept()[5:]))

    async def play(driver: Driver) -> None:
        await driver.sees("1 failed")
        await driver.press("space")
        assert len(table_of(driver).marked) == 9
        await driver.press("space")
        assert table_of(driver).marked == ()
        await driver.press("a")
        await driver.sees("▾ CIFAR-10")
        assert table_of(driver).selected == bad.run

    drive(world, play)


def test_a_run_of_an_open_group_is_meant_alone_and_its_head_means_all() -> None:
    world = fakes.world(swept())

    async def play(driver: Driver) -> None:
        screen = driver.app.screen
        assert isinstance(screen, RunsScreen)
        assert len(screen.targets) == 9
        await driver.press("enter", "down", "down")
        assert [one.run for one in screen.targets] == [table_of(driver).selected]

    drive(world, play)


def test_a_run_that_trains_on_without_a_loss_is_named_and_is_not_the_best_of_its_group_without_a_word() -> None:
    broken = fakes.curve(points=400, gap=range(380, 400))
    best = changed(swept()[0], state=State.RUNNING, health=Health.TRAINING, series={"loss": broken}, loss=None)
    best = changed(best, loss_is_finite=False)
    world = fakes.world((best, *swept()[1:]))

    async def play(driver: Driver) -> None:
        await driver.sees("1 NaN loss")
        head = next(line for line in driver.lines if "▸" in line)
        assert "1 live · ✗ 1 NaN loss" in head
        assert head.rstrip().endswith(" val_loss 0.1000 ✗")
        await driver.press("a")
        await driver.until(lambda: table_of(driver).selected == best.run, "attention")
        assert "NaN/inf" in "\n".join(line for line in driver.lines if "✗ NaN loss" in line)
        await driver.press("f")
        await driver.hears("it has not failed")

    drive(world, play, size=(120, 40))


def test_a_sorted_list_says_so_and_escape_leads_back_to_the_newest_first() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("o", "o")
        await driver.sees("by name (esc)")
        await driver.press("space", "escape")
        assert "by name" in driver.text, "the mark went first"
        await driver.press("escape")
        await driver.until(lambda: load_view(world.services.home) == ListView(), "as it was")
        assert "(esc)" not in driver.text
        await driver.press("O")
        await driver.sees("oldest first (esc)")

    drive(world, play)


def test_the_selected_row_has_one_look_where_it_is_drawn_in_reverse() -> None:
    """The colour of a word would be a ground of its own there."""

    async def play(driver: Driver) -> None:
        await driver.press("down")
        table = table_of(driver)
        strips = [table.render_line(y) for y in range(table.size.height)]
        (selected,) = [[*one] for one in strips if any(part.style and part.style.reverse for part in one)]
        assert "training" in "".join(part.text for part in selected)
        assert {(part.style.color, part.style.bgcolor) for part in selected if part.style} == {(None, None)}

    drive(fakes.world(fakes.several()), play, theme=ANSI_THEME)


def test_a_row_and_the_look_at_it_tell_the_same_loss() -> None:
    world = fakes.world((fakes.running(),))

    async def play(driver: Driver) -> None:
        for loss in (0.4321, 0.1234):
            run = fakes.running()
            series = {"loss": replace(run.series["loss"], last=loss)}
            world.monitor.snapshots = (replace(run, numbers=replace(run.numbers, loss=loss), series=series),)
            await driver.sees(f"{loss:.4f}")
            assert [f"{loss:.4f}" in line for line in driver.lines].count(True) == 2, driver.text

    drive(world, play)
