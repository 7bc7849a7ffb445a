"""Hydra: the folder of each job (``outputs/DAY/TIME``, ``multirun/DAY/TIME/NUMBER``), recognised by its ``.hydra``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from ..points import Priority
from ..told import RunTold
from . import Store, StoredRun
from ._folders import FolderRun, settings_in
from ._yaml import read


def _told(folder: Path) -> RunTold:
    """Return its configuration, and its overrides as the command line."""
    overrides, job = read(folder / ".hydra" / "overrides.yaml"), read(folder / ".hydra" / "hydra.yaml")
    words = tuple(str(word) for word in overrides) if isinstance(overrides, list) else ()
    for name in ("hydra", "job", "name"):
        job = job.get(name) if isinstance(job, dict) else None
    program = (f"{job}.py",) if isinstance(job, str) else ()
    return RunTold(config=settings_in(folder / ".hydra" / "config.yaml"), argv=(*program, *words))


class HydraStore:
    """Asked first: runs of other stores inside a job's folder belong to the job."""

    priority: ClassVar[Priority] = Priority.DECLARED
    alone: ClassVar[bool] = True
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        return [FolderRun("Hydra", folder, _told)] if ".hydra" in names else None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = HydraStore()
