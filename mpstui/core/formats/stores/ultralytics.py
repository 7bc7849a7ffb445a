"""Ultralytics: ``runs/detect/train``, with ``args.yaml`` beside ``results.csv``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from ..points import Priority
from ..told import RunTold
from . import Store, StoredRun
from ._folders import FolderRun, settings_in


def _told(folder: Path) -> RunTold:
    return RunTold(config=settings_in(folder / "args.yaml"))


class UltralyticsStore:
    """Recognised by the file of arguments and the table, which exists once the first epoch has ended."""

    priority: ClassVar[Priority] = Priority.SHARED
    alone: ClassVar[bool] = True
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        return [FolderRun("Ultralytics", folder, _told)] if {"args.yaml", "results.csv"} <= {*names} else None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = UltralyticsStore()
