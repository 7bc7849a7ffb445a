"""What must exist for a launch to work, checked before anything is started, cheapest first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from ..machine import INSTALLED_TRAINER, Machine, is_python, trainer_module
from ..model.checks import LineIndex, Problem, ProfileError, nearest
from ..model.errors import OperationError, UsageError
from ..profiles.model import Profile


def world_problems(profile: Profile, program: str, environ: Mapping[str, str]) -> list[Problem]:
    """What a profile names and the disk does not have: its folder, its interpreter, its program, its script.

    The sentences name the key of the profile's file; a command that came from no file has none.
    """
    found = {}
    if not profile.cwd.is_dir():
        found["cwd"] = f"there is no folder {profile.cwd}"
    if profile.python and not _is_program(profile.python, profile.cwd, environ):
        found["python"] = f"there is no interpreter {profile.python}"
    elif not _is_program(program, profile.cwd, environ):
        what = "is not executable" if Path(program).is_file() else "does not exist"
        missing = f"the program {program} {what}" if "/" in program else f"there is no program {program!r} on the PATH"
        found["command"] = missing
    script = script_of(profile)
    if not found and script and not (profile.cwd / script).is_file():
        found["command"] = f"there is no file {script} in {profile.cwd}{_suggestion(script, profile)}"
    lines = LineIndex(profile.text)
    return [
        Problem(key, f"`{key}`: {sentence}" if profile.path else sentence, lines.line_of((key,)))
        for key, sentence in found.items()
    ]


def require_program(profile: Profile, argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse a launch whose program, script, interpreter or folder is missing.

    Raises:
        UsageError: naming all that is missing, with file and line where a profile says so.
    """
    problems = world_problems(profile, argv[0], environ)
    if problems and profile.path:
        raise ProfileError(profile.path, problems)
    if problems:
        raise UsageError(
            "; ".join(problem.sentence for problem in problems),
            "check the spelling, or give the full path",
            field=problems[0].key,
        )


def require_text(argv: Sequence[str]) -> None:
    """Refuse words that no record can hold.

    Raises:
        UsageError: a word holds bytes that are no UTF-8.
    """
    for word in argv:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UsageError(f"{word!a} is no UTF-8 text", "rename the file, or pass it in a variable")


def require_modules(argv: Sequence[str], environ: Mapping[str, str], machine: Machine) -> None:
    """Refuse a shipped trainer in an interpreter that lacks torch or the trainer itself.

    Raises:
        OperationError: with the command that adds what is missing.
    """
    modules = (after for word, after in pairwise(argv) if word == "-m")
    trainer = next((module for module in modules if module in ("trainer", INSTALLED_TRAINER)), None)
    if not trainer or not is_python(argv[0]):
        return
    found = machine.interpreter.modules(argv[0], environ, (trainer, "torch"))
    missing = [name for name, there in found.items() if not there]
    if trainer in missing and trainer != trainer_module():
        raise OperationError(
            f"{argv[0]} has no module {trainer}: mpstui calls its trainers {trainer_module()} here",
            "write {trainer} in the profile's command, which is right in a checkout and after an install",
        )
    if missing:
        raise OperationError(
            f"{argv[0]} has no {' and no '.join(missing)}, which the shipped trainers need",
            f"add it with: {argv[0]} -m pip install 'mpstui[train]'",
        )


def _is_program(program: str, cwd: Path, environ: Mapping[str, str]) -> bool:
    if "/" in program:
        path = cwd / program
        return path.is_file() and os.access(path, os.X_OK)
    return shutil.which(program, path=environ.get("PATH", os.defpath)) is not None


def script_of(profile: Profile) -> str | None:
    """The script that a Python command runs, when it is the first thing after the interpreter's bare options."""
    words = profile.command
    if len(words) < 2 or not (words[0] == "{python}" or is_python(words[0])):
        return None
    for word in words[1:]:
        if word in ("-m", "-c", "-X", "-W"):
            return None
        if not word.startswith("-"):
            return word if word.endswith(".py") and "{" not in word else None
    return None


def _suggestion(script: str, profile: Profile) -> str:
    """Where the missing script may be instead."""
    cwd = profile.cwd
    if (cwd.parent / script).is_file():
        add = ': add cwd = ".." to the profile, which runs in its own folder otherwise' if profile.path else ""
        return f"; it is in {cwd.parent}{add}"
    likely = nearest(Path(script).name, [entry.name for entry in cwd.glob("*.py")]) if cwd.is_dir() else None
    return f"; did you mean {likely}?" if likely else ""
