"""Weights & Biases: folders ``wandb/run-*`` and ``wandb/offline-run-*``, each with the transaction log of one run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ....wire import storage
from ...follow import last_lines
from ...model.snapshot import State
from ..points import Priority
from ..told import RunTold
from . import Store, StoredRun

if TYPE_CHECKING:
    from ..files import MetricFile

_ENDING = ".wandb"
_INTERRUPTED = 255
_END_BYTES = 1 << 12


class WandbRun(StoredRun):
    """One transaction log, and the few files beside it."""

    store = "W&B"

    def __init__(self, log: Path, *, alone: bool) -> None:
        """``alone``: no other lies in its folder, which stands for it then."""
        super().__init__(log.parent if alone else log, log.stem.removeprefix("run-"))
        self._log = log
        self._argv: tuple[str, ...] | None = None

    @property
    def output(self) -> Path | None:
        found = self._log.parent / "files" / "output.log"
        return found if found.is_file() else None

    def files(self) -> Sequence[Path]:
        return (self._log,)

    def open(self) -> MetricFile | None:
        from ..files.wandb import WandbFile

        return WandbFile(self._log)

    def told(self, reader: MetricFile | None) -> RunTold:
        """What the log says; where an older client has not put the command into it, from the file beside it."""
        from ..files.wandb import WandbFile

        told = reader.told if isinstance(reader, WandbFile) else RunTold()
        if not told.argv:
            if self._argv is None:
                self._argv = self._command()
            told = told._replace(argv=self._argv)
        if told.exit_code is not None:
            told = told._replace(says=f"exit code {told.exit_code}")
        if told.exit_code == _INTERRUPTED and self._was_interrupted():
            told = told._replace(state=State.KILLED, says=f"{told.says} after Ctrl-C")
        return told

    def _was_interrupted(self) -> bool:
        """Whether its output ends with the traceback of Ctrl-C: a program may leave with that code for itself."""
        found = self.output
        return found is not None and last_lines(found, _END_BYTES).rstrip().endswith(b"KeyboardInterrupt")

    def _command(self) -> tuple[str, ...]:
        try:
            found = storage.read_json(self._log.parent / "files" / "wandb-metadata.json") or {}
        except (OSError, storage.UnreadableRecord):
            return ()
        program, words = found.get("program"), found.get("args")
        if not isinstance(program, str) or not isinstance(words, list):
            return ()
        return (program, *(word for word in words if isinstance(word, str)))


class WandbStore:
    """Told by the ending of the log."""

    priority: ClassVar[Priority] = Priority.EXACT
    alone: ClassVar[bool] = True
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        logs = [name for name in names if name.endswith(_ENDING)]
        return [WandbRun(folder / name, alone=len(logs) == 1) for name in sorted(logs)] or None

    def runs_of(self, file: Path) -> list[StoredRun]:
        return [WandbRun(file, alone=False)] if file.name.endswith(_ENDING) else []


STORE: Store = WandbStore()
