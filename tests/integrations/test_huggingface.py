"""Transformers' Trainer, launched, asked, stopped and continued."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integrations.conftest import Training

GIVEN = """
import torch
from transformers import Trainer, TrainingArguments
class Data(torch.utils.data.Dataset):
    def __init__(self, count):
        self.x = torch.randn(count, 8)
        self.y = (self.x.sum(1) > 0).long()
    def __len__(self): return len(self.x)
    def __getitem__(self, place): return {"x": self.x[place], "labels": self.y[place]}
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
    def forward(self, x, labels=None):
        time.sleep(0.02)
        out = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(out, labels), "logits": out}
model, train, validation = Model(), Data(1600), Data(64)
import functools
TrainingArguments = functools.partial(TrainingArguments, logging_steps=5, disable_tqdm=True)
"""


@pytest.mark.parametrize("how", ["callback", "report_to"])
def test_a_training_of_trainer(
    how: str, example: Callable[[str, str], str], train: Callable[[str, str], Training]
) -> None:
    program = example("Transformers", GIVEN)
    if how == "report_to":
        program = program.replace(", callbacks=[MpstuiCallback()]", "").replace(
            '"out", ', '"out", report_to="mpstui", '
        )
    training = train("transformers", program)
    shown = training.until(lambda shown: (shown["step"] or 0) > 20 and shown["loss"], "twenty steps")
    assert (shown["epoch"], shown["epochs"], shown["steps"]) == (1, 3, 600)
    shown = training.until_told("step", "steps", "epoch", "epochs", "loss", "lr")
    training.until(lambda shown: shown["eta_seconds"] and shown["samples_per_second"], "a remaining time")
    if how == "callback":
        saved = training.ask("save")
        assert "checkpoint-" in saved["text"]
        training.ask("evaluate")
        training.ask("clear-cache")
        training.until(lambda shown: "eval_loss" in shown["metrics"], "the evaluation")
    stopped, again = training.stop_and_go_on()
    assert again["steps"] == 600
    assert again["step"] > stopped["step"] >= 20
