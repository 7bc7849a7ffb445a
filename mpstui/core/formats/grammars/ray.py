"""Ray Tune and RLlib: one value per line below ``Result for PPO_CartPole_0ab12_00000:``, or a box below ``finished
iteration 3 at ..``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..points import NOWHERE, LineReading
from ..records import read_record
from . import Example, LineGrammar

_HEADING = re.compile(
    r"Result for (?P<named>[\w.-]{1,120}):\s{0,4}\Z|"
    r"(?P<kind>Trial|Training)(?: (?P<trial>[\w.-]{1,120}))? finished iteration \d{1,9} at "
)
_MEMBER = re.compile(r"(?P<name>[A-Za-z_][\w./-]{0,80}): ?(?P<value>\S{0,60})\Z")
_CELL = re.compile(r"│ (?P<name>[A-Za-z_][\w./-]{0,80})\s{1,200}(?P<value>\S{1,60}) {0,8}│\Z")
_LAST = "trial_id"
"""The last key of a result that is read: keys are sorted, and none after it is a metric."""
_OF_OPTIONS, _BEHIND_OPTIONS = "config", ("counters", "custom_metrics", "date", "done")
_OF_POLICIES = "policy_reward"
"""The start of the names of groups whose keys are the names of policies."""
_COUNTED = re.compile(r"num_|time_|mean_\w{1,40}_ms\Z|\w{0,80}(?:_total|_this_iter|_since_restore|_ts|_ms|_percent)\Z")
_NO_METRICS = frozenset(("pid", "timestamp", "warmup_time", "iterations_since_restore", "training_iteration", "step"))
_STEPS = ("timesteps_total", "num_env_steps_sampled_lifetime", "num_env_steps_sampled", "training_iteration")
_MOST = 400


class Ray(LineGrammar):
    """Makes one reading per result, when the result ends.

    If several trials report in turn, none of them is the training: their values are named by the trial.
    """

    name = "ray tune"
    examples = (
        Example(
            "Result for PPO_Env_0ab12_00000:\n  date: 2024-01-02\n  episode_reward_mean: 12.5\n  info:\n    learner:\n"
            "      default_policy:\n        learner_stats:\n          cur_lr: 0.0005\n          total_loss: 1.25\n"
            "  num_steps_trained: 4000\n  timesteps_total: 4000\n  training_iteration: 1\n  trial_id: 0ab12_00000\n",
            1.25,
            step=4000,
            learning_rate=5e-4,
        ),
        Example(
            "Trial train_0ab12_00000 finished iteration 3 at 2024-01-02 10:00:20. Total running time: 30s\n"
            "╭──────────────────────────────╮\n│ Trial train_0ab12_00000      │\n├──────────────────────────────┤\n"
            "│ num_env_steps_sampled   8000 │\n│ training_iteration         3 │\n│ mean_loss               0.25 │\n"
            "╰──────────────────────────────╯\n",
            0.25,
            step=8000,
        ),
    )

    def __init__(self) -> None:
        self._trial: str | None = None
        """The trial whose result is being read."""
        self._newest = ""
        self._seen = set[str]()
        self._in_turn = False
        """True if trials report in turn."""
        self._group = ""
        self._told: dict[str, str] = {}
        self._twice = set[str]()

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Claim each value without a reading; return the whole result at the line that ends it."""
        heading = _HEADING.match(line) if "inished it" in line or line.startswith("Result for ") else None
        if heading is not None:
            result = self._close()
            self._open(heading["named"] or heading["trial"] or heading["kind"])
            return result
        if self._trial is None:
            return None
        if line[:1] in "╭├─-":
            return ()  # the border of a box; a list item
        member = (_CELL if line[:1] == "│" else _MEMBER).match(line)
        if member is not None:
            self._take(member["name"], member["value"])
            return self._close() if member["name"] == _LAST else ()
        if line[:1] == "│":
            return ()
        return self._close() or None

    def _open(self, trial: str) -> None:
        self._in_turn = self._in_turn or (trial != self._newest and trial in self._seen)
        self._trial = trial
        if len(self._seen) < _MOST:
            self._seen.add(trial)

    def _take(self, name: str, value: str) -> None:
        if not value:
            self._group = name
        if self._group == _OF_OPTIONS and name not in _BEHIND_OPTIONS:
            return
        if self._group.startswith(_OF_POLICIES) and not name.startswith(_OF_POLICIES):
            name = f"{self._group}/{name}"
        if self._told.get(name, value) != value:
            self._twice.add(name)  # values of several policies, none of which represents all
        if len(self._told) < _MOST:
            self._told[name] = value

    def _close(self) -> Sequence[LineReading]:
        """Return the reading of the result that ends here, if there is one."""
        trial, told, twice = self._trial, self._told, self._twice
        self._trial, self._told, self._twice, self._group = None, {}, set(), ""
        if trial is None:
            return ()
        steps = next((told[name] for name in _STEPS if name in told), None)
        values = {
            name: value for name, value in told.items() if name not in twice | _NO_METRICS and not _COUNTED.match(name)
        }
        reading = read_record({**values, **({} if steps is None else {"step": steps})}, self.name)
        if reading is None:
            return ()
        another, self._newest = self._newest not in ("", trial), trial
        if self._in_turn:
            metrics = {f"{trial} {name}": value for name, value in reading.metrics.items()}
            return (replace(reading, counters=NOWHERE, loss=None, series="", metrics=metrics, eval_metrics={}),)
        return (replace(reading, restart=another),)


GRAMMAR = Ray
