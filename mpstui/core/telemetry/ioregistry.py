"""Reads the text that macOS ``ioreg -w 0`` prints: blocks of ``"key" = value`` lines under ``+-o`` headings.

Outer pairs are printed as ``"K" = V``, inner ones as ``"K"=V``. The order of keys differs between machines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

Value: TypeAlias = "int | str | bool | bytes | list[Value] | dict[str, Value]"

_PROPERTY = re.compile(r'^[\s|]*"([^"]+)" = (.+)$')
_INTEGER = re.compile(r"-?\d+")
_WORDS = {"Yes": True, "No": False}
_CLOSING = {"{": "}", "(": ")", "[": "]"}
# Deeper than anything in the registry, far from Python's recursion limit.
_MAX_DEPTH = 40


def nodes(text: str, wanted: frozenset[str]) -> Iterator[dict[str, Value]]:
    """The ``wanted`` properties of each node, in order; a property that cannot be read or was cut short is left out.

    Only wanted lines are parsed: the report legend alone is 43 KB and repeats the names of the counters.
    """
    node: dict[str, Value] | None = None
    for line in text[: text.rfind("\n") + 1].splitlines():
        if "+-o " in line:
            if node is not None:
                yield node
            node = {}
        elif node is not None and (pair := _PROPERTY.match(line)) and pair[1] in wanted:
            value = parse_value(pair[2])
            if value is not None:
                node[pair[1]] = value
    if node is not None:
        yield node


def parse_value(text: str) -> Value | None:
    """The value that ``text`` spells, or None if it is cut short or malformed."""
    try:
        value, end = _value(text, 0, 0)
    except (ValueError, IndexError):
        return None
    return value if end == len(text.rstrip()) else None


def _value(text: str, at: int, depth: int) -> tuple[Value, int]:
    first = text[at]
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deep")
    if first == "{":
        return _dictionary(text, at + 1, depth)
    if first in "([":
        return _sequence(text, at + 1, _CLOSING[first], depth)
    if first == '"':
        end = text.index('"', at + 1)
        return text[at + 1 : end], end + 1
    if first == "<":
        return _data(text, at + 1)
    return _scalar(text, at)


def _data(text: str, at: int) -> tuple[Value, int]:
    """Hexadecimal digits, or text in quotes where the data is printable: ``<6b10>``, ``<"AMD Radeon">``."""
    if text[at] == '"':
        end = text.index('">', at + 1)
        return text[at + 1 : end].encode(), end + 2
    end = text.index(">", at)
    return bytes.fromhex(text[at:end]), end + 1


def _scalar(text: str, at: int) -> tuple[Value, int]:
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return value, at + len(word)
    digits = _INTEGER.match(text, at)
    if digits is None:
        raise ValueError(f"no value at column {at}")
    return int(digits[0]), digits.end()


def _dictionary(text: str, at: int, depth: int) -> tuple[Value, int]:
    pairs: dict[str, Value] = {}
    while text[at] != "}":
        if text[at] != '"':
            raise ValueError(f"no key at column {at}")
        end = text.index('"=', at + 1)
        pairs[text[at + 1 : end]], at = _value(text, end + 2, depth + 1)
        at = _after_comma(text, at, "}")
    return pairs, at + 1


def _sequence(text: str, at: int, closing: str, depth: int) -> tuple[Value, int]:
    items: list[Value] = []
    while text[at] != closing:
        item, at = _value(text, at, depth + 1)
        items.append(item)
        at = _after_comma(text, at, closing)
    return items, at + 1


def _after_comma(text: str, at: int, closing: str) -> int:
    if text[at] == ",":
        return at + 1
    if text[at] != closing:
        raise ValueError(f"neither a comma nor {closing} at column {at}")
    return at
