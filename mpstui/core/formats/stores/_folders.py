"""Runs that are read like any watched folder, and have a file of settings written by a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ..told import RunTold, flattened
from . import StoredRun
from ._yaml import read


class FolderRun(StoredRun):
    """A folder whose newest log, heartbeat and metric file are followed."""

    is_folder: ClassVar[bool] = True

    def __init__(self, store: str, path: Path, told: Callable[[Path], RunTold] = lambda _: RunTold()) -> None:
        super().__init__(path, f"{path.parent.name}/{path.name}")
        self.store = store
        self._tell = told

    def told(self, reader: object) -> RunTold:
        """Return what the files of settings say."""
        return self._tell(self.path)


def settings_in(path: Path) -> Mapping[str, str]:
    """Return the settings of a YAML file, flattened."""
    found: Any = read(path)
    return flattened("", found) if isinstance(found, dict) and found else {}
