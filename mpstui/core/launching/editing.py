"""A run's launch, read back from its record or saved as a profile."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ...wire import heartbeat, storage
from ...wire.records import ChoiceRecord, LaunchRecord, Request
from ...wire.rundir import RunDir
from ...wire.secrets import HIDDEN, hides, masked_words
from ..diagnosis.evidence import failed_attempt
from ..diagnosis.remedy import NOT_GIVEN, UNSET, Change
from ..machine import Machine
from ..model.checks import LineIndex
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from ..model.toml import TomlMistake, load_toml
from ..profiles.library import save_profile_text
from ..profiles.model import ROLES, ArgumentValue, Profile, profile_of_command
from ..profiles.parse import parse_profile
from ..profiles.sweep import sweep_toml
from ..profiles.written import written_options
from .choice import LaunchChoice, choice_json, given_arguments, launch_arguments, open_axes, rewritten
from .command import environment_again
from .record import RecordedRun, chosen, read_run


def recorded_choice(run: RunDir) -> LaunchChoice:
    """Return the choice that led to a run's newest launch, for the form and for ``restart --set``.

    Raises:
        OperationError: the run's record cannot be read.
    """
    found = read_run(run)
    if found is None:
        raise OperationError(f"the record of run {run.run} cannot be read", f"see {run.spec}")
    return _choice_of(run, found, found.choice)


def _choice_of(run: RunDir, found: RecordedRun, choice: ChoiceRecord) -> LaunchChoice:
    spec = found.spec
    cwd = Path(spec.launch.cwd)
    if spec.profile_text:
        try:
            profile = thaw(spec.profile_text, path=Path(spec.profile_path) if spec.profile_path else None, cwd=cwd)
        except UsageError as error:
            raise OperationError(f"the profile frozen in run {run.run} cannot be read: {error.sentence}") from error
    else:
        variant = spec.launch.variants.get(spec.launch.device) or next(iter(spec.launch.variants.values()))
        profile = profile_of_command(tuple(variant.argv), cwd=cwd, name=spec.name)
    if choice.command:
        profile = rewritten(profile, choice.command)
    last = storage.read_or_none(LaunchRecord, run.attempt(failed_attempt(run) or 0).launch)
    others = {*found.template.variants} - {found.template.device}
    return LaunchChoice(
        profile=profile,
        device=last.device if last and last.device in others else choice.device,  # as after *restart on CPU*
        sets=choice.sets,
        recipe=choice.recipe,
        name=choice.name,
        env=choice.env,
        drop_args=tuple(choice.drop_args),
        drop_env=tuple(choice.drop_env),
        queue=choice.queue,
        agent=choice.agent,
        on=choice.on,
        job=choice.job,
        command=tuple(choice.command),
    )


class RehearsedLaunch(NamedTuple):
    """What a rehearsal tried out, as the arguments of :meth:`Actions.restart` that do it for real."""

    device: str | None
    source: str
    choice: LaunchChoice | None


def rehearsed_launch(run: RunDir) -> RehearsedLaunch | None:
    """Return the launch that the newest rehearsal of a run tried out; None if there was none.

    Raises:
        OperationError: the run's record cannot be read.
    """
    found = read_run(run)
    for path in sorted(run.requests.glob("[!.]*.json"), reverse=True):
        request = storage.read_or_none(Request, path)
        if request is not None and request.options.get("rehearsal") and found is not None:
            choice = _choice_of(run, found, chosen(request.options)) if request.options.get("choice") else None
            device, source = heartbeat.text(request.options.get("device")), heartbeat.text(request.options.get("from"))
            return RehearsedLaunch(device, source or "latest", choice)
    return None


def changes_between(before: LaunchChoice, after: LaunchChoice, known: Sequence[Change] = ()) -> tuple[Change, ...]:
    """Return what a changed launch changes. ``known`` may supply earlier values of arguments that were not given."""
    told = {change.name: change.before for change in known}
    variables = _variables(before)
    words, plain = [_split_words(choice.written_command) for choice in (before, after)], dict[str, ArgumentValue]
    pairs: list[tuple[Mapping[str, ArgumentValue], Mapping[str, ArgumentValue], str]] = [
        (plain(command=words[0].others), plain(command=words[1].others), NOT_GIVEN),
        (words[0].flags | given_arguments(before), words[1].flags | given_arguments(after), NOT_GIVEN),
        (variables, _variables(after), UNSET),
        (plain(recipe=before.recipe or before.profile.recipe), plain(recipe=after.recipe or after.profile.recipe), ""),
    ]
    found = [
        Change(
            name,
            _said(name, old[name]) if name in old else told.get(name, none),
            _said(name, new[name]) if name in new else none,
        )
        for old, new, none in pairs
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    dropped = {name: Change(name, told.get(name, "set"), UNSET) for name in {*after.drop_env} - {*before.drop_env}}
    devices = [choice.device or choice.profile.device for choice in (before, after)]
    moved = [Change("device", *devices)] if devices[0] != devices[1] else []
    return (*found, *(change for name, change in dropped.items() if name not in variables), *moved)


def _variables(choice: LaunchChoice) -> dict[str, str]:
    """Return the variables that a launch sets, including those of its profile."""
    told = {**choice.profile.env, **choice.env}
    return {name: value for name, value in told.items() if name not in choice.drop_env}


class _Words(NamedTuple):
    flags: dict[str, ArgumentValue]
    """Options without a value."""
    others: str
    """The program and everything that is not one of its options."""


def _split_words(command: Sequence[str]) -> _Words:
    options = list(written_options(command))
    theirs = {one.place + more for one in options for more in range(2 if one.value is not None and not one.head else 1)}
    others = shlex.join(masked_words([word for place, word in enumerate(command) if place not in theirs]))
    return _Words({one.key: True for one in options if one.value is None}, others)


def _said(name: str, value: ArgumentValue) -> str:
    if isinstance(value, tuple):
        return " ".join(_said(name, one) for one in value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return HIDDEN if hides(name, text) else text


def environment_of(run: RunDir, environ: Mapping[str, str], machine: Machine) -> dict[str, str]:
    """Return the environment for an edited launch of this run: that of its original shell, whichever shell asks now.

    Raises:
        OperationError: the run's record cannot be read.
    """
    choice, found = recorded_choice(run), read_run(run)
    template = found.template if found else None
    variant = template and (template.variants.get(template.device) or next(iter(template.variants.values()), None))
    recipe = choice.recipe or choice.profile.recipe
    then = variant.env if variant else {}
    return environment_again(then, choice.profile, recipe, choice.env, environ=environ, machine=machine)


def save_profile(choice: LaunchChoice, name: str, home: Home, *, overwrite: bool = False, again: bool = False) -> Path:
    """Save a launch as a profile of the user and return its path. Secrets are left out; folders become absolute.

    Raises:
        UsageError: the name cannot be a file name, or is taken and ``overwrite`` is False.
        OperationError: the file cannot be written.
    """
    profile = choice.profile
    arguments, _ = launch_arguments(choice)
    changed = {key: typed_value(value) for key, value in arguments.items() if profile.args.get(key) != value}
    axes = open_axes(choice)
    settled = [key for key in profile.sweep if key not in axes]
    changes: dict[str, Any] = {
        "name": name,
        "cwd": str(profile.cwd),
        **({"command": list(choice.command)} if choice.command else {}),
        **({"python": profile.python} if profile.python else {}),
        **({"device": choice.device} if choice.device else {}),
        **({"recipe": choice.recipe} if choice.recipe else {}),
        **({"agent": choice.agent} if choice.agent is not None else {}),
        "args": {**changed, **dict.fromkeys(choice.drop_args)},
        "sweep": {
            **{key: sweep_toml(values) for key, values in axes.items() if values != profile.sweep.get(key)},
            **dict.fromkeys(settled),
        },
        "env": {**choice_json(choice)["env"], **dict.fromkeys(choice.drop_env)},
    }
    return save_profile_text(frozen_text(profile), name, home, changes, replace=overwrite, again=again)


def typed_value(value: Any) -> Any:
    """Return a number that was set as text as a number, so that the profile reads as a person would write it."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return number if number == number and abs(number) != float("inf") else value
    return value


