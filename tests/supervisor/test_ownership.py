"""Whose a checkpoint is, where several runs save into one folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpstui.supervisor.checkpoints import ByOwner, split_by_owner
from mpstui.wire import liveness, storage
from mpstui.wire.checkpoints import mark, owner_of
from mpstui.wire.owners import LATE_SECONDS
from mpstui.wire.records import ExitRecord, LaunchRecord, LaunchTemplate, Spec
from mpstui.wire.rundir import RunDir, event

START = 1_700_000_000.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path


def lived(folder: Path, name: str, *attempts: tuple[float, float | None]) -> RunDir:
    """A run whose attempts began and ended so many seconds after the start of it all; None: no end is on record."""
    run = RunDir(folder / "runs" / name)
    run.path.mkdir(parents=True)
    for number, (begin, end) in enumerate(attempts, 1):
        attempt = run.attempt(number)
        attempt.path.mkdir(parents=True)
        storage.write_json(attempt.launch, LaunchRecord(number, START + begin, ["t"], "/", "cpu"))
        if end is not None:
            storage.write_json(attempt.exit, ExitRecord(number, START + end, code=1))
    storage.write_json(run.spec, Spec(name, name, START - 9999, template(folder)))
    return run


def template(folder: Path) -> LaunchTemplate:
    return LaunchTemplate("cpu", {}, str(folder), checkpoints="out/*.pt")


def saved(folder: Path, name: str, after: float, run: str | None = None) -> Path:
    path = folder / "out" / name
    path.write_bytes(b"\x80" * 100 + (mark(run).encode() + b"\x94" if run else b"") + b"weights")
    os.utime(path, (START + after, START + after))
    return path


def looked(run: RunDir, folder: Path) -> tuple[ByOwner, list[str]]:
    found = split_by_owner(run, template(folder))
    return found, [item.path.name for item in found.own]


def test_only_what_was_written_while_an_attempt_lived_is_its_own(folder: Path) -> None:
    run = lived(folder, "a", (100, 200), (400, 500))
    times = {"before": 50, "first": 150, "late": 200 + LATE_SECONDS, "between": 350, "second": 450, "after": 600}
    for name, after in times.items():
        saved(folder, f"{name}.pt", after)
    found, own = looked(run, folder)
    assert own == ["second.pt", "late.pt", "first.pt"]
    remark = found.remark(found.own[0])
    assert remark == f"{folder}/out/after.pt was not written while this run trained; --from PATH uses it anyway"
    assert found.remark(None).startswith(f"{folder}/out/after.pt was not")


def test_the_newer_file_of_a_run_that_came_later_is_named_and_left(folder: Path) -> None:
    first, second = lived(folder, "a", (100, 200)), lived(folder, "b", (300, 400))
    mine = saved(folder, "e1.pt", 150)
    saved(folder, "e2.pt", 350)
    found, own = looked(first, folder)
    assert own == [mine.name]
    assert f"e2.pt is of run {second.run}; " in found.remark(found.own[0])
    assert found.remark(found.own[0], best=True) == ""


def test_of_two_that_trained_at_once_what_the_file_says_counts(folder: Path) -> None:
    first, second = lived(folder, "a", (100, 900)), lived(folder, "b", (110, 900))
    saved(folder, "mine.pt", 500, "a")
    saved(folder, "theirs.pt", 600, "b")
    assert looked(first, folder)[1] == ["mine.pt"]
    assert looked(second, folder)[1] == ["theirs.pt"]
    assert "theirs.pt is of run b" in looked(first, folder)[0].remark(looked(first, folder)[0].own[0])


def test_where_nobody_can_tell_it_is_taken_and_said(folder: Path) -> None:
    first = lived(folder, "a", (100, 900))
    lived(folder, "b", (110, 900))
    saved(folder, "e.pt", 500)
    found, own = looked(first, folder)
    assert own == ["e.pt"]
    assert found.remark(found.own[0]) == "run b saved there at the same time and may have written it"


def test_of_two_that_trained_at_once_those_that_the_agent_in_each_saw_being_saved_are_its_own(folder: Path) -> None:
    first, second = lived(folder, "a", (100, 900)), lived(folder, "b", (110, 900))
    for run, name, after in ((first, "mine.pt", 500), (second, "theirs.pt", 600), (first, "both.pt", 650)):
        saved_at = str(saved(folder, name, after))
        storage.append_line(
            run.events, event(START + after, 1, "checkpoint", "saved", path=saved_at, weights_only=True)
        )
    saved(folder, "both.pt", 700)  # and anew by the other one
    both = str(folder / "out" / "both.pt")
    storage.append_line(second.events, event(START + 700, 1, "checkpoint", "saved", path=both))
    assert looked(first, folder)[1] == ["mine.pt"]
    assert looked(second, folder)[1] == ["both.pt", "theirs.pt"]
    assert looked(second, folder)[0].doubtful == {}


def test_a_file_that_was_written_after_its_last_report_is_of_the_run_that_lived_then(folder: Path) -> None:
    """A run is killed right after it saved where an earlier one had saved: nobody has reported its file."""
    earlier, killed = lived(folder, "a", (100, 200)), lived(folder, "b", (1000, 1500))
    e1 = saved(folder, "e1.pt", 1499)
    storage.append_line(earlier.events, event(START + 150, 1, "checkpoint", "saved", path=str(e1)))
    found, own = looked(killed, folder)
    assert (own, found.passed_over) == (["e1.pt"], [])
    assert looked(earlier, folder)[1] == []


def test_without_a_pattern_a_file_that_another_run_has_saved_over_is_left(folder: Path) -> None:
    first, second = lived(folder, "a", (100, 1000)), lived(folder, "b", (200, 900))
    storage.append_line(
        first.events, event(START + 300, 1, "checkpoint", "saved", path=str(saved(folder, "e1.pt", 300)))
    )
    best = saved(folder, "best.pt", 600)
    for run, after in ((first, 400), (second, 600)):
        storage.append_line(run.events, event(START + after, 1, "checkpoint", "saved", path=str(best)))
    found = split_by_owner(first, template(folder)._replace(checkpoints=None))
    assert [item.path.name for item in found.own] == ["e1.pt"]
    assert found.passed_over[0][1] == "b"


def test_a_run_whose_end_nobody_saw_has_what_no_other_can_have_written(folder: Path) -> None:
    lost = lived(folder, "a", (100, None))
    lost.attempt(1).output.write_text("step 1\n")
    os.utime(lost.attempt(1).output, (START + 200, START + 200))
    saved(folder, "quiet.pt", 300)  # after its last line, and nobody else trained then
    lived(folder, "b", (400, 500))
    saved(folder, "theirs.pt", 450)
    assert looked(lost, folder)[1] == ["quiet.pt"]


def test_one_that_died_unseen_long_before_is_not_said_to_have_saved_at_the_same_time(folder: Path) -> None:
    lost, run = lived(folder, "a", (100, None)), lived(folder, "b", (1000, 2000))
    lost.attempt(1).output.write_text("step 1\n")
    os.utime(lost.attempt(1).output, (START + 200, START + 200))
    saved(folder, "e.pt", 1500)
    found, own = looked(run, folder)
    assert (own, found.remark(found.own[0])) == (["e.pt"], "")
    alive = liveness.acquire(lost.run_lock)
    assert alive is not None
    found, own = looked(run, folder)
    assert (own, found.remark(found.own[0])[:6]) == (["e.pt"], "run a ")
    liveness.release(alive)


def test_a_run_that_never_began_has_none(folder: Path) -> None:
    saved(folder, "e.pt", 500)
    assert looked(lived(folder, "a"), folder)[1] == []


def test_a_run_in_another_folder_claims_nothing(folder: Path) -> None:
    run, other = lived(folder, "a", (100, 900)), lived(folder, "b", (100, 900))
    elsewhere = LaunchTemplate("cpu", {}, "/elsewhere", checkpoints="out/*.pt")
    storage.write_json(other.spec, Spec("b", "b", START, elsewhere))
    (folder / "runs" / "damaged").mkdir()
    (folder / "runs" / "damaged" / "spec.json").write_text("{")
    saved(folder, "e.pt", 500)
    found, own = looked(run, folder)
    assert (own, found.remark(found.own[0])) == (["e.pt"], "")


def test_the_mark_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(b"PK" + mark("20261121-114700-cifar-10").encode() + b"\x94h\x00")
    assert owner_of(path) == "20261121-114700-cifar-10"
    path.write_bytes(b"nothing")
    assert owner_of(path) is None
    assert owner_of(tmp_path / "gone") is None
