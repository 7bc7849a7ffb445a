"""Users' regular expressions, with a bound on their worst-case time that is known before they run.

On text that does not match, a backtracking engine tries every possible way. Consecutive repetitions that can take the
same characters need time polynomial in the line's length, with their number as the power; a repetition of something
that can itself match in several ways needs exponential time. Python's ``re`` cannot be interrupted, so such patterns
must never be started.
"""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

LONGEST_PATTERN = 2000
_LONGEST_LINES = (1 << 16, 1 << 16, 1 << 11, 300)
"""The characters of a line that are searched, indexed by power: each costs a few milliseconds at worst."""
_FEW = 4
"""An ambiguous item repeated up to this often is analysed as if written out; more counts as exponential."""
_CHOICE = 0.15
"""What an optional item adds to the power, as each one doubles the time."""
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_KINDS: Mapping[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda one: one.isalnum() or one == "_",
}
_parser: Any = importlib.import_module("re._parser")


class PatternMistake(ValueError):
    """A pattern is not a regular expression, or may run for ever; says why, and what to do."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.hint = hint


class LinePattern(NamedTuple):
    """A regular expression, and how many characters of a line it may search; the rest is ignored."""

    pattern: re.Pattern[str]
    longest: int

    @property
    def is_linear(self) -> bool:
        """True if the time grows only linearly with the text, however long that is."""
        return self.longest == _LONGEST_LINES[0]

    def search(self, line: str) -> re.Match[str] | None:
        return self.pattern.search(line, 0, self.longest)

    def finditer(self, line: str) -> Iterator[re.Match[str]]:
        return self.pattern.finditer(line, 0, self.longest)


@functools.lru_cache(maxsize=64)
def line_pattern(text: str, flags: int = 0) -> LinePattern:
    """Compile a user's pattern for lines.

    Raises:
        PatternMistake: it is not a regular expression, is too long, or could run for ever on a line.
    """
    shown = f"the pattern {text[:60]!r}"
    try:
        if len(text) > LONGEST_PATTERN:
            raise PatternMistake(f"{shown} is too long", "look for less")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as FutureWarning: a later Python may read the pattern differently
            compiled, tree = re.compile(text, flags), _parser.parse(text, flags)
        items = _without_end(tree)
        power = max(_power(items, one) for one in _samples(tree))
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternMistake(f"{shown} is no regular expression: {error}", "test it with `mpstui parse`") from error
    if power >= len(_LONGEST_LINES):
        raise PatternMistake(
            f"{shown} could run for ever on a line: it repeats a repetition, or several in a row that take the same",
            "put a fixed word between them, and repeat no group that itself repeats",
        )
    return LinePattern(compiled, _LONGEST_LINES[int(power)])


def _without_end(tree: Any) -> list[Any]:
    """Return the parts of a pattern that can still fail: an open-ended repetition at its end matches anything."""
    items = list(tree)
    while items:
        kind, value = items[-1]
        if str(kind) in _REPEATS and value[0] < 2:
            items[-1:] = list(value[2]) * value[0]
        elif str(kind) == "SUBPATTERN":
            items[-1:] = list(value[-1])
        else:
            break
    return items


class _Ways(NamedTuple):
    """How many consecutive repetitions in part of a pattern compete for a line of one repeated character."""

    through: float | None
    """From the part's beginning to its end; None: it cannot match such a line as a whole."""
    first: float
    """Starting at the part's beginning."""
    last: float
    """Ending at the part's end."""
    most: float
    """Anywhere in the part."""

    def then(self, other: _Ways) -> _Ways:
        through = None if self.through is None or other.through is None else self.through + other.through
        first = self.first if self.through is None else max(self.first, self.through + other.first)
        last = other.last if other.through is None else max(other.last, other.through + self.last)
        return _Ways(through, first, last, max(self.most, other.most, self.last + other.first))


_PASSES, _STOPS = _Ways(0.0, 0.0, 0.0, 0.0), _Ways(None, 0.0, 0.0, 0.0)
_ENDLESS = _Ways(99.0, 99.0, 99.0, 99.0)


