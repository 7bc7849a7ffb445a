"""Checkpoints: written whole or not at all, read without running code; the newest that loads is used.

A checkpoint is a file, or a folder that several ranks wrote together (:mod:`trainer.parts`), under the same names.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpstui.wire import liveness, storage
from mpstui.wire.checkpoints import MANIFEST, earlier_best, earlier_number, mark

from . import parts, tensorfile
from .errors import UsageError

FORMAT = "mpstui.trainer/1"
BEST = "best.pt"
EARLIER_BESTS = 2
"""How many best checkpoints of earlier trainings are kept: repeated trainings in one folder must not fill the disk."""
_PATTERN = "step-*.pt"
_UNFINISHED = re.compile(r"\..*\.(\d+)\.tmp")
_PARTS: Mapping[str, tuple[type, ...]] = {
    "task": (str,),
    "signature": (dict,),
    "model": (dict,),
    "optimizer_name": (str,),
    "average": (dict, type(None)),
    "order": (dict,),
    "order.seed": (int,),
    "order.size": (int,),
    "order.step_size": (int,),
    "progress": (dict,),
    "progress.step": (int,),
    "device": (str,),
}
"""What training, evaluation and export read from a checkpoint, with the types allowed."""


@dataclass(frozen=True)
class Loaded:
    """A checkpoint that could be read."""

    path: Path
    state: Mapping[str, Any]


class CheckpointFolder:
    """The checkpoints of one training: ``step-00001234.pt``, the newest few, and ``best.pt``.

    The best checkpoints of earlier trainings stay as ``best-earlier-1.pt`` and so on, only the newest two.
    """

    def __init__(self, path: Path, keep: int, run: str | None = None) -> None:
        """``run`` is the id of the run that saves here, if any: other runs may save into the same folder."""
        self.path = path
        self._origin = {"run": mark(run)} if run else {}
        self._keep = keep
        self._known_best: tuple[Any, Any] | None = None
        self._best_is_ours = False

    def goes_on_from(self, state: Mapping[str, Any]) -> None:
        """Treat the resumed checkpoint's best as ours, so that its file is not set aside as another training's."""
        self._known_best = _best_of(state)

    def save(self, state: Mapping[str, Any], step: int, *, best: bool = False) -> Path:
        """Write a checkpoint; a file with its name is always complete.

        Raises:
            OSError: it could not be written; what was there before is intact.
        """
        storage.make_private_folder(self.path)
        return self._put(step, lambda temporary: tensorfile.write(temporary, self._signed(state)), best=best)

    def begin(self, step: int) -> Path:
        """Make a hidden folder into which every rank writes its part of a checkpoint, before :meth:`commit`.

        Removes what dead processes of this machine left unfinished, since that may be large.

        Raises:
            OSError: it could not be made.
        """
        storage.make_private_folder(self.path)
        table = liveness.system_process_table()
        for path in self.path.glob(f".*.{platform.node()}.*.tmp"):
            writer = _UNFINISHED.fullmatch(path.name)
            if writer and int(writer[1]) != os.getpid() and table.find(int(writer[1])) is None:
                shutil.rmtree(path, ignore_errors=True)
        place = _temporary(self.path / f"step-{step:08d}.pt")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=storage.FOLDER_MODE)
        return place

    def commit(self, manifest: Mapping[str, Any], step: int, *, best: bool = False) -> Path:
        """Turn the folder of :meth:`begin`, which now holds all parts, into a checkpoint.

        Raises:
            OSError: as :meth:`save`.
        """

        def complete(place: Path) -> None:
            tensorfile.write(place / MANIFEST, self._signed(manifest))
            storage.sync_folder(place)

        return self._put(step, complete, best=best)

    def forget(self, place: Path) -> None:
        """Discard the folder of :meth:`begin`."""
        _remove(place)

    def _signed(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {"format": FORMAT, **self._origin, **state}

    def _put(self, step: int, write: Callable[[Path], None], *, best: bool) -> Path:
        target = self.path / f"step-{step:08d}.pt"
        _replace(target, write)
        if best:
            self._keep_earlier_best()
            _replace(self.path / BEST, lambda temporary: _link_or_copy(target, temporary))
            self._best_is_ours = True
        _forget(self.newest_first()[self._keep :])
        return target

    def _keep_earlier_best(self) -> None:
        """Keep the best of another training (started again, or from an earlier checkpoint) under a separate name."""
        best = self.path / BEST
        if self._best_is_ours or not best.exists() or (self._known_best and self._known_best == _recorded_best(best)):
            return
        numbered = (path for path in self.path.glob("best-earlier-*.pt") if _earlier_number(path))
        earlier = sorted(numbered, key=_earlier_number)
        number = _earlier_number(earlier[-1]) + 1 if earlier else 1
        kept = self.path / f"{earlier_best(number)}.pt"
        _replace(kept, lambda temporary: _link_or_copy(best, temporary))
        _forget([*earlier, kept][:-EARLIER_BESTS])

    def newest_first(self) -> list[Path]:
        """Return the numbered checkpoints, the most recently written first.

        After a start from scratch, or from an earlier step, the highest step in a folder is not the newest.
        """
        return sorted(self.path.glob(_PATTERN), key=_age, reverse=True)


def _forget(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a checkpoint; a folder is renamed first, so that a half-removed one is never used."""
    if path.is_dir():
        hidden = path if path.name.startswith(".") else path.rename(_temporary(path.with_name(f"{path.stem}-gone.pt")))
        shutil.rmtree(hidden)
    else:
        path.unlink(missing_ok=True)


