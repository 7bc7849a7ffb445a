"""Checkpoints: patterns, steps told by names, and whether a file is whole."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from mpstui.core.runs.checkpoints import CheckpointScanner, is_whole, step_of


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step_1200.pt", 1200),
        ("checkpoint-500", 500),
        ("epoch=3-step=77.ckpt", 77),
        ("model_iter00042.pth", 42),
        ("epoch_3.pt", None),
        ("best.pt", None),
        ("resnet50.pt", None),
    ],
)
def test_the_step_in_a_name(name: str, step: int | None) -> None:
    assert step_of(name) == step


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"x" * 5000)
    return buffer.getvalue()


def test_a_torn_archive_is_not_whole_and_another_format_is_trusted(tmp_path: Path) -> None:
    file = tmp_path / "a.pt"
    file.write_bytes(zipped())
    assert is_whole(file)
    file.write_bytes(zipped()[:-30])
    assert not is_whole(file)
    file.write_bytes(b"\x80\x02pickle")
    assert is_whole(file)
    file.write_bytes(b"")
    assert not is_whole(file)
    assert not is_whole(tmp_path / "none.pt")


def test_the_first_folder_with_a_match_counts_and_it_is_not_scanned_all_the_time(tmp_path: Path) -> None:
    run, cwd = tmp_path / "run", tmp_path / "cwd"
    (cwd / "out").mkdir(parents=True)
    run.mkdir()
    (cwd / "out" / "step_5.pt").write_bytes(zipped())
    scanner = CheckpointScanner()
    found = scanner.scan("out/*.pt", (run, cwd), {"step_5.pt": 50}, now=0.0)
    assert [(one.step, one.complete) for one in found] == [(50, True)]
    (cwd / "out" / "step_6.pt").write_bytes(zipped())
    assert scanner.scan("out/*.pt", (run, cwd), {"step_5.pt": 50}, now=1.0) is found
    assert len(scanner.scan("out/*.pt", (run, cwd), {"step_5.pt": 50}, now=6.0)) == 2


def test_a_folder_is_a_checkpoint_too(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-500"
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"x" * 100)
    (one,) = CheckpointScanner().scan("checkpoint-*", (tmp_path,), {}, now=0.0)
    assert (one.size_bytes, one.step, one.complete) == (100, 500, True)


@pytest.mark.parametrize("pattern", ["", "**", "[", "/nowhere/*.pt", "..", "~no-such-user/*.pt", "\0"])
def test_no_pattern_raises(tmp_path: Path, pattern: str) -> None:
    CheckpointScanner().scan(pattern, (tmp_path, tmp_path / "none"), {}, now=0.0)


def test_the_end_of_a_run_and_a_new_checkpoint_are_looked_at_at_once(tmp_path: Path) -> None:
    scanner = CheckpointScanner()
    (tmp_path / "step-1.pt").write_bytes(b"x")
    assert len(scanner.scan("*.pt", (tmp_path,), {}, now=0.0)) == 1
    (tmp_path / "step-2.pt").write_bytes(b"x")
    assert len(scanner.scan("*.pt", (tmp_path,), {}, now=0.1)) == 1
    assert len(scanner.scan("*.pt", (tmp_path,), {"step-2.pt": 2}, now=0.2)) == 2
    (tmp_path / "step-1.pt").unlink()
    assert len(scanner.scan("*.pt", (tmp_path,), {"step-2.pt": 2}, now=0.3, live=False)) == 1
