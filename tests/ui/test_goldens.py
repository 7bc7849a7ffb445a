"""Each screen as a grid of characters. ``MPSTUI_UPDATE_GOLDENS=1`` writes them anew: look at the difference."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import RunSnapshot

from . import fakes
from .driving import Driver, drive

GOLDENS = Path(__file__).parent / "goldens"
SIZES = ((80, 24), (120, 40))
SETTLED_SECONDS = 30.0
"""Threads bring what is on a screen; on a busy machine one of them may come last."""


@dataclass(frozen=True)
class Scene:
    """What is opened and pressed, and the text that says it is all there."""

    name: str
    shows: str
    opening: str | None = None
    keys: tuple[str, ...] = ()
    snapshots: tuple[RunSnapshot, ...] | None = None


SCENES = (
    Scene("empty", "no runs yet", snapshots=()),
    Scene("runs", "LLaMA 1B", keys=("down",)),
    Scene("runs-failed", "out of memory", keys=("down", "down")),
    Scene("run", "Apple M2 Max", opening=fakes.running().run),
    Scene("run-new", "just launched", opening=fakes.bare().run),
    Scene("run-failed", "out of memory", opening=fakes.failed().run),
    Scene("run-metrics", "val_accuracy", opening=fakes.running().run, keys=("3",)),
    Scene("run-memory", "83 % busy", opening=fakes.running().run, keys=("4",)),
    Scene("run-events", "SIGABRT", opening=fakes.running().run, keys=("6",)),
    Scene("run-chart", "• ", opening=fakes.running().run, keys=("1", "y", "t", "left", "left")),
    Scene("profiles", "My own fine-tuning", keys=("n",)),
    Scene("launch", "can freeze", keys=("n", "enter")),
    Scene("kill", "at once", opening=fakes.unsaved().run, keys=("K",), snapshots=(fakes.unsaved(),)),
    Scene("help", "everywhere", keys=("question_mark",)),
)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_screen_looks_as_it_did(scene: Scene, size: tuple[int, int]) -> None:
    seen: list[str] = []
    golden = GOLDENS / f"{scene.name}-{size[0]}x{size[1]}.txt"
    updates = bool(os.environ.get("MPSTUI_UPDATE_GOLDENS"))
    expected = "" if updates else golden.read_text(encoding="utf-8")

    async def look(driver: Driver) -> None:
        if scene.opening is not None:
            await driver.until(lambda: getattr(driver.app.screen, "snapshot", None) is not None)
            await driver.until(lambda: getattr(driver.app.screen, "_machine", None) is not None, "the machine's sample")
        await driver.press(*scene.keys)
        await driver.sees(scene.shows)
        if not updates:
            with contextlib.suppress(AssertionError):  # the difference is told below
                await driver.until(lambda: driver.text == expected, seconds=SETTLED_SECONDS)
        await driver.pilot.pause(0.02)
        seen.append(driver.text)

    snapshots = fakes.several() if scene.snapshots is None else scene.snapshots
    drive(fakes.world(snapshots), look, size=size, opening=scene.opening)
    if updates:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(seen[0], encoding="utf-8")
    else:
        assert seen[0] == expected, f"{golden.name} differs; MPSTUI_UPDATE_GOLDENS=1 rewrites it"
