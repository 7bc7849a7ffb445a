"""The learning rate by the step."""

from __future__ import annotations

import pytest

from trainer.schedule import Schedule


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("cosine", [1 / 3, 2 / 3, 1.0, 0.85355, 0.5, 0.14645, 0.0, 0.0]),
        ("linear", [1 / 3, 2 / 3, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]),
        ("constant", [1 / 3, 2 / 3, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_it_warms_up_and_goes_down_to_0_as_it_was_asked_to(kind: str, expected: list[float]) -> None:
    schedule = Schedule(kind, total_steps=6, warmup_steps=2)
    assert [schedule.factor(step) for step in range(8)] == pytest.approx(expected, abs=1e-5)
