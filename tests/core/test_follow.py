"""Following real files: torn lines, truncation, replacement, late creation, holes, several writers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpstui.core.follow import LONGEST_LINE_BYTES, LineTail, last_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.jsonl"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def everything(tail: LineTail, budget: int = 1 << 18) -> bytes:
    parts = []
    while True:
        growth = tail.read(budget)
        parts.append(growth.data)
        if not growth.more:
            return b"".join(parts)


def test_a_file_that_does_not_exist_yet_is_awaited(path: Path) -> None:
    tail = LineTail(path)
    assert tail.read().data == b""
    append(path, b"one\n")
    assert tail.read().data == b"one\n"
    assert tail.changed_at is not None


def test_a_torn_line_is_not_yet(path: Path) -> None:
    tail = LineTail(path)
    append(path, b"one\ntw")
    assert tail.read().data == b"one\n"
    assert not tail.read().more
    append(path, b"o\nth")
    assert tail.read().data == b"two\n"
    append(path, b"ree\n")
    assert tail.read().data == b"three\n"


def test_a_budget_cuts_between_lines_and_says_that_there_is_more(path: Path) -> None:
    append(path, b"".join(b"line %d\n" % i for i in range(5000)))
    tail = LineTail(path)
    growth = tail.read(4096)
    assert growth.more
    assert growth.data.endswith(b"\n")
    assert len(growth.data) <= 4096
    assert growth.data + everything(tail, 4096) == path.read_bytes()


def test_truncation_starts_over(path: Path) -> None:
    append(path, b"one\ntwo\n")
    tail = LineTail(path)
    tail.read()
    path.write_bytes(b"new\n")
    growth = tail.read()
    assert (growth.restarted, growth.data) == (True, b"new\n")


def test_truncation_that_grew_past_the_old_end_is_seen_by_its_content(path: Path) -> None:
    append(path, b"one\ntwo\n")
    tail = LineTail(path)
    tail.read()
    path.write_bytes(b"another file with more in it\nand more\n")
    growth = tail.read()
    assert (growth.restarted, growth.data) == (True, path.read_bytes())


def test_replacement_starts_over_even_at_the_same_size(path: Path) -> None:
    append(path, b"one\n")
    tail = LineTail(path)
    tail.read()
    other = path.with_name("other")
    other.write_bytes(b"two\n")
    other.replace(path)
    growth = tail.read()
    assert (growth.restarted, growth.data) == (True, b"two\n")


def test_a_file_that_vanishes_for_a_moment_is_not_forgotten(path: Path) -> None:
    append(path, b"one\n")
    tail = LineTail(path)
    tail.read()
    path.rename(path.with_name("aside"))
    assert not tail.read().restarted
    path.with_name("aside").rename(path)
    append(path, b"two\n")
    growth = tail.read()
    assert (growth.restarted, growth.data) == (False, b"two\n")


def test_a_line_without_end_is_dropped_and_the_next_one_read(path: Path) -> None:
    append(path, b"x" * (LONGEST_LINE_BYTES + 5000))
    tail = LineTail(path)
    growth = tail.read()
    assert (growth.data, growth.dropped_lines) == (b"", 1)
    append(path, b"y" * 100 + b"\nnext\n")
    assert everything(tail) == b"next\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="holes are made with fallocate(1)")
def test_a_hole_in_front_does_not_disturb(path: Path) -> None:
    block = 1 << 16
    lines = b"".join(b"%063d\n" % i for i in range(4 * block // 64))
    append(path, lines)
    tail = LineTail(path)
    tail.read(block)
    before = tail.offset
    if subprocess.run(["fallocate", "-p", "-o", "0", "-l", str(2 * block), path], check=False).returncode:
        pytest.skip("this file system punches no holes")
    growth = tail.read(1 << 20)
    assert not growth.restarted
    assert growth.data.strip(b"\0") == lines[2 * block :]
    assert before < 2 * block


def test_unchanged_files_are_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, b"one\n")
    tail = LineTail(path)
    tail.read()
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    assert tail.read().data == b""


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=3000), st.lists(st.integers(1, 700), max_size=12), st.integers(0, 3))
def test_any_bytes_in_any_pieces_come_out_whole(path: Path, data: bytes, cuts: list[int], seed: int) -> None:
    path.unlink(missing_ok=True)
    tail, got, position = LineTail(path), b"", 0
    random.Random(seed).shuffle(cuts)
    for cut in [*cuts, len(data)]:
        append(path, data[position : position + cut])
        position += cut
        got += everything(tail, 4096)
    assert got == data[: data.rfind(b"\n") + 1]


def test_two_writers_that_interleave_lines_lose_none(path: Path) -> None:
    tail, got = LineTail(path), b""
    with path.open("ab", buffering=0) as one, path.open("ab", buffering=0) as other:
        for i in range(300):
            (one if i % 3 else other).write(b"%d\n" % i)
            if i % 7 == 0:
                got += tail.read().data
    got += tail.read().data
    assert got.split() == [b"%d" % i for i in range(300)]


def test_the_end_of_a_file_in_complete_lines(path: Path) -> None:
    append(path, b"aaaa\nbbbb\ncccc\ndd")
    assert last_lines(path, 9) == b"cccc\n"
    assert last_lines(path, 1000) == b"aaaa\nbbbb\ncccc\n"
    assert last_lines(path.with_name("none"), 10) == b""


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="this system does not tell holes")
def test_a_hole_of_a_terabyte_is_not_read_through(path: Path) -> None:
    path.write_bytes(b"one\ntorn")
    tail = LineTail(path)
    assert tail.read().data == b"one\n"
    os.truncate(path, 1 << 40)
    for _ in range(20):
        if not tail.read().more:
            break
    assert tail.offset == 1 << 40
    with path.open("ab") as file:
        file.write(b"\ntwo\n")
    assert tail.read().data.strip() == b"two"
