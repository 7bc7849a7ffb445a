"""The arguments that a program takes, from the program itself: its parser, or the settings at its top.

The program is started with ``--help`` appended, and its parser is inspected before it would train; a program whose
source has no parser is not started. Answers are kept until the file changes.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.secrets import hides
from ...wire.storage import UnreadableRecord
from ..machine import is_python
from ..profiles.written import folded, is_option
from .source_arguments import arguments_in

LONGEST_SECONDS = 60.0
"""Importing torch and transformers from a cold disk takes half of this."""
_LAST_BYTES = 4096
_LONGEST_SOURCE = 1 << 20
_PARSERS = Path(__file__).parent / "parsers"
_PARSER = re.compile(
    r"\bclick\b|\btyper\b|\babsl\b|argparse|[Pp]arse_?[Aa]rg|Arg(?:ument)?Parser|add_argument|tyro|hydra|LightningCLI"
)
RESUMES = re.compile(
    r"resume(_from.*|_path|_checkpoint)?|restore(_.*)?|(load|init_from|from)_(checkpoint|ckpt)|(ckpt|checkpoint)(_path)?"
)
"""Names, as `folded`, of arguments that say from which checkpoint a program continues."""
_SETTINGS = re.compile(r"configurator|globals\(\)")
_SHEBANG = re.compile(rb"^(?:#!|'''exec' )\"?(/\S*python[\d.]*)", re.MULTILINE)
_LOOK = r"""
import argparse, importlib, json, os, runpy, sys
answer, parsers, words = sys.argv[1], sys.argv[2], sys.argv[3:]
found, plain = {}, (str, int, float, bool)
def keep(rows):
    found.update((row["name"], row) for row in rows)
    with open(answer, "w") as file:
        json.dump(list(found.values()), file)
sys.path.insert(1, parsers)
for name in sorted(name[:-3] for name in os.listdir(parsers) if name.startswith("of_") and name.endswith(".py")):
    kind = importlib.import_module(name)
    for package in kind.PACKAGES:
        try:
            kind.look(importlib.import_module(package), keep)
        except (ImportError, AttributeError):
            pass
sys.path.remove(parsers)
nothing = (argparse._HelpAction, argparse._VersionAction, argparse._SubParsersAction)
def look(parser):
    for one in parser._actions:
        if one.help == argparse.SUPPRESS or isinstance(one, nothing):
            continue
        default = one.default if one.default != argparse.SUPPRESS else None
        many = one.nargs in ("*", "+") or isinstance(one.nargs, int) and one.nargs > 1
        if isinstance(default, (list, tuple)):
            default = " ".join(map(str, default)) if all(isinstance(part, plain) for part in default) else None
        kind = getattr(one.type, "__name__", None) or type(default).__name__
        switch = one.nargs == 0 or type(one).__name__ == "BooleanOptionalAction"
        try:
            text = parser._get_formatter()._expand_help(one) if one.help else ""
        except Exception:
            text = str(one.help)
        long = [flag for flag in one.option_strings if flag.startswith("--")] or one.option_strings or [one.dest]
        name = long[0][2:] if long[0].startswith("--") else long[0]
        found[name] = dict(
            name=name, flags=list(one.option_strings), many=many, required=bool(one.required),
            kind="switch" if switch else kind if kind in ("int", "float") else "text",
            default=None if default is None or switch and default is False else str(default),
            choices=[str(choice) for choice in one.choices or ()], help=" ".join(str(text).split())[:300])
    keep([])
ask = argparse.ArgumentParser.parse_known_args
def parse_known_args(self, args=None, namespace=None, **options):
    look(self)
    if self.add_help and args is not None and "--help" not in args and "-h" not in args:
        os._exit(0)  # it would continue and train
    return ask(self, args, namespace, **options)