def _power(tree: Any, one: str) -> float:
    ways = _ways(tree, one)
    return max(ways.most, ways.first + 1)  # + 1: a search starts at every position of the line


def _ways(tree: Any, one: str) -> _Ways:
    found = _PASSES
    for kind, value in tree:
        found = found.then(_ways_of(str(kind), value, one))
    return found


def _ways_of(kind: str, value: Any, one: str) -> _Ways:
    if kind in _REPEATS:
        least, most, tree = value
        return _repeated(least, most, tree, one)
    if kind == "SUBPATTERN":
        return _ways(value[-1], one)
    if kind == "ATOMIC_GROUP":
        return _ways(value, one)
    if kind == "BRANCH":
        return _either(_ways(tree, one) for tree in value[1])
    if kind == "GROUPREF_EXISTS":
        return _either(_ways(tree or (), one) for tree in value[1:])
    if kind in ("ASSERT", "ASSERT_NOT"):
        return _PASSES._replace(most=_power(value[1], one))
    if kind == "AT":
        return _PASSES if str(value) == "AT_NON_BOUNDARY" else _STOPS  # one repeated character has no such place
    return _PASSES if kind == "GROUPREF" or _takes(kind, value, one) else _STOPS


def _either(ways: Iterable[_Ways]) -> _Ways:
    all_of = list(ways)
    return _Ways(
        max((found.through for found in all_of if found.through is not None), default=None),
        max(found.first for found in all_of),
        max(found.last for found in all_of),
        max(found.most for found in all_of),
    )


def _repeated(least: int, most: int, tree: Any, one: str) -> _Ways:
    if _has_ways(tree):
        if most > _FEW:
            return _ENDLESS
        once = _ways(tree, one)
        whole = functools.reduce(_Ways.then, [once] * most, _PASSES)
        return whole if least else _either((whole, _PASSES))
    once = _ways(tree, one)
    if least == most or once.through is None:
        return once if least else _PASSES
    weight = 1.0 if most - least > 1 / _CHOICE else (most - least) * _CHOICE
    return _Ways(weight, weight, weight, weight)


def _has_ways(tree: Any) -> bool:
    """True if part of a pattern can match the same text in several ways, or texts of different lengths."""
    for kind, value in tree:
        match str(kind):
            case "BRANCH" | "GROUPREF" | "GROUPREF_EXISTS":
                return True
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                if value[0] != value[1] or _has_ways(value[2]):
                    return True
            case "SUBPATTERN" | "ASSERT" | "ASSERT_NOT":
                if _has_ways(value[-1]):
                    return True
            case "ATOMIC_GROUP":
                if _has_ways(value):
                    return True
    return False


def _takes(kind: str, value: Any, one: str) -> bool:
    """True if one item matches a character, ignoring case."""
    if kind in ("LITERAL", "NOT_LITERAL"):
        return (chr(value).lower() == one.lower()) == (kind == "LITERAL")
    if kind == "RANGE":
        return any(value[0] <= ord(case) <= value[1] for case in (one.lower(), one.upper()) if len(case) == 1)
    if kind == "CATEGORY":
        word = str(value).removeprefix("CATEGORY_")
        return _KINDS[word.removeprefix("NOT_")](one) != word.startswith("NOT_")
    if kind == "IN":
        negated = bool(value) and str(value[0][0]) == "NEGATE"
        return any(_takes(str(each), item, one) for each, item in value[negated:]) != negated
    return True  # ANY


def _samples(tree: Any) -> set[str]:
    """Return enough characters to find one that several items match: those in the pattern, their successors, and one
    of each kind."""
    return {*"a1 _-=é", *(chr(code) for code in _codes(tree) if 0 <= code < 0x110000)}


def _codes(part: Any) -> Iterator[int]:
    if isinstance(part, int):
        yield from (part, part + 1)
    elif isinstance(part, (tuple, list)) or hasattr(part, "data"):
        for item in part:
            yield from _codes(item)
