"""Driving the real app without a terminal: wait for what it shows, press keys, read the grid of characters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from textual.events import Key
from textual.pilot import Pilot

from mpstui.ui.app import MpstuiApp
from mpstui.ui.theme import OWN_THEME

from ..waiting import LONGEST_PAUSE_SECONDS
from .fakes import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATIENCE_SECONDS = 60.0
Play = Callable[["Driver"], Awaitable[None]]


class Driver:
    """One running app."""

    def __init__(self, app: MpstuiApp, pilot: Pilot[Any], world: World) -> None:
        self.app = app
        self.pilot = pilot
        self.world = world

    @property
    def lines(self) -> list[str]:
        """The screen as text, without blanks at the right."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines) + "\n"

    @property
    def toasts(self) -> list[str]:
        """What was said in passing and is still to be seen."""
        return [note.message.replace("\n", " ") for note in self.app._notifications]

    async def press(self, *keys: str) -> None:
        """Press keys one after another."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def burst(self, *keys: str) -> None:
        """Keys that arrive together, as over a slow line: none waits for what the one before it does."""
        for key in keys:
            self.app.post_message(Key(key, key if len(key) == 1 else None))
        await self.pilot.pause()

    async def until(self, true: Callable[[], object], what: str = "", seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for something to become true: the longer that takes, the more seldom it is looked for."""
        until, pause = time.monotonic() + seconds, 0.01
        while not true():
            if time.monotonic() > until:
                raise AssertionError(f"never: {what or true}\n{self.text}\ntoasts: {self.toasts}")
            await self.pilot.pause(pause)  # a look takes two milliseconds of the processor
            pause = min(1.1 * pause, LONGEST_PAUSE_SECONDS)

    async def sees(self, text: str) -> None:
        """Wait for a text on the screen."""
        await self.until(lambda: text in self.text, f"{text!r} on the screen")

    async def hears(self, text: str) -> None:
        """Wait for a toast."""
        await self.until(lambda: any(text in toast for toast in self.toasts), f"a toast with {text!r}")


@asynccontextmanager
async def driving(world: World, size: tuple[int, int], opening: str | None, theme: str) -> AsyncIterator[Driver]:
    """The app with the first snapshots drawn."""
    app = MpstuiApp(world.services, opening=opening, theme=theme)
    app.context.undo.seconds = world.undo_seconds
    async with app.run_test(size=size, notifications=True) as pilot:
        driver = Driver(app, pilot, world)
        await driver.until(lambda: app.state.snapshots is not None, "a first picture")
        await pilot.pause()
        yield driver


def drive(
    world: World, play: Play, *, size: tuple[int, int] = (80, 24), opening: str | None = None, theme: str = OWN_THEME
) -> None:
    """Run the app in a window of this size and play with it."""

    async def scene() -> None:
        async with driving(world, size, opening, theme) as driver:
            await play(driver)

    asyncio.run(scene())
