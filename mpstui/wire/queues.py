"""Queue groups: who is next and how many may run at once. There is no daemon: each queued run does its own waiting.

``queue/<group>.json`` holds what people decided (slots, pause, order) and is edited under ``<group>.lock``. Who *has* a
slot is never written down: ``<group>.slot<k>`` is a kernel lock, inherited by the trainer, so a dead run's slot
frees itself. GPUs work the same way: ``cuda.device-<name>``.
"""

# No `from __future__ import annotations` here: reading follows the annotations of Queue.
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import liveness, storage
from .rundir import RunDir, slug

MOST_SLOTS = 256
"""Limited because every waiting run tries each slot once a second."""


class QueueBusy(OSError):
    """Somebody else is editing the group right now; try again."""


class Queue(NamedTuple):
    """``queue/<group>.json``."""

    group: str
    schema: int = 1
    slots: int = 1
    decided: bool = False
    """A person set the slots. Otherwise a run that is given GPUs of its own does not need a slot too."""
    devices: Sequence[str] = []
    """The CUDA devices that the group's newest run may choose from."""
    paused: bool = False
    """Nothing in this group starts, and no failure is passed on to the runs waiting for it."""
    order: Sequence[str] = []
    """Run ids, the next one first. A run adds itself when it begins to wait, and leaves when it starts or gives up."""
    calls: Sequence[str] = []
    """Ids of requests from other machines that were carried out here, the newest last."""

    @property
    def by_hand(self) -> bool:
        """True if a person set the slots: files from before ``decided`` show it by any number other than 1."""
        return self.decided or self.slots != 1


class QueueFiles(NamedTuple):
    """The files of one group."""

    folder: Path
    group: str

    @property
    def state(self) -> Path:
        """The group's decisions."""
        return self.folder / f"{slug(self.group)}.json"

    @property
    def lock(self) -> Path:
        """Held for the moment of an edit or a claim."""
        return self.folder / f"{slug(self.group)}.lock"

    def slot(self, number: int) -> Path:
        """The kernel lock of slot ``number`` (from 0)."""
        return self.folder / f"{slug(self.group)}.slot{number}"

    def device(self, name: str, share: int = 0) -> Path:
        """The kernel lock of a CUDA device, the same in every group; ``share`` > 0 if several runs share the device."""
        return self.folder / f"cuda.device-{slug(name, longest=80)}{f'.share{share}' if share else ''}"


def files_of(run: RunDir, group: str) -> QueueFiles:
    """The group's files beside the runs folder that holds ``run``: ``<state>/runs/<id>`` and ``<state>/queue``."""
    return QueueFiles(run.path.parent.parent / "queue", group)


def read(files: QueueFiles) -> Queue:
    """Return the group's decisions; by default one slot, not paused, nobody waiting.

    Raises:
        UnreadableRecord: the file holds something else.
    """
    return storage.read(Queue, files.state) or Queue(files.group)


def edit(files: QueueFiles, change: Callable[[Queue], Queue]) -> Queue:
    """Change a group; simultaneous editors take turns.

    Raises:
        QueueBusy: somebody else keeps the lock for longer than a moment.
        UnreadableRecord: the file holds something else; nothing was changed.
        OSError: it could not be written.
    """
    storage.make_private_folder(files.folder)
    lock = liveness.acquire(files.lock)
    if lock is None:
        raise QueueBusy(f"queue group {files.group} is being edited")
    try:
        before = read(files)
        after = change(before)
        if after != before or not files.state.exists():
            storage.write_json(files.state, after)
        return after
    finally:
        liveness.release(lock)
