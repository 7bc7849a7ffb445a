"""Folders that each hold a metric file with a common name: ``logs/ppo_1/progress.csv``, ``logs/ppo_2/progress.csv``."""

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
"""Default names of loggers: ``progress`` in Stable-Baselines3 and RLlib, ``history`` in fastai, ``results`` in YOLO."""


class TableStore:
    """Recognised by the name of the file alone. The table of an evaluation belongs to the run beside it."""

    priority: ClassVar[Priority] = Priority.GENERAL
    alone: ClassVar[bool] = False
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        is_run = not _NAMES.isdisjoint(names) and folder.name.lower() not in EVAL_WORDS and "spec.json" not in names
        return [FolderRun("table", folder)] if is_run else None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = TableStore()
