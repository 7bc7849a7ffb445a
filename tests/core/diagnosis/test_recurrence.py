"""The same cause at the same step twice is said so; anything less is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpstui.core.diagnosis.engine import diagnose_run

from .test_for_run import OOM, write_attempt

SHAPES = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 5x6)\n"


def ended(run: Path, number: int, output: str, step: int | None, **more: Any) -> None:
    beat = {"schema": 1, "time": 1.0, "seq": 1, **({} if step is None else {"step": step})}
    write_attempt(run, number, output, exit={"attempt": number, "ended": 2.0, "code": 1, **more}, heartbeat=beat)


def test_the_same_cause_at_the_same_step_is_said(tmp_path: Path) -> None:
    for number, step in ((1, 1230), (2, 40), (3, 1234), (4, 1233)):
        ended(tmp_path, number, OOM, step)
    [finding, *_] = diagnose_run(tmp_path)
    assert finding.id == "mps_oom"
    assert "attempt 1 (step 1,230) and attempt 3 (step 1,234)" in finding.cause
    assert "attempt 2" not in finding.cause


@pytest.mark.parametrize(
    ("output", "step", "more"),
    [(SHAPES, 12, {}), (OOM, 400, {}), (OOM, None, {}), (OOM, 12, {"requested_by": "me@here:1"})],
    ids=["other cause", "other step", "unknown step", "asked for"],
)
def test_less_is_no_news(tmp_path: Path, output: str, step: int | None, more: dict[str, Any]) -> None:
    ended(tmp_path, 1, output, step, **more)
    ended(tmp_path, 2, OOM, 12)
    assert "Not for the first time" not in diagnose_run(tmp_path)[0].cause


def test_a_run_without_attempts_has_no_memory(tmp_path: Path) -> None:
    assert diagnose_run(tmp_path) == ()
