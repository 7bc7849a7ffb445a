# ruff: noqa: E501 (the lines of logs are long)
"""Logs whose lines alternate between shapes, and what must come out alike however they are read."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence

from mpstui.core.formats.points import Point, PointColumns
from mpstui.core.formats.reader import LogReader

Line = Callable[[int, random.Random], str]
STAMP = "I0312 14:{0:02d}:07.{1:06d}  2931 "


def stamp(i: int, source: random.Random) -> str:
    return STAMP.format(i // 60 % 60, source.randrange(10**6))


LINES: dict[str, Line] = {
    "step": lambda i, s: f"step {i} loss {3 - i / 5000 + s.random() / 9:.4f}",
    "step of total": lambda i, s: f"step {i}/9000 | loss {3 - i / 5000:.5f} | lr {1e-3 - i / 1e7:.2e}",
    "iteration": lambda i, s: f"{stamp(i, s)}solver.cpp:228] Iteration {20 * i}, loss = {3 - i / 5000:.6g}",
    "output": lambda i, s: (
        f"{stamp(i, s)}solver.cpp:244]     Train net output #0: loss = {s.random():.6g} (* 1 = {s.random():.6g} loss)"
    ),
    "output of two": lambda i, s: (
        f"{stamp(i, s)}solver.cpp:244]     Train net output #1: loss_b = {s.random():.6g} (* 1 = {s.random():.6g} loss)"
    ),
    "rate": lambda i, s: f"{stamp(i, s)}sgd_solver.cpp:106] Iteration {20 * i}, lr = {0.001 if i < 900 else 0.0001}",
    "measure": lambda i, s: f"  accuracy: {s.random():.3f}",
    "measure at step": lambda i, s: f"[{i}] train/acc: {s.random():.4f}",
    "norm": lambda i, s: f"[{i}] grad norm: {s.random() * 40 - 1:.3f}",
    "rate alone": lambda i, s: f"lr: {1e-3 * 0.99 ** (i // 100):.3e}",
    "time": lambda i, s: f"time per batch: {s.random():.3f}s data: {s.random() / 10:.4f}s",
    "part": lambda i, s: f"  head_{i % 3} loss: {s.random():.4f}",
    "memory": lambda i, s: f"  memory: {s.randrange(9999)} MB",
    "count": lambda i, s: f"samples seen: {64 * i}",
    "constant": lambda i, s: f"weight decay {0.1 if i < 700 else 0.2}",
    "score": lambda i, s: f"score {0 if i < 600 else s.random():.3g}",
    "batch": lambda i, s: f"Epoch {i // 100} batch {i % 100}/100 train loss: {3 - i / 5000 + s.random() / 9:.4f}",
    "batch below": lambda i, s: f"batch {i % 100 + 1}/100 loss: {3 - i / 5000 + s.random() / 9:.4f}",
    "heading": lambda i, s: f"Epoch {i // 100 + 1}/20",
    "epoch": lambda i, s: f"Epoch {i + 1}/5000",
    "train and accuracy": lambda i, s: f"train loss: {3 - i / 5000:.4f} acc: {s.random():.4f}",
    "validation": lambda i, s: f"val loss: {3 - i / 4000:.4f} val acc: {s.random():.4f}",
    "evaluation": lambda i, s: f"eval_loss: {s.random():.3f} eval_acc: {s.random():.3f}",
    "evaluation at step": lambda i, s: f"step {i}: val loss {s.random():.4f}",
    "dictionary": lambda i, s: (
        f"{{'loss': {3 - i / 5000:.4f}, 'grad_norm': {s.random():.3f}, 'epoch': {i / 1000:.2f}}}"
    ),
    "restarting": lambda i, s: f"iter={i % 700} loss={3 - i / 5000:.4f} mem=3GB",
    "widening": lambda i, s: f"it {i:5d}  loss: {8 - i / 100:8.4f}  tps: {600 + i:,}",
    "with nan": lambda i, s: f"step={i} loss={'nan' if i % 97 == 0 else round(3 - i / 5000, 4)}",
    "bar": lambda i, s: (
        f"\r {i % 500 // 5:3d}%|{'#' * (i % 500 // 50):<10}| {i % 500}/500 [00:{i % 60:02d}<00:10,  1.50it/s, loss={3 - i / 5000:.4f}]"
    ),
    "noise": lambda i, s: f"[INFO] copied {s.randrange(99)} files of 3.5 GB",
    "rule": lambda i, s: "-" * 40,
}
RARE: list[Line] = [
    lambda i, s: "Validating...",
    lambda i, s: "Training...",
    lambda i, s: 'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: no',
    lambda i, s: "{'loss': 0.5,",
    lambda i, s: (
        f"config: a\nbatch_size: {i}\nmodel: resnet\nlr: 0.1\nname: x\nseed: 3\noptimizer: adam\nworkers: 4\ndata: /x"
    ),
    lambda i, s: "**Answer**",
    lambda i, s: "12 * $2 = $24",
    lambda i, s: "Resuming from checkpoint at step 5",
    lambda i, s: "Epoch 3 done",
    lambda i, s: f"Saved best model, loss {s.random():.3f}",
    lambda i, s: "epoch  train_loss  valid_loss\n1  0.5  0.6",
    lambda i, s: "Training complete.",
    lambda i, s: f"python train.py --lr 0.{i}",
]
DAMAGE: list[Callable[[random.Random, str], str]] = [
    lambda s, line: line[: s.randrange(len(line) + 1)],
    lambda s, line: line.replace(str(s.randrange(10)), "nan", 1),
    lambda s, line: line.replace("0.", "-0.", 1),
    lambda s, line: line.replace(".", "", 1),
    lambda s, line: line + " " + line,
    lambda s, line: line.replace("loss", "val_loss"),
    lambda s, line: "\x1b[31m" + line + "\x1b[0m",
]


def written(names: Sequence[str], seed: int, lines: int, *, regular: bool) -> bytes:
    """A log of so many lines, now and then with another between, or a damaged one."""
    source = random.Random(seed)
    rare, damaged = source.choice((0, 0.002, 0.02)), source.choice((0, 0, 0.01))
    told: list[str] = []
    i = 0
    while len(told) < lines:
        for name in names if regular else [source.choice(names)]:
            line = LINES[name](i, source)
            told.append(source.choice(DAMAGE)(source, line) if source.random() < damaged else line)
        i += 1
        if source.random() < rare:
            told.append(source.choice(RARE)(i, source))
        if source.random() < rare / 9:
            i = 0  # another launch
    return "\n".join([*told, ""]).encode()


def curves(points: Iterable[Point]) -> dict[object, list[str]]:
    """What every curve gets, in order."""
    found: dict[object, list[str]] = {}

    def add(curve: object, *value: object) -> None:
        found.setdefault(curve, []).append(repr(value))

    for point in points:
        newest = point.newest
        if isinstance(point, PointColumns):
            for at, loss in enumerate(point.losses):
                place = (newest.run, None if point.steps is None else float(point.steps[at]), float(point.epochs[at]))
                if newest.loss is not None:
                    add(("loss", newest.series), *place, loss)
                if point.rates is not None:
                    add("learning rate", *place, point.rates[at])
                for name, column in point.values.items():
                    add(name, *place, column[at])
            continue
        step = newest.run_step
        place = (newest.run, step, math.nan if newest.epoch is None else float(newest.epoch))
        if newest.loss is not None:
            add(("loss", newest.series), *place, newest.loss)
        if newest.learning_rate is not None:
            add("learning rate", *place, newest.learning_rate)
        for name, value in {**newest.metrics, **newest.eval_metrics}.items():
            add(name, *place, value)
    return found


def told(data: bytes, chunks: Iterable[int], *, one_by_one: bool) -> tuple[object, ...]:
    """All that a reader says of a log, cut into pieces of these lengths."""
    reader, points, position = LogReader(), list[Point](), 0
    for length in chunks:
        piece = data[position : position + length]
        points += reader.feed(piece) if one_by_one else reader.take(piece)
        position += length
        if position >= len(data):
            break
    points += reader.close()
    newest = repr(points[-1].newest) if points else None
    return curves(points), repr(reader.summary()), reader.primary, reader.epoch_length, newest
