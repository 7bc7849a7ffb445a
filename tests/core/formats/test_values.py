"""What the numbers of a line are: whose value, of what, and which of them are no values at all."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.reader import LogReader


def read(text: str) -> MetricPoint:
    """The only point of a text."""
    (point,) = LogReader().feed(f"{text}\n".encode())
    return point


@pytest.mark.parametrize(
    ("line", "train", "evaluated"),
    [
        ("  Train: Loss=1.75, Acc=35.00%", {"Loss": 1.75, "Acc": 35.0}, {}),
        ("  Test:  Loss=1.65, Acc=38.00%", {}, {"Test Loss": 1.65, "Test Acc": 38.0}),
        ("Val   loss: 0.71 acc: 0.52", {}, {"Val loss": 0.71, "Val acc": 0.52}),
        ("[Val] Epoch 3 loss: 0.71 mIoU: 0.52", {}, {"Val loss": 0.71, "Val mIoU": 0.52}),
        ("Epoch 3 (validation): loss=0.71 acc=0.52", {}, {"validation loss": 0.71, "validation acc": 0.52}),
        ("Test: [6/8]\tTime  0.15 ( 0.22)\tLoss 5.5e-02 (3.1e+00)", {}, {"Test Time": 0.15, "Test Loss": 0.055}),
        ("Epoch 1 | Train Loss 0.5 | Val Loss 0.6 | Time 3s", {"Train Loss": 0.5, "Time": 3.0}, {"Val Loss": 0.6}),
        (
            "Epoch 2 Train Loss 0.5 Acc 0.6 | Test Loss 0.7 Acc 0.4 | grad_norm 1.2",
            None,
            {"Test Loss": 0.7, "Test Acc": 0.4},
        ),
        ("第3轮 训练损失: 0.5 验证损失: 0.7", {"训练损失": 0.5}, {"验证损失": 0.7}),
        ("│      test_loss_epoch      │    0.0445    │", {}, {"test_loss_epoch": 0.0445}),
        ("    test_loss_epoch         0.0445", {}, {"test_loss_epoch": 0.0445}),
    ],
)
def test_the_word_in_front_says_whose_values_follow(
    line: str, train: dict[str, float] | None, evaluated: dict[str, float]
) -> None:
    point = read(line)
    assert dict(point.eval_metrics) == evaluated
    assert train is None or dict(point.metrics) == train
    assert point.loss == next((value for name, value in point.metrics.items() if "oss" in name or "损失" in name), None)


@pytest.mark.parametrize(
    ("line", "loss", "metrics"),
    [
        ("step: 7 loss * 1000: 31.5 corner loss * 1000: 12.5", 31.5, {"loss * 1000": 31.5, "corner loss * 1000": 12.5}),
        ("step: 7 loss × 1000 = 31.5", 31.5, {"loss × 1000": 31.5}),
        ("step: 7 loss (1e-3): 31.5", 31.5, {"loss": 31.5}),
        ("step: 7 loss: 0.5 top 5: 91.2 class 3: 0.25", 0.5, {"loss": 0.5, "top 5": 91.2, "class 3": 0.25}),
        ("step: 7 loss: 0.5 D(x): 0.55 D(G(z)): 0.57 / 0.34", 0.5, {"loss": 0.5, "D(x)": 0.55, "D(G(z))": 0.57}),
    ],
)
def test_a_number_within_a_name_is_no_value(line: str, loss: float, metrics: dict[str, float]) -> None:
    point = read(line)
    assert (point.loss, dict(point.metrics), point.step) == (loss, metrics, 7)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "Test set: Average loss: 0.05, Accuracy: 9000/10000 (90%)",
            {"Test Average loss": 0.05, "Test Accuracy": 90.0},
        ),
        ("Test: Accuracy: 9000/10000 (90%)", {"Test Accuracy": 90.0}),
        ("Test: Accuracy: 9000/10000", {"Test Accuracy": 90.0}),
        ("Test: accuracy=90.0% (9000 / 10000), loss=0.5", {"Test accuracy": 90.0, "Test loss": 0.5}),
        ("Test: loss: 0.5, attempt: 3/10, memory: 3/8", {"Test loss": 0.5}),
    ],
)
def test_a_count_out_of_a_count_is_no_value(line: str, values: dict[str, float]) -> None:
    assert dict(read(line).eval_metrics) == values


def test_the_count_behind_a_share_is_no_step() -> None:
    point = read(" [=>...]  Step: 8s918ms | Loss: 2.307 | Acc: 23.2% (119/512) 4/7")
    assert (point.step, point.counters.epoch_steps, point.metrics["Acc"]) == (4, 7, 23.2)


def test_a_label_in_front_of_the_epoch_and_a_unit_behind_a_space() -> None:
    point = read("sgd epoch 5 1.04 s 47792 img/s loss 0.9012 acc 80.46")
    assert (point.epoch, point.loss, point.throughput) == (5, 0.9012, 47792.0)
    assert dict(point.metrics) == {"loss": 0.9012, "acc": 80.46}


@pytest.mark.parametrize(
    "line",
    [
        "aten/src/ATen/native/cuda/Indexing.cu:1290: select: block: [250,0,0] Assertion `index < size` failed.",
        "train.py: Assertion `loss: 5` failed.",
        "lib/torch/optim/optimizer.py: 546",
    ],
)
def test_what_names_a_file_or_a_failure_has_no_values(line: str) -> None:
    points = LogReader().feed(f"{line}\n".encode())
    assert not any(point.metrics or point.eval_metrics for point in points)
