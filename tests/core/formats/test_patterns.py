"""Patterns that are compiled at their first use."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

from mpstui.core.formats import grammars
from mpstui.core.formats.patterns import pattern


def test_it_does_what_a_compiled_one_does() -> None:
    source = r"(?P<name>[a-z]+)=(\d+)"
    lazy, plain = pattern(source, re.IGNORECASE), re.compile(source, re.IGNORECASE)
    text = "Loss=12 acc=3"
    found = lazy.match(text)
    assert found is not None
    assert found.groups() == ("Loss", "12")
    assert lazy.findall(text) == plain.findall(text)
    assert (lazy.pattern, lazy.groups, lazy.groupindex, lazy.flags) == (
        plain.pattern,
        plain.groups,
        plain.groupindex,
        plain.flags,
    )


def test_a_mistake_shows_at_the_first_use() -> None:
    broken = pattern("(")
    with pytest.raises(re.error):
        broken.search("text")


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(grammars.__path__)])
def test_every_pattern_of_a_grammar_can_be_compiled(name: str) -> None:
    module = importlib.import_module(f"{grammars.__name__}.{name}")
    grammar = getattr(module, "GRAMMAR", None)
    places = {**vars(module), **(vars(grammar) if grammar else {})}
    for value in places.values():  # whoever asks has it compiled
        if hasattr(type(value), "_compiled"):
            assert value.groups >= 0
