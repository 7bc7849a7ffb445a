"""Events for people: an answer that repeats what happened is not told again; what happened twice is."""

from __future__ import annotations

from pathlib import Path

from mpstui.core.model.snapshot import Checkpoint, RunEvent, RunSnapshot, State
from mpstui.core.present.story import not_its_own, short_paths, told_once


def test_an_answer_in_the_same_words_is_an_echo() -> None:
    started = RunEvent(100.0, 2, "restart", "attempt 2 started")
    answer = RunEvent(100.2, 1, "ack", "attempt 2 started")
    assert told_once([started, answer]) == [started]
    assert told_once([answer, started]) == [answer]


def test_what_happens_twice_is_told_twice() -> None:
    crashes = [RunEvent(100.0 + n, n, "crash", "exit code 1") for n in (1, 2)]
    late = RunEvent(200.0, 1, "ack", "exit code 1")
    silent = [RunEvent(100.0, 1, "ack", ""), RunEvent(100.0, 1, "ack", "")]
    assert told_once([*crashes, late, *silent]) == [*crashes, late, *silent]


def test_own_files_have_short_names() -> None:
    assert (
        short_paths("from /runs/a/checkpoints/x.pt and /b/x.pt", Path("/runs/a")) == "from checkpoints/x.pt and /b/x.pt"
    )


def test_a_checkpoint_from_before_or_after_the_run_is_another_runs() -> None:
    run = RunSnapshot(run="r", name="r", dir=Path(), state=State.FINISHED, seen=900.0, started=100.0, ended=500.0)
    times = (99.0, 101.0, 540.0, 600.0)
    told = [not_its_own(Checkpoint(Path("e1.pt"), 1, time), run) for time in times]
    assert told == ["older than the run", "", "", "newer than the run"]


def test_what_a_checkpoint_says_of_itself_counts_more_than_its_time() -> None:
    run = RunSnapshot(run="r", name="r", dir=Path(), state=State.FINISHED, seen=900.0, started=100.0, ended=500.0)
    assert not_its_own(Checkpoint(Path("e1.pt"), 1, 300.0, owner="other"), run) == "of run other"
    assert not_its_own(Checkpoint(Path("e1.pt"), 1, 600.0, owner="r"), run) == ""
