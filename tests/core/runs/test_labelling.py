"""Names, tags and notes: whole or not there, by two at once, of hostile words, on a full disk, in a damaged file."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from dataclasses import replace

import pytest

from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.home import Home
from mpstui.core.runs.find import find_run
from mpstui.core.runs.labelling import annotate, rename, tag, tag_changes
from mpstui.core.runs.queueing import list_groups
from mpstui.core.runs.report import as_json
from mpstui.wire import labels, liveness, storage
from mpstui.wire.labels import LONGEST_NOTE, Labels
from mpstui.wire.records import QueueRule
from mpstui.wire.rundir import RunDir
from tests.core.runs.build import FakeClock, RunBuilder, make_monitor


@pytest.fixture
def run(home: Home) -> RunDir:
    return RunBuilder(home, "first").status("ended").launch().exit(code=0).run


def test_what_is_said_of_an_ended_run_shows_at_once_and_in_its_json(home: Home, run: RunDir) -> None:
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    assert monitor.refresh()[0].tags == ()
    rename(run, "baseline, second try")
    annotate(run, "seed of the paper\nwarmup 500")
    tag(run, ["paper", "keep"])
    tag(run, ["best"], ["keep"])
    clock.advance(2.0)
    [shown] = monitor.refresh()
    assert (shown.name, shown.tags) == ("baseline, second try", ("paper", "best"))
    row = as_json(shown, full=False)
    assert (row["name"], row["tags"], row["note"]) == (
        "baseline, second try",
        ["paper", "best"],
        "seed of the paper\nwarmup 500",
    )
    assert find_run(home, "Baseline, second try") == run == find_run(home, "first")
    rename(run, "")
    clock.advance(2.0)
    assert monitor.refresh()[0].name == "first"


def test_it_is_of_this_user_alone(run: RunDir) -> None:
    annotate(run, "mine")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (run.labels, run.labels_lock)} == {0o600}
    assert [path.name for path in run.path.glob(".*")] == []


def test_a_queue_calls_its_runs_by_their_new_names(home: Home) -> None:
    waits = RunBuilder(home, "second", queue=QueueRule(group="mps")).status("queued").hold(run=False)
    rename(waits.run, "renamed")
    assert [one.name for group in list_groups(home) for one in group.waiting] == ["renamed"]


def test_hostile_words_never_steer_a_terminal(run: RunDir) -> None:
    found = rename(run, "a\x1b[2Jb\r\n c\u202ed \udc80")
    assert found.name == "ab cd \ufffd"
    assert annotate(run, " one\x07\n\ttwo \x1b]0;t\x07 ").note == "one\n\ttwo"
    for word in ("two words", "a,b", "#x", "-x", "+x", "", "\x1b[2J", "x" * 41, "line\nline", "\u202e"):
        with pytest.raises(UsageError) as refused:
            tag(run, [word])
        assert refused.value.field == "tags"
    assert tag(run, ["größe", "日本", "v1.2/x"]).tags == ("größe", "日本", "v1.2/x")
    with pytest.raises(UsageError):
        annotate(run, "x" * (LONGEST_NOTE + 1))
    with pytest.raises(UsageError):
        tag(run, map(str, range(33)))
    assert labels.read(run).tags == ("größe", "日本", "v1.2/x")


def test_two_at_once_both_get_their_way(run: RunDir) -> None:
    program = (
        "import sys; from pathlib import Path; from mpstui.core.runs.labelling import tag\n"
        "from mpstui.wire.rundir import RunDir\n"
        "for n in range(8): tag(RunDir(Path(sys.argv[1])), [f'{sys.argv[2]}{n}'])"
    )
    both = [subprocess.Popen([sys.executable, "-c", program, str(run.path), who]) for who in "ab"]
    assert [one.wait(60) for one in both] == [0, 0]
    assert set(labels.read(run).tags) == {f"{who}{n}" for who in "ab" for n in range(8)}


def test_one_who_holds_the_lock_for_long_is_named(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpstui.core.runs.editing.PATIENCE_SECONDS", 0.05)
    lock = liveness.acquire(run.labels_lock)
    assert lock is not None
    with pytest.raises(OperationError, match="somebody else"):
        annotate(run, "late")
    liveness.release(lock)
    assert annotate(run, "late").note == "late"


def test_a_full_disk_leaves_what_was_there(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    annotate(run, "kept")

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OperationError, match=r"cannot be changed: No space left.*"):
            annotate(run, "lost")
    assert labels.read(run).note == "kept"
    assert [path.name for path in run.path.glob(".*")] == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"tags": 3, "note": ["x"], "name": null}', '{"tags": ["a b", 5, "-x"]}', "\x00" * 99]
)
def test_a_damaged_file_costs_itself_alone(home: Home, run: RunDir, text: str) -> None:
    run.labels.write_text(text)
    [shown] = make_monitor(home, FakeClock()).refresh()
    assert (shown.state, shown.name, shown.tags, shown.note) == ("finished", "first", (), "")
    assert tag(run, ["again"]) == Labels(tags=("again",))


def test_a_pipe_in_its_place_is_waited_for_by_nobody(home: Home, run: RunDir) -> None:
    os.mkfifo(run.labels)
    [shown] = make_monitor(home, FakeClock()).refresh()
    assert (shown.name, labels.read(run)) == ("first", Labels())
    with pytest.raises(OperationError):
        annotate(run, "x")


def test_what_a_newer_mpstui_keeps_there_is_read_and_left_alone(run: RunDir) -> None:
    storage.write_json(run.labels, {"schema": 2, "note": "newer", "stars": 5})
    with pytest.raises(OperationError, match="newer"):
        annotate(run, "x")
    storage.write_json(run.labels, {"schema": 1, "note": "newer", "stars": 5})
    annotate(run, "x")
    assert storage.read_json(run.labels) == {"schema": 1, "name": "", "tags": [], "note": "x", "stars": 5}


@pytest.mark.parametrize(
    ("typed", "before", "added", "dropped"),
    [
        ("+a -b", "", ["a"], ["b"]),
        ("a c", "a b", ["c"], ["b"]),
        ("#a +c -b", "a b", ["c"], ["b", "b"]),
        ("", "a", [], ["a"]),
    ],
)
def test_tags_are_edited_as_words(typed: str, before: str, added: list[str], dropped: list[str]) -> None:
    assert tag_changes(typed.split(), before.split()) == (added, dropped)


def test_a_snapshot_without_labels_is_as_it_was(home: Home, run: RunDir) -> None:
    [shown] = make_monitor(home, FakeClock()).refresh()
    assert replace(shown, tags=(), note="") == shown
