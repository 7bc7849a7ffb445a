"""What a heartbeat, a log, a metric file, the arguments and the agent say of one run, joined field by field."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Health, RunSnapshot, State
from mpstui.core.present import epoch_text, total_progress
from mpstui.core.runs.planned import asked_totals
from mpstui.core.runs.report import as_json
from mpstui.core.series.overview import metrics_of
from mpstui.core.sharing.export import table_of
from mpstui.wire import storage
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_monitor

AGENT: dict[str, Any] = {"step_from": "process", "loss_seen": "backward"}


def run_of(home: Home, argv: list[str] | None = None, attempt: int = 1, **launch: Any) -> RunBuilder:
    run = RunBuilder(home).status("running", attempt, trainer=[77, 5]).launch(attempt, **launch).hold()
    if argv is not None:
        path = run.run.attempt(attempt).launch
        storage.write_json(path, {**json.loads(path.read_text()), "argv": argv})
    return run


def seen_by_agent(run: RunBuilder, step: int, loss: float, attempt: int = 1, **told: Any) -> RunBuilder:
    """As the agent reports it: it counts since the process began, and sees what goes into backward."""
    run.beat(attempt, step=step, loss=loss, lr=0.01, **AGENT, **told)
    return run.points({"time": NOW, "attempt": attempt, "epoch": None, "step": step, "loss": loss, "lr": 0.01})


def both(home: Home, run: RunBuilder) -> list[RunSnapshot]:
    """The run as the list and as its own screen show it."""
    monitor = make_monitor(home, FakeClock())
    return [monitor.refresh_whole()[0], monitor.refresh(run.run.run)[0]]


def test_a_loss_that_is_printed_along_the_steps_goes_before_the_one_the_agent_sees(home: Home) -> None:
    """Gradients are accumulated over four batches: what goes into backward is a quarter."""
    run = seen_by_agent(run_of(home), 30, 0.45, metrics={"backward_passes_per_step": 4.0})
    run.output("".join(f"iter {i}: loss {1.8 + i / 1000:.4f}, time 12ms\n" for i in range(31)))
    for shown in both(home, run):
        curve = shown.series["loss"]
        assert (shown.numbers.loss, curve.last, curve.count, curve.axis) == (1.83, 1.83, 31, "step")
        assert {name: shown.numbers.told_by[name] for name in ("loss", "step", "lr")} == {
            "loss": "output.log",
            "step": "agent",
            "lr": "agent",
        }
    assert shown.series["loss (agent)"].axis == "optimizer step"
    assert [view.name for view in shown.series.values()] == [*shown.series], "each goes by its name everywhere"
    assert table_of(shown).names.count("loss") == 1
    assert as_json(shown, full=True)["told_by"]["loss"] == "output.log"
    run.release()


@pytest.mark.parametrize("with_agent", [True, False])
def test_a_bar_that_comes_before_the_first_step_the_agent_sees_is_none_of_training(
    home: Home, with_agent: bool
) -> None:
    """It scans the masks, tokenizes, or caches: an undescribed bar may be anything, and the agent knows of no step."""
    run = run_of(home)
    if with_agent:
        run.run.attempt(1).stack_signal.write_text("10 77 5\n")
    bars = "".join(f"\r {at * 5 // 3}%|##  | {at}/60 [00:{at // 4:02}<00:05,  4.00it/s]" for at in range(1, 50))
    run.output(bars)
    for shown in both(home, run):
        numbers = shown.numbers
        assert (numbers.step, numbers.steps) == ((None, None) if with_agent else (48, 60))
        if with_agent:
            assert shown.health is Health.WARMING
            assert (numbers.eta_seconds, numbers.steps_per_second, numbers.samples_per_second) == (None, None, None)
    run.output("\nepisode step 300 of 6000, reward 1.5\n")
    assert {shown.numbers.step for shown in both(home, run)} == {300}, "a line says what it counts"
    run.release()


def test_the_last_line_of_a_run_that_has_ended_counts_though_nothing_ends_it(home: Home) -> None:
    """It was drawn over and over with a carriage return in front."""
    run = run_of(home)
    run.output("".join(f"\r[Epoch 0/2] [Batch {at}/8] [D loss: 0.{at}52855] [G loss: 1.{at}37074]" for at in range(8)))
    assert {shown.series["D loss"].last for shown in both(home, run)[1:]} == {0.652855}
    run.exit(code=0).release()
    for shown in both(home, run):
        assert shown.numbers.metrics["D loss"] == 0.752855
    assert (shown.series["D loss"].count, shown.series["D loss"].last) == (8, 0.752855)


def test_the_mean_of_an_epoch_is_a_curve_beside_the_loss_of_its_steps(home: Home) -> None:
    run = run_of(home)
    for epoch in range(1, 5):
        steps = "".join(f"\titers: {i}, epoch: {epoch} | loss: 0.{epoch}{i}\n" for i in (100, 200))
        run.output(f"{steps}Epoch: {epoch}, Steps: 256 | Train Loss: 1.{epoch} Vali Loss: 2.{epoch}\n")
    for shown in both(home, run):
        assert shown.numbers.loss == 0.42
    curves = shown.series
    assert [(name, curves[name].count, curves[name].last) for name in ("loss", "train loss", "Vali Loss")] == [
        ("loss", 8, 0.42),
        ("train loss", 4, 1.4),
        ("Vali Loss", 4, 2.4),
    ]
    run.release()


def test_the_mean_of_an_epoch_that_is_called_loss_as_well_is_told_apart(home: Home) -> None:
    run = run_of(home)
    for epoch in range(1, 5):
        run.output("".join(f"Train Epoch: {epoch} [{i}/5400] Loss: 0.{epoch}{i}\n" for i in (0, 1408, 2816)))
        run.output(f"    epoch          : {epoch}\n    loss           : 1.{epoch}\n    val_loss       : 2.{epoch}\n")
    curves = both(home, run)[1].series
    assert (curves["loss"].count, curves["loss (epoch)"].count, curves["loss (epoch)"].last) == (12, 4, 1.4)
    run.release()


def test_a_mean_that_the_program_prints_goes_before_the_loss_of_one_step_that_the_agent_sees(home: Home) -> None:
    """Both call it by the same name."""
    run = run_of(home)
    run.beat(step=400, loss=None, metrics={"actor_loss": 9.5, "critic_loss": 9.25}, **AGENT)
    run.points({"time": NOW, "attempt": 1, "step": 400, "actor_loss": 9.5, "critic_loss": 9.25})
    run.output("".join(f"step {i}00 actor_loss: 0.{i}5 critic_loss: 1.{i}5\n" for i in range(1, 5)))
    for shown in both(home, run):
        told = {name: value for name, value in shown.numbers.metrics.items() if "loss" in name}
        assert told == {"actor_loss": 0.45, "critic_loss": 1.45}
    losses = {name: (view.count, view.last) for name, view in shown.series.items() if "critic" in name}
    assert losses == {"critic_loss": (4, 1.45), "critic_loss (agent)": (1, 9.25)}
    run.release()


def test_a_loss_that_both_tell_alike_keeps_the_name_that_the_program_prints(home: Home) -> None:
    """Of a few networks the agent sees the losses that are printed now and then: with more points, but no other."""
    run = run_of(home)
    run.beat(step=40, loss=None, metrics={"net_loss": 8.4, "disc_loss": 0.64}, **AGENT)
    seen = [{"step": i, "net_loss": 8 + i / 100, "disc_loss": 0.6 + i / 1000} for i in range(1, 41)]
    run.points(*({"time": NOW, "attempt": 1, **one} for one in seen))
    run.output("".join(f"[{i}] recon_loss:{8 - i / 100:.3f} disc_loss:{0.6 + i / 1000:.3f}\n" for i in range(5, 41, 5)))
    losses = {name: view.count for name, view in both(home, run)[1].series.items() if "disc" in name}
    assert losses == {"disc_loss": 40}
    run.release()


@pytest.mark.parametrize("loss_seen", ["trainer", "backward"])
def test_a_value_of_an_evaluation_that_is_reported_and_printed_is_one_curve(home: Home, loss_seen: str) -> None:
    """Lightning's bar prints the last of them, rounded; another program writes them to TensorBoard too."""
    run = run_of(home)
    run.beat(step=300, loss=0.5, metrics={"val/loss": 0.4219}, **{**AGENT, "loss_seen": loss_seen})
    run.points(
        {"time": NOW, "attempt": 1, "step": 100, "loss": 0.7, "val/loss": 0.7132},
        {"time": NOW, "attempt": 1, "step": 300, "loss": 0.5, "val/loss": 0.4219},
    )
    run.output("Epoch 2/2 300/300 0:00:10 30.2it/s val/loss: 0.422\n")
    curves = both(home, run)[1].series
    assert {name for name in curves if "val" in name} == {"val/loss"}
    run.release()


