"""Logs of federated learning: rounds of many short trainings."""

from __future__ import annotations

import pytest

from mpstui.core.formats.reader import LogReader


def rounds(heading: str, local: str) -> str:
    """Three rounds of two clients, each of which trains for two epochs of three batches."""
    client = "".join(
        f"{local.format(epoch=epoch)}[{batch}/3]\tLoss: 1.{epoch}{batch}5\n" for epoch in (0, 1) for batch in (0, 1, 2)
    )
    measured = "Training Loss : 2.3{n}55\nTrain Accuracy: 1{n}.50%\n"
    return "".join(f"{heading.format(n=n)}\n{client * 2}{measured.format(n=n)}" for n in (1, 2, 3))


@pytest.mark.parametrize(
    "heading", ["\n | Global Training Round : {n} |", "--- Round {n} of 3: Training 2 Clients ---"]
)
@pytest.mark.parametrize(
    "local", ["| Local Epoch : {epoch} | ", "Client 7 | Global Round : 5 | Local Epoch : {epoch} | "]
)
def test_the_epochs_within_a_round_are_none_of_the_run_and_their_start_is_no_other_run(
    heading: str, local: str
) -> None:
    reader = LogReader()
    points = reader.feed(rounds(heading, local).encode())
    told = reader.summary()
    assert (told.epoch, told.runs) == (3, 1)
    assert told.train_loss is not None
    assert told.train_loss.count == 36
    measured = [
        (point.counters.epoch, point.metrics["Train Accuracy"]) for point in points if "Train Accuracy" in point.metrics
    ]
    assert measured[-2:] == [(2, 12.5), (3, 13.5)]


def test_a_round_may_be_one_of_anything() -> None:
    reader = LogReader()
    reader.feed(b"Round 3\n== Round 4 ==\nWarm up round 2/5\nround number two\n")
    assert reader.summary().epoch is None


def test_the_epochs_among_the_settings_of_a_client_are_no_plan_of_rounds() -> None:
    reader = LogReader()
    reader.feed(b"fine_tuning_epochs = 10\nlr = 0.1\n")
    reader.feed(b"".join(b"---Round number: %d---\nAveraged Train Loss: 1.%d5\n" % (n, 9 - n) for n in range(4)))
    assert (reader.summary().epoch, reader.summary().epochs) == (3, None)


@pytest.mark.parametrize("heading", ["Round {n}", "=== Round {n}/3 ===", "Round: {n}", "[Round {n}]"])
@pytest.mark.parametrize("local", ["Client 7 local epoch {epoch} ", "| Local Epoch : {epoch} | "])
def test_a_bare_round_is_one_of_clients_if_clients_train_in_it(heading: str, local: str) -> None:
    reader = LogReader()
    reader.feed(b"Number of samples of client 0: 600\n" + rounds(heading, local).encode())
    told = reader.summary()
    assert (told.epoch, told.runs) == (3, 1)


@pytest.mark.parametrize("name", ["comm_round", "rounds", "global_rounds", "num_rounds"])
def test_the_rounds_among_the_arguments_are_the_plan_and_the_epochs_of_a_client_are_none(name: str) -> None:
    reader = LogReader()
    reader.feed(f"Namespace(model='cnn', epochs=2, num_clients=10, {name}=50, lr=0.01)\n".encode())
    reader.feed(rounds("Round {n}", "Local Epoch : {epoch} ").encode())
    assert (reader.summary().epoch, reader.summary().epochs) == (3, 50)


def test_rounds_of_a_program_without_clients_are_no_plan() -> None:
    reader = LogReader()
    reader.feed(b"Namespace(epochs=20, num_rounds=500)\nRound 3\nepoch 1 loss 0.5\nepoch 2 loss 0.4\n")
    assert (reader.summary().epoch, reader.summary().epochs) == (2, 20)
