"""Any log costs what its size pays for, and says what was passed over; one that was meant is read whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from mpstui.core.formats import thrift
from mpstui.core.formats.reader import LogReader

SLICE = 1 << 16


class Counted(LogReader):
    """Counts the lines that are really read, and their characters."""

    lines = characters = 0

    def _examine(self, text: str):  # type: ignore[no-untyped-def]
        self.lines += 1
        self.characters += len(text)
        return super()._examine(text)


def unlike(count: int) -> bytes:
    words = ("".join(letters) for letters in itertools.product("abcdefghij", repeat=5))
    return b"".join(f"{word} has {i}.5 of {word}s\n".encode() for i, word in zip(range(count), words, strict=False))


def read(data: bytes, reader: LogReader | None = None) -> LogReader:
    reader = reader or Counted()
    for start in range(0, len(data), SLICE):
        reader.take(data[start : start + SLICE])
    reader.close()
    return reader


@pytest.fixture
def poor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a few hundred lines are free, so that small logs show what becomes of large ones."""
    monkeypatch.setattr(thrift, "RESERVE", 30_000)


STORMS: dict[str, Callable[[], bytes]] = {
    "unlike lines": lambda: unlike(20_000),
    "frames": lambda: b"".join(b"%x\r" % i for i in range(300_000)),
    "cursor up": lambda: b"".join(b"%x of it\x1b[A" % i for i in range(100_000)),
    "backspaces": lambda: b"".join(b"%x\x08\x08" % i for i in range(200_000)),
    "bars": lambda: b"".join(b"\r 50%%|#  | %d/900 [00:01<00:01, 2.0it/s, loss=0.5]" % (i % 7) for i in range(20_000)),
    "two bars": lambda: b"".join(
        b"\r 50%%|#  | %d/900 [00:01<00:01, 2.0it/s, loss=%d.5]\n"
        b"\r10%%|# | %d/90 [00:01<00:01, 2.0it/s, loss=0.5]\x1b[A" % (i, i % 7, i % 9)
        for i in range(9000)
    ),
    "long lines": lambda: b"".join(b"step %d loss: 1.5 " % i * 600 + b"\n" for i in range(100)),
}


@pytest.mark.usefixtures("poor")
@pytest.mark.parametrize("storm", STORMS)
def test_the_work_grows_by_little_with_the_size(storm: str) -> None:
    data = STORMS[storm]()
    half, whole = (read(part) for part in (data[: len(data) // 2], data))
    assert isinstance(half, Counted)
    assert isinstance(whole, Counted)
    more = len(data) // 2
    slices = more / SLICE + 2
    earned = more / 40 / 40  # lines that its bytes pay for, were each of them empty
    assert whole.lines - half.lines <= earned + slices * 80
    assert whole.characters - half.characters <= more / 40 + slices * (1 << 14)


@pytest.mark.usefixtures("poor")
def test_what_was_passed_over_is_said_and_the_newest_is_known() -> None:
    reader = read(unlike(20_000) + b"step 7 loss 0.25\n")
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.step, found.train_loss.last) == (7, 0.25)
    passed = int((found.read_in_part or "0").split()[0].replace(",", ""))
    assert 19_000 < passed < 20_000
    assert found.read_in_part == f"{passed:,} lines passed over"


@pytest.mark.usefixtures("poor")
def test_what_trickles_in_is_read_whatever_came_before() -> None:
    reader = read(unlike(20_000))
    losses = [point.newest.loss for i in range(50) for point in reader.take(b"step %d: the loss: %d.5\n" % (i, i))]
    assert losses == [i + 0.5 for i in range(50)]


@pytest.mark.usefixtures("poor")
def test_lines_on_both_sides_of_a_gap_are_not_joined() -> None:
    cells = b"--------------\n| time/ | |\n|    iterations | 1 |\n| train/ | |\n|    loss | 0.5 |\n"
    reader = read(unlike(20_000))
    reader.take(unlike(5000) + cells + unlike(20_000) + b"--------------\n")
    assert reader.summary().train_loss is None


def test_a_log_that_was_meant_is_read_whole() -> None:
    reader = read(unlike(3000))
    assert isinstance(reader, Counted)
    assert reader.lines == 3000
    assert reader.in_part is None
    assert thrift.RESERVE / (40 + 60) >= 100_000  # lines of 60 characters


def test_lines_of_a_kind_that_never_says_anything_are_not_read_again() -> None:
    reader = Counted()
    reader.feed(b"".join(b"copied %05d files of 3.5 GB to node %03d\n" % (i, i % 50) for i in range(5000)))
    assert reader.lines < 20


def test_a_traceback_among_lines_of_such_a_kind_is_understood() -> None:
    noise = b"".join(b"copied %05d files\n" % i for i in range(100))
    reader = read(b"epoch 1 step 5 loss 0.5\n" + noise + b'Traceback (most recent call last):\n  File "a.py", line 3\n')
    reader.take(noise + b"ValueError: no\n")
    assert reader.standing.failure == "ValueError: no"


def test_a_line_too_long_is_said() -> None:
    assert (
        read(b"step 1 loss 2.5\n" + b"loss 1 " * 20_000 + b"\nstep 2 loss 1.5\n").in_part
        == "1 line too long to be read"
    )
