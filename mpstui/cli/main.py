"""Entry point: find the command's module, hand it its arguments, turn errors into sentences and exit codes.

A command is one module of this package with ``HELP``, ``configure(parser)`` and ``run(args) -> int``, or an entry of
the table of actions. Only the one that was asked for is imported, so that `mpstui ps` never pays for the screen.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from .. import __version__
from ..core.actions import ACTIONS
from ..core.model.errors import OperationError, UsageError
from ..core.present.terminal import write_lookalikes

COMMANDS: dict[str, tuple[str, str]] = {
    # command: (module in this package, one line of help)
    "launch": ("launch", "start a saved profile, detached"),
    "run": ("run", "start any command, no profile needed"),
    "watch": ("watch", "open the screen on a log, heartbeat or folder that mpstui did not start"),
    "ps": ("ps", "list runs, newest first"),
    "show": ("show", "print everything known about one run"),
    "logs": ("logs", "print a run's output"),
    "wait": ("wait", "wait until a run has ended"),
    **{action.command: ("acting", action.command_help) for action in ACTIONS if action.command},
    "queue": ("queue", "show the queue groups; pause, resume, reorder them, set their slots"),
    "restart": ("restart", "start a new attempt of a run, on another device if you like"),
    "remove": ("remove", "delete runs that have ended"),
    "parse": ("parse", "print what the reader understands of a log or metric file"),
    "diagnose": ("diagnose", "explain a crash: causes, evidence, remedies"),
    "profiles": ("profiles", "list, show, check and save launch profiles"),
    "alerts": ("alerts", "show who is told of a crash, a stall and a finish; send a test"),
    "doctor": ("doctor", "check this machine: devices, torch, memory, limits"),
    "bench": ("bench", "measure CPU, device, bf16 and compile on this machine"),
    "demo": ("demo", "launch the quick-start profile and open its screen"),
}
USAGE_EXIT = 2


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence and a hint."""

    def error(self, message: str) -> NoReturn:
        # Where a command of the person's own follows, its options were most likely taken for ours.
        usage = f"write `{self.usage}`; " if self.usage and " -- " in self.usage else ""
        raise UsageError(f"{self.prog}: {message}", f"{usage}see `{self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 used wrongly."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        write_lookalikes(stream)
    try:
        return _dispatch(arguments)
    except UsageError as error:
        _complain(error.sentence, error.hint)
        return USAGE_EXIT
    except OperationError as error:
        _complain(error.sentence, error.hint)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (head, less) has gone: nobody is left to tell. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        return _bare(arguments)
    command = arguments[0]
    if command not in COMMANDS:
        _require_run(command)
        return _bare(arguments)
    module_name, help_line = COMMANDS[command]
    module = import_module(f".{module_name}", __package__)
    parser = CommandParser(prog=f"mpstui {command}", description=getattr(module, "HELP", help_line))
    parser.set_defaults(command=command)
    module.configure(parser)
    return int(module.run(parser.parse_args(arguments[1:])))


def _bare(arguments: list[str]) -> int:
    """`mpstui` alone opens the screen, `mpstui RUN` opens it on a run; `--help` and `--version` answer."""
    parser = CommandParser(
        prog="mpstui",
        description="Launch, watch and rescue PyTorch trainings.",
        epilog="commands:\n" + "\n".join(f"  {name:<12} {text}" for name, (_, text) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="mpstui [RUN] [--color COLOURS] [--no-mouse]\n       mpstui COMMAND [...]",
    )
    parser.add_argument("--version", action="version", version=f"mpstui {__version__}")
    module = import_module(".screen", __package__)
    module.configure(parser)
    return int(module.run(parser.parse_args(arguments)))


def _require_run(word: str) -> None:
    """A first word that is no command must be a run.

    Raises:
        UsageError: it is neither, or means several runs; the hint names what is nearest to it.
    """
    from ..core.model.home import resolve_home
    from ..core.runs.find import NoSuchRun, find_run

    try:
        find_run(resolve_home(os.environ), word)
    except NoSuchRun as error:
        hint = _nearest(word) or (error.hint if error.near else "")
        raise UsageError(
            f"{word!r} is neither a command nor a run", hint or "see `mpstui --help` and `mpstui ps --all`"
        ) from None


def _nearest(word: str) -> str:
    from difflib import get_close_matches

    found = get_close_matches(word, COMMANDS, n=1)
    if found:
        return f"did you mean `mpstui {found[0]}`?"
    is_there = os.path.exists(word)  # noqa: PTH110 - pathlib is not needed for anything else here
    if (not is_there or word.endswith(".toml")) and _is_profile(word):
        return f"{word!r} is a profile: start it with `mpstui launch {word}`"
    if is_there:
        program = f"python {word}" if word.endswith(".py") else word
        return f"`mpstui run -- {program}` starts a program, `mpstui watch {word}` opens a log or folder"
    return ""


def _is_profile(word: str) -> bool:
    from pathlib import Path

    from ..core.model.home import resolve_home
    from ..core.profiles.library import names_profile

    return names_profile(word, resolve_home(os.environ), Path.cwd())


def _complain(sentence: str, hint: str) -> None:
    """Sentences quote names that a run, a file or a person chose: nothing in them may steer the terminal."""
    from ..core.formats.escapes import strip_controls

    sentence, hint = strip_controls(sentence), strip_controls(hint)
    print(f"mpstui: {sentence}" if not sentence.startswith("mpstui") else sentence, file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
