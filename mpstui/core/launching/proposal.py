"""A profile for a command, derived from what the program says about its arguments and from what a run of it showed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ...wire import storage
from ...wire.records import ExitRecord, LaunchRecord, Spec
from ...wire.rundir import RunDir, run_dirs
from ...wire.secrets import hides
from ...wire.storage import UnreadableRecord
from ..machine import is_python
from ..model.errors import OperationError
from ..model.home import Home
from ..model.snapshot import RunSnapshot
from ..profiles.model import ROLES, ArgumentValue, Profile, profile_of_command
from ..profiles.written import USUAL_NAMES, WrittenOption, folded, replace_option, written_options
from ..runs.foreign import external_heartbeat
from .arguments import RESUMES, Argument, known_arguments
from .command import argument_words
from .editing import recorded_choice, toml_value, typed_value

MOST_LISTED = 24
"""Arguments that a profile lists, at most; the rest are in the program's own help."""
_TELLING = re.compile(
    "lr|rate|batch|epoch|step|iter|seed|model|arch|data|out|optim|decay|warm|prec|16|worker|save|eval"
)
_LOADS = re.compile(
    r"(load_)?state_dict(_path|_file)?|(load|pretrained|init|initial)_(weights|model|state|path|file)(_path|_file)?"
    r"|(model_)?weights_(path|file)|load(_from)?|pretrained_(checkpoint|ckpt)(_path)?"
)
"""Arguments that load a saved model, for programs without an argument to resume."""
_DEVICE = re.compile(r"device|accelerator")
_TO_CPU = re.compile(r"no_(cuda|accel|gpu|mps)|(use_)?cpu|force_cpu|cpu_only")
_TO_GPU = re.compile(r"(use_)?(cuda|gpu|accel|mps)")
_WEIGHTS = (".pt", ".pth", ".ckpt", ".safetensors", ".tar", ".h5", ".keras")
_NO_MODEL = re.compile(r"(?i)(?:opt|optim|optimizer|ema|sched|scheduler|scaler|rng|random_states)(?=[\d_.-])")
"""Beginnings of the names of files that are saved beside a model, and that nothing can resume from."""
_BESIDE_WEIGHTS = re.compile(r"optimizer|scheduler|scaler|rng_state|training_args|random_states")
_MOST_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """A profile as TOML, and what it was made from."""

    text: str
    name: str
    sources: tuple[str, ...]
    """As phrases: the program's arguments, a run."""
    complaint: str
    """Why the program did not report its arguments when asked; empty if it did."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a run of the program left in its folder."""

    checkpoints: str | None = None
    watch: Mapping[str, str] | None = None


