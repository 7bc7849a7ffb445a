"""No expression that a log is shown to is kept busy by it: each repetition has an end, or needs none."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import mpstui.core.diagnosis
import mpstui.core.formats
import mpstui.core.logview

_parser: Any = importlib.import_module("re._parser")
ENDLESS = 1 << 16
PACKAGES = (mpstui.core.formats, mpstui.core.logview, mpstui.core.diagnosis)
ONE_KIND = "takes one kind of character, and nothing has to follow it"
AT_THE_START = "is matched at the start of a text alone"
SHORT_TEXT = "sees a name, or a line that was cut to some thousand characters at most"
FOLLOWS_A_MARK = "follows a mark that it cannot take itself, so no place is looked at twice"
REASONS = {
    **dict.fromkeys(("notices._LETTERS", "evaluations._LETTERS", "console._BLANK_LINES", "names._SPLIT"), ONE_KIND),
    **dict.fromkeys(("table._COLUMNS", "table._WORD", "line._DRAWN_OVER", "assemble._WORD"), ONE_KIND),
    **dict.fromkeys(("facts._SHELL", "bare_split._LINE", "bare_split._EVALUATION", "keras._ROW"), AT_THE_START),
    **dict.fromkeys(("ultralytics._HEADER", "notices._LAUNCHER", "notices._ORIGIN", "engine._RANK"), AT_THE_START),
    **dict.fromkeys(("reader._OTHER_RANK", "reader._FIRST_RANK", "log_text._STACK_FRAME"), AT_THE_START),
    **dict.fromkeys(
        ("line._FRAME_OF_TRACEBACK", "line._BLANK", "metric_names._CURRENT", "pairs._OPENING_WORDS"), AT_THE_START
    ),
    **dict.fromkeys(("bars._OTHER_WORK", "boosting._KNOWN", "boosting._RISING", "names._DIGITS"), SHORT_TEXT),
    **dict.fromkeys(("facts._NAMED", "facts._USED", "names._THROUGHPUT", "reader._TRAILING_NUMBER"), SHORT_TEXT),
    **dict.fromkeys(("shape._SLOT", "log_text._ESCAPE_OR_CLASS", "console._HELD_BACK"), SHORT_TEXT),
    **dict.fromkeys(("line._ERROR", "line._WARNING", "evidence._MEMORY_EVENT"), SHORT_TEXT),
    **dict.fromkeys(("json_document._BETWEEN_ENTRIES", "json_document._ENDED", "assemble._SAMPLES"), FOLLOWS_A_MARK),
}


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            module = importlib.import_module(found.name)
            yield from _patterns_of(module)


def _patterns_of(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    for name, value in vars(module).items():
        values = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else (value,)
        for one in values:
            if isinstance(one, re.Pattern):
                yield f"{module.__name__.rpartition('.')[2]}.{name}", one


def tree_of(pattern: re.Pattern[Any]) -> Any:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return _parser.parse(text, pattern.flags if isinstance(pattern.pattern, str) else pattern.flags & ~re.UNICODE)


def repeats(tree: Any, within: int = 1) -> Iterator[tuple[bool, int]]:
    """Of each repetition whether it gives nothing back, and how often what it repeats may come in all."""
    for kind, value in tree:
        if str(kind) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            possessive, most = str(kind) == "POSSESSIVE_REPEAT", within * min(int(value[1]), ENDLESS)
            yield possessive, most
            yield from repeats(value[2], within if possessive else most)
        elif str(kind) in ("ASSERT", "ASSERT_NOT"):
            yield from repeats(value[1], within)
        elif str(kind) == "SUBPATTERN":
            yield from repeats(value[-1], within)
        elif str(kind) == "ATOMIC_GROUP":
            yield from repeats(value, within)
        elif str(kind) == "BRANCH":
            for branch in value[1]:
                yield from repeats(branch, within)


def test_every_repetition_ends_or_is_known_to_be_harmless() -> None:
    endless = {
        name
        for name, pattern in patterns()
        if any(most >= ENDLESS and not possessive for possessive, most in repeats(tree_of(pattern)))
    }
    assert endless <= REASONS.keys(), "give the repetition an end, or a reason above"


@pytest.mark.parametrize(
    ("text", "endless"), [("a{0,80}b", False), ("a+b", True), ("(?:a{1,9}b)*c", True), ("a++", False)]
)
def test_an_endless_repetition_is_noticed(text: str, endless: bool) -> None:
    found = any(most >= ENDLESS and not possessive for possessive, most in repeats(tree_of(re.compile(text))))
    assert found is endless
