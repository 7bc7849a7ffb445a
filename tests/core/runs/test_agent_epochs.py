"""A program that knows nothing of us, with the agent in it: the agent counts steps, the program prints its epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Health, RunSnapshot
from mpstui.core.runs.monitor import Monitor
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_monitor

AGENT: dict[str, Any] = {"step_from": "process", "loss_seen": "backward"}


def line(epoch: int, batch: int) -> str:
    return f"epoch {epoch}/30 batch {batch}/64 loss 1.5\n"


def watched_by_agent(home: Home, step: int) -> RunBuilder:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    point = {"time": NOW, "attempt": 1, "epoch": None, "step": step, "loss": 1.5, "lr": 0.01}
    return run.beat(step=step, loss=1.5, **AGENT).points(point)


def test_the_epochs_it_prints_stand_beside_the_steps_of_the_agent(home: Home) -> None:
    run = watched_by_agent(home, step=150).output(line(3, 16))
    monitor = make_monitor(home, FakeClock())
    for shown in (monitor.refresh()[0], monitor.refresh(focus=run.run.run)[0]):
        assert (shown.numbers.epoch, shown.numbers.epochs, shown.numbers.epoch_step, shown.numbers.epoch_steps) == (
            3,
            30,
            16,
            64,
        )
        assert (shown.numbers.step, shown.numbers.steps, shown.numbers.loss) == (150, None, 1.5)
        assert shown.readers == "heartbeat"
    told = {name: (view.axis, list(view.x)) for name, view in shown.series.items() if "loss" in name}
    assert told == {"loss": ("step", [144]), "loss (agent)": ("optimizer step", [150])}, "as it is printed"
    run.release()


def trained(monitor: Monitor, run: RunBuilder, clock: FakeClock, epoch: int, batches: Sequence[int]) -> RunSnapshot:
    """The picture after some pairs of a heartbeat and a printed batch, two seconds and sixteen steps apart."""
    monitor.refresh()
    for i, batch in enumerate(batches, start=1):
        clock.advance(2.0)
        run.beat(step=10 + 16 * i, loss=1.5, **AGENT, time=clock.wall, seq=1 + i).output(line(epoch, batch))
        shown = monitor.refresh()[0]
    return shown


def test_the_remaining_time_goes_by_the_epochs_that_are_printed(home: Home) -> None:
    """After a resume the agent counts from 0 again: its steps say nothing of the plan."""
    clock = FakeClock()
    run = watched_by_agent(home, step=10).output(line(11, 0))
    shown = trained(make_monitor(home, clock), run, clock, 11, (16, 32, 48, 63))
    assert shown.numbers.steps_per_second == pytest.approx(8.0)
    assert shown.numbers.eta_seconds == pytest.approx(19 * 8.0, rel=0.05)
    assert shown.numbers.epoch_eta_seconds == pytest.approx(0.1, abs=0.1)
    run.release()


def test_batches_that_are_carried_to_the_next_epoch_make_fewer_steps_in_all(home: Home) -> None:
    """Of 19 batches, four to a step: 4, 5, 5 and 5 steps, and not always five."""
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch(argv=["python", "t.py", "--epochs", "8"]).hold()
    seen: dict[str, Any] = {"epoch_steps": 5, "epoch_batches": 19, "accumulate": 4, "loss_seen": "backward"}
    run.beat(step=11, epoch=3, epoch_step=2, loss=1.5, **seen)
    shown = make_monitor(home, FakeClock()).refresh()[0].numbers
    assert (shown.epochs, shown.steps, shown.epoch_steps) == (8, 38, 5)
    run.release()


def test_what_is_left_of_the_last_epoch_is_what_is_left_of_the_run(home: Home) -> None:
    """Lines come late, and their epochs have a pace of their own; the agent's steps say more."""
    clock = FakeClock()
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold().output("epoch 4/4 batch 0/64 loss 1.5\n")
    monitor = make_monitor(home, clock)
    monitor.refresh()
    for i in range(1, 7):
        clock.advance(2.0)
        done = {"step": 192 + 8 * i, "epoch": 4, "epochs": 4, "epoch_step": 8 * i, "epoch_steps": 64}
        run.beat(**done, loss=1.5, loss_seen="backward", time=clock.wall, seq=i)
        run.output(f"epoch 4/4 batch {2 * i}/64 loss 1.5\n")
        shown = monitor.refresh()[0].numbers
    assert [shown.eta_seconds, shown.epoch_eta_seconds] == pytest.approx([4.0, 4.0])
    run.release()


