"""Stable-Baselines3: ``model.learn(..., callback=MpstuiCallback())``. Tried with stable-baselines3 2.9."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback, EventCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import KVWriter
from stable_baselines3.common.vec_env import (
    VecEnvWrapper,
    VecNormalize,
    sync_envs_normalization,
    unwrap_vec_normalize,
)

from ..reporting import report
from .phases import SAVING_SECONDS
from .requests import break_off_if_stopped, clear_cache_if_asked, evaluate_if_asked, harmless

_NO_METRICS = frozenset(("time/iterations", "time/time_elapsed", "time/total_timesteps", "time/fps", "train/n_updates"))


@harmless
class MpstuiCallback(BaseCallback):
    """Reports timesteps as steps and what the algorithm logs; saves, evaluates, clears the cache or stops on request.

    It evaluates in ``eval_env``, or in a copy of the environment of an ``EvalCallback`` beside it.
    """

    goes_on = True
    """What its hooks return when they are off: anything else would end the training."""

    def __init__(self, save_to: str = "asked.zip", *, eval_env: Any = None, n_eval_episodes: int = 10) -> None:
        """Set what requests need.

        Args:
            save_to: where to save the model, for its class's ``load``.
            eval_env: the environment to evaluate in, which nothing else uses.
            n_eval_episodes: episodes per evaluation in it.
        """
        super().__init__()
        self._save_to = os.path.abspath(save_to)
        self._given, self._episodes, self._deterministic = eval_env, n_eval_episodes, True
        self._eval_env: Any = None

    def _on_training_start(self) -> None:
        known = {name: value for name, value in vars(self.model).items() if isinstance(value, (int, float, str, bool))}
        report.config({"algorithm": type(self.model).__name__, **{n: v for n, v in known.items() if n[0] != "_"}})
        report.takes("save", "clear_cache", "stop")
        self._find_environment()
        report(step=self.model.num_timesteps, steps=self.model._total_timesteps, device=self.model.device)
        self.model.logger.output_formats.append(_Writer())
        report.phase("training")

    def _on_step(self) -> bool:
        step, steps = self.model.num_timesteps, self.model._total_timesteps
        report(step=step, steps=max(step, steps))  # the last rollout may go beyond the total
        clear_cache_if_asked()
        evaluate_if_asked(self._evaluated, step)
        stops = report.requested("stop")
        if report.requested("save") or stops:
            with report.phase("saving", expect_seconds=SAVING_SECONDS):
                self.model.save(self._save_to)
            report.checkpoint(self._save_to, step=self.model.num_timesteps)
        return not stops

    def _find_environment(self) -> None:
        """Find an environment to evaluate in; the training's own is refused."""
        one = next(_evaluating(self.locals.get("callback")), None)
        if self._given is not None:
            self._eval_env = self.model._wrap_env(self._given, verbose=0)
        elif one is not None:
            self._eval_env, self._episodes, self._deterministic = one.eval_env, one.n_eval_episodes, one.deterministic
        if self._eval_env is None:
            report.refuses("evaluate", "there is nothing to evaluate in: give it MpstuiCallback(eval_env=...)")
        elif _simulators(self._eval_env) & _simulators(self.training_env):
            report.refuses("evaluate", "it would evaluate where it trains: give eval_env an environment of its own")
        else:
            report.takes("evaluate")

    def _evaluated(self) -> dict[str, Any]:
        env, predictor, policy = self._eval_env, self.model, self.model.policy
        if self._given is None:
            with suppress(Exception):  # one that runs in other processes, or has a window, is used as it is
                env = _copied(env)
        trained_by = self.model.get_vec_normalize_env()
        if trained_by is not None and unwrap_vec_normalize(env) is not None:
            sync_envs_normalization(self.training_env, env)
        elif trained_by is not None:
            predictor = _Normalizing(self.model, trained_by)
        mode, how = policy.training, {"deterministic": self._deterministic, "return_episode_rewards": True}
        try:
            rewards, lengths = evaluate_policy(
                predictor, env, self._episodes, warn=False, callback=break_off_if_stopped, **how
            )
        finally:
            policy.set_training_mode(mode)
        return {"eval/mean_reward": sum(rewards) / len(rewards), "eval/mean_ep_length": sum(lengths) / len(lengths)}


class _Normalizing:
    """The model for environments that do not normalize observations, while those it is trained in do."""

    def __init__(self, model: Any, trained_by: VecNormalize) -> None:
        self._model, self._trained_by = model, trained_by

    def predict(self, observation: Any, *args: Any, **kwargs: Any) -> Any:
        return self._model.predict(self._trained_by.normalize_obs(observation), *args, **kwargs)


def _evaluating(callback: Any) -> Iterator[EvalCallback]:
    """Yield the EvalCallbacks among nested callbacks."""
    if isinstance(callback, EvalCallback):
        yield callback
    elif isinstance(callback, (CallbackList, EventCallback)):
        for one in getattr(callback, "callbacks", [getattr(callback, "callback", None)]):
            yield from _evaluating(one)


def _simulators(env: Any) -> set[int]:
    """Return the ids of the environments behind all wrappers, in this process."""
    behind = env.unwrapped
    return {id(behind), *(id(one.unwrapped) for one in getattr(behind, "envs", ()))}


def _copied(env: Any) -> Any:
    """Copy the environments, so that the next regular evaluation finds them as they were."""
    if not isinstance(env, VecEnvWrapper):
        return copy.deepcopy(env)
    inner, known = _copied(env.venv), env.class_attributes
    twin = copy.deepcopy(env, {id(env.venv): inner, id(known): known})
    if isinstance(twin, VecNormalize):  # deepcopy leaves out what it wraps
        twin.set_venv(inner)
    return twin


class _Writer(KVWriter):
    """Takes what the algorithm logs."""

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        known = {name: value for name, value in key_values.items() if name not in _NO_METRICS}
        known = {name: value for name, value in known.items() if not isinstance(value, str)}
        loss, lr = known.pop("train/loss", None), known.pop("train/learning_rate", None)
        report(known, loss=loss, lr=lr, step=step)

    def close(self) -> None:
        """Do nothing: there is no file to close."""
