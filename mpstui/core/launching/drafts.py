"""The launch form: fields made of a profile, and what their values would start.

The list of profiles and the fields are there with the key that opens them; what plans, starts, mends or saves a launch
is imported by the first of these.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...wire.records import QueueRule
from ..machine import DEVICES, Machine, this_machine
from ..model.errors import OperationError, UsageError
from ..profiles.first_run import require_own_profile
from ..profiles.library import ProfileEntry, list_profiles, load_profile
from ..profiles.model import RECIPES, ArgumentValue, Profile
from ..profiles.written import folded, written_options
from .choice import (
    LaunchChoice,
    combinations,
    commented_arguments,
    known_key,
    open_axes,
    parse_condition,
    parse_environment,
    parse_sets,
)

if TYPE_CHECKING:
    from ...wire.records import Request
    from ..model.home import Home
    from ..model.snapshot import RunSnapshot
    from .actions import Actions
    from .arguments import Argument
    from .command import EnvLine
    from .cure import Cure
    from .planning import LaunchPlan

Words = TypeVar("Words")

ARGUMENT = "arg:"
"""Before the key of a field that is one of the program's own arguments."""
SWEEP = "sweep:"
"""Before the key of a field that holds several values of one, one run for each."""
MORE, VARIABLES, MORE_SWEPT, AFTER, QUEUE = "more", "env", "swept", "queue.after", "queue"
"""Fields for what the profile has no field for, and for when to start."""
_A_PATH = re.compile(
    r"(?:^|_)(?:data|dataset|dir|directory|path|file|folder|root|cache|checkpoint|fasta|bed|npz|csv)(?:_|$)"
)


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the launch form. ``choices`` make it a choice, else it is text."""

    key: str
    label: str
    value: str
    choices: tuple[str, ...] = ()
    hint: str = ""
    """Shown in an empty field: what may stand there. An argument left empty is not passed."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Exactly what would be started."""

    command: str
    environment: tuple[EnvLine, ...] = ()
    warnings: tuple[str, ...] = ()
    cwd: str = ""
    runs: tuple[str, ...] = ()
    """Names of all runs where there are several; ``command`` is that of the first."""
    profile: str | None = None
    epochs: float | None = None
    waits_for: tuple[str, ...] = ()
    """What must be true before it starts: a slot in a queue, the end of other runs."""


class Launcher:
    """Profiles of a home, as forms."""

    def __init__(
        self, home: Home, environ: Mapping[str, str], cwd: Path, actions: Actions, clock: Callable[[], float]
    ) -> None:
        self.home = home
        self.environ = environ
        self.actions = actions
        self.clock = clock
        self.machine: Machine = this_machine()
        self._cwd = cwd

    def entries(self) -> Sequence[ProfileEntry]:
        """Every profile that can be found from here."""
        return list_profiles(self.home, self._cwd)

    def draft(self, name: str) -> Draft:
        """A form for a profile.

        Raises:
            UsageError: there is no such profile, or it has mistakes.
        """
        profile = load_profile(name, self.home, self._cwd)
        require_own_profile(profile, self.home, self._cwd)
        return Draft(self, LaunchChoice(profile))

    def draft_of(self, snapshot: RunSnapshot, cure: Cure | None = None) -> Draft:
        """A form filled in with what a run was started with, changed by a cure where one is given.

        Raises:
            OperationError: the run's record cannot be read.
        """
        from ...wire.rundir import RunDir
        from .editing import environment_of, recorded_choice

        run = RunDir(snapshot.dir)
        choice = cure.choice if cure is not None else recorded_choice(run)
        return Draft(self, choice, cure, environment_of(run, self.environ, self.machine))


