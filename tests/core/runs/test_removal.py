"""Runs are removed whole or not at all, and only by those that may be."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.runs import removal
from mpstui.core.runs.local_machine import LocalMachine
from mpstui.core.runs.removal import Remover, disk_bytes
from mpstui.wire import liveness, rundir, storage
from mpstui.wire.records import LaunchTemplate, QueueRule, Request, Variant
from mpstui.wire.rundir import run_dirs
from tests.core.runs.build import BOOT, NOW, FakeTable, RunBuilder


@pytest.fixture
def remover(home: Home) -> Remover:
    return Remover(home, LocalMachine(table=FakeTable(), boot_id=BOOT))


def ended(home: Home, name: str = "done", **spec: Any) -> RunBuilder:
    made = RunBuilder(home, name, **spec).status("ended").launch().exit(code=0).output("step 1\n" * 1000)
    made.run.checkpoints.mkdir()
    (made.run.checkpoints / "step-1.pt").write_bytes(b"w" * 50_000)
    (made.run.checkpoints / "best.pt").hardlink_to(made.run.checkpoints / "step-1.pt")
    return made


def names(home: Home) -> list[str]:
    return [path.name for path in home.runs.iterdir()]


def test_a_run_goes_with_all_that_is_in_it(home: Home, remover: Remover) -> None:
    run = ended(home).run
    found = remover.examine(run)
    assert (found.name, found.ended, found.checkpoints) == ("done", NOW + 100, 2)
    assert 50_000 <= found.checkpoint_bytes < 60_000 < found.size_bytes
    done = remover.remove(run)
    assert (done.freed_bytes, done.kept, done.left) == (found.size_bytes, None, None)
    assert names(home) == []


def test_checkpoints_can_be_kept_with_the_names_they_have(home: Home, remover: Remover) -> None:
    template = LaunchTemplate("cpu", {"cpu": Variant(["t"])}, "/", None, "out/*.ckpt")
    run = ended(home).respec(launch=template).run
    (run.path / "out").mkdir()
    (run.path / "out" / "a.ckpt").write_text("a")
    (run.path / "out" / "notes.txt").write_text("n")
    done = remover.remove(run, keep_checkpoints=True)
    assert done.kept == home.state / "checkpoints" / run.run
    kept = sorted(str(path.relative_to(done.kept)) for path in done.kept.rglob("*") if path.is_file())
    assert kept == ["checkpoints/best.pt", "checkpoints/step-1.pt", "out/a.ckpt"]
    assert names(home) == []
    bare = RunBuilder(home, "bare").status("ended").launch().exit(code=0).run
    assert remover.remove(bare, keep_checkpoints=True).kept is None


def test_checkpoints_are_safe_at_their_new_place_before_anything_else_is_deleted(
    home: Home, remover: Remover, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, synced, sync = ended(home).run, list[tuple[Path, bool]](), storage.sync_folder

    def noted(folder: Path) -> None:
        synced.append((folder, any(home.runs.glob("*/spec.json")) or any(home.runs.glob(".*/spec.json"))))
        sync(folder)

    monkeypatch.setattr(storage, "sync_folder", noted)
    kept = remover.remove(run, keep_checkpoints=True).kept
    assert (kept, True) in synced


def test_what_a_restart_with_another_launch_saved_is_kept_too(home: Home, remover: Remover) -> None:
    first, second = (LaunchTemplate("cpu", {"cpu": Variant(["t"])}, "/", None, f"{name}/*.pt") for name in ("a", "b"))
    run = ended(home).respec(launch=first).status("ended", template=storage.to_json(second)).run
    for name in ("a", "b"):
        (run.path / name).mkdir()
        (run.path / name / "w.pt").write_text(name)
    assert remover.examine(run).checkpoints == 4
    kept = remover.remove(run, keep_checkpoints=True).kept
    assert kept is not None
    assert [(kept / name / "w.pt").read_text() for name in ("a", "b")] == ["a", "b"]


def test_nothing_outside_is_touched(home: Home, remover: Remover, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "w.pt").write_bytes(b"w" * 9000)
    shared = LaunchTemplate("cpu", {"cpu": Variant(["t"])}, str(tmp_path), None, f"{outside}/*.pt")
    run = ended(home).respec(launch=shared).run
    (run.path / "link").symlink_to(outside)
    (run.path / "same.pt").hardlink_to(outside / "w.pt")
    behind_link = LaunchTemplate("cpu", {"cpu": Variant(["t"])}, str(tmp_path), None, "link/*.pt")
    linked = ended(home, "linked").respec(launch=behind_link).run
    (linked.path / "link").symlink_to(outside)
    assert remover.examine(linked).checkpoints == 2
    remover.remove(linked, keep_checkpoints=True)
    assert (outside / "w.pt").exists()
    found = remover.examine(run)
    assert (remover.remove(run, keep_checkpoints=True).freed_bytes or 0) < found.size_bytes + 1
    assert (outside / "w.pt").read_bytes() == b"w" * 9000
    elsewhere = ended(home, "moved").run
    elsewhere.path.rename(tmp_path / "moved")
    elsewhere.path.symlink_to(tmp_path / "moved")
    remover.remove(elsewhere, keep_checkpoints=True)
    assert not elsewhere.path.is_symlink()
    assert (tmp_path / "moved" / "checkpoints" / "best.pt").exists()


def living(made: RunBuilder, kind: str) -> None:
    if kind == "running":
        made.status("running").hold()
        (made.run.attempt(1).exit).unlink()
    elif kind == "supervisor at work":
        made.hold(run=False)
    elif kind == "outlived":
        made.hold(supervisor=False)
    elif kind == "queued, supervisor dead":
        made.status("queued", boot_id=liveness.boot_id() or "")
        (made.run.attempt(1).exit).unlink()
    elif kind == "restart asked for":
        rundir.submit(made.run, Request("r1", "restart", 1, "me", NOW))
    elif kind == "newer":
        storage.write_json(made.run.status, {"schema": 99})


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("running", "has not ended (running)"),
        ("supervisor at work", "supervisor is still at work"),
        ("outlived", "some of its processes still live"),
        ("queued, supervisor dead", "waits to be started"),
        ("restart asked for", "waits to be started"),
        ("newer", "newer mpstui"),
    ],
)
def test_what_lives_or_waits_stays(home: Home, remover: Remover, kind: str, why: str) -> None:
    made = ended(home)
    living(made, kind)
    for act in (remover.examine, remover.remove):
        with pytest.raises(OperationError, match="cannot be removed") as error:
            act(made.run)
        assert why in error.value.sentence
    assert names(home) == [made.run.run]
    assert (made.run.checkpoints / "best.pt").exists()
    made.release()


def test_what_another_run_needs_stays_until_that_one_has_ended(home: Home, remover: Remover) -> None:
    first, second = ended(home, "first"), ended(home, "second")
    rule = QueueRule(after=[{"run": first.run.run, "when": "ok"}])
    waiting = RunBuilder(home, "waiting", queue=rule).status("queued", 0).hold(run=False)
    file = f"--resume={second.run.checkpoints}/best.pt"
    template = LaunchTemplate("cpu", {"cpu": Variant(["python", "t.py", file])}, "/")
    using = RunBuilder(home, "using").respec(launch=template).status("running").hold()
    for needed, user, what in ((first, waiting, "waits for it"), (second, using, "was started with a file of it")):
        with pytest.raises(OperationError, match=f"{user.run.run} {what}"):
            remover.remove(needed.run)
        user.release().status("ended").launch().exit(code=0)
        remover.remove(needed.run)
    assert len(names(home)) == 2


@pytest.mark.parametrize("witness", ["its record", "the lock of its trainer"])
def test_one_that_begins_anew_meanwhile_stays(
    home: Home, remover: Remover, monkeypatch: pytest.MonkeyPatch, witness: str
) -> None:
    made = ended(home)
    acquire = liveness.acquire
    held: list[int] = []

    def late(path: Path) -> int | None:
        if witness == "its record":
            made.status("starting", 2)
        else:
            lock = acquire(made.run.run_lock)
            assert lock is not None
            held.append(lock)
        return acquire(path)

    monkeypatch.setattr(liveness, "acquire", late)
    with pytest.raises(OperationError, match="begun it anew"):
        remover.remove(made.run)
    for lock in held:
        liveness.release(lock)
    assert not liveness.is_held(made.run.supervisor_lock)
    assert names(home) == [made.run.run]


def test_two_at_once_remove_it_once(home: Home) -> None:
    run, outcomes = ended(home).run, list[str]()
    for number in range(300):
        (run.path / f"f{number}").write_text("x")
    start = threading.Barrier(4)

    def work() -> None:
        mine = Remover(home, LocalMachine(table=FakeTable(), boot_id=BOOT))
        start.wait()
        try:
            mine.remove(run)
            outcomes.append("removed")
        except OperationError as error:
            outcomes.append(error.sentence)
        mine.clean_up()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert outcomes.count("removed") == 1, outcomes
    assert len(outcomes) == 4
    assert names(home) == []


@pytest.mark.parametrize("keep", [False, True])
def test_a_deletion_that_was_interrupted_shows_nothing_and_is_finished_by_the_next(
    home: Home, remover: Remover, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    run = ended(home).run

    def killed(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(removal, "_delete_tree", killed)
    with pytest.raises(KeyboardInterrupt):
        remover.remove(run, keep_checkpoints=keep)
    monkeypatch.undo()
    assert run_dirs(home.runs) == []
    assert len(names(home)) == 1
    assert remover.clean_up() > 0
    assert names(home) == []
    assert (home.state / "checkpoints" / run.run / "checkpoints" / "best.pt").exists() == keep


def test_checkpoints_that_cannot_be_moved_keep_the_run(home: Home, remover: Remover) -> None:
    run = ended(home).run
    (home.state / "checkpoints").write_text("in the way")
    with pytest.raises(OperationError, match="its checkpoints cannot be moved to"):
        remover.remove(run, keep_checkpoints=True)
    assert names(home) == [run.run]
    assert not liveness.is_held(run.supervisor_lock)


def test_checkpoints_are_not_moved_to_another_disk(
    home: Home, remover: Remover, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended(home).run
    monkeypatch.setattr(removal, "_device", lambda path: hash(path))
    with pytest.raises(OperationError, match="another disk"):
        remover.remove(run, keep_checkpoints=True)
    assert names(home) == [run.run]
    assert remover.remove(run).kept is None


@pytest.mark.parametrize("again", [False, True])
def test_checkpoints_that_could_not_be_moved_are_not_deleted(
    home: Home, remover: Remover, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    run = ended(home).run

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "locked")

    monkeypatch.setattr(removal, "_move", refuse)
    left = remover.remove(run, keep_checkpoints=True).left
    assert left is not None
    assert "Permission denied: 'locked'; the rest of it lies in " in left
    if again:
        assert remover.clean_up() == 0
    [leaving] = names(home)
    assert (home.runs / leaving / "checkpoints" / "best.pt").exists()
    monkeypatch.undo()
    remover.clean_up()
    assert names(home) == []
    assert (home.state / "checkpoints" / run.run / "checkpoints" / "best.pt").exists()


def test_what_another_remover_deletes_is_left_to_it(home: Home, remover: Remover) -> None:
    run = ended(home).run
    leaving = run.path.rename(home.runs / f".removing-{run.run}")
    lock = liveness.acquire(leaving / "supervisor.lock")
    assert lock is not None
    assert remover.clean_up() == 0
    assert leaving.exists()
    liveness.release(lock)
    assert remover.clean_up() > 0
    assert not leaving.exists()


def test_a_folder_without_a_file_is_no_checkpoint(home: Home, remover: Remover) -> None:
    run = RunBuilder(home, "bare").status("ended").launch().exit(code=0).run
    run.checkpoints.mkdir()
    assert remover.examine(run).checkpoints == 0
    assert remover.remove(run, keep_checkpoints=True).kept is None
    assert not remover.kept.exists()


@pytest.mark.parametrize("pattern", ["**/checkpoint*", "**/*", "checkpoint*", "checkpoint*/**"])
def test_what_a_pattern_finds_twice_is_one_checkpoint(home: Home, remover: Remover, pattern: str) -> None:
    template = LaunchTemplate("cpu", {"cpu": Variant(["t"])}, "/", None, pattern)
    run = ended(home).respec(launch=template).run
    files = [path for path in run.path.rglob("*") if path.is_file() and (pattern == "**/*" or "/check" in str(path))]
    found = remover.examine(run)
    assert found.checkpoints == len(files)
    assert found.checkpoint_bytes <= found.size_bytes


def test_what_cannot_be_deleted_is_told(home: Home, remover: Remover, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended(home).run

    def refuse(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(13, "Permission denied", "locked")

    monkeypatch.setattr("mpstui.core.runs.removal.shutil.rmtree", refuse)
    done = remover.remove(run)
    assert done.left is not None
    assert "Permission denied: 'locked'; the rest of it lies in " in done.left
    assert done.freed_bytes == 0
    assert run_dirs(home.runs) == []
    monkeypatch.undo()
    remover.clean_up()
    assert names(home) == []


def test_a_file_with_two_names_and_a_hole_count_once_and_nothing(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.seek(10 << 20)
        file.write(b"x")
    (tmp_path / "second").hardlink_to(tmp_path / "sparse")
    assert disk_bytes([tmp_path]) < 1 << 20
    assert disk_bytes([tmp_path / "second"]) == 0
    assert disk_bytes([tmp_path / "gone"]) == 0


def test_the_real_process_table_will_do(home: Home) -> None:
    run = ended(home).respec().status("ended", boot_id=liveness.boot_id()).run
    assert Remover(home).remove(run).freed_bytes
