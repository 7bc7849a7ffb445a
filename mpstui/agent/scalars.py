"""Turns what a program itself writes for TensorBoard into points at the current step of its run.

Tried with torch 2.13 and tensorboardX 2.6, never imported here. Frameworks that are read directly are left out.
"""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .watch import Watch

_MOST_POINTS = 1000
_MOST_NAMES = 500
_SEEN_ANYWAY = frozenset(("lr", "step", "steps", "epoch", "epochs", "time", "attempt", "self"))
_COUNTS = ("global_step", "total_numsteps", "steps_done", "env_steps", "total_env_steps")
_EVALUATIONS = frozenset(("val", "valid", "validation", "eval", "evaluation", "test", "dev"))
_WORDS = re.compile(r"[^\W_]+")
_TIMESTEPS = re.compile(r"(?:--)?(?:[\w-]+\.)*(?:total|num|n|max)[-_](?:env[-_])?timesteps(?:=(.*))?")
"""``--total-timesteps 20000``: if the program also logs by these, the steps of its environments are counted."""
_FRAMES = re.compile(
    r"(?:--)?(?:[\w-]+\.)*"
    r"(?:(?:(?:total|num|n)[-_])?frames|(?:total|num|n|max)[-_]env[-_]steps)(?:=(.*))?"
)
"""The same, but only in a program that acts in environments; elsewhere frames are those of a clip."""


class Scalars:
    """Watches the ``SummaryWriter`` objects of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._names: set[str] = set()
        self._folders: dict[str, PurePath] = {}
        """The folders of the program's writers, by the path that they were given."""
        self._waiting: deque[tuple[Optional[int], dict[str, float]]] = deque(maxlen=_MOST_POINTS)
        self._step = self._before = 0
        """The newest step that was written, and the one before."""
        self._planned = 0
        self.acts = False
        """Whether the program acts in environments, so that the steps it counts are theirs."""

    def before_reset(self, *args: Any, **kwargs: Any) -> None:
        """Before ``Env.reset`` of gymnasium: the main script may count its environments' steps."""
        self.acts = True
        if self._watch.trainer is None and _counted_by_script():
            self._watch.trainer = self.read

    def after_scalar(
        self, result: Any, writer: Any, tag: Any, scalar_value: Any, global_step: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        """After ``SummaryWriter.add_scalar``, which has already waited for the value."""
        watch, name = self._watch, self._named(writer, str(tag))
        if name == "loss":  # the agent's own samples are called so; if the values agree, the reader makes one curve
            name = "train/loss"
        if watch.trainer is not None and watch.trainer != self.read:
            return  # the framework reports it
        step = int(global_step) if global_step is not None else None
        if step is not None and step > self._step and watch.trainer is None and not self._planned:
            asked = _asked_timesteps(sys.argv, frames=self.acts)
            self._planned = asked if asked >= step else -1
        if self._planned > 0 and step is not None:
            if step > self._step:
                self._before, self._step = self._step, step
            watch.trainer = self.read
        else:
            counted = watch.steps.count if watch.trainer is None else _counted_by_script()
            step = counted if counted is not None else step
        if name not in _SEEN_ANYWAY and (name in self._names or len(self._names) < _MOST_NAMES):
            self._names.add(name)
            # The time is that of the value, not of the next beat, which reports many: the pace is computed from it.
            self._waiting.append((step, {"time": time.time(), name: float(scalar_value)}))

    def _named(self, writer: Any, tag: str) -> str:
        """Return ``val/loss`` for ``loss`` in ``run/val`` if another writer writes to ``run/train``, else the tag."""
        given = str(getattr(writer, "log_dir", None) or getattr(writer, "logdir", ""))
        if given not in self._folders and len(self._folders) < _MOST_NAMES:
            self._folders[given] = PurePath(given)
        folder = self._folders.get(given)
        if folder is None or folder.name.lower() not in _EVALUATIONS:
            return tag
        beside = any(one.parent == folder.parent and one.name != folder.name for one in self._folders.values())
        return f"{folder.name}/{tag}" if beside and _EVALUATIONS.isdisjoint(_WORDS.findall(tag.lower())) else tag

    def take(self) -> list[tuple[Optional[int], dict[str, float]]]:
        """Return what was written since the last call, by step, each with its time (Unix seconds)."""
        waiting, self._waiting = self._waiting, deque(maxlen=_MOST_POINTS)
        return list(waiting)

    @property
    def step(self) -> int:
        """Environment steps done."""
        return max(self._step, _counted_by_script())

    def read(self) -> dict[str, Any]:
        """Return the heartbeat fields of a program that counts environment steps."""
        self._step = self.step
        planned = self._planned if self._planned > self._before else None
        if planned is not None and self._step > planned:
            planned = self._step  # the last rollout exceeds it
        return {"step": self._step, "steps": planned, "points": self.take()}


def _counted_by_script() -> int:
    """Return the environment steps if the main script counts them in a variable of a known name, else 0."""
    names = vars(sys.modules["__main__"])
    counts = (names.get(name) for name in _COUNTS)
    return next((count for count in counts if type(count) is int and count > 0), 0)


def _asked_timesteps(argv: list[str], *, frames: bool) -> int:
    """Return how many environment steps the arguments ask for; 0 if they do not say."""
    for place, word in enumerate(argv):
        found = _TIMESTEPS.fullmatch(word) or (_FRAMES.fullmatch(word) if frames else None)
        if found is not None:
            value = found[1] if found[1] is not None else "".join(argv[place + 1 : place + 2])
            try:
                return int(float(value.replace("_", "")))
            except ValueError:
                return 0
    return 0
