"""`mpstui remove`: delete runs that have ended."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..core import present as shown
from ..core.hosts.staging import remove_abandoned
from ..core.model.errors import OperationError, UsageError
from ..core.runs.find import find_run
from ..core.runs.removal import Removable, Removed, Remover
from ..wire.rundir import run_dirs
from .session import RUN_HELP, Session, print_json, say, warn

_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mpstui remove [RUN ...] [options]"
    parser.epilog = """\
Only what lies in their own directories is deleted; checkpoints that a program saves elsewhere stay.
A run that is active, waits, or is needed by one that does is refused. Examples:
  mpstui remove --older-than 30d --keep-checkpoints
  mpstui remove RUN --dry-run"""
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--older-than", metavar="AGE", help="only runs that ended longer ago (12h, 30d, 2w); without RUN, all of them"
    )
    parser.add_argument("--keep-checkpoints", action="store_true", help="move their checkpoints aside and print where")
    parser.add_argument("--dry-run", action="store_true", help="print what would be deleted, and delete nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    if not args.runs and args.older_than is None:
        raise UsageError("remove needs RUN", "or `--older-than 30d` for all that ended before then")
    session = Session()
    remover = Remover(session.home)
    needed = remover.needed()
    found = _chosen(session, args, remover, needed)
    if not args.dry_run:
        if found and not args.yes:
            _ask(found, args)
            needed = remover.needed()  # meanwhile, a waiting run may have come to need one
        remover.clean_up()
        remove_abandoned(session.home)
    removed: dict[str, Removed] = {}
    failed: dict[str, str] = {}
    for item in () if args.dry_run else found:
        try:
            removed[item.run.run] = remover.remove(item.run, keep_checkpoints=args.keep_checkpoints, needed=needed)
        except OperationError as error:
            failed[item.run.run] = error.sentence
    freed = sum(done.freed_bytes or 0 for done in removed.values())
    if args.json:
        rows = [_json(item, removed.get(item.run.run), failed.get(item.run.run)) for item in found]
        print_json({"dry_run": args.dry_run, "runs": rows, "freed": freed})
        return 1 if failed else 0
    for done in removed.values():
        say(f"{done.run} is removed")
        if done.kept:
            say(f"checkpoints of {done.run} are in {done.kept}")
        if done.left:
            warn(done.left)
    for sentence in failed.values():
        warn(sentence)
    if args.dry_run or not found:
        _list(found, args)
    else:
        say(f"removed {_count(removed)}, freed {shown.size(freed)}" if removed else "no run was removed")
    return 1 if failed else 0


def _chosen(session: Session, args: argparse.Namespace, remover: Remover, needed: Mapping[str, str]) -> list[Removable]:
    """Return what to remove; raises if a name means no run, or one that must stay."""
    before = None if args.older_than is None else time.time() - age_seconds(args.older_than)
    named = {found.run: found for found in (find_run(session.home, name) for name in args.runs)}
    chosen = []
    for run in list(named.values()) or run_dirs(session.home.runs):
        try:
            chosen.append(remover.examine(run, needed))
        except OperationError:  # it must stay
            if named:
                raise
    return [item for item in chosen if before is None or item.ended < before]


def age_seconds(text: str) -> float:
    """Return an age such as ``30d`` in seconds.

    Raises:
        UsageError: it is not an age.
    """
    match = re.fullmatch(r"(\d{1,9})\s*([mhdw])", text.strip().lower())
    if match is None:
        raise UsageError(f"--older-than {text!r} is no age", "such as 45m, 12h, 30d or 2w")
    return float(int(match[1]) * _UNITS[match[2]])


def _ask(found: Sequence[Removable], args: argparse.Namespace) -> None:
    """Ask, and raise unless the answer is yes."""
    if args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        where = "with --json" if args.json else "where input or output is no terminal"
        options = ["--older-than", args.older_than] if args.older_than else []
        options += ["--keep-checkpoints"] if args.keep_checkpoints else []
        typed = shlex.join(["mpstui", "remove", *args.runs, *options, *(["--json"] if args.json else [])])
        raise UsageError(
            f"this deletes {_count(found)}, and it cannot ask you first {where}",
            f"`{typed} --yes` does not ask, `{typed} --dry-run` shows what it would do",
        )
    _list(found, args)
    try:
        answer = input(f"delete {_count(found)}? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise OperationError("nothing was removed")


def _list(found: Sequence[Removable], args: argparse.Namespace) -> None:
    """Print what would be deleted: a line for each run, and one for the total."""
    whole = 0
    for item in found:
        files = f"{item.checkpoints} checkpoint file{'' if item.checkpoints == 1 else 's'}"
        saved = f", {files} of {shown.size(item.checkpoint_bytes)}" if item.checkpoints else ""
        kept = " kept" if item.checkpoints and args.keep_checkpoints else ""
        ago = shown.duration(max(0.0, time.time() - item.ended))
        say(f"{item.run.run}  {item.name}  ended {ago} ago  {shown.size(item.size_bytes)}{saved}{kept}")
        whole += item.size_bytes - (item.checkpoint_bytes if args.keep_checkpoints else 0)
    if found:
        say(f"{_count(found)}, {shown.size(whole)} to be freed")
    else:  # a named run is found or refused: only its age can leave none
        whose = "none of these runs" if args.runs else "no run that can be removed"
        say(f"nothing to remove: {whose} ended longer than {args.older_than} ago")


def _count(found: Collection[object]) -> str:
    return f"{len(found)} run{'' if len(found) == 1 else 's'}"


def _json(item: Removable, done: Removed | None, error: str | None) -> dict[str, Any]:
    return {
        "run": item.run.run,
        "name": item.name,
        "ended": item.ended,
        "bytes": item.size_bytes,
        "checkpoints": item.checkpoints,
        "checkpoint_bytes": item.checkpoint_bytes,
        "removed": done is not None,
        "freed": done.freed_bytes if done else None,
        "kept": str(done.kept) if done and done.kept else None,
        "left": done.left if done else None,
        "error": error,
    }
