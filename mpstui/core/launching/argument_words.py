"""Argument tables as words of a command line, in the two styles programs read."""

from __future__ import annotations

from collections.abc import Mapping

from ..profiles.model import ArgumentValue, Scalar

_HYDRA_NEEDS_QUOTES = set(",[]{}()'\"=:; \t\\")


def argument_words(arguments: Mapping[str, ArgumentValue], style: str) -> list[str]:
    """``options``: --key value (true: the bare flag; false: left out; a list: its values after the flag).

    ``hydra``: key=value, +key=value, lists in brackets.
    """
    words: list[str] = []
    for key, value in arguments.items():
        words += _hydra(key, value) if style == "hydra" else _option(key, value)
    return words


def _option(key: str, value: ArgumentValue) -> list[str]:
    flag = key if key.startswith("-") else f"--{key}"
    if value is True:
        return [flag]
    if value is False or value == ():
        return []
    if isinstance(value, tuple):
        return [flag, *(_plain(item) for item in value)]
    text = _plain(value)
    # argparse takes a value that begins with a dash for the next option, unless it is glued on or a negative number.
    return [f"{flag}={text}"] if text.startswith("-") and not _is_number(text) else [flag, text]


def _hydra(key: str, value: ArgumentValue) -> list[str]:
    if isinstance(value, tuple):
        return [f"{key}=[{','.join(_hydra_text(item) for item in value)}]"]
    return [f"{key}={_hydra_text(value)}"]


def _hydra_text(value: Scalar) -> str:
    text = _plain(value)
    if not isinstance(value, str) or not _HYDRA_NEEDS_QUOTES & set(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _plain(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
