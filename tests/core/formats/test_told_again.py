"""Values that a program prints twice: in full and then among others, along the training and again behind its end."""

from __future__ import annotations

from collections import Counter

import pytest

from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.reader import LogReader

EPOCH = (
    "Epoch {n}\nVal loss:   1.{n}5132\nl1: 0.2{n}1 kl: 1.{n}30 loss: 1.{n}51 \n"
    "Train loss: 1.{n}2879\nl1: 0.3{n}1 kl: 1.{n}00 loss: 1.{n}29 \n"
)


def told(log: str) -> list[MetricPoint]:
    """What a log says, read line by line and at once, which must be the same."""
    by_line, at_once = LogReader(), LogReader()
    points = [point for line in log.splitlines(keepends=True) for point in by_line.feed(line.encode())]
    points += by_line.close()
    counts = Counter(name for point in points for name in (*point.metrics, *point.eval_metrics))
    at_once.take(log.encode())
    at_once.close()
    assert at_once.summary() == by_line.summary(), counts
    return points


def values(points: list[MetricPoint], name: str) -> list[float]:
    return [one[name] for point in points for one in (point.metrics, point.eval_metrics) if name in one]


@pytest.mark.parametrize("epochs", [4, 90])  # more than 48 lines of a shape are read by columns
def test_an_evaluation_told_in_full_and_then_rounded_is_one_reading(epochs: int) -> None:
    exact = [30.1234 + n / 3 for n in range(epochs)]
    record = "{{'train_loss': {:.6f}, 'test_acc': {}, 'epoch': {}}}\n==> id: run (ep {}), test_acc: {:.2f}\n"
    points = told("".join(record.format(9 / (n + 1), acc, n, n, acc) for n, acc in enumerate(exact)))
    assert values(points, "test_acc") == exact
    shown = [f"Test: acc {acc:.2f}\nTest: acc: {acc}\n" for acc in exact]
    points = told("".join(f"epoch {n} loss: {9 / (n + 1):.6f}\n{two}" for n, two in enumerate(shown)))
    assert values(points, "Test acc") == [float(f"{acc:.2f}") for acc in exact]


def test_the_bar_of_an_evaluation_that_prints_no_zeros_gives_its_last_frame_alone() -> None:
    shown = [0.5022, 0.44, 0.4423, 0.4, 0.4012, 0.37]
    points = []
    for epoch in range(3):
        train = "".join(f"\rtrain: {20 * n:3}%|##| {n}/5 [00:01<00:01, 9.9it/s, loss - 0.{9 - n}31]" for n in range(6))
        valid = "".join(
            f"\rvalid: {20 * n:3}%|##| {n}/5 [00:01<00:01, 9.9it/s, iou - {v:.4}]" for n, v in enumerate(shown)
        )
        points.append(f"Epoch: {epoch}\n{train}\n{valid}\nModel saved!\n")
    assert values(told("".join(points)), "valid iou") == [0.37] * 3


def test_evaluations_of_the_same_accuracy_are_as_many_readings() -> None:
    points = told("".join(f"epoch {n} loss: 0.{9 - n}12\nTest acc: 0.25\nTest acc: 0.25\n" for n in range(4)))
    assert values(points, "Test acc") == [0.25] * 8
    points = told("".join(f"epoch {n} loss: 0.{9 - n}12\nTest acc: 0.25{n % 2}1\n" for n in range(4)))
    assert values(points, "Test acc") == [0.2501, 0.2511, 0.2501, 0.2511]
    rounded = "{{'train_loss': 0.{}12, 'test_acc': 0.28125, 'epoch': {}}}\n==> test_acc: 0.28\n"
    points = told("".join(rounded.format(9 - n, n) for n in range(6)))
    assert values(points, "test_acc") == [0.28125] * 6
    points = told("".join(f"Epoch {n}\nTest acc: 0.28125\n   best test acc: 0.28\n" for n in range(1, 7)))
    assert values(points, "Test acc")[:6] == [0.28125] * 6


