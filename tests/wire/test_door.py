"""Files that others may have put in a record's place: pipes, devices, folders, giants and names that are no text."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mpstui.wire import liveness, storage
from mpstui.wire.records import ExitRecord
from mpstui.wire.storage import NotAFile, TooLarge, UnreadableRecord


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_pipe_is_not_waited_for(pipe: Path) -> None:
    with pytest.raises(NotAFile, match="is a pipe, not a file"):
        storage.read_json(pipe)
    assert storage.read_or_none(ExitRecord, pipe) is None
    assert not liveness.is_held(pipe)


def test_a_device_does_not_fill_the_memory(tmp_path: Path) -> None:
    (tmp_path / "status.json").symlink_to("/dev/zero")
    with pytest.raises(NotAFile, match="a device"):
        storage.read_json(tmp_path / "status.json")


def test_a_folder_and_a_name_that_cannot_be_are_errors_of_the_file(tmp_path: Path) -> None:
    for path, why in ((tmp_path, "a folder"), (tmp_path / "a\0b", "no name"), (tmp_path / "\ud800", "no name")):
        with pytest.raises(OSError, match=why):
            storage.read_bytes(path)
        assert storage.stamp(tmp_path / "a\0b") is None


def test_more_than_any_record_holds_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert storage.read_bytes(path, 5) == b"12345"
    with pytest.raises(TooLarge):
        storage.read_bytes(path, 4)
    os.truncate(path, 1 << 40)  # a sparse file
    with pytest.raises(TooLarge):
        storage.read_bytes(path)


def test_a_file_of_the_kernel_has_a_content_and_no_size() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("this system has no /proc")
    assert "Pid:" in storage.read_text("/proc/self/status")


@pytest.mark.parametrize("number", ["1e400", "NaN", "1" + "0" * 400, "1e19", "true", '"1"'])
def test_a_number_that_nothing_can_be_makes_the_record_unreadable(number: str) -> None:
    with pytest.raises(UnreadableRecord, match="ended"):
        storage.from_json(ExitRecord, json.loads(f'{{"attempt": 1, "ended": {number}}}'))


def test_a_name_that_is_no_text_comes_back_as_it_was(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.pt")
    storage.write_json(tmp_path / "x.json", {"checkpoint": name})
    assert storage.read_json(tmp_path / "x.json") == {"checkpoint": name}
    storage.append_line(tmp_path / "x.jsonl", {"checkpoint": name})
    assert json.loads((tmp_path / "x.jsonl").read_bytes()) == {"checkpoint": name}
