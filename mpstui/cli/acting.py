"""`mpstui stop`, `kill`, `pause`, `clear-cache` and every other command of the table of actions.

They submit a request, wait for its answer, print it, and exit with what it says.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ..core.actions import ACTIONS
from ..core.launching.actions import Actions
from ..core.model.errors import OperationError
from ..core.model.snapshot import RunSnapshot
from ..wire.records import Ack, Request
from .session import RUN_HELP, OneRun, Session, print_json, say, wait_for

Ask = Callable[[Actions, RunSnapshot], Request]
COMMANDS = {action.command: action for action in ACTIONS if action.command}


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of the command that the parser was made for."""
    action = COMMANDS[parser.get_default("command")]
    configure_action(parser, timeout=action.timeout)
    for flag, text in action.flags.items():
        parser.add_argument(f"--{flag}", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    """Send its request."""
    action = COMMANDS[args.command]
    options = {flag: getattr(args, flag) for flag in action.flags}
    return act(args, lambda actions, snapshot: actions.send(snapshot, action.id, **options))


def configure_action(parser: argparse.ArgumentParser, *, timeout: float | None = None) -> None:
    """RUN, --no-wait, --timeout and --json."""
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the answer")
    shown = "no limit" if timeout is None else f"{timeout:g}"
    parser.add_argument(
        "--timeout", type=float, default=timeout, metavar="S", help=f"seconds to wait for the answer (default: {shown})"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def act(args: argparse.Namespace, ask: Ask) -> int:
    """Carry out one action on one run: 0 when the answer is yes."""
    session = Session()
    one = session.run(args.run)
    actions = Actions(session.home, session.environ)
    try:
        request = ask(actions, one.snapshot())
    except OperationError as error:
        if args.json:
            print_json(_answer(one, None, error.sentence))
        raise
    if args.no_wait:
        print_json({"run": one.dir.run, "request": request.id}) if args.json else say(f"requested: {request.action}")
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
