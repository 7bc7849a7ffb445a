"""Starting one process a device through torch's own launcher."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

_LOG_FOLDER = "{run_dir}/attempts/{attempt}/torchrun"
_TAKES_A_VALUE = ("-X", "-W")


def wrapped(argv: Sequence[str], processes: int, python: str) -> list[str]:
    """The same program under ``torch.distributed.run``, with ``processes`` workers on this host and no restarts.

    Restarts are the supervisor's, which knows checkpoints and causes. Options of the interpreter (``-u``) go to the
    launcher, since workers are started by it without them.
    """
    interpreter, options, program = _split(argv, python)
    launcher = [interpreter, *options, "-m", "torch.distributed.run", "--standalone", "--max-restarts", "0"]
    launcher += ["--nproc-per-node", str(processes), "--log-dir", _LOG_FOLDER]
    return [*launcher, *program]


def worker_variables(argv: Sequence[str]) -> dict[str, str]:
    """Interpreter options that workers would lose, as variables: ``-P`` keeps the current folder off their path."""
    return {"PYTHONSAFEPATH": "1"} if "-P" in argv[1:3] else {}


def is_python(word: str) -> bool:
    """Whether a command's first word is a Python interpreter."""
    return PurePath(word).name.startswith("python")


def _split(argv: Sequence[str], python: str) -> tuple[str, list[str], list[str]]:
    """Interpreter, its options, and the rest as ``torch.distributed.run`` takes it."""
    if not (argv[0] == python or is_python(argv[0])):
        return python, [], ["--no-python", *argv]
    position = 1
    while position < len(argv) and argv[position].startswith("-") and argv[position] not in ("-m", "-c", "-"):
        position += 2 if argv[position] in _TAKES_A_VALUE else 1
    if position < len(argv) and argv[position] in ("-c", "-"):
        return python, [], ["--no-python", *argv]
    return argv[0], list(argv[1:position]), list(argv[position:])
