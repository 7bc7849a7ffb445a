"""The logbook of one run, fed with pictures of it."""

from __future__ import annotations

from mpstui.core.runs.snapshot import RunSnapshot, State
from mpstui.core.telemetry.logbook import Logbook, Outlook
from mpstui.core.telemetry.model import SystemSample, TreeSample
from mpstui.core.telemetry.recording import TrainerFacts
from mpstui.wire.rundir import RunDir


class RunLogbook:
    """Notes what is sampled while the run's processes live; afterwards it only recalls."""

    def __init__(self, snapshot: RunSnapshot) -> None:
        # What mpstui did not start may lie in a folder of somebody else's: nothing is written there.
        watched = snapshot.state is State.WATCHED
        self._book = Logbook(None if watched else RunDir(snapshot.dir))

    def look(self, snapshot: RunSnapshot, system: SystemSample, tree: TreeSample | None) -> Outlook:
        """What is known of the run with this sample."""
        trainer = trainer_facts(snapshot)
        if snapshot.state.active and (snapshot.pid is not None or snapshot.state is State.WATCHED):
            return self._book.note(system, tree, trainer)
        return self._book.recall(trainer)

    def close(self) -> None:
        """Leave the file to another screen."""
        self._book.close()


def trainer_facts(snapshot: RunSnapshot) -> TrainerFacts:
    """What of a picture telemetry keeps."""
    memory = snapshot.memory
    return TrainerFacts(
        attempt=snapshot.attempt,
        started=snapshot.started,
        device=snapshot.device.type,
        step=snapshot.step,
        epoch=snapshot.epoch,
        allocated=memory.allocated,
        driver=memory.driver,
        limit=memory.limit,
        footprint=memory.footprint,
    )