def _age(path: Path) -> tuple[int, int, str]:
    """Sort key: when a file was written, then its step (copied files may have equal times)."""
    try:
        written = path.stat().st_mtime_ns
    except OSError:  # gone meanwhile
        written = 0
    return written, len(path.name), path.name


def _earlier_number(path: Path) -> int:
    return earlier_number(path.stem)


def _earlier_last(path: Path) -> tuple[bool, int, str]:
    """Sort key: bests of earlier trainings after all others, the newest of them first."""
    number = earlier_number(path.stem)
    return number > 0, -number, path.name


def _best_of(state: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The best value that a state records, and its step."""
    progress = state.get("progress")
    return (progress.get("best"), progress.get("best_step")) if isinstance(progress, dict) else None


def incomplete(state: Mapping[str, Any]) -> str | None:
    """Say in a few words what is missing from a training's state; None if it is complete."""
    for name, kinds in _PARTS.items():
        value: Any = state
        for key in name.split("."):
            value = value.get(key, ...) if isinstance(value, dict) else ...
        if not isinstance(value, kinds):
            return f"its `{name}` is missing or damaged"
    return None


def _recorded_best(path: Path) -> tuple[Any, Any] | None:
    """Like :func:`_best_of`, for a file; None if it cannot be read. Weights are mapped, not read."""
    try:
        state = tensorfile.read(path / MANIFEST if path.is_dir() else path, mapped=True)
    except Exception:  # noqa: BLE001  zip, pickle and torch each raise their own kinds
        return None
    return _best_of(state) if isinstance(state, dict) else None


def load(path: Path, check: Callable[[Mapping[str, Any]], str | None]) -> Loaded:
    """Read one checkpoint on the CPU, tensors and plain containers only.

    Args:
        check: says in a few words why a state does not fit; None if it does.

    Raises:
        UsageError: it is missing, truncated, not ours, or of another model; names the file and the remedy.
    """
    remedy = "name another checkpoint with --resume, or leave --resume out to start from scratch"
    if not is_checkpoint(path):
        raise UsageError(f"{path} does not exist; {remedy}")
    try:
        state = parts.joined(path) if path.is_dir() else tensorfile.read(path)
    except Exception as error:  # zip, pickle and torch each raise their own kinds
        reason = str(error).strip().partition("\n")[0][:160]
        raise UsageError(
            f"{path} cannot be read as a checkpoint ({reason}): it is truncated or not ours; {remedy}"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise UsageError(f"{path} was not written by this trainer; {remedy}")
    misfit = check(state)
    if misfit:
        raise UsageError(f"{path} does not fit: {misfit}; use the options it was trained with, or leave --resume out")
    return Loaded(path, state)


def is_checkpoint(path: Path) -> bool:
    """True if a path is a single checkpoint: a file, or a folder that ranks wrote together."""
    return path.is_file() or parts.is_folder(path)


def find(
    asked: str, folder: Path, check: Callable[[Mapping[str, Any]], str | None], say: Callable[[str], None]
) -> Loaded | None:
    """Find the checkpoint that ``--resume`` names: a file, a folder, or ``latest`` in our own folder.

    In a folder, the newest that loads and fits is used; ``say`` reports each one passed over.

    Returns:
        None: ``latest`` was asked for and there is none yet.

    Raises:
        UsageError: a named file cannot be used, or none in a folder can.
    """
    if asked != "latest" and (is_checkpoint(Path(asked)) or not Path(asked).is_dir()):
        return load(Path(asked), check)
    where = folder if asked == "latest" else Path(asked)
    candidates = CheckpointFolder(where, keep=1).newest_first() or sorted(where.glob("*.pt"), key=_earlier_last)
    if not candidates:
        if asked == "latest":
            return None
        raise UsageError(f"--resume {asked}: no checkpoints (*.pt) in that folder; name one, or leave --resume out")
    return _first_that_loads(candidates, check, say)


def _first_that_loads(
    candidates: list[Path], check: Callable[[Mapping[str, Any]], str | None], say: Callable[[str], None]
) -> Loaded:
    first: UsageError | None = None
    for path in candidates:
        try:
            return load(path, check)
        except UsageError as error:
            first = first or error
            say(f"passed over: {error}")
    assert first is not None
    raise first


def _link_or_copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=storage.FOLDER_MODE)
        for path in source.iterdir():
            _link_or_copy(path, target / path.name)
        shutil.copystat(source, target)  # with its time, which decides what is newest
        storage.sync_folder(target)
        return
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())


def _temporary(target: Path) -> Path:
    """A name unique to this process that is never taken for a checkpoint."""
    return target.with_name(f".{target.name}.{platform.node()}.{os.getpid()}.tmp")


def _replace(target: Path, write: Callable[[Path], None]) -> None:
    temporary = _temporary(target)
    try:
        write(temporary)
        _name(temporary, target)
    finally:
        _remove(temporary)


def _name(made: Path, target: Path) -> None:
    """Give a new checkpoint its name. Until then the previous one stays intact, if only as ``NAME-replaced.pt``."""
    aside = target.with_name(f"{target.stem}-replaced{target.suffix}")
    if target.exists() and (made.is_dir() or target.is_dir()):  # only a file can replace a file in one step
        _remove(aside)
        target.rename(aside)
        storage.sync_folder(target.parent)
    made.replace(target)
    storage.sync_folder(target.parent)  # before an older one is forgotten
    _remove(aside)
