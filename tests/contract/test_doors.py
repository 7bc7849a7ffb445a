"""What comes from outside passes one door: ``wire.storage`` opens files, ``cli.session`` prints words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "mpstui"
READS = frozenset({"read_bytes", "read_text"})
ASK_THE_KERNEL = frozenset(
    {
        *("wire/liveness.py", "supervisor/family.py", "supervisor/memory.py", "core/machine.py"),
        *("core/doctor/machine_check.py", "core/telemetry/procfs.py"),
    }
)
"""They read /proc, /sys and the system's own settings, which nobody else writes."""
OWN_TEMPORARY = frozenset({"core/bench/training.py", "core/bench/deviation.py"})
"""They read what their own children wrote into a folder that nobody else knows."""
PRINTS = frozenset({"cli/session.py"})


def calls(folder: str, named: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call in files that hold one of these words; in the others is none of interest."""
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(rf"\b(?:{named})\b", text) else ():
            if isinstance(node, ast.Call):
                yield str(path.relative_to(PACKAGE)), node


def opens_for_reading(call: ast.Call) -> bool:
    written = ast.unparse(call)
    if isinstance(call.func, ast.Attribute):
        if call.func.attr in READS:
            return not written.startswith("storage.")
        if written.startswith("os.open("):
            return "O_RDONLY" in written and "folder" not in written
        return call.func.attr == "open" and bool(call.args) and ast.unparse(call.args[0]).startswith("'r")
    return written.startswith("open(") and "'w'" not in written and "'a'" not in written


def test_every_file_is_opened_at_one_door() -> None:
    allowed = ASK_THE_KERNEL | OWN_TEMPORARY
    found = [
        f"{name}:{call.lineno}: {ast.unparse(call)}"
        for folder in ("wire", "supervisor", "core", "cli", "ui")
        for name, call in calls(folder, "open|read_bytes|read_text")
        if opens_for_reading(call)
        and name not in allowed
        and not name.startswith(("core/telemetry/sources/", "wire/storage"))
    ]
    assert not found, "open it with storage.open_file, read_bytes or read_text: a pipe would be waited for for ever"


def test_every_word_is_printed_at_one_door() -> None:
    found = [
        f"{name}:{call.lineno}"
        for name, call in calls("cli", "print|stderr")
        if ast.unparse(call.func) in ("print", "sys.stderr.write") and name not in PRINTS
    ]
    assert not found, "print it with say, say_lines, give, warn or print_json: a name in it may steer the terminal"


def test_every_word_is_drawn_at_one_door() -> None:
    """Rows by ``LinePanel``, values by ``TextField``, both through ``rows.visible``; half blocks hold no word."""
    doors = {"ui/widgets/lines.py", "ui/widgets/text_field.py", "ui/widgets/image_cells.py"}
    own = {"Segment", "Strip", "Static", "Label", "Input", "Text", "print"}
    found = [
        f"{name}:{call.lineno}"
        for name, call in calls("ui", "|".join(own))
        if ast.unparse(call.func) in own and name not in doors
    ]
    assert not found, "draw it with rows, or with TextField: a value in it may steer the terminal"
