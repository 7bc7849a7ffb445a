"""Folders with a metric file of a usual name each: ``logs/ppo_1/progress.csv`` beside ``logs/ppo_2/progress.csv``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from ..points import Priority
from ..vocabulary import EVAL_WORDS
from . import Store, StoredRun
from ._folders import FolderRun

_NAMES = frozenset(
    f"{name}.{ending}"
    for name in ("progress", "history", "metrics", "results", "log", "training_log", "train_log")
    for ending in ("csv", "tsv", "jsonl")
)
"""As loggers call it by themselves: Stable-Baselines3 and RLlib ``progress``, fastai ``history``, YOLO ``results``."""


class TableStore:
    """Told by the name of the file alone. The table of an evaluation belongs to the run beside it."""

    priority: ClassVar[Priority] = Priority.GENERAL
    alone: ClassVar[bool] = False
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        is_run = not _NAMES.isdisjoint(names) and folder.name.lower() not in EVAL_WORDS and "spec.json" not in names
        return [FolderRun("table", folder)] if is_run else None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = TableStore()
