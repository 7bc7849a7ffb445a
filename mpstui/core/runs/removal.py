"""Deletes ended runs, and nothing outside their own directories.

A run is removed by a single rename: before it the run is complete, after it the run is gone, whatever happens to the
deletion that follows. What an interrupted deletion leaves behind is deleted by the next one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...wire import labels, liveness, storage
from ...wire.checkpoints import matching
from ...wire.records import LaunchTemplate, Spec, Status
from ...wire.rundir import RunDir, run_dirs
from ...wire.storage import UnreadableRecord
from ..model.errors import OperationError
from ..model.home import Home
from ..model.snapshot import Moment
from .files import WitnessReader
from .local_machine import LocalMachine
from .state import RunWitnesses
from .waiting import dependants, is_abandoned, restart_is_wished

_LEAVING, _LEAVING_KEEPING = ".removing-", ".removing-keeping-"
"""Prefixes that no run has: names with a leading dot are not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removable:
    """A run that may be removed, and what that would delete."""

    run: RunDir
    name: str
    ended: Moment
    """Unix seconds: its end, or else when its record last changed."""
    size_bytes: int
    """Size on disk: hard links count once, holes not at all."""
    checkpoints: int
    checkpoint_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The result of a removal."""

    run: str
    freed_bytes: int | None
    """None if not known, for example because the process that removed the run has died."""
    kept: Path | None = None
    """Where its checkpoints are now, if any were kept."""
    left: str | None = None
    """What could not be deleted, and why; the run is gone nonetheless."""


class Remover:
    """Removes runs of one home; any number of removers may work concurrently."""

    def __init__(self, home: Home, machine: LocalMachine | None = None) -> None:
        self._home = home
        self._machine = machine or LocalMachine(table=liveness.system_process_table(), boot_id=liveness.boot_id())

    @property
    def kept(self) -> Path:
        """Where kept checkpoints go, one folder per run."""
        return self._home.state / "checkpoints"

    def needed(self) -> Mapping[str, str]:
        """Return the runs that others need; see :func:`mpstui.core.runs.waiting.dependants`."""
        return dependants(run_dirs(self._home.runs))

    def examine(self, run: RunDir, needed: Mapping[str, str] | None = None) -> Removable:
        """Return what removing a run would delete.

        Args:
            needed: the result of :meth:`needed`, to save time when many runs are examined.

        Raises:
            OperationError: the run must stay, with the reason: it has not ended, waits, or another run needs it.
        """
        seen = self._refuse(run, self.needed() if needed is None else needed)
        saved = _checkpoints(run.path, _patterns(run))
        return Removable(
            run=run,
            name=labels.name_of(run, seen.spec),
            ended=seen.exit.ended if seen.exit else seen.status.updated if seen.status else run.path.lstat().st_mtime,
            size_bytes=disk_bytes([run.path]),
            checkpoints=sum(map(_count_files, saved)),
            checkpoint_bytes=disk_bytes(saved),
        )

    def remove(
        self, run: RunDir, *, keep_checkpoints: bool = False, needed: Mapping[str, str] | None = None
    ) -> Removed:
        """Remove a run: it leaves the list at once, then its files are deleted one by one.

        Raises:
            OperationError: the run must stay (see :meth:`examine`), was restarted meanwhile, or is gone already; or its
                checkpoints cannot be moved to where they should be kept.
        """
        before = storage.stamp(run.status)
        self._refuse(run, self.needed() if needed is None else needed)
        patterns = _patterns(run)
        if keep_checkpoints:
            self._make_place(run, patterns)
        try:
            # While we hold the supervisor's lock, nobody can start the run, and no other remover can take it.
            lock = liveness.acquire(run.supervisor_lock)
        except OSError as error:
            raise _gone_or(run, error) from error
        if lock is None:
            raise OperationError(f"{run.run} cannot be removed: somebody has just begun it anew, or removes it too")
        try:
            if storage.stamp(run.status) != before or restart_is_wished(run) or liveness.is_held(run.run_lock):
                raise OperationError(f"{run.run} cannot be removed: somebody has just begun it anew")
            leaving = run.path.with_name((_LEAVING_KEEPING if keep_checkpoints else _LEAVING) + run.run)
            try:
                run.path.rename(leaving)
            except OSError as error:
                raise _gone_or(run, error) from error
            # The lock is held until everything is deleted, so that `clean_up` elsewhere leaves the rest to us.
            return self._delete(leaving, run.run, patterns)
        finally:
            liveness.release(lock)

    def removed_before(self, run: str) -> Removed:
        """Return what is known of a run that was removed earlier."""
        kept = self.kept / run
        return Removed(run=run, freed_bytes=None, kept=kept if kept.is_dir() else None)

    def clean_up(self) -> int:
        """Finish interrupted removals; return the number of bytes freed."""
        freed = 0
        for leaving in self._home.runs.glob(f"{_LEAVING}*"):
            if not liveness.is_held(leaving / "supervisor.lock"):
                name = leaving.name.removeprefix(_LEAVING_KEEPING).removeprefix(_LEAVING)
                freed += self._delete(leaving, name, _patterns(RunDir(leaving))).freed_bytes or 0
        return freed

    def _refuse(self, run: RunDir, needed: Mapping[str, str]) -> RunWitnesses:
        """Raise an error if the run must stay, otherwise return its witnesses."""
        if not run.path.is_dir():
            raise OperationError(f"{run.run} is gone already: somebody else has removed it")
        witnesses = WitnessReader(run, self._machine)
        witnesses.poll()
        seen, verdict = witnesses.seen, witnesses.judge(None)
        why, hint = needed.get(run.run, ""), ""
        ends_it = f"`mpstui stop {run.run}` or `mpstui kill {run.run}` ends it"
        if is_abandoned(run) or restart_is_wished(run):
            why, hint = "it waits to be started", ends_it
        elif verdict.state.active:
            why, hint = f"it has not ended ({str(verdict.state).replace('_', ' ')})", ends_it
        elif seen.newer:
            why = verdict.reason
        elif seen.trainer_lives:
            why, hint = "some of its processes still live", ends_it
        elif seen.supervisor_held:
            why, hint = "its supervisor is still at work", "try again in a moment"
        if why:
            raise OperationError(f"{run.run} cannot be removed: {why}", hint)
        return seen

    def _make_place(self, run: RunDir, patterns: Collection[str]) -> None:
        """Raise an error if the checkpoints cannot be moved; done while the run is still complete."""
        if run.path.is_symlink() or not any(map(_count_files, _checkpoints(run.path, patterns))):
            return
        cannot = f"{run.run} cannot be removed: its checkpoints cannot be moved to {self.kept}"
        try:
            storage.make_private_folder(self.kept)
            together = _device(self.kept) == _device(run.path)
        except OSError as error:
            raise OperationError(f"{cannot}: {error.strerror}") from error
        if not together:
            raise OperationError(f"{cannot}, which is on another disk", "move them yourself, then remove it")

    def _delete(self, leaving: Path, name: str, patterns: Collection[str]) -> Removed:
        keeps = leaving.name.startswith(_LEAVING_KEEPING) and not leaving.is_symlink()
        size, kept, left = 0, None, ""
        try:
            kept = _move(_checkpoints(leaving, patterns), leaving, self.kept / name) if keeps else None
            size = disk_bytes([leaving])
        except OSError as error:
            left = str(error)  # then nothing is deleted: some checkpoints may not have been moved
        left = left or _delete_tree(leaving)
        if left:
            size -= disk_bytes([leaving])
            left = f"{left}; the rest of it lies in {leaving} and goes with the next removal"
        return Removed(run=name, freed_bytes=max(0, size), kept=kept, left=left or None)


def disk_bytes(paths: Iterable[Path]) -> int:
    """Return the bytes that deleting these paths would free: a file with a hard link elsewhere frees nothing."""
    names: dict[tuple[int, int], tuple[int, int, int]] = {}
    for path in paths:
        for info in _files(path):
            count, links, size = names.get((info.st_dev, info.st_ino), (0, info.st_nlink, info.st_blocks))
            # The extra links of a folder come from its subfolders: it has only one name.
            names[info.st_dev, info.st_ino] = count + 1, 1 if stat.S_ISDIR(info.st_mode) else links, size
    # ``st_blocks`` counts units of 512 bytes on every file system (stat(2)).
    return sum(blocks * 512 for count, links, blocks in names.values() if count >= links)


def _gone_or(run: RunDir, error: OSError) -> OperationError:
    if isinstance(error, FileNotFoundError):
        return OperationError(f"{run.run} is gone already: somebody else has removed it")
    return OperationError(f"{run.run} cannot be removed: {error.strerror} ({run.path})")


def _patterns(run: RunDir) -> list[str]:
    """Return the checkpoint globs, as launched and as restarted, that refer to the run's own directory."""
    spec = storage.read_or_none(Spec, run.spec)
    templates = [spec.launch] if spec else []
    with contextlib.suppress(OSError, UnreadableRecord, TypeError, AttributeError):  # another program's file
        status = storage.read(Status, run.status)
        templates += [storage.from_json(LaunchTemplate, status.template)] if status and status.template else []
    found = [template.checkpoints for template in templates if template.checkpoints]
    return [one for one in found if not one.startswith(("/", "~")) and ".." not in Path(one).parts]


