"""`mpstui move RUN --to HOST`: carry a run on, on another machine, from its newest checkpoint."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Iterator

from ..core.hosts.moving import MovePlan, Mover, mover
from ..core.hosts.progress import Progress
from ..core.hosts.ssh import LOCAL
from ..core.launching.choice import job_options
from ..core.model.errors import UsageError
from ..core.settings import load_settings
from .session import Session, add_repeatable, agreed, print_json, say, say_lines, say_over, warn

_LINE_SECONDS = 30.0
"""Between two lines where nobody sees one change."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The training saves and ends; its code, records and newest checkpoint are sent over ssh; its next attempt starts there.
If anything fails it goes on, or can go on, where it was; so it does after ctrl+c. Examples:
  mpstui move RUN --to gpu1                  # from this machine
  mpstui move gpu1:RUN --to local            # and back
  mpstui move RUN --to gpu1 --device cpu"""
    parser.add_argument("run", metavar="[HOST:]RUN", help="the run, and the machine it is on (default: this one)")
    parser.add_argument("--to", metavar="HOST", required=True, help="where it goes on; local is this machine")
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="where to train there (default: its best)")
    parser.add_argument("--on", metavar="slurm|local", help="have the scheduler there start it, or not")
    add_repeatable(parser, "--job", "OPTION[=VALUE]", "set an option of the scheduler, such as partition=gpu")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="say what would travel, and move nothing")
    parser.add_argument("--json", action="store_true", help='print {"run": ID, "host": HOST, "attempt": N, "step": N}')


class _Teller:
    """How far it is, on standard error: one line that changes on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._changes = sys.stderr.isatty()
        self._last = Progress("")
        self._told_at = 0.0

    def tell(self, now: Progress) -> None:
        is_new, moment = now.doing != self._last.doing, time.monotonic()
        self._last = now
        if self._changes:
            say_over(now.sentence)
        elif is_new or moment - self._told_at >= _LINE_SECONDS:
            self._told_at = moment
            say_lines(now.sentence, beside=True)

    def end(self) -> None:
        """Leave the line to what is said next."""
        if self._changes and self._last.doing:
            say_over("")


@contextlib.contextmanager
def _cancelled_by_interrupt(carrier: Mover) -> Iterator[None]:
    """Ctrl+c cancels the move, which is waited for; once more it ends this program, and both machines see that."""

    def interrupted(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        carrier.cancel()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run(args: argparse.Namespace) -> int:
    session, teller = Session(), _Teller()
    head, colon, name = args.run.rpartition(":")
    source = head if colon else LOCAL
    carrier = mover(source, args.to, load_settings(session.home).hosts, session.environ)
    try:
        planned = carrier.plan(name, args.device, args.on, job_options(args.job))
        if isinstance(planned, MovePlan):
            for line in planned.sentences(args.to):
                say_lines(line, beside=True)
            if args.dry_run:
                return 0
            asks = not args.yes and sys.stdin.isatty() and sys.stderr.isatty()
            if asks and not agreed(f"move {planned.name} to {args.to}?"):
                raise UsageError("nothing was moved", "--yes does not ask")
            for warning in planned.warnings:
                warn(warning)
            with contextlib.ExitStack() as stack:
                stack.callback(teller.end)
                stack.enter_context(_cancelled_by_interrupt(carrier))
                answer = carrier.carry_out(planned, teller.tell)
        else:
            answer = planned
            done = "was moved already" if answer["begun"] else "was about to move, and does now"
            say_lines(f"{name} {done}: it goes on on {args.to}", beside=True)
    finally:
        carrier.close()
    told = {"run": answer["run"], "host": args.to, "attempt": answer["attempt"], "step": answer.get("step")}
    print_json(told) if args.json else say(str(answer["run"]))
    return 0
