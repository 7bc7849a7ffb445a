"""An attempt that has told nothing of the training: the run is where the attempt before it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.present import epoch_text
from mpstui.core.runs.report import as_json
from mpstui.wire import storage
from mpstui.wire.heartbeat import DeviceReading
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_monitor

PRINTED = "".join(f"epoch 1/300 step {step} loss {2 - step / 20:.2f}\n" for step in range(1, 11))


def begun(home: Home, *, printed: bool = True, **told: Any) -> RunBuilder:
    """Attempt 1 reached step 10, and has ended."""
    run = RunBuilder(home).launch(device="auto").exit(1, code=1)
    if printed:
        return run.output(PRINTED)
    run.beat(step=10, epoch=1, epochs=300, **{"loss": 1.5, **told})
    loss = {"loss": told.get("loss", 1.5)}
    return run.points({"time": NOW, "attempt": 1, "step": 10, "epoch": 1, **loss})


def both(home: Home, run: RunBuilder) -> list[RunSnapshot]:
    """As the list and as its own page show it."""
    monitor = make_monitor(home, FakeClock())
    return [monitor.refresh_whole()[0], monitor.refresh(run.run.run)[0]]


def stopped_in_set_up(run: RunBuilder, attempt: int = 2, output: str = "loading the data\n") -> RunBuilder:
    return run.status("ended", attempt).launch(attempt, "auto").output(output, attempt).exit(attempt, signal=15)


@pytest.mark.parametrize("printed", [True, False])
@pytest.mark.parametrize("attempts", [2, 3])
def test_a_run_that_ends_in_the_set_up_is_where_the_attempt_before_was(
    home: Home, printed: bool, attempts: int
) -> None:
    run = begun(home, printed=printed)
    for attempt in range(2, attempts + 1):
        stopped_in_set_up(run, attempt)
    for shown in both(home, run):
        row = as_json(shown, full=False)
        assert (row["epoch"], row["epochs"], row["step"], row["loss"]) == (1, 300, 10, 1.5)
        assert (shown.numbers.of_attempt, row["attempt"]) == (1, attempts)
        assert shown.numbers.eta_seconds is None


def test_epochs_that_were_reported_from_zero_are_counted_so_during_the_next_set_up(home: Home) -> None:
    """Its own points have gone behind those of the new attempt, and the heartbeat alone tells of them."""
    counted: dict[str, Any] = {"epochs": 5, "first_epoch": 0, "epoch_step": 30, "epoch_steps": 30}
    run = RunBuilder(home).launch().exit(1, signal=9).beat(step=150, epoch=4, loss=0.5, **counted)
    run.status("running", 2, trainer=[77, 5]).launch(2, checkpoint="epoch_4").hold()
    run.points({"time": NOW, "attempt": 2, "other": 1.0})
    for shown in both(home, run):
        assert (epoch_text(shown.numbers), shown.numbers.step, shown.numbers.steps) == ("5/5", 150, 150)
    run.release()


def test_what_the_new_attempt_plans_is_its_own(home: Home) -> None:
    run = stopped_in_set_up(begun(home))
    path = run.run.attempt(2).launch
    storage.write_json(path, {**json.loads(path.read_text()), "argv": ["python", "t.py", "--epochs", "500"]})
    assert {(shown.numbers.epoch, shown.numbers.epochs) for shown in both(home, run)} == {(1, 500)}


@pytest.mark.parametrize(("checkpoint", "step"), [("step-10.pt", 10), (None, None)])
def test_only_what_goes_on_is_there_while_it_is_set_up(home: Home, checkpoint: str | None, step: int | None) -> None:
    run = begun(home).status("running", 2, trainer=[77, 5]).launch(2, checkpoint=checkpoint).hold()
    run.output("loading the data\n", 2)
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps_per_second, shown.numbers.eta_seconds) == (step, None, None)
    run.output("epoch 1/300 step 11 loss 1.4\n", 2)
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.loss, shown.numbers.of_attempt) == (11, 1.4, 0)
    run.release()


def test_a_loss_that_was_not_finite_stays_with_the_attempt_it_ended(home: Home) -> None:
    run = stopped_in_set_up(begun(home, printed=False, loss=float("nan")))
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.loss, shown.numbers.loss_is_finite) == (10, None, True)


def ended_at(run: RunBuilder, attempt: int, step: int, **told: Any) -> RunBuilder:
    """An attempt that began from the checkpoint of the one before, and reported where it was, but no loss."""
    run.status("ended", attempt).launch(attempt, "auto", checkpoint="step-10.pt")
    return run.beat(attempt, step=step, epoch=1, epochs=300, phase="done", **told).exit(attempt, code=0)


@pytest.mark.parametrize("attempts", [2, 3])
def test_what_was_measured_stays_where_a_restart_had_nothing_left_to_do(home: Home, attempts: int) -> None:
    run = begun(home, printed=False, metrics={"val_loss": 1.7}, device=DeviceReading("mps"))
    for attempt in range(2, attempts + 1):
        ended_at(run, attempt, 10)
    for shown in both(home, run):
        numbers = shown.numbers
        assert (numbers.step, numbers.loss, numbers.metrics.get("val_loss")) == (10, 1.5, 1.7)
        assert (numbers.device.type, numbers.of_attempt) == ("mps", 0)


def test_what_was_measured_beyond_the_place_of_a_new_attempt_is_not_its_own(home: Home) -> None:
    run = ended_at(begun(home, printed=False), 2, step=4)
    assert {shown.numbers.loss for shown in both(home, run)} == {None}


def test_an_attempt_that_told_its_device_keeps_it(home: Home) -> None:
    run = ended_at(begun(home, printed=False, device=DeviceReading("mps")), 2, 10, device=DeviceReading("cpu"))
    assert {shown.numbers.device.type for shown in both(home, run)} == {"cpu"}


def test_a_run_that_ended_in_its_set_up_was_on_the_device_of_what_is_shown(home: Home) -> None:
    run = stopped_in_set_up(begun(home, printed=False, device=DeviceReading("mps")))
    assert {shown.numbers.device.type for shown in both(home, run)} == {"mps"}
