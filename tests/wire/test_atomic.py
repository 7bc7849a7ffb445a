"""Writes that are whole or not there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from mpstui.wire import storage


def test_a_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    storage.write_json(path, {"a": float("nan"), "b": [1, float("inf")]})
    storage.write_json(path, {"a": 2}, durable=True)
    assert storage.read_json(path) == {"a": 2}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["status.json"]


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "status.json"
    storage.write_json(path, {"a": 1})

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        storage.write_json(path, {"a": 2})
    assert storage.read_json(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["status.json"]


def test_what_was_created_once_stands(tmp_path: Path) -> None:
    path = tmp_path / "exit.json"
    assert storage.create_json(path, {"code": 3})
    assert not storage.create_json(path, {"code": 0})
    assert storage.read_json(path) == {"code": 3}
    assert [entry.name for entry in tmp_path.iterdir()] == ["exit.json"]


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "exit.json"
    assert storage.create_json(path, {"code": 3}, durable=True)
    assert not storage.create_json(path, {"code": 0})
    assert storage.read_json(path) == {"code": 3}


def test_a_torn_last_line_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "to')
    storage.append_line(path, {"event": "note"})
    lines = path.read_text().splitlines()
    assert lines[0] == '{"event": "to'
    assert storage.load_object(lines[1]) == {"event": "note"}


def test_a_line_that_lacked_its_end_alone_on_a_full_disk_stands_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "metrics.jsonl", os.write
    storage.append_line(path, {"step": 1})

    def full(descriptor: int, data: bytes) -> int:
        if len(data) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:-1])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            storage.append_line(path, {"step": 2})
    storage.append_line(path, {"step": 2})
    assert path.read_text() == '{"step": 1}\n{"step": 2}\n'


@pytest.mark.parametrize("data", [b'{"a": 1', b"[1]", b"", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_object_is_unreadable(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(storage.UnreadableRecord):
        storage.read_json(path)
    assert storage.read_json(tmp_path / "none.json") is None
    assert storage.read_json(path / "below-a-file.json") is None
