"""What is wrong with a profile: every mistake at once, each with its file, line and key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError

_TABLE = re.compile(r"^\s*\[{1,2}\s*(?P<keys>[^\[\]]+?)\s*\]{1,2}\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(r"""^\s*(?P<keys>(?:[\w.+-]|"[^"]*"|'[^']*'|\s(?=\.)|(?<=\.)\s)+)\s*=""")
_KEY_PART = re.compile(r""""([^"]*)"|'([^']*)'|([\w+-]+)""")
KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. ``sentence`` names the key and, where it can be told, what was meant."""

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
    """Finds the line that sets a key, by searching the text; TOML parsers keep no positions."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        table: KeyPath = ()
        quotes = ""
        for number, line in enumerate(text.splitlines(), start=1):
            if not quotes:
                table = self._note(line, number, table)
            quotes = _open_quotes(line, quotes)

    def line_of(self, path: KeyPath) -> int | None:
        """The line of a key; of its table for a key inside an inline table; None when it is nowhere."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return None

    def _note(self, line: str, number: int, table: KeyPath) -> KeyPath:
        header = _TABLE.match(line)
        if header:
            table = _split_keys(header["keys"])
            self._lines.setdefault(table, number)
            return table
        assignment = _ASSIGNMENT.match(line)
        if assignment:
            self._lines.setdefault(table + _split_keys(assignment["keys"]), number)
        return table


def _split_keys(text: str) -> KeyPath:
    return tuple(next(part for part in match if part) for match in _KEY_PART.findall(text) if any(match))


def _open_quotes(line: str, quotes: str) -> str:
    """Which triple quotes are still open after this line."""
    for mark in ('"""', "'''"):
        if quotes in ("", mark) and line.count(mark) % 2:
            return "" if quotes else mark
    return quotes
