"""`mpstui logs` and `mpstui wait`: a run's output, and its end."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
import time
from functools import partial
from pathlib import Path

from ..core.follow import FollowedFile
from ..core.formats.console import colour_only
from ..core.model.errors import OperationError, UsageError
from ..core.model.snapshot import RunSnapshot, State
from ..core.runs.one import Awaited, OneRun, exit_as_json, has_ended, how_it_ended
from ..wire import storage
from .resuming import give, known
from .session import POLL_SECONDS, RUN_HELP, Session, json_text, one_line, respawn_missing_supervisors, rest, warn

_CHUNK = 1 << 16


def configure_logs(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
On a terminal, colours are kept and every other control sequence is left out; a pipe gets the bytes as they are.
With -f, the output of new attempts follows too. Examples:
  mpstui logs -f RUN
  mpstui logs -n 100 RUN | less -R"""
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing until the run has ended")
    parser.add_argument("--attempt", type=int, metavar="N", help="print this attempt (default: the newest)")
    parser.add_argument("-n", "--lines", type=int, metavar="N", help="start N lines before the end")


def run_logs(args: argparse.Namespace) -> int:
    one = Session().run(args.run)
    number = args.attempt or one.snapshot().attempt
    if args.attempt and args.attempt not in one.dir.attempt_numbers():
        raise UsageError(f"{one.dir.run} has no attempt {args.attempt}", f"it has {one.snapshot().attempts}")
    if not number and not args.follow:
        raise OperationError(f"{one.dir.run} has not been started yet", "`mpstui logs -f` waits for its output")
    if args.follow:
        _follow(one, number or 1, args)
    else:
        print_new(_opened(one, number, args.lines), on_terminal=sys.stdout.isatty(), whole=True)
    return 0


def print_new(file: FollowedFile, attempt: int = 1, *, on_terminal: bool, whole: bool = False) -> None:
    """Print what was written to a file since the last call; nothing while it does not exist.

    A file or pipe gets the bytes unchanged, a terminal gets text with colours and no other control sequences. There,
    what follows the last newline or carriage return waits, since an escape sequence may be cut in two; but no line
    waits for ever.

    Args:
        whole: print an unfinished last line too.

    Raises:
        OperationError: it cannot be read.
    """
    while data := file.peek(_CHUNK):
        shown = data
        if on_terminal:
            ends = whole and len(data) < _CHUNK
            end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
            end = len(data) if ends or (end == 0 and len(data) == _CHUNK) else end
            text, used = codecs.utf_8_decode(data[:end], "replace", ends)
            shown, data = _shown(text).encode(sys.stdout.encoding, sys.stdout.errors or "strict"), data[:used]
        if not data:
            break
        file.advance(data)
        give(shown, attempt=attempt, offset=file.offset, witness=file.witness.hex())
    if file.unreadable:
        raise OperationError(f"{file.path} cannot be read")


def _shown(text: str) -> str:
    """Keep only colours, and a progress bar's carriage returns, which stay on their line."""
    return colour_only(text.replace("\r\n", "\n"), returns=True)


def _follow(one: OneRun, number: int, args: argparse.Namespace) -> None:
    """Print output until the run has ended; continues with the next attempt unless one was named."""
    file, on_terminal = _opened(one, number, args.lines), sys.stdout.isatty()
    if (begun := known("attempt")) is not None:
        number, read = begun, bytes.fromhex(known("witness"))
        file = FollowedFile(one.dir.attempt(number).output, start=known("offset"), witness=read)
    while True:
        snapshot = one.snapshot()  # before the last read, so that nothing written before the end is missed
        cuts, goes_on = file.restarts, not args.attempt and snapshot.attempt > number
        is_over = has_ended(snapshot) or bool(args.attempt and one.dir.attempt(number).exit.exists())
        print_new(file, number, on_terminal=on_terminal, whole=goes_on or is_over)
        if file.restarts > cuts:
            warn("the output file was truncated; continuing with what it holds now")
        if goes_on:
            number += 1
            file = _opened(one, number, None)
        elif is_over:
            return
        else:
            rest(POLL_SECONDS)


def _opened(one: OneRun, number: int, lines: int | None) -> FollowedFile:
    """Open the output of an attempt, from its last ``lines`` lines on."""
    path = one.dir.attempt(number).output
    return FollowedFile(path, start=0 if lines is None else _offset_of_last(path, lines))


def _offset_of_last(path: Path, lines: int) -> int:
    """Return the offset of the last ``lines`` lines, reading from the end no more of the file than necessary."""
    try:
        file = storage.open_file(path)
    except FileNotFoundError:
        return 0
    with file:
        end = file.seek(0, os.SEEK_END)
        position, found = end, 0
        while position > 0 and lines > 0:
            start = max(0, position - _CHUNK)
            file.seek(start)
            block = file.read(position - start)
            while (at := block.rfind(b"\n")) >= 0:
                block = block[:at]
                if start + at != end - 1:  # a newline at the very end separates nothing
                    found += 1
                if found == lines:
                    return start + at + 1
            position = start
    return 0 if lines > 0 else end


def configure_wait(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Prints a line for each run as it ends; with --any, for the one that ended first. With --json it is an object: run, name,
state, reason, attempt, exit, ended, moved_to, as in `mpstui ps --json`.

exit status: 0 all that it waited for finished; 1 a run ended in any other way, or the time is up. Examples:
  mpstui wait RUN && echo done
  mpstui wait --any RUN OTHER"""
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--any", action="store_true", help="wait for one of them, not for all")
    parser.add_argument("--timeout", type=float, metavar="S", help="give up after S seconds")
    parser.add_argument("--json", action="store_true", help="print an object for each")


def run_wait(args: argparse.Namespace) -> int:
    if args.timeout is not None and not args.timeout >= 0:
        raise UsageError(f"--timeout {args.timeout:g} is not a time to wait", "seconds; 0 looks once")
    session, begun = Session(), time.monotonic() - (known("waited") or 0.0)
    awaited = Awaited(map(session.run, args.runs), partial(respawn_missing_supervisors, session))
    told = dict[str, bool](known("told") or {})  # for each ended run, whether it finished
    for name in told:
        awaited.left.pop(name, None)
    while True:
        looked = time.monotonic()
        for end in awaited.ended()[: 1 if args.any else None]:
            told[end.run] = end.state is State.FINISHED
            give(f"{_end_told(end, as_json=args.json)}\n".encode(sys.stdout.encoding or "utf-8", "replace"), told=told)
        if not awaited.left or (args.any and told):
            return 0 if all(told.values()) else 1
        now = time.monotonic()
        pause = max(POLL_SECONDS, 4 * (now - looked))  # looking at hundreds of runs takes longer
        left = pause if args.timeout is None else begun + args.timeout - now
        if left <= 0:
            one, *more = awaited.left.values()
            names = f"{one.dir.run} and {len(more)} more have" if more else f"{one.dir.run} has"
            state = "" if more else f": it is {one.snapshot().state}"
            raise OperationError(f"{names} not ended within {args.timeout:g} s{state}")
        rest(min(pause, left))


def _end_told(end: RunSnapshot, *, as_json: bool) -> str:
    told = end.exit
    if as_json:
        same = {name: getattr(end, name) for name in ("run", "name", "state", "reason", "attempt")}
        return json_text({**same, "exit": exit_as_json(told), "ended": told and told.ended, "moved_to": end.moved_to})
    return one_line(f"{end.run}: {how_it_ended(end)}")
