"""`mpstui doctor`: the machine, before a training finds out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .session import Session, print_json, say

HELP = (
    "Check this machine: system, torch, each device by computing on it, memory, disk, limits. Exits with 1 if it fails."
)
_MARKS = {"ok": "✓", "note": "·", "warning": "!", "problem": "✗"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--train", action="store_true", help="also train a tiny network on each device: its loss must fall"
    )
    parser.add_argument(
        "--python", metavar="PATH", help="examine the torch of this interpreter (default: mpstui's own)"
    )
    parser.add_argument("--json", action="store_true", help="print facts and results as JSON")


def run(args: argparse.Namespace) -> int:
    from ..core.doctor import examine

    session = Session()
    python = str(Path(args.python).expanduser()) if args.python else sys.executable
    report = examine(session.home, session.environ, python=python, train=args.train)
    if args.json:
        print_json(report.as_json())
        return 0 if report.ok else 1
    for result in report.results:
        say(f"{_MARKS[result.status]} {result.text}")
        if result.advice:
            say(f"    {result.advice}")
    return 0 if report.ok else 1
