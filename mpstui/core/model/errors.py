"""Errors that are shown as a sentence instead of a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class ReportedError(Exception):
    """A failure explained to the user: ``str(error)`` is one sentence that says what is wrong and where.

    Args:
        sentence: what is wrong and where (file, line, key).
        hint: what to do about it.
        field: the key that is wrong, as a profile spells it: ``device``, ``args.lr``, ``queue.after``.
        near: the known name that was probably meant.

    Programs should rely on ``field`` and ``near``; sentence and hint are for people and may change.
    """

    def __init__(self, sentence: str, hint: str = "", *, field: str | None = None, near: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.field = field
        self.near = near


class UsageError(ReportedError):
    """The request itself is wrong; the command line exits with 2."""


class OperationError(ReportedError):
    """A valid request failed; the command line exits with ``exit_code``."""

    exit_code = 1


class SettingsError(UsageError):
    """The settings cannot be used; ``mistakes`` says why, each with the file's name (without its folder) and line."""

    def __init__(self, path: Path, problems: Sequence[tuple[int | None, str]], hint: str = "") -> None:
        told = [(f":{line}: " if line else ": ") + sentence for line, sentence in problems]
        super().__init__("\n".join(f"{path}{one}" for one in told), hint)
        self.mistakes = tuple(path.name + one for one in told)
