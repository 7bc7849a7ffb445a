"""`mpstui ps`: the runs, newest first."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import present as shown
from ..core.model.errors import OperationError, UsageError
from ..core.model.home import Home
from ..core.model.jobs import JobPhase
from ..core.model.snapshot import State
from ..wire import storage
from .run_rows import Row, list_rows, row_of
from .session import (
    FILTER_HELP,
    Session,
    keys_of_path,
    one_line,
    print_json,
    query_of,
    respawn_missing_supervisors,
    say,
    terminal_columns,
    warn,
)

if TYPE_CHECKING:
    from ..core.runs.query import Query

NEWEST = 50
PATHS_SECONDS = 30.0
"""CPU seconds for reading the runs at a path; those not read by then are listed without numbers."""
_HEAD = ("HOST", "RUN", "NAME", "STATE", "DEVICE", "EPOCH", "STEP", "LOSS", "STARTED", "JOB", "TAGS")
_NAME_CELLS = 28
_RIGHT = ("STEP", "LOSS", "STARTED")
_GIVES_WAY = ("TAGS", "JOB", "NAME", "DEVICE", "STEP", "STARTED", "EPOCH", "LOSS")
"""Columns that are left out on a narrow terminal, in this order; a file or a pipe gets them all."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""\
Lists every run that is active, and the newest {NEWEST} in any case; with --host, those of each machine. Examples:
  mpstui ps --all
  mpstui ps --all --filter 'resnet lr>=0.01 failed -test'
  mpstui ps --host local --host gpu1
  mpstui ps --json | jq -r '.[] | select(.state == "running") | .run'
  mpstui ps --watch
  mpstui ps ./wandb --filter failed
  mpstui ps ./wandb --all --filter 'lr>=0.01'
  mpstui ps --watch --json | jq -c 'map(select(.state == "failed") | .name)'