class Draft:
    """One launch that is being filled in. What differs from the profile becomes the choice.

    A profile with a sweep is several runs as long as its swept fields hold several values; the new attempt of a run is
    always one.
    """

    def __init__(
        self,
        launcher: Launcher,
        choice: LaunchChoice,
        cure: Cure | None = None,
        environ: Mapping[str, str] | None = None,
        known: Sequence[Argument] = (),
    ) -> None:
        """A form for one choice.

        Args:
            environ: of the run that this is a new attempt of; None: a new run, or several, in the launcher's own.
            known: arguments that the program is known to take; see :meth:`asking_the_program`.
        """
        self._launcher = launcher
        self._environ = launcher.environ if environ is None else environ
        self._cure = cure
        self._asks = cure.asks if cure else ()
        """Arguments that a remedy changes and whose value nobody knows: they have to be filled in."""
        self._note = cure.sentence if cure else ""
        self._choice = choice
        self._starts = environ is None
        self._sweep = {key: ", ".join(one.text for one in values) for key, values in open_axes(choice).items()}
        given = {**_named(choice.profile), **choice.sets}
        left_out = {*choice.drop_args, *self._sweep}
        self._arguments = {key: text for key, text in given.items() if key not in left_out}
        offered = dict.fromkeys(commented_arguments(choice.profile), "not passed")
        for one in known:
            if one.flags and (choice.profile.arg_style == "equals" or not one.joined):
                offered[one.name] = " | ".join(one.choices) or f"{one.default or 'not passed'}  {one.help}".strip()
        taken = {folded(key) for key in (*self._arguments, *self._sweep)}
        taken |= {folded(word) for words in choice.profile.device_args.values() for word in words}
        asked = dict.fromkeys(self._asks, "needed")
        self._offered = {**asked, **{key: hint for key, hint in offered.items() if folded(key) not in taken}, **asked}

    @property
    def title(self) -> str:
        return self._choice.profile.name

    @property
    def description(self) -> str:
        """What a remedy has changed, else what the profile says of itself."""
        return self._note or self._choice.profile.description

    @property
    def fields(self) -> tuple[Field, ...]:
        """Name, device and recipe, what is swept, the program's own arguments, then what the profile does not name."""
        choice, profile = self._choice, self._choice.profile
        switches = {key for key, value in profile.args.items() if isinstance(value, bool)}
        switches |= {one.key for one in written_options(profile.command) if one.value is None}
        arguments = (
            Field(ARGUMENT + key, key, text, ("true", "false") if key in switches else ())
            for key, text in self._arguments.items()
        )
        waits = [f"{one['run']}:{one['when']}" for one in choice.queue.after]
        variables = shlex.join(f"{name}={value}" for name, value in choice.env.items())
        when = (
            Field(MORE_SWEPT, "sweep", "", hint="lr=0.1,0.01 seed=1,2,3"),
            Field(AFTER, "start after", shlex.join(waits), hint="RUN, RUN:any or RUN:fail"),
            Field(QUEUE, "queue", choice.queue.group or "", hint="auto, or a name"),
        )
        return (
            Field("name", "name", choice.name or profile.name),
            Field("device", "device", choice.device or profile.device, tuple(DEVICES)),
            Field("recipe", "recipe", choice.recipe or profile.recipe, tuple(RECIPES)),
            *(Field(SWEEP + key, f"sweep {key}", text) for key, text in self._sweep.items()),
            *arguments,
            *(Field(ARGUMENT + key, key, "", hint=hint) for key, hint in self._offered.items()),
            Field(MORE, "more arguments", "", hint="KEY=VALUE ..."),
            Field(VARIABLES, "variables", variables, hint="NAME=VALUE ..."),
            *(when if self._starts else ()),
        )

    def asking_the_program(self, values: Mapping[str, str]) -> Draft:
        """The same form with a field for each argument that the program says it takes; asking may take a minute.

        Raises:
            UsageError: a value is wrong.
            OperationError: the program does not say.
        """
        from .arguments import known_arguments

        choice, launcher = self._chosen(values), self._launcher
        planned = self._plan(values, choice, check=False)
        environ = {**self._environ, **{line.name: line.value for line in planned.env}}
        cwd, cache, why = Path(planned.template.cwd), launcher.home.arguments, list[str]()
        known = known_arguments(planned.argv, cwd=cwd, environ=environ, cache=cache, complain=why.append)
        if not known:
            hint = "write them as KEY=VALUE under `more arguments`"
            raise OperationError(": ".join(["this program does not tell which arguments it takes", *why]), hint)
        return Draft(launcher, choice, self._cure, None if self._starts else self._environ, known)

    def preview(self, values: Mapping[str, str]) -> Preview:
        """What these values would start; whether the device is there is asked when it is started."""
        choices = self._combinations(values)
        planned, *_ = [self._plan(values, choice, check=False) for choice in choices]
        return Preview(
            command=shlex.join(planned.argv),
            environment=planned.env,
            warnings=(*([self._note] if self._note else []), *planned.warnings),
            runs=tuple(str(choice.name) for choice in choices) if len(choices) > 1 else (),
            cwd=planned.template.cwd,
            profile=self._choice.profile.slug if self._choice.profile.path else None,
            epochs=planned.template.totals.epochs,
            waits_for=(
                *([f"a slot in queue {planned.queue.group}"] if planned.queue.group else []),
                *([f"nodes from {planned.engine.title}"] if planned.engine else []),
                *(f"the end ({one['when']}) of {one['run']}" for one in planned.queue.after),
            ),
        )

    def launch(self, values: Mapping[str, str]) -> str:
        """Start all its runs, detached, and return the first one's id; a mistake in the last one starts none."""
        from .planning import launch_all

        launcher = self._launcher
        plans = [self._plan(values, choice, check=True) for choice in self._combinations(values)]
        return launch_all(plans, launcher.home, launcher.environ, launcher.clock)[0]

    def restart(self, snapshot: RunSnapshot, values: Mapping[str, str], *, rehearse: bool = False) -> Request:
        """Ask for a new attempt with these values, or for a few steps with them that leave the run as it is."""
        choice = self._chosen(values)
        self._plan(values, choice, check=True)
        rehearsal = None
        if rehearse:
            from ...wire.rundir import RunDir
            from .editing import changes_between, recorded_choice
            from .rehearsal import rehearsal_of

            told = self._cure.changes if self._cure else ()
            changes = changes_between(recorded_choice(RunDir(snapshot.dir)), choice, told)
            rehearsal = rehearsal_of(snapshot, changes, choice.profile)
        return self._launcher.actions.restart(snapshot, choice=choice, rehearsal=rehearsal)

    def save(self, values: Mapping[str, str], name: str) -> Path:
        """Keep the values as a profile of one's own; one that is there already is left alone."""
        from .editing import save_profile

        return save_profile(self._chosen(values), name, self._launcher.home)

    def completed(self, key: str, text: str) -> str | None:
        """``text`` with the file or folder that it begins to name, for a field that holds a path; None for any other.

        Reads a folder: not for the thread that draws.
        """
        named = _A_PATH.search(key.removeprefix(ARGUMENT).replace("-", "_"))
        if not text or not (named or "/" in text or text.startswith("~")):
            return None
        folder, slash, begun = text.rpartition("/")
        try:
            with os.scandir(self._choice.profile.cwd / Path(folder + slash).expanduser()) as entries:
                found = sorted(
                    (entry.name.startswith("."), entry.name + ("/" if entry.is_dir() else ""))
                    for entry in entries
                    if entry.name.startswith(begun) and entry.name != begun and entry.name.isprintable()
                )
        except OSError:
            return None
        return folder + slash + found[0][1] if found else None

    def _chosen(self, values: Mapping[str, str]) -> LaunchChoice:
        # No shell stands between the form and the program: `~` would reach it as it is.
        given = {
            key[len(ARGUMENT) :]: str(Path(text).expanduser()) if text.startswith("~/") else text
            for key, text in values.items()
            if key.startswith(ARGUMENT) and (text or key[len(ARGUMENT) :] not in self._offered)
        }
        more = _read(values, MORE, parse_sets)
        swept_too = _read(values, MORE_SWEPT, parse_sets)
        home, group = self._launcher.home, values.get(QUEUE, "").strip()
        after = _read(values, AFTER, lambda words: [parse_condition(home, word) for word in words])
        for name in self._asks:
            if not given.get(name, "").strip():
                sentence = f"what {name} was is not known, so that the remedy cannot change it"
                raise UsageError(sentence, "give its new value", field=ARGUMENT + name)
        # A swept argument stays said although it equals the profile's: a run without it would be a sweep again.
        swept = self._choice.profile.sweep
        before = {key: text for key, text in _named(self._choice.profile).items() if key not in swept}
        return replace(
            self._choice,
            name=values["name"].strip() or None,
            device=values["device"],
            recipe=values["recipe"],
            sets={**{self._certain(key): text for key, text in given.items() if before.get(key) != text}, **more},
            env=_read(values, VARIABLES, parse_environment),
            sweep={
                **{
                    key: _split(values[SWEEP + key], SWEEP + key)
                    for key, text in self._sweep.items()
                    if values[SWEEP + key] != text
                },
                **{key: _split(text, MORE_SWEPT) for key, text in swept_too.items()},
            },
            queue=QueueRule(group or None, after) if self._starts else self._choice.queue,
        )

    def _certain(self, key: str) -> str:
        """The key as ``sets`` takes it: one that the program itself names is not mistyped, however near to another."""
        try:
            known_key(key, self._choice.profile)
        except UsageError:
            return f"+{key}"
        return key

    def _combinations(self, values: Mapping[str, str]) -> tuple[LaunchChoice, ...]:
        chosen = self._chosen(values)
        try:
            return combinations(chosen) if self._sweep or chosen.sweep else (chosen,)
        except UsageError as error:
            raise _at_field(error, values) from error

    def _plan(self, values: Mapping[str, str], choice: LaunchChoice, *, check: bool) -> LaunchPlan:
        from .planning import plan

        launcher = self._launcher
        try:
            return plan(choice, environ=self._environ, machine=launcher.machine, check=check)
        except UsageError as error:
            raise _at_field(error, values) from error


