"""A log whose steps begin anew in each epoch, as the screen shows it."""

from __future__ import annotations

from pathlib import Path

from tests.core.runs.build import FakeClock, make_home, make_monitor


def test_the_curve_goes_through_all_epochs_and_the_plan_of_one_is_none_of_the_run(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    places = [(epoch, step) for epoch in (1, 2, 3) for step in range(1, 21)][:45]
    log.write_text("".join(f"Epoch {e}/5 step {s}/20 loss: {3 / (e * 20 + s):.4f}\n" for e, s in places))
    monitor = make_monitor(make_home(tmp_path / "home"), FakeClock())
    key = monitor.watch(log)
    shown = next(run for run in monitor.refresh(key) if run.run == key)
    assert (shown.numbers.epoch, shown.numbers.epochs, shown.numbers.step, shown.numbers.steps) == (3, 5, 45, None)
    assert (shown.numbers.epoch_step, shown.numbers.epoch_steps) == (5, 20)
    assert list(shown.series["loss"].x) == list(range(1, 46))
