"""What stands in the very first frame of the list."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from mpstui.core.model.snapshot import RunSnapshot
from mpstui.ui import app as apps
from mpstui.ui.app import MpstuiApp
from mpstui.ui.painting import PaintedApp

from . import fakes
from .driving import PATIENCE_SECONDS, Driver, drive


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of every frame, as they are handed to the terminal."""
    found: list[str] = []
    display = PaintedApp._display

    def kept(app: PaintedApp, screen: Any, renderable: Any) -> None:
        strips = screen._compositor.render_strips()
        found.append("\n".join("".join(segment.text for segment in strip) for strip in strips))
        display(app, screen, renderable)

    monkeypatch.setattr(PaintedApp, "_display", kept)
    return found


def slowed(world: fakes.World, monkeypatch: pytest.MonkeyPatch, wait: Callable[[], object]) -> None:
    """Have every reading of the runs wait for something first."""
    refresh = world.monitor.refresh

    def late(
        focus: str | None = None, selected: Collection[str] = (), compared: Sequence[str] = ()
    ) -> tuple[RunSnapshot, ...]:
        wait()
        return refresh(focus, selected, compared)

    monkeypatch.setattr(world.monitor, "refresh", late)


def test_it_has_every_run(frames: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps, "_FIRST_READING_SECONDS", PATIENCE_SECONDS)
    world = fakes.world(fakes.several())
    slowed(world, monkeypatch, lambda: time.sleep(0.3))

    async def play(driver: Driver) -> None:
        names = [run.name for run in world.monitor.snapshots]
        assert [name for name in names if name in frames[0]] == names
        assert "reading runs" not in "".join(frames)

    drive(world, play, size=(200, 60))


def test_it_does_not_wait_for_a_disk_that_hangs(frames: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    world, answers = fakes.world(fakes.several()), threading.Event()
    slowed(world, monkeypatch, lambda: answers.wait(PATIENCE_SECONDS))

    async def scene() -> None:
        app = MpstuiApp(world.services)
        async with app.run_test(size=(120, 40)) as pilot:
            driver = Driver(app, pilot, world)
            await driver.sees("reading runs")
            await driver.press("enter")
            await driver.hears("the runs are still being read: press again in a moment")
            answers.set()
            await driver.sees(world.monitor.snapshots[0].name)

    asyncio.run(scene())