def test_epochs_of_a_heartbeat_need_no_printed_ones(home: Home) -> None:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    run.beat(step=150, epoch=7, epochs=9, loss=1.5).output(line(3, 16))
    shown = make_monitor(home, FakeClock()).refresh()[0]
    assert (shown.numbers.epoch, shown.numbers.epochs) == (7, 9)
    run.release()


@pytest.mark.parametrize(
    ("argv", "printed", "epochs"),
    [
        ((), "", 9),
        ((), "epoch 3/30 batch 16/64 loss 1.5\n", 30),  # the default is not what counts
        (("--epochs", "12"), "", 12),
        ((), "epoch 11\n", None),
    ],
)
def test_epochs_that_the_program_has_parsed_serve_where_nobody_tells_others(
    home: Home, argv: tuple[str, ...], printed: str, epochs: int | None
) -> None:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch(argv=["python", "train.py", *argv]).hold()
    run.beat(step=150, epoch=10 if epochs is None else 3, loss=1.5, loss_seen="backward", planned_epochs=9)
    run.output(printed)
    assert make_monitor(home, FakeClock()).refresh()[0].numbers.epochs == epochs
    run.release()


def test_a_run_that_stands_still_has_neither_speed_nor_end(home: Home) -> None:
    clock = FakeClock()
    run = watched_by_agent(home, step=10).output(line(1, 0))
    monitor = make_monitor(home, clock)
    shown = trained(monitor, run, clock, 1, (16, 32, 48))
    assert shown.health is Health.TRAINING
    assert shown.numbers.steps_per_second == pytest.approx(8.0)
    clock.advance(1200.0)
    shown = monitor.refresh()[0]
    assert shown.health in (Health.STALLED, Health.HUNG)
    assert (shown.numbers.steps_per_second, shown.numbers.eta_seconds, shown.numbers.epoch_eta_seconds) == (
        None,
        None,
        None,
    )
    run.release()


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("Epoch 3/30 started\n", (3, 1, False)),
        ("Epoch 3/30 done\n", (3, 1, True)),
        ("Epoch 3/30 done\nEpoch 4/30 started\n", (4, 1, False)),
        ("Epoch 0/30 done\n", (0, 0, True)),
    ],
)
def test_an_epoch_that_is_printed_as_done_is_done(home: Home, printed: str, expected: tuple[int, int, bool]) -> None:
    run = watched_by_agent(home, step=150).output(printed)
    monitor = make_monitor(home, FakeClock())
    for shown in (monitor.refresh()[0], monitor.refresh(focus=run.run.run)[0]):
        assert (shown.numbers.epoch, shown.numbers.first_epoch, shown.numbers.epoch_done) == expected
    run.release()


def test_an_epoch_that_the_program_says_itself_is_called_as_it_calls_it(home: Home) -> None:
    run = watched_by_agent(home, step=150).output("epoch 0: 56.25\n")
    run.beat(step=150, epoch=0, epochs=6, loss=1.5, loss_seen="backward", reported=("step", "epoch", "epochs"))
    shown = make_monitor(home, FakeClock()).refresh(focus=run.run.run)[0].numbers
    assert (shown.epoch, shown.epochs) == (0, 6)
    run.release()


def test_epochs_printed_as_done_tell_how_long_the_others_take(home: Home) -> None:
    clock = FakeClock()
    run = watched_by_agent(home, step=10)
    monitor = make_monitor(home, clock)
    monitor.refresh()
    for epoch in (1, 2, 3, 4):
        clock.advance(20.0)
        run.beat(step=100 * epoch, loss=1.5, **AGENT, time=clock.wall, seq=1 + epoch).output(
            f"Epoch {epoch}/10 finished in 20 s\n"
        )
        shown = monitor.refresh()[0]
    assert shown.numbers.eta_seconds == pytest.approx(6 * 20.0, rel=0.05)
    run.release()


def validated(epoch: int) -> str:
    return f"epoch {epoch}/30: val_loss {2 / epoch:.4f}, accuracy {60 + epoch}.5, train_loss 1.5\n"