def test_what_stands_beside_a_loss_told_again_is_of_the_same_data() -> None:
    points = told("".join(EPOCH.format(n=n) for n in range(9)))
    assert values(points, "Val kl") == [float(f"1.{n}30") for n in range(9)]
    assert values(points, "kl") == [float(f"1.{n}00") for n in range(9)]
    assert values(points, "Val l1") == [float(f"0.2{n}1") for n in range(9)]
    assert [point.loss for point in points if point.loss is not None] == [float(f"1.{n}2879") for n in range(9)]


def test_another_loss_below_that_of_an_evaluation_stays_one_of_training() -> None:
    points = told("".join(f"Epoch {n}\nVal loss: 1.{n}5132\nloss: 0.{9 - n}29 acc: 0.{n}12\n" for n in range(1, 9)))
    assert [point.loss for point in points if point.loss is not None] == [float(f"0.{9 - n}29") for n in range(1, 9)]
    assert values(points, "acc") == [float(f"0.{n}12") for n in range(1, 9)]


@pytest.mark.parametrize(
    "end", ["Training finished:\nSeed 0, val loss 1.051321 at epoch 0\n", "Training complete.\nVal loss: 1.05132\n"]
)
def test_the_best_of_an_evaluation_told_behind_the_end_is_no_new_point(end: str) -> None:
    points = told("".join(EPOCH.format(n=n) for n in range(4)) + end)
    assert values(points, "Val loss") == [1.05132, 1.15132, 1.25132, 1.35132]


@pytest.mark.parametrize(("place", "lowest"), [("", 1.3517), ("epoch: 2 ", 1.3517), ("", 1.3)])
def test_all_values_of_the_best_epoch_told_behind_the_end_are_no_new_points(place: str, lowest: float) -> None:
    """Also those that were not best in it, or have few decimals."""
    measured = ((1.5213, 0.6212), (lowest, 0.8), (1.2021, 0.7813), (1.4044, 0.7014))
    points = told(
        "".join(
            f"Epoch: {n} train_loss: 1.{9 - n}132\nEpoch: {n} val_loss: {loss:.4f} val_f1: {f1:.4f}\n"
            for n, (loss, f1) in enumerate(measured, start=1)
        )
        + f"Optimization Finished!\nVal set results: {place}val_loss: {lowest:.4f} val_f1: 0.8000\n"
        + f"Test set results: {place}test_loss: 1.4125 test_f1: 0.7713\n"
    )
    assert values(points, "val_f1") == [0.6212, 0.8, 0.7813, 0.7014]
    assert values(points, "val_loss") == [1.5213, lowest, 1.2021, 1.4044]
    assert values(points, "test_f1") == [0.7713]


def test_an_evaluation_behind_the_end_that_measures_something_else_is_one() -> None:
    points = told("".join(EPOCH.format(n=n) for n in range(4)) + "Training finished:\nVal loss: 1.02\n")
    assert values(points, "Val loss") == [1.05132, 1.15132, 1.25132, 1.35132, 1.02]


def test_a_label_in_capitals_needs_no_sign_before_its_value() -> None:
    points = told(
        "".join(f"\nIteration {n}\nMeta Train Error 1.{9 - n}237\nMeta Valid Accuracy 0.{n}5\n" for n in range(1, 6))
    )
    assert values(points, "Meta Valid Accuracy") == [0.15, 0.25, 0.35, 0.45, 0.55]
    assert values(points, "Meta Train Error") == [1.8237, 1.7237, 1.6237, 1.5237, 1.4237]
    assert not any(
        point.metrics or point.eval_metrics
        for point in told("The mean error 1.5\nNo error of size 2.75\nError Rate Limit 30\n")
    )


BARS = (
    "\r{p}%|##   | {n}/9 [00:01<00:01,  4.0it/s, psnr={a}, ssim={b}]",
    "\rEpoch 2/5: {p}%|##   | {n}/9 [00:01<00:01,  4.0it/s, psnr={a}, ssim={b}]",
    "\rTrain epoch 2 psnr: {a} ssim: {b}: {p}%|##   | {n}/9 [00:01<00:01,  4.0it/s]",
    "\r[D_loss: {b}] [G_loss: 1{b}] [psnr: {a}]: {p}%|##   | {n}/9 [00:01<00:01,  4.0it/s]",
)


