"""A second curve beside the one that is shown."""

from __future__ import annotations

from dataclasses import replace

from mpstui.ui.charting.data import ChartData, over_time
from mpstui.ui.charting.plot import GUTTER, ChartView, draw, frame

from . import fakes
from .driving import Driver, drive
from .fakes import curve

LOSS = curve()


def roles(data: ChartData, role: str) -> list[str]:
    """What is drawn in a role, line by line; those without any left out."""
    lines = (
        "".join(span.text for span in line.spans if role in span.role.split())
        for line in draw(data, ChartView(), 100, 20)[1:]
    )
    return [line for line in lines if line.strip()]


def test_curves_of_like_size_share_an_axis() -> None:
    data = ChartData(name="loss", train=LOSS, pinned=curve("val_like", start=2.6, floor=0.5, seed=3))
    space = frame(data, ChartView(), 100, 20)
    assert space is not None
    assert space.pinned is space.y
    assert space.columns == 100 - GUTTER
    assert any("2" in line for line in roles(data, "pinned")), "its label stands on the curve"


def test_a_curve_of_another_size_has_an_axis_of_its_own_at_the_right() -> None:
    rate = curve("lr", start=3e-4, floor=1e-5, noise=0.0)
    data = ChartData(name="loss", train=LOSS, pinned=rate)
    space, alone = frame(data, ChartView(), 100, 20), frame(replace(data, pinned=None), ChartView(), 100, 20)
    assert space is not None
    assert alone is not None
    assert space.y == alone.y, "the other one is left as it was"
    assert space.columns == 100 - 2 * GUTTER
    drawn = draw(data, ChartView(), 100, 20)
    assert all(line.width <= 100 for line in drawn)
    labels = [line.text.rpartition("├")[2].strip() for line in drawn if "├" in line.text]
    assert "0.0002" in labels or "2e-04" in labels, labels
    assert "2 lr" in drawn[0].text


def test_it_moves_to_an_axis_of_time_with_the_others() -> None:
    timed = replace(LOSS, times=[100.0 + x for x in LOSS.x])
    moved = over_time(ChartData(name="loss", train=timed, pinned=replace(timed, name="lr")))
    assert moved is not None
    assert moved.train is not None
    assert moved.pinned is not None
    assert moved.pinned.x == moved.train.x


def test_a_key_pins_the_curve_and_takes_it_away() -> None:
    run = replace(fakes.finished(), series={"loss": LOSS, "lr": curve("lr", start=3e-4, floor=1e-5)})

    async def play(driver: Driver) -> None:
        await driver.press("1", "z", "d")
        await driver.sees(" lr ")
        await driver.sees("2 loss")
        await driver.press("left", "left")
        await driver.sees("  2 0.3")
        await driver.press("d")
        await driver.until(lambda: "  2 0.3" not in driver.text, "one curve alone")

    drive(fakes.world((run,)), play, opening=run.run)


def test_the_table_goes_with_the_chart() -> None:
    names = ("loss", "acc", "lr")
    run = replace(fakes.finished(), series={name: curve(name) for name in names})

    async def play(driver: Driver) -> None:
        await driver.press("3", "d")
        await driver.sees("acc  ━")
        await driver.press("down")
        await driver.sees("lr  ━")
        await driver.sees("2 loss")

    drive(fakes.world((run,)), play, opening=run.run)
