"""Accelerate: ``Accelerator(log_with=MpstuiTracker())``. Tried with accelerate 1.15."""

from __future__ import annotations

from typing import Any

from accelerate.tracking import GeneralTracker

from ..reporting import Report, report
from .phases import tell_of_saves

_TOTALS = {"num_train_epochs": "epochs", "num_epochs": "epochs", "epochs": "epochs", "max_train_steps": "steps"}
"""What scripts call the planned total in the config that they pass to ``accelerator.init_trackers``."""


class MpstuiTracker(GeneralTracker):
    """Reports what ``accelerator.log`` gets: counters (``epoch``, ``epochs``, ``steps``) and any metric.

    With :meth:`watch`, the folders that ``accelerator.save_state`` writes are reported as checkpoints.
    """

    name = "mpstui"
    requires_logging_directory = False
    main_process_only = False  # each rank has its heartbeat; only rank 0's numbers are written

    def __init__(self, run_name: str = "", **kwargs: Any) -> None:
        super().__init__()
        self._before: int | None = None
        """Steps of earlier attempts that the loop does not count; None: not known yet."""

    @property
    def tracker(self) -> Report:
        """``report``, for what trackers lack: phases, texts, images, requests."""
        return report

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        report.config(values)
        totals = {_TOTALS[name]: value for name, value in values.items() if name in _TOTALS and type(value) is int}
        report({name: total for name, total in totals.items() if total > 0})

    def log(self, values: dict[str, Any], step: int | None = None, **kwargs: Any) -> None:
        report(values, step=step if step is None else self._of_the_run(step))

    def _of_the_run(self, step: int) -> int:
        """Return the run's step, even if the loop counts from 0 after a resume: then earlier steps are added."""
        told: Any = report.counted()  # None from an older copy of report()
        counted, begun = told or (0, 0)
        if self._before is None and counted:
            self._before = begun if abs(step + begun - counted) <= 1 else 0
        return step + (self._before or 0)

    def watch(self, accelerator: Any) -> None:
        """Report what ``accelerator.save_state`` writes from now on as checkpoints."""
        tell_of_saves(accelerator, "save_state", lambda folder, *_, **__: report.checkpoint(folder))
