"""What a model has written between the records of its training is none of them."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader

SOLUTION = """[eval] A train goes {n}0 km/h for 2 hours. How far does it get?
1. **How far in one hour**
   * Distance = {n}0 km/h *  2 hours
   * Distance = {n}8 km
Step {n}: Write the answer
shipping cost = {n}7
**Step 2:** Answer {n}
Answer: {n}5
"""
RECORD = "[step {n}0] policy_loss=0.{n}5 reward=0.{n}1\n"


def read(text: str) -> ParsedLog:
    reader = LogReader()
    reader.take(text.encode())
    reader.close()
    return reader.summary()


def test_a_solution_between_records_adds_no_names_and_no_places() -> None:
    plain = read("".join(RECORD.format(n=n) for n in range(1, 9)))
    mixed = read("".join(RECORD.format(n=n) + 2 * SOLUTION.format(n=n) for n in range(1, 9)))
    assert mixed.metrics == plain.metrics == ("policy_loss", "reward")
    assert (mixed.step, mixed.steps, mixed.epoch) == (plain.step, plain.steps, plain.epoch) == (80, None, None)
    assert mixed.train_loss == plain.train_loss


@pytest.mark.parametrize(
    ("record", "metric"),
    [
        ("Epoch {n}\nloss: 1.{n}5", "loss"),
        ("reward is 0.{n}9", "reward"),
        ("{{'loss': 0.{n}5, 'kl': 0.{n}1, 'epoch': {n}}}", "kl"),
        ("step 2: acc 0.{n}5, kl 0.{n}1", "acc"),
    ],
)
def test_a_record_below_a_solution_is_one(record: str, metric: str) -> None:
    text = "".join(SOLUTION.format(n=n) + record.format(n=n) + "\n" for n in range(1, 9))
    assert metric in read(text).metrics


def test_one_computation_is_a_sentence_of_a_program_as_well() -> None:
    text = "tokens per update: 4 * 16 = 64\n" + "".join(f"epoch {n}\nspread: 1.{n}5\n" for n in range(9))
    assert "spread" in read(text).metrics


def test_the_source_of_a_program_that_logs_itself_says_nothing() -> None:
    source = """import argparse
import torch.nn as nn
from torchvision import datasets


def accuracy(model, loader):
    test_acc = 0.25
    return test_acc


if __name__ == "__main__":
    device = torch.device("cuda:0")
    best_acc = 0
    val_loss = 0.5

"""
    records = "".join(f"Epoch {n} | loss 0.{9 - n}5 | Test Acc 0.{n}5\n" for n in range(1, 6))
    found = read(f"train.py\n{source}Namespace(lr=0.1)\n{records}")
    assert (found.metrics, found.standing.device) == (("loss", "Test Acc"), None)


def test_a_sentence_that_begins_like_a_source_hides_no_value() -> None:
    log = "import of the data took 3 s\nfrom checkpoint 12 import weights\nclass balance: 0.5\nval_acc 0.25\n"
    assert "val_acc" in read(log).metrics


def test_a_final_answer_heads_no_summary() -> None:
    reader = LogReader()
    reader.feed(b"step 20 loss 0.5\n**Final Answer:** \n42 \n\nreward is 0.09\ngrpo_loss is 0.0131 and kl is 0.1152\n")
    assert not any("final" in name.lower() for name in reader.summary().metrics)
