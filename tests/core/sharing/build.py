"""Runs to share: one that trained, was resumed and met a NaN; one with hostile words in every place."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

from mpstui.core.model.home import Home
from mpstui.wire import labels
from tests.core.runs.build import NOW, RunBuilder

POISON = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b]52;c;eA==\x07\u202e\"'&"


def resumed_run(home: Home, steps: int = 40, *, name: str = "digits", slope: float = 1.0, age: float = 0) -> str:
    """Loss each step, validation every tenth; steps 30 to 34 measured twice, step 20 is NaN."""
    run = RunBuilder(home, name, NOW - age, profile="digits").status("ended", attempt=2)
    run.launch(1).launch(2).exit(1, code=1).exit(2, code=0)
    lines = [(1, step) for step in range(1, 35)] + [(2, step) for step in range(30, steps + 1)]
    for attempt, step in lines:
        loss = math.nan if step == 20 else slope / step + (0.5 if attempt == 1 and step >= 30 else 0)
        run.points({"time": NOW + step, "epoch": step // 10, "step": step, "loss": loss, "attempt": attempt})
        if step % 10 == 0:
            value = 2 * slope / step
            run.points({"time": NOW + step, "epoch": step // 10, "step": step, "val_loss": value, "attempt": attempt})
    run.output("step 1\nWARNING: slow\nRuntimeError: none\n", attempt=2)
    return run.run.run


def poisoned_run(home: Home, *, age: float = 0) -> str:
    """Its name, arguments, metrics and log try to leave their place."""
    run = RunBuilder(home, POISON, NOW - age, profile="").status("ended").launch().exit(code=1)
    record = json.loads(run.run.attempt(1).launch.read_text())
    words = ["python", "t.py", "--api-key", "hunter2hunter2", f"--note={POISON}"]
    run.run.attempt(1).launch.write_text(json.dumps({**record, "argv": words, "env": {"POISON": POISON}}))
    run.points(*({"time": NOW + at, "step": at, "loss": 1 / at, POISON: 1.0 * at, "attempt": 1} for at in (1, 2, 3)))
    run.output(f"{POISON}\nhf_abcdefghijklmnopqrstuvwxyz\nKeyError: {POISON!r}\n")
    return run.run.run


def home_in(folder: Path) -> Home:
    return Home(folder, folder)


def labelled_run(home: Home, steps: int = 900) -> str:
    """Loss each step, one of them NaN, and a validation; settings, a secret, tags, a note and a checkpoint."""
    run = RunBuilder(home, "digits", NOW).status("ended").launch().exit(code=0, ended=NOW + 500)
    record = json.loads(run.run.attempt(1).launch.read_text())
    words = ["python", "t.py", "--lr", "0.5", "--api-key", "s3cr"]
    run.run.attempt(1).launch.write_text(json.dumps({**record, "argv": words}))
    losses = [math.nan if at == 20 else 1 / at for at in range(1, steps + 1)]
    places = ({"time": NOW + at, "epoch": 1 + at // 600, "step": at, "attempt": 1} for at in range(1, steps + 1))
    run.points(*({**place, "loss": loss} for place, loss in zip(places, losses, strict=True)))
    run.points({"time": NOW + steps + 1, "epoch": 2, "step": steps, "val/acc": 0.5, "attempt": 1})
    labels.edit(run.run, lambda said: said._replace(note='one "quoted"\nline', tags=("good", "keep")))
    run.run.checkpoints.mkdir()
    saved = run.run.checkpoints / f"step_{steps}.pt"
    saved.write_bytes(b"weights")
    os.utime(saved, (NOW + 400, NOW + 400))
    return run.run.run
