"""Find the checkpoints of a run: their files, sizes and steps, which is the best, and whether they are complete."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING

from ...wire import storage
from ...wire.checkpoints import is_best, lacks_parts, matching, owner_of, told
from ...wire.heartbeat import CheckpointNote
from ...wire.owners import Claim, Owners
from ...wire.records import LaunchTemplate
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord
from ..model.snapshot import Checkpoint, Numbers, RunEvent
from .state import RunWitnesses

if TYPE_CHECKING:
    from ...wire.tensors import Health

MOST_CHECKPOINTS = 300
_MOST_QUESTIONS = 12
"""How many times to ask which run wrote a new file: a run reports a checkpoint only a moment after writing it."""
LOOK_SECONDS = 5.0
_LATE_SECONDS = 2.0
"""A file may seem written this much later than it was reported: clocks of machines differ, file times are rounded."""
_STEP = re.compile(r"(?:step|iter|iteration)s?[=_.-]?(\d+)", re.IGNORECASE)
_STEP_OF_FOLDER = re.compile(r"(?:step|iter|iteration|checkpoint|ckpt)s?[=_.-]?(\d+)", re.IGNORECASE)
_BESIDE_A_STEP = ("trainer_state.json", "random_states_", "scheduler.")
"""Files in checkpoint folders of transformers and accelerate, which count steps; other folders may count epochs."""
_TEMPORARY = re.compile(r"^\.|\.(?:tmp|temp|part|partial|incomplete)(?:\.|$)", re.IGNORECASE)
_ZIP_START, _ZIP_END, _ZIP_END_BYTES = b"PK\x03\x04", b"PK\x05\x06", 22


class CheckpointScanner:
    """Finds the checkpoints of one run; each is examined only once, unless it changes."""

    def __init__(self) -> None:
        self._contents: dict[tuple[str, int, int], tuple[bool, str | None]] = {}
        """By path, size and time: whether the checkpoint is complete, and the run named in it."""
        self._tensors: dict[tuple[str, int, float], Health | None] = {}
        self._strangers: tuple[Checkpoint, ...] = ()
        """Checkpoints found by the last scan that this run has not reported, or that changed since it did."""
        self._claims: dict[tuple[Path, float], Claim] = {}
        self._questions = 0

    def of_run(
        self, run: Path, seen: RunWitnesses, numbers: Numbers, events: Iterable[RunEvent]
    ) -> tuple[Checkpoint, ...]:
        """Return the checkpoints of a run directory, newest first, checked for NaN if its loss was ever not finite."""
        newest = numbers.checkpoint
        template = seen.spec.launch if seen.spec else None
        if seen.status is not None and seen.status.template:
            with contextlib.suppress(UnreadableRecord, TypeError, AttributeError):  # another program's file
                template = storage.from_json(LaunchTemplate, seen.status.template)
        folders = (run, Path(template.cwd)) if template else (run,)
        events = tuple(events)
        said = _told(events) or dict.fromkeys(told(run / "events.jsonl"), False)
        if newest is not None and Path(newest.path).is_absolute():  # its event may not have been written yet
            said.setdefault(Path(newest.path), False)
        pattern, steps = template.checkpoints if template else None, steps_told(newest, events)
        found = self.scan(pattern, folders, steps, said)
        if template is not None:
            found = self._with_owners(RunDir(run), template, found, _told_at(newest, events))
        diverged = not numbers.loss_is_finite or any("not_finite" in event.details for event in events)
        return self._with_nan(found) if diverged else found

    def _with_nan(self, found: tuple[Checkpoint, ...]) -> tuple[Checkpoint, ...]:
        """Mark those that hold NaN, back to the newest finite one, from which a new attempt would begin."""
        from ...wire.tensors import health, newest_finite  # only for trainings that diverged

        keys = {one.path: (str(one.path), one.size_bytes, one.time) for one in found if one.complete}

        def look(path: Path) -> Health | None:
            if keys[path] not in self._tensors:
                self._tensors[keys[path]] = health(path)
            return self._tensors[keys[path]]

        _, passed = newest_finite(keys, look)
        return tuple(one._replace(finite=one.path not in passed) for one in found)

    def _with_owners(
        self, run: RunDir, template: LaunchTemplate, found: tuple[Checkpoint, ...], told_at: Mapping[Path, float]
    ) -> tuple[Checkpoint, ...]:
        """Add to each checkpoint the other run that has written it, or may have.

        Args:
            told_at: when this run last reported each; a file that has changed since then may be another run's.
        """
        strangers = tuple(one for one in found if one.owner is None and one.time > told_at.get(one.path, 0.0))
        self._questions = self._questions + 1 if strangers == self._strangers else 0
        # This run will have reported a file it has just overwritten by the next look: until then, do not read the
        # records of all runs for it.
        asked = [one for one in strangers if self._questions or one.path not in told_at]
        if asked and self._questions < _MOST_QUESTIONS:
            owners = Owners(run, template, since=min(one.time for one in asked))
            self._claims = {(one.path, one.time): owners.claim(one.path, one.time) for one in asked}
        self._strangers = strangers
        claimed = (_claimed(one, self._claims.get((one.path, one.time))) for one in found)
        return tuple(_of_its_step(one, told_at.get(one.path)) for one in claimed)

    def scan(
        self,
        pattern: str | None,
        folders: tuple[Path, ...],
        steps: Mapping[str, int],
        said: Mapping[Path, bool] | None = None,
    ) -> tuple[Checkpoint, ...]:
        """Return the checkpoints, newest first.

        Args:
            pattern: glob, absolute or relative to the first folder that has a match.
            steps: step by path, from heartbeats and events. If there is no such file (the run was copied here), the
                step applies to a file of the same name.
            said: checkpoints that the training has reported, and whether each is the best.
        """
        said = said or {}
        paths = next((paths for folder in folders if (paths := _matches(folder, pattern))), [])
        paths = _newest(dict.fromkeys([*paths, *said]))
        known = set(map(str, paths))
        of_name = {Path(told).name: step for told, step in steps.items() if told not in known}
        seen = (self._examined(path, steps.get(str(path), of_name.get(path.name)), said) for path in paths)
        return tuple(sorted(_without_backups(filter(None, seen)), key=lambda one: -one.time))

    def _examined(
        self, path: Path, step: int | None, said: Mapping[Path, bool]
    ) -> tuple[os.stat_result, Checkpoint] | None:
        """Return the status and the checkpoint at a path; None if it is gone.

        Args:
            step: the reported one; if None, it is taken from the name.
        """
        try:
            found, is_file = path.stat(), path.is_file()
            size = found.st_size
            counts_steps, lacks = False, False
            if not is_file:
                files = [entry for entry in os.scandir(path) if entry.is_file(follow_symlinks=False)]
                size = sum(entry.stat().st_size for entry in files)
                lacks = lacks_parts(entry.name for entry in files)
                counts_steps = any(entry.name.startswith(_BESIDE_A_STEP) for entry in files)
        except OSError:
            return None
        key = (str(path), found.st_size, found.st_mtime_ns)
        if key not in self._contents:
            if len(self._contents) > 4 * MOST_CHECKPOINTS:
                self._contents.clear()
            self._contents[key] = (is_whole(path) if is_file else not lacks, owner_of(path))
        whole, owner = self._contents[key]
        return found, Checkpoint(
            path=path,
            size_bytes=size,
            time=found.st_mtime,
            step=step_of(path.name, folder=counts_steps) if step is None else step,
            best=whole and (is_best(path.stem) or said.get(path, False)),
            complete=whole,
            owner=owner,
        )


def _claimed(one: Checkpoint, claim: Claim | None) -> Checkpoint:
    if claim is None or claim.other is None:
        return one
    return (
        one._replace(rival=claim.other) if claim.own else one._replace(owner=claim.other, step=step_of(one.path.name))
    )


def _of_its_step(one: Checkpoint, told_at: float | None) -> Checkpoint:
    """Drop the reported step if the file has been overwritten since: the new report is still to come."""
    is_newer = told_at is not None and one.time > told_at + _LATE_SECONDS
    return one._replace(step=step_of(one.path.name)) if is_newer else one


def _told_at(newest: CheckpointNote | None, events: Iterable[RunEvent]) -> dict[Path, float]:
    """Return when a training last reported each of its checkpoints, in Unix seconds."""
    found = dict[Path, float]()
    for event in events:
        path = event.details.get("path")
        if event.event == "checkpoint" and isinstance(path, str):
            found[Path(path)] = event.time
    if newest is not None and newest.time is not None:
        found[Path(newest.path)] = max(newest.time, found.get(Path(newest.path), 0.0))
    return found


def _without_backups(seen: Iterable[tuple[os.stat_result, Checkpoint]]) -> list[Checkpoint]:
    """Keep only the oldest of those with the same name, size and time: trackers copy checkpoints into their stores."""
    first: dict[tuple[str, int, int], tuple[int, Checkpoint]] = {}
    for found, one in seen:
        alike = one.path.name, one.size_bytes, found.st_mtime_ns
        begun, other = first.get(alike, (found.st_ctime_ns, one))
        kept = other if begun <= found.st_ctime_ns else one
        first[alike] = min(begun, found.st_ctime_ns), kept._replace(best=one.best or other.best)
    return [one for _, one in first.values()]


def steps_told(newest: CheckpointNote | None, events: Iterable[RunEvent]) -> dict[str, int]:
    """Return the step of each checkpoint that a heartbeat or the events name, by path."""
    steps = {newest.path: newest.step} if newest is not None and newest.step is not None else {}
    for event in events:
        path, step = event.details.get("path"), event.details.get("step")
        if event.event == "checkpoint" and isinstance(path, str) and isinstance(step, int):
            steps[path] = step
    return steps


def _told(events: Iterable[RunEvent]) -> dict[Path, bool]:
    """Return the checkpoints that a training has reported, wherever they are, and whether each is the best.

    Of several reported as the best, only the last one counts.
    """
    found: dict[Path, bool] = {}
    for event in events:
        path = event.details.get("path")
        if event.event == "checkpoint" and isinstance(path, str) and Path(path).is_absolute():
            if event.details.get("best") is True:
                found = dict.fromkeys(found, False)
            found[Path(path)] = event.details.get("best") is True
    return found


def step_of(name: str, *, folder: bool = False) -> int | None:
    """Return the step in a name: ``step_1200.pt`` or, if ``folder``, ``checkpoint-500`` (transformers).

    Without a word for steps it is unknown: the number in ``checkpoint-7.pth.tar`` (timm) is an epoch.
    """
    found = (_STEP_OF_FOLDER if folder else _STEP).findall(name)
    return int(found[-1]) if found else None


def is_whole(path: Path) -> bool:
    """True if a file that begins like a zip archive (as ``torch.save`` has written since 1.6) also ends like one.

    A file in another format is taken as complete unless it is empty: there is no cheap way to tell.
    """
    try:
        with storage.open_file(path) as file:
            if file.read(4) != _ZIP_START:
                return os.fstat(file.fileno()).st_size > 0
            file.seek(max(0, os.fstat(file.fileno()).st_size - _ZIP_END_BYTES - 256))
            return _ZIP_END in file.read()
    except OSError:
        return False


def _matches(folder: Path, pattern: str | None) -> list[Path]:
    found = matching(folder, pattern or "checkpoints/*.pt")
    return [path for path in found if not _TEMPORARY.search(path.name)]


def _newest(paths: Collection[Path]) -> list[Path]:
    """Return the most recently written paths, at most ``MOST_CHECKPOINTS``."""
    if len(paths) <= MOST_CHECKPOINTS:
        return list(paths)
    return nlargest(MOST_CHECKPOINTS, paths, key=lambda path: storage.stamp(path) or (0, 0, 0))
