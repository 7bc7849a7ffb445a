"""Bars that an epoch fills and the next one fills again: how far the whole training is, and one curve through all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.reader import LogReader

STEPS = 30


def bar(done: int, total: int = STEPS, title: str = "Training: ", loss: float | None = None) -> str:
    postfix = "" if loss is None else f", loss={loss:.4f}"
    drawn = f"{100 * done // total:3d}%|{'█' * (10 * done // total):10}"
    return f"{title}{drawn}| {done}/{total} [00:01<00:02, 9.00it/s{postfix}]"


def frames(epoch: int, upto: int = STEPS, *, losses: bool = True, title: str = "Training: ") -> str:
    drawn = range(0, upto + 1, 3)
    return "".join(
        bar(done, title=title, loss=5 / (1 + epoch + (epoch - 1) * STEPS + done) if losses else None) + "\r"
        for done in drawn
    )


def validated() -> str:
    return bar(0, 8, "Validation: ") + "\r" + bar(8, 8, "Validation: ") + "\n"


def behind(epoch: int, first: int = 1) -> str:
    """An epoch whose lines come when it is over, as one message of a logger."""
    lines = (
        f"INFO:__main__:\nEpoch {epoch - 1 + first}/20\n  Train Loss: {5 / epoch:.4f}\n  Val Loss: {6 / epoch:.4f}\n"
    )
    return frames(epoch) + "\n" + validated() + lines


def logged(epoch: int) -> str:
    """The same, each line a message of its own, and no loss in the bar."""
    lines = (f"Epoch {epoch}/20", f"  Train Loss: {5 / epoch:.4f}", f"  Val Loss: {6 / epoch:.4f}")
    said = "".join(f"2026-01-02 10:00:00,123 - __main__ - INFO - {line}\n" for line in lines)
    return frames(epoch, losses=False) + "\n" + said


def above(epoch: int) -> str:
    """An epoch that is announced above its bar."""
    return f"Epoch {epoch}/20\n" + frames(epoch) + f"\nTrain loss: {5 / epoch:.4f} Val loss: {6 / epoch:.4f}\n"


def starred(epoch: int) -> str:
    return f"---------- Epoch {epoch} of 20 ----------\n" + frames(epoch, title="train: ") + "\n" + validated()


def silent(epoch: int) -> str:
    """Nothing but the bars."""
    return frames(epoch) + "\n" + validated()


def test_a_bar_around_those_of_the_epochs_tells_how_many_there_are() -> None:
    def epoch(number: int) -> str:
        outer = bar(number - 1, 16, "Overall Progress: ") + "\n"
        return outer + frames(number, title=f"Epoch {number}: ") + "\n"

    found = read("".join(map(epoch, range(1, 7))))[-1].counters
    assert (found.epoch, found.epochs, found.epoch_step, found.epoch_steps) == (6, 16, 30, 30)


def read(log: str) -> list[MetricPoint]:
    return LogReader().feed(log.encode())


Epoch = Callable[[int], str]


@pytest.mark.parametrize("written", [behind, logged, above, starred, silent])
def test_the_curve_goes_through_all_epochs(written: Epoch) -> None:
    log = "".join(written(epoch) for epoch in range(1, 8))
    log += ("Epoch 8/20\n" if written in (above, starred) else "") + frames(8, 27, losses=written is not logged)
    found = [point.run_step for point in read(log) if point.series.startswith("bar" if written is not logged else "")]
    steps = [step for step in found if step is not None]
    assert steps == sorted(steps)
    assert len(steps) == len(found)
    if written is not logged:
        # the last frame waits for what follows its carriage return
        assert steps == [30 * e + step for e in range(8) for step in range(0, 27 if e == 7 else 31, 3)]
    assert {point.run for point in read(log)} == {0}


@pytest.mark.parametrize("written", [behind, logged, above, starred])
def test_the_bar_is_the_epochs_and_the_epochs_are_the_whole(written: Epoch) -> None:
    log = "".join(written(epoch) for epoch in range(1, 8))
    start = "Epoch 8/20\n" if written in (above, starred) else ""
    last = read(log + start + frames(8, 7) + bar(7, loss=0.001) + "\n")[-1]
    assert last.counters._replace(epochs=None) == (8, None, None, None, 7, STEPS)
    assert last.counters.epochs == 20


@pytest.mark.parametrize("written", [behind, above, starred])
def test_an_epoch_announced_above_its_first_bar_or_behind_it_makes_it_the_epochs(written: Epoch) -> None:
    last = read(written(1))[-1].counters
    assert (last.epoch, last.step, last.steps, last.epoch_step, last.epoch_steps) == (1, None, None, STEPS, STEPS)


def test_what_is_printed_behind_an_epoch_lies_at_its_end() -> None:
    points = read("".join(behind(epoch) for epoch in range(1, 4)))
    assert [p.run_step for p in points if "Val Loss" in p.eval_metrics] == [30, 60, 90]
    assert [p.epoch for p in points if "Val Loss" in p.eval_metrics] == [1, 2, 3]
    assert points[-1].epoch_done


def test_epochs_may_be_counted_from_zero() -> None:
    log = "".join(behind(epoch, first=0) for epoch in range(1, 4))
    points = read(log + bar(7, loss=0.001) + "\n")
    assert (points[-1].epoch, points[-1].counters.epoch_step, points[-1].run_step) == (3, 7, 97)


def test_a_bar_over_everything_stays_one_when_epochs_are_printed_beside_it() -> None:
    log = bar(0, 90, "steps: ", 2.5) + "\r"
    for done in range(1, 91):
        log += f"\nepoch {1 + done // 30}/3\n" if done % 30 == 1 else ""
        log += bar(done, 90, "steps: ", 2 / done) + "\r"
    points = read(log + "\n")
    assert points[-1].counters[2:] == (90, 90, None, None)
    assert [p.run_step for p in points if p.loss is not None] == list(range(91))


def test_a_bar_as_long_as_the_plan_is_the_whole_even_below_the_line_of_an_epoch() -> None:
    last = read("Total optimization steps = 90\nEpoch 1/3\n" + bar(3, 90, "Training: ", 2.5) + "\n")[-1]
    assert last.counters[2:] == (3, 90, None, None)


def test_a_second_training_in_the_same_log_is_another_run() -> None:
    log = "".join(behind(epoch) for epoch in range(1, 21))
    reader = LogReader()
    reader.feed((2 * log).encode())
    assert reader.summary().runs == 2
    assert reader.summary().epoch == 20


def test_a_resumed_training_goes_on_in_its_curve() -> None:
    log = (
        "".join(behind(epoch) for epoch in range(1, 4)) + frames(4, 12) + "\nKilled\nResuming from checkpoint epoch 3\n"
    )
    points = read(log + "".join(behind(epoch) for epoch in range(4, 6)))
    assert {point.run for point in points} == {0}
    assert points[-1].run_step == 150


def test_a_bar_that_is_set_back_before_its_title_begins_no_run() -> None:
    """As Lightning 1 draws it: the frame at 0 has still the title and the numbers of the epoch before."""
    text = ""
    for epoch in range(3):
        title = f"Epoch {epoch}: "
        last = 5 / (epoch * 9 + 8)
        text += (
            "\r".join(bar(done, 9, title, None if done == 0 else 5 / (epoch * 9 + done)) for done in range(9)) + "\r"
        )
        text += bar(9, 9, title, last) + "\r" + bar(0, 9, title, last) + "\r"
    reader = LogReader()
    points = reader.feed(text.encode())
    steps = [point.run_step or 0 for point in points if point.loss is not None]
    assert ({point.run for point in points}, steps) == ({0}, sorted(set(steps)))
    assert (reader.summary().epoch, reader.summary().runs) == (2, 1)


def placeholder(done: int, loss: float) -> str:
    """A bar that is made with the form of its description before anything is measured."""
    return f"\rEpoch {min(done, 1)} - loss: {loss:.4f} - acc: {1 - loss / 5 if done else 0:.4f}: {bar(done, 94, '')}"


@pytest.mark.parametrize("again", ["", "\r          \rResume from here\n" + placeholder(0, 0.0)])
def test_a_bar_that_has_counted_nothing_measures_no_loss_of_zero(again: str) -> None:
    text = placeholder(0, 0.0) + again + "".join(placeholder(done, 2.5 - done / 100) for done in (10, 20, 30, 40))
    points = read(text + "\n")
    measured = [one for one in points if one.loss is not None]
    assert [one.counters.epoch_step for one in measured] == [10, 20, 30, 40]
    assert [one.loss for one in measured] == pytest.approx([2.4, 2.3, 2.2, 2.1])
    assert 0 not in [one.metrics.get("acc") for one in points]


def test_a_bar_at_0_shows_the_loss_of_its_first_batch() -> None:
    """As `set_postfix` draws it: the counter moves at the end of a batch. Zeros behind it are measured."""
    text = "\r".join(bar(done, 9, "Epoch 1: ", 0.5 if done == 0 else 0.0) for done in range(5))
    losses = [point.loss for point in read(text + "\n") if point.loss is not None]
    assert losses[:2] == [0.5, 0.0]


def test_a_bar_at_0_with_a_loss_of_its_own_is_another_run() -> None:
    text = "\r".join(bar(done, 9, "Epoch 0: ", 5 / (1 + done)) for done in (*range(9), *range(9)))
    reader = LogReader()
    reader.feed(text.encode() + b"\n")
    assert reader.summary().runs == 2


def test_a_bar_within_one_that_counts_epochs_counts_the_steps_of_them() -> None:
    """It is drawn each tenth of a second, of short epochs at their beginning alone."""
    log = ""
    for done in range(7):
        outer = (
            f"Training epochs on cpu:   3%|▎         | {done}/250 [00:02<01:03, 3.8epoch/s, loss={2 / (1 + done):.3f}]"
        )
        log += f"{outer}\n\rTraining batches on cpu:   0%|          | 0.00/50.0 [00:00<?, ?batch/s]\x1b[A\n\r"
    counters = read(log + "\n")[-1].counters
    assert (counters.epoch, counters.epochs, counters.step, counters.epoch_steps) == (6, 250, None, 50)


@pytest.mark.parametrize(
    ("first", "named", "steps"), [(1, "env_step", [10, 20, 110, 120]), (0, "step", [10, 20, 110, 120])]
)
def test_the_step_of_the_run_that_an_epochs_bar_names_is_the_runs(first: int, named: str, steps: list[int]) -> None:
    log = "".join(
        f"Epoch #{epoch}:  10%|█   | {done}/100 [00:01<00:02, 9.0it/s, {named}={before + done}, n_ep=1, rew=2.0]\n"
        for epoch, before in ((first, 0), (first + 1, 100))
        for done in (10, 20)
    )
    points = read(log)
    assert [point.run_step for point in points] == steps
    assert [point.counters.step for point in points] == steps
    assert {point.counters.epochs for point in points} == {None}


def test_a_step_that_begins_anew_with_each_epochs_bar_is_the_bars() -> None:
    log = "".join(
        f"Epoch {epoch}:  10%|█   | {done}/100 [00:01<00:02, 9.0it/s, step={done}, loss={3 / (epoch + done):.3f}]\n"
        for epoch in (1, 2, 3)
        for done in (10, 20)
    )
    assert [point.run_step for point in read(log)] == [10, 20, 110, 120, 210, 220]


@pytest.mark.parametrize(
    "title",
    [
        "Epoch (Loss={loss:.4f}): ",
        "Epochs [train loss {loss:.4f}, lr 0.01]: ",
        "Training epochs | loss: {loss:.4f}: ",
        "epoch, loss={loss:.4f}: ",
        "Epoch - Loss: {loss:.4f}: ",
    ],
)
def test_a_bar_of_epochs_may_have_what_was_measured_in_its_title(title: str) -> None:
    """The outer bar is drawn again with each batch, within an epoch and at its end."""
    log = bar(0, 40, "Epoch: ") + "\n"
    for epoch in range(3):
        for batch in range(1, 6):
            log += "\r" + bar(epoch, 40, title.format(loss=5 / (1 + 5 * epoch + batch))) + "\n"
            log += "\r" + bar(batch, 5, "Batches: ") + "\x1b[A"
        log += "\r" + bar(epoch + 1, 40, title.format(loss=5 / (6 + 5 * epoch))) + "\n"
    reader = LogReader()
    points = reader.feed(log.encode())
    found = reader.summary()
    assert (found.epoch, found.epochs, found.train_loss and found.train_loss.last) == (3, 40, 0.3125)
    assert {point.counters.epoch_steps for point in points} == {None, 5}


def test_a_bar_whose_title_names_the_epoch_counts_its_batches() -> None:
    (point,) = read(bar(5, 40, "Epoch [3] (loss 0.5): ") + "\n")
    assert (point.counters.epoch, point.counters.epoch_step, point.counters.epoch_steps) == (3, 5, 40)


def test_a_bar_of_batches_leads_a_longer_one_that_says_not_what_it_does() -> None:
    log = "".join(bar(done, 5, "Batches: ") + "\r" for done in range(1, 6)) + "\n"
    reader = LogReader()
    reader.feed((log + "".join(bar(done, 50, "") + "\r" for done in (20, 42)) + "\n").encode())
    assert (reader.summary().step, reader.summary().steps) == (5, 5)