With --watch a terminal shows the list as it is now; a pipe gets it at each change, with --json one array a line."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="list what is there instead: a store of runs, a log, a folder"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"list ended runs beyond the newest {NEWEST} too; of a PATH those beyond 1,000",
    )
    parser.add_argument("--filter", metavar="WORDS", help=FILTER_HELP)
    parser.add_argument("--json", action="store_true", help="print the runs as a JSON array")
    parser.add_argument("--watch", action="store_true", help="keep running until ctrl+c, and show what changes")
    parser.add_argument(
        "--every", type=float, default=1.0, metavar="S", help="with --watch: seconds between two polls (default: 1)"
    )
    parser.add_argument("--rows", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    wanted, code = query_of(args.filter), 0
    if args.paths and args.hosts:
        raise UsageError("ps: PATH and --host do not go together", "`mpstui ps PATH` over ssh lists what is there")
    if args.watch:
        from .watching import watch

        return watch(args, wanted)
    if args.hosts:
        rows, left_out, code = _rows_of_hosts(args)
    else:
        rows, left_out = _own_rows(args, wanted)
    if args.rows:
        print_rows(rows, left_out)
    elif args.json:
        print_json([row.json for row in rows])
    elif rows or not code:
        for line in table(rows, left_out, wanted):
            say(line)
    return code


def print_rows(rows: Sequence[Row], left_out: int) -> None:
    """Print rows for another mpstui to show with its own."""
    found = [{name: getattr(row, name) for name in ("json", "word", "loss_is_finite")} for row in rows]
    print_json({"rows": found, "left_out": left_out}, indent=None)


def _own_rows(args: argparse.Namespace, wanted: Query | None) -> tuple[list[Row], int]:
    session = Session()
    if args.paths and args.all:
        rows, left_out = [row for one in args.paths for row in _every_row(session.home, one, wanted)], 0
    elif args.paths:
        from ..core.runs.monitor import Monitor

        monitor = Monitor(session.home)
        keys = frozenset(key for one in args.paths for key in keys_of_path(monitor, one))
        seen = [one for one in monitor.refresh_whole(PATHS_SECONDS) if one.run in keys]
        rows, left_out = [row_of(one) for one in seen], 0
    else:
        respawn_missing_supervisors(session)
        rows, left_out = list_rows(session.home, None if args.all else NEWEST)
    return [row for row in rows if wanted is None or wanted.matches(row.findable())], left_out


def _every_row(home: Home, word: str, wanted: Query | None) -> Iterator[Row]:
    """Yield the matching rows at a path one by one, so that a store of any size fits into memory."""
    from ..core.formats.stores import require_path
    from ..core.runs.local_machine import machine_here
    from ..core.runs.stored_best import kept_in
    from ..core.runs.stored_once import every_run

    path = Path(word).expanduser().absolute()
    require_path(path)
    rows = map(row_of, every_run(path, machine_here(home.state), kept_in(home.state)))
    return (row for row in rows if wanted is None or wanted.matches(row.findable()))


def _rows_of_hosts(args: argparse.Namespace) -> tuple[list[Row], int, int]:
    """Return the rows of all hosts, newest first, how many were left out, and the exit code: not 0 if a host failed."""
    from .far import ask_all

    rows, left_out, code = [], 0, 0
    for found in ask_all(list(dict.fromkeys(args.hosts)), far_words(args)):
        if isinstance(found, OperationError):
            warn(found.sentence + (f" ({found.hint})" if found.hint else ""))
            code = found.exit_code
        elif found.code:
            warn(f"{found.host}: {(found.errors.decode(errors='replace').splitlines() or ['it failed'])[-1]}")
            code = code or found.code
        else:
            told = storage.load_object(found.output)
            left_out += told["left_out"]
            rows += rows_from(found.host, told)
    return joined(rows), left_out, code


def far_words(args: argparse.Namespace) -> list[str]:
    """Return the command that a host runs to list its rows."""
    return ["ps", "--rows", *(["--all"] if args.all else []), *(["--filter", args.filter] if args.filter else [])]


def rows_from(host: str, told: Mapping[str, Any]) -> list[Row]:
    """Return the rows in a host's answer; this machine's name, as the host has it, becomes ``local``."""
    from platform import node

    rows = [Row({"host": host, **row["json"]}, row["word"], row["loss_is_finite"]) for row in told["rows"]]
    for row in rows:
        for place, name in ((row.json, "moved_to"), (row.json.get("moving") or {}, "to")):
            if place.get(name) == node():
                place[name] = "local"
    return rows


def joined(rows: Sequence[Row]) -> list[Row]:
    """Join the rows of several machines, newest first, each run once: it may have moved, or be in a shared home."""
    known = {(row.json["host"], row.json["run"]) for row in rows}
    rows = [row for row in rows if (row.json.get("moved_to"), row.json["run"]) not in known]
    once: dict[Any, Row] = {}
    for row in sorted(rows, key=lambda row: (bool(row.json.get("moved_to")), not State(row.json["state"]).active)):
        once.setdefault((row.json["run"], row.json["started"] or row.json["host"]), row)
    return sorted(once.values(), key=lambda row: row.json["started"] or math.inf, reverse=True)


def table(rows: Sequence[Row], left_out: int, wanted: Query | None) -> list[str]:
    """Return the table's lines, as wide as the terminal."""
    if not rows and wanted:
        return ["no run matches" + (f", of the newest {NEWEST}: mpstui ps --all looks at all" if left_out else "")]
    if not rows:
        return ["no runs yet: `mpstui launch quickstart` starts one, `mpstui run -- COMMAND` any program"]
    cells, columns = [_HEAD, *(_cells(row, time.time()) for row in rows)], terminal_columns()
    widths = {title: max(map(len, column)) for title, column in zip(_HEAD, zip(*cells, strict=True), strict=True)}
    for title in ("TAGS", "JOB", "HOST"):
        if not any(row.json.get(title.lower()) for row in rows):
            del widths[title]
    for title in _GIVES_WAY:
        if columns is None or sum(widths.values()) + 2 * (len(widths) - 1) <= columns:
            break
        widths.pop(title, None)
    lines = []
    for line in cells:
        kept = ((title, cell) for title, cell in zip(_HEAD, line, strict=True) if title in widths)
        lines.append("  ".join(f"{cell:{'>' if title in _RIGHT else '<'}{widths[title]}}" for title, cell in kept))
    return [line.rstrip() for line in lines] + ([f"and {left_out} older: mpstui ps --all"] if left_out else [])


def _cells(row: Row, now: float) -> tuple[str, ...]:
    told, name = row.json, one_line(row.json["name"])
    if len(name) > _NAME_CELLS:  # cut in the middle: the runs of a sweep differ at the end
        name = f"{name[: _NAME_CELLS // 2 - 1]}…{name[-(_NAME_CELLS // 2) :]}"

    def of(done: float | None, total: float | None) -> str:
        return shown.whole(done) + (f"/{shown.whole(total)}" if done is not None and total is not None else "")

    return (
        one_line(told.get("host", "")),
        _short(told["run"]),
        name,
        one_line(_where_to(row)),
        one_line(told["device"] or shown.UNKNOWN),
        of(told["epoch"], told["epochs"]),
        of(told["step"], told["steps"]),
        shown.number(told["loss"]) if row.loss_is_finite else shown.NOT_FINITE,
        shown.moment_of_day(told["started"], now),
        one_line(_job(told.get("job"))),
        one_line(" ".join(f"#{tag}" for tag in told["tags"])),
    )


def _where_to(row: Row) -> str:
    """Return the word for a run's state and, if it is moving or has moved, where to."""
    if moved := row.json.get("moved_to"):
        return f"moved to {moved}"
    moving = row.json.get("moving")
    return f"moving to {moving['to']}" if moving and row.word == shown.BADGES[State.MOVING].word else row.word


def _short(run: str) -> str:
    """Return a run's id or path, relative if it is below this folder; a path keeps the slash that marks it as one."""
    here = f"{Path.cwd()}/"
    return one_line(f"./{run.removeprefix(here)}" if run.startswith(here) else run)


def _job(told: Mapping[str, Any] | None) -> str:
    """``17 on n1``, ``17 Priority``, ``17 completed``; a ``?`` means that the scheduler does not answer."""
    if told is None:
        return ""
    phase = JobPhase(told["phase"])
    where = told["reason"] if phase.waits else f"on {told['nodes']}" if phase.has_nodes and told["nodes"] else None
    said = where or phase.replace("_", " ")
    return f"{told['id']} {said}" + ("?" if told["silent_since"] is not None else "")
