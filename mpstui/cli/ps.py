"""`mpstui ps`: the runs, newest first. The row of an ended run is cached until one of its files changes."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from ..core import present as shown
from ..core.model.errors import OperationError, UsageError
from ..core.model.home import Home
from ..core.model.jobs import JobPhase
from ..core.model.reader_version import reader_version
from ..core.model.snapshot import State
from ..wire import liveness, storage
from ..wire.rundir import RunDir
from ..wire.storage import UnreadableRecord
from .session import (
    FILTER_HELP,
    Session,
    keys_of_path,
    one_line,
    print_json,
    query_of,
    respawn_missing_supervisors,
    say,
    warn,
)

if TYPE_CHECKING:
    from ..core.model.snapshot import RunSnapshot
    from ..core.runs.external import LogNotes
    from ..core.runs.local_machine import LocalMachine
    from ..core.runs.query import Findable, Query

NEWEST = 50
PATHS_SECONDS = 30.0
"""Processor time for reading what lies at a path; runs not read by then are listed without numbers."""
CACHE_SCHEMA = 6
_HEAD = ("HOST", "RUN", "NAME", "STATE", "DEVICE", "EPOCH", "STEP", "LOSS", "STARTED", "JOB", "TAGS")
_NAME_CELLS = 28
_RIGHT = ("STEP", "LOSS", "STARTED")
_GIVES_WAY = ("TAGS", "JOB", "NAME", "DEVICE", "STEP", "STARTED", "EPOCH", "LOSS")
"""Columns that a narrow terminal leaves out, in this order; a file or a pipe gets them all."""


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
    """Print rows for another mpstui, which shows them with its own."""
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
    """The matching rows at a path, one by one, so that a store of any size fits into memory."""
    from ..core.formats.stores import require_path
    from ..core.runs.local_machine import machine_here
    from ..core.runs.stored_best import kept_in
    from ..core.runs.stored_once import every_run

    path = Path(word).expanduser().absolute()
    require_path(path)
    rows = map(row_of, every_run(path, machine_here(home.state), kept_in(home.state)))
    return (row for row in rows if wanted is None or wanted.matches(row.findable()))


def _rows_of_hosts(args: argparse.Namespace) -> tuple[list[Row], int, int]:
    """The rows of all hosts, newest first, how many rows were left out, and the exit code: not 0 if a host failed."""
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
    """The command that a host runs for its rows."""
    return ["ps", "--rows", *(["--all"] if args.all else []), *(["--filter", args.filter] if args.filter else [])]


def rows_from(host: str, told: Mapping[str, Any]) -> list[Row]:
    """The rows of a host's answer; what it knows by this machine's name is ``local`` here."""
    from platform import node

    rows = [Row({"host": host, **row["json"]}, row["word"], row["loss_is_finite"]) for row in told["rows"]]
    for row in rows:
        for place, name in ((row.json, "moved_to"), (row.json.get("moving") or {}, "to")):
            if place.get(name) == node():
                place[name] = "local"
    return rows


def joined(rows: Sequence[Row]) -> list[Row]:
    """The rows of several machines, newest first, and each run once: it may have moved, or lie in a shared home."""
    known = {(row.json["host"], row.json["run"]) for row in rows}
    rows = [row for row in rows if (row.json.get("moved_to"), row.json["run"]) not in known]
    once: dict[Any, Row] = {}
    for row in sorted(rows, key=lambda row: (bool(row.json.get("moved_to")), not State(row.json["state"]).active)):
        once.setdefault((row.json["run"], row.json["started"] or row.json["host"]), row)
    return sorted(once.values(), key=lambda row: row.json["started"] or math.inf, reverse=True)


def table(rows: Sequence[Row], left_out: int, wanted: Query | None) -> list[str]:
    """The table's lines, as wide as the terminal."""
    if not rows and wanted:
        return ["no run matches" + (f", of the newest {NEWEST}: mpstui ps --all looks at all" if left_out else "")]
    if not rows:
        return ["no runs yet: `mpstui launch quickstart` starts one, `mpstui run -- COMMAND` any program"]
    cells, columns = [_HEAD, *(_cells(row, time.time()) for row in rows)], _columns()
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
    if len(name) > _NAME_CELLS:  # cut in the middle: the end is what differs among the runs of a sweep
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
    """The word for its state; of a run that is moving or has moved, also where to."""
    if moved := row.json.get("moved_to"):
        return f"moved to {moved}"
    moving = row.json.get("moving")
    return f"moving to {moving['to']}" if moving and row.word == shown.BADGES[State.MOVING].word else row.word


def _short(run: str) -> str:
    """A run's id, or its path, relative if it lies below this folder; a path keeps the slash that marks it as one."""
    here = f"{Path.cwd()}/"
    return one_line(f"./{run.removeprefix(here)}" if run.startswith(here) else run)


def _job(told: Mapping[str, Any] | None) -> str:
    """``17 on n1``, ``17 Priority``, ``17 completed``; a ``?`` says that the scheduler does not answer."""
    if told is None:
        return ""
    phase = JobPhase(told["phase"])
    where = told["reason"] if phase.waits else f"on {told['nodes']}" if phase.has_nodes and told["nodes"] else None
    said = where or phase.replace("_", " ")
    return f"{told['id']} {said}" + ("?" if told["silent_since"] is not None else "")