def test_what_program_and_agent_spell_differently_is_one_curve(home: Home) -> None:
    """A GAN prints each step what the agent sees once a second under the names of variables."""
    run = run_of(home)
    run.beat(step=12, loss=None, metrics={"d_loss": 0.5, "g_loss": 0.7}, **AGENT)
    run.points({"time": NOW, "attempt": 1, "step": 12, "d_loss": 0.5, "g_loss": 0.7})
    run.output("".join(f"[Epoch 0/3] [Batch {i}/16] [D loss: 0.{i + 40}] [G loss: 0.{i + 60}]\n" for i in range(13)))
    for shown in both(home, run):
        assert sorted(name for name in shown.numbers.metrics if "loss" in name) == ["D loss", "G loss"]
    assert sorted(name for name in shown.series if "loss" in name) == ["D loss", "G loss"]
    assert (shown.series["D loss"].count, shown.series["D loss"].last) == (13, 0.52)
    run.release()


def test_what_is_printed_and_written_for_tensorboard_under_other_names_is_one_curve(home: Home) -> None:
    """The agent sees the loss now and then; what goes to TensorBoard is each step's, and is printed at every fourth."""
    run = run_of(home)
    losses = [round(1 / (2 + step), 6) for step in range(1, 41)]
    run.beat(step=40, loss=losses[-1], metrics={"train/loss": losses[-1], "Loss/test": 0.28125}, **AGENT)
    for step, loss in enumerate(losses, 1):
        seen = {"loss": loss} if step % 8 == 0 else {}
        tested = {"Loss/test": loss + 0.25781} if step % 20 == 0 else {}
        run.points({"time": NOW, "attempt": 1, "step": step, "train/loss": loss, **seen, **tested})
    for step in range(4, 41, 4):
        run.output(f"step {step} | Batch loss {losses[step - 1]:.4f}\n")
        run.output(f"test loss {losses[step - 1] + 0.25781:.4f}\n" if step % 20 == 0 else "")
    curves = both(home, run)[1].series
    assert sorted(name for name in curves if "loss" in name.lower()) == ["loss", "test loss"]
    assert (curves["loss"].count, curves["test loss"].count) == (40, 2)
    run.release()


def test_a_metric_whose_curve_is_part_of_another_has_no_row_without_a_curve(home: Home) -> None:
    """Its newest value has more digits than the printed one, and may be of an earlier step."""
    run = run_of(home)
    losses = [round(1 + (step * 37 % 41) / 83, 6) for step in range(1, 41)]
    run.beat(step=40, loss=losses[-1], metrics={"train_loss": losses[34], "lone": 7.5}, **AGENT)
    for step, loss in enumerate(losses, 1):
        run.output(f"step {step}/40 loss {loss:.4f}\n")
        if step % 5 == 0:
            run.points({"time": NOW, "attempt": 1, "step": step, "loss": loss, "train_loss": losses[step - 6]})
    shown = both(home, run)[1]
    assert [one.name for one in metrics_of(shown) if "loss" in one.name and one.view is None] == []
    assert shown.numbers.metrics["lone"] == 7.5
    run.release()


def test_what_the_agent_calls_by_a_variable_is_the_curve_that_is_printed_with_its_values(home: Home) -> None:
    """The generator makes a step at every fourth of the critic's, and rests in between."""
    run = run_of(home)
    real = [round(1 + (step * 37 % 41) / 83, 6) for step in range(48)]
    other = [round(2 + (step * 31 % 47) / 97, 6) for step in range(48)]
    for step in range(1, 49):
        held = real[(step - 1) // 4 * 4]
        told = {"errG": held, "errD_fake": other[step - 1]}
        if step % 5 == 0:
            run.points({"time": NOW, "attempt": 1, "step": step, **told})
            run.beat(step=step, loss=None, metrics=told, **AGENT)
        if step % 4 == 1:
            run.output(f"[0/3][{step - 1}/48] Loss_D: {other[step - 1] - 0.5:.6f} Loss_G: {real[step - 1]:.6f}\n")
    assert {name for name in both(home, run)[1].series if "err" in name or "Loss" in name} == {
        "Loss_D",
        "Loss_G",
        "errD_fake",
    }
    run.release()


def test_beside_a_variable_of_the_agent_two_printed_curves_of_the_same_values_stay_two(home: Home) -> None:
    """And the agent's samples of the loss are compared once, though they have two names."""
    run = run_of(home)
    losses = [round(1 + (step * 37 % 41) / 83, 6) for step in range(1, 41)]
    run.beat(step=40, loss=losses[-1], metrics={"train_loss": losses[-1], "errG": 7.5}, **AGENT)
    for step, loss in enumerate(losses, 1):
        run.points({"time": NOW, "attempt": 1, "step": step, "loss": loss, "train_loss": loss, "errG": 7 + loss / 3})
        run.output(f"{step}/40, train_loss: {loss:.4f} acc: {loss / 4:.4f} iou: {loss / 4:.4f}\n")
    assert {"loss", "acc", "iou", "errG"} <= both(home, run)[1].series.keys()
    run.release()


@pytest.mark.parametrize(("late", "other", "curves"), [(0, 0.0, 1), (1, 0.0, 1), (1, 0.004, 2)])
def test_what_is_written_before_a_step_is_made_is_the_loss_of_that_step(
    home: Home, late: int, other: float, curves: int
) -> None:
    """A program may write each step's loss before it makes the step; the agent sees some of them, once it is made."""
    run = run_of(home)
    losses = [round(1 + (step * 37 % 41) / 83, 6) for step in range(1, 41)]
    run.beat(step=40, loss=losses[-1], metrics={"train/loss": losses[-1]}, **AGENT)
    for step, loss in enumerate(losses, 1):
        run.points({"time": NOW, "attempt": 1, "step": step - late, "train/loss": loss + other})
        run.points(*[{"time": NOW, "attempt": 1, "step": step, "loss": loss}] * (step % 8 == 0))
    found = {name: view.count for name, view in both(home, run)[1].series.items() if "loss" in name}
    assert found == ({"loss": 40} if curves == 1 else {"loss": 5, "train/loss": 40})
    run.release()


def test_what_is_written_for_tensorboard_in_a_group_is_the_curve_that_is_printed(home: Home) -> None:
    run = run_of(home)
    told = {"data/n100": 0.0, "data/flat": 0.0, "critic/n100": 0.0}
    for epoch in range(1, 7):
        told = {"data/n100": 0.5 + epoch / 7, "data/flat": 0.0, "critic/n100": 0.25 + epoch / 7}
        run.points({"time": NOW, "attempt": 1, "step": 40 * epoch, **told})
        run.output(f"epoch {epoch}/6 | loss 0.{epoch}5 | n100 {told['data/n100']:.3f}\n")
    run.beat(step=240, loss=0.65, metrics=told, **AGENT)
    curves = both(home, run)[1].series
    assert {"data/flat", "critic/n100"} < set(curves)
    assert [curves[name].count for name in ("n100", "data/n100") if name in curves] == [6]
    run.release()


def test_two_losses_of_training_whose_values_differ_stay_two(home: Home) -> None:
    run = seen_by_agent(run_of(home), 40, 0.3)
    for step in range(1, 41):
        run.points({"time": NOW, "attempt": 1, "step": step, "train/loss": 0.5 + step / 100, "loss": 0.5 + step / 90})
    assert {"loss", "train/loss"} <= set(both(home, run)[1].series)
    run.release()


def test_what_is_printed_and_written_for_tensorboard_is_one_curve(home: Home) -> None:
    run = run_of(home)
    run.beat(step=300, loss=0.5, metrics={"Loss/test": 0.4219, "Accuracy/val": 0.9}, **AGENT)
    run.points({"time": NOW, "attempt": 1, "step": 300, "loss": 0.5, "Loss/test": 0.4219, "Accuracy/val": 0.9})
    run.output("".join(f"step {i}00 loss 0.{i} test loss: 0.{i}5 val acc: 0.{i}1\n" for i in (1, 2, 3)))
    for shown in both(home, run):
        assert set(shown.numbers.metrics) & {"Loss/test", "test loss", "Accuracy/val"} == {"test loss"}
    assert {name for name in shown.series if "test" in name.lower() or "val" in name} == {"test loss", "val acc"}
    run.release()


def test_a_bar_of_images_counts_no_steps(home: Home) -> None:
    run = seen_by_agent(run_of(home), 12, 0.74)
    for epoch in (1, 2):
        frames = (f"Epoch {epoch}/2: {n * 4}%|##| {n}/24 [00:09<00:09, 1.5img/s, loss=0.{n}5]" for n in range(4, 25, 4))
        run.output("\r".join(frames) + "\n")
    shown = both(home, run)[1]
    assert (shown.numbers.step, shown.numbers.epoch, shown.series["loss"].axis) == (12, 2, "sample")
    run.release()


@pytest.mark.parametrize(("batch", "axis"), [(16, "sample"), (4, "step")])
def test_a_bar_that_counts_what_the_batches_hold_is_one_of_samples(home: Home, batch: int, axis: str) -> None:
    run = seen_by_agent(run_of(home), 73, 0.74, epoch=2, epoch_step=33, epoch_steps=40, batch_size=batch)
    for epoch in (0, 1):
        frames = (
            f"epoch: {epoch}/8: {n // 6}%|##| {n}/635 [00:09<00:09, 18.57it/s, loss=0.{n}5]" for n in range(16, 529, 16)
        )
        run.output("\r".join(frames) + "\n")
    shown = both(home, run)[1]
    assert (shown.numbers.step, shown.series["loss"].axis) == (73, axis)
    run.release()


def test_a_loss_that_is_printed_at_each_epoch_of_one_step_goes_before_the_one_the_agent_samples(home: Home) -> None:
    """Full-batch training of a graph network: the agent's heartbeats hold some of the losses, the log all of them."""
    run = seen_by_agent(run_of(home), 30, 1.8806)
    run.output("".join(f"Epoch: {i:04d} loss_train: {2 - i / 100:.4f} acc_train: 0.25\n" for i in range(1, 31)))
    for shown in both(home, run):
        curve = shown.series["loss"]
        assert (shown.numbers.loss, shown.numbers.told_by["loss"]) == (1.7, "output.log")
        assert (curve.count, curve.last) == (30, 1.7)
    run.release()


@pytest.mark.parametrize(
    ("passes", "loss", "by"), [(None, 0.5, "agent"), (1.0, 0.5, "agent"), (4.0, 2.0, "output.log")]
)
def test_the_loss_of_a_whole_epoch_leaves_the_agents_curve_unless_that_is_divided(
    home: Home, passes: float | None, loss: float, by: str
) -> None:
    run = seen_by_agent(run_of(home), 900, 0.5, metrics={"backward_passes_per_step": passes} if passes else {})
    run.output("Epoch 1/20 loss: 2.5\nEpoch 2/20 loss: 2.0\n")
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.series["loss"].last, shown.numbers.told_by["loss"]) == (loss, loss, by)
        assert (shown.numbers.step, shown.numbers.epoch, shown.numbers.epochs) == (900, 2, 20)
    run.release()


