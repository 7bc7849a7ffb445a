"""How far a line says that the training is: so many of so many, whatever stands around it."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import Number
from mpstui.core.formats.reader import LogReader

FORMS: list[tuple[str, tuple[Number | None, ...]]] = [
    (
        "| epoch   1 |    20/   46 batches | lr 20.00 | ms/batch 12.3 | loss 5.11 | ppl 300",
        (1, None, None, None, 20, 46),
    ),
    ("step 00059/00060 (98.33%) | loss: 6.71 | dt: 100ms | tok/sec: 1,234", (None, None, 59, 60, None, None)),
    ("iter 340/5000: train loss 1.21, val loss 1.5", (None, None, 340, 5000, None, None)),
    ("Iteration 20 / 50", (None, None, 20, 50, None, None)),
    ("[12/100][3/20] loss: 0.51", (12, 100, None, None, 3, 20)),
    ("steps 59 of 60 loss 0.51", (None, None, 59, 60, None, None)),
    ("20/46 batches, loss 0.51", (None, None, None, None, 20, 46)),
    ("Completed 340/5000 steps (6.8%), loss 0.51", (None, None, 340, 5000, None, None)),
    ("Finished 3/10 epochs, loss 0.51", (3, 10, None, None, None, None)),
    ("Progress: 20/50 loss=0.51", (None, None, 20, 50, None, None)),
    ("Progress: 340 / 5000 steps, loss 0.51", (None, None, 340, 5000, None, None)),
    (" 34% [####      ] 340/1000 | loss 0.51", (None, None, 340, 1000, None, None)),
    ("[==>   ] 340/5000 loss 0.51", (None, None, 340, 5000, None, None)),
    ("█████░░░░░ 3/20 loss: 0.51", (None, None, 3, 20, None, None)),
    ("[1/10] step 3/20 loss: 0.51", (1, 10, None, None, 3, 20)),
    ("Epoch is [3/20], mini-batch is [5/200], batch_loss is 0.51", (3, 20, None, None, 5, 200)),
    ("batch i:300, loss: 0.51", (None, None, None, None, 300, None)),
    ("epoch 3: avg train loss: 0.51, best val: 0.60 at epoch 2", (3, None, None, None, None, None)),
    ("200 [D loss: 0.531, acc.: 81.25%] [G loss: 0.91]", (None, None, 200, None, None, None)),
    ("After 300 iterations, training cost = 0.51", (None, None, 300, None, None, None)),
    ("Iteración 3/20 pérdida: 0.51", (None, None, 3, 20, None, None)),
    ("[0005] Epoch 3 loss: 0.51", (3, None, 5, None, None, None)),
    ("[000660][Epoch 03/50] loss: 0.51", (3, 50, None, None, None, None)),
    ("Epoch 2/10 (3/20) loss 0.51", (2, 10, None, None, 3, 20)),
    ("[Epoch 2][Step 3/20] loss 0.51", (2, None, None, None, 3, 20)),
    ("[>....]  Step: 7s867ms | Tot: 23s700ms | Loss: 2.1 | Acc: 23.2% (119/512) 4/7", (None, None, None, None, 4, 7)),
]


@pytest.mark.parametrize(("line", "counters"), FORMS)
def test_so_many_of_so_many(line: str, counters: tuple[Number | None, ...]) -> None:
    assert LogReader().feed(f"{line}\n".encode())[-1].counters == counters


@pytest.mark.parametrize(
    ("line", "total"),
    [
        ("Scheduled epochs: 3 (epochs + cooldown). Warmup within epochs. LR stepped per epoch.", (3, None)),
        ("125 iterations per epoch. 12500 max iterations", (None, 12500)),
        ("Running: /usr/bin/python train.py --optimizer muon --epochs 2 --seed 42 --batch-size 128", (2, None)),
        ("Namespace(data='x', epochs=2, lr=0.1, batch_size=64)", (2, None)),
        ("max_iters = 600", (None, 600)),
        ("num_train_epochs=3,", (3, None)),
        ("Training for 10 epochs", (10, None)),
        ("warmup_steps = 100", (None, None)),
        ("eval_iters = 200", (None, None)),
        ("save_steps=500,", (None, None)),
        ("steps_per_epoch: 50", (None, None)),
    ],
)
def test_a_total_is_taken_from_where_it_is_told(line: str, total: tuple[int | None, int | None]) -> None:
    reader = LogReader()
    reader.feed(f"{line}\nepoch 1 step 5 loss 2.5\n".encode())
    found = reader.summary()
    assert (found.epochs, found.steps) == total
    assert (found.epoch, found.step) == (1, 5)
