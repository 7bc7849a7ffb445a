"""From a choice to a running process, and from a key press to an answered request."""

from __future__ import annotations

from ..home import Home
from ..runs.snapshot import RunSnapshot
from .actions import Actions
from .availability import availability
from .choice import ACCELERATOR_QUEUE, LaunchChoice, parse_sets
from .environment import EnvLine
from .launches import launch
from .planning import LaunchPlan, plan
from .saving import save_profile
from .sweeping import combinations

__all__ = [
    "ACCELERATOR_QUEUE",
    "Actions",
    "EnvLine",
    "LaunchChoice",
    "LaunchPlan",
    "availability",
    "combinations",
    "edit_choice",
    "launch",
    "parse_sets",
    "plan",
    "save_profile",
]


def edit_choice(snapshot: RunSnapshot, home: Home) -> LaunchChoice:
    """The launch of a run as it was chosen, to be changed and restarted.

    Raises:
        OperationError: the run's record cannot be read.
    """
    from ...wire.rundir import RunDir
    from .recorded import recorded_choice

    return recorded_choice(RunDir(home.runs / snapshot.run))