def propose(
    command: Sequence[str],
    folder: Path,
    *,
    cwd: Path,
    name: str | None,
    home: Home,
    environ: Mapping[str, str],
    snapshot: RunSnapshot | None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Proposal:
    """Return a profile for this command. The program is asked for its arguments, which may take a while.

    Args:
        folder: where the profile will be; paths in it are relative to that.
        snapshot: a run of the command, if there was one.
        env: variables given to that run.
    """
    why: list[str] = []
    asked = known_arguments(command, cwd=cwd, environ=environ, cache=home.arguments, complain=why.append)
    known = {folded(one.name): one for one in asked}
    typed = _typed(command, asked, cwd, name)
    style = "equals" if any(one.joined for one in known.values()) else typed.arg_style
    style = "hydra" if any(flag.endswith("=") for one in asked for flag in one.flags) else style
    shown = _shown(cwd, snapshot, _others(cwd, snapshot, home)) if snapshot else _Shown()
    words = list(typed.command)
    written = {folded(one.key): one.key for one in written_options(words)}
    typed, device, device_args, telling = _device(words, typed, known, style)
    resume, resuming = _resuming(known, style, shown)
    sources = [f"the program's {len(known)} argument{'' if len(known) == 1 else 's'}"] if known else []
    sources += [f"run {snapshot.run}"] if snapshot else []
    program, python = _program(words, cwd, environ)
    lines = [
        f"# {typed.name}, as `mpstui init` found it{': ' if sources else ''}{' and '.join(sources)}.",
        f"name = {toml_value(typed.name)}",
        f"command = {toml_value(program)}",
        *([f"python = {toml_value(_path(python, folder))}"] if python else []),
        f"cwd = {toml_value(os.path.relpath(cwd, folder))}",
        *([f"device = {toml_value(device)}"] if device else []),
        *([f"arg_style = {toml_value(style)}"] if style != "options" else []),
        "",
        "[args]",
        *_argument_lines(typed, known, {*written, telling, resuming}),
        *_table("env", {key: toml_value(value) for key, value in env.items() if not hides(key, value)}),
        *resume,
        *_table("device_args", {key: toml_value(words) for key, words in device_args.items()}),
        *_table("watch", {key: toml_value(path) for key, path in (shown.watch or {}).items()}),
        *_table("roles", _roles([*typed.args, *written.values(), *(one.name for one in known.values())], known)),
    ]
    return Proposal("\n".join(lines) + "\n", typed.slug, tuple(sources), "".join(why))


def _typed(command: Sequence[str], known: Sequence[Argument], cwd: Path, name: str | None) -> Profile:
    """Return the profile of the command as typed, with short options replaced by their long names."""
    long = {flag: f"--{one.name}" for one in known for flag in one.flags if flag[:2] != "--" and one.name[:1] != "-"}
    typed = profile_of_command(tuple(long.get(word, word) for word in command), cwd=cwd, name=name)
    if name is None and typed.name in ("main", "train", "run"):  # among several projects the folder says more
        typed = replace(typed, name=f"{cwd.name} {typed.name}")
    return typed


def earlier_run(command: Sequence[str], cwd: Path, home: Home) -> RunDir | None:
    """Return the newest run of the same program in the same folder, started as a command or from a profile."""
    wanted = _same_program(profile_of_command(tuple(command), cwd=cwd).command)
    for run in sorted(run_dirs(home.runs), key=lambda one: one.run, reverse=True)[:200]:
        try:
            profile = recorded_choice(run).profile
        except OperationError:
            continue
        if (_same_program(profile.command), profile.cwd) == (wanted, cwd):
            return run
    return None


def _same_program(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command without its Python interpreter, which a profile leaves open."""
    return command[1:] if command[:1] == ("{python}",) or is_python(command[0]) else command


def command_of(run: RunDir) -> tuple[tuple[str, ...], Profile]:
    """Return the command of a run as it was typed, and its profile.

    Raises:
        OperationError: its record cannot be read.
    """
    profile = recorded_choice(run).profile
    return (*profile.command, *argument_words(profile.args, profile.arg_style)), profile


def _argument_lines(typed: Profile, known: Mapping[str, Argument], elsewhere: set[str]) -> Iterator[str]:
    """Yield the typed arguments, then the others with their defaults, as comments, which the form reads as well."""
    given = {folded(key): (key, value) for key, value in typed.args.items()}
    for name, (key, value) in given.items():
        yield _noted(f"{_key(key)} = {_value(value, known.get(name))}", known.get(name))
    others = [one for name, one in known.items() if name not in {*given, *elsewhere} and one.flags]
    if len(others) > MOST_LISTED:
        others = [one for one in others if _TELLING.search(one.name)][:MOST_LISTED]
    for one in others:
        example = one.default if one.default is not None else one.choices[0] if one.choices else ""
        yield _noted(f"# {_key(one.name)} = {'false' if one.kind == 'switch' else _value(example, one)}", one)
    hidden = len([one for one in known.values() if one.flags]) - len(others) - len(given)
    if hidden > len(elsewhere):
        yield f"# and {hidden - len(elsewhere)} more: see the program's own --help"


def _noted(line: str, argument: Argument | None) -> str:
    choices = f"one of {', '.join(argument.choices)}" if argument and argument.choices else ""
    note = "; ".join(part for part in ((argument.help if argument else "")[:70], choices[:70]) if part)
    return f"{line:<32}  # {note}" if note else line


def _value(value: ArgumentValue, argument: Argument | None) -> str:
    numeric = argument is None or argument.kind in ("int", "float")
    if argument is not None and argument.many and isinstance(value, str):
        return toml_value([typed_value(part) for part in value.split()])
    return toml_value(typed_value(value) if numeric else value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else toml_value(name)


def _roles(names: Sequence[str], known: Mapping[str, Argument]) -> dict[str, str]:
    """Return the argument for each role. One that expects the word True is left out: no recipe could set it."""
    words = {name for name, one in known.items() if one.default in ("True", "False") and one.kind != "switch"}
    found = {folded(name): name for name in reversed(names) if folded(name) not in words}
    usual = {role: next((found[one] for one in names if one in found), None) for role, names in USUAL_NAMES.items()}
    if not (usual["epochs"] or usual["steps"] or any(re.search("timestep|env_?step|frame", one) for one in found)):
        usual["steps"] = found.get("num_steps")  # elsewhere the steps of a rollout, or of a sampler
    plain = {role: found.get(role) for role in ROLES if role not in USUAL_NAMES}
    return {role: toml_value(name) for role, name in {**usual, **plain}.items() if name}


def _device(
    words: list[str], typed: Profile, known: Mapping[str, Argument], style: str
) -> tuple[Profile, str | None, dict[str, list[str]], str]:
    """Return the typed profile without its device, that device, how the program takes each device, and the argument
    that does so. The device is removed from ``words``, too."""
    args, telling = _device_args(known, style)
    asked = {folded(one.key): one.value for one in written_options(words)}
    if not telling and (named := next((one for one in written_options(words) if _names_device(one)), None)):
        telling, joined = folded(named.key), bool(named.head)
        flag = named.head or words[named.place]
        args = {word: [f"{flag}{word}"] if joined else [flag, word] for word in ("mps", "cuda", "cpu")}
    device = asked.get(telling)
    if device in ("cpu", "mps", "cuda"):
        replace_option(words, telling, False)
        return typed, device, args, telling
    switches = {folded(flags[0]): name for name, flags in args.items() if len(flags) == 1}
    meant = [name for key, name in switches.items() if key in map(folded, typed.args)]
    others = {key: value for key, value in typed.args.items() if folded(key) not in switches}
    means_one = len(meant) == 1 and len(switches) == len(args)
    return replace(typed, args=others), meant[0] if means_one else None, {} if telling in asked else args, telling


def _names_device(option: WrittenOption) -> bool:
    """Return whether an option sets one of our devices, in a program whose arguments are unknown."""
    return _DEVICE.fullmatch(folded(option.key).rpartition(".")[2]) is not None and option.value in (
        "cpu",
        "mps",
        "cuda",
    )


def _device_args(known: Mapping[str, Argument], style: str) -> tuple[dict[str, list[str]], str]:
    """Return how the program takes each device, and the argument that sets it."""
    for name, one in known.items():
        flag = next((flag for flag in one.flags if flag.startswith("--")), *one.flags[:1] or [""])
        numbered = one.kind in ("int", "float") or (one.default or "").isdecimal()  # it chooses among GPUs
        takes = one.kind != "switch" and not numbered and (flag or style == "hydra")
        if takes and _DEVICE.fullmatch(name.rpartition(".")[2]):
            flag = flag or one.name
            words = one.choices or ("cpu", "mps", "cuda", *(("auto",) if one.default == "auto" else ()))
            named = [word for word in ("auto", "mps", "cuda", "cpu") if word in words]
            return {word: [flag, word] if style == "options" else [f"{flag}={word}"] for word in named}, name
        if one.kind == "switch" and _TO_CPU.fullmatch(name):
            return {"cpu": [flag]}, name
        if one.kind == "switch" and _TO_GPU.fullmatch(name):
            gpus = [device for device in ("mps", "cuda") if device in name] or ["mps", "cuda"]
            off = next((other for other in one.flags if other.startswith("--no")), "")
            if one.default == "True" and not off:  # the flag turns the GPU off, which is on by default
                return {"cpu": [flag]}, name
            return {device: [flag] for device in gpus} | ({"cpu": [off]} if off else {}), name
    return {}, ""


def _resuming(known: Mapping[str, Argument], style: str, shown: _Shown) -> tuple[list[str], str]:
    """Return the [resume] table, as comments if part of it is unknown, and the argument it refers to."""
    args: list[str] | None = None
    used = next((name for name, one in known.items() if RESUMES.fullmatch(name) and one.flags), "")
    loads = [name for name, one in known.items() if _LOADS.fullmatch(name) and one.flags and _takes_a_file(one)]
    only_loads = not used and "init_from" not in known and bool(loads)
    if used or only_loads:
        used = used or loads[0]
        flag = next((flag for flag in known[used].flags if flag.startswith("--")), known[used].flags[0])
        joined = [f"{flag}={{checkpoint}}"] if style == "equals" else [flag, "{checkpoint}"]
        args = [flag] if known[used].kind == "switch" else joined
    elif (init := known.get("init_from")) and "resume" in init.help:
        used, args = "init_from", ["--init_from=resume"]
    if known and not args:
        rows = {"checkpoints": toml_value(shown.checkpoints)} if shown.checkpoints else {}
        return [
            *_table("resume", rows),
            "",
            "# It has no argument to resume from a checkpoint: a restart begins from scratch.",
        ], ""
    marks = "" if args and shown.checkpoints else "# "
    note = "" if args else "  # in the program's own words"
    where = "" if shown.checkpoints else "  # where it saves"
    pattern = shown.checkpoints or "checkpoints/*.pt"
    if not args and not shown.checkpoints and not known:
        return [], ""
    how = "how it continues, if loading a saved model is enough for that" if only_loads else "how it continues"
    why = f"  # {how}" + (": with this completed a restart continues, without it begins from scratch" if marks else "")
    return [
        "",
        f"{marks}[resume]{why}",
        f"{marks}args = {toml_value(args or ['--resume', '{checkpoint}'])}{note}",
        f"{marks}checkpoints = {toml_value(pattern)}{where}",
    ], used


def _takes_a_file(argument: Argument) -> bool:
    return argument.kind not in ("switch", "int", "float") and not argument.choices


def _others(cwd: Path, snapshot: RunSnapshot, home: Home) -> list[tuple[float, float]]:
    """Return the spans of time in which other runs ran in the same folder."""
    found = []
    for run in run_dirs(home.runs):
        spec = storage.read_or_none(Spec, run.spec) if run.run != snapshot.run else None
        for number in run.attempt_numbers() if spec is not None and Path(spec.launch.cwd) == cwd else ():
            launched = storage.read_or_none(LaunchRecord, run.attempt(number).launch)
            ended = storage.read_or_none(ExitRecord, run.attempt(number).exit)
            found += [(launched.time, ended.ended if ended else snapshot.seen)] if launched else []
    return found


def _shown(cwd: Path, snapshot: RunSnapshot, others: Sequence[tuple[float, float]]) -> _Shown:
    """Return the checkpoints, heartbeat and metric files in the program's folder that were written while the run, and
    no other, was running. If two may have written a file, it does not count unless the run reported it."""
    began, ended = snapshot.started or 0.0, snapshot.ended or snapshot.seen
    told = snapshot.numbers.checkpoint
    weights: list[tuple[float, Path]] = []
    watch: dict[str, str] = {}
    for path in _files(cwd):
        stamp = storage.stamp(path)
        written = stamp[0] / 1e9 if stamp else 0.0
        inside = path.relative_to(cwd)
        shared = any(start <= written <= end for start, end in others)
        if not began <= written <= ended + 60 or (shared and (told is None or cwd / told.path != path)):
            continue
        if path.suffix in _WEIGHTS and not _BESIDE_WEIGHTS.search(path.name):
            weights.append((written, inside))
        elif path.suffix == ".json" and "heartbeat" not in watch:
            beat = None
            with contextlib.suppress(OSError, UnreadableRecord):
                beat = external_heartbeat(storage.read_json(path) or {}, 0)
            if beat is not None and beat.loss is not None and (beat.step is not None or beat.epoch is not None):
                watch["heartbeat"] = str(inside)
        elif path.suffix in (".jsonl", ".csv") and re.search("metric|log|hist|result", path.stem):
            watch["metrics"] = str(inside)
    elsewhere = (one for one in snapshot.checkpoints if not one.path.is_relative_to(cwd))  # reported by the run itself
    weights += [(one.time, one.path) for one in elsewhere if one.complete and began <= one.time <= ended + 60]
    return _Shown(_pattern([path for _, path in sorted(weights)]), watch)


def _pattern(written: Sequence[Path]) -> str | None:
    """Return a glob for files like the newest one: numbers in its name, or in that of its folder, become stars."""
    written = [one for one in written if not _NO_MODEL.match(one.name)] or written
    if not written:
        return None
    newest = written[-1]
    folder = newest.parent
    if re.search("ckpt|check|step|epoch|iter", folder.name) and re.search(r"\d", folder.name):
        return str(folder.parent / re.sub(r"\d+", "*", folder.name))
    beside = {re.sub(r"\d+(?:[._]\d+)*", "*", one.name) for one in written if one.parent == folder}
    suffix = "".join(newest.suffixes[-2:]) if newest.suffix == ".tar" else newest.suffix
    name = beside.pop() if len(beside) == 1 else f"*{suffix}"
    return str(folder / name)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a program, without the records of runs, whose home may be in the same folder."""
    count = 0
    for place, folders, files in os.walk(folder):
        if "attempts" in folders and RunDir(Path(place)).spec.exists():
            folders.clear()
            continue
        deep = len(Path(place).relative_to(folder).parts) >= 5
        folders[:] = [] if deep else [one for one in folders if not re.match(r"\.|__|venv|node_modules|profiles$", one)]
        for name in files:
            count += 1
            yield Path(place, name)
        if count > _MOST_FILES:
            return


def _program(words: list[str], cwd: Path, environ: Mapping[str, str]) -> tuple[list[str], Path | None]:
    """Return the command with ``{python}`` for its interpreter, and that one; other programs get their full path, as a
    profile may be launched from any shell."""
    found = (
        shutil.which(words[0], path=environ.get("PATH")) if "/" not in words[0] else os.path.normpath(cwd / words[0])
    )
    if found is None or Path(found).parent in (Path("/bin"), Path("/usr/bin"), Path("/usr/local/bin")):
        return words, None
    return (["{python}", *words[1:]], Path(found)) if is_python(words[0]) else ([found, *words[1:]], None)


def _path(path: Path, folder: Path) -> str:
    """Return the path as a person would write it: relative to the profile's folder, with ``~``, or in full."""
    if path.is_relative_to(folder.parent):
        return os.path.relpath(path, folder)
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _table(name: str, rows: Mapping[str, str]) -> list[str]:
    return ["", f"[{name}]", *(f"{key} = {value}" for key, value in rows.items())] if rows else []
