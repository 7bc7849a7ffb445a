"""`mpstui ps`: the runs, newest first."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from .reviving import revive
from .rows import Row, list_rows
from .session import Session, one_line, print_json, say

HELP = "List runs, newest first: whatever is running, and the newest that have ended. --all lists every run there is."
NEWEST = 50
_HEAD = ("RUN", "NAME", "STATE", "DEVICE", "EPOCH", "STEP", "LOSS", "STARTED")
_NAME_CELLS = 28
_RIGHT = ("STEP", "LOSS", "STARTED")
_GIVES_WAY = ("NAME", "DEVICE", "STEP", "STARTED", "EPOCH", "LOSS")
"""Columns that a terminal too narrow for all does without, the first one first; a file or a pipe gets them all."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help=f"also ended runs beyond the newest {NEWEST}")
    parser.add_argument("--json", action="store_true", help="print an array of runs as JSON")


def run(args: argparse.Namespace) -> int:
    session = Session()
    revive(session)
    rows, left_out = list_rows(session.home, None if args.all else NEWEST)
    if args.json:
        print_json([row.json for row in rows])
        return 0
    if not rows:
        say("no runs yet: `mpstui launch quickstart` starts one, `mpstui run -- COMMAND` any program")
        return 0
    _print_table([_HEAD, *(_cells(row, time.time()) for row in rows)], _room())
    if left_out:
        print(f"and {left_out} older: mpstui ps --all")
    return 0


def _cells(row: Row, now: float) -> tuple[str, ...]:
    from ..core.present import format as shown

    told = row.json
    return (
        told["run"],
        _shortened(one_line(told["name"]), _NAME_CELLS),
        row.word,
        one_line(told["device"] or shown.UNKNOWN),
        _of(told["epoch"], told["epochs"]),
        _of(told["step"], told["steps"]),
        shown.number(told["loss"]) if row.loss_is_finite else shown.NOT_FINITE,
        shown.moment_of_day(told["started"], now),
    )


def _shortened(name: str, cells: int) -> str:
    """A long name without its middle: what tells the runs of a sweep apart is at its end."""
    if len(name) <= cells:
        return name
    return f"{name[: cells // 2 - 1]}…{name[-(cells // 2) :]}"


def _of(done: float | None, total: float | None) -> str:
    from ..core.present import format as shown

    if done is None:
        return shown.UNKNOWN
    return f"{shown.whole(done)}/{shown.whole(total)}" if total is not None else shown.whole(done)


def _room() -> int | None:
    """Cells of a line on this terminal; None where nobody reads lines."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size  # brings three compressors along, which no script needs that reads a pipe

    return get_terminal_size().columns


def _print_table(rows: Sequence[tuple[str, ...]], room: int | None) -> None:
    widths = {title: max(len(row[place]) for row in rows) for place, title in enumerate(_HEAD)}
    for title in _GIVES_WAY:
        if room is None or sum(widths.values()) + 2 * (len(widths) - 1) <= room:
            break
        del widths[title]
    for row in rows:
        cells = {title: cell for title, cell in zip(_HEAD, row, strict=True) if title in widths}
        parts = (f"{cell:{'>' if title in _RIGHT else '<'}{widths[title]}}" for title, cell in cells.items())
        print("  ".join(parts).rstrip())
