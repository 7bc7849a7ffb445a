"""Checks for the values of hand-written TOML files, and the errors that report file, line and key.

A check returns None if the value is good, otherwise what was expected instead.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .errors import UsageError
from .patterns import PatternMistake, line_pattern

Check = Callable[[Any], str | None]
Scalar = str | int | float | bool
"""A single value for the command line."""
_SIZE = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]i?)?B?\s*", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def nearest(word: str, known: Collection[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name closest to ``word``: one spelled alike, or one with ``word`` between its underscores."""
    folded = {name.casefold().replace("-", "_"): name for name in known}
    wanted = word.casefold().replace("-", "_")
    found = get_close_matches(wanted, folded, n=1, cutoff=cutoff) or [
        name for name in folded if wanted in name.split("_")
    ]
    return folded[found[0]] if found else None


def described(value: Any) -> str:
    """Describe a value for an error message: its TOML type, followed by the text itself if it is short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    kinds: dict[type, str] = {str: "the text", list: "a list", dict: "a table"}
    kind = kinds.get(type(value), "a date or time")
    return f"{kind} {json.dumps(value, ensure_ascii=False)}" if isinstance(value, str) and len(value) < 60 else kind


def text(value: Any) -> str | None:
    """Any text that is not blank; NUL cannot be passed in an argument or a path."""
    if not isinstance(value, str):
        return "a text in quotes"
    if "\0" in value:
        return "a text without NUL characters"
    return None if value.strip() else "a text that is not empty"


def any_text(value: Any) -> str | None:
    """Any text, even an empty one; NUL cannot be passed in an argument or a path."""
    if isinstance(value, str) and "\0" in value:
        return "a text without NUL characters"
    return None if isinstance(value, str) else "a text in quotes"


def log_pattern(value: Any) -> str | None:
    """A regular expression with named groups that no line can make run for ever."""
    if expected := text(value):
        return expected
    try:
        return None if line_pattern(value).pattern.groupindex else f"a pattern {NAMED_GROUPS}"
    except PatternMistake as error:
        return f"a pattern {NAMED_GROUPS} ({error}; {error.hint})"


NAMED_GROUPS = r"that names groups, for example (?P<step>\d+) and (?P<loss>[\d.]+)"


def flag(value: Any) -> str | None:
    """true or false."""
    return None if isinstance(value, bool) else "true or false"


def one_of(*choices: str) -> Check:
    """One of the given words."""

    def check(value: Any) -> str | None:
        if value in choices and isinstance(value, str):
            return None
        likely = nearest(value, choices) if isinstance(value, str) else None
        return f"one of {', '.join(choices)}" + (f" (did you mean {likely!r}?)" if likely else "")

    return check


def whole_number(least: int, most: int) -> Check:
    """A whole number within bounds."""

    def check(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"a whole number from {least} to {most}"

    return check


def seconds(value: Any) -> str | None:
    """A duration in seconds: finite, not negative."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")
    return None if fits else "a number of seconds, 0 or more"


def is_number(value: Any) -> bool:
    """True if ``value`` is a number, or a text that ``float`` accepts."""
    try:
        return not isinstance(value, bool) and float(value) is not None
    except (TypeError, ValueError):
        return False


def list_of(check: Check, what: str) -> Check:
    """A list whose every item passes ``check``."""

    def checked(value: Any) -> str | None:
        if not isinstance(value, list):
            return f"a list of {what}"
        wrong = [(item, expected) for item in value if (expected := check(item))]
        return f"a list of {what}; {described(wrong[0][0])} is not {wrong[0][1]}" if wrong else None

    return checked


def command(value: Any) -> str | None:
    """A command as a list of words. A single text is refused, with the list to write instead: no shell splits it."""
    if isinstance(value, str):
        try:
            words = json.dumps(shlex.split(value), ensure_ascii=False)
        except ValueError:
            words = "..."
        return f"a list of words (no shell splits it): {words}"
    if value == []:
        return "a list of at least one word"
    return list_of(any_text, "texts")(value)


def size(value: Any) -> str | None:
    """A number of bytes, or a text such as ``256 MiB``."""
    return None if size_in_bytes(value) is not None else 'a size such as "256 MiB", or a number of bytes'


def size_in_bytes(value: Any) -> int | None:
    """Return the bytes of a size as profiles write it, such as ``256 MiB``; None if it is not a size."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return int(float(match["number"]) * _FACTORS[(match["unit"] or "").lower()]) if match else None


def environment_value(value: Any) -> str | None:
    """A text, or a whole number; true and false are refused, since programs disagree on how to spell them."""
    if isinstance(value, bool):
        return f'a text in quotes, such as "{int(value)}"'
    fits = isinstance(value, int) or (isinstance(value, str) and "\0" not in value)
    return None if fits else "a text in quotes"


def environment_name(name: str) -> str | None:
    """A variable name that every shell accepts."""
    return None if _ENVIRONMENT_NAME.fullmatch(name) else "letters, digits and underscores"


def argument(value: Any) -> str | None:
    """A command-line value: text, number, true or false, or a list of those."""
    items = value if isinstance(value, list) else [value]
    fits = all(isinstance(item, (str, int, float)) and not (isinstance(item, str) and "\0" in item) for item in items)
    return None if fits else "a text, a number, true, false, or a list of those"


def scalar(value: Any) -> str | None:
    """A single command-line value: text, number, true or false."""
    return "a text, a number, true or false" if isinstance(value, list) or argument(value) else None


def as_text(value: object) -> str:
    """Return a single value as a command line spells it: ``true`` for True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_TABLE = re.compile(r"^\s*\[{1,2}\s*(?P<keys>[^\[\]]+?)\s*\]{1,2}\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(r"""^\s*(?P<keys>(?:[\w.+-]|"[^"]*"|'[^']*'|\s(?=\.)|(?<=\.)\s)+)\s*=""")
_KEY_PART = re.compile(r""""([^"]*)"|'([^']*)'|([\w+-]+)""")
KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. ``sentence`` names the key and, if it can be guessed, what was meant."""

    key: str
    sentence: str
    line: int | None = None


class ProfileError(UsageError):
    """A profile that cannot be launched: all its problems in one error."""

    def __init__(self, path: Path | None, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        where = str(path) if path else "profile"
        lines = [f"{where}{f':{problem.line}' if problem.line else ''}: {problem.sentence}" for problem in problems]
        hint = f"`mpstui profiles check {where}` lists them all" if path else ""
        super().__init__("\n".join(lines), hint, field=next((one.key for one in problems if one.key), None))


class LineIndex:
    """Finds the line that sets a key by searching the text, since TOML parsers keep no positions."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        table: KeyPath = ()
        quotes = ""
        for number, line in enumerate(text.splitlines(), start=1):
            if not quotes:
                if header := _TABLE.match(line):
                    table = _split_keys(header["keys"])
                    self._lines.setdefault(table, number)
                elif assignment := _ASSIGNMENT.match(line):
                    self._lines.setdefault(table + _split_keys(assignment["keys"]), number)
            for mark in ('"""', "'''"):  # which triple quotes are still open after this line
                if quotes in ("", mark) and line.count(mark) % 2:
                    quotes = "" if quotes else mark
                    break

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest table that holds it; None if neither is found."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return None


def _split_keys(text: str) -> KeyPath:
    return tuple(next(part for part in match if part) for match in _KEY_PART.findall(text) if any(match))
