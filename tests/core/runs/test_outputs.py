"""The outputs of attempts that go on with one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from mpstui.core.runs import outputs
from tests.core.runs.build import FakeClock, RunBuilder, make_monitor


def test_where_an_output_begins_is_looked_for_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each look at a resumed run whose set-up fills the beginning, its two ends were read and understood again."""
    looks: list[Path] = []
    printed_steps = outputs._printed_steps

    def counted(path: Path, size: int, pattern: str | None) -> tuple[list[float], float | None]:
        looks.append(path)
        return printed_steps(path, size, pattern)

    monkeypatch.setattr(outputs, "_printed_steps", counted)
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    run.beat(step=540, steps=1000, loss=0.5, begun_step=500, step_from="process", loss_seen="backward")
    run.output("-- a part of the model --\n" * 1000)
    monitor, clock = make_monitor(home, FakeClock()), FakeClock()
    for step in range(1, 6):
        run.output(f"step {step} loss 0.5\n")
        clock.advance(1.0)
        monitor.refresh(run.run.run)
    assert len(looks) == 1
    run.release()
