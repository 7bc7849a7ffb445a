"""Bars of loops whose length nobody knows, and those that have gone on behind their total: drawn without one."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import LossSummary, ParsedLog
from mpstui.core.formats.reader import LogReader


def read(text: str) -> ParsedLog:
    reader = LogReader()
    data = text.encode()
    for start in range(0, len(data), 700):
        reader.take(data[start : start + 700])
    reader.close()
    return reader.summary()


def open_bar(done: int, loss: float | None, title: str = "") -> str:
    postfix = "" if loss is None else f", loss={loss:.4f}"
    return f"\r{title}{done}it [{done // 60:02d}:{done % 60:02d}, 1.02it/s{postfix}]"


def drawn(upto: int, title: str = "") -> str:
    """A loop that sets its loss and then moves on, each with a drawing."""
    return "".join(open_bar(n - 1, 5 / n, title) + open_bar(n, 5 / n, title) for n in range(1, upto + 1)) + "\n"


def test_a_bar_without_a_total_counts_the_steps_and_tells_each_loss_once() -> None:
    found = read(drawn(40))
    assert (found.step, found.steps, found.throughput) == (40, None, 1.02)
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (5, 0.125, 40)


def test_a_bar_without_a_total_counts_within_the_epoch_that_it_names() -> None:
    found = read("".join(drawn(12, f"Epoch {epoch}: ") for epoch in (1, 2, 3)))
    assert (found.epoch, found.step, found.steps, found.runs) == (3, 12, None, 1)
    assert found.train_loss is not None
    assert found.train_loss.count == 36


def test_a_bar_that_goes_on_behind_its_total_has_none() -> None:
    text = ""
    for epoch in (1, 2, 3):
        for n in range(1, 9):
            text += (
                f"\rEpoch {epoch}: {100 * n // 8:3d}%|███| {n}/8 [00:0{n}<00:09, 1.02it/s, loss={5 / (n * epoch):.4f}]"
            )
        text += "".join(open_bar(n, 5 / (n * epoch), f"Epoch {epoch}: ") for n in (9, 10)) + "\n"
    found = read(text)
    assert (found.epoch, found.step, found.steps, found.runs) == (3, 10, None, 1)
    assert found.train_loss is not None
    assert (found.train_loss.last, found.train_loss.count) == (0.1667, 30)


@pytest.mark.parametrize(
    "title",
    ["", "Loading vectors: ", "Downloading data: ", "Map (num_proc=4): ", "Tokenizing: ", "Generating train split: "],
)
def test_what_a_program_goes_through_without_a_loss_is_no_step_of_a_training(title: str) -> None:
    text = "".join(open_bar(n, None, title) for n in range(1, 400, 7)) + "\n"
    found = read(text + "Epoch 1 loss: 0.5\nEpoch 2 loss: 0.4\n")
    assert (found.step, found.epoch) == (None, 2)


def test_a_bar_without_a_total_that_evaluates_is_no_training() -> None:
    text = "".join(open_bar(n, 0.5 + n / 100, "Validating: ") for n in range(1, 20)) + "\n"
    assert read(text).train_loss is None


def test_the_bar_that_is_drawn_before_the_length_is_known_counts_nothing() -> None:
    found = read("Training: 0it [00:00, ?it/s]\rEpoch 0:   2%|▏| 3/120 [00:03<02:00, 1.02it/s, loss=0.5]\n")
    assert (found.step, found.steps) == (3, 120)


def test_a_bar_whose_format_leaves_out_the_bar_is_one() -> None:
    reader = LogReader()
    for epoch in (1, 2, 3):
        reader.feed(f"==> Start Training Epoch {epoch} ...\n".encode())
        for n in range(9):
            share = f"{100 * n // 8:3}% {n}/8 [00:0{n}<00:0{8 - n}, 1.01it/s]"
            reader.feed(f"\rloss={4 - epoch}.{9 - n}5 (3.25), lr=0.01: : {share}".encode())
        reader.feed(f"\n++> Evaluate at epoch {epoch} ...\n".encode())
        evaluated = (f"\rloss=9.{n}5 (9.25): : {50 * n}% {n}/2 [00:01<00:01, 2.00it/s]" for n in (1, 2))
        reader.feed("".join(evaluated).encode())
        reader.feed(f"\nPSNR = 2{epoch}.5\n".encode())
    found = reader.summary()
    assert (found.epoch, found.step, found.steps, found.format) == (3, 8, 8, "tqdm")
    assert found.train_loss == LossSummary(3.95, 1.15, 27)


def test_a_share_of_a_count_in_a_sentence_is_no_bar() -> None:
    reader = LogReader()
    reader.feed(b"kept 50% 4/8 [as before] of the loss 0.5\naccuracy 50% 4/8 [took 00:05, loss 0.5]\n")
    assert reader.summary().train_loss is None


def nested(epochs: int, *, whole: bool) -> str:
    """A bar around all epochs, named anew for each; in it a bar of the training and one of its test, told alike."""
    text = "\rEpoch: 0:   0%|   | 0/100 [00:00<?, ?it/s]\n"
    for epoch in range(epochs):
        title = f"Epoch: {epoch} | Val acc: {9 + epoch}.500" if epoch else "Epoch: 0"
        text += f"\r{title}:   {epoch}%|   | {epoch}/100 [00:0{epoch}<09:00,  7.64s/it]" if epoch else ""
        for length in (20, 6):
            for n in range(1, length + 1):
                loss = 3 - epoch / 10 - n / 100
                shown = f"Batch: ({n - 1}/{length}) | Loss: {loss:.3f} | Acc: {n / 3:.3f}% ({n}/{8 * n})"
                at = f"{5 * n}%|##| {n}/{length} [00:0{n % 9}<00:09," if whole else f": {n}it [00:0{n % 9},"
                text += f"\r{shown}: {at} 11.13it/s]"
            text += "\n"
        text += f"\r{title}:   {epoch + 1}%|   | {epoch + 1}/100 [00:0{epoch}<09:00,  7.64s/it]"
    return text


@pytest.mark.parametrize("whole", [True, False])
def test_a_bar_around_all_epochs_counts_them_though_it_names_each(whole: bool) -> None:
    found = read(nested(6, whole=whole))
    assert (found.epoch, found.epochs, found.runs) == (6, 100, 1)
    assert (found.step, found.steps) == (20, 20)
    assert found.train_loss is not None
    assert found.train_loss.count == 120


def test_a_bar_that_names_its_epoch_and_begins_anew_counts_steps() -> None:
    text = ""
    for epoch in range(1, 6):
        for n in range(8):
            text += f"\rEpoch {epoch}: {10 * n}%|##| {n}/8 [00:0{n}<00:09, 1.02it/s, loss={5 / (n + epoch):.4f}]"
    found = read(text)
    assert (found.epoch, found.epochs, found.step, found.steps) == (5, None, 7, 8)
