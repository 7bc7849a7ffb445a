"""Find the newest complete checkpoint of a run, without torch and not by its name alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..wire import storage
from ..wire.checkpoints import is_best, lacks_parts, matching, told
from ..wire.owners import Owners
from ..wire.records import LaunchTemplate, Spec
from ..wire.rundir import RunDir
from ..wire.tensors import newest_finite
from .machine import Clock
from .witnesses import newest_beat

SETTLE_SECONDS = 2.0
"""A file modified this recently is checked twice."""
_TEMPORARY = re.compile(r"^\.|~$|[._-](?:tmp|temp|part|partial|incomplete|writing)(?:[._-]|$)|^tmp", re.IGNORECASE)
_ZIP_END_SEARCH_BYTES = 22 + 65535
"""A zip's end record has 22 bytes and may be followed by up to 65535 bytes of comment (PKWARE appnote 4.3.16)."""
SAVING_POLL_SECONDS = 0.5
QUIET_SECONDS = 5.0
"""A writer that pauses this long is assumed to be done."""


class Found(NamedTuple):
    """One checkpoint; a folder is one too, with the time of its newest file and the total size."""

    path: Path
    size_bytes: int
    time: float

    @property
    def best(self) -> bool:
        return is_best(self.path.stem)


def candidates(template: LaunchTemplate, run: RunDir) -> tuple[list[Found], bool]:
    """Return what the template's pattern finds, newest first, and whether other runs may save there too.

    The pattern is tried in the run directory, then in the program's working folder; if nothing is found in either, the
    checkpoints that the training itself reported count, the newest report first. Temporary names are left out.
    """
    pattern, cwd = template.checkpoints, Path(template.cwd)
    found = _measured(matching(run.path, pattern)) if pattern else []
    shared = bool(pattern) and (not found or run.path not in found[0].path.parents)
    found = found or (_measured(matching(cwd, pattern)) if pattern else [])
    return (found, shared) if found else ([item for path in told(run.events) if (item := measure(path))], True)


def _measured(paths: Iterable[Path]) -> list[Found]:
    found = (item for path in paths if (item := measure(path)))
    return sorted(found, key=lambda item: (item.time, item.path.name), reverse=True)


class Choice(NamedTuple):
    """The checkpoint to resume from; None if there is none."""

    found: Found | None = None
    not_finite: Sequence[Path] = ()
    """Newer ones that were passed over because they hold NaN, the newest first."""


def choose(found: Iterable[Found], *, best: bool, sleep: Callable[[float], None], now: float) -> Choice:
    """Choose the newest complete and finite one; with ``best``, only of those named as the best."""
    wanted = {item.path: item for item in found if item.best or not best}
    path, passed = newest_finite(path for path, item in wanted.items() if is_complete(item, sleep=sleep, now=now))
    return Choice(wanted[path] if path is not None else None, passed)


class Picked(NamedTuple):
    """The checkpoint that an attempt is to resume from."""

    path: str | None = None
    note: str = ""
    """A remark about it or about files next to it, or why there is none."""
    not_finite: tuple[str, ...] = ()
    """Newer ones that were passed over because they hold NaN."""

    @property
    def not_finite_words(self) -> str:
        """``a.pt and 2 others hold NaN``; empty if none was passed over."""
        if not self.not_finite:
            return ""
        newest, count = Path(self.not_finite[0]).name, len(self.not_finite)
        others = f" and {count - 1} other{'' if count == 2 else 's'}" if count > 1 else ""
        return f"{newest}{others} {'holds' if count == 1 else 'hold'} NaN"


def pick(run: RunDir, template: LaunchTemplate, clock: Clock, *, best: bool = False) -> Picked:
    """Pick the newest complete and finite checkpoint of a run."""
    found = split_by_owner(run, template)
    chosen, passed = choose(found.own, best=best, sleep=clock.sleep, now=clock.wall())
    picked = Picked(str(chosen.path) if chosen else None, not_finite=tuple(map(str, passed)))
    words = picked.not_finite_words
    if chosen is None:
        none = (
            f"no checkpoint is finite ({words})" if words else f"there is no complete checkpoint yet{_torn(found.own)}"
        )
        note = f"from step 0: {none}"
    else:
        note = f"the newer {words}" if words else ""
    return picked._replace(note="; ".join(filter(None, (note, found.remark(chosen, best=best)))))


def _torn(found: Sequence[Found]) -> str:
    """Return a remark on checkpoints of which none is complete: the newest, and how many others there are."""
    others = f" and {len(found) - 1} other{'' if len(found) == 2 else 's'}" if len(found) > 1 else ""
    return f" ({found[0].path.name}{others} {'is' if len(found) == 1 else 'are'} incomplete)" if found else ""


def measure(path: Path) -> Found | None:
    """Return size and time of a checkpoint file or folder; None if it has a temporary name or is gone."""
    if is_temporary(path.name):
        return None
    try:
        if not path.is_dir():
            info = path.stat()
            return Found(path, info.st_size, info.st_mtime)
        files = [entry.stat() for entry in matching(path, "**/*") if entry.is_file()]
    except OSError:
        return None
    if not files:
        return None
    return Found(path, sum(info.st_size for info in files), max(info.st_mtime for info in files))


