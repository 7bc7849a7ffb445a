"""The watch is a hint: it tells of renames and new runs, comes back after errors, and nothing depends on it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest
import watchfiles

from mpstui.core.runs import hints as watcher_module
from mpstui.core.runs.hints import RunsWatcher, changed_runs
from mpstui.wire import storage


class Watching:
    """A watcher in a thread of its own, and what it told."""

    def __init__(self, root: Path) -> None:
        self.told: set[str] = set()
        self._lock = Lock()
        self._stop = Event()
        self.watcher = RunsWatcher(root, self._note)
        self._thread = Thread(target=self.watcher.run, args=(self._stop,), daemon=True)
        self._thread.start()

    def _note(self, names: frozenset[str]) -> None:
        with self._lock:
            self.told |= names

    def forget(self) -> None:
        with self._lock:
            self.told.clear()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def watching(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watching]:
    monkeypatch.setattr(watcher_module, "CHECK_SECONDS", 0.1)
    made = Watching(root)
    yield made
    made.close()


def until(condition: Callable[[], bool], act: Callable[[], object] | None = None) -> None:
    """Wait for a condition, doing ``act`` again and again: a watch that is not yet set up misses what came before."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        if act is not None:
            act()
        time.sleep(0.02)


def test_renames_and_new_runs_are_told_by_run(root: Path, watching: Watching) -> None:
    (root / "one").mkdir()
    until(lambda: "one" in watching.told, lambda: storage.write_json(root / "one" / "status.json", {}, sync=False))
    watching.forget()
    (root / "two").mkdir()
    until(lambda: "two" in watching.told)
    assert watching.watcher.error is None


def test_a_root_that_is_made_anew_is_watched_again(root: Path, watching: Watching) -> None:
    (root / "one").mkdir()
    until(lambda: "one" in watching.told, lambda: (root / "one" / "file").write_text(str(time.time())))
    shutil.rmtree(root)
    until(lambda: watching.watcher.error is not None)
    (root / "two").mkdir(parents=True)
    watching.forget()
    until(lambda: "two" in watching.told, lambda: (root / "two" / "file").write_text(str(time.time())))
    until(lambda: watching.watcher.error is None)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="APFS refuses such names")
def test_a_name_that_is_not_utf8_does_not_end_the_watch(root: Path, watching: Watching) -> None:
    (root / "one").mkdir()
    until(lambda: "one" in watching.told, lambda: (root / "one" / "file").write_text(str(time.time())))
    with open(os.fsencode(root / "one") + b"/\xff\xfe", "wb"):  # noqa: PTH123 - a name no str path can spell safely
        pass
    watching.forget()
    until(lambda: "one" in watching.told, lambda: (root / "one" / "file").write_text(str(time.time())))
    until(lambda: watching.watcher.error is None)


def test_a_watch_that_fails_is_tried_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def failing(*_: Any, **__: Any) -> Iterator[set[Any]]:
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("no watches left")
        yield {(1, str(root / "one" / "file"))}
        stop.set()

    stop, told = Event(), set[str]()
    monkeypatch.setattr(watcher_module, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(watchfiles, "watch", failing)
    RunsWatcher(root, lambda names: told.update(names)).run(stop)
    assert len(calls) == 3
    assert told == {"one"}


def test_who_leaves_waits_for_no_sleep_of_the_native_code(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, stop, asked = Event(), Event(), dict[str, Any]()

    def looking(*_: Any, **options: Any) -> Iterator[set[Any]]:
        asked.update(options)
        looked.set()
        yield set()
        raise AssertionError("looked again before its time")

    monkeypatch.setattr(watcher_module, "CHECK_SECONDS", 3600.0)
    monkeypatch.setattr(watchfiles, "watch", looking)
    thread = Thread(target=RunsWatcher(root, lambda names: None).run, args=(stop,), daemon=True)
    thread.start()
    assert looked.wait(60)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert asked["step"] + asked["rust_timeout"] < 100, "milliseconds"


def test_temporary_files_and_other_folders_tell_nothing(root: Path) -> None:
    paths = [root / "one" / ".status.json.7.tmp", root / "two" / "status.json", Path("/elsewhere/three")]
    assert changed_runs(root, map(str, paths)) == {"two"}
