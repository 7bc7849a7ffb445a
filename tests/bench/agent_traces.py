"""Whole programs with the agent and without it: what differs in their output, exit code and files.

    python -m tests.bench.agent_traces [--python PYTHON] [--option=-O ...] PROGRAM...

Each program runs twice in an empty folder of the same name. Addresses, seconds, rates and times of log lines are left
out; a program that prints other numbers each time has to be seeded. Exits with 1 where something differs.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BOOT = Path(__file__).parents[2] / "mpstui" / "agent" / "boot"
CHANGING = re.compile(
    r"0x[0-9a-f]{6,}|(?<=in )[\d.]+s|[\d.]+ ?it/s|[VIWE]\d{4} \S+ \d+|_(?:runtime|per_second)': [^,}]+"
)


def ran(command: list[str], folder: Path, run: Path | None) -> list[str]:
    """The exit code, the lines of standard output and standard error, and a line for each file that was written."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPSTUI"))}
    if run is not None:
        environ |= {"PYTHONPATH": str(BOOT), "MPSTUI_AGENT": "1", "MPSTUI_RUN_DIR": str(run), "MPSTUI_ATTEMPT": "1"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=False)
    texts = (CHANGING.sub("...", text.decode(errors="replace")) for text in (done.stdout, done.stderr))
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
    written = [f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    return [f"exit code {done.returncode}", *(line for text in texts for line in text.splitlines()), *written]


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("programs", nargs="+", type=Path)
    asked = parser.parse_args()
    differ = 0
    with tempfile.TemporaryDirectory() as name:
        for program in asked.programs:
            command = [asked.python, *asked.option, str(program.resolve())]
            run = Path(name) / f"run-{program.stem}"
            run.mkdir(exist_ok=True)
            with_agent, without = (ran(command, Path(name) / "same", place) for place in (run, None))
            found = list(difflib.unified_diff(without, with_agent, "without", "with the agent", lineterm="", n=0))
            beats = "a heartbeat" if (run / "attempts" / "1" / "heartbeat.json").exists() else "no heartbeat"
            print(
                f"{program}: {'differs' if found else 'the same'} ({len(without)} lines, {beats})", *found, sep="\n  "
            )
            differ += bool(found)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
