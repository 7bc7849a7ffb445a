"""A launch as a shell script that a person can read, keep and run without mpstui."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from .environment import EnvLine

_RUN_DIR = "{run_dir}"
_SHEBANG = "#!/bin/sh\n"


def shell_script(name: str, argv: Sequence[str], env: Sequence[EnvLine], cwd: Path) -> str:
    """POSIX shell, every word quoted, each variable exported with its reason as a comment, no secret's value."""
    lines = [_SHEBANG.strip(), f"# {_one_line(name)}", "set -eu", f"cd {shlex.quote(str(cwd))}", ""]
    if any(_RUN_DIR in word for word in (*argv, *(line.value for line in env))):
        lines += ['run_dir="${MPSTUI_RUN_DIR:-$PWD/run}"; mkdir -p "$run_dir"']
    for line in env:
        lines += _export(line)
    return "\n".join([*lines, "", f"exec {' '.join(_word(word) for word in argv)}", ""])


def joined_scripts(scripts: Sequence[str]) -> str:
    """Scripts of :func:`shell_script` as one that runs them in turn, each in its own shell, and ends at a failure."""
    if len(scripts) == 1:
        return scripts[0]
    parts = [f"(\n{script.removeprefix(_SHEBANG)})\n" for script in scripts]
    return f"{_SHEBANG}# {len(scripts)} runs, one after the other\nset -eu\n\n" + "\n".join(parts)


def _export(line: EnvLine) -> list[str]:
    comments = [f"# {_one_line(line.reason)}"]
    if line.doubtful:
        comments.append(f"# doubtful: {_one_line(line.doubtful)}")
    if line.secret:
        return [*comments, f': "${{{line.name}:?is a secret: set it before you run this}}"', f"export {line.name}"]
    return [*comments, f"export {line.name}={_word(line.value)}"]


def _word(word: str) -> str:
    """Quoted; ``{run_dir}`` becomes a variable, and the first attempt is the only one a script has."""
    parts = word.replace("{attempt}", "1").split(_RUN_DIR)
    return '"$run_dir"'.join(shlex.quote(part) if part or len(parts) == 1 else "" for part in parts)


def _one_line(text: str) -> str:
    """A comment must not be able to end itself."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