def frozen_text(profile: Profile) -> str:
    """Return the profile as TOML for a run's record, complete except for dots in place of secrets."""
    hidden = {name: value for name, value in profile.env.items() if hides(name, value)}
    text = profile.text
    if hidden:
        lines, index = text.splitlines(), LineIndex(text)
        for name in hidden:
            number = index.line_of(("env", name))
            if number and lines[number - 1].lstrip().strip("\"'").startswith(name):
                lines[number - 1] = f"{name} = {toml_value(HIDDEN)}"
        text = "\n".join(lines) + "\n"
        for value in hidden.values():
            if len(value) >= 6:  # long enough to be unique
                text = text.replace(value, HIDDEN)
    try:
        env = load_toml(text).get("env", {}) if text else {}
    except TomlMistake:
        return profile_toml(profile)
    # A secret may be written in a way that the lines above do not find.
    return text if text and all(env.get(name) == HIDDEN for name in hidden) else profile_toml(profile)


def thaw(text: str, *, path: Path | None, cwd: Path) -> Profile:
    """Return the profile from a run's record, to run where that run ran.

    Raises:
        UsageError: the record has keys that this version does not know, or is wrong.
    """
    profile = parse_profile(text, path=path, default_cwd=cwd)
    shown = {name: value for name, value in profile.env.items() if value != HIDDEN}
    return replace(profile, cwd=cwd, env=shown)


def profile_toml(profile: Profile) -> str:
    """Return a profile as TOML, for one that has no file, or whose file cannot be shown as it is."""
    top = {
        "name": profile.name,
        "command": profile.command,
        "python": profile.python,
        "launcher": profile.launcher,
        "pid_file": profile.pid_file,
        "device": profile.device,
        "recipe": profile.recipe,
        "arg_style": profile.arg_style,
        "agent": profile.agent,
        "processes": profile.processes if profile.launcher else None,
        "max_log": profile.max_log_bytes,
        "min_free_disk": profile.min_free_bytes,
    }
    tables: dict[str, Mapping[str, Any]] = {
        "env": {name: HIDDEN if hides(name, value) else value for name, value in profile.env.items()},
        "args": profile.args,
        "sweep": {key: sweep_toml(values) for key, values in profile.sweep.items()},
        "device_args": profile.device_args,
        "resume": {"args": profile.resume_args, "checkpoints": profile.checkpoints},
        "restart": {"on": profile.restart.on, "device": profile.restart.device},
        "roles": {role: name for role, name in profile.roles.items() if role in ROLES},
        "watch": profile.watch,
        "stop": {"signal": profile.stop.signal, "grace_seconds": profile.stop.grace_seconds},
        **profile.jobs,
    }
    lines = [f"{key} = {toml_value(value)}" for key, value in top.items() if value is not None]
    for name, table in tables.items():
        rows = [f"{toml_value(key)} = {toml_value(value)}" for key, value in table.items() if value is not None]
        lines += ["", f"[{name}]", *rows] if rows else []
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """Return a value as TOML on one line. JSON's strings are valid TOML except for DEL."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_value(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    return str(value).lower()
