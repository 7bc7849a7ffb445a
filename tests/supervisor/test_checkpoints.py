"""The newest complete checkpoint, without torch."""

from __future__ import annotations

import json
import os
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from mpstui.supervisor import checkpoints
from mpstui.supervisor.checkpoints import (
    Found,
    candidates,
    choose,
    is_complete,
    is_temporary,
    measure,
    pick,
    split_by_owner,
)
from mpstui.supervisor.machine import Clock
from mpstui.wire.records import LaunchTemplate
from mpstui.wire.rundir import RunDir, event
from mpstui.wire.storage import append_line, append_text


def nothing(_: float) -> None:
    """Sleeps not at all."""


def archive(path: Path, age: float = 100.0, comment: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("data.pkl", b"x" * 1000)
        file.comment = comment
    return aged(path, age)


def aged(path: Path, age: float) -> Path:
    moment = time.time() - age
    os.utime(path, (moment, moment))
    return path


def template(cwd: Path, pattern: str = "checkpoints/*.pt") -> LaunchTemplate:
    return LaunchTemplate("cpu", {}, str(cwd), checkpoints=pattern)


def chosen(run: RunDir, cwd: Path, *, best: bool = False) -> Path | None:
    found, _ = choose(split_by_owner(run, template(cwd)).own, best=best, sleep=nothing, now=time.time())
    return found.path if found else None


def test_the_newest_whole_one_wins_over_newer_torn_ones(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    archive(run.checkpoints / "epoch-1.pt", 300)
    whole = archive(run.checkpoints / "epoch-2.pt", 200, comment=b"c" * 5000)
    torn = archive(run.checkpoints / "epoch-3.pt")
    torn.write_bytes(torn.read_bytes()[:-30])
    aged(torn, 100)
    aged(archive(run.checkpoints / "epoch-4.pt"), 50).write_bytes(b"")
    assert chosen(run, tmp_path) == whole
    assert [item.path.name for item in candidates(template(tmp_path), run)[0]][-2:] == ["epoch-2.pt", "epoch-1.pt"]


def test_where_none_is_whole_the_torn_one_is_named(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    none = "from step 0: there is no complete checkpoint yet"
    assert pick(run, template(tmp_path), Clock()).note == none
    for name, words in (("last.pt", "last.pt is incomplete"), ("new.pt", "new.pt and 1 other are incomplete")):
        torn = archive(run.checkpoints / name)
        aged(torn, 100 if name == "last.pt" else 50).write_bytes(torn.read_bytes()[:-30])
        aged(torn, 100 if name == "last.pt" else 50)
        assert pick(run, template(tmp_path), Clock()).note == f"{none} ({words})"


def test_what_the_training_tells_counts_where_no_pattern_finds_any(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    told = [archive(tmp_path / "out" / f"{number}.ckpt", 300 - number) for number in range(3)]
    run.path.mkdir()
    for path in (*told, tmp_path / "gone.ckpt", Path("relative.ckpt")):
        append_line(run.events, event(time.time(), 1, "checkpoint", "saved", path=str(path)))
    append_text(run.events, '{"event": "checkpoint", half a line')
    assert chosen(run, tmp_path) == told[2]
    found = archive(tmp_path / "checkpoints" / "a.pt", 500)
    assert [one.path for one in candidates(template(tmp_path), run)[0]] == [found]
    assert [one.path for one in candidates(template(tmp_path, ""), run)[0]] == told[::-1]


def test_best_is_by_name_and_latest_by_time(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    best = archive(run.checkpoints / "best.pt", 300)
    last = archive(run.checkpoints / "epoch-9.pt", 100)
    assert chosen(run, tmp_path) == last
    assert chosen(run, tmp_path, best=True) == best
    archive(run.checkpoints / "best-earlier-1.pt", 200)  # of a training that was begun anew: only by its name
    assert chosen(run, tmp_path, best=True) == best


@pytest.mark.parametrize(
    "name", [".hidden.pt", "a.pt.tmp", "a.tmp.pt", "a.part", "tmp_a.pt", "a.pt~", "a-incomplete.pt"]
)
def test_names_that_writers_use_before_the_rename(name: str) -> None:
    assert is_temporary(name)


@pytest.mark.parametrize("name", ["epoch-2.pt", "template.pt", "attempt.pt", "partly.pt", "best.safetensors"])
def test_names_that_only_look_like_it(name: str) -> None:
    assert not is_temporary(name)


def test_a_file_that_still_grows_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "fresh.bin"
    path.write_bytes(b"abc")
    found = measure(path)
    assert found is not None

    def grow(_: float) -> None:
        path.write_bytes(b"abcdef")

    assert not is_complete(found, sleep=grow, now=time.time())
    again = measure(path)
    assert again is not None
    assert is_complete(again, sleep=nothing, now=time.time())


def test_safetensors_are_measured_against_their_own_header(tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 16)
    aged(path, 100)
    assert is_complete(Found(path, path.stat().st_size, path.stat().st_mtime), sleep=nothing, now=time.time())
    path.write_bytes(path.read_bytes()[:-1])
    aged(path, 100)
    assert not is_complete(Found(path, path.stat().st_size, path.stat().st_mtime), sleep=nothing, now=time.time())
    path.write_bytes(b"\xff" * 40)
    aged(path, 100)
    assert not is_complete(Found(path, 40, path.stat().st_mtime), sleep=nothing, now=time.time())


def test_a_folder_is_one_checkpoint(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    archive(run.path / "out" / "checkpoint-5" / "model.pt", 50)
    found = candidates(template(tmp_path, "out/checkpoint-*"), run)[0]
    assert [item.path.name for item in found] == ["checkpoint-5"]
    assert choose(found, best=False, sleep=nothing, now=time.time()) == (found[0], [])
    (run.path / "out" / "checkpoint-6").mkdir()
    assert len(candidates(template(tmp_path, "out/checkpoint-*"), run)[0]) == 1


def test_an_absolute_pattern_and_one_that_finds_nothing(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    path = archive(tmp_path / "far" / "a.pt")
    assert [item.path for item in candidates(template(tmp_path, f"{tmp_path}/far/*.pt"), run)[0]] == [path]
    assert candidates(template(tmp_path, "nowhere/*.pt"), run)[0] == []


def test_activity_sees_a_temporary_file_grow(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    run.checkpoints.mkdir(parents=True)
    before = checkpoints.activity(template(tmp_path), run)
    (run.checkpoints / ".a.pt.tmp").write_bytes(b"x")
    begun = checkpoints.activity(template(tmp_path), run)
    with (run.checkpoints / ".a.pt.tmp").open("ab") as file:
        file.write(b"y")
    assert before != begun != checkpoints.activity(template(tmp_path), run)


@pytest.mark.parametrize(
    ("number", "older", "newest"),
    [
        (0, "output/checkpoint-20/model.bin", "output/checkpoint-40/model.bin"),
        (1, "lightning_logs/version_0/checkpoints/a.ckpt", "lightning_logs/version_1/checkpoints/epoch=3-step=80.ckpt"),
        (2, "logs/train/runs/1/checkpoints/last.ckpt", "logs/train/runs/2/checkpoints/epoch=3-step=80.ckpt"),
    ],
)
def test_the_documented_resume_tables_find_what_the_frameworks_write(
    tmp_path: Path, number: int, older: str, newest: str
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "profiles.md").read_text().partition("# transformers' Trainer")[2]
    table = tomllib.loads("[resume]" + text.partition("```")[0].split("[resume]")[number + 1].partition("\n#")[0])
    archive(tmp_path / older, 300)
    archive(tmp_path / newest, 100)
    for path in (tmp_path / older).parent, (tmp_path / newest).parent:
        aged(path, 300 if path == (tmp_path / older).parent else 100)
    found, _ = candidates(template(tmp_path, table["resume"]["checkpoints"]), RunDir(tmp_path / "run"))
    best, _ = choose(found, best=False, sleep=nothing, now=time.time())
    expected = (tmp_path / newest).parent if number == 0 else tmp_path / newest
    assert best is not None
    assert best.path == expected
    assert any("{checkpoint}" in word for word in table["resume"]["args"])


@pytest.mark.parametrize("name", ["step-3.pt.tmp", ".step-3.pt", "step-3.pt~", "step-3.partial.pt", "tmpab12.pt"])
def test_what_is_written_under_another_name_is_no_checkpoint_yet(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"half of it")
    assert measure(tmp_path / name) is None
    (tmp_path / "step-3.pt").write_bytes(b"all of it")
    assert measure(tmp_path / "step-3.pt") is not None
