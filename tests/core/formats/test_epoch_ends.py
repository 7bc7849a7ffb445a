"""What a log says of the end of an epoch, and what it only seems to say."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.reader import LogReader


def read(*lines: str) -> list[MetricPoint]:
    return LogReader().feed("\n".join([*lines, ""]).encode())


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 3 done",
        "Epoch 3 finished in 12 s",
        "Epoch 3/10 complete",
        "[Epoch 3/10] completed.",
        "Epoch: 3 took 12.5s",
        "Epoch 3 done (12.3s), model saved",
        "Epoch 3/10 done, loss=0.5",
        "End of epoch 3",
        "| end of epoch   3 | time: 12.5s | valid loss  1.5 |",
        "2026-01-02 10:00:00,123 - INFO - Finished epoch 3 of 10",
        "Training epoch 3 is complete",
        "第3轮训练完成",
        "エポック 3 完了",
        "에폭 3 완료",
        "Эпоха 3 завершена",
        "Époque 3 terminée",
        "Fin de l'époque 3",
        "Epoche 3 abgeschlossen",
    ],
)
def test_an_epoch_is_over(line: str) -> None:
    last = read(line)[-1]
    assert (last.epoch, last.epoch_done) == (3, True)


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 3",
        "Epoch 3/10",
        "epoch 3 started",
        "Starting epoch 3",
        "Begin epoch 3/10",
        "Epoch 3 done: 45%",
        "Epoch 3 (50% complete)",
        "Epoch 3 ended early",
        "Epoch 3 not finished",
        "Epoch 3 completed 50 batches",
        "Epoch 3/10 - loss 0.5",
    ],
)
def test_an_epoch_that_goes_on_or_only_starts_is_not_over(line: str) -> None:
    assert not any(point.epoch_done for point in read(line))


def test_it_stays_over_until_the_next_one_is_named() -> None:
    points = read("Epoch 2/5 done", "val_loss: 0.4, accuracy: 81.2", "Epoch 3/5 started", "step 70 loss 0.5")
    assert [(point.epoch, point.epoch_done) for point in points] == [(2, True), (2, True), (3, False), (3, False)]


def test_an_epoch_that_is_trained_after_its_end_was_counted_otherwise() -> None:
    points = read("Epoch 0 [99/100] loss 0.5", "Epoch 1 done", "Epoch 1 [5/100] loss 0.4")
    assert [point.epoch_done for point in points] == [False, True, False]


def test_the_first_epoch_of_a_program_may_be_its_zeroth() -> None:
    last = read("Epoch 0 done", "Epoch 1 done")[-1]
    assert (last.epoch, last.first_epoch, last.epoch_done) == (1, 0, True)


def test_how_long_an_epoch_took_is_no_metric_called_finished_in() -> None:
    reader = LogReader()
    reader.feed(b"Epoch 1/2 loss 1.5\nEpoch 1 finished in 12 s\nEpoch 2/2 loss 1.25\n")
    assert "finished in" not in reader.summary().metrics


@pytest.mark.parametrize(
    ("lines", "over"),
    [
        (["epoch 1/4 train_loss 0.5 val_loss 0.6"], True),
        (["epoch 1/4 loss 0.5", "epoch 1/4 val_loss 0.6"], True),
        (["epoch 1/4 loss 0.5", "val_loss 0.6 val_acc 0.81"], True),
        (["epoch 1/4 step 10 loss 0.5", "epoch 1/4 train_loss 0.5 val_loss 0.6"], True),
        (["epoch 1/4 train_loss 0.5"], False),
        (["epoch 1/4 step 10 loss 0.5 val_loss 0.6"], False),
        (["epoch 1/4 step 10 loss 0.5", "val_loss 0.6 val_acc 0.81"], False),
        (["epoch 0/4 val_loss 2.6 val_acc 0.11"], False),
        (["epoch 1/4 train_loss 0.5 val_loss 0.6", "epoch 2/4 train_loss 0.4"], False),
    ],
)
def test_an_epoch_that_is_told_as_a_whole_is_over_with_its_evaluation(lines: list[str], over: bool) -> None:
    assert read(*lines)[-1].epoch_done is over


def test_an_evaluation_that_names_the_epoch_and_no_step_ends_it() -> None:
    lines = [f"epoch 1/4 step {step} loss 1.5" for step in (10, 20, 30)]
    points = read(*lines, "epoch 1/4 val_loss 1.8", "epoch 1/4 step 40 loss 1.4", "epoch 2/4 step 50 loss 1.3")
    assert [point.epoch_done for point in points] == [False, False, False, True, False, False], "unless it goes on"


@pytest.mark.parametrize("named", [True, False])
def test_an_evaluation_ends_an_epoch_where_the_next_one_came_after_the_evaluation_before(named: bool) -> None:
    def trained(epoch: int, *steps: int) -> list[str]:
        head = f"epoch {epoch}/4"
        return [f"{head} step {n} loss 1.5" for n in steps] if named else [head, *(f"step {n} loss 1.5" for n in steps)]

    first = [*trained(1, 10, 20), "val_loss 1.8", *trained(2, 30, 40), "val_loss 1.7"]
    points = read(*first)
    assert [point.epoch_done for point in points if point.eval_metrics] == [False, True]
    points = read(*first, "step 50 loss 1.4", "val_loss 1.6")
    assert [point.epoch_done for point in points[-2:]] == [False, False], "an evaluation came within the epoch"


@pytest.mark.parametrize(
    "line",
    [
        "(Steps: 60) Finished 3 epoch training (20 steps per epoch).",
        "Finished 3 epoch training, 20 iterations per epoch",
        "Completed 3 epoch.",
    ],
)
def test_the_length_of_an_epoch_that_is_finished_is_neither_its_number_nor_a_plan(line: str) -> None:
    point = read("step 60 loss 1.5", line, "step 70 loss 1.4")[-1]
    assert (point.counters.epoch, point.counters.step, point.counters.steps) == (3, 70, None)


def test_the_length_of_an_epoch_is_no_plan() -> None:
    assert read("Training for 390 steps per epoch", "step 20 loss 1.5")[-1].counters.steps is None


@pytest.mark.parametrize("line", ["(Steps: 20) eval/b_loss = 1.25.", "Steps: 20 eval/b_loss = 1.25"])
def test_steps_beside_the_loss_of_an_evaluation_are_no_plan(line: str) -> None:
    point = read("step 10 loss 1.5", line)[-1]
    assert (point.counters.step, point.counters.steps, dict(point.eval_metrics)) == (20, None, {"eval/b_loss": 1.25})
