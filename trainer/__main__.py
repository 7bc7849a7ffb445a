"""``python -P -m trainer TASK [options]``; an installed mpstui calls this package ``mpstui_trainer``."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import MutableMapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from . import garbage
from .control import Control
from .errors import TrainingError, UsageError

if TYPE_CHECKING:
    from .tasks import Task

_USAGE = """usage: python -P -m {program} TASK [options]
       python -P -m {program} evaluate CHECKPOINT [options]
       python -P -m {program} export CHECKPOINT FILE [options]
       python -P -m {program} results DIR... [options]
       python -P -m {program} fetch SET --to DIR
       python -P -m {program} prepare rplan|genome --from PATH --to DIR
       python -P -m {program} compare TASK --trace FILE [--against FILE] [options]

tasks: {tasks}

`TASK --help` lists its options; `evaluate` validates a checkpoint, `export` writes its weights as safetensors,
`results` tabulates finished and running trainings, `fetch` downloads public data, `prepare` turns data that you
have into what a task reads, `compare` is what `mpstui bench TASK --compare-devices` runs."""
_REPORTS = ("results", "evaluate", "export", "fetch", "prepare")
_WITHOUT_TORCH = ("results", "fetch", "prepare")
_ON_CHECKPOINTS = {"evaluate": ("CHECKPOINT",), "export": ("CHECKPOINT", "FILE")}
_HELP_ON_CHECKPOINTS = {
    "evaluate": """usage: python -P -m {program} evaluate CHECKPOINT [options]

Validates a checkpoint (a file, or the newest of a folder) and prints one line of JSON. Options are those of its task
(`python -P -m {program} TASK --help`): what the model is like need not be said again, where real data lies must be.""",
    "export": """usage: python -P -m {program} export CHECKPOINT FILE

