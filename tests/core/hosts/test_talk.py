"""Questions over a line to a process of its own: what happens to files in between, and to an end that falls silent."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from mpstui.core.hosts import talk
from mpstui.core.hosts.line import HostError, Line
from mpstui.core.hosts.talk import Place
from mpstui.core.model.errors import OperationError
from tests.waiting import wait_until

FAR = """
import sys
from mpstui.core.hosts import talk
from mpstui.core.model.errors import OperationError
talk.SILENT_SECONDS = float(sys.argv[1])
def take(asked, ends):
    ends.receiving().read(1 << 20)
    raise OperationError("the disk is full")
def give(asked, ends):
    with ends.sending() as out:
        while True:
            out.write(bytes(1 << 16))
def give_up(asked, ends):
    with ends.sending() as out:
        out.write(bytes(asked["bytes"]))
        out.flush()
        raise OperationError("it is moved by somebody else")
talk.serve({"take": take, "give": give, "give up": give_up, "echo": lambda asked, ends: {"heard": asked["word"]}})
"""
ENDLESS = 1 << 34


def far(silent_seconds: float) -> Line:
    command = [sys.executable, "-c", FAR, str(silent_seconds)]
    return Line("far", subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, bufsize=0))


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with Place(far(60.0)) as opened:
        yield opened


def test_an_end_that_refuses_files_is_heard_before_all_are_sent(place: Place) -> None:
    sent = 0

    def send(out: BinaryIO) -> None:
        nonlocal sent
        while sent < ENDLESS:
            sent += out.write(bytes(1 << 16))

    with pytest.raises(OperationError, match="the disk is full"):
        place.ask("take", {}, send)
    assert sent < 64 << 20
    assert place.ask("echo", {"word": "after"})["heard"] == "after"


def test_an_end_that_wants_no_more_files_is_heard_before_all_are_sent(place: Place) -> None:
    def receive(reads: BinaryIO) -> None:
        reads.read(1 << 20)
        raise OperationError("no room here")

    with pytest.raises(OperationError, match="no room here"):
        place.ask("give", {}, receive=receive)
    assert place.ask("echo", {"word": "after"})["heard"] == "after"


def test_files_that_break_off_leave_the_line_in_order(place: Place) -> None:
    def send(out: BinaryIO) -> None:
        out.write(b"some")
        raise OperationError("nothing more to read")

    with pytest.raises(OperationError, match="nothing more"):
        place.ask("take", {}, send)
    assert place.ask("echo", {"word": "after"})["heard"] == "after"


@pytest.mark.parametrize("count", [0, 1 << 17])
def test_files_from_one_line_to_another_that_break_off_are_no_answer_of_the_other(place: Place, count: int) -> None:
    with Place(far(60.0)) as source:

        def take(reads: BinaryIO) -> None:
            place.ask("take", {}, lambda out: shutil.copyfileobj(reads, out))

        with pytest.raises(OperationError, match="moved by somebody else"):
            source.ask("give up", {"bytes": count}, receive=take)
        for one in (source, place):
            assert one.ask("echo", {"word": "after"})["heard"] == "after"


def test_the_far_end_leaves_when_nobody_is_there_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that hangs tells nobody, and a run is held for as long as the far end waits."""
    monkeypatch.setattr(talk, "SIGN_SECONDS", 0.05)
    with Place(far(0.4)) as kept:
        started = wait_until(lambda: kept.ask("echo", {"word": "a"}))
        assert started
        assert kept._line._process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            kept._line._process.wait(0.6)
        kept._over.set()
        kept._line._process.wait(20)
        with pytest.raises(HostError):
            kept.ask("echo", {"word": "b"})
