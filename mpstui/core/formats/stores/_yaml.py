"""The subset of YAML that tools use for settings: mappings and lists by indentation, and plain scalars.

Tags, anchors and types are ignored: a value is its text. Anything not understood is left out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ....wire import storage

MOST_BYTES = 1 << 20
_MOST_LINES = 20_000
_DEEPEST = 40
_KEY = re.compile(
    r"""("(?:[^"\\]|\\.){0,300}"|'(?:[^']|''){0,300}'|[^\s#:'"\[\]{},&*!|>%@`-][^:]{0,300}?)"""
    r"""\s{0,20}:(?:\s{1,200}|\Z)"""
)


def read(path: Path) -> Any:
    """Return the content of a file as mappings, lists, texts and None; an empty mapping if it cannot be read."""
    try:
        return parse(storage.read_text(path, MOST_BYTES))
    except OSError:
        return {}


def parse(text: str) -> Any:
    """Like :func:`read`, for a text."""
    lines: list[tuple[int, str]] = []
    for raw in text.split("\n")[:_MOST_LINES]:
        line = raw.rstrip()
        if (bare := line.lstrip(" ")) and not bare.startswith(("#", "---", "...", "%")):
            lines.append((len(line) - len(bare), bare))
    found, _ = _block(lines, 0, 0)
    return {} if found is None else found


def _block(lines: list[tuple[int, str]], at: int, depth: int) -> tuple[Any, int]:
    """Parse a mapping, list or scalar; return it and the index of the next line."""
    if at >= len(lines) or depth > _DEEPEST:
        return None, at
    indent, first = lines[at]
    if first == "-" or first.startswith("- "):
        return _list(lines, at, indent, depth)
    if _KEY.match(first) is None:
        return _scalar(first), at + 1
    found: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] >= indent:
        key = _KEY.match(lines[at][1]) if lines[at][0] == indent else None
        if key is None:
            at += 1
            continue
        found[str(_scalar(key[1]))], at = _value(lines, at, lines[at][1][key.end() :], depth)
    return found, at


def _list(lines: list[tuple[int, str]], at: int, indent: int, depth: int) -> tuple[Any, int]:
    found = []
    while at < len(lines) and lines[at][0] == indent and (lines[at][1] == "-" or lines[at][1].startswith("- ")):
        rest = lines[at][1][1:].lstrip()
        if rest and _KEY.match(rest):  # a mapping that begins after the dash
            inner = indent + len(lines[at][1]) - len(rest)
            lines[at] = inner, rest
            value, at = _block(lines, at, depth + 1)
        else:
            value, at = _value(lines, at, rest, depth)
        found.append(value)
    return found, at


def _value(lines: list[tuple[int, str]], at: int, rest: str, depth: int) -> tuple[Any, int]:
    indent, rest = lines[at][0], _without_tag(rest)
    after = at + 1
    if rest[:1] in ("|", ">"):
        parts = []
        while after < len(lines) and lines[after][0] > indent:
            parts.append(lines[after][1])
            after += 1
        return ("\n" if rest[0] == "|" else " ").join(parts), after
    if rest and not rest.startswith("#"):
        return _scalar(rest), after
    deeper = after < len(lines) and lines[after][0] > indent
    listed = after < len(lines) and lines[after][0] == indent and lines[after][1].startswith("- ")
    return (
        _block(lines, after, depth + 1) if deeper or (listed and not lines[at][1].startswith("- ")) else (None, after)
    )


def _without_tag(text: str) -> str:
    while text[:1] in ("!", "&"):
        text = text.partition(" ")[2].lstrip()
    return text


def _scalar(text: str) -> str | None:
    text = _without_tag(text)
    if text[:1] == "'" and (end := text.rfind("'")) > 0:
        return text[1:end].replace("''", "'")
    if text[:1] == '"' and (end := text.rfind('"')) > 0:
        try:
            return str(json.loads(text[: end + 1]))
        except ValueError:
            return text[1:end]
    text = text.partition(" #")[0].strip()
    return None if text in ("null", "~", "Null", "NULL", "") else text
