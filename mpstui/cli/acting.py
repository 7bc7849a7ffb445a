"""What the acting commands share: submit a request, wait for its answer, print it, and exit with what it says."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ..core.launching.actions import Actions
from ..core.model.errors import OperationError
from ..core.model.snapshot import RunSnapshot
from ..wire.records import Ack, Request
from .session import RUN_HELP, OneRun, Session, print_json, say, wait_for

Ask = Callable[[Actions, RunSnapshot], Request]


def configure_action(parser: argparse.ArgumentParser, *, timeout: float | None = None) -> None:
    """RUN, --no-wait, --timeout and --json."""
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--no-wait", action="store_true", help="ask, and do not wait for the answer")
    shown = "as long as it takes" if timeout is None else f"{timeout:g}"
    parser.add_argument(
        "--timeout", type=float, default=timeout, metavar="S", help=f"seconds to wait for the answer ({shown})"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def act(args: argparse.Namespace, ask: Ask) -> int:
    """Carry out one action on one run: 0 when the answer is yes."""
    session = Session()
    one = session.run(args.run)
    actions = Actions(session.home, session.environ)
    try:
        request = ask(actions, one.look())
    except OperationError as error:
        if args.json:
            print_json(_answer(one, None, error.sentence))
        raise
    if args.no_wait:
        print_json({"run": one.dir.run, "request": request.id}) if args.json else say(f"asked: {request.action}")
        return 0
    return _report(one, args, _wait_for_answer(actions, one, request, args.timeout))


def _wait_for_answer(actions: Actions, one: OneRun, request: Request, seconds: float | None) -> Ack:
    answers: list[Ack] = []

    def answered() -> bool:
        found = actions.answer(one.dir.path, request.id)
        answers.extend([found] if found else [])
        return bool(found)

    if not wait_for(answered, seconds):
        raise OperationError(
            f"{one.dir.run} has not answered the request to {request.action.replace('_', ' ')} within {seconds:g} s",
            "the request stays; `mpstui show` tells how the run is",
        )
    return answers[-1]


def _report(one: OneRun, args: argparse.Namespace, ack: Ack) -> int:
    if args.json:
        print_json(_answer(one, ack, ack.text))
    elif ack.ok:
        say(ack.text)
    if not ack.ok and not args.json:
        raise OperationError(ack.text)
    return 0 if ack.ok else 1


def _answer(one: OneRun, ack: Ack | None, text: str) -> dict[str, object]:
    return {
        "run": one.dir.run,
        "ok": ack.ok if ack else False,
        "by": ack.by if ack else None,
        "before": ack.before if ack else None,
        "after": ack.after if ack else None,
        "freed": ack.freed if ack else None,
        "text": text,
    }
