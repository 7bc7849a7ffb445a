"""Other people's print statements, one line of each kind; the same line is printed twice with other numbers."""

from __future__ import annotations

import pytest

from mpstui.core.formats import LogReader

# text with {e} epoch, {s} step and {v} loss; then which of them the reader must find
PRINTS = [
    ("Epoch [{e}/3], Step [{s}/600], Loss: {v}", "es"),
    ("| epoch {e:3d} | {s:5d}/ 2983 batches | lr 20.00 | ms/batch 12.3 | loss {v} | ppl 300.1", "es"),
    ("Step {s}: loss = {v} (12.3 sec/batch; 10.4 examples/sec)", "s"),
    ("INFO:tensorflow:loss = {v}, step = {s} (1.23 sec)", "s"),
    ("ep{e:03d} it{s:05d} loss {v}", "es"),
    ("Epoch-{e} loss={v}", "e"),
    ("{s}: loss {v}", "s"),
    ("[{s}] loss={v}, learning_rate=0.0003", "s"),
    ("INFO:root:epoch {e} of 10, train loss = tensor({v}, device='mps:0', grad_fn=<NllLossBackward0>)", "e"),
    ("epoch={e} step={s} train/loss={v} train/acc=0.5 val/loss=9.9 lr=1e-4", "es"),
    ("Epoch {e:2d} | Train Loss {v} Acc 0.5 | Test Loss 9.9 Acc 0.4 | Time 3s", "e"),
    ("TRAIN: EPOCH {e}/3 | BATCH {s}/40 | LOSS {v} | LR 1.0E-04", "es"),
    ("\x1b[36mEpoch {e}/5\x1b[0m ┃ \x1b[33mloss\x1b[0m \x1b[1m{v}\x1b[0m ┃ lr 0.001", "e"),
    ("Epoch {e} loss {v}↓ acc 50%↑", "e"),
    ("(epoch: {e}, iters: {s}, time: 1.3, data: 0.04) , total_loss: {v}, loss_a: 0.1, loss_b: 0.2", "es"),
    ("iteration: {s}, loss_value: {v}, learning_rate: 0.01", "s"),
    ("[rank0]: 2024-01-02 10:00:00,123 [INFO] app.train: epoch {e}, step {s}, loss {v}", "es"),
    ("第{e}轮 第{s}步 损失：{v}，学习率：0.001", "es"),
    ("[{e}エポック目] 学習損失={v} 検証損失=9.9", "e"),
    ("에폭 {e}/5 - 학습 손실: {v} - 검증 손실: 9.9", "e"),
    ("Эпоха {e}/5, потери: {v}, валидация потери: 9.9", "e"),
    ("Épocas {e}/5 - pérdida: {v}", ""),
    ("Époque {e} sur 12 — perte : {v} — perte de validation : 9.9", "e"),
]


@pytest.mark.parametrize(("text", "counters"), PRINTS)
def test_a_print_statement_is_read(text: str, counters: str) -> None:
    reader = LogReader()
    lines = [text.format(e=e, s=s, v=v) for e, s, v in ((1, 100, "1.5000"), (2, 200, "1.2500"), (3, 300, "1.1250"))]
    reader.feed("\n".join([*lines, ""]).encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (1.5, 1.125, 3)
    assert found.epoch == 3 or "e" not in counters
    assert found.step == 300 or "s" not in counters
