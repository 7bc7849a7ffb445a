"""No expression that a log is shown to is kept busy by it: each repetition has an end, or needs none."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
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
    **dict.fromkeys(("notices._LETTERS", "evaluations._LETTERS", "told_again._LETTERS", "names._SPLIT"), ONE_KIND),
    **dict.fromkeys(
        ("console._BLANK_LINES", "table._COLUMNS", "table._WORD", "line._DRAWN_OVER", "assemble._WORD"), ONE_KIND
    ),
    **dict.fromkeys(("facts._SHELL", "bare_split._LINE", "bare_split._EVALUATION", "keras._ROW"), AT_THE_START),
    **dict.fromkeys(("ultralytics._HEADER", "notices._LAUNCHER", "notices._ORIGIN", "engine._RANK"), AT_THE_START),
    **dict.fromkeys(("reader._OTHER_RANK", "reader._FIRST_RANK", "log_text._STACK_FRAME"), AT_THE_START),
    **dict.fromkeys(
        ("line._FRAME_OF_TRACEBACK", "line._BLANK", "metric_names._CURRENT", "namings._OPENING_WORDS"), AT_THE_START
    ),
    **dict.fromkeys(("bars._OTHER_WORK", "boosting._KNOWN", "boosting._RISING", "names._DIGITS"), SHORT_TEXT),
    **dict.fromkeys(("facts._NAMED", "facts._USED", "names._THROUGHPUT", "reader._TRAILING_NUMBER"), SHORT_TEXT),
    **dict.fromkeys(("log_text._ESCAPE_OR_CLASS", "console._HELD_BACK"), SHORT_TEXT),
    **dict.fromkeys(("shape.PRINTED", "shape.NUMBER", "bulk.PRINTED", "counted.PRINTED", "files.NUMBER"), SHORT_TEXT),
    **dict.fromkeys(("line._ERROR", "line._WARNING"), SHORT_TEXT),
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


def pieces(tree: Any) -> Iterator[str]:
    """What a pattern can take: runs of its letters, and a character of each kind that it names."""
    letters = ""
    for kind, value in tree:
        if str(kind) == "LITERAL":
            letters += chr(value)
            continue
        yield from filter(None, (letters, letters[-1:]))
        letters = ""
        if str(kind) == "IN":
            yield from (
                chr(one[1] if str(one[0]) == "LITERAL" else one[1][0]) for one in value if one[1:] and _told(one)
            )
            yield "7" if "DIGIT" in str(value) else " " if "SPACE" in str(value) else "a"
        elif str(kind) in ("ANY", "NOT_LITERAL"):
            yield "x"
        else:
            for part in value if isinstance(value, (tuple, list)) else ():
                for inner in part if str(kind) == "BRANCH" and isinstance(part, list) else [part]:
                    yield from pieces(inner) if isinstance(inner, _parser.SubPattern) else ()
    yield from filter(None, (letters,))


def _told(one: Any) -> bool:
    return str(one[0]) in ("LITERAL", "RANGE")


def seconds_for(pattern: re.Pattern[Any], unit: str, size: int, *, at_start: bool, enough: float = 0.0) -> float:
    """Processor time to look for a pattern in so many characters, the best of two or the first below `enough`."""
    text: Any = (unit * (size // len(unit) + 1))[:size]
    text = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    best = float("inf")
    for _ in range(2):
        started = time.process_time()
        if at_start:
            pattern.match(text)
        else:
            deque(pattern.finditer(text), maxlen=0)
        best = min(best, time.process_time() - started)
        if best < enough:
            break
    return best


NO_TIME_SECONDS = 0.002
SIZES = (400, 6000, 12000)
TOO_LONG_SECONDS = 0.5
"""What is so much slower and takes so long needs no proof at a larger size."""


def is_linear(pattern: re.Pattern[Any], unit: str, *, at_start: bool = False, sizes: Sequence[int] = SIZES) -> bool:
    """Whether eight times the text costs at most some twenty times as much, at sizes beyond what may be looked back."""
    for size in sizes:
        large = seconds_for(pattern, unit, 8 * size, at_start=at_start, enough=NO_TIME_SECONDS)
        if large < NO_TIME_SECONDS or large < 20 * seconds_for(pattern, unit, size, at_start=at_start):
            return True
        if large > TOO_LONG_SECONDS:
            break
    return False


def test_no_text_made_of_what_a_pattern_takes_costs_more_than_its_length() -> None:
    source, slow = random.Random(0), set()
    for name, pattern in patterns():
        if REASONS.get(name) == SHORT_TEXT:
            continue
        parts = sorted(set(pieces(tree_of(pattern))))
        mixed = ["".join(source.sample(parts, min(len(parts), count))) for count in (2, 2, 3, 3)]
        for unit in {*source.sample(parts, min(len(parts), 6)), *mixed} - {""}:
            if not is_linear(pattern, unit, at_start=REASONS.get(name) == AT_THE_START):
                slow.add((name, unit))
    assert not slow


@pytest.mark.parametrize(("text", "unit"), [("a+b", "a"), (r"[\w.]+:", "a."), (r"(?:\s|,)*y", ", ")])
def test_a_pattern_that_is_not_linear_is_noticed(text: str, unit: str) -> None:
    assert not is_linear(re.compile(text), unit, sizes=SIZES[:1])
    assert set(unit) & set("".join(pieces(tree_of(re.compile(text)))))