def _checkpoints(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the run's own checkpoints, none of them inside another.

    They are the folder in which the shipped trainers save, and whatever the profile's patterns match.
    """
    found = {RunDir(folder).checkpoints}
    for pattern in patterns:
        found.update(matching(folder, pattern))
    return sorted(path for path in found if found.isdisjoint(path.parents) and not _is_linked(path, folder))


def _is_linked(path: Path, folder: Path) -> bool:
    """True if the way from ``folder`` to ``path`` contains a symlink, so that it may lie elsewhere."""
    return any(place.is_symlink() for place in (path, *path.parents) if folder in place.parents)


def _move(found: Iterable[Path], folder: Path, target: Path) -> Path | None:
    """Move files and folders out of ``folder``, keeping their relative names; None if there were none."""
    for path in filter(_count_files, found):
        place = target / path.relative_to(folder)
        storage.make_private_folder(place.parent)
        with contextlib.suppress(FileNotFoundError):  # another remover, cleaning up, was faster
            path.rename(place)
            storage.sync_folder(place.parent)  # its new name must be on disk before anything is deleted
    return target if target.is_dir() else None


def _count_files(path: Path) -> int:
    return sum(stat.S_ISREG(info.st_mode) for info in _files(path))


def _device(path: Path) -> int:
    return path.stat().st_dev


def _files(path: Path) -> Iterator[os.stat_result]:
    """Yield the status of every file and folder from ``path`` down; links are not followed."""
    try:
        info = path.lstat()
        yield info
        names = list(os.scandir(path)) if path.is_dir() and not path.is_symlink() else []
    except OSError:
        return
    for entry in names:
        yield from _files(Path(entry.path))


def _delete_tree(folder: Path) -> str:
    """Delete a folder, or a link to one; return why something is left, empty if nothing is."""
    if folder.is_symlink():
        folder.unlink(missing_ok=True)
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        if folder.exists():
            shutil.rmtree(folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error)
    return ""
