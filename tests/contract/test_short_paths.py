"""How many of our files a reader opens to follow one thing from end to end, counted while it really happens.

The two paths that matter most: a heartbeat with a metric point, from the training loop to the painted chart, and the
key `c` (restart on CPU), from the key to the signal that the trainer gets. `pytest -s` on this file lists the files.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from textual.app import App
from textual.screen import ResultCallback

from mpstui.agent.reporter import Reporter
from mpstui.core.model.home import Home
from mpstui.ui.app import MpstuiApp
from mpstui.ui.services import Services
from mpstui.ui.theme import OWN_THEME
from mpstui.wire.rundir import create_run_dir
from tests.supervisor.kit import Run, python
from trainer.loop import Loop

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / package}{os.sep}" for package in ("mpstui", "trainer"))
MOST_FILES_OF_A_HEARTBEAT = 40
"""Without what is polled now and then; the log, which may know better than the agent, is read with each beat.

Of them seven show what a beat means beside its curve: the terminal's title, best values, kept summaries, the chart's
own axes, layers and cursor.
"""
MOST_FILES_OF_A_KEY = 30
PATIENCE_SECONDS = 60.0

SUPERVISOR_TRACED = """
import json, os, runpy, sys
main, folder, noted = sys.argv[1:4]
SENDERS = ("kill", "killpg", "pidfd_send_signal")
files, state = set(), {"on": False, "done": False}
def asked():
    return any(name.endswith(".json") for name in os.listdir(folder + "/requests"))
def profile(frame, event, argument):
    if state["done"]:
        return
    if event == "call" and "/mpstui/" in frame.f_code.co_filename:
        # From the look that finds the request: one that was over when it came does not belong to it.
        if not state["on"] and frame.f_code.co_name == "tick":
            files.clear()
            state["on"] = asked()
        if frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)
    elif event == "c_call" and argument.__name__ in SENDERS and (state["on"] or asked()):
        with open(noted + ".part", "w") as out:
            json.dump(sorted(files), out)
        os.rename(noted + ".part", noted)
        state["done"] = True
sys.argv = [main, folder]
os.makedirs(folder + "/requests", exist_ok=True)
sys.setprofile(profile)
runpy.run_path(main, run_name="__main__")
"""
WAITING_TRAINER = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.05)"

_pressed: ContextVar[bool] = ContextVar("_pressed", default=False)
"""Whether this task is carrying out a key: the screen goes on polling and painting beside it."""


def anywhere() -> bool:
    """Whatever runs, on any thread."""
    return True


def for_the_key() -> bool:
    """What a key press calls on the screen's own thread, and all that the worker for requests does."""
    return _pressed.get() or threading.current_thread().name == "mpstui-requests"


class FilesCalled:
    """Notes the file of each of our functions that is called while it is on, where ``counts`` says so."""

    def __init__(self, counts: Callable[[], bool] = anywhere) -> None:
        self.found: set[str] = set()
        self.on = False
        self._counts = counts

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """See :func:`sys.setprofile`. Importing a module calls its body: that is nobody's path."""
        if self.on and event == "call" and frame.f_code.co_name != "<module>" and self._counts():
            self.note(frame)

    def note(self, frame: FrameType) -> None:
        """Add one frame's file."""
        if frame.f_code.co_filename.startswith(OURS):
            self.found.add(frame.f_code.co_filename)

    def note_callers(self) -> bool:
        """Add the files of what is being called right now, from the training loop on; False outside of that."""
        frames = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.append(frame)
            if frame.f_code is Loop.run.__code__:
                for called in frames:
                    self.note(called)
                return True
            frame = frame.f_back
        return False

    @contextmanager
    def installed(self) -> Iterator[FilesCalled]:
        """On this thread, and on those that start meanwhile."""
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            yield self
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def report_from_a_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> set[str]:
    """The files between an optimizer step of a shipped trainer and the line it reports."""
    from tests.trainer.running import train

    called = FilesCalled()
    folder = create_run_dir(tmp_path, "reporting", time.time())
    folder.attempt(1).path.mkdir(parents=True)
    for name in ("point", "beat"):
        plain = getattr(Reporter, name)

        def traced(*args: Any, plain: Callable[..., Any] = plain, **kwargs: Any) -> Any:
            called.on = called.note_callers()
            try:
                return plain(*args, **kwargs)
            finally:
                called.on = False

        monkeypatch.setattr(Reporter, name, traced)
    with called.installed():
        train("cifar", "--epochs", "1", "--limit", "64", "--model", "tiny", run_dir=folder.path)
    return called.found


async def until(true: Callable[[], object], what: str) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, f"never: {what}"
        await asyncio.sleep(0.02)


def screen_of(app: MpstuiApp) -> str:
    """Its text."""
    return "\n".join("".join(part.text for part in strip) for strip in app.screen._compositor.render_strips())


def is_on(app: MpstuiApp, text: str) -> bool:
    """Whether the screen shows it."""
    return text in screen_of(app)