def _columns() -> int | None:
    """Width of the terminal; None if the output is a file or a pipe."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size  # imports three compressors, which nobody needs who reads a pipe

    return get_terminal_size().columns


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list."""

    json: dict[str, Any]
    """As documented for ``ps --json``."""
    word: str
    """Its state in a word, for people."""
    loss_is_finite: bool = True
    called: Sequence[str] = ()
    """Words that a filter finds it by; ``values`` are the numbers and settings that it finds it by."""
    values: Mapping[str, str | float | None] = field(default_factory=dict)

    def findable(self) -> Findable:
        from ..core.runs.query import Findable

        return Findable(tuple(self.called), self.values, self.json["started"], self.json["ended"], time.time())


def row_of(snapshot: RunSnapshot) -> Row:
    """The row of one run."""
    from ..core.runs.query import findable
    from ..core.runs.report import as_json

    finite, found_by = snapshot.numbers.loss_is_finite, findable(snapshot)
    return Row(as_json(snapshot, full=False), shown.badge(snapshot).word, finite, found_by.words, found_by.values)


def list_rows(home: Home, newest: int | None) -> tuple[list[Row], int]:
    """The rows, newest first, and how many older ended runs were left out.

    Args:
        newest: list so many, and older runs only while they are active; None lists all.
    """
    from ..wire.rundir import run_dirs

    runs = run_dirs(home.runs)
    shown = [run for place, run in enumerate(runs) if newest is None or place < newest or seems_active(run)]
    cache = RowCache(home.state / "cache")
    rows = [cache.row(run) for run in shown]
    cache.write({run.run for run in runs})
    return rows, len(runs) - len(shown)


def seems_active(run: RunDir) -> bool:
    """Whether a run may be active: a lock is held, or it could not be stopped. In doubt, yes."""
    try:
        if any(map(liveness.is_held, (run.supervisor_lock, run.run_lock, run.moving_lock))):
            return True
        return b"stop_failed" in storage.read_bytes(run.status)
    except FileNotFoundError:
        return False
    except OSError:
        return True


class RowCache:
    """Rows of ended runs, each with the stamps of the files it was read from, and notes on how far logs were read.

    Losing it costs only time: with 50 short runs, `ps` takes 0.33 s of CPU time instead of 0.15 s. The first line is a
    checksum of the rest, because a damaged row would be shown as if it were true.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._notes_path = folder / "ps.cache", folder / "logs.json"
        self._changed = False
        self._rows: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, UnreadableRecord):
            told, _, text = storage.read_bytes(self._path).partition(b"\n")
            found = storage.load_object(text) if int(told, 16) == crc32(text) else {}
            if (found.get("schema"), found.get("version")) == (CACHE_SCHEMA, reader_version()):
                self._rows = found["rows"]

    def row(self, run: RunDir) -> Row:
        """The cached row if no file it was read from has changed; only other rows need the readers to be imported."""
        found = self._rows.get(run.run)
        if found and found["stamps"] == _stamps(run, found["row"]["json"]["attempt"]):
            return Row(**found["row"])
        from ..core.follow import Budget
        from ..core.runs.reader import RunReader

        numbers = run.attempt_numbers()
        stamps = _stamps(run, numbers[-1] if numbers else 0)  # before it is read
        reader = RunReader(run, self._machine, self._notes)
        snapshot = reader.refresh(full=False, budget=Budget(1.0))  # seconds: enough for the end of any log
        row = row_of(snapshot)
        watches_others = bool(reader.witnesses.spec.value and reader.witnesses.spec.value.watch)
        if reader.witnesses.settled and reader.caught_up and not watches_others:
            fields = {one.name: getattr(row, one.name) for one in dataclass_fields(row)}  # asdict copies deeply
            self._rows[run.run] = {"stamps": stamps, "row": fields}
            self._changed = True
        else:
            reader.note()
        return row

    def write(self, names: Iterable[str]) -> None:
        """Write the new rows, and forget runs that are not among ``names``."""
        kept = {name: self._rows[name] for name in names if name in self._rows}
        if self._changed or len(kept) < len(self._rows):
            with contextlib.suppress(OSError):  # a full or read-only disk only makes the next `ps` slower
                storage.make_private_folder(self._path.parent)
                text = storage.dump_bytes({"schema": CACHE_SCHEMA, "version": reader_version(), "rows": kept})
                storage.write_bytes(self._path, b"%08x\n%s" % (crc32(text), text), sync=False)
        if "_notes" in vars(self) or self._notes_path.exists():  # otherwise all rows were cached and no note is stale
            self._notes.write()

    @cached_property
    def _notes(self) -> LogNotes:
        from ..core.runs.external import LogNotes

        return LogNotes(self._notes_path)

    @cached_property
    def _machine(self) -> LocalMachine:
        from ..core.runs.local_machine import LocalMachine
        from ..wire.liveness import boot_id, system_process_table

        return LocalMachine(table=system_process_table(), boot_id=boot_id())


def _stamps(run: RunDir, attempt: int) -> list[int]:
    """Times and sizes of the files behind a row; renames and new attempts change the folders."""
    names = ["", "spec.json", "status.json", "metrics.jsonl", "attempts"]
    names += [f"attempts/{attempt}/{name}" for name in ("", "output.log", "heartbeat.json", "exit.json")]
    found = []
    for name in names:
        try:
            status = os.stat(f"{run.path}/{name}")  # noqa: PTH116 - called thousands of times; Path would triple it
            found += [status.st_mtime_ns, status.st_size]
        except OSError:
            found += [0, 0]
    return found
