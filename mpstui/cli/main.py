"""Entry point: find the command's module, hand it its arguments, turn errors into sentences and exit codes.

A command is a line in ``_GROUPS``, or an action in ``core/actions.py``, plus a module of this package with
``configure(parser)`` and ``run(args) -> int``. In a module with several commands, those of ``logs:wait`` are called
``configure_wait`` and ``run_wait``. Only the command's own module is imported: `mpstui ps` does not pay for the screen.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from .. import __version__
from ..core.model.errors import OperationError, UsageError
from ..core.model.home import Home, resolve_home
from .parsing import CommandParser, meaning_of


class Command(NamedTuple):
    """A command: where it is implemented, and what it does."""

    place: str
    """Its module, then, after a colon, which of the module's commands it is."""
    help: str
    """Its line in `mpstui --help`, and the first sentence of its own help."""


_GROUPS: dict[str, dict[str, Command]] = {
    "start": {
        "launch": Command("launch:launch", "start a saved profile in the background; print the run's id"),
        "run": Command("launch:run", "start any command in the background; print the run's id"),
        "restart": Command("acting:restart", "start a new attempt of a run, on another device if you like"),
        "branch": Command("branch", "start a new run from a checkpoint of another one, with other arguments"),
        "move": Command("move", "move a run to another machine"),
        "init": Command("init", "write a profile for a command, from its own help and a run of it"),
        "demo": Command("screen:demo", "launch the quick start and open its screen"),
    },
    "watch": {
        "watch": Command("screen:watch", "open the screen on a log or folder that mpstui did not start"),
        "ps": Command("ps", "list runs, newest first"),
        "show": Command("show", "print everything known about a run"),
        "results": Command("results", "tabulate the results of runs, and the settings that differ"),
        "logs": Command("logs:logs", "print a run's output"),
        "follow": Command("follow", "print what happens to runs, one line per event"),
        "wait": Command("logs:wait", "wait for runs to end, or for the first of them"),
    },
    "share": {
        "report": Command("share:report", "write runs as one self-contained HTML page"),
        "export": Command(
            "share:export",
            "write runs as CSV or Parquet, for TensorBoard, W&B, MLflow or Trackio, a chart as SVG or PNG",
        ),
    },
    "act": {
        "queue": Command("queue", "list queued runs; pause, resume and reorder queues, set their slots"),
        "note": Command("labels:note", "write a note on a run, or print it"),
        "tag": Command("labels:tag", "add, remove or print the tags of runs"),
        "rename": Command("labels:rename", "give a run another name"),
        "remove": Command("remove", "delete runs that have ended"),
    },
    "explain": {
        "diagnose": Command("explain:diagnose", "explain a crash: causes, evidence, remedies"),
        "parse": Command("explain:parse", "print what mpstui reads in a log or metric file"),
    },
    "machine": {
        "profiles": Command("profiles", "list, show, check and save launch profiles"),
        "hosts": Command("hosts", "check the machines reached over ssh"),
        "doctor": Command("machine:doctor", "check this machine: devices, torch, memory, limits"),
        "bench": Command("bench", "measure CPU, device, bf16, compile and loaders on this machine"),
        "alerts": Command("machine:alerts", "show where alerts of crashes, stalls and ends go; send a test"),
        "completion": Command("completion", "print a script that completes commands, runs and profiles in your shell"),
    },
}
HERE_ALONE = {
    "completion": "it completes words of this machine",
    "demo": "`mpstui launch quickstart --host NAME` starts the quick start there",
}
"""Commands that make no sense on another machine, and what to use instead."""
_FOR_SEVERAL_HOSTS = ("ps", "hosts")
"""Commands that can ask several machines at once."""
USAGE_EXIT, INTERRUPTED = 2, 130
_LONGEST_PATH = 200
# No garbage collection at exit: `mpstui ps` then takes 77 ms of CPU time instead of 92.
atexit.register(gc.freeze)
_PAGE = """\
examples:
  mpstui launch quickstart --set epochs=3
  mpstui run -- python train.py --lr 3e-4
  mpstui logs -f RUN
  mpstui restart RUN --device cpu
  mpstui ps --host gpu1

environment:
  MPSTUI_HOME  keep everything below in this folder
  MPSTUI_SSH   the ssh for --host, with its options: ssh -F FILE
  NO_COLOR     draw without colours

files:
  {state}/runs/
      a folder for each run: its output, metrics and events, and how it ended
  {config}/profiles/
      your own profiles; those in ./profiles/ come first, those that ship last
  {config}/settings.toml
      alerts, theme, energy, hosts

exit status:
  0    done
  1    failed, or the run did; one line says why
  2    used wrongly; one line says what to do
  130  interrupted
  255  a machine named by --host could not be reached, or the connection was lost"""