def test_the_metrics_it_prints_are_curves_beside_those_of_the_agent(home: Home) -> None:
    run = watched_by_agent(home, step=150).output(validated(1) + validated(2) + validated(4))
    shown = make_monitor(home, FakeClock()).refresh(focus=run.run.run)[0]
    told = {name: (view.axis, list(view.x), view.last) for name, view in shown.series.items()}
    assert told == {
        "loss": ("step", [150], 1.5),
        "loss (output.log)": ("epoch", [1, 2, 4], 1.5),
        "lr": ("step", [150], 0.01),
        "val_loss": ("epoch", [1, 2, 4], 0.5),
        "accuracy": ("epoch", [1, 2, 4], 64.5),
    }
    assert shown.series["val_loss"].evaluation
    assert (shown.numbers.metrics["val_loss"], shown.numbers.metrics["accuracy"], shown.numbers.loss) == (
        0.5,
        64.5,
        1.5,
    )
    run.release()


def test_printed_steps_are_an_axis_of_their_own(home: Home) -> None:
    """A loop that accumulates prints four steps for one of the optimizer."""
    run = watched_by_agent(home, step=150).output("step 400 val_loss 0.9\nstep 600 val_loss 0.8\n")
    monitor = make_monitor(home, FakeClock())
    first = monitor.refresh(focus=run.run.run)[0]
    assert (first.series["val_loss"].axis, list(first.series["val_loss"].x)) == ("printed step", [400, 600])
    assert monitor.refresh(focus=run.run.run)[0].series["val_loss"] is first.series["val_loss"]
    run.output("step 800 val_loss 0.7\n")
    assert list(monitor.refresh(focus=run.run.run)[0].series["val_loss"].x) == [400, 600, 800]
    run.release()


def test_printed_metrics_of_all_attempts_are_one_curve(home: Home) -> None:
    run = watched_by_agent(home, step=150).output(validated(1) + validated(2))
    run.exit(code=1).launch(2).status("running", 2, trainer=[77, 5]).beat(2, step=10, **AGENT).output(validated(3), 2)
    shown = make_monitor(home, FakeClock()).refresh(focus=run.run.run)[0]
    assert list(shown.series["val_loss"].x) == [1, 2, 3]
    run.release()


def test_what_is_left_of_one_training_is_not_what_is_left_of_all(home: Home) -> None:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    run.points(*({"time": NOW - 8 + i, "attempt": 1, "step": 200 + i, "loss": 1.5} for i in range(1, 9)))
    told: dict[str, Any] = {"step": 208, "epoch": 1, "epochs": 5, "epoch_step": 8, "epoch_steps": 20}
    run.beat(training=3, loss=1.5, **told)
    shown = make_monitor(home, FakeClock()).refresh(focus=run.run.run)[0].numbers
    assert (shown.epoch, shown.epochs, shown.steps, shown.eta_seconds) == (1, 5, None, None)
    assert shown.epoch_eta_seconds == pytest.approx(12.0)
    run.release()


def test_printed_samples_are_no_share_of_the_agents_steps(home: Home) -> None:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    run.points(*({"time": NOW - 8 + i, "attempt": 1, "step": 32 * i, "loss": 1.5} for i in range(1, 9)))
    run.beat(step=256, loss=1.5, **AGENT).output("Train Epoch: 1/2 [  6368/ 50000 (13%)]\tLoss: 1.5\n")
    shown = make_monitor(home, FakeClock()).refresh(focus=run.run.run)[0]
    assert (shown.numbers.epoch, shown.numbers.epochs, shown.numbers.step) == (1, 2, 256)
    assert shown.series["loss"].axis == "sample"
    assert (shown.numbers.eta_seconds, shown.numbers.epoch_eta_seconds) == (None, None)
    run.beat(step=256, loss=1.5, epoch=1, epoch_step=256, epoch_steps=1563, **AGENT)
    shown = make_monitor(home, FakeClock()).refresh()[0]
    assert shown.numbers.eta_seconds == pytest.approx((2 * 1563 - 256) / 32)
    assert shown.numbers.steps is None, "the agent counts since this process began"
    run.release()


