"""The comparison of runs by what they differ in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.__main__ import main
from trainer.comparison import Outcome, compared, differing

ACCURACY = {("sgd", 1): 0.90, ("sgd", 2): 0.94, ("muon", 1): 0.95, ("muon", 2): 0.96}


def outcome(value: float | None, *, finished: bool = True, **options: object) -> Outcome:
    return Outcome({key: str(item) for key, item in options.items()}, value, finished)


def test_what_another_option_settles_is_no_row_of_its_own() -> None:
    outcomes = [
        outcome(0.5, lr=1, epochs=9, optimizer="muon", seed=1),
        outcome(0.5, lr=1, epochs=3, optimizer="sgd", seed=1),
        outcome(0.5, lr=1, epochs=3, optimizer="adam", seed=2),
    ]
    assert differing(outcomes) == ["optimizer"]
    crossed = [outcome(0.5, lr=lr, optimizer=name) for lr in (1, 2) for name in ("a", "b", "c")]
    assert differing(crossed) == ["optimizer", "lr"]
    assert differing([outcome(0.5, lr=1, seed=seed) for seed in (1, 2)]) == ["seed"]
    assert differing([outcome(0.5, lr=1)]) == []


def test_mean_and_standard_deviation_over_seeds() -> None:
    outcomes = [outcome(value, optimizer=name, seed=seed) for (name, seed), value in ACCURACY.items()]
    rows, notes = compared(outcomes)
    assert rows == [
        ("optimizer", "seed 1", "seed 2", "mean", "+-", "runs"),
        ("sgd", "0.9000", "0.9400", "0.9200", "0.0283", "2/2"),
        ("muon", "0.9500", "0.9600", "0.9550", "0.0071", "2/2"),
    ]
    assert notes == []


def test_what_has_not_finished_is_shown_marked_and_is_in_no_mean() -> None:
    rows, notes = compared(
        [
            outcome(0.9, optimizer="sgd", seed=1),
            outcome(0.1, optimizer="sgd", seed=2, finished=False),
            outcome(None, optimizer="muon", seed=1, finished=False),
        ]
    )
    assert rows[1:] == [
        ("sgd", "0.9000", "0.1000*", "0.9000", "n/a", "1/2"),
        ("muon", "n/a", "n/a", "n/a", "n/a", "0/1"),
    ]
    assert notes == ["* not finished: 2 runs, in no mean"]


def sweep(folder: Path, *, profile: str = "six") -> None:
    """Records of a sweep as mpstui leaves them; the last run was killed half-way."""
    for number, ((optimizer, seed), accuracy) in enumerate(ACCURACY.items()):
        run = folder / f"2026112{number}-000000-{profile}"
        attempt = run / "attempts" / "1"
        attempt.mkdir(parents=True)
        words = ["python", "-m", "trainer", "cifar", f"--optimizer={optimizer}", "--seed", str(seed), "--no-augment"]
        (run / "spec.json").write_text(json.dumps({"profile": profile}))
        (attempt / "launch.json").write_text(json.dumps({"argv": words}))
        phase = "train" if (optimizer, seed) == ("muon", 2) else "done"
        (attempt / "heartbeat.json").write_text(json.dumps({"phase": phase, "device": {"type": "cuda"}}))
        points = [{"time": 1.0, "step": 1, "val_accuracy": 0.99}, {"time": 61.0, "step": 9, "val_accuracy": accuracy}]
        (run / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))


def test_the_table_after_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep(tmp_path)
    assert main(["results", "--groups", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][0] == "val_accuracy,"
    assert lines[1] == ["optimizer", "seed", "1", "seed", "2", "mean", "+-", "runs"]
    assert lines[2] == ["sgd", "0.9000", "0.9400", "0.9200", "0.0283", "2/2"]
    assert lines[3] == ["muon", "0.9500", "0.9600*", "0.9500", "n/a", "1/2"]
    assert main(["results", "--by", "seed", "--groups", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["1", "0.9250", "0.0354", "2/2"]


def test_runs_of_one_profile_out_of_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep(tmp_path)
    sweep(tmp_path, profile="other")
    assert main(["results", "--profile", "six", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "-other" not in text
    assert text.count("-six") == 4
    assert main(["results", "--profile", "sx", str(tmp_path)]) == 2
    assert "none of the 8 runs" in capsys.readouterr().err


def test_what_cannot_be_compared_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep(tmp_path)
    assert main(["results", "--by", "momentum", str(tmp_path)]) == 2
    assert "none of these runs was started with --momentum" in capsys.readouterr().err
    alone = str(next(tmp_path.iterdir()))
    assert main(["results", alone]) == 0
    assert "mean" not in capsys.readouterr().out
    assert main(["results", "--groups", alone]) == 2
