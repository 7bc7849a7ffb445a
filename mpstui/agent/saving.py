"""What a program saves and where, and its own function that saves on request."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Optional

from ..wire import checkpoints, heartbeat, storage
from ..wire.heartbeat import CheckpointNote
from ..wire.records import LaunchRecord, Spec
from .reporter import place_of

LONGEST_SECONDS = 300.0
_HOOK = "mpstui_save"
NO_HOOK = (
    f"this program saves by its own rules: its main script has no function `{_HOOK}` to call; with one that returns "
    'the path, or with report.requested("save") in its loop, it would save now'
)


_PARAMETERS = ("weight", "bias")
_OF_WEIGHTS = "_metadata"
"""An attribute that torch gives to the dictionary from ``Module.state_dict``, whatever the parameters are called."""
_DEEPEST = 3


class Written:
    """The checkpoints that were written, and which of them have not been reported."""

    def __init__(self) -> None:
        self._newest: CheckpointNote | None = None
        self._untold: dict[str, tuple[CheckpointNote, bool]] = {}
        self._files: dict[str, tuple[int, int, int]] = {}
        """Inode, time and size of each file, to find it again under another name."""
        self._saved: dict[str, tuple[CheckpointNote, bool]] = {}
        self._copied: dict[str, str] = {}
        """Copies that have not been reported, and the file that each is a copy of."""

    @property
    def newest(self) -> CheckpointNote | None:
        """The checkpoint that was written last, under its current name."""
        self._follow()
        return self._newest

    def add(self, path: str, step: int | None, moment: float | None = None, *, weights_only: bool = False) -> None:
        """Add one written at ``moment`` (Unix seconds; default: now); ``weights_only``: it has no optimizer's state."""
        self._follow()
        path = os.path.abspath(path)  # noqa: PTH100
        self._newest = CheckpointNote(path, step, moment or time.time())
        self._untold.pop(path, None)
        self._untold[path] = self._saved[path] = self._newest, weights_only
        file = _identity(path)
        if file is not None:
            self._files[path] = file

    def after_copy(self, result: Any, src: Any, dst: Any, *args: Any, **kwargs: Any) -> None:
        """After ``shutil.copyfile``, with which many programs make their best checkpoint. The original stays newest."""
        path, place = path_of(src), path_of(dst)
        self._follow()
        note, weights_only = self._saved.get(os.path.abspath(path or ""), (None, False))  # noqa: PTH100
        if note is None or place is None:
            return
        place, is_told = os.path.abspath(place), note.path not in self._untold  # noqa: PTH100
        for one in (place, note.path):
            self.add(one, note.step, note.time, weights_only=weights_only)
        if is_told:
            del self._untold[note.path]
        self._copied[place] = note.path

    def untold(self) -> list[tuple[CheckpointNote, dict[str, Any]]]:
        """Return the checkpoints since the last call, the newest of each file, with details where they apply.

        These are ``weights_only``, and ``copy_of`` with the path of the original.
        """
        self._follow()
        for path, (note, weights_only) in list(self._untold.items()):
            for place in _names_of(path):
                if place not in self._untold:  # a link to it: some programs link their best checkpoint
                    self._untold[place], self._copied[place] = (note._replace(path=place), weights_only), path
        found = []
        for path, (note, weights_only) in self._untold.items():
            source = self._copied.get(path)
            if source is None or not _is_backup(path, source):
                besides = {"weights_only": weights_only or None, "copy_of": source}
                found.append((note, {name: one for name, one in besides.items() if one is not None}))
        self._untold, self._copied = {}, {}
        self._files = {path: file for path, file in self._files.items() if self._newest and path == self._newest.path}
        return found

    def _follow(self) -> None:
        """Find out what files were renamed to: many programs rename a checkpoint when it is complete."""
        for path in [path for path, file in self._files.items() if _identity(path) != file]:
            place = _found_again(path, self._files.pop(path))
            if place is not None and self._newest is not None and self._newest.path == path:
                self._newest = self._newest._replace(path=place)
            if place is not None and path in self._saved:
                note, weights_only = self._saved.pop(path)
                self._saved[place] = note._replace(path=place), weights_only
            if place is not None and path in self._untold:
                note, weights_only = self._untold.pop(path)
                self._untold[place] = note._replace(path=place), weights_only


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        there = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return there.st_ino, there.st_mtime_ns, there.st_size


