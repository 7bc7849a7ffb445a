"""Reads stable-baselines3, which counts the steps of its environments, not those of its optimizers.

Tried with stable-baselines3 2.9, never imported here.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Optional

from ..wire.heartbeat import CheckpointNote

if TYPE_CHECKING:
    from .watch import Watch

_NO_METRICS = frozenset(("time/iterations", "time/time_elapsed", "time/total_timesteps", "time/fps", "train/n_updates"))
_OTHER_NAMES = {"train/loss": "loss", "train/learning_rate": "lr"}
_MOST_POINTS = 1000


class StableBaselines:
    """Watches the algorithm that trains in this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._model: Any = None
        self._newest: dict[str, float] = {}
        self._waiting: deque[tuple[int, dict[str, Optional[float]]]] = deque(maxlen=_MOST_POINTS)

    def after_setup(self, result: Any, model: Any, *args: Any, **kwargs: Any) -> None:
        """After ``BaseAlgorithm._setup_learn``."""
        self._model, self._watch.trainer = model, self.read

    def before_feedback(self, model: Any, *args: Any, **kwargs: Any) -> None:
        """Before ``BaseAlgorithm._update_info_buffer``: its environments have made a step."""
        if model is self._model:
            self._watch.goes_on(str(model.device.type))

    def before_dump(self, logger: Any, step: int = 0) -> None:
        """Before ``Logger.dump``, which clears what was logged."""
        model = self._model
        if model is None or logger is not model._logger:
            return
        named = ((_OTHER_NAMES.get(name, name), value) for name, value in logger.name_to_value.items())
        found = {name: float(value) for name, value in named if name not in _NO_METRICS and _is_number(value)}
        if found:
            self._newest.update(found)
            self._waiting.append((int(model.num_timesteps), dict(found)))

    def after_save(self, result: Any, model: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        """After ``BaseAlgorithm.save``."""
        if model is self._model and isinstance(path, (str, os.PathLike)):
            written = os.path.abspath(path)  # noqa: PTH100
            written += "" if os.path.splitext(written)[1] else ".zip"  # noqa: PTH122
            self._watch.saved(CheckpointNote(written, int(model.num_timesteps), time.time()))

    def read(self) -> dict[str, Any]:
        """Return heartbeat fields, and what was logged since the last call."""
        model, step = self._model, int(self._model.num_timesteps)
        waiting, self._waiting = self._waiting, deque(maxlen=_MOST_POINTS)
        done, seconds = model.num_timesteps - model._num_timesteps_at_start, time.time() - model.start_time / 1e9
        return {
            "step": step,
            "steps": max(int(model._total_timesteps), step) or None,  # the last rollout exceeds it
            # Averaged over the whole training, which alternates between collecting samples and learning from them.
            "steps_per_second": done / seconds if seconds > 1 and done > 0 else None,
            "loss": self._newest.get("loss"),
            "metrics": {name: value for name, value in self._newest.items() if name not in ("loss", "lr")},
            "points": list(waiting),
        }


def _is_number(value: Any) -> bool:
    return not isinstance(value, (str, bool, bytes)) and hasattr(value, "__float__") and getattr(value, "size", 1) == 1
