"""What is kept of runs is valid for the readers that have read it, and for no others of the same release."""

from __future__ import annotations

from pathlib import Path

from mpstui import __version__
from mpstui.core.model.reader_version import reader_version


def test_a_changed_reader_is_another_one_and_the_same_files_are_the_same(tmp_path: Path) -> None:
    reader, cached = tmp_path / "core" / "formats" / "grammars" / "tqdm.py", tmp_path / "core" / "runs" / "__pycache__"
    for folder in (reader.parent, cached):
        folder.mkdir(parents=True)
    reader.write_text("a")
    first = reader_version.__wrapped__(tmp_path)
    (cached / "tqdm.pyc").write_text("x")
    (tmp_path / "core" / "runs" / "notes.txt").write_text("x")
    assert reader_version.__wrapped__(tmp_path) == first
    reader.write_text("ab")
    assert reader_version.__wrapped__(tmp_path) != first
    assert reader_version.__wrapped__(tmp_path / "none").startswith(f"{__version__}-")
