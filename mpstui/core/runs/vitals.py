"""The signs of life of one run, measured between refreshes."""

from __future__ import annotations

from collections import deque
from statistics import median

from ...wire.liveness import Process
from .health import Signs
from .sources import Sources
from .witness import Machine

PAUSES = 30


class Vitals:
    """Remembers when the output last grew and how long it usually pauses."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._output: float | None = None
        self._pauses: deque[float] = deque(maxlen=PAUSES)

    def signs(self, sources: Sources, trainer: Process | None, *, paused: bool) -> Signs:
        """The signs at this moment."""
        now = self._machine.clock()
        self._note_output(sources.output_changed)
        file, silence = sources.beating.file, sources.beating.silence
        beat = file.beat if file else None
        progress = sources.pace.progress
        slept = silence.slept if silence else 0.0
        return Signs(
            phase=beat.phase if beat else None,
            beat_age=silence.awake if silence else None,
            promise=beat.expect_next_in if beat else None,
            steps_done=sources.has_steps,
            step_age=self._age(progress.advanced_at, slept),
            usual_step_seconds=progress.seconds_per_step,
            output_age=self._age(self._output, slept),
            usual_output_seconds=median(self._pauses) if len(self._pauses) > 2 else None,
            paused=paused,
            late_rank=sources.beating.late_rank,
            process_state=trainer.state if trainer else None,
            slept_seconds=slept,
            slept_before_seconds=file.slept_before(now) if file else 0.0,
        )

    def _age(self, moment: float | None, slept: float) -> float | None:
        return None if moment is None else max(0.0, self._machine.clock() - moment - slept)

    def _note_output(self, changed: float | None) -> None:
        if changed is None or changed == self._output:
            return
        if self._output is not None and changed > self._output:
            self._pauses.append(changed - self._output)
        self._output = changed
