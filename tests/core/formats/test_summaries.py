"""What is told of the best or the final model is no new point of a curve, whichever way it is printed."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import PointColumns
from mpstui.core.formats.reader import LogReader

HISTORY = "".join(f"Epoch {e}/9 train loss: {0.8 / e:.4f} val loss: {0.9 / e:.4f}\n" for e in (1, 2, 3))


def curves(log: str) -> dict[str, list[float]]:
    """Every curve of a log by its name."""
    found: dict[str, list[float]] = {}
    reader = LogReader()
    for point in [*reader.feed(log.encode()), *reader.close()]:
        for name, value in (*point.metrics.items(), *point.eval_metrics.items()):
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize(
    "heading", ["Best model at epoch 2:", "Best model:", "===> Best epoch:", "Final model:", "Best results so far:"]
)
def test_values_below_the_heading_of_the_best_are_no_points(heading: str) -> None:
    summary = f"{heading}\n  epoch: 2\n  train loss: 0.4000\n  val loss: 0.4500\n"
    assert curves(HISTORY + summary) == curves(HISTORY)


def test_a_measure_that_the_best_model_alone_has_is_shown() -> None:
    assert curves(f"{HISTORY}Best model:\n  val loss: 0.45\n  test accuracy: 0.91\n")["test accuracy"] == [0.91]


def test_training_goes_on_below_what_is_told_of_the_best() -> None:
    more = "".join(f"Epoch {e}/9\n  train loss: {0.8 / e:.4f}\nBest model:\n  train loss: 0.1\n" for e in (4, 5))
    assert curves(HISTORY + more)["train loss"] == [0.8, 0.4, 0.2667, 0.2, 0.16]


def test_another_training_below_what_is_told_of_the_best_is_read() -> None:
    again = f"{HISTORY}Best model:\n  epoch: 2\n  val loss: 0.45\n{HISTORY}"
    assert curves(again)["val loss"] == 2 * curves(HISTORY)["val loss"]


def test_the_end_of_deepxde_is_told_of_its_best_model() -> None:
    rows = (
        "Step      Train loss    Test loss     Test metric\n"
        "0         [2.50e-01]    [2.60e-01]    [9.10e-01]\n"
        "1000      [1.50e-02]    [1.60e-02]    [1.10e-01]\n"
        "2000      [1.20e-02]    [1.70e-02]    [1.30e-01]\n"
    )
    end = "\nBest model at step 1000:\n  train loss: 1.50e-02\n  test loss: 1.60e-02\n  test metric: [1.10e-01]\n"
    names = {"loss": [0.25, 0.015, 0.012], "test loss": [0.26, 0.016, 0.017], "test metric": [0.91, 0.11, 0.13]}
    assert curves(rows + end) == names


def _validated(*losses: float) -> str:
    return "".join(f"step {n} loss {2 - n / 100:.2f} val_loss: {loss:.2f}\n" for n, loss in enumerate(losses, 1))


def test_what_stands_for_a_first_evaluation_that_is_still_to_come_is_no_value() -> None:
    assert curves(_validated(0, 0, 0.9, 0.8, 0))["val_loss"] == [0.9, 0.8, 0]
    assert "val_loss" not in curves(_validated(0, 0))


def test_a_loss_of_zero_beside_what_was_measured_with_it_is_a_value() -> None:
    def tested(*values: tuple[float, float]) -> str:
        return "".join(
            f"epoch {n} loss: 0.{n}5\n>>> Test: loss={a:.3f}, acc={b:.1f}%\n" for n, (a, b) in enumerate(values)
        )

    assert curves(tested((0, 100), (0, 99.5)))["Test loss"] == [0, 0]
    assert "Test loss" not in curves(tested((0, 0), (0, 0)))


def test_an_accuracy_may_begin_at_zero() -> None:
    assert curves("epoch 1 loss 2.5 val_acc 0.00\nepoch 2 loss 2.1 val_acc 0.25\n")["val_acc"] == [0, 0.25]


def test_what_stands_for_a_first_evaluation_is_none_in_whole_blocks_either() -> None:
    points = LogReader().take(_validated(*[0.0] * 70, *[0.9 - n / 1000 for n in range(300)]).encode())
    found: list[float] = []
    for point in points:
        if isinstance(point, PointColumns):
            found += point.values.get("val_loss", ())
        elif "val_loss" in point.eval_metrics:
            found.append(point.eval_metrics["val_loss"])
    assert len(found) == 300
    assert min(found) > 0


def _ranked(*epochs: tuple[float, float], plain: bool = False) -> str:
    """A recommender's log: the best so far below a heading, perhaps above it what the epoch came to."""
    lines = list[str]()
    for epoch, (recall, mrr) in enumerate(epochs):
        lines += [f"epoch: {epoch}", f"[0/40] Loss: {5 - epoch:.4f}", f"[20/40] Loss: {4.5 - epoch:.4f}"]
        lines += [f"Recall@20: {recall - 1:.4f}\tMMR@20: {mrr - 1:.4f}"] if plain else []
        lines += ["Best Result:", f"\tRecall@20:\t{recall:.4f}\tMMR@20:\t{mrr:.4f}\tEpoch:\t{epoch},\t{epoch}"]
    return "\n".join([*lines, ""])


def test_the_best_so_far_is_a_curve_of_its_own_where_nothing_else_is_told() -> None:
    found = curves(_ranked((11.5, 2.25), (25.25, 5.5), (25.25, 6.75)))
    assert found["best Recall@20"] == [11.5, 25.25, 25.25]
    assert found["best MMR@20"] == [2.25, 5.5, 6.75]


def test_the_best_so_far_is_none_beside_the_value_itself() -> None:
    found = curves(_ranked((11.5, 2.25), (25.25, 5.5), (25.25, 6.75), plain=True))
    assert found["Recall@20"] == [10.5, 24.25, 24.25]
    assert not any(name.startswith("best") for name in found)


@pytest.mark.parametrize("heading", ["Best hyperparameters:", "Best config found:"])
def test_settings_that_were_best_are_no_values(heading: str) -> None:
    assert curves(f"{HISTORY}{heading}\n  batch_size: 32\n  dropout: 0.25\n  hidden: 64\n") == curves(HISTORY)


def test_what_the_final_model_came_to_is_shown_where_nothing_told_it() -> None:
    assert curves(f"{HISTORY}Final results:\n  accuracy: 0.91\n  f1: 0.88\n")["final f1"] == [0.88]
