"""Runs of stores in the monitor: states as the store witnesses them, live, many at once, nothing written."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mpstui.cli.main import main
from mpstui.core.follow import Budget
from mpstui.core.formats.points import Point
from mpstui.core.hosts.local import LocalServices
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Health, RunSnapshot, State
from mpstui.core.present import badge, needs_explaining
from mpstui.core.runs import store_folder, stored, stored_once
from mpstui.core.runs.comparison import columns
from mpstui.core.runs.details import details
from mpstui.core.runs.listing import best_of
from mpstui.core.runs.local_machine import LocalMachine
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.run_settings import settings_of
from mpstui.core.runs.sources import MetricSource
from mpstui.core.runs.summaries import Summaries
from mpstui.core.series import series
from mpstui.wire.liveness import boot_id, system_process_table
from tests import wandb_files as w
from tests.core.runs.build import FakeClock, make_monitor
from tests.waiting import wait_until
from tests.wandb_files import events


def run_of(folder: Path, name: str, lr: float, *more: bytes, count: int = 50) -> Path:
    rows = [
        w.history(step, {"train/loss": lr / (step + 1), "val/acc": step / 100, "epoch": step // 10})
        for step in range(count)
    ]
    told = [
        w.run(name, {"lr": lr, "epochs": 5}, ["a"], "a note"),
        w.environment("train.py", ["--bs", "8", "--api-key", "s3cret"]),
    ]
    stats = w.stats(w.START, {"gpu.0.temp": 61.0})
    return w.write(folder / f"offline-run-{name}" / f"run-{name}.wandb", [*told, *rows, stats, *more]).parent


def test_a_run_that_has_ended(monitor: Monitor, tmp_path: Path) -> None:
    path = run_of(tmp_path, "first", 0.5, w.exited(0))
    (path / "files").mkdir()
    (path / "files" / "output.log").write_text("hello\n")
    before = {one: one.stat().st_mtime_ns for one in path.rglob("*")}
    shown = monitor.snapshot(monitor.watch(path))
    assert (shown.state, badge(shown).word, shown.reason) == (
        State.FINISHED, "finished", "W&B has recorded its end: exit code 0",
    )  # fmt: skip
    assert (shown.name, shown.tags, shown.note, shown.store) == ("first", ("a",), "a note", "W&B")
    assert (shown.numbers.step, shown.numbers.epoch, shown.numbers.epochs, shown.numbers.loss) == (49, 4, 5, 0.01)
    assert shown.argv == ("train.py", "--bs", "8", "--api-key", "•••")
    assert shown.settings == {"lr": "0.5", "epochs": "5"}
    assert (shown.started, shown.ended) == (w.START, w.START + 60)
    assert shown.output == path / "files" / "output.log"
    assert list(shown.series) == ["loss", "val/acc", "system/gpu.0.temp"]
    assert shown.series["loss"].times[-1] == w.START + 49
    assert {section.title for section in details(shown)} == {"run", "arguments", "settings"}
    assert {one: one.stat().st_mtime_ns for one in path.rglob("*")} == before


def test_what_cannot_be_opened_is_not_waited_for(home: Home, clock: FakeClock, tmp_path: Path) -> None:
    place = tmp_path / "offline-run-x" / "run-x.wandb"
    place.mkdir(parents=True)
    monitor = make_monitor(home, clock)
    key = monitor.watch(place.parent)
    monitor.refresh_whole()
    reader = monitor.reader(key)
    assert reader is not None
    assert reader.caught_up
    assert reader.refresh(full=False, budget=Budget(1.0)).reason == "offline-run-x cannot be read"
    place.rmdir()
    run_of(tmp_path, "x", 0.5, w.exited(0))
    assert monitor.snapshot(key).state is State.FINISHED


def test_one_that_failed_asks_for_no_record_of_ours(monitor: Monitor, tmp_path: Path) -> None:
    shown = monitor.snapshot(monitor.watch(run_of(tmp_path, "first", 0.5, w.exited(3))))
    assert (shown.state, shown.exit and shown.exit.code, shown.is_ours) == (State.FAILED, 3, False)
    assert not needs_explaining(shown)


@pytest.mark.parametrize(
    ("printed", "state", "reason"),
    [
        ("Traceback ...\nKeyboardInterrupt\n", State.KILLED, "W&B has recorded its end: exit code 255 after Ctrl-C"),
        ("gave up\n", State.FAILED, "W&B has recorded its end: exit code 255"),
    ],
)
def test_ctrl_c_is_told_from_a_failure_by_what_was_printed(
    monitor: Monitor, tmp_path: Path, printed: str, state: State, reason: str
) -> None:
    path = run_of(tmp_path, "first", 0.5, w.exited(255))
    (path / "files").mkdir()
    (path / "files" / "output.log").write_text(printed)
    shown = monitor.snapshot(monitor.watch(path))
    assert (shown.state, shown.reason) == (state, reason)


def test_one_without_an_end_is_never_called_running_or_crashed(
    monitor: Monitor, tmp_path: Path, clock: FakeClock
) -> None:
    path = run_of(tmp_path, "first", 0.5)
    os.utime(path / "run-first.wandb", (clock() - 3600, clock() - 3600))
    shown = monitor.snapshot(monitor.watch(path))
    assert (shown.state, shown.ended) == (State.WATCHED, None)
    assert shown.reason == "W&B has recorded no end; last written 1 h ago"


def test_a_live_run_is_followed_to_its_end(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    whole = (run_of(tmp_path / "whole", "first", 0.5, w.exited(0)) / "run-first.wandb").read_bytes()
    path = run_of(tmp_path / "live", "first", 0.5) / "run-first.wandb"
    path.write_bytes(whole[:3000])
    key = monitor.watch(path.parent)
    first = monitor.snapshot(key)
    assert first.health is None, "a file that was just copied is as new as one that is written"
    path.write_bytes(whole[:3500])
    os.utime(path, (clock() - 1, clock() - 1))
    monitor.snapshot(key)
    path.write_bytes(whole[:4000])
    os.utime(path, (clock(), clock()))
    assert monitor.snapshot(key).health is Health.TRAINING
    assert (first.state, 0 < (first.numbers.step or 0) < 49) == (State.WATCHED, True)
    path.write_bytes(whole)
    clock.advance(5)
    last = monitor.snapshot(key)
    assert (last.state, last.numbers.step, last.series["loss"].count) == (State.FINISHED, 49, 50)


def by_name(monitor: Monitor) -> dict[str, RunSnapshot]:
    return {one.name: one for one in monitor.refresh_whole()}


def test_a_folder_of_runs_is_a_list_that_grows(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    folder = tmp_path / "wandb"
    for name, lr in (("a", 0.5), ("b", 0.1)):
        run_of(folder, name, lr, w.exited(0))
    assert monitor.watch(folder) == ""
    found = by_name(monitor)
    assert {name: (one.state, one.numbers.step) for name, one in found.items()} == dict.fromkeys(
        "ab", (State.FINISHED, 49)
    )
    assert all(list(one.series) == ["loss"] and one.brief for one in found.values())
    run_of(folder, "c", 0.2)
    clock.advance(10)
    assert set(by_name(monitor)) == {"a", "b", "c"}
    whole = [monitor.snapshot(found[name].run) for name in "ab"]
    told = {column.name: column.values for column in columns(whole, "val/acc")}
    assert (told["best val/acc" if "best val/acc" in told else "best"], told["lr"]) == ((0.49, 0.49), ("0.5", "0.1"))
    assert settings_of(whole[0])["bs"] == "8"


def test_a_folder_that_is_watched_before_anything_begins_there(
    monitor: Monitor, tmp_path: Path, clock: FakeClock
) -> None:
    folder = tmp_path / "wandb"
    folder.mkdir()
    key = monitor.watch(folder)
    assert [(one.run, one.updated) for one in monitor.refresh(key)] == [(key, None)]
    run_of(folder, "a", 0.5)
    clock.advance(10)
    assert set(by_name(monitor)) == {"a"}, "its runs stand for the folder, as they do for whoever comes now"
    run_of(folder, "b", 0.5, w.exited(0))
    clock.advance(10)
    assert {name: one.state for name, one in by_name(monitor).items()} == {"a": State.WATCHED, "b": State.FINISHED}


def test_a_folder_with_a_log_of_its_own_stays_what_it_is(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "train.log").write_text("epoch 1 step 10 loss 0.5\n")
    key = monitor.watch(tmp_path)
    assert monitor.refresh(key)[0].numbers.loss == 0.5
    for _ in range(2):
        clock.advance(60)
        monitor.refresh(key)
    run_of(tmp_path / "wandb", "a", 0.5)
    clock.advance(10)
    assert [one.run for one in monitor.refresh_whole()] == [key]


def test_a_list_shows_the_newest_values_of_a_long_run_without_reading_it(
    monitor: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "LIST_BYTES", 1000)
    for name in "ab":
        run_of(tmp_path, name, 0.5, w.exited(0), count=2600)
    monitor.watch(tmp_path)
    found = by_name(monitor)
    assert {(one.numbers.step, one.state, len(one.series)) for one in found.values()} == {(2599, State.FINISHED, 0)}
    whole = monitor.snapshot(found["a"].run)
    assert whole.series["loss"].count == 2600
    assert monitor.refresh(whole.run)


def test_the_list_knows_the_best_of_a_run_that_was_read(
    monitor: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        rows = [w.history(step, {"train/loss": 1.0, "val/loss": loss}) for step, loss in enumerate((3.0, 0.5, 2.0))]
        w.write(tmp_path / f"offline-run-{name}" / f"run-{name}.wandb", [w.run(name, {}), *rows, w.exited(0)])
    monitor.watch(tmp_path)
    found = by_name(monitor)
    assert {best_of(one) for one in found.values()} == {("val/loss", 0.5)}
    assert all(list(one.series) == ["loss"] for one in found.values())
    monkeypatch.setattr(stored, "LIST_BYTES", 100)  # a long one is not read for a list, but what was read holds
    monitor.snapshot(found["a"].run)
    assert best_of(by_name(monitor)["a"]) == ("val/loss", 0.5)


def judged(folder: Path, name: str, losses: Sequence[float], *more: bytes) -> Path:
    """One that is long enough for its end to be looked at alone."""
    told = enumerate([*[2.0] * 2600, *losses])
    rows = [w.history(step, {"train/loss": 1.0, "val/loss": loss}) for step, loss in told]
    return w.write(folder / f"offline-run-{name}" / f"run-{name}.wandb", [w.run(name, {}), *rows, *more])


def test_a_long_run_is_looked_through_in_the_background_for_its_best_once(
    home: Home, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "LIST_BYTES", 1000)
    path = judged(tmp_path, "a", (3.0, 0.5, 2.0), w.exited(0))
    judged(tmp_path, "b", (3.0, 0.25, 2.0))
    kept = Summaries(home.state / "cache" / "runs.jsonl")
    screen = make_monitor(home, clock, kept=kept)
    screen.watch(tmp_path)
    wait_until(lambda: len(screen.refresh()) == 2 and not screen.is_behind)
    found = by_name(screen)
    assert {name: best_of(one) for name, one in found.items()} == {"a": ("val/loss", 0.5), "b": ("val/loss", 0.25)}
    assert not any(one.series for one in found.values())  # it holds no curves

    command = make_monitor(home, clock)  # reads nothing through, and need not
    command.watch(tmp_path)
    assert best_of(by_name(command)["a"]) == ("val/loss", 0.5)

    judged(tmp_path, "a", (3.0, 0.5, 2.0, 0.125), w.exited(0))
    os.utime(path, (clock(), clock()))
    clock.advance(10)
    wait_until(lambda: best_of(by_name(screen)["a"]) == ("val/loss", 0.125) and not screen.is_behind)
    later = make_monitor(home, clock)
    later.watch(tmp_path)
    assert best_of(by_name(later)["a"]) == ("val/loss", 0.125)


def test_a_long_run_that_grows_goes_on_being_looked_through(
    home: Home, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "LIST_BYTES", 1000)
    path = judged(tmp_path, "a", (3.0, 0.5))
    os.utime(path, (clock(), clock()))
    screen = make_monitor(home, clock, kept=Summaries(home.state / "cache" / "runs.jsonl"))
    key = screen.watch(path)
    wait_until(lambda: screen.refresh()[0].extremes.get("val/loss") == (0.5, 3.0))
    judged(tmp_path, "a", (3.0, 0.5, 0.25))
    clock.advance(5)
    os.utime(path, (clock(), clock()))
    wait_until(lambda: screen.refresh()[0].extremes.get("val/loss") == (0.25, 3.0))
    assert screen.watched[key].snapshot is not None
    assert not (home.state / "cache" / "stores.json").exists()  # it is not over


@pytest.mark.parametrize(
    "text", ["", "[]", '{"x": 1}', '{"VERSION": {"KEY": [1]}}', '{"VERSION": {"KEY": [STAMPS, {"a": 3}]}}']
)
def test_a_damaged_file_of_best_values_costs_time_alone(
    home: Home, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(stored, "LIST_BYTES", 1000)
    path = judged(tmp_path, "a", (3.0, 0.5), w.exited(0))
    file = home.state / "cache" / "stores.json"
    first = make_monitor(home, clock, kept=Summaries(home.state / "cache" / "first.jsonl"))
    first.watch(path)
    wait_until(lambda: best_of(first.refresh()[0]) == ("val/loss", 0.5) and file.exists())
    ((version, runs),) = json.loads(file.read_text()).items()
    ((key, (stamps, _)),) = runs.items()
    for word, meant in (("VERSION", version), ("KEY", key), ("STAMPS", json.dumps(stamps))):
        text = text.replace(word, meant)
    file.write_text(text)
    screen = make_monitor(home, clock, kept=Summaries(home.state / "cache" / "runs.jsonl"))
    screen.watch(path)
    assert screen.refresh()[0].reason == "W&B has recorded its end: exit code 0"
    wait_until(lambda: best_of(screen.refresh()[0]) == ("val/loss", 0.5))


@pytest.mark.parametrize("most", [1000, 4 << 20])
def test_a_run_that_has_ended_is_listed_as_it_is_until_its_file_changes(
    monitor: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock, most: int
) -> None:
    monkeypatch.setattr(stored, "LIST_BYTES", most)
    for name in "ab":
        path = run_of(tmp_path, name, 0.5, w.exited(0), count=2600) / f"run-{name}.wandb"
    monitor.watch(tmp_path)
    before = by_name(monitor)
    clock.advance(10)
    assert all(by_name(monitor)[name] is one for name, one in before.items())
    run_of(tmp_path, "b", 0.5, w.exited(3), count=2700)
    os.utime(path, (clock(), clock()))
    clock.advance(10)
    after = by_name(monitor)
    assert after["a"] is before["a"]
    assert (after["b"].state, after["b"].numbers.step) == (State.FAILED, 2699)


@pytest.mark.parametrize("command", ["show", "export", "report"])
def test_the_commands_take_a_path(
    home: Home, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    path = run_of(tmp_path / "wandb", "first", 0.5, w.exited(3))
    words = {
        "show": [],
        "export": ["--to", "csv", "-o", str(tmp_path / "out")],
        "report": ["-o", str(tmp_path / "out")],
    }
    assert main([command, str(path), *words[command]]) == 0
    told = capsys.readouterr().out if command == "show" else (tmp_path / "out").read_text()
    assert "val/acc" in told
    run_of(tmp_path / "wandb", "second", 0.5)
    code = main([command, str(tmp_path / "wandb"), *words[command]])
    answer, words_of_error = {"show": (2, "holds 2 runs"), "export": (2, "2 runs are 2 files"), "report": (0, "")}[
        command
    ]
    assert (code, words_of_error in capsys.readouterr().err) == (answer, True)
    assert main([command, str(tmp_path / "none"), *words[command]]) == 2


def test_a_run_with_others_in_folders_below_it_is_meant_by_its_path(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where TensorBoard's ``add_scalars`` or a second writer made them: the list calls it by that path too."""
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    for folder in ("logs", "logs/validation", "logs/test"):
        events(tmp_path / folder / "events.out.tfevents.1.x", range(5), f"{folder.rpartition('/')[2]}/acc")
    for path in (tmp_path / "logs", tmp_path / "logs" / "test"):
        assert main(["show", str(path), "--json"]) == 0
        assert list(json.loads(capsys.readouterr().out)["metrics"]) == [f"{path.name}/acc"]
    assert main(["diagnose", str(tmp_path / "logs")]) == 0


