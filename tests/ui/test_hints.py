"""Watcher and poll, wired: each finds without the other what it can, and nothing is missed when an event is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from mpstui.core.runs import hints as watcher_module
from mpstui.ui.messages import SnapshotsReady
from mpstui.ui.services import Services
from mpstui.ui.workers import runs as run_worker
from mpstui.ui.workers.hints import HintWorker
from mpstui.ui.workers.runs import RunWorker

from ..core.runs.build import NOW, RunBuilder, make_home
from .test_workers import Inbox, until

NEVER = 3600.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = make_home(tmp_path)
    home.runs.mkdir(parents=True, exist_ok=True)
    return home


class Screen:
    """The two workers as the app starts them."""

    def __init__(self, home: Home, *, watches: bool) -> None:
        self.inbox = Inbox()
        self.run_worker = RunWorker(_services(home), self.inbox.post)
        self._workers: list[RunWorker | HintWorker] = [self.run_worker]
        if watches:
            self._workers.append(HintWorker(home.runs, self.run_worker.hint, self.inbox.post))
        for worker in self._workers:
            worker.start()

    def shows(self, run: str, step: int | None) -> bool:
        """Whether the newest picture has the run at that step."""
        self.run_worker.drawn()
        pictures = self.inbox.of(SnapshotsReady)
        newest = pictures[-1].snapshots if pictures and isinstance(pictures[-1], SnapshotsReady) else ()
        return any(item.run == run and item.numbers.step == step for item in newest)

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()


def _services(home: Home) -> Services:
    return Services(home, {}, home.state, lambda: NOW)


def running(home: Home, name: str) -> RunBuilder:
    return RunBuilder(home, name, NOW).status("running", trainer=[1, 1]).launch().beat(step=1, steps=9).hold()


@pytest.fixture
def screens(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Screen]]:
    monkeypatch.setattr(watcher_module, "CHECK_SECONDS", 0.1)
    made: list[Screen] = []
    yield made
    for screen in made:
        screen.close()


@pytest.mark.parametrize("watches", [True, False])
def test_everything_arrives_with_the_watcher_and_without(home: Home, screens: list[Screen], watches: bool) -> None:
    first = running(home, "first")
    screen = Screen(home, watches=watches)
    screens.append(screen)
    until(lambda: screen.shows(first.run.run, 1))
    second = running(home, "second")
    until(lambda: screen.shows(second.run.run, 1))
    second.beat(step=6, steps=9)
    until(lambda: screen.shows(second.run.run, 6))
    first.release()
    second.release()


def test_with_the_poll_off_what_is_renamed_or_created_still_arrives(
    home: Home, screens: list[Screen], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = running(home, "first")
    monkeypatch.setattr(run_worker, "_POLL_SECONDS", NEVER)
    screen = Screen(home, watches=True)
    screens.append(screen)
    until(lambda: screen.shows(first.run.run, 1))
    steps = iter(range(2, 10**6))
    at = [1]

    def beaten() -> bool:
        """A watch that is not yet set up misses what came before: beat until it tells."""
        if screen.shows(first.run.run, at[0]) and at[0] > 1:
            return True
        at[0] = next(steps)
        first.beat(step=at[0], steps=10**6)
        return any(screen.shows(first.run.run, step) for step in range(2, at[0] + 1))

    until(beaten)
    second = running(home, "second")
    until(lambda: screen.shows(second.run.run, 1))
    first.release()
    second.release()


def test_with_neither_nothing_would_come(home: Home, screens: list[Screen], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_worker, "_POLL_SECONDS", NEVER)
    screen = Screen(home, watches=False)
    screens.append(screen)
    screen.inbox.wait_for(SnapshotsReady)
    made = running(home, "late")
    with pytest.raises(AssertionError):
        until(lambda: screen.shows(made.run.run, 1), 0.5)
    made.release()
