"""What frameworks print of their own accord: bars, totals and running times."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader


def read(text: str) -> ParsedLog:
    reader = LogReader()
    reader.feed(text.encode())
    reader.close()
    return reader.summary()


def test_a_bar_that_shares_of_epochs_went_past_is_the_run_s_in_the_next_run_too() -> None:
    """Trainer's bar goes through all epochs, whose shares it prints; then another training follows in the same log."""
    one = "".join(
        f"{step * 5}%|█| {step}/20 [00:10<00:10, 9.5it/s]\r{{'loss': 3.{step}, 'epoch': {step / 10}}}\n"
        for step in range(1, 20)
    )
    end = "100%|█| 20/20 [00:20<00:00, 9.5it/s]\n{'train_runtime': 9.0, 'train_loss': 3.2, 'epoch': 2}\n"
    last = LogReader().feed((one + end + "  0%| | 0/20 [00:00<?, ?it/s]\n" + one).encode())[-1].counters
    assert (last.epoch, last.step, last.steps, last.epoch_steps) == (1.9, 19, 20, None)


def test_a_bar_of_batches_names_its_epoch() -> None:
    """``ba`` is what datasets call their batches too."""
    text = "train  Epoch   1:   25%|██| 5/20 [00:00<00:01, 8.18ba/s, loss/train/total=0.7900]\n"
    found = read(text + text.replace("5/20", "6/20").replace("7900", "7750"))
    assert (found.epoch, found.step, found.steps) == (1, 6, 20)
    assert found.train_loss is not None
    assert found.train_loss.last == 0.775
    assert read(text.replace("train  Epoch   1", "Map")).train_loss is None


@pytest.mark.parametrize(
    "told", ["Engine run starting with max_epochs=4.", "`Trainer.fit` stopped: `max_epochs=4` reached."]
)
def test_frameworks_tell_how_many_epochs_they_train(told: str) -> None:
    evaluation = "Engine run starting with max_epochs=1.\n"
    assert read(f"{told}\n{evaluation}Epoch[1] Iteration[5/20] Loss: 0.60\n").epochs == 4


def test_the_running_time_beside_a_loss_does_not_sum_up_the_training() -> None:
    found = read("{'loss': '3.5', 'epoch': '0.5', 'train_runtime': '0.25', 'train_tokens_per_second': '4925'}\n")
    assert found.train_loss is not None
    assert found.train_loss.last == 3.5