def _is_backup(path: str, source: str) -> bool:
    """Return whether a copy has the name and time of its source, like those that trackers keep for themselves."""
    copy, original = _identity(path), _identity(source)
    is_same = copy is not None and original is not None and copy[1:] == original[1:]
    return is_same and os.path.basename(path) == os.path.basename(source)  # noqa: PTH119


def _found_again(path: str, file: tuple[int, int, int]) -> str | None:
    """Return the new path of a file that was at ``path``, in the same folder (the first of several); None if gone."""
    return next((place for place in _with_inode(path, file[0]) if _identity(place) == file), None)


def _names_of(path: str) -> list[str]:
    """Return the paths that a file has in its folder: one, unless links to it were made there."""
    try:
        there = os.stat(path)  # noqa: PTH116
    except OSError:
        return []
    return _with_inode(path, there.st_ino) if there.st_nlink > 1 else [path]


def _with_inode(path: str, inode: int) -> list[str]:
    folder = os.path.dirname(path)  # noqa: PTH120
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.inode() == inode)
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names]  # noqa: PTH118


def parts_saved(obj: Any) -> tuple[bool, bool]:
    """Return whether saved data holds a network's weights, and whether an optimizer's state, judging by names alone.

    This runs none of the program's code: a configuration saved beside them may raise at a name it does not know.
    """
    weights = state = False
    for one in _parts(obj, 0):
        if isinstance(one, dict):
            state = state or "param_groups" in one
            weights = weights or _has(one, _OF_WEIGHTS)
            weights = weights or any(isinstance(name, str) and name.endswith(_PARAMETERS) for name in one)
        else:
            weights = weights or _has(one, "named_parameters")
            state = state or _has(one, "param_groups")
    return weights, state


def _parts(obj: Any, depth: int) -> Iterator[Any]:
    yield obj
    if depth < _DEEPEST and isinstance(obj, (dict, list, tuple)):
        for one in dict.values(obj) if isinstance(obj, dict) else obj[:100]:
            if isinstance(one, (dict, list, tuple)) or _has(one, "named_parameters"):
                yield from _parts(one, depth + 1)


def _has(obj: Any, name: str) -> bool:
    return inspect.getattr_static(obj, name, None) is not None


def hook() -> Callable[[], Any] | None:
    """Return ``def mpstui_save() -> path`` of the main script, to be called after a step; None if there is none."""
    found = getattr(sys.modules.get("__main__"), _HOOK, None)
    return found if callable(found) else None


def saved(by: Callable[[], Any], step: int | None) -> tuple[bool, str]:
    """Have the program save; return whether it did, and a sentence that says so."""
    try:
        path = by()
    except Exception as error:  # noqa: BLE001 - a checkpoint that fails must not cost the training
        return False, f"`{_HOOK}` failed: {type(error).__name__}: {error}"
    return True, f"saved at step {step}" + (f": {path}" if isinstance(path, (str, os.PathLike)) else "")


def path_of(file: Any) -> str | None:
    """Return the path that something is saved to; None for a buffer."""
    name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    return os.fspath(name) if isinstance(name, (str, os.PathLike)) else None


def step_begun_from(environ: Mapping[str, str], loaded: Iterable[str] = ()) -> Optional[int]:
    """Return the step of the checkpoint that this attempt resumes from; None if it is not on record.

    That is the checkpoint mpstui started it from, else one that was ``loaded`` and that an earlier attempt reported:
    its step is in the events. For a branch, which begins with another run's checkpoint, it is in the spec.
    """
    if not environ.get("MPSTUI_RUN_DIR"):
        return None
    run, attempt = place_of(environ)
    launch = storage.read_or_none(LaunchRecord, run.attempt(attempt).launch)
    given = launch.checkpoint if launch is not None else None
    for path in ([given] if given else []) + [*loaded]:
        told = checkpoints.last_told(run.events, path) or {}
        teller, step = heartbeat.integer(told.get("attempt")), heartbeat.integer(told.get("step"))
        is_known = path == given or told.get("weights_only") is not True  # loading weights alone need not be a resume
        if teller is not None and teller < attempt and is_known:
            beat = heartbeat.read(run.attempt(teller).heartbeat())
            return None if beat is not None and beat.step_from == "process" else step
    spec = storage.read_or_none(Spec, run.spec) if given else None
    branch = spec.branch if spec is not None else None
    return branch.step if branch is not None and branch.checkpoint == given else None
