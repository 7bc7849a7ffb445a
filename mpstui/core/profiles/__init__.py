"""Launch profiles: TOML files that say how a program is started, told its device, resumed and watched."""

from .lookup import ProfileEntry, list_profiles, load_profile, read_profile, shipped_folder
from .model import ArgumentValue, Profile, profile_of_command
from .problems import Problem, ProfileError
from .recipes import RECIPES, Recipe, RecipeVariable
from .sweep import SweepValue

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
    "profile_of_command",
    "read_profile",
    "shipped_folder",
]
