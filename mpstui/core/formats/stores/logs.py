"""Sibling folders that each hold a log with a common name, and no better sign of a run: ``run1/train.log``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from ..points import Priority
from ..vocabulary import EVAL_WORDS
from . import Store, StoredRun
from ._folders import FolderRun

_NAMES = ("train.log", "training.log", "train.txt", "train_log.txt", "log_train.txt", "training_log.txt", "log.txt")
"""Common names of training logs; `output.log` and `stdout.log` may belong to single processes of one run."""


class UnnamedLogStore:
    """Asked after all other stores. Only its siblings show that a folder is a run of its own: see `find_runs`."""

    priority: ClassVar[Priority] = Priority.GENERAL
    alone: ClassVar[bool] = False
    deeper: ClassVar[bool] = True

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        """Return the folder if it holds such a log; the log of an evaluation belongs to the run beside it."""
        log = next((name for name in _NAMES if name in names), None)
        if log is None or folder.name.lower() in EVAL_WORDS or "spec.json" in names:
            return None
        return [LogFolder(folder, log)]

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


class LogFolder(FolderRun):
    """A folder with a log."""

    def __init__(self, path: Path, log: str) -> None:
        super().__init__("log", path)
        self.only_beside = log


STORE: Store = UnnamedLogStore()
