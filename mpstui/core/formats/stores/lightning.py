"""Lightning: ``lightning_logs/version_3``, with ``hparams.yaml`` beside ``metrics.csv`` or event files."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from ..points import Priority
from ..told import RunTold
from . import Store, StoredRun
from ._folders import FolderRun, settings_in


def _told(folder: Path) -> RunTold:
    return RunTold(config=settings_in(folder / "hparams.yaml"))


class LightningStore:
    """Recognised by the file of settings, which Lightning's loggers write first."""

    priority: ClassVar[Priority] = Priority.SHARED
    alone: ClassVar[bool] = True
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        measured = "metrics.csv" in names or any("tfevents" in name for name in names)
        return [FolderRun("Lightning", folder, _told)] if measured and "hparams.yaml" in names else None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = LightningStore()
