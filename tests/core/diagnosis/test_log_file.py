"""Reading the parts of a log file that matter, whatever its size and bytes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mpstui.core.diagnosis.engine import diagnose
from mpstui.core.diagnosis.evidence import FIRST_ERROR, HEAD_BYTES, TAIL_BYTES, evidence_from_log, log_lines

STEP = b"2026-01-01 00:00:00 INFO step 00000001 loss 0.5321 lr 1.0e-04\n"
OOM = b"RuntimeError: MPS backend out of memory (MPS allocated: 5.50 GB)\n"


def test_small_files_are_read_whole_and_numbered_like_an_editor_does(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"one\n\nbar 1\rbar 2\nfour\x0cfour\n\xe2\x80\xa8five")
    assert [(line.number, line.text) for line in log_lines(log)] == [
        (1, "one"),
        (3, "bar 1"),
        (3, "bar 2"),
        (4, "fourfour"),
        (5, "five"),
    ]


def test_line_numbers_are_true_at_the_end_of_a_large_file(tmp_path: Path) -> None:
    log = tmp_path / "large.log"
    steps = 40_000
    log.write_bytes(STEP * steps + OOM)
    finding = diagnose(evidence_from_log(log))[0]
    assert finding.id == "mps_oom"
    assert finding.evidence[0].line == steps + 1


def test_the_first_traceback_in_the_middle_is_seen(tmp_path: Path) -> None:
    log = tmp_path / "middle.log"
    before = HEAD_BYTES // len(STEP) + 100
    noise = b"x\n" * TAIL_BYTES
    log.write_bytes(STEP * before + FIRST_ERROR + b"\n" + OOM + noise)
    lines = evidence_from_log(log).lines
    found = [line.number for line in lines if "out of memory" in line.text]
    assert found == [before + 2]


def test_bytes_that_are_no_utf8_do_no_harm(tmp_path: Path) -> None:
    log = tmp_path / "gbk.log"
    log.write_bytes("训练 开始\n".encode("gbk") + b"\xff\xfe\x00\n" + OOM)
    assert [finding.id for finding in diagnose(evidence_from_log(log))] == ["mps_oom"]


def test_an_empty_file_explains_nothing(tmp_path: Path) -> None:
    log = tmp_path / "empty.log"
    log.touch()
    assert diagnose(evidence_from_log(log)) == ()


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        evidence_from_log(tmp_path / "none.log")


def test_a_hundred_megabytes_are_not_decoded(tmp_path: Path) -> None:
    log = tmp_path / "huge.log"
    block = STEP * 16_384
    with log.open("wb") as file:
        for _ in range(100):
            file.write(block)
        file.write(OOM)
    started = time.process_time()
    finding = diagnose(evidence_from_log(log))[0]
    assert time.process_time() - started < 2.0
    assert finding.evidence[0].line == 1_638_401


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="this system does not tell holes")
def test_a_hole_of_a_terabyte_is_not_read_through(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"epoch 1\n")
    os.truncate(path, 1 << 40)
    with path.open("ab") as file:
        file.write(b"\nRuntimeError: at the end\n")
    assert log_lines(path)[-1].text == "RuntimeError: at the end"
