"""Checkpoints: patterns, steps told by names, and whether a file is whole."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from math import nan
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import Numbers, RunEvent
from mpstui.core.runs import checkpoints
from mpstui.core.runs.checkpoints import LOOK_SECONDS, CheckpointScanner, is_whole, step_of
from mpstui.core.runs.state import RunWitnesses
from mpstui.wire.heartbeat import CheckpointNote
from mpstui.wire.records import LaunchTemplate, Spec
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_home, make_monitor
from tests.tensor_files import safetensors


@pytest.mark.parametrize("copied_first", [False, True])
def test_what_a_tracker_copies_into_its_store_is_listed_once_as_long_as_it_is_the_same(
    tmp_path: Path, copied_first: bool
) -> None:
    ours, theirs = tmp_path / "weights" / "last.pt", tmp_path / "mlruns" / "artifacts" / "last.pt"
    for file in (ours, theirs):
        file.parent.mkdir(parents=True)
    ours.write_bytes(zipped())
    shutil.copy2(ours, theirs)
    said = {theirs: True, ours: False} if copied_first else {ours: False, theirs: True}

    def found() -> list[tuple[Path, bool]]:
        return [(one.path, one.best) for one in CheckpointScanner().scan(None, (tmp_path,), {}, said)]

    assert found() == [(ours, True)], "a restart begins with the program's own"
    os.utime(ours, (2e9, 2e9))
    assert found() == [(ours, False), (theirs, True)], "it was written anew, and the copy is an earlier one"


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step_1200.pt", 1200),
        ("checkpoint-7.pth.tar", None),
        ("ckpt_3.pt", None),
        ("global_step_88", 88),
        ("epoch=3-step=77.ckpt", 77),
        ("model_iter00042.pth", 42),
        ("epoch_3.pt", None),
        ("best.pt", None),
        ("resnet50.pt", None),
    ],
)
def test_the_step_in_a_name(name: str, step: int | None) -> None:
    assert step_of(name) == step
    assert step_of("checkpoint-500", folder=True) == 500


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


def test_the_first_folder_with_a_match_counts(tmp_path: Path) -> None:
    run, cwd = tmp_path / "run", tmp_path / "cwd"
    (cwd / "out").mkdir(parents=True)
    run.mkdir()
    (cwd / "out" / "step_5.pt").write_bytes(zipped())
    scanner = CheckpointScanner()
    found = scanner.scan("out/*.pt", (run, cwd), {"step_5.pt": 50})
    assert [(one.step, one.complete) for one in found] == [(50, True)]
    (cwd / "out" / "step_6.pt").write_bytes(zipped())
    assert len(scanner.scan("out/*.pt", (run, cwd), {"step_5.pt": 50})) == 2
    best = cwd / "out" / "best.pt"
    for content, is_one in ((zipped(), True), (zipped()[:-30], False)):
        best.write_bytes(content)
        found = scanner.scan("out/best.pt", (run, cwd), {}, {best: True})
        assert [(one.best, one.complete) for one in found] == [(is_one, is_one)], "nothing can resume from a torn one"


def test_of_many_the_newest_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 3,000 files those that the folder happened to name first stood for all, without the newest one."""
    monkeypatch.setattr(checkpoints, "MOST_CHECKPOINTS", 3)
    reported = tmp_path / "elsewhere.pt"
    saved = [tmp_path / "out" / f"{number:02}.pt" for number in range(20)]
    saved[0].parent.mkdir()
    for number, path in enumerate(sorted([*saved, reported])):
        path.write_bytes(zipped())
        moment = 1_700_000_000 + 7 * number % 20
        os.utime(path, (moment, moment))
    os.utime(reported, (1_700_000_100, 1_700_000_100))
    found = CheckpointScanner().scan("out/*.pt", (tmp_path,), {}, {reported: False})
    newest = sorted([*saved, reported], key=lambda path: -path.stat().st_mtime)
    assert [one.path for one in found] == newest[:3]


