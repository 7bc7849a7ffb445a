"""`mpstui init`: write a profile for a command, from the program's own help and what a run of it showed."""

from __future__ import annotations

import argparse
from pathlib import Path
from shutil import which

from ..core.launching.editing import environment_of, recorded_choice
from ..core.launching.proposal import Proposal, command_of, earlier_run, propose
from ..core.machine import this_machine
from ..core.model.errors import OperationError, UsageError
from ..core.profiles.first_run import remember
from ..core.profiles.parse import parse_profile
from ..core.runs.monitor import Monitor
from ..wire import storage
from .session import Session, print_json, say


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mpstui init [options] RUN | -- COMMAND ..."
    parser.epilog = """\
The program is asked for its arguments (--help), and the newest run of the command, or RUN, for its checkpoints and
files; nothing is asked of you. Examples:
  mpstui init -- python train.py --epochs 3
  mpstui init RUN --name baseline"""
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="name of the profile and its file (default: the script's)",
    )
    parser.add_argument("--to", metavar="FILE", help="where it is written (default: profiles/NAME.toml)")
    parser.add_argument("--replace", action="store_true", help="replace a file that is there")
    parser.add_argument("--json", action="store_true", help="print where it is and what it was made from, as JSON")
    parser.add_argument("words", nargs="*", metavar="RUN | -- COMMAND ...", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    session = Session()
    words, cwd, environ = tuple(args.words), session.cwd, dict(session.environ)
    if not words:
        raise UsageError("mpstui init needs a command or a run", "such as `mpstui init -- python train.py`")
    if len(words) > 1 or which(words[0]) or "/" in words[0]:
        found = earlier_run(words, cwd, session.home)
    else:
        found = session.run(words[0]).dir
        words, profile = command_of(found)
        cwd = profile.cwd
        if profile.path is not None:
            hint = f"`mpstui profiles save {found.run} NAME` saves its changes as another"
            hint += "; `mpstui init --replace -- COMMAND` writes it again"
            raise UsageError(f"{found.run} was launched from a profile: {profile.path}", hint)
    choice = recorded_choice(found) if found else None
    given = {**choice.profile.env, **choice.env} if choice else {}
    if found is not None:
        environ = {**environment_of(found, environ, this_machine()), **given}
    file = session.cwd / Path(args.to).expanduser() if args.to else None
    snapshot = Monitor(session.home).snapshot(found.run) if found else None
    folder = file.parent if file else cwd / "profiles"
    made = propose(
        words, folder, cwd=cwd, name=args.name, home=session.home, environ=environ, snapshot=snapshot, env=given
    )
    file = file or folder / f"{made.name}.toml"
    parse_profile(made.text, path=file, default_cwd=cwd)
    if file.exists() and not args.replace:
        raise UsageError(f"there is a file {file} already", "choose another with --to, or say --replace")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        storage.write_bytes(file, made.text.encode())
        remember(parse_profile(made.text, path=file, default_cwd=cwd), session.home)
    except OSError as error:
        raise OperationError(f"{file} cannot be written: {error.strerror}") from error
    _tell(made, file, found.run if found else None, as_json=args.json)
    return 0


def _tell(made: Proposal, file: Path, run: str | None, *, as_json: bool) -> None:
    if as_json:
        told = {"path": str(file), "run": run, "sources": list(made.sources), "complaint": made.complaint or None}
        print_json(told)
        return
    say(str(file))
    silent = made.complaint or "the program says nothing about its arguments"
    called = file.stem if file.parent == Path.cwd() / "profiles" else file
    known = " and ".join(made.sources) or f"the command alone: {silent}"
    known += f" ({made.complaint})" if made.sources and made.complaint else ""
    say(f"made from {known}; start it with `mpstui launch {called}`")
    if run is None:
        say("no run of it was found: after one, the same `mpstui init` with --replace adds what it saves")
