"""The rules. To add one, add a ``Rule(...)`` to the ``RULES`` of a module in this folder, and an excerpt to the tests.

Modules are discovered: add one for a tool, a framework or a stage of training if none fits. Another package adds rules
by naming such a module under the entry point ``mpstui.diagnosis_rules``. Nothing here is imported before the first
diagnosis: a command that lists runs must not pay for it.
"""

from __future__ import annotations

import logging
import pkgutil
import re
from functools import cache
from importlib import import_module

from ...model.plugins import DIAGNOSIS_RULES, plugin_modules
from ..log_text import compiled
from ..model import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, in order of module name, ours before those of other packages."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    rules = {rule.id: rule for name in names for rule in import_module(f".{name}", __name__).RULES}
    for module in plugin_modules(DIAGNOSIS_RULES):
        for rule in getattr(module, "RULES", ()):
            if _is_sound(rule):
                rules.setdefault(rule.id, rule)
    return tuple(rules.values())


def rule(rule_id: str) -> Rule:
    """Return the rule named ``rule_id``; raises ``KeyError`` if there is none."""
    return {candidate.id: candidate for candidate in all_rules()}[rule_id]


def _is_sound(rule: object) -> bool:
    """True if a rule of another package is usable: a mistake in it must not break the diagnosis."""
    try:
        assert isinstance(rule, Rule)
        for pattern in (*rule.patterns, *rule.weak_patterns):
            compiled(pattern)
    except (AssertionError, re.error) as error:
        logging.getLogger(__name__).warning("a diagnosis rule of a plugin is left out: %r: %s", rule, error)
        return False
    return True