def _named(profile: Profile) -> dict[str, str]:
    """The arguments that a profile gives a value: those that its command has, and its own."""
    written = {one.key: "true" if one.value is None else one.value for one in written_options(profile.command)}
    return {**written, **{key: _text(value) for key, value in profile.args.items()}}


def _text(value: ArgumentValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(_text(part) for part in value) if isinstance(value, tuple) else str(value)


def _split(text: str, field: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise UsageError("a sweep needs at least one value of each argument", "such as 1, 2, 3", field=field)
    return found


def _read(values: Mapping[str, str], field: str, parse: Callable[[list[str]], Words]) -> Words:
    """What the words of a field mean; a mistake is told at that field."""
    try:
        return parse(shlex.split(values.get(field, "")))
    except ValueError:
        raise UsageError("a quotation mark is not closed", "write it as in a shell", field=field) from None
    except UsageError as error:
        raise UsageError(error.sentence, error.hint, field=field, near=error.near) from error


def _at_field(error: UsageError, values: Mapping[str, str]) -> UsageError:
    """The error with the form's field in place of the profile's key, None where the form has no such field."""
    wrong = error.field or ""
    argument = wrong.removeprefix("args.")
    typed = [MORE_SWEPT] if f"{argument}=" in values.get(MORE_SWEPT, "") else []
    fields = (*typed, ARGUMENT + argument, SWEEP + argument, MORE) if argument != wrong else (wrong,)
    field = next((key for key in fields if key in values), None)
    return UsageError(error.sentence, error.hint, field=field, near=error.near)
