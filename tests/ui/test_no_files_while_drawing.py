"""Drawing reads no files: all that a frame shows comes with the snapshots, which the workers read."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.model.home import Home
from mpstui.ui.app import MpstuiApp
from mpstui.ui.services import Services
from mpstui.ui.theme import OWN_THEME

from ..core.runs.build import RunBuilder

ASKED_OF_FILES = ("stat", "lstat", "open", "access", "listdir", "scandir")
_watching: list[list[str]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _watching and event in ("open", "os.listdir", "os.scandir") and _on_the_screens_thread():
        _watching[-1].append(f"{event} {arguments[0]!r}")


def _on_the_screens_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


sys.addaudithook(_hear)


@contextmanager
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the screen's own thread asks of the file system meanwhile."""
    asked: list[str] = []

    def noting(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if _on_the_screens_thread():
                asked.append(f"{name} {arguments[:1]}")
            return plain(*arguments, **named)

        return call

    with monkeypatch.context() as patched:
        for name in ASKED_OF_FILES:
            patched.setattr(os, name, noting(name, getattr(os, name)))
        patched.setattr(Path, "stat", noting("Path.stat", Path.stat))
        patched.setattr(io, "open", noting("io.open", io.open))
        _watching.append(asked)
        try:
            yield asked
        finally:
            _watching.pop()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("one_run", [False, True])
def test_a_frame_of_the_list_and_of_a_run_asks_nothing_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], one_run: bool
) -> None:
    home = Home(tmp_path / "home", tmp_path / "home")
    run = (
        RunBuilder(home, "one", time.time()).status("running").launch().beat(step=3, loss=0.5).output("step 3\n").hold()
    )
    RunBuilder(home, "other", time.time()).status("running").launch().beat(step=9, loss=0.7)

    async def play() -> None:
        app = MpstuiApp(
            Services(home, {}, tmp_path, time.time), opening=run.run.run if one_run else None, theme=OWN_THEME
        )
        async with app.run_test(size=size) as pilot:
            for step in range(4, 40):  # first what is imported and opened once
                run.beat(step=step, loss=0.5)
                await pilot.pause(0.05)
                snapshots = app.state.snapshots or ()
                if step > 6 and any(item.available for item in snapshots):
                    break
            assert any(item.available for item in app.state.snapshots or ()), "what the keys may do is known"
            with noted(monkeypatch) as asked:
                app.redraw()
                app.screen.refresh()
                await pilot.pause()
            assert asked == []

    asyncio.run(play())
    run.release()


def test_what_is_asked_would_be_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with noted(monkeypatch) as asked:
        tmp_path.stat()
        (tmp_path / "new").write_text("")
    assert len(asked) >= 2