def groups() -> dict[str, dict[str, Command]]:
    """Return all commands by group: those of ``_GROUPS``, and the actions on a run."""
    from ..core.actions import ACTIONS  # takes 30 ms that `mpstui --version` and the commands above can do without

    actions = {one.command: Command("acting", one.command_help or one.help) for one in ACTIONS if one.command}
    return {**_GROUPS, "act": {**actions, **_GROUPS["act"]}}


def commands() -> dict[str, Command]:
    """Return all commands by name."""
    return {name: command for group in groups().values() for name, command in group.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 used wrongly."""
    gc.set_threshold(50_000)  # nearly all objects made at the start stay; collecting took a tenth of the start
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.unraisablehook = _interrupt_again
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="replace")  # for undecodable file names; saves the import below, 20 ms
        else:
            from ..core.terminal import write_lookalikes

            write_lookalikes(stream)
    try:
        return _dispatch(arguments)
    except UsageError as error:
        from .mistaken import hint_of

        _complain(error.sentence, hint_of(error))
        return USAGE_EXIT
    except OperationError as error:
        _complain(error.sentence, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone. Without this, Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # such as a home that cannot be read or written
        where = f"{str(error.filename)[:_LONGEST_PATH]}: " if error.filename else ""
        _complain(f"{where}{error.strerror or error}", "`mpstui doctor` checks the folders")
        return 1


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that came while an object was being freed, where nothing can catch it."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    import signal
    import threading

    # Not at once: this hook, too, runs where nothing can catch it.
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()


def _open_closed() -> None:
    """Open /dev/null for streams that cron or a shell closed (``>&-``): the next file opened would replace them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            found = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(found, "w" if number else "r", encoding="utf-8"))


def _dispatch(arguments: list[str]) -> int:
    """Run the named command, else the screen, on all runs or on a named one."""
    hosts: list[str] = []
    if any(word.startswith("--host") for word in arguments):
        hosts, arguments = _split_hosts(arguments)
    first = next(iter(arguments), "-")
    if not first.startswith("-"):
        command = next((group[first] for group in _GROUPS.values() if first in group), None) or commands().get(first)
        if command is not None:
            args = command_parser(first, command).parse_args(arguments[1:])
            args.hosts = hosts
            if hosts and first not in _FOR_SEVERAL_HOSTS:
                from .far import run_there

                return run_there(hosts, arguments, args)
            return int(_function("run", command.place)(args))
        if not hosts:
            _require_run(first)
    parser = screen_parser()
    if {"-h", "--help"} & set(arguments):
        _describe(parser)
    args = parser.parse_args(arguments)
    args.hosts = hosts
    return int(_function("run", "screen")(args))


