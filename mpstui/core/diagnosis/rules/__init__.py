"""The rules, one module a family. A new rule is one ``Rule(...)`` in its family's ``RULES`` and one test.

Nothing here is imported before the first diagnosis: a command that lists runs must not pay for it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..model import Rule

FAMILIES = (
    "mps_memory",
    "mps_operators",
    "mps_precision",
    "mps_assertions",
    "metal",
    "compiling",
    "devices",
    "cuda",
    "openmp",
    "endings",
    "dataloader",
    "numbers",
    "checkpoints",
    "storage",
    "lightning",
    "hydra",
    "installation",
    "user_code",
)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, in the order of the families."""
    modules = (import_module(f".{family}", __name__) for family in FAMILIES)
    return tuple(rule for module in modules for rule in module.RULES)


def rule(rule_id: str) -> Rule:
    """Return the rule named ``rule_id``; raises ``KeyError`` when there is none."""
    for candidate in all_rules():
        if candidate.id == rule_id:
            return candidate
    raise KeyError(rule_id)