def test_those_that_the_training_tells_of_are_there_wherever_they_lie(tmp_path: Path) -> None:
    elsewhere = [tmp_path / "out" / name for name in ("one.ckpt", "two.ckpt", "gone.ckpt")]
    elsewhere[0].parent.mkdir()
    events = []
    for step, path in enumerate(elsewhere):
        path.write_bytes(zipped())
        details = {"path": str(path), "step": step, "best": True}
        events.append(RunEvent(time=1.0, attempt=1, event="checkpoint", text="saved", details=details))
    elsewhere[2].unlink()
    run = tmp_path / "run"
    run.mkdir()
    found = CheckpointScanner().of_run(run, RunWitnesses(), Numbers(), events[:2])
    assert [(one.path.name, one.step, one.best) for one in sorted(found, key=lambda one: one.path.name)] == [
        ("one.ckpt", 0, False),
        ("two.ckpt", 1, True),
    ]
    assert len(CheckpointScanner().of_run(run, RunWitnesses(), Numbers(), events)) == 2


def test_files_of_one_name_in_several_folders_have_each_their_own_step(tmp_path: Path) -> None:
    saved = [tmp_path / "out" / f"seed_{number}" / "checkpoint.pth" for number in (1, 2)]
    for path in saved:
        path.parent.mkdir(parents=True)
        path.write_bytes(zipped())
    run = tmp_path / "run"
    run.mkdir()
    events = [
        RunEvent(time=1.0, attempt=1, event="checkpoint", text="saved", details={"path": str(path), "step": step})
        for path, step in zip(saved, (792, 1584), strict=True)
    ]
    found = CheckpointScanner().of_run(
        run, RunWitnesses(), Numbers(checkpoint=CheckpointNote(path=str(saved[1]), step=1584)), events
    )
    assert {one.path: one.step for one in found} == {saved[0]: 792, saved[1]: 1584}


def test_a_file_that_another_run_has_saved_into_the_same_folder_is_said_to_be_of_that_one(tmp_path: Path) -> None:
    home, clock = make_home(tmp_path), FakeClock()
    out = tmp_path / "out"
    out.mkdir()
    runs = [RunBuilder(home, f"run {at}").status("running").launch().hold() for at in range(2)]
    for at, run in enumerate(runs):
        run.respec(launch=run.spec.launch._replace(checkpoints=str(out / "*.pt")))
        (out / f"{at}.pt").write_bytes(zipped())
        run.event("checkpoint", "saved", path=str(out / f"{at}.pt"), step=at)
    found = make_monitor(home, clock).refresh(runs[0].run.run)
    shown = next(one for one in found if one.run == runs[0].run.run)
    assert {one.path.name: one.owner for one in shown.checkpoints} == {"0.pt": None, "1.pt": runs[1].run.run}


def test_what_another_run_has_saved_over_is_its_checkpoint_and_has_not_the_step_of_the_one_before(
    tmp_path: Path,
) -> None:
    home, clock, best = make_home(tmp_path), FakeClock(), tmp_path / "best.pt"
    best.write_bytes(zipped())
    first, second = (RunBuilder(home, f"run {at}").status("running").launch().hold() for at in range(2))
    os.utime(best, (NOW + 10, NOW + 10))
    first.event("checkpoint", "saved", time=NOW + 10, path=str(best), step=420)
    monitor = make_monitor(home, clock)

    def shown(run: RunBuilder) -> list[tuple[int | None, str | None]]:
        return [(one.step, one.owner) for one in monitor.snapshot(run.run.run).checkpoints]

    assert shown(first) == [(420, None)]
    os.utime(best, (NOW + 40, NOW + 40))
    clock.advance(LOOK_SECONDS)
    assert shown(first) == [(None, None)], "it was written anew, and whose step that was is not told yet"
    second.event("checkpoint", "saved", time=NOW + 40, path=str(best), step=315)
    clock.advance(LOOK_SECONDS)
    assert shown(first) == [(None, second.run.run)]
    assert shown(second) == [(315, None)]


