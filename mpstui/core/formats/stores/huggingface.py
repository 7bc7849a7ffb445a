"""Output folders of the Hugging Face Trainer: ``checkpoint-500/trainer_state.json``, and event files below ``runs``."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from ..points import Priority
from . import Store, StoredRun
from ._folders import FolderRun

_CHECKPOINT = re.compile(r"checkpoint-\d{1,12}")
_STATE = "trainer_state.json"


class HuggingFaceStore:
    """Recognised by a checkpoint with the Trainer's state, or by the state saved at the end."""

    priority: ClassVar[Priority] = Priority.SHARED
    alone: ClassVar[bool] = False
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        saved = (name for name in names if _CHECKPOINT.fullmatch(name))
        found = _STATE in names or any((folder / name / _STATE).is_file() for name in saved)
        return [FolderRun("Trainer", folder)] if found else None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = HuggingFaceStore()