@pytest.mark.parametrize(("beats", "loss", "by"), [(38, 1.75, "output.log"), (60, 0.5, "agent")])
def test_the_mean_of_an_epoch_goes_first_where_the_agent_sees_hardly_more_of_it(
    home: Home, beats: int, loss: float, by: str
) -> None:
    """Epochs of a second or two: what it prints of each is as much as one look, of one batch, tells."""
    run = seen_by_agent(run_of(home), 300, 0.5, seq=beats)
    run.output("".join(f"train epoch {epoch} avg loss: {2 - epoch / 100:.4f}\n" for epoch in range(26)))
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.series["loss"].last, shown.numbers.told_by["loss"]) == (loss, loss, by)
    run.release()


@pytest.mark.parametrize(("phase", "loss", "by"), [("eval", 0.5, "agent"), ("done", 2.0, "output.log")])
def test_the_mean_of_the_last_epoch_is_the_loss_of_a_training_that_is_done(
    home: Home, phase: str, loss: float, by: str
) -> None:
    """While it trains, one batch is newer than the mean of the epoch before; afterwards it is part of the last mean."""
    run = seen_by_agent(run_of(home), 900, 0.5, phase=phase)
    run.output("Epoch: 1,   AUC: 0.61,   Loss Mean: 2.5\nEpoch: 2,   AUC: 0.66,   Loss Mean: 2.0\n")
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.series["loss"].last, shown.numbers.told_by["loss"]) == (loss, loss, by)
    run.release()


def test_a_learning_rate_that_is_printed_where_it_changes_leaves_the_agents_curve(home: Home) -> None:
    """The lines of a scheduler are three points of a schedule of which the agent has seen every step."""
    run = run_of(home).beat(step=400, loss=0.5, lr=0.001, **AGENT)
    rates = {step: 0.01 if step < 200 else 0.001 for step in range(10, 401, 10)}
    run.points(*({"time": NOW, "attempt": 1, "step": at, "loss": 0.5, "lr": rate} for at, rate in rates.items()))
    changed = "Adjusting learning rate of group 0 to 1.0000e-03.\n"
    run.output("".join(f"step {at} loss {at / 900:.4f}\n{changed * (at % 150 == 0)}" for at in range(5, 401, 5)))
    curve = both(home, run)[1].series["lr"]
    assert (curve.count, curve.values[0], curve.last, curve.axis) == (40, 0.01, 0.001, "optimizer step")
    run.release()


def test_a_learning_rate_that_is_printed_at_every_step_stays_the_programs_own(home: Home) -> None:
    run = seen_by_agent(run_of(home), 30, 0.45)
    run.output("".join(f"iter {i}: loss {1.8 + i / 1000:.4f}, lr {0.01 - i / 1e4:.4f}\n" for i in range(31)))
    curve = both(home, run)[1].series["lr"]
    assert (curve.count, curve.last) == (31, 0.007)
    run.release()


def test_a_loss_below_the_heading_of_an_evaluation_is_a_curve_beside_that_of_training(home: Home) -> None:
    trained = "Epoch[{e}]:[{i:03}/012] loss:1.{e}{i}(1.5)  prec@1:6.2{e}(9.38)\n"
    tested = "Testing the models......\nLoss: 0.9{e}, Prec@1: 18.7{e}, Prec@5: 48.4{e}\n"
    epochs = (trained.format(e=e, i=6) + trained.format(e=e, i=12) + tested.format(e=e) for e in (1, 2, 3))
    run = run_of(home).output("".join(epochs) + trained.format(e=4, i=6))
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.numbers.metrics["eval loss"]) == (1.46, 0.93)
    assert (shown.series["loss"].count, shown.series["eval loss"].count) == (7, 3)
    run.release()


def test_two_losses_of_training_on_one_line_are_two_curves(home: Home) -> None:
    """Whatever the second one is, it is no spelling of the first."""
    run = run_of(home)
    run.output("".join(f"Epoch {i}: train loss: {1 / i:.4f}, loss: {2 / i:.4f}\n" for i in range(1, 9)))
    curves = both(home, run)[1].series
    assert {name: (view.count, view.last) for name, view in curves.items()} == {
        "loss": (8, 0.125),
        "loss (2)": (8, 0.25),
    }
    run.release()


def test_a_second_loss_beside_one_that_is_not_the_charts_is_a_curve(home: Home) -> None:
    """The chart's is each step's; what is told now and then has a cost beside the mean."""
    run = run_of(home)
    for n in range(1, 41):
        run.output(f"step {n} Loss: {1 / n:.4f}\n")
        run.output(f"Batch {n} Loss: {2 / n:.6f} Cost: {9 + n / 8:.2f} Time: 12 ms/sequence\n" if n % 10 == 0 else "")
    curves = both(home, run)[1].series
    assert (curves["loss"].count, curves["Cost"].count, curves["Cost"].last) == (40, 4, 14.0)
    run.release()


def test_batches_that_no_epoch_counts_leave_the_plan_of_all(home: Home) -> None:
    run = seen_by_agent(run_of(home), 40, 0.5)
    run.output("Training model for 200 batches (batch_size=1)...\n")
    run.output("".join(f"Batch {n} Loss: {2 / n:.6f} Cost: {9 + n / 8:.2f}\n" for n in (10, 20, 30, 40)))
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps) == (40, 200)
    run.release()