@pytest.mark.parametrize("bar", BARS)
def test_what_a_bar_without_a_loss_shows_is_one_reading_for_each_time_it_is_set(bar: str) -> None:
    """It is drawn when the program sets a value, and again, with the old one, when it counts on."""
    shown = [(f"2{n * 7 % 5}.5", f"0.{n * 3 % 8}25") for n in range(9)]
    drawn = ((n + more, *shown[n]) for n in range(9) for more in (0, 1))
    points = told("".join(bar.format(n=n, p=11 * n, a=a, b=b) for n, a, b in drawn) + "\n")
    assert values(points, "psnr") == [float(a) for a, _ in shown]
    assert [point.counters.shown_step for point in points] == list(range(9))


def test_a_value_that_a_bar_sets_again_is_a_reading_though_it_is_the_same() -> None:
    bar = "\r{p}%|##   | {n}/9 [00:01<00:01,  4.0it/s, psnr=21.5]"
    points = told("".join(bar.format(n=n, p=11 * n) for done in range(9) for n in (done, done + 1)) + "\n")
    assert values(points, "psnr") == [21.5] * 9


@pytest.mark.parametrize("shown", ["acc={a}, xentropy={b}", "loss={b}, acc={a}"])
def test_a_bar_that_is_drawn_for_its_description_too_shows_no_value_twice(shown: str) -> None:
    """``set_description`` draws what the step before has set; at first nothing tells that from a value set again."""
    bar = "\rEpoch 2: {p}%|##   | {n}/9 [00:01<00:01,  4.0it/s" + ", " + shown + "]"
    first = "\rEpoch 2: 0%|##   | 0/9 [00:00<?, ?it/s]"
    values_set = [(f"0.{n * 7 % 5}5", f"2.{n * 3 % 8}25") for n in range(9)]
    drawn = [(0, 0)]
    for n in range(1, 9):
        drawn += [(n, n - 1), (n, n - 1), (n, n)]  # it counts on, is described, and shows what the step gave
    rows = "".join(bar.format(n=n, p=11 * n, a=values_set[at][0], b=values_set[at][1]) for n, at in [*drawn, (9, 8)])
    found = values(told(first + rows + "\n"), "acc")
    assert len(found) <= 11
    assert found[-7:] == [float(a) for a, _ in values_set[2:]]


def test_a_record_of_what_lines_have_told_one_by_one_is_no_new_point() -> None:
    lines = "step {n}0 loss 1.{n}5\nval ppl: 12.{n}23\nval acc: 0.{n}5\n"
    record = '__log__:{{"epoch": {n}, "val ppl": 12.{n}2345, "val acc": 0.{n}5}}\n'
    points = told("".join((lines + record).format(n=n) for n in range(1, 5)))
    assert values(points, "val ppl") == [float(f"12.{n}23") for n in range(1, 5)]
    assert values(points, "val acc") == [float(f"0.{n}5") for n in range(1, 5)]


def test_evaluations_that_come_to_the_same_are_points_each() -> None:
    points = told("val acc: 0.5, val f1: 0.25\n" * 3 + "val acc: 0.5\nval f1: 0.25\n" * 3)
    assert values(points, "val acc") == [0.5] * 6


def test_an_evaluation_that_names_the_next_epoch_is_new_though_something_was_finished_and_nothing_changed() -> None:
    shown = "{kind} Results - Epoch: {n} Avg accuracy: 1.00 Avg loss: {loss}\n"
    ended = "2026-03-01 22:40:40,630 evaluator INFO: Engine run finished. Time taken: 00:00:00.815\n"
    losses = ["0.21", "0.01", "0.00", "0.00", "0.00"]
    logs = [
        ended + shown.format(kind=kind, n=n, loss=loss)
        for n, loss in enumerate(losses, 1)
        for kind in ("Training", "Validation")
    ]
    assert len(values(told("".join(logs)), "Validation Avg accuracy")) == 5
