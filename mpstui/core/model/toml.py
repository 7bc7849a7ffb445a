"""Parsing of hand-written or untrusted TOML: the whole file, or one mistake with its line."""

from __future__ import annotations

import re
from typing import Any

MOST_KEY_PARTS = 64
"""tomllib's time grows with the square of the number of dots in a key; no real key has more parts than this."""
_POSITION = re.compile(r"\s*\(at line (\d+), column \d+\)$")
_PART = r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')"
_LONG_KEY = re.compile(rf"^[ \t\[]*(?:{_PART}[ \t]*\.[ \t]*){{{MOST_KEY_PARTS}}}", re.MULTILINE)


class TomlMistake(ValueError):
    """A text is not valid TOML.

    Args:
        what: what is wrong, without the position.
        line: from 1; None if the parser does not say.
    """

    def __init__(self, what: str, line: int | None) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def load_toml(text: str) -> dict[str, Any]:
    """Parse the text of a whole file.

    Raises:
        TomlMistake: it is not TOML, or it is nested too deeply or has keys or numbers too long to parse safely.
    """
    import tomllib  # imported late: most users have no settings file, and need no parser

    if long := _LONG_KEY.search(text):
        raise TomlMistake(f"a key of more than {MOST_KEY_PARTS} parts", text.count("\n", 0, long.start()) + 1)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = _POSITION.search(str(error))
        line = int(position[1]) if position else text.count("\n") + 1
        raise TomlMistake(f"this is not TOML: {_POSITION.sub('', str(error))}", line) from error
    except RecursionError as error:
        raise TomlMistake("it is nested too deeply", None) from error
    except ValueError as error:
        raise TomlMistake("a number in it is too long", None) from error