def test_a_printed_mean_keeps_the_chart_where_the_agent_sees_a_sum(home: Home) -> None:
    """A neural operator adds up the errors of a batch, and prints their mean."""
    run = seen_by_agent(run_of(home), 810, 1.5, seq=90)
    run.points(*({"time": NOW, "attempt": 1, "step": step, "loss": 1200 / step} for step in range(10, 801, 10)))
    run.output(
        "".join(f"[{epoch}] time=10.33, avg_loss={0.5 - epoch / 10:.4f}, train_err=8.2792\n" for epoch in range(4))
    )
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.series["loss"].last, shown.series["loss"].count) == (0.2, 0.2, 4)
    run.release()


def test_a_loss_that_is_printed_rarely_leaves_the_chart_to_the_agents_curve(home: Home) -> None:
    run = seen_by_agent(run_of(home), 810, 0.81)
    run.points(*({"time": NOW, "attempt": 1, "step": step, "loss": step / 1000} for step in range(10, 801, 10)))
    run.output("".join(f"step {step}/5000 loss {step / 1000 + 0.002:.4f}\n" for step in (200, 400, 600, 800)))
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.numbers.told_by["loss"]) == (0.802, "output.log")
        assert (shown.series["loss"].count, shown.series["loss"].axis) == (81, "step")
    assert shown.series["loss (output.log)"].count == 4


@pytest.mark.parametrize("metrics", [{"loss_sum": 44276.0}, {"errD_real": 0.7, "errG": 2.1}])
def test_where_the_agent_knows_no_loss_the_one_that_is_printed_is_shown(home: Home, metrics: dict[str, float]) -> None:
    """A sum over the batch, and the losses of a GAN, are none; samples are printed, so the axis is one of samples."""
    run = run_of(home).beat(step=94, epoch=2, epoch_step=47, epoch_steps=47, loss_seen="backward", metrics=metrics)
    run.points({"time": NOW, "attempt": 1, "epoch": 2, "step": 94, **metrics})
    lines = (f"Train Epoch: 1 [{n}/6000 ({n // 60}%)]\tLoss: {500 - n / 100:.6f}\n" for n in range(0, 6000, 640))
    run.output("".join(lines) + "====> Test set loss: 393.6999\n")
    shown = both(home, run)[1]
    assert (shown.numbers.loss, shown.numbers.told_by["loss"], shown.numbers.step) == (442.4, "output.log", 94)
    assert (shown.series["loss"].axis, shown.series["Test set loss"].axis) == ("sample", "sample")
    assert metrics.keys() < shown.series.keys()
    run.release()


def test_the_last_loss_of_an_agent_that_counts_nothing_leaves_the_printed_one(home: Home) -> None:
    run = run_of(home).beat(loss=0.27, loss_seen="backward", phase="done")
    run.output(
        "epoch  train_loss  valid_loss  time\n"
        "4      0.29        0.17        00:02\n"
        "5      0.19        0.16        00:02\n"
    )
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.numbers.told_by["loss"]) == (0.19, "output.log")
    run.release()


def test_a_loss_that_the_agent_knows_no_longer_is_not_shown_as_the_newest(home: Home) -> None:
    """The first steps were made of one backward pass, the later ones of many whose share nobody can prove."""
    run = run_of(home).points({"time": NOW - 9, "attempt": 1, "epoch": 1, "step": 2, "loss": 0.35})
    run.beat(step=16, epoch=4, accumulate=16, loss_seen=None, step_from="process")
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.numbers.step, shown.series["loss"].last) == (None, 16, 0.35)
    run.release()


def test_the_first_of_several_losses_is_none_of_the_training_once_the_others_have_come(home: Home) -> None:
    """A policy makes eighty steps, then a value network: until then the agent saw one loss."""
    run = run_of(home).points({"time": NOW - 9, "attempt": 1, "step": 80, "loss": 205.5})
    run.beat(step=300, loss_seen="backward", metrics={"loss_pi": -0.014, "loss_v": 575.0})
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.numbers.metrics["loss_v"]) == (None, 575.0)
    run.release()


def test_a_loss_that_a_framework_told_the_agent_is_the_programs_own(home: Home) -> None:
    run = run_of(home).beat(step=40, steps=90, epoch=1.5, epochs=3, loss=2.5, loss_seen="trainer")
    run.points({"time": NOW, "attempt": 1, "epoch": 1.5, "step": 40, "loss": 2.5})
    run.output("{'loss': 2.4, 'epoch': 1.25}\n")
    for shown in both(home, run):
        assert (shown.numbers.loss, shown.numbers.step, shown.numbers.steps, shown.numbers.epoch) == (2.5, 40, 90, 1.5)
    run.release()


def test_after_a_resume_the_steps_go_on_as_the_program_prints_them(home: Home) -> None:
    run = run_of(home, attempt=1)
    run.output("".join(f"step {i}/400 loss {9 / i:.3f}\n" for i in range(10, 301, 10)))
    seen_by_agent(run, 300, 0.03)
    run.exit(1, code=1).launch(2, checkpoint="ckpt.pt").status("running", 2, trainer=[77, 5])
    run.output("".join(f"step {i}/400 loss {9 / i:.3f}\n" for i in range(310, 351, 10)), 2)
    run.beat(2, step=51, loss=0.02, **AGENT)
    run.points(*({"time": NOW + i, "attempt": 2, "epoch": None, "step": i, "loss": 0.02} for i in range(1, 52)))
    listed, shown = both(home, run)
    curve = shown.series["loss"]
    assert (shown.numbers.step, shown.numbers.steps, listed.numbers.step) == (350, 400, 350)
    assert (curve.x[0], curve.x[-1], curve.count, list(curve.superseded)) == (10, 350, 35, [])
    run.release()


def test_steps_that_are_printed_from_zero_again_after_a_resume_go_on_where_the_agent_counts_on(home: Home) -> None:
    run = run_of(home, attempt=1)
    run.output("".join(f"step {i} loss {9 / i:.3f}\n" for i in range(10, 301, 10)))
    run.beat(step=300, loss=0.03, loss_seen="backward").exit(1, code=1)
    run.launch(2, checkpoint="ckpt.pt").status("running", 2, trainer=[77, 5])
    run.output("".join(f"step {i} loss {9 / (300 + i):.3f}\n" for i in (10, 20)), 2)
    monitor = make_monitor(home, FakeClock())
    monitor.refresh(run.run.run)  # before the agent has told anything
    for done in (2, 5):
        run.output(f"step {done}0 loss {9 / (300 + 10 * done):.3f}\n" if done > 2 else "", 2)
        run.beat(2, step=301 + 10 * done, begun_step=300, loss=0.02, loss_seen="backward", seq=done)
        curve = monitor.refresh(run.run.run)[0].series["loss"]
    assert (list(curve.x[-4:]), list(curve.superseded)) == ([300, 310, 320, 350], [])
    run.exit(2, code=1).launch(3, checkpoint="ckpt.pt").status("running", 3, trainer=[77, 5])
    run.output("".join(f"step {i} loss 0.01\n" for i in (10, 20, 30)), 3)
    run.beat(3, step=381, begun_step=350, loss=0.01, loss_seen="backward")
    for shown in (monitor.refresh(run.run.run)[0], both(home, run)[1]):
        curve = shown.series["loss"]
        assert (list(curve.x[-4:]), list(curve.superseded), shown.numbers.step) == ([350, 360, 370, 380], [], 381)
    run.release()


def test_steps_that_are_printed_from_one_in_each_epoch_stand_in_their_epoch_after_a_resume(home: Home) -> None:
    run = run_of(home, attempt=1)
    places = [(epoch, step) for epoch in range(1, 5) for step in range(1, 21)]
    run.output("".join(f"Epoch {e} | Iter {s} | Loss {9 - e - s / 50}\n" for e, s in places[:70]))
    run.beat(step=70, loss=0.03, loss_seen="backward").exit(1, code=1)
    run.launch(2, checkpoint="ckpt.pt").status("running", 2, trainer=[77, 5])
    monitor = make_monitor(home, FakeClock())
    for before, done in ((0, 3), (3, 9), (9, 20)):
        run.output("".join(f"Epoch 4 | Iter {s} | Loss {5 - s / 50}\n" for s in range(before + 1, done + 1)), 2)
        run.beat(2, step=60 + done, begun_step=60, loss=0.02, loss_seen="backward", seq=done)
        for shown in (monitor.refresh(run.run.run)[0], both(home, run)[1]):
            curve = shown.series["loss"]
            assert (list(curve.x), shown.numbers.step) == ([*map(float, range(1, 61 + done))], 60 + done)
    run.release()


