"""A run of Weights & Biases that was resumed: one run with attempts, from however it is looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpstui.cli.main import main
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.core.runs import stored
from mpstui.core.runs.gallery import gallery_of
from mpstui.core.runs.monitor import Monitor
from tests import wandb_files as w
from tests.core.runs.build import FakeClock


def part(folder: Path, time: str, steps: range, *more: bytes, run: str = "abc", printed: str = "") -> Path:
    """One time that a run was begun: a loss of 1 / (step + 1), and a text for each step."""
    rows = [w.history(step, {"loss": 1 / (step + 1), "said": f"{time} {step}"}) for step in steps]
    path = folder / f"offline-run-{time}-{run}"
    w.write(path / f"run-{run}.wandb", [w.run("resumed", {"lr": 0.1, time: "x"}), *rows, *more])
    (path / "files").mkdir()
    (path / "files" / "output.log").write_text(printed or time)
    return path


@pytest.mark.parametrize("named", ["above", "first", "last", "link"])
def test_it_is_one_run_with_attempts(monitor: Monitor, tmp_path: Path, named: str) -> None:
    folder = tmp_path / "wandb"
    first = part(folder, "20260101_000000", range(10), w.exited(1))
    last = part(folder, "20260102_000000", range(6, 20), w.exited(0))
    link = folder / "latest-run"
    link.symlink_to(last, target_is_directory=True)
    key = monitor.watch({"above": folder, "first": first, "last": last, "link": link}[named])
    [listed] = monitor.refresh_whole()
    assert key in ("", str(first))
    assert (listed.run, listed.state, listed.numbers.step, listed.attempts) == (str(first), State.FINISHED, 19, 2)
    shown = monitor.snapshot(listed.run)
    loss = shown.series["loss"]
    assert (list(loss.x), list(loss.values)) == ([*range(20)], [1 / (step + 1) for step in range(20)])
    assert shown.outputs == (first / "files" / "output.log", last / "files" / "output.log")
    assert shown.output == shown.outputs[1]
    assert set(shown.settings) == {"lr", "20260101_000000", "20260102_000000"}
    said = [(one.step, one.attempt, one.text) for one in gallery_of(shown).items()]
    assert [step for step, _, _ in said] == [*range(20)], "what a later attempt logged again counts once"
    assert said[7] == (7, 2, "20260102_000000 7")


def test_one_that_is_resumed_while_somebody_looks(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    folder = tmp_path / "wandb"
    first = part(folder, "20260101_000000", range(10), w.exited(1))
    part(folder, "20260101_120000", range(3), w.exited(0), run="another")
    monitor.watch(folder)
    before = {one.run: (one.state, one.attempts) for one in monitor.refresh_whole()}
    assert (len(before), before[str(first)]) == (2, (State.FAILED, 0))
    monitor.snapshot(str(first))
    part(folder, "20260102_000000", range(10, 15))
    clock.advance(10)
    found = {one.run: one for one in monitor.refresh_whole()}
    assert (len(found), found[str(first)].numbers.step, found[str(first)].state) == (2, 14, State.WATCHED)
    shown = monitor.snapshot(str(first))
    assert (shown.series["loss"].count, shown.attempts) == (15, 2)


def test_each_attempt_has_its_own_start_and_no_one_works_between_them(monitor: Monitor, tmp_path: Path) -> None:
    """The newest attempt was said to have been started with the first one, and to have run all the days since."""
    folder, day = tmp_path / "wandb", 86_400
    for number in range(3):
        began = w.START + number * day
        rows = [w.history(step, {"loss": 1.0}, began + step) for step in range(10 * number, 10 * number + 10)]
        path = folder / f"offline-run-2026010{number + 1}_000000-abc" / "run-abc.wandb"
        w.write(path, [w.run("resumed", {}, started=began), *rows, w.exited(0)])
    monitor.watch(folder)
    [listed] = monitor.refresh_whole()
    shown = monitor.snapshot(listed.run)
    for seen in (listed, shown):
        assert (seen.started, seen.attempt_started, seen.attempts) == (w.START, w.START + 2 * day, 3)
        assert seen.idle == day - 9 + day - 19
        assert seen.lasted(w.START + 2 * day + 29) == 9 + 19 + 29


@pytest.mark.parametrize("lengths", [(9_000, 50), (50, 9_000), (9_000, 9_000)])
def test_the_list_tells_of_a_long_one_what_all_of_its_logs_say(
    monitor: Monitor, tmp_path: Path, lengths: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short last log of a long run was not looked at, and the start of the first one was not."""
    monkeypatch.setattr(stored, "LIST_BYTES", 100_000)
    folder, day = tmp_path / "wandb", 86_400
    for number, steps in enumerate((range(lengths[0]), range(lengths[0], sum(lengths)))):
        began = w.START + number * day
        rows = [w.history(step, {"loss": step}, began + step / 100) for step in steps]
        path = folder / f"offline-run-2026010{number + 1}_000000-abc" / "run-abc.wandb"
        w.write(path, [w.run("resumed", {"lr": number}, started=began), *rows, w.exited(number)])
    monitor.watch(folder)
    [listed] = monitor.refresh_whole()
    assert (listed.name, listed.state, listed.numbers.step) == ("resumed", State.FAILED, sum(lengths) - 1)
    assert (listed.started, listed.attempt_started) == (w.START, w.START + day)
    assert listed.idle == pytest.approx(day - (lengths[0] - 1) / 100)


def test_folders_of_one_id_in_two_places_are_two_runs(monitor: Monitor, tmp_path: Path) -> None:
    for place in "ab":
        part(tmp_path / place / "wandb", "20260101_000000", range(3))
    monitor.watch(tmp_path)
    assert len(monitor.refresh_whole()) == 2


def test_points_are_told_with_their_attempt(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    part(tmp_path / "wandb", "20260101_000000", range(3), w.exited(1))
    path = part(tmp_path / "wandb", "20260102_000000", range(3, 5), w.exited(0))
    assert main(["follow", str(path), "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    points = [(one["step"], one["attempt"]) for one in told if one["kind"] == "point"]
    assert points == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)]


FAILED = """step 1 loss 0.5
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    model(x)
RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8 GiB
"""


def test_the_failure_of_the_newest_attempt_is_explained(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    folder = tmp_path / "wandb"
    part(folder, "20260101_000000", range(3), w.exited(1))
    path = part(folder, "20260102_000000", range(3, 5), w.exited(1), printed=FAILED)
    for named in (path, folder):
        assert main(["diagnose", str(named), "--json"]) == 0
        assert [one["id"] for one in json.loads(capsys.readouterr().out)["findings"]] == ["cuda_oom"]
    assert main(["show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["diagnosis"]["findings"][0]["id"] == "cuda_oom"
    part(folder, "20260101_120000", range(3), run="another")
    assert main(["diagnose", str(folder)]) == 2
    assert "holds 2 runs" in capsys.readouterr().err
