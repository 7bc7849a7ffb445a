"""Where one launch in a log ends and the next begins, and what a traceback between them says of it."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader

FAILURE = (
    'Traceback (most recent call last):\n  File "train.py", line 15, in <module>\n    os.remove(path)\n'
    "FileNotFoundError: [Errno 2] No such file or directory: 'models/0.pth'\n"
)


def read(log: str) -> ParsedLog:
    reader = LogReader()
    reader.take(log.encode())
    reader.close()
    return reader.summary()


def epochs(first: int, last: int, loss: float) -> str:
    return "".join(f"epoch {n}\nloss: {loss + n / 100:.2f}\n" for n in range(first, last + 1))


@pytest.mark.parametrize("settings", [20, 99, 100, 150, 400])
def test_a_launch_behind_a_failure_is_another_run_however_much_it_prints_first(settings: int) -> None:
    heading = "".join(f"option number {chr(97 + n % 26)} is set\n" for n in range(settings))
    found = read(heading + epochs(1, 5, 0.5) + FAILURE + heading + epochs(1, 9, 0.25))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.count, found.standing.failure) == (0.26, 9, None)


def test_what_came_behind_an_older_failure_says_nothing_of_the_launch_behind_a_newer_one() -> None:
    lines = "".join(f"{epochs(n, n, 0.5)}saved the model\nend of display\n" for n in range(1, 31))
    found = read(FAILURE + lines + FAILURE + epochs(1, 9, 0.25))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.count) == (0.26, 9)


def test_a_training_that_was_resumed_behind_a_failure_is_the_same_run() -> None:
    found = read(epochs(1, 5, 0.5) + FAILURE + "Resuming training from checkpoint 4\n" + epochs(4, 9, 0.25))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.runs) == (0.51, 0.34, 1)


def in_words(*, first: int = 0, last: int) -> str:
    """A training that tells no loss: each epoch its own measures, then those of an evaluation."""
    told = "{{'epoch': {0}, 'avg_cost_of_all': '0.9{0}', 'cur_cost': '0.8{0}'}}\n{{'Epoch': {0}, 'HIT@5': '0.02{0}'}}\n"
    return "".join(told.format(n) for n in range(first, last + 1))


def test_a_test_at_the_end_that_is_told_as_one_of_epoch_0_begins_no_run() -> None:
    found = read(in_words(last=7) + "{'Epoch': 0, 'HIT@5': '0.03'}\n")
    assert (found.runs, found.epoch) == (1, 7)


def test_a_second_training_without_a_loss_begins_as_the_first_one_has() -> None:
    found = read(in_words(last=7) + in_words(last=3))
    assert (found.runs, found.epoch) == (2, 3)


def test_a_launch_is_told_from_one_that_failed_in_its_first_epoch_though_only_a_batch_has_a_step() -> None:
    def launch(batch: float, mean: float) -> str:
        return f"Parameters: run 1\nTraining epoch: 0\n\tIter 0 Done. | loss: {batch} | lr: 0.01\n\tmean_loss: {mean}\n"

    longer = "Parameters: run 1\n" + "".join(f"Training epoch: {n}\n\tmean_loss: 2.{n}\n" for n in range(9))
    nothing = "Parameters: run 1\nTraining epoch: 0\n"
    found = read(longer + launch(1.75, 2.5) + nothing + nothing + launch(1.65, 1.625))
    assert found.train_loss is not None
    assert (found.train_loss.last, found.train_loss.count) in ((1.65, 1), (1.625, 1))