@pytest.mark.parametrize("steps", [(310, 320, 330), (10, 20, 130)])
def test_steps_that_go_on_or_are_others_than_the_agents_stay_where_they_are(home: Home, steps: tuple[int, ...]) -> None:
    """The agent may count several steps where the program counts one."""
    run = run_of(home, attempt=2)
    run.output("".join(f"step {i} loss {9 / i:.3f}\n" for i in steps), 2)
    run.beat(2, step=335, begun_step=300, loss=0.02, loss_seen="backward")
    assert list(both(home, run)[1].series["loss"].x) == [*map(float, steps)]
    run.release()


def test_a_printed_number_below_the_steps_of_this_process_is_not_its_step(home: Home) -> None:
    """A second attempt that began anew, of a program that prints epochs by a name of steps."""
    run = seen_by_agent(run_of(home, attempt=2), 36, 0.5, attempt=2)
    run.output("step 2: loss 0.5\n", 2)
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.told_by["step"]) == (36, "agent")
    run.release()


@pytest.mark.parametrize(("seen", "shown_step"), [(523, 523), (398, 400), (400, 400)])
def test_between_two_printed_steps_the_agents_count_is_the_step_where_both_began_with_this_process(
    home: Home, seen: int, shown_step: int
) -> None:
    """It loads weights to begin with: the agent cannot tell that from a resume, what is printed can."""
    run = seen_by_agent(run_of(home), seen, 0.5, steps_per_second=88.0)
    run.output("step 200/1500 loss 0.60\nstep 400/1500 loss 0.50\n")
    for shown in both(home, run):
        numbers = shown.numbers
        assert (numbers.step, numbers.steps, numbers.told_by["step"]) == (shown_step, 1500, "agent")
    run.release()


def test_the_agents_count_has_the_printed_total_after_a_resume_if_both_count_from_zero(home: Home) -> None:
    run = run_of(home, attempt=2, checkpoint="ckpt.pt")
    seen_by_agent(run, 523, 0.5, attempt=2, steps_per_second=88.0)
    run.output("step 200/1500 loss 0.60\nstep 400/1500 loss 0.50\n", 2)
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps) == (523, 1500)
    run.release()


def test_batches_printed_by_epoch_count_as_the_agent_does_where_both_began_with_this_process(home: Home) -> None:
    """A distillation loads its teacher: the epochs that are printed tell that nothing was resumed."""
    run = run_of(home, ["python", "t.py", "--epochs", "4"])
    seen_by_agent(run, 108, 0.5, epoch=3, epoch_step=28, epoch_steps=40, steps_per_second=2.0)
    run.output("".join(f"Epoch: [{e}][{b}/40] Loss {1 / e:.4f}\n" for e in (1, 2, 3) for b in (0, 10, 20)))
    for shown in both(home, run):
        numbers = shown.numbers
        assert (numbers.epoch, numbers.step, numbers.steps, numbers.told_by["step"]) == (3, 108, 160, "agent")
    run.release()


def test_one_step_beyond_the_printed_total_is_the_end(home: Home) -> None:
    """A loop that is left by `if step > max_steps` prints ``[51/50]``; that is no reason to count epochs instead."""
    run = seen_by_agent(run_of(home), 51, 0.5, epoch=3, epoch_step=15, epoch_steps=18)
    lines = [f"Training iteration [{i}/50]. Epoch [{(i - 1) // 18}/5]\n" for i in range(1, 52)]
    for step in (40, 20, 0):
        lines.insert(step, f"Training stats. Loss: {1 / (1 + step):.4f}\n")
    run.output("".join(lines))
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps) == (51, 51)
    run.release()


def test_the_agents_count_after_a_resume_is_no_share_of_a_total(home: Home) -> None:
    run = run_of(home, ["python", "t.py", "--max-steps", "400"], checkpoint="ckpt.pt")
    seen_by_agent(run, 51, 0.5)
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps) == (51, None)
    run.release()


@pytest.mark.parametrize(("printed", "now", "end"), [((4,), 4, 5), ((4, 5), 5, 5), ((1,), 1, 2), ((3, 4, 5), 5, None)])
def test_epochs_that_are_asked_for_beyond_a_checkpoint_end_with_the_last_of_them(
    home: Home, printed: tuple[int, ...], now: int, end: int | None
) -> None:
    """``--epochs 2`` of a program that goes on from epoch 4 is 4 and 5; three of them are no two."""
    run = run_of(home, ["python", "t.py", "--epochs", "2"])
    run.output("".join(f"EPOCH {e}\n[ep {e} step {s}/300] loss={3 / (e * s):.4f}\n" for e in printed for s in (1, 200)))
    for shown in both(home, run):
        assert (shown.numbers.epoch, shown.numbers.epochs) == (now, end)
        assert "begun_epoch" not in shown.numbers.metrics
    run.release()


def test_what_is_left_behind_a_checkpoint_is_what_this_process_has_to_do(home: Home) -> None:
    """Two epochs of 150 steps from epoch 4 on, at one step a second: 10 steps are made, 290 are not."""
    run = run_of(home, ["python", "t.py", "--epochs", "2"]).output("EPOCH 4\n[ep 4 step 0/150] loss=3.5\n")
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    for step in range(1, 11):
        clock.advance(1.0)
        run.beat(step=step, epoch=1, epoch_step=step, epoch_steps=150, time=clock(), **AGENT)
        shown = monitor.refresh(run.run.run)[0]
    assert shown.numbers.epochs == 5
    assert shown.numbers.eta_seconds == pytest.approx(290, rel=0.02)
    run.release()


def test_a_loop_that_makes_one_step_more_than_its_limit_has_made_all_of_them(home: Home) -> None:
    run = run_of(home, ["python", "t.py", "--max_iters=120"]).beat(step=121, loss=0.5, loss_seen="backward")
    run.output("".join(f"iter {i}: loss {3 - i / 100:.4f}\n" for i in range(121)))
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps) == (121, 121)
    run.release()


def test_an_epoch_the_agent_counts_is_called_what_the_program_calls_it(home: Home) -> None:
    run = run_of(home, ["python", "t.py", "--epochs", "3"])
    run.beat(step=6, epoch=2, epoch_step=2, epoch_steps=4, loss=0.5, loss_seen="backward")
    run.output(
        "".join(f"Epoch: [{e}][{b}/4]\tLoss {2 - e / 5:.3f}\n" for e, b in ((0, 1), (0, 2), (0, 3), (0, 4), (1, 1)))
    )
    for shown in both(home, run):
        assert (shown.numbers.epoch, shown.numbers.first_epoch, epoch_text(shown.numbers)) == (1, 0, "2/3")
    run.release()


@pytest.mark.parametrize(
    ("argv", "printed", "epoch", "text"),
    [
        (["--epochs", "5"], 3, 4, "4/5"),
        (["--epochs", "4"], 3, 4, "4/4"),
        ([], 4, 5, "5/5"),
        ([], 3, 4, "4/4"),  # nobody knows yet
    ],
)
def test_a_program_may_print_the_last_epoch_instead_of_how_many_there_are(
    home: Home, argv: list[str], printed: int, epoch: int, text: str
) -> None:
    run = run_of(home, ["python", "t.py", *argv])
    run.beat(step=4 * epoch - 2, epoch=epoch, epoch_step=2, epoch_steps=4, loss=0.5, loss_seen="backward")
    done = "".join(f"Epoch {n}/4\ntrain Loss: {2 - n / 9:.4f}\nval Loss: {2 - n / 8:.4f}\n" for n in range(printed))
    run.output(f"{done}Epoch {printed}/4\n")
    for shown in both(home, run):
        assert epoch_text(shown.numbers) == text
    run.release()


def test_an_epoch_that_is_reported_at_its_end_is_not_that_of_the_steps_after_it(home: Home) -> None:
    """The heartbeat has gone on with the agent's count; the newest points still bear the epoch that was reported."""
    run = run_of(home)
    counted: dict[str, Any] = {"epochs": 5, "first_epoch": 0, "epoch_steps": 30, "loss_seen": "backward"}
    run.beat(step=34, epoch=1, epoch_step=4, loss=0.5, reported=("step", "epoch", "epochs"), **counted)
    run.points({"time": NOW + 0.5, "attempt": 1, "step": 36, "epoch": 0, "first_epoch": 0, "loss": 0.4})
    for shown in both(home, run):
        assert (epoch_text(shown.numbers), shown.numbers.step, shown.numbers.steps) == ("2/5", 36, 150)
    run.release()


