"""`mpstui restart`, and `stop`, `kill`, `pause` and every other command in the table of actions.

They submit a request, wait for its answer, print it, and exit accordingly.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.actions import ACTIONS, BY_ID
from ..core.launching.actions import Actions
from ..core.model.errors import OperationError, UsageError
from ..core.model.snapshot import RunSnapshot, State
from ..core.runs.one import how_it_ended
from ..wire import storage
from ..wire.records import Ack, Rehearsal, Request
from ..wire.rundir import RunDir
from .resuming import known
from .session import RUN_HELP, Session, add_repeatable, agreed, print_json, say, say_lines, wait_for, warn

if TYPE_CHECKING:
    from ..core.diagnosis.remedy import Change
    from ..core.launching.choice import LaunchChoice
    from ..core.launching.cure import Cure
    from ..core.launching.rehearsal import Rehearsed

_FROM_SCRATCH = "it will start from step 0, as --from scratch says"
COMMANDS = {action.command: action for action in ACTIONS if action.command}


def configure(parser: argparse.ArgumentParser) -> None:
    action = COMMANDS[parser.get_default("command")]
    _add_arguments(parser, timeout=action.timeout)
    for flag, text in action.flags.items():
        parser.add_argument(f"--{flag}", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    action = COMMANDS[args.command]
    options = {flag: getattr(args, flag) for flag in action.flags}
    return _act(args, lambda actions, snapshot: actions.send(snapshot, action.id, **options))


def _add_arguments(parser: argparse.ArgumentParser, *, timeout: float | None = None) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the answer")
    shown = "no limit" if timeout is None else f"{timeout:g}"
    parser.add_argument(
        "--timeout", type=float, default=timeout, metavar="S", help=f"seconds to wait for the answer (default: {shown})"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def _act(
    args: argparse.Namespace,
    ask: Callable[[Actions, RunSnapshot], Request],
    then: Callable[[RunDir, Request], Ack] | None = None,
) -> int:
    """Carry out one action on one run, and return the exit code: 0 if it succeeded.

    Args:
        ask: sends the request.
        then: called after a success; what it returns becomes the answer.
    """
    session = Session()
    one = session.run(args.run, living=args.command != "restart")
    call = known("call") or ""
    actions = Actions(session.environ, request_id=call)

    def answer(ack: Ack | None, text: str) -> dict[str, object]:
        numbers = {name: getattr(ack, name, None) for name in ("by", "before", "after", "freed")}
        return {"run": one.dir.run, "ok": bool(ack and ack.ok), **numbers, "text": text}

    try:
        sent = storage.read_or_none(Request, one.dir.request(call)) if call else None
        request = sent or ask(actions, one.snapshot())
    except OperationError as error:
        if args.json:
            print_json(answer(None, error.sentence))
        raise
    if args.no_wait:
        print_json({"run": one.dir.run, "request": request.id}) if args.json else say(f"requested: {request.action}")
        return 0
    ack = wait_for(lambda: actions.answer(one.dir.path, request.id), args.timeout)
    if ack is None:
        asked = request.action.replace("_", " ")
        raise OperationError(
            f"{one.dir.run} has not answered the request to {asked} within {args.timeout:g} s",
            "the request remains; `mpstui show` shows how the run is doing",
        )
    if ack.ok and then is not None:
        say_lines(ack.text, beside=True)
        ack = then(one.dir, request)
    if args.json:
        print_json(answer(ack, ack.text))
    elif not ack.ok:
        raise OperationError(ack.text)
    else:
        say(ack.text)
    return 0 if ack.ok else 1


def configure_restart(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
A run that is active is stopped first. It continues from its newest checkpoint. Examples:
  mpstui restart RUN --device cpu
  mpstui restart RUN --from best --set lr=1e-4
  mpstui restart RUN --fix
  mpstui restart RUN --fix --rehearse      # 20 steps beside the failed ones; then the same without --rehearse"""
    _add_arguments(parser)
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="device of the new attempt")
    parser.add_argument(
        "--from",
        dest="source",
        default="latest",
        metavar="latest|best|scratch|PATH",
        help="checkpoint to continue from (default: latest)",
    )
    parser.add_argument(
        "--command", dest="words", metavar="WORDS", help="another command, as one text: 'python train.py --lr 0.1'"
    )
    add_repeatable(parser, "--set", "KEY=VALUE", "change an argument")
    add_repeatable(parser, "--env", "NAME=VALUE", "change a variable")
    parser.add_argument("--agent", action=argparse.BooleanOptionalAction, help="turn the agent on or off")
    parser.add_argument("--fix", action="store_true", help="apply the remedy that `mpstui diagnose` names")
    parser.add_argument(
        "--rehearse",
        nargs="?",
        type=int,
        const=Rehearsal._field_defaults["steps"],
        metavar="STEPS",
        help="only try it: compare this many steps (default: 20) with the failed attempt, and leave the run as it was",
    )
    parser.add_argument("--accept-risk", action="store_true", help="with --fix: even if the remedy can do harm")
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would change and what it costs; start nothing"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask; without a terminal nothing is asked")