Writes the weights that validation saw (the averaged ones, where there are any) as safetensors. No data is needed.""",
}


class _Parser(argparse.ArgumentParser):
    """Reports errors as one sentence and a hint."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `python -m {self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one task; 0: finished or stopped on request, 1: the training failed, 2: used wrongly."""
    control = Control(os.environ).install()
    _bound_idle_spinning(os.environ)
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(arguments, control)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if arguments[:1] not in ([name] for name in _REPORTS):
            raise  # a training whose output nobody reads has failed
        # The reader (head, less) has gone. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UsageError as error:
        print(f"trainer: {error}", file=sys.stderr)
        return 2
    except TrainingError as error:
        print(f"trainer: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if error.name not in {"torch", "numpy", "safetensors"}:
            raise
        print(f"trainer: {error.name} is missing in {sys.executable}; pip install 'mpstui[train]'", file=sys.stderr)
        return 2


def _bound_idle_spinning(environ: MutableMapping[str, str]) -> None:
    """Let waiting OpenMP threads spin for a quarter of a millisecond, then sleep, unless the user decided otherwise.

    GNU's default is sixty times as long and takes the cores from other programs: beside two busy ones a training ran at
    a third of its speed. Without any spinning, a training that runs alone loses a sixth. The variables are read when
    torch is loaded. GNU's OpenMP (torch on Linux) follows the count first; LLVM's (on a Mac) knows only the policy.
    """
    if "OMP_WAIT_POLICY" not in environ:
        environ["OMP_WAIT_POLICY"] = "PASSIVE"
        environ.setdefault("GOMP_SPINCOUNT", "5000")


def _dispatch(arguments: list[str], control: Control) -> int:
    from .tasks import task_names

    if not arguments or arguments[0] in {"-h", "--help"}:
        print(_USAGE.format(program=__package__, tasks=", ".join(task_names())))
        return 0 if arguments else 2
    name, *rest = arguments
    if name in _WITHOUT_TORCH:
        garbage.look_from_here()
    if name == "results":
        return _results(rest)
    if name == "fetch":
        return _fetch(rest)
    if name == "prepare":
        from .prepare import main as prepare

        print(prepare(rest, _parser("prepare", "turn data that you have into the layout the tasks read")))
        return 0
    if name in _ON_CHECKPOINTS:
        return _on_checkpoint(name, rest)
    compares = name == "compare" and bool(rest)
    if compares:
        name, *rest = rest
    known = task_names()
    if name in known:
        return (_compare if compares else _train)(name, rest, control)
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"tasks: {', '.join(known)}"
    raise UsageError(f"there is no task {name!r}; {hint}")


def _results(arguments: list[str]) -> int:
    from .results import main as results

    print(results(arguments, _parser("results", "results of runs, and a table of the options they differ in")))
    return 0


def _fetch(arguments: list[str]) -> int:
    from .fetch import main as fetch

    print(fetch(arguments, _parser("fetch", "download a public data set, checked and in the layout the tasks read")))
    return 0


def _on_checkpoint(name: str, arguments: list[str]) -> int:
    from .evaluate import evaluate
    from .export import export

    garbage.look_from_here()
    if arguments[:1] in (["-h"], ["--help"]):
        print(_HELP_ON_CHECKPOINTS[name].format(program=__package__))
        return 0
    wanted = _ON_CHECKPOINTS[name]
    if len(arguments) < len(wanted) or any(argument.startswith("-") for argument in arguments[: len(wanted)]):
        raise UsageError(
            f"{name} needs {' and '.join(wanted)}: python -m {__package__} {name} {' '.join(wanted)} [options]"
        )
    checkpoint, options = Path(arguments[0]), arguments[len(wanted) :]
    if name == "export":
        print(export(checkpoint, Path(arguments[1]), options, _parser))
    else:
        print(evaluate(checkpoint, options, _parser))
    return 0


def _parser(prog: str, description: str) -> argparse.ArgumentParser:
    return _Parser(prog=f"{__package__} {prog}", description=description)


def _check_data(task: type[Task], args: argparse.Namespace) -> int:
    """Print what the data looks like; 2 when it cannot be used as it is."""
    found = task.inspect(args)
    print(found.text())
    return 2 if found.problems else 0


def _task_parser(task: type[Task], prog: str) -> _Parser:
    from . import options

    parser = _Parser(prog=prog, description=task.HELP)
    task.add_arguments(parser.add_argument_group("task"))  # type: ignore[arg-type]
    options.add_arguments(parser, task.DEFAULTS)
    return parser


def _compare(name: str, arguments: list[str], control: Control) -> int:
    """Trace some steps and compare them with those of another device."""
    from . import compare, tasks

    parser = _task_parser(tasks.find(name), f"{__package__} compare {name}")
    compare.add_arguments(parser)
    compare.compare(name, parser.parse_args(arguments), os.environ, control)
    return 0


def _add_measuring(group: argparse._ArgumentGroup) -> None:
    """Add the options that `mpstui bench` uses."""
    from .options import positive, positive_number

    group.add_argument(
        "--reuse-batches",
        type=positive,
        metavar="N",
        help="make N batches once and reuse them, so that nothing is loaded",
    )
    group.add_argument(
        "--longest-step",
        type=positive_number,
        metavar="S",
        help="take fewer samples a step where one would take more than S seconds",
    )


def _train(name: str, arguments: list[str], control: Control) -> int:
    from .startup import Startup

    startup = Startup({} if {"-h", "--help", "--check-data"} & set(arguments) else os.environ)
    startup.begin("loading torch")
    from . import tasks
    from .run import run

    task = tasks.find(name)
    parser = _task_parser(task, f"{__package__} {name}")
    parser.add_argument("--check-data", action="store_true", help="count the data, name what is bad in it, and end")
    _add_measuring(parser.add_argument_group("measuring, not training"))
    args = parser.parse_args(arguments)
    if args.check_data:
        return _check_data(task, args)
    if control.stop_requested:
        return 0
    run(name, args, os.environ, control, startup)
    return 0


if __name__ == "__main__":
    gc.disable()  # see garbage.py
    sys.exit(main())