def test_how_far_an_epoch_was_is_not_said_of_the_next_one(home: Home) -> None:
    """Only the second epoch shows that these steps are those of all epochs."""
    run = run_of(home).output(
        "".join(f"INFO epoch {1 + step // 101}/4 step {step}/400 loss {2 - step / 500:.4f}\n" for step in range(1, 131))
    )
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps, shown.numbers.epoch_step) == (130, 400, None)
    run.release()


@pytest.mark.parametrize(
    ("printed", "steps", "by"),
    [
        ("", 400, "arguments"),
        ("max_iters = 5000\nloading\n", 400, "arguments"),
        (" 12%|#2        | 40/320 [00:10<01:12,  4.0it/s]\n", 320, "output.log"),
        ("step 40/320 loss 0.5\n", 320, "output.log"),
    ],
)
def test_totals_known_to_anyone_are_kept_when_the_agent_counts(home: Home, printed: str, steps: int, by: str) -> None:
    run = seen_by_agent(run_of(home, ["python", "t.py", "--max_steps=400"]), 40, 0.5).output(printed)
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps, shown.numbers.told_by["steps"]) == (40, steps, by)
    run.release()


@pytest.mark.parametrize(("step", "epoch_step"), [(66, 50), (59, 50), (60, 60), (120, 107 - 60)])
def test_the_total_stands_still_while_step_and_epoch_are_of_two_moments(home: Home, step: int, epoch_step: int) -> None:
    """The program tells each step, the agent its epoch once a second."""
    run = run_of(home).beat(step=step, epoch=1 + (step > 66), epochs=3, epoch_step=epoch_step, epoch_steps=60)
    assert [shown.numbers.steps for shown in both(home, run)] == [180, 180]
    run.release()


def test_the_time_that_the_start_took_says_nothing_of_what_is_left(home: Home) -> None:
    """A minute of imports, then 2 of 6,250 quick steps: no 70 hours, not for a second either."""
    run = seen_by_agent(run_of(home), 2, 0.5, steps=6250, epoch=1, epochs=5)
    assert [shown.numbers.eta_seconds for shown in both(home, run)] == [None, None]
    run.release()


def test_the_bar_of_an_evaluation_is_not_the_epoch(home: Home) -> None:
    run = run_of(home).beat(step=80, steps=240, epoch=1, epochs=3)
    run.output(" 33%|###3      | 80/240 [00:08<00:14, 11.35it/s]\n 75%|#######5  | 15/20 [00:01<00:00, 17.0it/s]\n")
    for shown in both(home, run):
        assert (shown.numbers.epoch_step, shown.numbers.epoch_steps) == (None, None)
    run.release()


def test_a_total_below_the_count_is_about_something_else(home: Home) -> None:
    run = seen_by_agent(run_of(home, ["python", "t.py", "--num_steps=5"]), 40, 0.5)
    assert both(home, run)[1].numbers.steps is None
    run.release()


@pytest.mark.parametrize(
    ("step", "accumulate", "steps"),
    [
        (353, 1, 626),
        (313 + 90, 1, 626),  # it prints every fifty batches
        (88, 4, None),  # of four batches each
        (353, None, None),  # nobody knows what is passed backward
        (12, 1, None),  # what is printed are samples
        (3530, 1, None),  # what is printed are parts of ten
    ],
)
def test_what_is_printed_of_an_epoch_is_its_length_in_steps_where_both_count_alike(
    home: Home, step: int, accumulate: int | None, steps: int | None
) -> None:
    """No data loader tells the agent how long an epoch is: the program slices its tensors."""
    run = seen_by_agent(run_of(home, ["python", "t.py", "--epochs", "2"]), step, 0.5, accumulate=accumulate)
    run.output("".join(f"| Epoch {e} | {i}/313 batches | loss 0.{e}{i}\n" for e, i in ((1, 50), (1, 300), (2, 40))))
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps, shown.numbers.epochs) == (step, steps, 2)
    run.release()


def test_a_speed_that_is_told_gives_the_remaining_time_at_the_first_look(home: Home) -> None:
    run = seen_by_agent(run_of(home, ["python", "t.py", "--max_steps=400"]), 40, 0.5, steps_per_second=20.0)
    assert [shown.numbers.eta_seconds for shown in both(home, run)] == [18.0, 18.0]
    run.release()


@pytest.mark.parametrize(
    ("argv", "totals"),
    [
        ("torchrun t.py --epochs 20 --lr 0.1", {"epochs": 20}),
        ("python t.py --nepoch 3", {"epochs": 3}),
        ("python ppo.py --total-timesteps 6000 --num-steps 128", {}),
        ("python t.py --nEpochs=3 --epochs_warmup 9", {"epochs": 3}),
        ("python t.py --max_epoch 3 --save_epoch 1 --epoch 7", {"epochs": 3}),
        ("python t.py --epoch 7 --max_steps 9", {"epoch": 7, "steps": 9}),
        ("python t.py --epoch 0", {}),
        ("python t.py --start_epoch 0 --stop_epoch 6 --save_freq 2", {"epochs": 6}),
        ("python t.py --end-epoch 6", {"epochs": 6}),
        ("python t.py --final_epoch 6 --epochs 9", {"epochs": 9}),
        ("python t.py --num_train_epoch 6 --epoch 2", {"epochs": 6}),
        ("python t.py --decay_end_epoch 6 --last_epoch 5", {}),
        ("python t.py --train-iters 300", {"steps": 300}),
        ("python t.py --num-train-epochs=3 --max_steps -1", {"epochs": 3}),
        ("python t.py trainer.max_epochs=7 steps=100", {"epochs": 7, "steps": 100}),
        ("python t.py --max_iters=1e3", {"steps": 1000}),
        ("python t.py --train_epochs 10 --itr 2", {"epochs": 10}),
        ("python t.py --num-train-steps 500", {"steps": 500}),
        ("python t.py --total_itrs 150 --val_itrs 9", {"steps": 150}),
        ("python t.py --epochs many --batch 5", {}),
        ("python t.py --step-size 5 --iterator x", {}),
        ("", {}),
    ],
)
def test_totals_among_arguments(argv: str, totals: dict[str, float]) -> None:
    assert asked_totals(argv.split()) == totals


@pytest.mark.parametrize(
    ("argument", "first", "epochs"),
    [("--epoch 7", 1, 7), ("--epoch 7", 0, 7), ("--epoch 7", 7, None), ("--epoch 7", 8, None), ("--epoch 1", 1, None)],
)
def test_an_epoch_among_the_arguments_is_the_plan_unless_it_is_the_one_to_begin_with(
    home: Home, argument: str, first: int, epochs: int | None
) -> None:
    run = run_of(home, ["python", "t.py", *argument.split()])
    for shown in both(home, run):
        assert shown.numbers.epochs is None  # nobody counts any
    run.output("".join(f"epoch {first + at} loss 0.{9 - at}\n" for at in range(3)))
    for shown in both(home, run):
        assert shown.numbers.epochs == epochs
    run.release()


def test_the_total_of_an_epochs_bar_is_none_of_the_run(home: Home) -> None:
    run = run_of(home, ["python", "t.py", "--epochs", "2"])
    seen_by_agent(run, 100, 0.5, epoch=1, epoch_step=100, epoch_steps=100)
    run.output("loss: 0.25: 100%|##########| 100/100 [00:16<00:00, 21.70it/s]\n")
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps) == (100, 200)
    run.release()


@pytest.mark.parametrize(
    ("printed", "told", "steps"),
    [
        (BAR := "Iteration: 1\n 50%|#####     | 50/100 [00:16<00:16, 3.1it/s]\n", {}, None),
        ("step 50/100 loss 0.5\n", {}, None),
        (BAR, {"epoch": 2, "step": 150}, None),
        (BAR, {"planned_epochs": 3}, 300),
        (f"Total steps: 100\n{BAR}", {}, 100),
        (BAR, {"phase": "done"}, 100),
        (BAR.replace("50/100", "50/400"), {}, 400),
    ],
)
def test_a_bar_as_long_as_the_first_pass_is_no_plan_where_nobody_tells_how_many_passes_there_are(
    home: Home, printed: str, told: dict[str, Any], steps: int | None
) -> None:
    run = run_of(home).output(printed)
    run.beat(**{"step": 50, "epoch": 1, "epoch_step": 50, "epoch_steps": 100, "loss": 0.5, **AGENT, **told})
    for shown in both(home, run):
        assert (shown.numbers.steps, shown.numbers.epoch_step, shown.numbers.epoch_steps) == (steps, 50, 100)
    run.release()


