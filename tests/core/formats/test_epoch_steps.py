"""Steps that begin anew in each epoch, and those of the whole run, told apart where both are called the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mpstui.core.formats.points import LossSummary, MetricPoint
from mpstui.core.formats.reader import LogReader

EPOCHS, STEPS = 6, 97
Line = Callable[[int, int], str]


def written(line: Line, every: int = 1, first_epoch: int = 0) -> bytes:
    """A log of six epochs of 97 steps; the step is that within the epoch, from 0."""
    places = [(epoch, step) for epoch in range(first_epoch, EPOCHS) for step in range(0, STEPS, every)]
    return "".join(f"{line(epoch, step)} {3 / (1 + epoch * STEPS + step):.5f}\n" for epoch, step in places).encode()


def steps(log: bytes) -> list[float | None]:
    return [point.run_step for point in LogReader().feed(log)]


ANEW: list[Line] = [
    lambda epoch, step: f"Epoch {epoch + 1}/6 step {step + 1}/97 loss:",
    lambda epoch, step: f"Epoch [{epoch + 1}/6], Step [{step + 1}/97], Loss:",
    lambda epoch, step: f"epoch {epoch}/6 step {step}/97 loss",
    lambda epoch, step: f"Epoch: {epoch}, Step: {step}, Loss:",
    lambda epoch, step: f"epoch {epoch + 1} batch {step} loss",
    lambda epoch, step: f"Epoch: {epoch} | Batch: {step} | Loss:",
]
THROUGH: list[Line] = [
    lambda epoch, step: f"epoch {epoch + 1}/6 step {epoch * STEPS + step + 1}/582 loss",
    lambda epoch, step: f"epoch {epoch}/6 step {epoch * STEPS + step}/582 loss",
    lambda epoch, step: f"epoch {epoch} iter {epoch * STEPS + step} loss",
]


@pytest.mark.parametrize("line", [*ANEW, *THROUGH])
def test_a_curve_goes_through_all_epochs(line: Line) -> None:
    found = steps(written(line))
    first = found[0]
    assert first in (0, 1)
    assert found == [first + i for i in range(EPOCHS * STEPS)]


@pytest.mark.parametrize("line", ANEW)
def test_it_does_so_in_blocks_too(line: Line) -> None:
    found: list[MetricPoint] = [point.newest for point in LogReader().take(written(line))]
    assert found[-1].run_step in (EPOCHS * STEPS - 1, EPOCHS * STEPS)


@pytest.mark.parametrize("line", ANEW[3:])
def test_an_epoch_is_as_long_as_it_was_seen_to_go(line: Line) -> None:
    assert steps(written(line, every=10))[-1] in (590.0, 591.0)


def test_a_log_that_begins_in_a_late_epoch_never_goes_back() -> None:
    for line in ANEW:
        found = [step for step in steps(written(line, first_epoch=3)) if step is not None]
        assert found == sorted(found)


def test_the_step_of_an_epoch_is_not_shown_as_one_of_the_run() -> None:
    point = LogReader().feed(written(ANEW[0]))[-1]
    assert (point.counters.step, point.counters.steps) == (None, None)
    assert (point.counters.epoch_step, point.counters.epoch_steps) == (97, 97)


def test_a_restart_is_another_run_whose_first_epoch_counts_as_before() -> None:
    found = LogReader().feed(2 * written(ANEW[0]))
    assert (found[-1].run, found[-1].run_step) == (1, EPOCHS * STEPS)


@pytest.mark.parametrize("line", ANEW[:3])
def test_steps_of_so_many_beside_epochs_of_so_many_are_an_epochs_from_the_first_line_on(line: Line) -> None:
    counters = LogReader().feed(written(line))[0].counters
    assert counters[2:] in ((None, None, 1, STEPS), (None, None, 0, STEPS))
    assert counters.epochs == EPOCHS


@pytest.mark.parametrize("line", THROUGH[:2])
def test_steps_that_go_on_into_the_second_epoch_are_the_runs(line: Line) -> None:
    points = LogReader().feed(written(line))
    assert points[-1].counters[2:] in ((582, 582, None, None), (581, 582, None, None))
    assert points[STEPS].counters[3:] == (582, None, None)


def test_records_say_which_steps_they_mean() -> None:
    counters = LogReader().feed(b'{"epoch": 1, "step": 3, "total_steps": 20, "epochs": 5, "loss": 0.5}\n')[0].counters
    assert counters[2:4] == (3, 20)


def blocks(step: str, *, above: str = "", behind: str = "", epochs: int = 4, every: int = 7) -> bytes:
    """Epochs that lines above or behind their steps tell; 50 steps each, some of them printed."""
    text = ""
    for epoch in range(1, epochs + 1):
        text += above.format(e=epoch)
        text += "".join(f"{step.format(s=s)} loss: {9 / (epoch * 50 + s):.5f}\n" for s in range(1, 51, every))
        text += behind.format(e=epoch, v=9 / epoch)
    return text.encode()


@pytest.mark.parametrize(
    "step", ["step {s}/50", "[{s}/50]", "batch {s}/50", "Step {s}:", "batch {s}", "iter {s} of 50"]
)
@pytest.mark.parametrize(
    ("above", "behind"),
    [
        ("Epoch {e}/4\n", ""),
        ("=== Epoch {e} ===\n", "Validation: loss {v:.4f} acc 0.5\n"),
        ("", "Epoch {e}/4 done\n"),
        ("", "Epoch {e}/4 - val_loss: {v:.4f}\n"),
        ("", "\nEpoch {e}/4\n  Val Loss: {v:.4f}\n"),
    ],
)
def test_lines_of_steps_below_or_above_the_line_of_their_epoch(step: str, above: str, behind: str) -> None:
    points = LogReader().feed(blocks(step, above=above, behind=behind))
    found = [point.run_step for point in points if point.loss is not None]
    printed = [50 * epoch + s for epoch in range(4) for s in range(1, 51, 7)]
    if "50" in step:
        assert found == printed
    else:  # an epoch is taken for as long as it was seen to go
        assert found == [56 * (place // 50) + place % 50 if place % 50 else 56 * (place // 50) - 6 for place in printed]
    assert {point.run for point in points} == {0}
    last = [point for point in points if point.loss is not None][-1]
    assert (last.epoch, last.counters.step, last.counters.steps, last.counters.epoch_step) == (4, None, None, 50)


def test_steps_that_go_on_below_the_lines_of_epochs_are_the_runs() -> None:
    text = "".join(
        f"Epoch {1 + s // 50}/4\n" * (s % 50 == 0) + f"step {s}/200 loss {9 / (s + 1):.4f}\n" for s in range(200)
    )
    points = [point for point in LogReader().feed(text.encode()) if point.loss is not None]
    assert [point.run_step for point in points] == list(range(200))
    assert points[-1].counters == (4, 4, 199, 200, None, None)


def test_the_length_of_an_epoch_told_with_its_mean_is_no_count_of_the_run() -> None:
    log = b"".join(b"Epoch: %d, Steps: 66 | Train Loss: %.3f\n" % (epoch, 3 / epoch) for epoch in range(1, 5))
    assert steps(log) == [66, 132, 198, 264]


def test_the_last_line_of_an_epoch_may_stand_between_two_steps() -> None:
    lines = [f"\titers: {at}, epoch: {epoch} | loss: 0.5" for epoch in (1, 2, 3) for at in (100, 200)]
    for epoch in (1, 2, 3):
        lines.insert(3 * epoch - 1, f"Epoch: {epoch}, Steps: 256 | Train Loss: 0.4")
    found = steps("\n".join([*lines, ""]).encode())
    assert found == [100, 200, 256, 356, 456, 512, 612, 712, 768]


def test_a_count_of_the_run_that_is_printed_on_both_sides_of_an_epoch_goes_on() -> None:
    lines = [f"epoch {at // 40} iter {at} loss {3 - at / 100}" for at in range(10, 130, 10)]
    lines.insert(4, "epoch 1 iter 40 loss 2.6")
    assert steps("\n".join([*lines, ""]).encode())[-1] == 120


OPEN = "epoch 1/60 step {s}/6000 loss: 2.{s}"


def test_a_total_of_steps_that_may_be_the_epochs_or_the_runs_is_not_told() -> None:
    first = LogReader().feed(OPEN.format(s=55).encode() + b"\n")[-1]
    assert (first.run_step, first.counters.steps, first.counters.epoch_steps) == (55, None, None)


@pytest.mark.parametrize("late", ["epoch 1/60 step 155/6000 loss: 2.5", "epoch 2/60 step 5/6000 loss: 2.5"])
def test_a_late_step_or_one_that_falls_shows_that_the_total_is_the_epochs(late: str) -> None:
    last = LogReader().feed(f"{OPEN.format(s=55)}\n{late}\n".encode())[-1]
    assert (last.counters.steps, last.counters.epoch_steps) == (None, 6000)


def test_a_step_that_goes_on_into_the_second_epoch_shows_that_the_total_is_the_runs() -> None:
    last = LogReader().feed(f"{OPEN.format(s=55)}\nepoch 2/60 step 110/6000 loss: 2.5\n".encode())[-1]
    assert (last.counters.step, last.counters.steps, last.counters.epoch_steps) == (110, 6000, None)


def test_epochs_that_do_not_divide_the_steps_leave_no_doubt() -> None:
    first = LogReader().feed(b"epoch 1/60 step 55/6001 loss: 2.5\n")[-1]
    assert (first.counters.epoch_step, first.counters.epoch_steps) == (55, 6001)


def iterations(last: int) -> str:
    """Without a loss on the lines that count; 18 iterations make an epoch."""
    return "".join(f"Training iteration [{at}/50]. Epoch [{(at - 1) // 18}/5]\n" for at in range(1, last + 1))


def test_lines_without_a_loss_show_in_the_second_epoch_that_their_steps_are_the_runs() -> None:
    reader = LogReader()
    reader.feed(iterations(20).encode())
    assert reader.feed(b"Training stats. Loss: 0.9366\n")[-1].counters[:4] == (1, 5, 20, 50)


def test_a_bar_below_the_word_of_an_evaluation_counts_nothing_of_a_training_that_lines_count() -> None:
    reader = LogReader()
    reader.feed(f"{iterations(10)}Training stats. Loss: 0.9366\n{iterations(20)}Validating...\n".encode())
    assert reader.feed(b"\r 50%|#####     | 1/2 [00:00<00:00,  4.08it/s]\n") == []
    assert (reader.summary().step, reader.summary().steps) == (20, 50)


@pytest.mark.parametrize("outer", ["EM iteration {n}", "---- Iteration {n}/3 ----", "Outer iter: {n}"])
def test_steps_that_begin_again_below_each_outer_iteration_are_steps_of_that(outer: str) -> None:
    reader = LogReader()
    for n in (1, 2, 3):
        inner = "".join(f"  M-step iter {i} loss {6 - n - i / 10:.2f}\n" for i in (1, 2, 3))
        reader.feed(f"{outer.format(n=n)}\n{inner}".encode())
    found = reader.summary()
    assert (found.runs, found.epoch, found.step) == (1, 3, 3)
    assert found.train_loss == LossSummary(4.9, 2.7, 9)


def test_a_step_on_a_line_of_its_own_is_no_outer_iteration() -> None:
    reader = LogReader()
    for n in range(1, 9):
        reader.feed(f"step {n} loss {2 / n:.2f}\nFinished step {n}\n".encode())
    assert (reader.summary().epoch, reader.summary().step) == (None, 8)


def test_a_step_of_the_run_stands_beside_that_of_the_epoch() -> None:
    reader = LogReader()
    reader.feed(b" > EPOCH: 3/1000\n   --> STEP: 24/36 -- GLOBAL_STEP: 1025\n     | > loss: 2.75  (2.80)\n")
    counters = reader.feed(b"     | > loss: 2.50  (2.70)\n")[-1].counters
    assert (counters.step, counters.epoch_step, counters.epoch_steps) == (1025, 24, 36)
    reader.feed(b" > EPOCH: 4/1000\n")
    assert (reader.summary().epoch, reader.summary().step) == (4, 1025)


def test_a_count_out_of_the_epoch_stays_one_where_no_step_of_the_run_stands_beside_it() -> None:
    reader = LogReader()
    frame = "\r{i}/50 ({share:6.2f}%) (ETA: 0:{left}) itr: {itr}, G_loss : +1.{i:02d}3, D_loss_real : +0.{i:02d}5"
    for epoch in range(3):
        frames = (frame.format(i=i, share=2 * i, left=60 - i, itr=50 * epoch + i) for i in range(3, 50, 6))
        reader.feed("".join([*frames, "\r50/50 (100.00%) (took 0:05)\n"]).encode())
    found = reader.summary()
    assert (found.step, found.steps, found.runs) == (150, None, 1)


def test_a_count_without_a_name_that_adds_up_is_of_the_run() -> None:
    lines = [f"Epoch [{n}/6] ({15 * (n + 1)}) mae: {3 / (n + 1):.4f}, val_mae: {2 / (n + 1):.3f}" for n in range(6)]
    found = list(LogReader().feed("\n".join([*lines, ""]).encode()))
    assert [point.run_step for point in found[1:]] == [30, 45, 60, 75, 90]


def test_a_count_without_a_name_that_stays_the_same_is_of_the_epoch() -> None:
    lines = [f"Epoch [{n}/6] (15) train_mae: {3 / (n + 1):.4f}, val_mae: {2 / (n + 1):.4f}" for n in range(6)]
    assert {point.counters.step for point in LogReader().feed("\n".join([*lines, ""]).encode())} == {None}


def _epochs(log: str) -> tuple[float | None, float | None]:
    reader = LogReader()
    reader.feed(log.encode())
    reader.close()
    return reader.summary().epoch, reader.summary().epochs


def test_images_counted_by_an_evaluation_are_no_epochs() -> None:
    evaluated = "Evaluating dataset\n" + "".join(f"{image}/60\r" for image in range(1, 61)) + "\nmAP:\ncar: 0.5\n"
    trained = [f"Epoch: {{e}} | Iteration: {step} | loss: {2 - step / 10}\n" for step in range(9)]
    log = "".join(("".join(trained) + evaluated).format(e=epoch) for epoch in range(3))
    assert _epochs(log) == (2, None)


def test_an_epoch_that_no_word_names_heads_lines_that_name_none() -> None:
    log = "".join(f"{epoch}/20\nstep 10 loss: 1.{epoch}\nstep 20 loss: 0.{epoch}\n" for epoch in (1, 2, 3))
    assert _epochs(log) == (3, 20)


def test_an_epoch_that_no_word_names_has_the_total_that_the_lines_below_have() -> None:
    log = "".join(f"{epoch}/20\nEpoch {epoch}/20 step 10 loss: 1.{epoch}\n" for epoch in (1, 2, 3))
    assert _epochs(log + "4/20\n") == (4, 20)