def is_temporary(name: str) -> bool:
    """True for a name that writers use until they rename the finished file."""
    return _TEMPORARY.search(name) is not None


def is_complete(item: Found, *, sleep: Callable[[float], None], now: float) -> bool:
    """True if a checkpoint seems complete: not empty, no longer growing, and with its format's end mark."""
    if item.size_bytes == 0:
        return False
    if abs(now - item.time) < SETTLE_SECONDS:
        sleep(0.25)
        if measure(item.path) != item:
            return False
    files = [item.path] if item.path.is_file() else [path for path in matching(item.path, "**/*") if path.is_file()]
    if lacks_parts(path.name for path in files):
        return False
    return all(_is_whole(path) for path in files)


def activity(template: LaunchTemplate, run: RunDir) -> tuple[int, float, int]:
    """Return numbers that change while a checkpoint is written, temporary files included: count, newest time, bytes."""
    if not template.checkpoints:
        return (0, 0.0, 0)
    pattern = str(Path(template.checkpoints).parent / "*")
    places = [*matching(run.path, pattern), *matching(Path(template.cwd), pattern)]
    infos = [info for path in places if (info := storage.stat_of(path))]
    return (len(infos), max((info.st_mtime for info in infos), default=0.0), sum(info.st_size for info in infos))


def _is_whole(path: Path) -> bool:
    try:
        with storage.open_file(path) as file:
            head = file.read(8)
            if head.startswith(b"PK\x03\x04"):
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _ZIP_END_SEARCH_BYTES))
                return b"PK\x05\x06" in file.read()
            if path.suffix == ".safetensors":
                return _safetensors_is_whole(head, file.read, path.stat().st_size)
    except OSError:
        return False
    return True


def _safetensors_is_whole(head: bytes, read: Callable[[int], bytes], size: int) -> bool:
    """True if the file reaches the end of the last tensor, by its header (8 bytes of length, then JSON)."""
    length = int.from_bytes(head, "little")
    if len(head) < 8 or length > size - 8:
        return False
    try:
        header = json.loads(read(length))
        ends = [item["data_offsets"][1] for name, item in header.items() if name != "__metadata__"]
        return 8 + length + max(ends, default=0) <= size
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return False


class ByOwner(NamedTuple):
    """The files that a run's pattern finds, by owner, newest first."""

    own: list[Found]
    passed_over: list[tuple[Found, str | None]]
    """Files of other runs, or of no known run (None)."""
    doubtful: Mapping[Path, str]
    """Files counted as this run's that another run, saving into the folder at the same time, may have written."""

    def remark(self, chosen: Found | None, *, best: bool = False) -> str:
        """Return a remark on other runs' files if ``chosen`` is taken; usually empty."""
        if chosen is not None and chosen.path in self.doubtful:
            return f"run {self.doubtful[chosen.path]} saved there at the same time and may have written it"
        kind = ((item, name) for item, name in self.passed_over if item.best or not best)
        newer = next(((item, name) for item, name in kind if chosen is None or item.time > chosen.time), None)
        if newer is None:
            return ""
        whose = f"is of run {newer[1]}" if newer[1] else "was not written while this run trained"
        return f"{newer[0].path} {whose}; --from PATH uses it anyway"


def saved_since(run: RunDir, template: LaunchTemplate, moment: float | None) -> bool:
    """True if the run has a checkpoint of its own from after ``moment``, Unix seconds."""
    return moment is not None and any(item.time >= moment for item in split_by_owner(run, template).own)


def split_by_owner(run: RunDir, template: LaunchTemplate) -> ByOwner:
    """Tell a run's own checkpoints from those of other runs that its pattern finds too."""
    found, shared = candidates(template, run)
    if not shared:
        return ByOwner(found, [], {})
    owners = Owners(run, template)
    claims = [(item, owners.claim(item.path, item.time)) for item in found]
    return ByOwner(
        [item for item, claim in claims if claim.own],
        [(item, claim.other) for item, claim in claims if not claim.own],
        {item.path: claim.other for item, claim in claims if claim.own and claim.other},
    )


class SavingWatch:
    """Tells whether a checkpoint is being written right now: the trainer says so, or files there change."""

    def __init__(self, run: RunDir, spec: Spec, template: LaunchTemplate, attempt: int, clock: Clock) -> None:
        self._run, self._spec, self._template, self._attempt = run, spec, template, attempt
        self._clock = clock
        self._figure = activity(template, run)
        age = clock.wall() - self._figure[1]
        # Even at this first look, a file written seconds ago counts as growing: a supervisor that takes over in the
        # middle of a stop must not kill a writer whose grace period is over.
        self._changed_at = clock.monotonic() - age if 0.0 <= age < QUIET_SECONDS else None
        self._poll_at = 0.0
        self._by_word = False

    def __call__(self) -> bool:
        now = self._clock.monotonic()
        if now >= self._poll_at:
            self._poll_at = now + SAVING_POLL_SECONDS
            beat, figure = newest_beat(self._run, self._spec, self._attempt), activity(self._template, self._run)
            self._by_word = beat is not None and beat.phase == "save"
            if figure != self._figure:
                self._figure, self._changed_at = figure, now
        return self._by_word or (self._changed_at is not None and now - self._changed_at < QUIET_SECONDS)
