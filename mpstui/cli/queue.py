"""`mpstui queue`: the groups and who waits in them; pause, resume, slots, move."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..core.model.errors import UsageError
from .session import Session, print_json, respawn_missing_supervisors, say

if TYPE_CHECKING:
    from ..core.runs.queueing import Group, Member

_SEE_HELP = "see `mpstui queue --help`"
_FORMS = {
    "pause": (("GROUP",), "{group}"),
    "resume": (("GROUP",), "{group}"),
    "slots": (("GROUP", "N"), "{group} 2"),
    "move": (("RUN", "up, down, first or last"), "RUN first"),
}
"""What follows each word, and how that looks."""


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


def run(args: argparse.Namespace) -> int:
    session = Session()
    respawn_missing_supervisors(session)
    match args.words:
        case []:
            return _show_all(session, as_json=args.json)
        case ["pause" | "resume" as word, group]:
            return _pause(session, group, paused=word == "pause", as_json=args.json)
        case ["slots", group, number]:
            return _slots(session, group, number, as_json=args.json)
        case ["move", name, direction]:
            return _move(session, name, direction, as_json=args.json)
        case ["pause" | "resume" | "slots" | "move" as word, *_]:
            raise _wrong_words(session, word, args.words[1:])
        case [group]:
            return _show(session, group, as_json=args.json)
    raise UsageError(f"mpstui queue does not know {args.words[0]!r}", _SEE_HELP)


def _wrong_words(session: Session, word: str, given: list[str]) -> UsageError:
    """What is missing behind ``word``, or too much, and the command as it should be, with a group that there is."""
    from ..core.runs.queueing import list_groups

    wanted, example = _FORMS[word]
    missing = wanted[len(given) :]
    what = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    if not missing:
        what = f"{' '.join(given[len(wanted) :])!r} is too much; it takes {' and '.join(wanted)} alone"
    group = next((found.name for found in list_groups(session.home) if found.name), "mps")
    such = f"mpstui queue {word} {example.format(group=group)}"
    return UsageError(f"mpstui queue {word}: {what}", f"such as `{such}`; `mpstui queue` shows what there is")


def _show_all(session: Session, *, as_json: bool) -> int:
    from ..core.runs.queueing import list_groups

    groups = list_groups(session.home)
    if as_json:
        print_json([group_json(group) for group in groups])
        return 0
    for group in groups:
        print_group(group)
    if not groups:
        say("no queue groups; `mpstui launch PROFILE --queue NAME` makes one")
    return 0


def _show(session: Session, name: str, *, as_json: bool) -> int:
    from ..core.runs.queueing import find_group

    group = find_group(session.home, name)
    print_json(group_json(group)) if as_json else print_group(group)
    return 0


def _pause(session: Session, name: str, *, paused: bool, as_json: bool) -> int:
    from ..core.runs.queueing import find_group, set_paused

    set_paused(session.home, name, paused)
    group = find_group(session.home, name)
    running = len(group.running)
    runs = f", {running} running {'goes' if running == 1 else 'go'} on" if paused and running else ""
    text = f"{name}: {'paused' if paused else 'goes on'}, {len(group.waiting)} waiting{runs}"
    return _told({"group": name, "paused": paused}, text, as_json=as_json)


def _slots(session: Session, name: str, number: str, *, as_json: bool) -> int:
    from ..core.runs.queueing import find_group, set_slots

    if number != "auto" and not number.isdecimal():
        raise UsageError(
            f"mpstui queue slots: {number!r} is not a number of runs", "such as `mpstui queue slots mps 2`, or auto"
        )
    set_slots(session.home, name, None if number == "auto" else int(number))
    group = find_group(session.home, name)
    return _told({"group": name, "slots": group.slots}, f"{name}: {_at_once(group)}", as_json=as_json)


def _move(session: Session, name: str, direction: str, *, as_json: bool) -> int:
    from ..core.model.snapshot import ordinal
    from ..core.runs.find import find_run
    from ..core.runs.queueing import move_run

    run_dir = find_run(session.home, name)
    found = move_run(session.home, run_dir, direction)
    text = f"{run_dir.run}: {ordinal(found.place)} of {found.count} in {found.group}"
    told = {"run": run_dir.run, "group": found.group, "place": found.place, "count": found.count}
    return _told(told, text, as_json=as_json)


def _told(record: dict[str, Any], text: str, *, as_json: bool) -> int:
    print_json(record) if as_json else say(text)
    return 0


def group_json(group: Group) -> dict[str, Any]:
    """A group as ``queue --json`` tells it; ``group`` is null for runs that wait for others and in no group."""
    return {
        "group": group.name,
        "slots": group.slots,
        "devices": list(group.devices),
        "paused": group.paused,
        "running": [_running_json(item) for item in group.running],
        "waiting": [_waiting_json(item) for item in group.waiting],
    }


def _running_json(item: Member) -> dict[str, Any]:
    known = None if item.gpus is None else list(item.gpus)
    return {"run": item.run, "name": item.name, "supervised": item.supervised, "gpus": known}


def _waiting_json(item: Member) -> dict[str, Any]:
    place = item.place
    return {
        "run": item.run,
        "name": item.name,
        "place": place.number if place else None,
        "after": list(place.after) if place else [],
        "supervised": item.supervised,
    }


def print_group(group: Group) -> None:
    """A group in lines: how many run at once, who runs and where, who waits and for what."""
    if group.name is None:
        say("in no group")
    else:
        state = f", paused (`mpstui queue resume {group.name}` lets it go on)" if group.paused else ""
        say(f"{group.name}: {_at_once(group)}{state}")
    from ..wire.records import gpu_words

    for item in group.running:
        where = "  starts" if item.gpus is None else f"  {gpu_words(item.gpus)}" if item.gpus else ""
        say(f"  runs     {item.run}  {item.name}{where}")
    for item in group.waiting:
        where = item.place.sentence() if item.place else ""
        say(f"  waits    {item.run}  {item.name}  {where}{'' if item.supervised else ' (nobody waits for it)'}")
    if not group.running and not group.waiting:
        say("  nobody waits")


def _at_once(group: Group) -> str:
    slots, gpus = group.slots or 0, len(group.devices)
    if group.devices and not group.by_hand:
        return f"one run at a time on each of {gpus} GPUs" if gpus > 1 else "1 run at a time, on one GPU"
    shared = f", which share {gpus} GPU{'s' if gpus > 1 else ''}" if group.shares_devices else ""
    return f"{slots} {'run' if slots == 1 else 'runs'} at a time{shared}"