def run_restart(args: argparse.Namespace) -> int:
    # Here, not at the top: `mpstui stop` needs none of what plans a launch.
    from ..core.launching.choice import effective_arguments, parse_environment, parse_sets, passed_on
    from ..core.launching.editing import changes_between, recorded_choice
    from ..core.launching.record import availability
    from ..core.launching.rehearsal import rehearsal_of
    from ..core.machine import DEVICES
    from ..core.runs.monitor import Monitor
    from .fixing import fixed

    if args.device is not None and args.device not in DEVICES:
        raise UsageError(f"there is no device {args.device!r}", f"one of {', '.join(DEVICES)}", field="device")
    sets, env, words = parse_sets(args.set), parse_environment(args.env), _words(args.words or "")

    def edited(snapshot: RunSnapshot) -> tuple[LaunchChoice | None, Cure | None]:
        cure = fixed(snapshot, sets, accept_risk=args.accept_risk) if args.fix else None
        choice = cure.choice if cure else None
        if sets or env or words or args.agent is not None:
            choice = choice or recorded_choice(RunDir(snapshot.dir))  # earlier changes are kept
            choice = choice.with_command(words) if words else choice
            agent = choice.agent if args.agent is None else args.agent
            choice = replace(choice, sets={**choice.sets, **sets}, env={**choice.env, **env}, agent=agent)
            for note in passed_on(choice.profile, effective_arguments(choice.profile, sets)[1]):
                warn(note)
        return choice, cure

    def tried(snapshot: RunSnapshot, choice: LaunchChoice | None, cure: Cure | None) -> tuple[Change, ...]:
        recorded = recorded_choice(RunDir(snapshot.dir))
        after = choice or recorded
        after = replace(after, device=args.device or after.device)
        return changes_between(recorded, after, cure.changes if cure else ())

    def ask(actions: Actions, snapshot: RunSnapshot) -> Request:
        choice, cure = edited(snapshot)
        _ask_or_tell(snapshot, args, choice)
        rehearsal = None
        if args.rehearse is not None:
            profile = recorded_choice(RunDir(snapshot.dir)).profile
            rehearsal = rehearsal_of(snapshot, tried(snapshot, choice, cure), profile, args.rehearse)
        return actions.restart(snapshot, args.device, args.source, choice, rehearsal)

    if args.dry_run:
        session = Session()
        snapshot = Monitor(session.home).snapshot(session.run(args.run).dir.run)
        changes = tried(snapshot, *edited(snapshot))
        cost = BY_ID["restart"].cost(snapshot, availability(snapshot, "restart").why) if args.source == "latest" else ""
        say(f"would change {', '.join(map(str, changes))}" if changes else "would change nothing")
        say(cost or "how much work is repeated is unknown")
        return 0
    return _act(args, ask, _watch_rehearsal if args.rehearse is not None else None)


def _ask_or_tell(snapshot: RunSnapshot, args: argparse.Namespace, edited: LaunchChoice | None) -> None:
    """Ask if somebody is there to answer; a script is not held up by a question, but told what will happen."""
    from ..core.runs.monitor import Monitor

    is_there = sys.stdin.isatty() and sys.stderr.isatty() and not args.json
    if is_there and not (args.yes or edited or args.rehearse is not None):
        _ask_first(Monitor(Session().home).snapshot(snapshot.run), args)
    elif not snapshot.state.active:
        _say_how_it_ended(snapshot, args.source, edited)


def _ask_first(snapshot: RunSnapshot, args: argparse.Namespace) -> None:
    """Ask what the screen asks before the same restart, which is nothing if it costs little.

    Raises:
        UsageError: the answer was no.
    """
    from ..core.launching.record import availability

    action = BY_ID["restart_cpu" if args.device == "cpu" else "restart"]
    caution = _FROM_SCRATCH if args.source == "scratch" else availability(snapshot, "restart").why
    asked = action.question(snapshot, caution)
    if asked is None:
        return
    say_lines("\n".join(asked.lines), beside=True)
    if not agreed(asked.title):
        raise UsageError("nothing was restarted", "`--yes` does not ask, `--dry-run` shows what it would cost")


def _say_how_it_ended(snapshot: RunSnapshot, source: str, edited: LaunchChoice | None) -> None:
    """Tell a script what it should know before an ended run resumes from ``source``, perhaps with another launch."""
    from ..core.launching.arguments import RESUMES
    from ..core.launching.record import availability
    from ..core.profiles.written import folded

    left = ""
    if edited is None or not any(RESUMES.fullmatch(folded(name)) for name in edited.sets):
        caution = _FROM_SCRATCH if source == "scratch" else availability(snapshot, "restart").why
        if caution:
            left = f"; {caution}, and may write over what it left"
        elif source == "latest" and snapshot.state is State.FINISHED and edited is None:
            left = "; there may be nothing left to do (change that with --set)"
    warn(f"{snapshot.run} has ended: {how_it_ended(snapshot)}{left}")


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        raise UsageError("--command: a quotation mark is not closed", "write it as in a shell") from None


def _watch_rehearsal(run: RunDir, request: Request) -> Ack:
    """Wait for the end of the rehearsal, an attempt later than the request's, and return what it showed."""
    from ..core.launching.rehearsal import newest_rehearsal

    def ended() -> Rehearsed | None:
        found = newest_rehearsal(run)
        return found if found is not None and found.attempt > request.attempt else None

    found = wait_for(ended, None)
    assert found is not None  # waited for without a limit
    on = "" if found.failure else "; restart for real with the same command without --rehearse"
    return Ack("", not found.failure, "supervisor", 0.0, found.sentence + on)
