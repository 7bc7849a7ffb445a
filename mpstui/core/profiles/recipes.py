"""Recipes: named sets of environment variables, each with its reason, and doubtful ones marked as such."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class RecipeVariable:
    """One variable of a recipe. ``{cores}`` in a value stands for the machine's core count."""

    name: str
    value: str
    reason: str
    doubtful: str | None = None
    """Why a careful person would not set it, where there is such a reason."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named set of environment variables, and of arguments for programs whose profile names them in ``[roles]``."""

    name: str
    description: str
    variables: tuple[RecipeVariable, ...]
    arguments: Mapping[str, str | bool] = field(default_factory=dict)
    """Role -> value; applied where the profile names the argument of that role."""


_UNBUFFERED = RecipeVariable(
    "PYTHONUNBUFFERED", "1", "each printed line reaches the log at once, also the last one before a crash"
)
_FAULTHANDLER = RecipeVariable(
    "PYTHONFAULTHANDLER", "1", "a native crash (abort, segmentation fault) leaves a Python stack in the log"
)
_FALLBACK = RecipeVariable(
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "1",
    "an operation without a Metal kernel runs on the CPU instead of ending the run; read when torch is loaded, "
    "so it must be set before; it does not move the training to the CPU",
)

SAFE = Recipe(
    "safe",
    "readable crashes, the CPU for operations that Metal lacks, and torch's own memory limits",
    (
        _UNBUFFERED,
        _FAULTHANDLER,
        _FALLBACK,
        RecipeVariable(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
            "1.7",
            "torch's own default, written out so that a 0.0 left in a shell cannot remove the limit that turns "
            "memory exhaustion into a Python error",
        ),
        RecipeVariable(
            "PYTORCH_MPS_LOW_WATERMARK_RATIO",
            "1.4",
            "always set together with the high one: torch refuses a low watermark above the high one",
        ),
    ),
)

CLASSIC = Recipe(
    "classic",
    "the well-known shell recipe for MPS, verbatim; doubtful lines are marked",
    (
        RecipeVariable(
            "KMP_DUPLICATE_LIB_OK",
            "TRUE",
            "lets a second copy of the OpenMP runtime load instead of aborting",
            "libomp itself calls this unsafe: it may crash or silently give wrong results; "
            "removing the duplicate library, or OMP_NUM_THREADS=1, is the real remedy",
        ),
        RecipeVariable(
            "OMP_NUM_THREADS",
            "4",
            "threads of one CPU operation",
            "4 is nobody's measurement of this machine, and slows the CPU's part on larger ones",
        ),
        RecipeVariable(
            "MKL_NUM_THREADS",
            "1",
            "threads of Intel's math library",
            "has no effect on Apple silicon, where torch uses Accelerate and not MKL",
        ),
        RecipeVariable(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
            "0.0",
            "removes the limit on GPU memory",
            "without the limit macOS swaps and then kills the process (exit by SIGKILL, no message), "
            "where the limit would give a Python error that can be explained",
        ),
        RecipeVariable(
            "PYTORCH_ENABLE_MPS_FALLBACK", "1", "an operation without a Metal kernel runs on the CPU, with a warning"
        ),
        _UNBUFFERED,
    ),
)

FAST = Recipe(
    "fast",
    "bf16, torch.compile and all cores, for programs whose profile says how they are told ([roles])",
    (
        _UNBUFFERED,
        _FAULTHANDLER,
        _FALLBACK,
        RecipeVariable(
            "OMP_NUM_THREADS",
            "{cores}",
            "one thread a core for the CPU's part",
            "data loader workers compete for the same cores: measure with and without",
        ),
    ),
    {"precision": "bf16", "compile": True},
)

RECIPES: Mapping[str, Recipe] = MappingProxyType({recipe.name: recipe for recipe in (SAFE, CLASSIC, FAST)})
DEFAULT_RECIPE = SAFE.name
ARGUMENT_DOUBTS: Mapping[str, str] = MappingProxyType(
    {
        "precision": "bf16 on MPS needs torch 2.6 and macOS 14, and is not known to be faster on M1 and M2",
        "compile": "torch.compile on MPS is still a prototype: slower than eager for some models",
    }
)
"""Role -> why a fast recipe's argument may disappoint."""
