"""Lightning, launched, asked, stopped and continued."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integrations.conftest import Training

GIVEN = """
import torch
from lightning.pytorch import LightningModule, Trainer
class Module(LightningModule):
    def __init__(self, width=2):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(8, width)
    def loss(self, batch):
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
    def training_step(self, batch):
        time.sleep(0.03)
        LOG
        return self.loss(batch)
    def validation_step(self, batch): self.log("val_loss", self.loss(batch))
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.05)
def loader(count):
    x = torch.randn(count, 8)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long()), batch_size=8)
module, train, validation = Module(), loader(1600), loader(64)
import functools
Trainer = functools.partial(Trainer, accelerator="cpu", enable_progress_bar=False, log_every_n_steps=5)
"""


@pytest.mark.parametrize("how", ["callback", "logger"])
def test_a_training_of_lightning(
    how: str, example: Callable[[str, str], str], train: Callable[[str, str], Training]
) -> None:
    logs = 'self.log("train_loss", self.loss(batch))' if how == "logger" else "pass"
    program = example("Lightning", GIVEN.replace("LOG", logs))
    if how == "logger":
        program = program.replace("import MpstuiCallback", "import MpstuiCallback, MpstuiLogger")
        program = program.replace("callbacks=[", "logger=MpstuiLogger(), callbacks=[")
    training = train("lightning", program)
    shown = training.until(lambda shown: (shown["step"] or 0) > 20 and shown["loss"], "twenty steps")
    assert (shown["epoch"], shown["epochs"], shown["steps"]) == (1, 3, 600)
    shown = training.until_told("step", "steps", "epoch", "epochs", "loss", "lr")
    assert not {"train_loss", "train_loss_step"} & shown["metrics"].keys()
    training.until(lambda shown: shown["eta_seconds"] and shown["samples_per_second"], "a remaining time")
    if how == "callback":
        training.ask("save")
        training.ask("evaluate")
        training.ask("clear-cache")
        training.until(lambda shown: "val_loss" in shown["metrics"], "the evaluation")
    stopped, again = training.stop_and_go_on()
    assert again["steps"] == 600
    assert again["step"] > stopped["step"] >= 20
    done = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert done["step"] == 600, "the rest of the epoch that was broken off is trained too"


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_training_of_the_package_under_its_old_name(
    is_alone: bool, example: Callable[[str, str], str], train: Callable[[str, str], Training]
) -> None:
    """``pytorch_lightning``, installed alone, or beside the new one, whose classes are none of its own."""
    program = example("Lightning", GIVEN.replace("LOG", "pass").replace("lightning.pytorch", "pytorch_lightning"))
    hidden = "import sys; sys.modules['lightning'] = None\n" if is_alone else ""
    same = "from pytorch_lightning.callbacks import Callback\nassert issubclass(MpstuiCallback, Callback)\n"
    program = program.replace("trainer = ", f"{same}trainer = ")
    training = train("pytorch_lightning", f"{hidden}{program}")
    shown = training.until_told("step", "steps", "epoch", "epochs", "loss", "lr")
    assert shown["steps"] == 600
    training.ask("save")
    stopped, again = training.stop_and_go_on()
    assert again["step"] > stopped["step"]


@pytest.mark.parametrize(("monitored", "bests"), [("", 0), ('monitor="train_loss", ', 1)])
def test_a_best_checkpoint_is_one_that_was_compared(
    monitored: str, bests: int, example: Callable[[str, str], str], train: Callable[[str, str], Training]
) -> None:
    """Without a metric to go by ModelCheckpoint calls the newest one its best."""
    keeper = f"ModelCheckpoint('kept', {monitored}every_n_train_steps=10, save_top_k=-1)"
    program = example("Lightning", GIVEN.replace("LOG", 'self.log("train_loss", self.loss(batch))'))
    program = program.replace("max_epochs=3", "max_steps=30")
    program = program.replace("[MpstuiCallback()]", f"[MpstuiCallback(), {keeper}]")
    training = train("lightning", f"from lightning.pytorch.callbacks import ModelCheckpoint\n{program}")
    training.mpstui.call("wait", training.run)
    shown = training.mpstui.show(training.run)
    told = [one for one in shown["checkpoints"] if "step=" in one["path"]]
    assert len(told) >= 3
    assert sum(bool(one.get("best")) for one in told) == bests