@pytest.mark.parametrize("names", [("Train loss", "Train CE loss"), ("CE loss", "train_loss (one batch)")])
def test_of_two_losses_that_nothing_counts_the_plainer_one_is_shown_from_its_first_line_on(
    home: Home, names: tuple[str, str]
) -> None:
    plain = next(at for at, name in enumerate(names) if "CE" not in name)
    run = run_of(home)
    for values in ((34.5, 33.5), (24.5, 23.5)):
        run.output("".join(f"{name}: {value}\n" for name, value in zip(names, values, strict=True)))
        assert [shown.numbers.loss for shown in both(home, run)] == [values[plain]] * 2
    run.release()


PLANS = {
    "a line": ("Start training, Total Epochs: 4 = Total Iterations 48\n", ["python", "t.py"]),
    "a sentence": ("Total steps: 48\n", ["python", "t.py", "--epochs", "4"]),
}


@pytest.mark.parametrize("plan", PLANS)
def test_a_loader_that_yields_the_whole_training_as_one_pass_has_the_epochs_that_are_planned(
    home: Home, plan: str
) -> None:
    """Its sampler counts iterations: the program announces as many as the agent sees in the first pass."""
    announced, argv = PLANS[plan]
    run = run_of(home, argv)
    run.output(announced)
    shown_at = {}
    for step in (1, 12, 13, 48):
        run.beat(step=step, loss=0.5, epoch=1, epoch_step=step, epoch_steps=48, loss_seen="backward", seq=step)
        run.output(f"Iters: {step}/48 || Loss: 0.5000\n")
        for shown in both(home, run):
            numbers = shown.numbers
            assert (numbers.step, numbers.steps, numbers.epochs) == (step, 48, 4), shown.reason
            assert numbers.beat is not None
            assert (numbers.beat.epoch, numbers.beat.epoch_steps) == (1, 48), "as it was told"
        shown_at[step] = numbers.epoch, numbers.epoch_step, numbers.epoch_steps
    assert shown_at == {1: (1, 1, 12), 12: (1, 12, 12), 13: (2, 1, 12), 48: (4, 12, 12)}
    run.release()


def test_a_total_that_is_called_so_is_no_pass_where_another_pass_follows(home: Home) -> None:
    run = run_of(home, ["python", "t.py", "--epochs", "4"])
    run.output("Total steps: 48\n")
    run.beat(step=60, loss=0.5, epoch=2, epoch_step=12, epoch_steps=48, loss_seen="backward")
    for shown in both(home, run):
        assert (shown.numbers.epoch, shown.numbers.step, shown.numbers.steps) == (2, 60, 192)
    run.release()


def test_an_epoch_that_an_attempt_began_again_makes_more_steps_than_the_epochs_have(home: Home) -> None:
    """Killed within the third of six epochs of 20 steps: ten of its steps were made twice."""
    run = run_of(home, ["python", "t.py", "--epochs", "6"])
    run.beat(1, step=130, loss=0.5, epoch_step=20, epoch_steps=20, **{**AGENT, "step_from": None})
    run.output("".join(f"epoch {epoch} loss 0.{epoch}\n" for epoch in range(3, 7)))
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps, shown.numbers.epoch) == (130, 130, 6)
    run.release()


def write(path: Path, clock: FakeClock, step: int, **more: Any) -> None:
    record = {
        "timestamp": clock.wall,
        "epoch": 1 + step // 50,
        "step": step,
        "steps_total": 200,
        "loss": 4 / step,
        **more,
    }
    path.write_text(json.dumps(record))
    os.utime(path, (clock.wall, clock.wall))


@pytest.mark.parametrize("watched", [True, False])
def test_a_heartbeat_file_of_the_program_gives_curves_and_totals(home: Home, tmp_path: Path, watched: bool) -> None:
    clock = FakeClock(NOW + 10)
    monitor, file = make_monitor(home, clock), tmp_path / "train_heartbeat.json"
    write(file, clock, 9)
    if watched:
        key, run = monitor.watch(file), None
    else:
        run = run_of(home).respec(watch={"heartbeat": str(file)})
        key = run.run.run
    for step in range(10, 101, 10):
        write(file, clock, step, val_loss=5 / step)
        (listed,) = monitor.refresh()
        clock.advance(2.0)
    assert listed.series["loss"].count >= 10, "a sparkline in the list too"
    shown = monitor.snapshot(key)
    assert list(shown.series["loss"].x)[-3:] == [80, 90, 100]
    assert (shown.series["loss"].last, shown.numbers.loss, shown.series["val_loss"].last) == (0.04, 0.04, 0.05)
    assert shown.series["loss"].times[-1] == clock.wall - 2.0
    assert (shown.numbers.step, shown.numbers.steps) == (100, 200)
    assert shown.numbers.steps_per_second == pytest.approx(5.0)
    assert shown.numbers.eta_seconds == pytest.approx(20.0)
    told = as_json(shown, full=True)
    assert (told["loss"], told["metrics"]["loss"]["last"], told["steps"]) == (0.04, 0.04, 200)
    if run is not None:
        run.release()


def test_the_programs_heartbeat_counts_beside_the_agent(home: Home, tmp_path: Path) -> None:
    clock, file = FakeClock(NOW + 10), tmp_path / "train_heartbeat.json"
    run = seen_by_agent(run_of(home).respec(watch={"heartbeat": str(file)}), 6, 0.5)
    write(file, clock, 60)
    shown = make_monitor(home, clock).snapshot(run.run.run)
    numbers = shown.numbers
    assert (numbers.epoch, numbers.step, numbers.steps, numbers.loss) == (2, 60, 200, 0.5)
    assert (numbers.told_by["step"], numbers.told_by["loss"]) == ("train_heartbeat.json", "agent")
    assert set(shown.series) == {"loss", "lr", "loss (train_heartbeat.json)"}
    run.release()


