"""The ladder measures the steps after the warm-up, and a rung that fails does not end the climb."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mpstui.core.errors import UsageError
from mpstui.core.ladder import climb, rate, rungs

TRAINER = """
import json, os, sys
words = sys.argv[1:]
value = lambda flag: words[words.index(flag) + 1]
if words[0] != "cifar":
    sys.exit(print("trainer: there is no task", file=sys.stderr) or 2)
if value("--compile") == "on":
    sys.exit("InductorError: no compiler")
speed = {"cpu": 10.0, "mps": 40.0}[value("--device")] * (2 if value("--precision") == "bf16" else 1)
with open(os.environ["MPSTUI_RUN_DIR"] + "/metrics.jsonl", "w") as file:
    for step in range(0, int(value("--stop-after")) + 1, 5):
        slow_start = 100.0 if step else 0.0
        point = {"time": slow_start + step / speed, "step": step, "loss": 1.0, "steps_per_second": 1.0}
        file.write(json.dumps({**point, "samples_per_second": 32.0}) + chr(10))
    file.write('{"torn')
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment whose `trainer` is a small file of ours."""
    (tmp_path / "trainer.py").write_text(TRAINER)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_every_rung_is_measured_or_says_why_not(environ: dict[str, str]) -> None:
    found = list(climb("cifar", "mps", python=sys.executable, environ=environ, steps=60))
    assert [one.rung.name for one in found] == ["cpu", "mps", "mps + bf16", "mps + bf16 + compile"]
    assert [one.steps_per_second for one in found[:3]] == pytest.approx([10.0, 40.0, 80.0])
    assert found[0].samples_per_second == pytest.approx(320.0)
    assert found[3].steps_per_second is None
    assert found[3].error == "InductorError: no compiler"


def test_an_unknown_task_is_wrong_use(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="there is no task"):
        list(climb("cifr", "cpu", python=sys.executable, environ=environ))


def test_without_an_accelerator_the_cpu_climbs() -> None:
    assert {rung.device for rung in rungs("cpu")} == {"cpu"}
    assert rungs("cpu")[0].precision == "fp32"


def test_too_few_points_are_no_measurement() -> None:
    assert rate([], 60) == (None, None)
    assert rate([{"time": 1.0, "step": 60}], 60) == (None, None)
    assert rate([{"time": 1.0, "step": 30}, {"time": 1.0, "step": 60}], 60) == (None, None)
    assert rate([{"time": 1.0, "step": 30}, {"time": 2.0, "step": 60}], 60) == (30.0, None)
