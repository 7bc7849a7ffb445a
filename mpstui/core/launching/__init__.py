"""From a choice to a running process, and from a key press to an answered request.

Names are imported when they are used: to stop a run, or to say whether it can be stopped, takes no plan of a launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..on_demand import names_on_demand

if TYPE_CHECKING:
    from .actions import Actions
    from .choice import ACCELERATOR_QUEUE, LaunchChoice, parse_sets
    from .editing import edit_choice
    from .environment import EnvLine
    from .launches import launch
    from .planning import LaunchPlan, plan
    from .saving import save_profile
    from .sweeping import combinations
else:
    __getattr__ = names_on_demand(
        __name__,
        actions=("Actions",),
        choice=("ACCELERATOR_QUEUE", "LaunchChoice", "parse_sets"),
        editing=("edit_choice",),
        environment=("EnvLine",),
        launches=("launch",),
        planning=("LaunchPlan", "plan"),
        saving=("save_profile",),
        sweeping=("combinations",),
    )

__all__ = [
    "ACCELERATOR_QUEUE",
    "Actions",
    "EnvLine",
    "LaunchChoice",
    "LaunchPlan",
    "combinations",
    "edit_choice",
    "launch",
    "parse_sets",
    "plan",
    "save_profile",
]
