"""Regular expressions of a person's: those that a line could keep busy for ever are told from the others."""

from __future__ import annotations

import pytest

from mpstui.core.logview.searching import compiled
from mpstui.core.model.checks import may_take_for_ever


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(a+)+$", r"(.*)*x", r"a*a*a*a*a*a*a*a*b", r"((a+))+b", r"(?:(?:a+)b?){2,}c", r"(\d+,?)*;", r".*.*.*x"),
        *(r"[ab]*[ab]*[ab]*c", r"(?P<x>\w+\s?)*$", r"((ab)*)*c"),
    ],
)
def test_what_repeats_a_repetition_is_searched_for_as_it_is_written(pattern: str) -> None:
    assert may_take_for_ever(pattern)
    assert compiled(pattern).search("a" * 40) is None
    assert compiled(pattern).search(f"look for {pattern} here")


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"loss", r"step (?P<step>\d+)\s+loss\s+(?P<loss>[\d.]+)", r"\d+\s+\d+", r"(ab)+", r".*loss.*step"),
        *(r"(a|b)*c", r"[(]+x", r"\(a+\)+", r"a{3}", r"", r"(", r")", r"[", "\\"),
    ],
)
def test_other_patterns_are_left_alone(pattern: str) -> None:
    assert not may_take_for_ever(pattern)
