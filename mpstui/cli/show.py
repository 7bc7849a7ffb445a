"""`mpstui show`: everything known about one run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..core.runs.find import find_run
from .session import Session, print_json, say

if TYPE_CHECKING:
    from ..core.runs.snapshot import RunSnapshot

HELP = "Print everything known about one run."
_EVENTS = 8


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="an id, a unique beginning of one, or a name")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    from ..core.runs.monitor import Monitor
    from ..core.runs.report import as_json

    home = Session().home
    snapshot = Monitor(home).snapshot(find_run(home, args.run).run)
    if args.json:
        print_json(as_json(snapshot, full=True))
        return 0
    for label, text in _lines(snapshot):
        say(f"{label:>12}  {text}")
    return 0


def _lines(snapshot: RunSnapshot) -> Iterator[tuple[str, str]]:
    from ..core.present import format as shown

    yield "run", snapshot.run
    yield "name", snapshot.name
    state = str(snapshot.state) + (f", {snapshot.health}" if snapshot.health else "")
    yield "state", f"{state}: {snapshot.reason}" if snapshot.reason else state
    if snapshot.exit:
        cause = f" (cause: {snapshot.exit.cause})" if snapshot.exit.cause else ""
        yield "end", snapshot.exit.sentence() + cause
    yield "device", f"{snapshot.device.type or 'n/a'} (asked for: {snapshot.device_asked or 'n/a'})"
    yield "attempt", f"{snapshot.attempt} of {snapshot.attempts}"
    yield "progress", _progress(snapshot)
    yield "loss", shown.number(snapshot.loss) if snapshot.loss_is_finite else "not finite"
    for name, view in snapshot.series.items():
        yield name, f"{view.count} points, first {shown.number(view.first)}, last {shown.number(view.last)}"
    for checkpoint in snapshot.checkpoints[:3]:
        yield "checkpoint", f"{checkpoint.path.name}, {shown.size(checkpoint.size_bytes)}"
    for one in snapshot.events[-_EVENTS:]:
        yield shown.moment_of_day(one.time, time.time()), one.text or one.event
    yield "command", " ".join(snapshot.argv)
    yield "folder", str(snapshot.dir)


def _progress(snapshot: RunSnapshot) -> str:
    def of(done: float | None, total: float | None) -> str:
        return f"{'n/a' if done is None else f'{done:g}'}" + (f" of {total:g}" if total is not None else "")

    return f"epoch {of(snapshot.epoch, snapshot.epochs)}, step {of(snapshot.step, snapshot.steps)}"
