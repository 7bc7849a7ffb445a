"""Launch profiles: TOML files that say how a program is started, told its device, resumed and watched.

Names are imported when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..on_demand import names_on_demand

if TYPE_CHECKING:
    from .lookup import ProfileEntry, list_profiles, load_profile, names_profile, read_profile, shipped_folder
    from .model import ArgumentValue, Profile, profile_of_command
    from .problems import Problem, ProfileError
    from .recipes import RECIPES, Recipe, RecipeVariable
    from .sweep import SweepValue
else:
    __getattr__ = names_on_demand(
        __name__,
        lookup=("ProfileEntry", "list_profiles", "load_profile", "names_profile", "read_profile", "shipped_folder"),
        model=("ArgumentValue", "Profile", "profile_of_command"),
        problems=("Problem", "ProfileError"),
        recipes=("RECIPES", "Recipe", "RecipeVariable"),
        sweep=("SweepValue",),
    )

__all__ = [
    "RECIPES",
    "ArgumentValue",
    "Problem",
    "Profile",
    "ProfileEntry",
    "ProfileError",
    "Recipe",
    "RecipeVariable",
    "SweepValue",
    "list_profiles",
    "load_profile",
    "names_profile",
    "profile_of_command",
    "read_profile",
    "shipped_folder",
]