@pytest.mark.parametrize("seen", [{}, {"step_from": "process"}, {"begun_step": 200}])
def test_one_look_at_the_share_of_all_epochs_tells_the_time_left_where_nobody_knows_all_steps(
    home: Home, seen: dict[str, Any]
) -> None:
    """But not what a training had done before this process began."""
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    run.beat(step=256, loss=1.5, **{**AGENT, "step_from": None, **seen}, time=NOW + 61)
    run.output("Train Epoch: 1/2 [ 10000/ 50000 (20%)]\tLoss: 1.5\n")
    shown = make_monitor(home, FakeClock(NOW + 61)).refresh()[0]
    left = None if seen else pytest.approx(9 * 60.0, rel=0.05)
    assert (shown.numbers.steps, shown.numbers.eta_seconds) == (None, left)
    run.release()


@pytest.mark.parametrize(("first", "printed", "left"), [(1, 8, 52.0), (0, 7, 52.0), (1, 3, None)])
def test_one_look_tells_the_time_left_where_each_epoch_is_one_step(
    home: Home, first: int, printed: int, left: float | None
) -> None:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    run.points(*({"time": NOW - 8 + step, "attempt": 1, "step": step, "loss": 1.5} for step in range(1, 9)))
    run.beat(step=8, loss=1.5, **AGENT)
    run.output("".join(f"Epoch: {epoch}/60 loss_train: 1.5 acc_val: 0.5\n" for epoch in range(first, printed + 1)))
    shown = make_monitor(home, FakeClock()).refresh()[0]
    assert (shown.numbers.epoch, shown.numbers.epochs, shown.numbers.eta_seconds) == (printed, 60, left)
    run.release()


@pytest.mark.parametrize(
    ("seen", "printed", "expected"),
    [
        ({"epoch": 2, "epoch_step": 15, "epoch_steps": 25}, "Epoch 4/4 [10/10] loss 1.5\n", (4, 4, 10, 10)),
        ({"epoch": 1, "epoch_step": 15, "epoch_steps": 25}, "Epoch 2/4 [5/10] loss 1.5\n", (2, 4, 5, 10)),
        ({"epoch": 2, "epoch_step": 15, "epoch_steps": 25}, "Epoch 4/4 loss 1.5\n", (4, 4, None, None)),
        ({"epoch": 2, "epoch_step": 25, "epoch_steps": 25}, "Epoch 3/4\n", (2, 4, 25, 25)),
        # A beat is up to some seconds old: the short epochs since then are passes too.
        (
            {"epoch": 2, "epoch_step": 1, "epoch_steps": 4, "steps_per_second": 8.0},
            "Epoch 4/9 loss 1.5\n",
            (2, 9, 1, 4),
        ),
        # Folds: the newest line is of the one before, until the program tells of this one.
        (
            {"epoch": 1, "epochs": 9, "epoch_step": 1, "epoch_steps": 4, "training": 2},
            "Epoch 9/9 loss 1.5\n",
            (1, 9, 1, 4),
        ),
        # Rounds: each is many trainings of two epochs.
        (
            {"epoch": 1, "epochs": 2, "epoch_step": 1, "epoch_steps": 4, "training": 9},
            "Epoch 3/6 [10/20] loss 1.5\n",
            (3, 6, None, None),
        ),
        # Clients that each keep their network: passes in all rounds until now.
        (
            {"epoch": 18, "epochs": 18, "epoch_step": 6, "epoch_steps": 6, "training": 6},
            "---Round number: 8---\nloss 1.5\n",
            (8, None, None, None),
        ),
        (
            {"epoch": 2, "epochs": 2, "epoch_step": 6, "epoch_steps": 6, "training": 12},
            "Round   0, Average loss 1.5\nRound   1, Average loss 1.4\nRound   2, Average loss 1.2\n",
            (2, None, None, None),
        ),
    ],
)
def test_an_epoch_of_the_program_may_be_no_pass_through_its_data(
    home: Home, seen: dict[str, Any], printed: str, expected: tuple[int | None, ...]
) -> None:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    run.beat(step=40, loss=1.5, loss_seen="backward", **seen).output(printed)
    shown = make_monitor(home, FakeClock()).refresh()[0].numbers
    assert (shown.epoch, shown.epochs, shown.epoch_step, shown.epoch_steps) == expected
    run.release()
