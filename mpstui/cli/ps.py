"""`mpstui ps`: the runs, newest first."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from .rows import Row, list_rows
from .session import Session, one_line, print_json

HELP = "List runs, newest first: whatever is running, and the newest that have ended. --all lists every run there is."
NEWEST = 50
_HEAD = ("RUN", "NAME", "STATE", "DEVICE", "EPOCH", "STEP", "LOSS", "STARTED")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help=f"also ended runs beyond the newest {NEWEST}")
    parser.add_argument("--json", action="store_true", help="print an array of runs as JSON")


def run(args: argparse.Namespace) -> int:
    rows, left_out = list_rows(Session().home, None if args.all else NEWEST)
    if args.json:
        print_json([row.json for row in rows])
        return 0
    _print_table([_HEAD, *(_cells(row, time.time()) for row in rows)])
    if left_out:
        print(f"and {left_out} older: mpstui ps --all")
    return 0


def _cells(row: Row, now: float) -> tuple[str, ...]:
    from ..core.present import format as shown

    told = row.json
    return (
        told["run"],
        one_line(told["name"])[:28],
        row.word,
        one_line(told["device"] or shown.UNKNOWN),
        _of(told["epoch"], told["epochs"]),
        _of(told["step"], told["steps"]),
        shown.number(told["loss"]) if row.loss_is_finite else "not finite",
        shown.moment_of_day(told["started"], now),
    )


def _of(done: float | None, total: float | None) -> str:
    if done is None:
        return "n/a"
    return f"{done:g}/{total:g}" if total is not None else f"{done:g}"


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