def _split_hosts(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the machines that ``--host`` names, and the other words; a ``--host`` in `run`'s command stays there."""
    from .far import take_hosts

    own = len(words)
    if "run" in words:
        after = words.index("run") + 1
        if take_hosts(words[:after])[1] == ["run"]:
            own -= len(command_parser("run", _GROUPS["start"]["run"]).parse_args(words[after:]).command)
    hosts, rest = take_hosts(words[:own])
    return hosts, rest + words[own:]


def command_parser(name: str, command: Command) -> CommandParser:
    """Return the parser of a command's arguments; ``args.command`` is its name."""
    parser = CommandParser(f"mpstui {name}", description=f"{command.help[0].upper()}{command.help[1:]}.")
    parser.set_defaults(command=name)
    if name not in HERE_ALONE:
        several = "; may be repeated" if name in _FOR_SEVERAL_HOSTS else ""
        _explain_hosts(parser, f"on that machine, over ssh{several}")
    _function("configure", command.place)(parser)
    return parser


def _explain_hosts(parser: CommandParser, words: str) -> None:
    """Give ``--host`` its line of help; its values are removed before the parser sees them."""
    parser.add_argument("--host", action="append", metavar="HOST", help=words)


def screen_parser() -> CommandParser:
    """Return the parser of `mpstui` without a command, which opens the screen, and of `mpstui RUN`."""
    parser = CommandParser("mpstui", usage="mpstui [RUN] [options]\n       mpstui COMMAND [...]")
    parser.add_argument("--version", action="version", version=f"mpstui {__version__}")
    _explain_hosts(parser, "the runs of that machine, over ssh; may be repeated, local is this one")
    _function("configure", "screen")(parser)
    return parser


def _function(verb: str, place: str) -> Any:
    """Return a command's ``configure`` or ``run`` function, given its :attr:`Command.place`."""
    module, _, suffix = place.partition(":")
    return getattr(import_module(f".{module}", __package__), f"{verb}_{suffix}" if suffix else verb)


def _describe(parser: argparse.ArgumentParser) -> None:
    """Make the parser's help the overview of all commands."""
    home = resolve_home(os.environ)
    lines = ["Launch, watch and rescue PyTorch trainings.", "Without a command, open the screen on all runs or on RUN."]
    for group, commands in groups().items():
        lines += ["", f"{group}:", *(f"  {name:<12} {one.help}" for name, one in commands.items())]
    lines += ["", "`mpstui COMMAND --help` has the options and examples of each."]
    parser.description = "\n".join(lines)
    parser.epilog = _PAGE.format(state=home.state, config=home.config)


def _require_run(word: str) -> None:
    """Check that the first word, which is not a command, means a run.

    Raises:
        UsageError: it means none, or several; the hint names the nearest match.
    """
    from ..core.runs.find import NoSuchRun, find_run

    home = resolve_home(os.environ)
    try:
        find_run(home, word)
    except NoSuchRun as error:
        near = _nearest(word, home) or (error.hint if error.near else "")
        hint = near or "see `mpstui --help` and `mpstui ps --all`"
        raise UsageError(f"{word!r} is neither a command nor a run", hint) from None


def _nearest(word: str, home: Home) -> str:
    from pathlib import Path

    from ..core.profiles.library import names_profile, profile_called

    is_there = Path(word).exists()
    if (not is_there or word.endswith(".toml")) and names_profile(word, home, Path.cwd()):
        return f"{word!r} is a profile: start it with `mpstui launch {word}`"
    if not is_there and (name := profile_called(word, home, Path.cwd())):
        return f"{name!r} is a profile: start it with `mpstui launch {name}`"
    if not is_there and (meant := meaning_of(word, [*commands()])) is not None:
        return f"did you mean {meant}?"
    if is_there:
        program = f"python {word}" if word.endswith(".py") else word
        return f"`mpstui run -- {program}` starts a program, `mpstui watch {word}` opens a log or folder"
    return ""


def _complain(sentence: str, hint: str) -> None:
    """Print an error, without control characters: it may quote the name of a run or file."""
    from .session import say_lines

    say_lines(f"mpstui: {sentence}" + (f"\nhint: {hint}" if hint else ""), beside=True)
