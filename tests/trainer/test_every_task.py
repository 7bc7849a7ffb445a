"""What every task promises, on data in its documented format: counted, learnt from, resumed, judged, exported."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.trainer.building import environment
from tests.trainer.cases import cases
from tests.trainer.running import QUIET, command, metrics, train
from tests.waiting import wait_until

CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_real_data_is_counted_learnt_from_judged_and_exported(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task, case = CASES[name]
    words = case.command(tmp_path)
    assert command(task, *words, "--check-data") == 0
    assert "the data can be used" in capsys.readouterr().out
    found = train(task, *words, "--save-every", "1", run_dir=tmp_path / "run")
    capsys.readouterr()
    checkpoint = tmp_path / "run" / "checkpoints" / "best.pt"
    assert command("evaluate", str(checkpoint), *words, "--device", "cpu") == 0
    judged = json.loads(capsys.readouterr().out)
    assert judged["val_loss"] == pytest.approx(best_loss(tmp_path / "run", judged["step"]), rel=1e-4)
    assert "synthetic" not in judged["data"]
    assert command("export", str(checkpoint), str(tmp_path / "weights.safetensors"), *words) == 0
    assert load_file(tmp_path / "weights.safetensors")
    assert found["step"] > 2


def best_loss(run_dir: Path, step: int) -> float:
    return next(float(point["val_loss"]) for point in metrics(run_dir) if "val_loss" in point and point["step"] == step)


def test_hidden_files_are_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Mac leaves a ``._NAME`` beside each file that it copies to a volume of another system."""
    with_folders = [(task, case) for task, case in CASES.values() if case.files]
    for number, (task, case) in enumerate(with_folders):
        folder = tmp_path / str(number)
        folder.mkdir()
        wish = case.write(folder)
        place = folder / case.files
        for path in list(place.iterdir()):
            path.with_name(f"._{path.name}").write_bytes(b"\x00\x05\x16\x07")
        (place.parent / ".cache").mkdir()
        assert command(task, "--check-data", *wish) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", CASES)
def test_resumed_from_a_random_step_equals_uninterrupted(tmp_path: Path, name: str) -> None:
    task, case = CASES[name]
    words = case.command(tmp_path)
    train(task, *words, run_dir=tmp_path / "whole")
    whole = metrics(tmp_path / "whole")
    stop = random.Random(name).randrange(1, max(point["step"] for point in whole))
    train(task, *words, "--stop-after", str(stop), run_dir=tmp_path / "parts")
    train(task, *words, "--resume", "latest", run_dir=tmp_path / "parts")
    assert metrics(tmp_path / "parts") == whole, f"stopped after step {stop}"


def test_killed_at_a_random_moment_loses_at_most_the_steps_since_the_last_checkpoint(tmp_path: Path) -> None:
    words = [*CASES["cifar"][1].command(tmp_path), "--epochs", "24", "--save-steps", "4", "--eval-every", "8"]
    run_dir, every = tmp_path / "run", 4
    arguments = [sys.executable, "-P", "-m", "trainer", "cifar", *QUIET, *words]
    moment = random.Random(0).randrange(every + 1, 25)
    with subprocess.Popen(arguments, env=environment(run_dir), stdout=subprocess.DEVNULL) as child:
        wait_until(lambda: steps(run_dir) >= moment or child.poll() is not None, timeout=300, what=f"step {moment}")
        child.kill()
    reached = steps(run_dir)
    assert reached < 168, "it ended before it was killed"
    rest = ("--stop-after", str(reached + 2 * every))
    train("cifar", *words, *rest, "--resume", "latest", run_dir=run_dir)
    again = next(point["step"] for point in metrics(run_dir)[reported(run_dir, reached) :] if "loss" in point)
    assert reached - every <= again - 1, f"killed at step {reached}, went on with {again}"
    train("cifar", *words, *rest, run_dir=tmp_path / "whole")
    assert by_step(run_dir) == by_step(tmp_path / "whole")


def steps(run_dir: Path) -> int:
    """The last step whose loss is in the metrics."""
    path = run_dir / "metrics.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return max((int(json.loads(line)["step"]) for line in lines), default=0)


def reported(run_dir: Path, step: int) -> int:
    """How many points there are up to the first one of this step."""
    return next(place for place, point in enumerate(metrics(run_dir), start=1) if point["step"] == step)


def by_step(run_dir: Path) -> dict[int, float]:
    """The newest loss of every step."""
    return {point["step"]: point["loss"] for point in metrics(run_dir) if "loss" in point}
