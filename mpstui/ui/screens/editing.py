"""From a failure to the line of code that raised it, in the user's editor. Imported only when its key is pressed."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from ..rows import clean

if TYPE_CHECKING:
    from ...core.diagnosis.model import EvidenceLine
    from ...core.model.snapshot import RunSnapshot
    from .acting import ActingScreen

_WITH_GOTO = frozenset(("code", "code-insiders", "codium", "cursor", "windsurf"))
_WITH_COLON = frozenset(("hx", "helix", "subl", "zed", "mate"))


def editor_command(environ: Mapping[str, str], path: Path, line: int) -> list[str]:
    """Return the command that opens a file at a line: ``VISUAL``, else ``EDITOR``, else vi. Most know ``+N FILE``."""
    words = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "") or ["vi"]
    name = Path(words[0]).name
    if name in _WITH_GOTO:
        return [*words, "--goto", f"{path}:{line}"]
    return [*words, f"{path}:{line}"] if name in _WITH_COLON else [*words, f"+{line}", str(path)]


def edit_code(screen: ActingScreen, snapshot: RunSnapshot, shown: EvidenceLine | None) -> None:
    """Hand the terminal to the editor until it exits; if there is no such line here, say why."""
    if shown is None or shown.file_line is None:
        screen.context.say("Nothing names the line of code that failed.", "warning")
        return
    path = Path(shown.file)
    if snapshot.host is not None:
        screen.context.say(f"{clean(str(path), 80)} is on {clean(snapshot.host, 40)}", "warning")
    elif not path.is_absolute() or not path.is_file():
        screen.context.say(f"{clean(str(path), 80)} is not there", "warning")
    else:
        try:
            command = editor_command(screen.context.services.environ, path, shown.file_line)
            with screen.app.suspend():
                subprocess.run(command, check=False)
        except (OSError, ValueError, SuspendNotSupported) as error:
            screen.context.say(f"the editor did not start: {clean(str(error), 120)}; set EDITOR", "warning")
