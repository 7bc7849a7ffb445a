"""The reader of the terminal: every key arrives, and nothing is looked at while none is pressed."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from textual.events import Key

from mpstui.ui import driver
from mpstui.ui.driver import PatientDriver
from tests.waiting import wait_until


class ReaderAlone(PatientDriver):
    """Without a terminal, an app and a screen: reads from a pipe."""

    def __init__(self, terminal: int) -> None:
        self._debug = False
        self.fileno = terminal
        self.exit_event = driver._Leaving()
        self.keys: list[str] = []

    def process_message(self, message: Any) -> None:
        if isinstance(message, Key):
            self.keys.append(message.key)


class Reading:
    """A reader in a thread of its own, and the end of the pipe where somebody types."""

    def __init__(self) -> None:
        terminal, self.keyboard = os.pipe()
        self.reader = ReaderAlone(terminal)
        self.thread = threading.Thread(target=self.reader.run_input_thread, daemon=True)

    def type(self, data: bytes, *keys: str) -> None:
        os.write(self.keyboard, data)
        wait_until(lambda: self.reader.keys[-len(keys) :] == list(keys), what=f"the keys {keys}")


@pytest.fixture
def reading() -> Iterator[Reading]:
    found = Reading()
    yield found
    found.reader.exit_event.set()
    found.thread.join()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """How long it was ready to sleep, each time."""
    found: list[float | None] = []
    plain = select.select

    def noted(read: Any, write: Any, other: Any, pause: float | None) -> Any:
        found.append(pause)
        return plain(read, write, other, pause)

    monkeypatch.setattr(select, "select", noted)
    return found


def test_keys_arrive_one_by_one_and_together(reading: Reading) -> None:
    reading.thread.start()
    reading.type(b"j", "j")
    reading.type(b"k\x1b[Bq", "k", "down", "q")
    os.write(reading.keyboard, "ü".encode()[:1])
    reading.type("ü".encode()[1:], "ü")


def test_a_lone_escape_is_a_key_when_nothing_follows_it(reading: Reading) -> None:
    reading.thread.start()
    reading.type(b"\x1b", "escape")


def test_it_sleeps_until_a_key_is_pressed_and_again_some_time_after_it(
    reading: Reading, pauses: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_TICKING_SECONDS", 0.3)
    reading.thread.start()
    wait_until(lambda: pauses == [None], what="its first wait")
    reading.type(b"j", "j")
    wait_until(lambda: len(pauses) > 1 and pauses[-1] is None, what="another wait without an end")


def test_leaving_wakes_it_and_it_can_begin_again(reading: Reading) -> None:
    reading.thread.start()
    reading.type(b"j", "j")
    reading.reader.exit_event.set()
    reading.thread.join()
    reading.reader.exit_event.clear()
    reading.thread = threading.Thread(target=reading.reader.run_input_thread, daemon=True)
    reading.thread.start()
    reading.type(b"k", "k")
