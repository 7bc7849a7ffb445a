"""Several measures named in a row, with as many values behind them; and times with names of one letter."""

from __future__ import annotations

import pytest

from mpstui.core.formats.reader import LogReader


def _last(line: str) -> dict[str, float]:
    """What a log of three epochs tells at its end; ``{}`` in the line becomes another digit each time."""
    reader, told = LogReader(), dict[str, float]()
    text = "".join(f"Epoch {n}/3 loss 2.{n}\n{line.replace('{}', str(n))}\n" for n in (1, 2, 3))
    for point in [*reader.feed(text.encode()), *reader.close()]:
        told |= {**point.metrics, **point.eval_metrics}
    return {name: value for name, value in told.items() if name != "loss"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "Train result at epoch [{}/3]: mIoU/mAcc/allAcc 0.{}12/0.{}25/0.{}5.",
            {"mIoU": 0.312, "mAcc": 0.325, "allAcc": 0.35},
        ),
        (
            "Val result: mIoU/mAcc/allAcc 0.{}12/0.{}25/0.{}5.",
            {"Val mIoU": 0.312, "Val mAcc": 0.325, "Val allAcc": 0.35},
        ),
        (
            "Test Macro P/R/F1: 0.{}1 / 0.{}2 / 0.{}3",
            {"Test Macro P": 0.31, "Test Macro R": 0.32, "Test Macro F1": 0.33},
        ),
        ("Val acc/f1: 5{}.5%/4{}.5%", {"Val acc": 53.5, "Val f1": 43.5}),
        ("Class_2 - wall Result: iou/accuracy 0.{}1/0.{}2.", {"Class_2 iou": 0.31, "Class_2 accuracy": 0.32}),
    ],
)
def test_each_measure_of_a_list_has_its_value(line: str, told: dict[str, float]) -> None:
    assert _last(line) == told


@pytest.mark.parametrize(
    "line", ["G/D loss: 0.{}/-0.{}", "eval/loss 0.{}/3", "hits/total: 1{}/500", "PDE: 2.{}/3.{}/4.{}"]
)
def test_other_strokes_make_no_list(line: str) -> None:
    assert not {"G", "D", "eval", "hits", "total", "PDE"} & _last(line).keys()


@pytest.mark.parametrize("times", ["B 0.1{} (0.2) D 0.0{} (0.01)", "D 0.0{} B 0.1{}", "T 0.1{} (0.14)  D 0.0{} (0.04)"])
def test_one_letter_for_the_time_of_a_batch_beside_that_of_its_data_is_no_metric(times: str) -> None:
    assert _last(f"Epoch [{{}}][10/20] {times} acc 0.{{}}5") == {"acc": 0.35}


def test_a_discriminator_beside_its_generator_is_a_metric() -> None:
    assert _last("Epoch {} D 0.{}5 G 1.{}5") == {"D": 0.35, "G": 1.35}