LINES = {
    "bare": "epoch {i}/10",
    "with a loss": "epoch {i}/10 loss 0.{i}",
    "in brackets": "Epoch [{i}/10], Loss: 0.{i}",
    "steps": "Step {i} of 10, loss 0.{i}",
    "no word": "{i}/10 | loss 0.{i}",
    "a heading": "--- Epoch {i}/10 ---",
    "begins": "Starting epoch {i} of 10",
    "took": "epoch {i}/10 took 30.1s",
    "iterations": "iter {i}/10 loss 0.{i} lr 1e-3",
    "a dictionary": "epoch {i}/10: {{'loss': 0.{i}, 'acc': 0.5}}",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_plain_log_of_so_many_tells_the_time_that_is_left_from_the_first_look_on(home: Home, line: str) -> None:
    run = run_of(home)
    run.output("".join(line.format(i=i) + "\n" for i in range(1, 6)))
    os.utime(run.run.attempt(1).output, (NOW + 151, NOW + 151))
    clock = FakeClock(NOW + 152)
    monitor = make_monitor(home, clock)
    left = monitor.snapshot(run.run.run).numbers.eta_seconds
    ends = "loss" in line.lower() or "took" in line
    assert left == pytest.approx(150.0 if ends else 225.0), "by the average until now; a bare line begins an epoch"
    for i in range(6, 9):
        clock.advance(30)
        run.output(line.format(i=i) + "\n")
        os.utime(run.run.attempt(1).output, (clock(), clock()))
        left = monitor.snapshot(run.run.run).numbers.eta_seconds
    assert left == pytest.approx(60.0 if ends else 90.0, rel=0.05), "by what was watched"


def test_what_a_resumed_attempt_had_done_before_is_no_measure_of_its_speed(home: Home) -> None:
    run = run_of(home, checkpoint="/c/e5.pt")
    run.output("epoch 6/10 loss 0.5\n")
    monitor = make_monitor(home, FakeClock(NOW + 100))
    assert monitor.snapshot(run.run.run).numbers.eta_seconds is None


def test_of_folds_nobody_knows_how_many_there_are(home: Home) -> None:
    run = run_of(home)
    run.output("".join(f"epoch {epoch}/4 loss 0.5\n" for epoch in (1, 2, 3, 4, 1, 2)))
    monitor = make_monitor(home, FakeClock(NOW + 100))
    assert monitor.snapshot(run.run.run).numbers.eta_seconds is None


def test_a_training_that_counts_in_its_log_alone_trains_whatever_else_it_reports(home: Home) -> None:
    run = run_of(home).beat(phase=None, metrics={"accuracy": 0.5})
    run.points({"time": NOW, "attempt": 1, "accuracy": 0.5}).output("epoch 1/8 step 75/400 loss 0.1333\n")
    for shown in both(home, run):
        assert (shown.health, shown.numbers.step) == (Health.TRAINING, 75)
    run.release()


def test_a_training_that_counts_nowhere_trains_once_it_goes_on_reporting(home: Home) -> None:
    run = run_of(home).beat(phase=None, metrics={"parameters": 1e6})
    assert [shown.health for shown in both(home, run)] == [Health.WARMING] * 2
    run.beat(phase=None, metrics={"parameters": 1e6, "accuracy": 0.5}, seq=2)
    assert [shown.health for shown in both(home, run)] == [Health.TRAINING] * 2
    run.release()


def test_where_the_agent_has_given_up_the_log_alone_tells(home: Home) -> None:
    """Its heartbeat is gone: neither its epoch nor its phase is the last word of a training that went on without it."""
    run = seen_by_agent(run_of(home), 27, 0.45, epoch=1, epochs=4, phase="save")
    run.output("Epoch 1/4 loss 0.450\n")
    monitor = make_monitor(home, FakeClock())
    assert monitor.refresh(run.run.run)[0].numbers.step == 27
    run.run.attempt(1).heartbeat().unlink()
    run.output("Epoch 4/4 loss 0.250\n")
    shown = monitor.refresh(run.run.run)[0]
    assert (shown.numbers.epoch, shown.numbers.epochs) == (4, 4)
    run.exit(code=0)
    assert both(home, run)[1].state is State.FINISHED


def test_what_a_trainer_prints_is_no_second_curve_where_the_screen_was_there_before_its_first_numbers(
    home: Home,
) -> None:
    """Until then nobody knew that it writes its own: its output was read, and both stood in the metrics."""
    run = run_of(home).beat(phase="setup").output("data: 2,000 images\nepoch 1/8 step 1/256 loss 2.3522\n")
    monitor = make_monitor(home, FakeClock())
    assert monitor.refresh(run.run.run)[0].series["loss"].last == 2.3522
    run.beat(phase="train", epoch=2, epochs=8, step=33, steps=256, loss=1.5)
    run.points({"time": NOW, "attempt": 1, "epoch": 2, "step": 33, "loss": 1.5, "epoch_loss": 2.1})
    run.output("epoch 1/8 done: train_loss 2.1000 val_loss 1.4690\nepoch 2/8 step 33/256 loss 1.5000\n")
    shown = monitor.refresh(run.run.run)[0]
    assert {name: view.count for name, view in shown.series.items()} == {"loss": 1, "epoch_loss": 1}
    run.release()


@pytest.mark.parametrize(("epoch", "phase", "steps"), [(5, "done", 100), (5, "train", None), (4, "done", None)])
def test_a_training_that_has_done_its_epochs_has_as_many_steps_as_were_made(
    home: Home, epoch: int, phase: str, steps: int | None
) -> None:
    """Its loader is one of its own: nobody can tell how many batches an epoch has."""
    run = run_of(home, ["python", "t.py", "--epochs", "5"])
    run.beat(step=20 * epoch, loss=0.5, loss_seen="backward", phase=phase)
    run.output("".join(f"Epoch: {e:03d}, Train Loss: {3 / e:.3f}, Valid Loss: 2.5\n" for e in range(1, epoch + 1)))
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps) == (20 * epoch, steps)
    run.release()


@pytest.mark.parametrize(("phase", "steps"), [("done", 53), ("train", 54)])
def test_epochs_that_were_not_all_as_long_leave_no_step_to_do(home: Home, phase: str, steps: int) -> None:
    """A sampler that draws pairs drops what it cannot pair: one epoch had a batch less than the others."""
    run = run_of(home, ["python", "t.py", "--epochs", "3"])
    told: dict[str, Any] = {"epoch": 3, "epoch_step": 18, "epoch_steps": 18, "loss_seen": "backward"}
    run.beat(step=53, loss=0.5, phase=phase, **told)
    for shown in both(home, run):
        assert (shown.numbers.step, shown.numbers.steps) == (53, steps)
    run.release()


@pytest.mark.parametrize(("often", "done", "left"), [(1, 0.4, 60.0), (3, 0.3, 70.0)])
def test_an_epoch_that_is_reported_once_with_its_loss_is_done(home: Home, often: int, done: float, left: float) -> None:
    """Without steps nobody tells where in an epoch it is; of several losses in one, none is its end."""
    run = run_of(home)
    for at in range(4 * often):
        epoch, moment = at // often + 1, NOW - 40 + 10 * at / often
        run.points({"time": moment, "attempt": 1, "epoch": epoch, "loss": 1 / (at + 1)})
    run.beat(epoch=4, epochs=10, loss=0.1, reported=("epoch", "epochs", "loss"))
    for shown in both(home, run):
        numbers = shown.numbers
        assert (epoch_text(numbers), numbers.epoch_done, total_progress(numbers)) == ("4/10", often == 1, done)
        assert numbers.eta_seconds == pytest.approx(left, rel=0.15), "the first epoch is seen from its first loss on"
    run.release()


def test_each_loss_says_who_tells_it_and_one_that_both_tell_is_the_programs(home: Home) -> None:
    run = seen_by_agent(run_of(home), 3, 0.5, phase="train")
    run.output("epoch 1/9 loss 2.5\nepoch 2/9 loss 2.0\n")
    for shown in both(home, run):
        tellers = {name: view.told_by for name, view in shown.series.items() if "loss" in name}
        assert tellers == {"loss": "agent", "loss (output.log)": "output.log"}
    run.release()
    alike = seen_by_agent(run_of(home), 1, 1.0)
    alike.points(*({"time": NOW, "attempt": 1, "step": step, "loss": 1 / step} for step in range(2, 9)))
    alike.output("".join(f"step {step}/20 loss {1 / step:.6f}\n" for step in range(1, 9)))
    for shown in both(home, alike):
        tellers = {name: view.told_by for name, view in shown.series.items() if "loss" in name}
        assert tellers == {"loss": "output.log"}
    alike.release()


@pytest.mark.parametrize(("each", "axes"), [(4, ("printed step", "step")), (1, ("step", "optimizer step"))])
def test_a_batch_is_not_called_a_step_of_a_run_that_counts_several_as_one(
    home: Home, each: int, axes: tuple[str, str]
) -> None:
    """The run is at step 390 of 390: its best loss was not "at step 1,144"."""
    run = run_of(home).beat(step=10, loss=0.5, loss_seen="backward", accumulate=4, phase="done")
    run.points(*({"time": NOW, "attempt": 1, "step": step, "loss": 0.4} for step in range(1, 11)))
    run.output("".join(f"step {step * each}/400 loss {1 / step:.4f}\n" for step in range(1, 11)))
    for shown in both(home, run):
        assert (shown.series["loss"].axis, shown.series["loss (agent)"].axis) == axes
    run.release()


def test_rivals_that_are_printed_a_line_each_are_no_loss(home: Home) -> None:
    """Nor is the one that is printed last."""
    parts = "".join(
        f"(Steps: {at}0) train/a_loss = 1.{at}.\n(Steps: {at}0) train/b_loss = 0.{at}.\n" for at in (1, 2, 3)
    )
    run = run_of(home).output(f"{parts}(Steps: 30) Start evaluation.\n(Steps: 30) eval/a_loss = 1.4.\n")
    for shown in both(home, run):
        assert shown.numbers.loss is None
        assert (shown.numbers.step, shown.numbers.steps, shown.numbers.done) == (30, None, False)
        assert shown.numbers.metrics == {"train/a_loss": 1.3, "train/b_loss": 0.3, "eval/a_loss": 1.4}
    assert {name: (view.last, view.count) for name, view in shown.series.items()} == {
        "train/a_loss": (1.3, 3),
        "train/b_loss": (0.3, 3),
        "eval/a_loss": (1.4, 1),
    }
    run.release()
