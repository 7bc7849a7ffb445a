"""`mpstui queue`: the groups and who waits in them; pause, resume, slots, move."""

from __future__ import annotations

import argparse
from typing import Any

from ..core.launching.record import read_run
from ..core.model.errors import UsageError
from ..core.model.queue_place import ordinal
from ..core.runs.find import find_run
from ..core.runs.queueing import Group, find_group, list_groups, move_run, set_paused, set_slots
from ..wire.jobs import EngineRule
from ..wire.records import gpu_words
from ..wire.rundir import RunDir
from .resuming import known
from .session import Session, print_json, respawn_missing_supervisors, say

_FORMS = {
    "pause": (("GROUP",), "{group}"),
    "resume": (("GROUP",), "{group}"),
    "slots": (("GROUP", "N"), "{group} 2"),
    "move": (("RUN", "up, down, first or last"), "RUN first"),
}
"""What follows each word, and an example."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = """mpstui queue [GROUP] [--json]
       mpstui queue pause GROUP | resume GROUP
       mpstui queue slots GROUP N|auto
       mpstui queue move RUN up|down|first|last"""
    parser.epilog = """\
Shows what runs, what waits and for what, the next run first. `slots` sets how many may run at once
(auto: one, or one on each GPU). Examples:
  mpstui queue pause mps
  mpstui queue move RUN first"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="GROUP | pause GROUP | resume GROUP | slots GROUP N|auto | move RUN up|down|first|last",
        help=argparse.SUPPRESS,
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def _put_first(run: RunDir, rule: EngineRule, direction: str, as_json: bool) -> int:
    """Move a scheduler's job to the front of the scheduler's queue, the only place that can be asked for.
    Raises:
        UsageError: another place was asked for. OperationError: the cluster does not allow it.
    """
    from ..core.launching.jobs import change

    if direction != "first":
        raise UsageError(f"{rule.title} orders its own jobs: one can only be moved first, not {direction}")
    change(run, rule, "top")
    text = f"{run.run}: {rule.title} has put it before your other jobs"
    print_json({"run": run.run, "place": None, "group": rule.name}) if as_json else say(text)
    return 0


def run(args: argparse.Namespace) -> int:
    session = Session()
    home = session.home
    respawn_missing_supervisors(session)
    match args.words:
        case []:
            groups = list_groups(home)
            if args.json:
                print_json([group_json(group) for group in groups])
                return 0
            for group in groups:
                print_group(group)
            if not groups:
                say("no queue groups; `mpstui launch PROFILE --queue NAME` makes one")
            return 0
        case ["pause" | "resume" as word, name]:
            set_paused(home, name, word == "pause")
            group = find_group(home, name)
            count = len(group.running)
            continues = "continues" if count == 1 else "continue"
            running = f", {count} running {continues}" if word == "pause" and count else ""
            state = "paused" if word == "pause" else "resumed"
            answer: dict[str, Any] = {"group": name, "paused": word == "pause"}
            text = f"{name}: {state}, {len(group.waiting)} waiting{running}"
        case ["slots", name, number]:
            if number != "auto" and not number.isdecimal():
                hint = "such as `mpstui queue slots mps 2`, or auto"
                raise UsageError(f"queue slots: {number!r} is not a number of runs", hint)
            set_slots(home, name, None if number == "auto" else int(number))
            group = find_group(home, name)
            answer, text = {"group": name, "slots": group.slots}, f"{name}: {_at_once(group)}"
        case ["move", name, direction]:
            run_dir = find_run(home, name)
            if (recorded := read_run(run_dir)) is not None and recorded.spec.engine is not None:
                return _put_first(run_dir, recorded.spec.engine, direction, args.json)
            found = move_run(home, run_dir, direction, known("call") or "")
            answer = {"run": run_dir.run, "group": found.group, "place": found.place, "count": found.count}
            text = f"{run_dir.run}: {ordinal(found.place)} of {found.count} in {found.group}"
        case ["pause" | "resume" | "slots" | "move" as word, *_]:
            raise _wrong_words(session, word, args.words[1:])
        case [name]:
            group = find_group(home, name)
            print_json(group_json(group)) if args.json else print_group(group)
            return 0
        case _:
            raise UsageError(f"queue does not know {args.words[0]!r}", "see `mpstui queue --help`")
    print_json(answer) if args.json else say(text)
    return 0


def _wrong_words(session: Session, word: str, given: list[str]) -> UsageError:
    """Return an error that says what is missing after ``word``, or too much, with an example for an existing group."""
    wanted, example = _FORMS[word]
    missing = wanted[len(given) :]
    what = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    if not missing:
        what = f"{' '.join(given[len(wanted) :])!r} is too much; it takes only {' and '.join(wanted)}"
    group = next((found.name for found in list_groups(session.home) if found.name), "mps")
    such = f"mpstui queue {word} {example.format(group=group)}"
    return UsageError(f"queue {word}: {what}", f"such as `{such}`; `mpstui queue` shows them all")


def group_json(group: Group) -> dict[str, Any]:
    """Return a group as in ``queue --json``; ``group`` is null for runs that wait for others but are in no group."""
    return {
        "group": group.name,
        "slots": group.slots,
        "devices": list(group.devices),
        "paused": group.paused,
        "running": [
            {
                "run": item.run,
                "name": item.name,
                "supervised": item.supervised,
                "gpus": None if item.gpus is None else list(item.gpus),
            }
            for item in group.running
        ],
        "waiting": [
            {
                "run": item.run,
                "name": item.name,
                "place": item.place.number if item.place else None,
                "after": list(item.place.after) if item.place else [],
                "supervised": item.supervised,
            }
            for item in group.waiting
        ],
    }


def print_group(group: Group) -> None:
    """Print a group: how many runs it allows at once, which run and where, which wait and for what."""
    if group.name is None:
        say("in no group")
    else:
        state = f", paused (`mpstui queue resume {group.name}` resumes it)" if group.paused else ""
        say(f"{group.name}: {_at_once(group)}{state}")
    for item in group.running:
        where = "  starts" if item.gpus is None else f"  {gpu_words(item.gpus)}" if item.gpus else ""
        say(f"  runs     {item.run}  {item.name}{where}")
    for item in group.waiting:
        where = item.place.sentence() if item.place else ""
        say(f"  waits    {item.run}  {item.name}  {where}{'' if item.supervised else ' (no supervisor waits for it)'}")
    if not group.running and not group.waiting:
        say("  nothing waits")


def _at_once(group: Group) -> str:
    slots, gpus = group.slots or 0, len(group.devices)
    if group.devices and not group.by_hand:
        return f"one run at a time on each of {gpus} GPUs" if gpus > 1 else "1 run at a time, on one GPU"
    shared = f", which share {gpus} GPU{'s' if gpus > 1 else ''}" if group.shares_devices else ""
    return f"{slots} {'run' if slots == 1 else 'runs'} at a time{shared}"
