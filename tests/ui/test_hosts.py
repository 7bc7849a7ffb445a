"""Runs of other machines in the list: a column for the machine, the line that is dead, rows that are unheard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpstui.core.present import UNHEARD, legend
from mpstui.core.runs.listing import ListView
from mpstui.ui.widgets.run_list import top_line
from mpstui.ui.widgets.run_row import layout, run_row

from . import fakes
from .driving import Driver, drive

DEAD = "gpu1: connection lost, not heard for 12s, trying again"


def far() -> object:
    return replace(fakes.running(), host="gpu1")


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_dead_line_is_named_at_the_top_whatever_the_width(width: int) -> None:
    shown = top_line([fakes.running()], width, troubles=(DEAD, "gpu2: connecting …"))
    assert shown.width <= width
    assert "! gpu1: connection lost" in shown.text
    assert ("and 1 more" in shown.text) == (width > 60)
    assert "gpu1" not in top_line([fakes.running()], width).text


def test_a_run_whose_machine_is_not_heard_is_unheard_and_not_stopped() -> None:
    unheard = replace(fakes.running(), host="gpu1", heard=fakes.NOW - 12, health_note="not heard for 12s")
    shown = run_row(unheard, 120)
    assert "? unheard" in shown.text
    assert "stopped" not in shown.text
    assert UNHEARD in list(legend())


def test_the_column_of_machines_is_there_where_there_are_several() -> None:
    def columns(*runs: object) -> list[str]:
        return [one.id for one, _ in layout(120, ListView(), runs, fakes.NOW)]  # type: ignore[arg-type]

    assert "host" in columns(far(), fakes.running())
    assert "host" not in columns(fakes.running())


def test_the_screen_tells_what_the_services_tell_and_what_came_of_a_call() -> None:
    world = fakes.world((fakes.running(),))
    world.services.troubles = (DEAD,)
    world.services.notices.append("gpu1: stop of resnet was done before the connection was lost")

    async def play(driver: Driver) -> None:
        await driver.until(lambda: "! gpu1: connection lost" in driver.text, "the lost connection")
        await driver.hears("was done before the connection was lost")

    drive(world, play, size=(140, 40))


def test_where_no_run_is_known_yet_the_reason_stands_in_their_place_and_is_the_newest() -> None:
    world = fakes.world(())
    world.services.troubles = ("gpu1: connecting …",)

    async def play(driver: Driver) -> None:
        await driver.until(lambda: driver.text.count("gpu1: connecting …") == 2, "the reason, at the top and below it")
        world.services.troubles = ("gpu1: no key opens it, trying again",)
        await driver.until(lambda: driver.text.count("gpu1: no key opens it") == 2, "the newer one")
        assert "no runs yet" not in driver.text

    drive(world, play, size=(140, 40))
