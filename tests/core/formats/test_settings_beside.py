"""Options, schedules and reports of solvers beside a training: none of them is a value of it."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader

EPOCHS = "".join(f"Epoch {n}: train loss 0.{9 - n}5, acc 0.{n}5\n" for n in range(1, 6))


def read(log: str) -> ParsedLog:
    reader = LogReader()
    reader.feed(log.encode())
    reader.close()
    return reader.summary()


@pytest.mark.parametrize("part", ["width_lr", "backbone_lr", "lr_head"])
@pytest.mark.parametrize("form", ["INFO:   --{} {}\n", "{}: {}\n", "{} = {}\n"])
def test_the_rate_of_a_part_is_not_the_rate_beside_that_of_the_whole(part: str, form: str) -> None:
    options = ("lr", "0.1"), (part, "0.0003")
    for order in (options, options[::-1]):
        assert read("".join(form.format(*option) for option in order) + EPOCHS).learning_rate == 0.1


def test_the_rate_of_a_part_alone_is_the_rate() -> None:
    assert read("backbone_lr: 0.0003\n" + EPOCHS).learning_rate == 0.0003


def test_of_the_rates_of_several_parts_none_is_the_rate() -> None:
    assert read("sgd_lr: 0.01\nadam_lr: 0.001\n" + EPOCHS).learning_rate is None
    assert read("sgd_lr: 0.01\nadam_lr: 0.01\n" + EPOCHS).learning_rate == 0.01


def test_the_rate_in_the_heading_of_another_run_is_the_rate_of_that() -> None:
    form = "training with: model {} lr={}\nepoch: 0\nloss: 2.15\nepoch: 1\nloss: 2.05\n"
    assert read(form.format("a", 4e-4) + form.format("b", 2.5e-5)).learning_rate == 2.5e-5


def test_the_rate_that_a_schedule_has_come_to_is_not_that_of_another_run() -> None:
    run = "learning_rate = 0.1\n" + "".join(f"epoch: {n}\nloss: 2.{9 - n}5\nlr: 0.0{9 - n}\n" for n in range(4))
    found = read(run + "epoch: 0\nloss: 2.95\n")
    assert (found.runs, found.learning_rate) == (2, 0.1)


@pytest.mark.parametrize("option", ["--val_batch_size 128", "test_path data/test.csv", "--eval_workers 4"])
def test_an_option_of_an_evaluation_announces_none(option: str) -> None:
    found = read(f"{option}\nmean loss: 0.5 step: 1\n{option}\nmean loss: 0.25 step: 2\n")
    assert found.train_loss is not None
    assert found.train_loss.last == 0.25


def test_rates_of_the_epochs_to_come_are_a_schedule() -> None:
    regime = "regime: [{'epoch': 0, 'lr': 0.1}, {'epoch': 81, 'lr': 0.01}, {'epoch': 164, 'lr': 0.001}]\n"
    found = read(regime + EPOCHS)
    assert (found.epoch, found.learning_rate, found.runs) == (5, None, 1)


@pytest.mark.parametrize(
    "report",
    [
        "Report: Iterations: {n}1, Initial cost: 9{n}.25, Final cost: 3{n}.5, Termination: CONVERGENCE",
        "iterations: {n}, initial loss: 9{n}.5, final loss: {n}.25",
    ],
)
def test_with_what_a_solver_began_and_ended_is_no_training(report: str) -> None:
    found = read("".join(report.format(n=n) + "\n" for n in (3, 1, 5, 2, 4)))
    assert (found.train_loss, found.step, found.metrics) == (None, None, ())


def test_how_long_an_episode_may_be_is_no_total() -> None:
    settings = "Hyperparameters: {'alpha': 0.1, 'gamma': 0.9, 'n_episodes': 1000, 'max_steps': 200}\n"
    rows = "".join(f"run 1 | Episode   {n}00 | Avg reward: -1{9 - n}.25 | Steps: {n}\n" for n in range(1, 9))
    found = read(settings + rows)
    assert (found.step, found.steps) == (None, None)
    assert "Avg reward" in found.metrics


def test_the_first_value_of_a_matrix_over_several_lines_is_none_of_a_metric() -> None:
    rows = "".join(f"epoch = {n}\ngrad = [[ 0.{n}25]\n [-0.5  ]\n [ 0.125]]\nloss = 0.{9 - n}\n" for n in range(1, 6))
    assert read(rows).metrics == ("loss",)


def test_a_bar_that_shows_nothing_of_a_training_does_not_count_its_steps() -> None:
    bar = "  0%|          | 0/1000 [00:00<?, ?image/s]\n"
    lines = "".join(f"[epoch: {n}, iter: {n}00, lr:(3.0e-05,)] l_a: 1.{n}5 l_b: 0.{9 - n}5\n{bar}" for n in range(1, 6))
    found = read(lines)
    assert (found.epoch, found.step, found.steps) == (5, 500, None)


@pytest.mark.parametrize("line", ["{n} epoch, loss: 0.{n}, loss_test: 0.{n}5", "{n} epoch: loss 0.{n}"])
def test_an_epoch_may_stand_behind_its_number(line: str) -> None:
    found = read("".join(line.format(n=n) + "\n" for n in range(1, 6)))
    assert (found.epoch, found.step) == (5, None)


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("cuda will be used", "cuda"),
        ("CPU is used.", "cpu"),
        ("choose to use gpu...", "gpu"),
        ("Will run in CPU only mode.", "cpu"),
    ],
)
def test_what_will_be_used_is_the_device(line: str, device: str) -> None:
    assert read(f"{line}\n{EPOCHS}").standing.device == device


def test_a_record_without_commas_between_its_values_is_no_option_and_tells_no_total() -> None:
    found = read("".join(f"EnvName: Cart-v1 seed: 0 steps: {n}k score: -{n}1.5\n" for n in range(1, 7)))
    assert (found.step, found.steps, found.metrics) == (6000, None, ("score",))


def test_the_area_under_the_roc_is_measured_under_its_short_name_too() -> None:
    found = read(f"{EPOCHS}Test results: test_loss: 0.75 test_roc: 0.9 test_ap: 0.8\n")
    assert {"test_roc", "test_ap"} <= set(found.metrics)


def test_what_a_total_comes_to_stands_behind_a_sign_of_its_own() -> None:
    found = read(
        "Fine-tuning: 2000 examples × 3 epochs = 375 steps\n" + "".join(f"step {n} loss 0.{n}\n" for n in range(1, 6))
    )
    assert (found.epochs, found.steps) == (3, 375)
