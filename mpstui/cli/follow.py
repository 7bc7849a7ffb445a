"""`mpstui follow`: what happens to runs, one line per event, for jq and cron."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core import present as shown
from ..core.model.errors import OperationError
from ..core.model.snapshot import State
from ..core.runs.stream import Streams
from ..wire import storage
from ..wire.storage import UnreadableRecord
from .resuming import give, known, put
from .session import RUN_HELP, Session, json_text, one_line, respawn_missing_supervisors, rest

POLL_SECONDS = 0.25
RESPAWN_SECONDS = 5.0
LINES_AT_ONCE = 500


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Without RUN: all runs, also new ones, until ctrl+c; with RUN: until all of them have ended. A log or a folder that
mpstui did not start can stand in place of a run. docs/scripts.md has the fields. Examples:
  mpstui follow RUN --json | jq -c 'select(.kind == "point") | [.step, .values.loss]'
  mpstui follow --new --json | jq -r 'select(.state == "failed") | .name'
  mpstui follow --once --mark ~/.seen --json   # in cron: what has happened since the last time"""
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--json", action="store_true", help="print an object for each event")
    parser.add_argument("--log", action="store_true", help="also print lines of the output")
    parser.add_argument("--new", action="store_true", help="only what is new, not what is already there")
    parser.add_argument("--once", action="store_true", help="end after printing what is already there")
    parser.add_argument("--mark", type=Path, metavar="FILE", help="continue after what was printed with it before")


def run(args: argparse.Namespace) -> int:
    session, respawned = Session(), 0.0
    places = known("places") or (_marked(args.mark) if args.mark else None)
    streams = Streams(session.home, args.runs, log=args.log, places=places, only_new=args.new)
    while True:
        if time.monotonic() - respawned >= RESPAWN_SECONDS:
            respawn_missing_supervisors(session)
            respawned = time.monotonic()
        for events in streams.read():
            lines: list[str] = []
            for told in events:
                lines.append(f"{json_text(told) if args.json else one_line(_sentence(told))}\n")
                if len(lines) >= LINES_AT_ONCE:
                    put(_bytes(lines))
            if lines:
                give(_bytes(lines), places=streams.places)
        if args.mark:
            _mark(args.mark, streams.places)
        if args.once or streams.have_settled:
            return 0
        rest(POLL_SECONDS)


def _bytes(lines: list[str]) -> bytes:
    """Empty the list and return what was in it."""
    data = "".join(lines).encode(sys.stdout.encoding or "utf-8", "replace")
    lines.clear()
    return data


def _sentence(told: Mapping[str, Any]) -> str:
    """Describe an event for people."""
    moment = shown.moment_of_day(told["time"], time.time()) if told["time"] is not None else ""
    kind = told["kind"]
    if kind == "point":
        where = [f"{name} {shown.whole(told[name])}" for name in ("epoch", "step") if told[name] is not None]
        measured = (
            f"{name} {shown.number(v) if v is not None else shown.NOT_FINITE}" for name, v in told["values"].items()
        )
        words = "  ".join([*where, *measured])
    elif kind == "state":
        state = [told["word"]] if told["state"] == State.WATCHED else [told["state"], told["health"]]
        words = " ".join(filter(None, (*state, f"({told['reason']})" if told["reason"] else "")))
    elif kind == "checkpoint":
        words = f"checkpoint {told['path']}, {shown.size(told['bytes'])}"
    else:
        words = told["text"] or ""
    return "  ".join(part for part in (moment, told["run"], words) if part)


def _marked(path: Path) -> Mapping[str, Any]:
    try:
        return storage.read_json(path) or {}
    except (UnreadableRecord, OSError) as error:
        raise OperationError(f"{path} cannot be read: {error}", "remove it, and everything is printed again") from error


def _mark(path: Path, places: Mapping[str, Any]) -> None:
    try:
        storage.write_json(path, dict(places), sync=False)
    except OSError as error:
        raise OperationError(f"{path} cannot be written: {error.strerror or error}") from error
