"""The log document: offsets, folding, scrolling, searching, numbers, and files that change under it."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpstui.core.logview import counting
from mpstui.core.logview import document as document_module
from mpstui.core.logview.counting import Tally
from mpstui.core.logview.document import LogDocument
from mpstui.core.logview.line import LogLine
from mpstui.core.logview.searching import BLOCK_BYTES, matching


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "output.log"


def opened(path: Path, data: bytes | None = None) -> LogDocument:
    if data is not None:
        path.write_bytes(data)
    document = LogDocument(path)
    document.refresh()
    return document


def texts(lines: list[LogLine]) -> list[str]:
    return [line.text for line in lines]


def counted(document: LogDocument) -> int:
    for _ in range(1000):
        document.refresh()
        if document.line_count is not None:
            return document.line_count
    raise AssertionError("never counted")


def walked(document: LogDocument, step: int = 7) -> list[LogLine]:
    """All lines, forwards, page by page."""
    lines: list[LogLine] = []
    offset = 0
    while page := document.window(offset, step):
        lines += page
        offset = page[-1].end
    return lines


def walked_back(document: LogDocument, step: int = 7) -> list[LogLine]:
    """All lines, backwards, page by page."""
    lines = document.tail(step)
    while page := document.before(lines[0].offset, step) if lines else []:
        lines = page + lines
    return lines


def test_no_file_yet_then_lines(path: Path) -> None:
    document = opened(path)
    assert not document.refresh()
    assert document.tail(5) == []
    assert document.window(0, 5) == []
    assert document.search("x", 0) is None
    path.write_bytes(b"one\ntwo")
    assert document.refresh()
    assert texts(document.tail(5)) == ["one", "two"]
    assert not document.refresh()
    with path.open("ab") as file:
        file.write(b" and a half\nthree\n")
    assert document.refresh()
    assert texts(document.tail(2)) == ["two and a half", "three"]


def test_pages_meet_without_gap_or_overlap(path: Path) -> None:
    document = opened(path, b"".join(b"line %d\n" % i for i in range(1000)))
    expected = [f"line {i}" for i in range(1000)]
    assert texts(walked(document)) == expected
    assert texts(walked_back(document)) == expected
    assert [line.number for line in walked(document)] == list(range(1, 1001))


def test_an_offset_inside_a_line_means_the_next_one(path: Path) -> None:
    document = opened(path, b"aaa\nbbb\nccc\n")
    assert texts(document.window(1, 1)) == ["bbb"]
    assert texts(document.before(5, 9)) == ["aaa", "bbb"]
    assert document.window(10**9, 3) == []


def test_a_progress_bar_is_one_line_however_long_it_ran(path: Path) -> None:
    bar = b"".join(b"\r%3d%%|####| %d/9999 [00:01]" % (i % 100, i) for i in range(90_000))
    document = opened(path, b"start\n" + bar + b"\nend\n")
    lines = document.tail(3)
    assert lines[-1].text == "end"
    assert lines[-2].text == "99%|####| 89999/9999 [00:01]".rjust(len(lines[-2].text))
    assert sum("####" in line.text for line in walked(document)) <= len(bar) // BLOCK_BYTES + 2


@pytest.mark.parametrize("length", [BLOCK_BYTES - 1, BLOCK_BYTES, 3 * BLOCK_BYTES + 17, 5 * BLOCK_BYTES])
def test_a_line_of_megabytes_is_the_same_in_both_directions(path: Path, length: int) -> None:
    document = opened(path, b"before\n" + b"x" * length + b"\nafter\n")
    forwards, backwards = walked(document), walked_back(document)
    assert [(a.offset, a.end) for a in forwards] == [(b.offset, b.end) for b in backwards]
    assert [line.number for line in (forwards[0], forwards[1], forwards[-1])] == [1, 2, 3]
    assert forwards[1].hidden_characters > 0
    assert forwards[-1].text == "after"


LINES = st.lists(
    st.one_of(st.binary(max_size=60), st.just(b"\r" * 5), st.just(b"\x1b[31mx"), st.just(b"\0" * 9)), max_size=60
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(LINES, st.integers(1, 9), st.booleans())
def test_any_bytes_walk_the_same_in_both_directions(path: Path, parts: list[bytes], step: int, ended: bool) -> None:
    data = b"\n".join(parts) + (b"\n" if ended else b"")
    document = opened(path, data)
    forwards, backwards = walked(document, step), walked_back(document, step)
    assert forwards == backwards
    assert [line.offset for line in forwards] == [0, *(line.end for line in forwards[:-1])][: len(forwards)]
    assert len(forwards) == len(
        data.splitlines(keepends=False) if b"\r" not in data else data.rstrip(b"").split(b"\n")
    ) or (sum(line.end - line.offset for line in forwards) == len(data))
    assert counted(document) == data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)


def test_numbers_come_from_a_count_in_the_background(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "COUNT_SECONDS", 0.0)
    document = opened(path, b"0123456789abcde\n" * (3 * BLOCK_BYTES // 16) + b"last")
    assert document.line_count is None
    assert document.tail(1)[0].number is None
    total = counted(document)
    assert total == 3 * BLOCK_BYTES // 16 + 1
    assert document.tail(1)[0].number == total
    assert [line.number for line in document.at_line(total - 1, 5)] == [total - 1, total]
    assert document.at_line(100_000, 1)[0].offset == (100_000 - 1) * 16
    assert document.at_line(total + 5, 1) == []


def test_search_in_both_directions(path: Path) -> None:
    document = opened(path, b"".join(b"step %d loss %.1f\n" % (i, i / 10) for i in range(500)))
    found = document.search("step 250 ", 0)
    assert found is not None
    assert (found.text, found.number) == ("step 250 loss 25.0", 251)
    again = document.search("step", found.offset + 1)
    assert again is not None
    assert again.text.startswith("step 251 ")
    back = document.search("step", found.offset, backwards=True)
    assert back is not None
    assert back.text.startswith("step 249 ")
    assert document.search("nowhere", 0) is None
    assert document.search("step 3 ", found.offset) is None
    assert document.search_stopped_at is None


@pytest.mark.parametrize("pattern", [r"loss 25\.0$", r"^step 250", r"step\s250", "step 25[0]", "loss (25.0|77)"])
def test_a_pattern_is_a_regular_expression(path: Path, pattern: str) -> None:
    document = opened(path, b"".join(b"step %d loss %.1f\n" % (i, i / 10) for i in range(500)))
    found = document.search(pattern, 0)
    assert found is not None
    assert found.text == "step 250 loss 25.0"


def test_what_is_no_regular_expression_is_taken_literally(path: Path) -> None:
    document = opened(path, b"a\nf(x = [1\n")
    found = document.search("(x = [", 0)
    assert found is not None
    assert found.number == 2


def test_search_sees_what_is_shown(path: Path) -> None:
    document = opened(path, "hid\rshown\n\x1b[31mer\x1b[0mror\ncafé\n".encode())
    assert document.search("hid", 0) is None
    for pattern, number in (("shown", 1), ("^shown", 1), ("error", 2), ("café", 3), ("caf.$", 3)):
        found = document.search(pattern, 0)
        assert found is not None, pattern
        assert found.number == number


def test_search_finds_what_a_long_line_hides(path: Path) -> None:
    document = opened(path, b"a\n" + b"x" * 50_000 + b"needle" + b"x" * 50_000 + b"\nb\n")
    found = document.search("needle", 0)
    assert found is not None
    assert found.offset == 2


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("loss", [0, 5, 10]), ("Loss", [5]), ("LOSS", [10]), (r"l\Sss", [0, 5, 10]), (r"\SOSS", [10]), ("L.s+", [5])],
)
def test_case_matters_where_the_pattern_has_capitals(path: Path, pattern: str, found: list[int]) -> None:
    document = opened(path, b"loss\nLoss\nLOSS\n")
    tally = Tally(matching(pattern))
    assert document.count_on(tally, 1)
    assert tally.count == len(found)
    first = document.search(pattern, 0)
    assert first is not None
    assert first.offset == found[0]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.text("ab\r\x1b[m\0é ", max_size=8), max_size=30), st.sampled_from(["ab", "a+", "^a", "é"]))
def test_a_count_agrees_with_looking_at_every_line(path: Path, parts: list[str], pattern: str) -> None:
    document = opened(path, "".join(f"{part}\n" for part in parts).encode())
    wanted = [line.offset for line in walked(document) if re.search(pattern, line.text, re.IGNORECASE)]
    tally = Tally(matching(pattern))
    assert document.count_on(tally, 1)
    assert (tally.count, tally.complete) == (len(wanted), True)
    assert [document.number_in(tally, offset) for offset in wanted] == list(range(1, len(wanted) + 1))


def test_a_count_goes_on_with_the_file_and_takes_slices(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "SLICE_BYTES", 64)
    document = opened(path, b"a needle\nnothing\n" * 50 + b"a need")
    tally = Tally(matching("needle"))
    rounds = 0
    while not tally.complete:
        assert document.count_on(tally, 0.0)
        rounds += 1
    assert rounds > 5
    assert tally.text == "50"
    with path.open("ab") as file:
        file.write(b"le\n")
    document.refresh()
    assert document.count_on(tally, 1)
    assert tally.text == "51", "a line counts when it is complete"
    assert document.number_in(tally, 50 * 17) == 51
    assert document.number_in(tally, 9) is None
    path.unlink()
    path.write_bytes(b"other\n")
    document.refresh()
    assert not document.count_on(tally, 1), "another file"


def test_what_matches_everywhere_is_counted_up_to_a_bound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_COUNTED", 1000)
    document = opened(path, b"e\n" * 100_000)
    tally = Tally(matching("e"))
    assert document.count_on(tally, 5)
    assert tally.complete
    assert tally.text.endswith("+")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(st.text("abr\r\x1b[mA\x08\0é ", max_size=8), max_size=40),
    st.sampled_from(["ab", "a", "b+", "^a", "r$", r"\bb", r"a\b", "(?<!a)b", "a.r", r"\Ab", "b(?!r)", "é", r"^\w+$"]),
)
def test_search_agrees_with_looking_at_every_line(path: Path, parts: list[str], pattern: str) -> None:
    document = opened(path, "\n".join(parts).encode())
    lines = walked(document)
    wanted = [line.offset for line in lines if re.search(pattern, line.text, re.IGNORECASE)]
    found, offset = [], 0
    while (line := document.search(pattern, offset)) is not None:
        found.append(line.offset)
        offset = line.offset + 1
    assert found == wanted
    back, offset = [], document.size_bytes + 1
    while (line := document.search(pattern, offset, backwards=True)) is not None:
        back.append(line.offset)
        offset = line.offset
    assert back == wanted[::-1]


@pytest.mark.parametrize(
    "line",
    [
        b"\x1b[32mgreen\x1b[0m and plain\n",
        b"\r 50%|#| 1/2\r100%|##| 2/2\x1b[A\n",
        "█ 损失 0.5\n".encode(),
        "损失 a 0.5\n".encode("gb18030"),
        b"a \xff\xfa b\n",
        b"\x1b" * 99 + b"\n",
        b"\0\0\0a\n",
        b"x" * 99_999 + b"\n",
    ],
)
def test_of_a_file_in_which_nothing_matches_no_line_is_made(
    path: Path, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, made = opened(path, line * (300_000 // len(line))), list[bytes]()
    monkeypatch.setattr("mpstui.core.logview.document.make_line", lambda raw, *rest, **more: made.append(raw))
    for pattern in ("needle", "n[e]+dle", "^needle", r"\bneedle$"):
        assert document.search(pattern, 0) is None
        assert document.search(pattern, document.size_bytes, backwards=True) is None
    assert document.next_error(0) is None
    assert made == []


def test_the_next_error(path: Path) -> None:
    document = opened(
        path,
        b"fine\nmean_error 0.1\nTraceback (most recent call last):\n"
        b'  File "a.py", line 1, in <module>\nValueError: no\nERROR late\n',
    )
    first = document.next_error(0)
    assert first is not None
    assert first.text.startswith("Traceback")
    second = document.next_error(first.offset + 1)
    assert second is not None
    assert second.text == "ValueError: no"
    last = document.next_error(document.size_bytes, backwards=True)
    assert last is not None
    assert last.text == "ERROR late"


def test_a_search_that_runs_out_of_time_tells_where_to_go_on(path: Path) -> None:
    document = opened(path, b"nothing\n" * (3 * BLOCK_BYTES // 8) + b"needle\n")
    found, offset, rounds = document.search("needle", 0, seconds=0.0), 0, 0
    while found is None and document.search_stopped_at is not None:
        offset, rounds = document.search_stopped_at, rounds + 1
        found = document.search("needle", offset, seconds=0.0)
    assert found is not None
    assert rounds > 0


@pytest.mark.parametrize("new", [b"new\n", b"new and longer than before\n" * 50, b""])
@pytest.mark.parametrize("replace", [True, False])
def test_a_file_that_was_cut_or_replaced_is_shown_as_it_is(path: Path, new: bytes, replace: bool) -> None:
    document = opened(path, b"old\n" * 20)
    counted(document)
    if replace:
        other = path.with_name("other")
        other.write_bytes(new)
        other.replace(path)
    else:
        path.write_bytes(new)
    assert document.refresh()
    assert texts(document.tail(1)) == [line.decode() for line in new.splitlines()[-1:]]
    assert counted(document) == new.count(b"\n")


def test_a_deleted_file_stays_readable(path: Path) -> None:
    document = opened(path, b"one\ntwo\n")
    path.unlink()
    assert not document.refresh()
    assert texts(document.tail(2)) == ["one", "two"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="holes are made with fallocate(1)")
def test_a_hole_in_front_of_a_capped_log_is_not_shown(path: Path) -> None:
    lines = b"".join(b"%063d\n" % i for i in range(4096))
    path.write_bytes(lines)
    if subprocess.run(["fallocate", "-p", "-o", "0", "-l", str(1 << 17), path], check=False).returncode:
        pytest.skip("this file system punches no holes")
    document = opened(path)
    assert document.window(0, 1)[0].offset == 1 << 17
    assert [line.offset for line in walked(document)] == [line.offset for line in walked_back(document)]
    assert document.window(0, 1)[0].text == f"{(1 << 17) // 64:063d}"
    assert document.tail(1)[0].text == f"{4095:063d}"


def test_writers_that_interleave_and_tear_characters(path: Path) -> None:
    source, document = random.Random(3), opened(path, b"")
    whole = "".join(f"zeile {i} äöü 漢字\n" for i in range(200)).encode()
    position = 0
    while position < len(whole):
        size = source.randint(1, 50)
        with path.open("ab") as file:
            file.write(whole[position : position + size])
        position += size
        document.refresh()
        assert len(document.tail(3)) <= 3
    assert texts(walked(document)) == whole.decode().splitlines()


def test_opening_at_the_end_costs_nothing_however_long_the_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 31)  # two gigabytes, sparse: nothing but the end may be read
        file.seek(0, 2)
        file.write(b"\nthe end\n")

    def once() -> float:
        start = time.process_time()
        document = LogDocument(path)
        document.refresh()
        assert document.tail(1)[0].text == "the end"
        return time.process_time() - start

    assert min(once() for _ in range(3)) < 0.1


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def test_a_screenful_costs_the_same_in_a_long_file(path: Path) -> None:
    line = b"2026-11-21 12:00:00 step 1234 loss 0.123456 lr 0.001\n"
    short = opened(path, line * 1000)
    short_seconds = min(_timed(lambda: short.tail(50)) for _ in range(5))
    long = opened(path.with_name("long.log"), line * 400_000)
    long_seconds = min(_timed(lambda: long.tail(50)) for _ in range(5))
    assert long_seconds < 4 * short_seconds + 0.002


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_log_in_another_encoding_is_read_searched_and_counted(path: Path, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    text = "".join(f"step={i} loss={9 / (1 + i):.4f} 损失\r\n" for i in range(300))
    document = opened(path, mark + text.encode(encoding))
    assert [line.text for line in document.tail(2)] == ["step=298 loss=0.0301 损失", "step=299 loss=0.0300 损失"]
    assert document.window(0, 1)[0].text == "step=0 loss=9.0000 损失"
    assert document.line_count == 300
    found = document.search("step=150 ", 0)
    assert found is not None
    assert (found.number, found.text) == (151, "step=150 loss=0.0596 损失")
    with path.open("ab") as file:
        file.write("step=300 half".encode(encoding).removeprefix(b"\xff\xfe").removeprefix(b"\xef\xbb\xbf"))
    document.refresh()
    assert document.tail(1)[0].text == "step=300 half"
