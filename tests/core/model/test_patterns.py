"""Regular expressions of a person's: those that a line could keep busy for ever are told from the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.logview.document import LogDocument
from mpstui.core.logview.searching import compiled
from mpstui.core.model.patterns import PatternMistake, line_pattern

ENDLESS = (
    *(r"(a+)+$", r"(.*)*x", r"a*a*a*a*a*a*a*a*b", r"((a+))+b", r"(?:(?:a+)b?){2,}c", r"(\d+,?)*;", r".*.*.*x"),
    *(r"[ab]*[ab]*[ab]*c", r"(?P<x>\w+\s?)*$", r"((ab)*)*c", r"(a|a)*b", r"(a|aa)+$", r"(a?){40}a{40}b"),
    *(r"(?P<x>a|ab?)*\Z", r"(?:a(?:a|b)?)+c", r"[ab]*[abc]*[abd]*!x", r"\d+\d+[0-9]+\w+x", "a?" * 30 + "a" * 30),
    *(r"(?=(a+)+b)", r"(?>a*)(?>a*)a*b", r".*a.*a.*a.*b", r"(?i)A*a*a*b"),
)
"""Each keeps a line of some hundred letters busy for seconds at least."""


@pytest.mark.parametrize("pattern", [*ENDLESS, "a{99999999999999999999}", "(" * 600 + ")" * 600, "(", "[", "\\"])
def test_what_could_take_for_ever_is_searched_for_as_it_is_written(pattern: str) -> None:
    with pytest.raises(PatternMistake):
        line_pattern(pattern)
    assert compiled(pattern).search("a" * 40) is None
    assert compiled(pattern).search(f"look for {pattern} here")


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        *((one, 1 << 16) for one in (r"loss", r"step (?P<step>\d+)\s+loss\s+(?P<loss>[\d.]+)", r"(ab)+", r"\(a+\)+")),
        *((one, 1 << 16) for one in (r"a{3}", r"", r".*", r"^\s*(\d+)\s+(\d+)\s+(\d+)$", r"(train|val)_loss=[\d.]+")),
        *((one, 1 << 11) for one in (r"\d+\s+\d+", r".*loss.*step", r"(a|b)*c", r"[(]+x", r".*=.*", r"(?:\d+\.){3}")),
        *((one, 300) for one in (r"\d+.*loss", r"x(\d+).*?(\d+)/", r".*.*=", r"\s*\w+\s*\w+\s*=")),
    ],
)
def test_other_patterns_are_shown_as_much_of_a_line_as_takes_milliseconds(pattern: str, longest: int) -> None:
    found = line_pattern(pattern)
    assert found.longest == longest
    for one in "a1 (=":
        assert bool(found.search(one * (1 << 16))) == bool(found.pattern.search(one * longest))


def test_a_search_on_an_endless_line_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"begin\n" + b"1" * (1 << 20) + b"\n" + b" " * (1 << 20) + b"\nthe end 1x\n")
    document = LogDocument(path)
    document.refresh()
    for pattern in (r"\d+x", r"\s+x|\dx", r"[^=]+1x"):
        found, start = None, 0
        while found is None:
            found = document.search(pattern, start, seconds=60)
            start = document.search_stopped_at or start
        assert found.text == "the end 1x"