class WithoutMachine(Services):
    """The core without the machine's own readings, which are another path."""

    def sampler(self) -> Any:
        raise OSError("not read here")


def heartbeat_to_chart(run: Run, home: Home, few: Callable[[set[str]], bool]) -> set[str]:
    """The files of a heartbeat with one point, written by the reporter, until the screen has painted it.

    Those of each of three, and of more where that is not few: a look at the log or at the checkpoints that falls into
    the same moment, as on a busy machine it does again and again, is none of its path.
    """
    called = FilesCalled()
    each: list[set[str]] = []
    reporter = Reporter(run.dir)

    def report(step: int, loss: float) -> None:
        reporter.point(step, 1.0, loss=loss, lr=0.1)
        reporter.beat("train", now=True, epoch=1, epochs=4, step=step, steps=4000, loss=loss)

    async def play() -> None:
        app = MpstuiApp(WithoutMachine(home, os.environ, run.home, time.time), opening=run.dir.run, theme=OWN_THEME)
        async with app.run_test(size=(120, 40)) as pilot:
            for step, loss in ((100, 0.9), (200, 0.8), (300, 0.7)):
                report(step, loss)
                await until(partial(is_on, app, f"{loss:.4f}"[:5]), f"loss {loss} on the screen")
            await pilot.press("1", "z")  # the chart alone: the other panels are fed from the same snapshot
            await pilot.pause()
            for step in range(400, 2400, 100):
                loss = 0.7325 - step / 4000
                called.found.clear()
                called.on = True
                report(step, loss)
                await until(partial(is_on, app, f"{loss:.4f}"[:5]), "the new loss on the screen")
                await pilot.pause()
                called.on = False
                each.append(set(called.found))
                if len(each) >= 3 and few(set.intersection(*each)):
                    return

    with called.installed():
        asyncio.run(play())
    return set.intersection(*each)


def mark_key_presses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set ``_pressed`` while Textual carries out a key's action, and while it hands over a dialog's answer."""
    act, init = App.run_action, ResultCallback.__init__

    async def run_action(*args: Any, **kwargs: Any) -> bool:
        token = _pressed.set(True)
        try:
            return await act(*args, **kwargs)
        finally:
            _pressed.reset(token)

    def remember(self: Any, requester: Any, callback: Any, future: Any = None) -> None:
        def answered(result: Any) -> Any:
            token = _pressed.set(True)
            try:
                return callback(result)
            finally:
                _pressed.reset(token)

        init(self, requester, callback and answered, future)

    monkeypatch.setattr(App, "run_action", run_action)
    monkeypatch.setattr(ResultCallback, "__init__", remember)


def key_to_signal(run: Run, home: Home, tmp_path: Path) -> set[str]:
    """The files of the key `c`: in the screen until the request is written, in the supervisor until SIGTERM."""
    called = FilesCalled(for_the_key)
    noted = tmp_path / "files-of-the-supervisor"

    async def play() -> None:
        app = MpstuiApp(WithoutMachine(home, os.environ, run.home, time.time), opening=run.dir.run, theme=OWN_THEME)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(lambda: "restart" in screen_of(app).lower(), "the key in the footer")
            await pilot.pause()
            called.on = True
            await pilot.press("c")
            # It has just begun: so little work would be lost that nothing is asked.
            await until(lambda: any(run.dir.requests.glob("*.json")), "the request")
            called.on = False
            await until(noted.exists, "the signal")

    with called.installed():
        asyncio.run(play())
    return called.found | set(json.loads(noted.read_text()))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return Home(state=tmp_path / "home", config=tmp_path / "home")


@pytest.fixture
def run(home: Home, tmp_path: Path) -> Iterator[Run]:
    """A real run under a real supervisor that notes its files."""
    started = Run(home.state, argv=python(WAITING_TRAINER))
    main = ROOT / "mpstui" / "supervisor" / "__main__.py"
    with started.dir.supervisor_log.open("ab") as log:
        words = ["-I", "-S", "-c", SUPERVISOR_TRACED, str(main), str(started.dir.path)]
        subprocess.run(
            [sys.executable, *words, str(tmp_path / "files-of-the-supervisor")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    started.wait_output("up")
    yield started
    started.clean_up()


def listed(files: set[str]) -> str:
    """For a person: how many, and which."""
    return f"{len(files)} files\n" + "\n".join(sorted(str(Path(file).relative_to(ROOT)) for file in files))


def test_a_heartbeat_is_followed_in_few_files(
    run: Run, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = report_from_a_training(monkeypatch, tmp_path)
    files = reported | heartbeat_to_chart(run, home, lambda found: len(reported | found) <= MOST_FILES_OF_A_HEARTBEAT)
    print(listed(files))
    assert len(files) <= MOST_FILES_OF_A_HEARTBEAT, listed(files)


def test_restart_on_cpu_is_followed_in_few_files(
    run: Run, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_key_presses(monkeypatch)
    files = key_to_signal(run, home, tmp_path)
    print(listed(files))
    assert len(files) <= MOST_FILES_OF_A_KEY, listed(files)
