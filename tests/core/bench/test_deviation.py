"""What two devices' difference means: a wrong operation, a wrong backward, rounding that grew, or nothing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.bench.deviation import AGREES, DRIFTS, WRONG, Comparison, Question, compare_devices, explanation
from mpstui.core.model.errors import OperationError, UsageError

TRAINER = """
import json, os, sys
words = sys.argv[1:]
value = lambda flag: words[words.index(flag) + 1]
if words[1] != "cifar":
    sys.exit(print("trainer: there is no task", file=sys.stderr) or 2)
with open(os.environ["SEEN"], "a") as seen:
    print(json.dumps(words), file=seen)
if os.environ.get("FAILS") == value("--device"):
    sys.exit("RuntimeError: boom")
if "--result" in words:
    found = json.loads(os.environ["FOUND"])[value("--trace-step")]
    with open(value("--result"), "w") as file:
        json.dump(found, file)
"""


def found(
    *apart: float | None, operation: float | None = 0.0, gradient: str | None = None, step: int = 1
) -> dict[str, Any]:
    """A trainer's answer: how far the losses of each step are apart, and the traced step's operations."""
    parted = [] if operation == 0.0 else [{"layer": "a (Linear)", "operation": "linear", "turn": 0, "apart": operation}]
    losses = [{"step": at, "loss": 1.0, "reference": 1.0, "apart": one} for at, one in enumerate(apart, start=step)]
    return {
        "traced_step": step,
        "losses": losses,
        "dropout_off": 0,
        "operations": {"compared": 9, "unmatched": 0, "parted": len(parted), "first": parted},
        "gradients": [],
        "gradient_nearest_the_loss": gradient,
        "parameters": [],
    }


def compared(tmp_path: Path, answers: dict[str, Any], task: str = "cifar", **more: str) -> Comparison:
    (tmp_path / "trainer.py").write_text(TRAINER)
    seen = {"SEEN": str(tmp_path / "seen"), "FOUND": json.dumps(answers)}
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), **seen, **more}
    return compare_devices(Question(task=task, device="mps", steps=3), python=sys.executable, environ=environ)


def test_nothing_apart_is_agreement(tmp_path: Path) -> None:
    result = compared(tmp_path, {"1": found(0.0, 1e-6, 1e-5)})
    assert (result.verdict, result.parting_step, result.again) == (AGREES, None, None)
    reference, device = (json.loads(line) for line in (tmp_path / "seen").read_text().splitlines())
    assert reference[reference.index("--device") + 1] == "cpu"
    assert device[device.index("--against") + 1] == reference[reference.index("--trace") + 1]
    assert reference[reference.index("--batch-size") + 1] == "8"


def test_an_operation_of_the_first_step_needs_no_second_look(tmp_path: Path) -> None:
    result = compared(tmp_path, {"1": found(0.2, 0.3, None, operation=0.5)})
    assert (result.verdict, result.parting_step, result.again) == (WRONG, 1, None)
    assert "linear in a (Linear) is the first operation" in explanation(result)[0]
    assert "50 % apart" in explanation(result)[0]


def test_what_has_no_like_on_the_other_device_is_told(tmp_path: Path) -> None:
    answer = found(0.0)
    answer["operations"]["unmatched"] = 40
    assert explanation(compared(tmp_path, {"1": answer}))[-1].startswith("40 operations have no like")


def test_losses_that_part_later_are_looked_at_from_the_references_state(tmp_path: Path) -> None:
    answers = {"1": found(0.0, 0.01, 0.02), "2": found(1e-7, 0.01, step=2)}
    result = compared(tmp_path, answers)
    assert (result.verdict, result.parting_step) == (DRIFTS, 2)
    assert "rounding that grows" in explanation(result)[0]
    answers["2"] = found(0.01, 0.01, operation=None, step=2)
    result = compared(tmp_path, answers)
    assert result.verdict == WRONG
    assert "in step 2" in explanation(result)[0]
    assert "infinitely far" in explanation(result)[0]


def test_a_wrong_backward_is_told_by_its_gradient(tmp_path: Path) -> None:
    result = compared(tmp_path, {"1": found(0.0, 1e-4, gradient="head.weight")})
    assert result.verdict == WRONG
    assert "head.weight is nearest the loss" in explanation(result)[0]


def test_a_process_that_fails_is_told_by_its_device(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="mps: RuntimeError: boom"):
        compared(tmp_path, {"1": found(0.0)}, FAILS="mps")
    with pytest.raises(UsageError, match="there is no task"):
        compared(tmp_path, {}, task="cifr")
