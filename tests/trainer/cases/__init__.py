"""What the tests of every task need of each: a module here called as the task, found by that name.

It has ``SYNTHETIC``, the words of a small training on generated data, and ``CASES``, small trainings on files in the
formats the task documents, as other programs write them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from trainer.tasks import shipped_tasks


@dataclass(frozen=True)
class Case:
    """A small training on files."""

    words: tuple[str, ...]
    write: Callable[[Path], list[str]]
    """Writes the files into a folder and returns the words that name them."""
    files: str = ""
    """The folder among them whose files are all read; empty: files are named one by one."""

    def command(self, folder: Path) -> list[str]:
        """Two epochs on freshly written files."""
        return [*self.words, *self.write(folder), "--epochs", "2", "--save-every", "0"]


def synthetic(task: str) -> tuple[str, ...]:
    """The words of a small training on generated data."""
    words: tuple[str, ...] = import_module(f"{__package__}.{task}").SYNTHETIC
    return words


def cases() -> dict[str, tuple[str, Case]]:
    """Task and case by a name for both; a shipped task without its module here is an error."""
    return {
        f"{task}-{name}" if name else task: (task, case)
        for task in shipped_tasks()
        for name, case in import_module(f"{__package__}.{task}").CASES.items()
    }