argparse.ArgumentParser.parse_known_args = parse_known_args
if words[0] == "-m":
    sys.argv, sys.path[0] = words[1:], os.getcwd()
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
else:
    sys.argv, sys.path[0] = words, os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a program."""

    name: str
    """As ``--set`` takes it: without dashes, except for the single one of ``-net``, which is part of the name."""
    flags: tuple[str, ...]
    """The ways to write it, empty for a positional one."""
    kind: str
    """int, float, text or switch (a flag without a value)."""
    default: str | None = None
    """None if there is none, or it is not a plain value; a switch is then off."""
    choices: tuple[str, ...] = ()
    required: bool = False
    many: bool = False
    """Whether it takes several values."""
    joined: bool = False
    """Whether it can only be written as ``--name=value``."""
    help: str = ""


def known_arguments(
    command: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    cache: Path | None = None,
    seconds: float = LONGEST_SECONDS,
    ask: bool = True,
    complain: Callable[[str], object] = lambda text: None,
) -> tuple[Argument, ...]:
    """Return the arguments of the Python program that ``command`` starts, in its order; empty if they are unknown.

    Args:
        command: complete, as it would be started.
        cache: the folder where answers are kept, by the program's file and interpreter.
        seconds: how long the program may take to build its parser.
        ask: False starts nothing and returns only what was kept.
        complain: called with how the program ended if it gave no answer; its source is then read instead.
    """
    found = _program(command, cwd, environ)
    if found is None:
        return ()
    python, words, file = found
    text = storage.read_text(file) if file and file.suffix == ".py" else None
    if text is not None and not _PARSER.search(text):
        return _settings(text) if _SETTINGS.search(text) else ()
    stamp = str(storage.stamp(file)) if file else ""
    # A launch has the full path of the `python` that was typed: one answer serves both.
    interpreter = (shutil.which(python, path=environ.get("PATH")) if "/" not in python else None) or python
    name = hashlib.sha256("\0".join((interpreter, str(cwd), *words)).encode()).hexdigest()[:32]
    kept = cache / f"{name}.json" if cache and stamp else None
    with contextlib.suppress(UnreadableRecord, OSError, LookupError, TypeError, AttributeError):
        record = storage.read_json(kept) if kept else None
        if record and record["stamp"] == stamp:
            return tuple(_argument(one) for one in record["arguments"])
    why: list[str] = []
    arguments = _asked(python, words, cwd, environ, seconds, why.append) if ask else ()
    if why and text is not None:
        arguments = tuple(_argument(one) for one in arguments_in(text))
        why += [", so they were read in its source"] if arguments else []
    elif kept is not None and arguments:
        with contextlib.suppress(OSError):
            storage.make_private_folder(kept.parent)
            storage.write_json(kept, {"stamp": stamp, "arguments": [asdict(one) for one in arguments]})
    if why:
        complain("".join(why))
    return arguments


def resuming_argument(command: Sequence[str], cwd: Path) -> Argument | None:
    """Return the argument with which a script says, in its own source, where it resumes; None if there is none."""
    script = next((cwd / word for word in command if word.endswith(".py")), None)
    stamp = storage.stamp(script) if script is not None else None
    return _resuming_argument(script, stamp) if script is not None and stamp is not None else None


@lru_cache(maxsize=64)
def _resuming_argument(script: Path, _stamp: object) -> Argument | None:
    try:
        known = [_argument(one) for one in arguments_in(storage.read_text(script, _LONGEST_SOURCE))]
    except OSError:
        return None
    return next((one for one in known if RESUMES.fullmatch(folded(one.name))), None)


def _argument(told: Mapping[str, Any]) -> Argument:
    found: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
    if found["default"] is not None and hides(found["name"].replace("-", "_"), found["default"]):
        found["default"] = None
    return Argument(**found)


def _program(
    command: Sequence[str], cwd: Path, environ: Mapping[str, str]
) -> tuple[str, tuple[str, ...], Path | None] | None:
    """Return the interpreter, the script (or ``-m`` and module) with the words before its options, and its file."""
    place = next((place for place, word in enumerate(command) if word.endswith(".py") and (cwd / word).is_file()), None)
    first = shutil.which(command[0], path=environ.get("PATH")) if "/" not in command[0] else str(cwd / command[0])
    if first is None:
        return None
    if place is not None:
        named = [word for word in command[:place] if is_python(word)]
        beside = (cwd / ".venv/bin/python", Path(first).parent / "python", Path(first).parent / "python3")
        python = named[-1] if named else next((str(one) for one in beside if one.exists()), "python3")
        file: Path | None = cwd / command[place]
    elif is_python(first) and "-m" in command[1:-1]:
        place, python = command.index("-m"), command[0]
        parts = cwd.joinpath(*command[place + 1].split("."))
        file = next((one for one in (parts.with_suffix(".py"), parts / "__main__.py") if one.is_file()), None)
    else:
        place, file = 0, Path(first)
        with contextlib.suppress(OSError), storage.open_file(file) as opened:
            if shebang := _SHEBANG.search(opened.read(1000)):
                lead = takewhile(lambda word: not is_option(word), command[1:])
                return os.fsdecode(shebang[1]), (first, *lead), file
        return None
    head = 2 if command[place] == "-m" else 1
    lead = takewhile(lambda word: not is_option(word), command[place + head :])
    return python, (*command[place : place + head], *lead), file


def _asked(
    python: str,
    words: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    seconds: float,
    complain: Callable[[str], object],
) -> tuple[Argument, ...]:
    """Start the program with ``--help`` and return the arguments of its parser; kill it and its children when late."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        answer = Path(folder) / "arguments.json"
        command = [python, "-c", _LOOK, str(answer), str(_PARSERS), *words, "--help"]
        try:
            child = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(environ),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        except OSError as error:
            complain(f"{python} could not be started: {error.strerror}")
            return ()
        late = False
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        try:
            return tuple(_argument(one) for one in json.loads(storage.read_text(answer)))
        except (OSError, ValueError):
            errors.seek(max(0, os.fstat(errors.fileno()).st_size - _LAST_BYTES))
            said = errors.read(_LAST_BYTES).decode(errors="replace").split("\n")
            last = next((line.strip() for line in reversed(said) if line.strip()), "no word")
            if late:
                complain(f"its --help gave no answer in {seconds:g} s")
            elif child.returncode:
                complain(f"its --help ended with {_end_of(child.returncode)}: {last}")
            return ()


def _end_of(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"signal {-code}"


def _settings(text: str) -> tuple[Argument, ...]:
    """Return plain values assigned at the top of a script that lets ``--name=value`` overwrite them, like nanoGPT's."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ()
    lines = text.splitlines()
    found = {}
    for one in tree.body:
        if isinstance(one, ast.Expr) and "exec(" in ast.unparse(one):
            break
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant) and isinstance(one.targets[0], ast.Name):
            name, value = one.targets[0].id, one.value.value
            kind = {bool: "text", int: "int", float: "float", str: "text"}.get(type(value))
            if kind and not hides(name, str(value)):
                comment = lines[one.lineno - 1].partition("#")[2].strip()
                flags, default = (f"--{name}",), str(value)
                found[name] = Argument(name=name, flags=flags, kind=kind, default=default, joined=True, help=comment)
    return tuple(found.values())
