"""Stable-Baselines3: ``model.learn(..., callback=MpstuiCallback())``. Tried with stable-baselines3 2.9."""

from __future__ import annotations

import os
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

from ..reporting import report
from .requests import clear_cache_if_asked, harmless

SAVING_SECONDS = 600.0
_NO_METRICS = frozenset(("time/iterations", "time/time_elapsed", "time/total_timesteps", "time/fps", "train/n_updates"))


@harmless
class MpstuiCallback(BaseCallback):
    """Reports timesteps as steps and what the algorithm logs; saves, clears the cache or stops on request."""

    goes_on = True
    """What its hooks return where they are off: for anything else learning stops."""

    def __init__(self, save_to: str = "asked.zip") -> None:
        """``save_to``: where the model is saved on request; ``load`` of its class reads it."""
        super().__init__()
        self._save_to = os.path.abspath(save_to)

    def _on_training_start(self) -> None:
        known = {name: value for name, value in vars(self.model).items() if isinstance(value, (int, float, str, bool))}
        report.config({"algorithm": type(self.model).__name__, **{n: v for n, v in known.items() if n[0] != "_"}})
        report.takes("save", "clear_cache", "stop")
        report(step=self.model.num_timesteps, steps=self.model._total_timesteps, device=self.model.device)
        self.model.logger.output_formats.append(_Writer())
        report.phase("training")

    def _on_step(self) -> bool:
        step, steps = self.model.num_timesteps, self.model._total_timesteps
        report(step=step, steps=max(step, steps))  # the last rollout goes beyond it
        clear_cache_if_asked()
        stops = report.requested("stop")
        if report.requested("save") or stops:
            with report.phase("saving", expect_seconds=SAVING_SECONDS):
                self.model.save(self._save_to)
            report.checkpoint(self._save_to, step=self.model.num_timesteps)
        return not stops


class _Writer(KVWriter):
    """Takes what the algorithm logs."""

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        known = {name: value for name, value in key_values.items() if name not in _NO_METRICS}
        known = {name: value for name, value in known.items() if not isinstance(value, str)}
        loss, lr = known.pop("train/loss", None), known.pop("train/learning_rate", None)
        report(known, loss=loss, lr=lr, step=step)

    def close(self) -> None:
        """Nothing is open."""
