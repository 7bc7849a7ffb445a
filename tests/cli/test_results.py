"""`mpstui results`: a table of what runs came to, ours and anybody's, with the settings in which they differ."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mpstui.cli.main import main
from mpstui.core.model.home import Home
from tests.core.runs.build import NOW, RunBuilder


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Two runs of a sweep that reported, and one of a script that only printed."""
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path))
    found = Home(tmp_path, tmp_path)
    for place, (rate, best) in enumerate((("0.1", 0.9), ("0.01", 0.8))):
        run = RunBuilder(found, f"Digits lr={rate}", NOW + place, profile="digits")
        words = ["python", "-m", "digits", "--lr", rate, "--epochs", "3"]
        run.status("ended").launch().exit(code=0)
        record = json.loads(run.run.attempt(1).launch.read_text())
        run.run.attempt(1).launch.write_text(json.dumps({**record, "argv": words}))
        run.points(
            *({"time": NOW + step, "step": step, "loss": 1 / step, "attempt": 1} for step in (1, 2, 4)),
            {"time": NOW + 5, "step": 2, "val_accuracy": best, "val_loss": 0.4, "attempt": 1},
            {"time": NOW + 6, "step": 4, "val_accuracy": best - 0.1, "val_loss": 0.3, "attempt": 1},
        )
    foreign = RunBuilder(found, "theirs", NOW + 9, profile="").status("ended").launch().exit(code=0)
    lines = "".join(f"epoch {epoch} train_loss {1 / epoch:.3f} val_loss {2 / epoch:.3f}\n" for epoch in (1, 2, 3, 4))
    foreign.output(lines)
    return found


def test_runs_are_tabulated_by_program_with_what_differs(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "digits: 2 runs by val_loss, lower is better"
    heads = "run  state  best  at step  last  lr  best loss  best val_accuracy  steps  took"
    assert re.sub("  +", "  ", lines[1].strip()) == heads
    assert lines[2].split()[1:9] == [
        "finished",
        "0.3000",
        "4",
        "0.3000",
        "0.1",
        "0.2500",
        "0.9000",
        "4",
    ]  # alike: oldest
    assert lines[3].split()[1:9] == ["finished", "0.3000", "4", "0.3000", "0.01", "0.2500", "0.8000", "4"]
    assert lines[4] == "t.py: 1 run by val_loss, lower is better"
    assert lines[6].split()[1:5] == ["finished", "0.5000", "4", "0.5000"]


def test_scripts_of_one_name_in_two_folders_are_two_programs(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """They say nothing of each other; one that is named by its path is the same wherever it was started."""
    for place, script in enumerate(("t.py", "old/t.py", str(home.state / "old" / "t.py"))):
        run = RunBuilder(home, f"more {place}", NOW + 20 + place, profile="").status("ended")
        run.launch(argv=["python", script]).exit(code=0).output("epoch 1 val_loss 0.5\nepoch 2 val_loss 0.4\n")
    assert main(["results"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert heads[1:] == [
        f"t.py in {home.state}: 2 runs by val_loss, lower is better",
        f"t.py in {home.state / 'old'}: 2 runs by val_loss, lower is better",
    ]


def test_runs_of_which_nobody_knows_the_program_are_compared_with_those_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path / "home"))
    for name, loss in (("a", 0.5), ("b", 0.4)):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "progress.csv").write_text(f"step,train/loss\n1,0.9\n2,{loss}\n")
    assert main(["results", str(tmp_path / "runs")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "runs: 2 runs by loss, lower is better"
    assert [line.split()[0] for line in lines[2:]] == [str(tmp_path / "runs" / name) for name in "ba"]
    assert main(["results", str(tmp_path / "runs" / "a" / "progress.csv")]) == 0
    assert capsys.readouterr().out.startswith("progress.csv: 1 run by loss")


def test_the_best_run_by_a_metric_stands_first(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    third = RunBuilder(home, "Digits lr=1", NOW + 5, profile="digits").status("ended").launch().exit(code=0)
    third.points({"time": NOW, "step": 4, "val_accuracy": 0.95, "val_loss": 0.2, "attempt": 1})
    unknown = RunBuilder(home, "Digits lr=2", NOW - 5, profile="digits").status("ended").launch().exit(code=0)
    unknown.points({"time": NOW, "step": 4, "loss": 0.1, "attempt": 1})
    for metric, first in (("val_loss", third.run.run), ("val_accuracy", third.run.run), ("loss", unknown.run.run)):
        assert main(["results", "digits", "--metric", metric]) == 0
        runs = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:6]]
        assert runs[0] == first
        assert (runs[-1] == unknown.run.run) == (metric != "loss")


def test_a_profile_a_name_or_a_folder_says_which(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for what in ("digits", "Digits lr", str(home.runs)):
        assert main(["results", what, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert len(told) == (3 if what == str(home.runs) else 2)
        assert told[0]["settings"]["lr"] == "0.1"
        assert told[0]["metrics"]["val_accuracy"]["max"] == 0.9
    assert main(["results", "theirs", "--metric", "val_loss"]) == 0
    assert "val_loss" in capsys.readouterr().out
    assert main(["results", "nothing"]) == 2
    assert "there are no runs of 'nothing'" in capsys.readouterr().err


def test_a_folder_with_the_files_of_one_run_is_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in `ps`: TensorBoard's event files lie in a folder of their own, and so do many a log."""
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path / "home"))
    (tmp_path / "run" / "old").mkdir(parents=True)
    (tmp_path / "bare").mkdir()
    lines = "".join(f"epoch {epoch} train_loss {1 / epoch:.3f} val_loss {2 / epoch:.3f}\n" for epoch in (1, 2, 4))
    (tmp_path / "run" / "train.log").write_text(lines)
    assert main(["results", str(tmp_path / "run"), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert run["metrics"]["val_loss"]["min"] == 0.5
    assert main(["results", str(tmp_path / "bare")]) == 2
    assert "there are no runs of" in capsys.readouterr().err


def test_a_filter_takes_the_words_of_the_screen(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("results", "ps", "ps"):  # the second `ps` is answered from the cache
        assert main([command, "--json", "--filter", "digits lr>=0.1 val_accuracy<0.9"]) == 0
        assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["Digits lr=0.1"]
        assert main([command, "--filter", "-digits -theirs"]) == 0
        assert "no run matches" in capsys.readouterr().out
        assert main([command, "--filter", "lr>=x"]) == 2
        assert "'x' is not a number" in capsys.readouterr().err