def test_of_too_many_metrics_the_page_says_how_many_are_held(
    monitor: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "MOST_SERIES", 20)
    path = tmp_path / "run-a.wandb"
    w.write(path, [w.history(step, {f"m{at}": 1.0 for at in range(30)}) for step in range(5)])
    shown = monitor.snapshot(monitor.watch(path))
    assert (len(shown.series), shown.readers) == (20, "W&B: run-a.wandb (in part: the first 20 metrics)")


@pytest.fixture
def command(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs mpstui: its exit code, and what it printed."""
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))

    def run(*words: str) -> tuple[int, str, str]:
        code = main([*words])
        return code, *capsys.readouterr()

    return run


def test_ps_and_results_list_the_runs_of_a_path(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, (name, lr, code) in enumerate((("a", 0.5, 0), ("b", 0.1, 3))):
        path = run_of(tmp_path / "wandb", name, lr, w.exited(code))
        os.utime(path, (w.START + place, w.START + place))  # two folders may be made within one tick of its clock
    monkeypatch.chdir(tmp_path)
    code, told, _ = command("ps", "./wandb")
    assert (code, [line.split()[:3] for line in told.splitlines()[1:]]) == (
        0, [["./wandb/offline-run-b", "b", "failed"], ["./wandb/offline-run-a", "a", "finished"]],
    )  # fmt: skip
    told = command("ps", "wandb", "--filter", "lr>0.2", "--json")[1]
    assert [one["name"] for one in json.loads(told)] == ["a"]
    code, told, _ = command("results", "./wandb", "--json")
    assert [(one["name"], one["settings"]["lr"]) for one in json.loads(told)] == [("b", "0.1"), ("a", "0.5")]
    assert "train.py: 2 runs by" in command("results", "wandb")[1]
    assert command("ps", "./nothing")[0] == 2
    monkeypatch.chdir(tmp_path / "wandb" / "offline-run-b")
    assert "offline-run-b" in command("show", ".")[1], "a folder's own sign has no slash, and is no run's name"


def test_runs_that_are_too_many_are_told(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home
) -> None:
    monkeypatch.setattr(store_folder, "MOST_RUNS", 2)
    for at in range(5):
        run_of(tmp_path / "wandb", f"r{at}", 0.5, w.exited(0), count=2)
    _, told, beside = command("ps", str(tmp_path / "wandb"))
    assert (len(told.splitlines()), "3 older runs of" in beside) == (3, True)
    services = LocalServices(home, {}, cwd=tmp_path, clock=FakeClock(), watching=tmp_path / "wandb")
    for _ in range(2):
        services.monitor()
    assert list(services.notices) == ["3 older runs are not listed: `mpstui ps PATH --all --filter WORDS` finds them"]
    assert len(command("ps", str(tmp_path / "wandb"), "--all")[1].splitlines()) == 6
    told = json.loads(command("ps", str(tmp_path / "wandb"), "--all", "--json", "--filter", "r3")[1])
    assert [(one["name"], one["state"], one["step"]) for one in told] == [("r3", "finished", 1)]


@pytest.mark.parametrize("words", [["note", "text"], ["tag", "+a"], ["rename", "x"], ["wait"], ["stop"], ["logs"]])
def test_what_is_not_ours_is_only_read(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, words: list[str]
) -> None:
    path = run_of(tmp_path / "wandb", "a", 0.5, w.exited(0))
    code, _, told = command(words[0], str(path), *words[1:])
    assert (code, "was not started by mpstui, which only reads" in told) == (2, True)


def test_a_run_without_an_end_has_the_lists_word_for_its_state(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    path = run_of(tmp_path / "wandb", "a", 0.5)
    first = w.START
    os.utime(next(path.glob("*.wandb")), (first + 90, first + 90))
    assert "silent" in command("ps", str(path))[1]
    assert ", wrote for 1m 30s" in command("show", str(path))[1], "nobody knows that it is still up"
    assert "1m 30s" in command("results", str(path))[1]
    assert "state     silent: W&B has recorded no end" in command("show", str(path))[1]


def test_a_run_is_exported_under_its_own_name(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = run_of(tmp_path / "wandb", "a", 0.5, w.exited(0))
    told = command("export", str(path), "--to", "wandb", "-o", str(tmp_path / "out"))[1]
    assert Path(told.strip()).name.endswith("-offline-run-a")


def test_a_busy_machine_takes_no_numbers_from_an_answer(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that a look may take goes by while other programs have the processor."""
    run_of(tmp_path / "runs", "first", 0.5, w.exited(0), count=9000)
    monitor, machine = make_monitor(home, FakeClock()), LocalMachine(system_process_table(), boot_id())
    monitor.watch_all(tmp_path / "runs")
    list(stored_once.every_run(tmp_path / "runs", machine))  # with all that it imports
    monkeypatch.setattr(stored_once, "_SECONDS_A_RUN", 0.5)
    read = MetricSource.read

    def slowly(source: MetricSource) -> Sequence[Point]:
        time.sleep(0.3)
        return read(source)

    monkeypatch.setattr(MetricSource, "read", slowly)
    for seen in (list(stored_once.every_run(tmp_path / "runs", machine)), monitor.refresh_whole(0.5)):
        assert [(one.state, one.series["loss"].count) for one in seen] == [(State.FINISHED, 9000)]
