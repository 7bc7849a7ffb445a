"""What happens to runs, told once each: over polls, attempts, renamed logs, moved runs and processes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpstui.cli.main import main
from mpstui.core.formats import files
from mpstui.core.model.home import Home
from mpstui.core.runs.stream import Streams, Told
from tests import wandb_files as w
from tests.core.runs.build import NOW, FakeClock, RunBuilder


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Home:
    return Home(state=tmp_path, config=tmp_path)


def told(streams: Streams, kind: str = "") -> list[Told]:
    found = [one for events in streams.read() for one in events]
    assert json.loads(json.dumps(found)) is not None
    return [one for one in found if one["kind"] == kind] if kind else found


def at_once(streams: Streams) -> Streams:
    """One that looks at ended runs each time, too."""
    streams._machine.monotonic = clock().__next__
    return streams


def clock() -> Iterator[float]:
    moment = 0.0
    while True:
        moment += 10.0
        yield moment


def point(step: int, **values: Any) -> dict[str, Any]:
    return {"time": NOW + step, "attempt": 1, "epoch": 1, "step": step, **values}


def test_each_line_is_told_once_and_another_process_goes_on(home: Home) -> None:
    run = RunBuilder(home).status("running").launch().beat().points(point(1, loss=0.5)).event("launched", "go", n=1)
    streams = at_once(Streams(home, []))
    state, event, one = told(streams)
    assert (state["kind"], state["name"], state["attempt"]) == ("state", "CIFAR ten", 1)
    assert (event["event"], event["text"], event["details"]) == ("launched", "go", {"n": 1})
    assert one == {
        **{"kind": "point", "run": run.run.run, "time": NOW + 1, "attempt": 1, "epoch": 1, "step": 1},
        **{"values": {"loss": 0.5}, "source": "reported"},
    }
    assert told(streams) == []
    with run.run.metrics.open("a") as file:
        file.write('{"time": 3, "step": 2, "loss": nu')
        file.flush()
        assert told(streams) == [], "a torn line is not there yet"
        file.write('ll, "nonfinite": ["loss"]}\n')
    run.points(point(3, val_loss=0.25, device="cpu"))
    broken, good = told(streams)
    assert (broken["values"], broken["nonfinite"], good["values"]) == ({"loss": None}, ["loss"], {"val_loss": 0.25})
    places = json.loads(json.dumps(streams.places))
    run.points(point(4, loss=0.1))
    again = at_once(Streams(home, [], places=places))
    assert [one["step"] for one in told(again)] == [4]
    other = RunBuilder(home, "later").status("ended").launch().exit(code=1)
    assert [(one["run"], one["state"]) for one in told(again, "state")] == [(other.run.run, "failed")]


def test_the_last_line_of_a_run_is_told_when_it_has_ended_though_nothing_ends_the_line(home: Home) -> None:
    run = (
        RunBuilder(home, created=NOW - 1e8)
        .status("running")
        .launch()
        .output("step 1 loss 0.500\nstep 2 loss 0.250")
        .hold()
    )
    streams = at_once(Streams(home, [run.run.run]))
    assert [one["step"] for one in told(streams, "point")] == [1]
    run.exit(code=0).release()
    assert [one["step"] for one in told(streams, "point")] == [2]
    assert told(streams, "point") == []


def test_only_what_comes_is_told_where_that_is_asked(home: Home) -> None:
    run = RunBuilder(home, created=1e9).status("running").launch().output("step 1 loss 0.5\nstep 2 loss 0.4\n").hold()
    old = RunBuilder(home, "old").status("ended").launch().exit(code=0).points(point(1, loss=0.5))
    streams = at_once(Streams(home, [], log=True, only_new=True))
    assert told(streams) == []
    run.output("step 3 loss 0.3\n")
    assert [(one["kind"], one.get("step"), one.get("text")) for one in told(streams)] == [
        ("point", 3, None),
        ("log", None, "step 3 loss 0.3"),
    ]
    run.release()
    old.points(point(2, loss=0.25))
    assert [one["step"] for one in told(streams, "point")] == [2]


def test_attempts_follow_each_other_and_what_is_brought_back_is_the_same(home: Home) -> None:
    run = RunBuilder(home).status("ended").launch().output("step 1 loss 0.5\nno newline").exit(code=1)
    streams = at_once(Streams(home, [run.run.run], log=True))
    assert [one["text"] for one in told(streams, "log")] == ["step 1 loss 0.5", "no newline"]
    assert streams.have_settled
    run.launch(2).status("ended", 2).output("step 2 loss 0.4\n", attempt=2).exit(2, code=0).points(point(7, acc=0.5))
    found = told(streams)
    assert [(one["attempt"], one["step"]) for one in found if one["kind"] == "point"] == [(1, 7)]
    assert [(one["attempt"], one["text"]) for one in found if one["kind"] == "log"] == [(2, "step 2 loss 0.4")]
    content = run.run.metrics.read_bytes()
    run.run.metrics.unlink()
    run.run.metrics.write_bytes(content + json.dumps(point(8, acc=0.75)).encode() + b"\n")
    output = run.run.attempt(2).output
    text = output.read_bytes()
    output.unlink()
    output.write_bytes(text + b"step 3 loss 0.3\n")
    found = told(streams)
    assert [one["step"] for one in found if one["kind"] == "point"] == [8]
    assert [one["text"] for one in found if one["kind"] == "log"] == ["step 3 loss 0.3"]


def test_a_log_that_is_renamed_away_is_read_to_its_end(home: Home, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "train.log"
    log.parent.mkdir()
    log.write_text("step 1 loss 0.9\n")
    streams = at_once(Streams(home, [str(log)], log=True))
    assert [one["kind"] for one in told(streams)] == ["state", "point", "log"]
    with log.open("a") as file:
        log.rename(log.with_suffix(".1"))
        log.write_text("step 3 loss 0.7\n")
        file.write("step 2 loss 0.8\n")
    found = told(streams) + told(streams)
    assert [one["text"] for one in found if one["kind"] == "log"] == ["step 2 loss 0.8", "step 3 loss 0.7"]
    assert [one["step"] for one in found if one["kind"] == "point"] == [2, 3]


def test_a_checkpoint_is_told_when_it_is_whole_and_again_when_it_is_another(home: Home) -> None:
    run = RunBuilder(home).status("ended").launch().exit(code=0)
    run.run.checkpoints.mkdir()
    one, torn = run.run.checkpoints / "step_10.pt", run.run.checkpoints / "last.pt"
    one.write_bytes(b"weights")
    torn.write_bytes(b"PK\x03\x04")
    streams = at_once(Streams(home, []))
    assert [(Path(found["path"]).name, found["step"]) for found in told(streams, "checkpoint")] == [("step_10.pt", 10)]
    torn.write_bytes(b"PK\x03\x04 PK\x05\x06")
    assert [Path(found["path"]).name for found in told(streams, "checkpoint")] == ["last.pt"]
    assert told(streams) == []


def test_a_program_that_reports_is_not_told_twice(home: Home) -> None:
    run = RunBuilder(home).status("running").launch().output("step 1 loss 0.5\n").beat(step=1).hold()
    run.points(point(1, loss=0.5))
    assert [one["source"] for one in told(at_once(Streams(home, [])), "point")] == ["reported"]
    run.release()
    seen = RunBuilder(home, "agent").status("running").launch().output("step 1 loss 0.5\n").hold()
    seen.beat(step=1, step_from="optimizer", loss_seen="backward").points(point(1, loss=0.5))
    sources = [one["source"] for one in told(at_once(Streams(home, [seen.run.run])), "point")]
    assert sources == ["agent", "printed"]
    seen.release()


def test_runs_that_begin_in_a_folder_are_told_from_their_beginning(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "wandb"
    folder.mkdir()
    streams, now = Streams(home, [str(folder)], only_new=True), FakeClock()
    streams._machine.monotonic = now
    assert told(streams) == []
    for name, code in (("a", 0), ("b", 1)):
        records = [w.run(name, {}), w.history(1, {"loss": 0.5}), w.exited(code)]
        w.write(folder / f"offline-run-{name}" / f"run-{name}.wandb", records)
        now.advance(10)
        found = told(streams)
        ends = {"a": "finished", "b": "failed"}
        assert [(one["kind"], one.get("state"), one.get("values")) for one in found] == [
            ("state", ends[name], None), ("point", None, {"loss": 0.5}),
        ]  # fmt: skip
        assert all(one["run"] != str(folder) for one in found)
    assert streams.have_settled


def test_runs_of_a_store_that_are_folders_tell_their_points(home: Home, tmp_path: Path) -> None:
    for name in "ab":
        w.events(tmp_path / "tb" / name / "events.out.tfevents.1.here", range(7, 9), "acc")
    streams = at_once(Streams(home, [str(tmp_path / "tb")]))
    found = told(streams, "point")
    assert sorted((Path(one["run"]).name, one["step"], one["values"]["acc"]) for one in found) == [
        ("a", 7, 0.125), ("a", 8, pytest.approx(1 / 9)), ("b", 7, 0.125), ("b", 8, pytest.approx(1 / 9)),
    ]  # fmt: skip


def test_all_event_files_of_one_folder_are_told(home: Home, tmp_path: Path) -> None:
    for number in (1, 2):
        w.events(tmp_path / "tb" / f"events.out.tfevents.{number}.here", range(number, number + 1), "acc")
    found = told(at_once(Streams(home, [str(tmp_path / "tb")])), "point")
    assert [(one["step"], one["values"]) for one in found] == [(1, {"acc": 0.5}), (2, {"acc": pytest.approx(1 / 3)})]


def test_the_first_state_is_of_a_run_that_was_read(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding out what a folder holds took all of the time, and the table in it counted as one without a step."""
    table = tmp_path / "version_0" / "metrics.csv"
    table.parent.mkdir()
    table.write_text("step,train_loss\n1,0.5\n")
    choose = files.best_of

    def slowly(sources: list[Path]) -> Path | None:
        end = time.thread_time() + 0.25
        while time.thread_time() < end:
            pass
        return choose(sources)

    monkeypatch.setattr(files, "best_of", slowly)
    assert [one["health"] for one in told(Streams(home, [str(table.parent)]), "state")] == [None]
    table.write_text("step,train_loss\n1,0.5\n2,0.4\n")
    assert [one["health"] for one in told(Streams(home, [str(table.parent)]), "state")] == ["training"]


def test_what_becomes_of_a_foreign_training_is_told_as_the_list_shows_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To scripts its state stays `watched`; the word changes, which is an event."""
    log = tmp_path / "train.log"
    log.write_text("epoch 1/2 loss 0.5\n")
    streams = Streams(home, [str(log)])
    before = {one["word"] for one in told(streams, "state")}
    with log.open("a") as file:
        file.write("epoch 2/2 loss 0.4\nTraining finished\n")
    assert told(streams, "state")[-1].items() >= {"state": "watched", "health": None, "word": "finished"}.items()
    assert "finished" not in before
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    assert main(["follow", str(log), "--once"]) == 0
    assert f"{log}  finished (not started by mpstui" in capsys.readouterr().out