def test_where_two_runs_without_a_report_save_into_one_folder_it_is_said_whose_a_file_may_be(tmp_path: Path) -> None:
    home, out = make_home(tmp_path), tmp_path / "out"
    out.mkdir()
    runs = [RunBuilder(home, f"run {at}").status("running").launch().hold() for at in range(2)]
    for run in runs:
        run.respec(launch=run.spec.launch._replace(checkpoints=str(out / "*.pt")))
    (out / "e.pt").write_bytes(zipped())
    os.utime(out / "e.pt", (NOW + 10, NOW + 10))
    monitor = make_monitor(home, FakeClock())
    for run, other in (runs, runs[::-1]):
        (file,) = monitor.snapshot(run.run.run).checkpoints
        assert (file.owner, file.rival) == (None, other.run.run)


def test_a_folder_is_a_checkpoint_too(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-500"
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"x" * 100)
    (one,) = CheckpointScanner().scan("checkpoint-*", (tmp_path,), {})
    assert (one.size_bytes, one.step, one.complete) == (100, None, True), "it may be of epoch 500"
    (folder / "trainer_state.json").write_bytes(b"{}")
    (one,) = CheckpointScanner().scan("checkpoint-*", (tmp_path,), {})
    assert (one.size_bytes, one.step) == (102, 500)


@pytest.mark.parametrize("pattern", ["", "**", "[", "/nowhere/*.pt", "..", "~no-such-user/*.pt", "\0"])
def test_no_pattern_raises(tmp_path: Path, pattern: str) -> None:
    CheckpointScanner().scan(pattern, (tmp_path, tmp_path / "none"), {})


def test_they_are_not_looked_for_all_the_time_but_at_once_when_told_of_and_at_the_end(tmp_path: Path) -> None:
    home, clock = make_home(tmp_path), FakeClock()
    run = RunBuilder(home).status("running").launch().hold().beat(step=1)
    monitor, folder = make_monitor(home, clock), run.run.checkpoints
    folder.mkdir()

    def seen() -> int:
        (shown,) = monitor.refresh(run.run.run)
        return len(shown.checkpoints)

    (folder / "step-1.pt").write_bytes(b"x")
    assert seen() == 1
    (folder / "step-2.pt").write_bytes(b"x")
    assert seen() == 1
    clock.advance(LOOK_SECONDS)
    assert seen() == 2
    (folder / "step-3.pt").write_bytes(b"x")
    run.event("checkpoint", "saved", path=str(folder / "step-3.pt"), step=3)
    assert seen() == 3
    (folder / "step-1.pt").unlink()
    run.release().exit(code=0).status("ended")
    assert seen() == 2


def test_those_that_hold_nan_are_looked_for_where_the_loss_is_not_finite(tmp_path: Path) -> None:
    run = tmp_path / "run"
    values = {1: [1.0, 2.0], 2: [1.0, 2.0], 3: [nan, 1.0], 4: [nan, nan]}
    for step, held in values.items():
        path = safetensors(run / "checkpoints" / f"step_{step}.pt.safetensors", held)
        os.utime(path, (step, step))

    def found(*events: RunEvent, loss_is_finite: bool = True) -> dict[int | None, bool]:
        witnesses = RunWitnesses(spec=Spec("r", "r", 0.0, LaunchTemplate("cpu", {}, "/", checkpoints="checkpoints/*")))
        seen = CheckpointScanner().of_run(run, witnesses, Numbers(loss_is_finite=loss_is_finite), events)
        return {one.step: one.finite for one in seen}

    assert set(found().values()) == {True}
    expected = {4: False, 3: False, 2: True, 1: True}
    assert found(loss_is_finite=False) == expected
    passed = RunEvent(1.0, 2, "restart", "attempt 2 started", {"not_finite": ["step_4.pt.safetensors"]})
    assert found(passed) == expected, "a restart has found it before"
