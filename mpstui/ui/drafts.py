"""The launch form: fields made of a profile, and what their values would start.

The list of profiles and the fields are there with the key that opens them; what plans, starts, mends or saves a launch
is imported by the first of these.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.launching.choice import LaunchChoice, combinations, open_axes
from ..core.machine import DEVICES, Machine, this_machine
from ..core.model.errors import UsageError
from ..core.profiles.library import ProfileEntry, list_profiles, load_profile
from ..core.profiles.model import RECIPES, ArgumentValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.diagnosis.model import Remedy
    from ..core.launching.actions import Actions
    from ..core.launching.command import EnvLine
    from ..core.launching.planning import LaunchPlan
    from ..core.model.home import Home
    from ..core.model.snapshot import RunSnapshot
    from ..wire.records import Request

ARGUMENT = "arg:"
"""Before the key of a field that is one of the program's own arguments."""
SWEEP = "sweep:"
"""Before the key of a field that holds several values of one, one run for each."""


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the launch form. ``choices`` make it a choice, else it is text."""

    key: str
    label: str
    value: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """Exactly what would be started."""

    command: str
    environment: tuple[EnvLine, ...] = ()
    warnings: tuple[str, ...] = ()
    cwd: str = ""
    runs: tuple[str, ...] = ()
    """Names of all runs where there are several; ``command`` is that of the first."""


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
        return Draft(self, LaunchChoice(load_profile(name, self.home, self._cwd)))

    def draft_of(self, snapshot: RunSnapshot, remedy: Remedy | None = None) -> Draft:
        """A form filled in with what a run was started with, changed by a remedy where one is given.

        Raises:
            OperationError: the run's record cannot be read.
        """
        from ..core.launching.editing import environment_of, recorded_choice, remedied
        from ..wire.rundir import RunDir

        run = RunDir(snapshot.dir)
        choice, environ = recorded_choice(run), environment_of(run, self.environ, self.machine)
        if remedy is None:
            return Draft(self, choice, environ=environ)
        fixed = remedied(choice, remedy, environ)
        return Draft(self, fixed.choice, fixed.sentence, environ)


class Draft:
    """One launch that is being filled in. What differs from the profile becomes the choice.

    A profile with a sweep is several runs as long as its swept fields hold several values; the new attempt of a run is
    always one.
    """

    def __init__(
        self, launcher: Launcher, choice: LaunchChoice, note: str = "", environ: Mapping[str, str] | None = None
    ) -> None:
        """``environ``: of the run that this is a new attempt of; None: the launcher's own."""
        self._launcher = launcher
        self._environ = launcher.environ if environ is None else environ
        self._note = note
        self._choice = choice
        self._sweep = {key: ", ".join(one.text for one in values) for key, values in open_axes(choice).items()}
        given = {**_texts(choice.profile.args), **choice.sets}
        left_out = {*choice.drop_args, *self._sweep}
        self._arguments = {key: text for key, text in given.items() if key not in left_out}

    @property
    def title(self) -> str:
        return self._choice.profile.name

    @property
    def description(self) -> str:
        """What a remedy has changed, else what the profile says of itself."""
        return self._note or self._choice.profile.description

    @property
    def fields(self) -> tuple[Field, ...]:
        """Name, device and recipe, what is swept, then the program's own arguments."""
        choice, profile = self._choice, self._choice.profile
        switches = {key for key, value in profile.args.items() if isinstance(value, bool)}
        arguments = (
            Field(ARGUMENT + key, key, text, ("true", "false") if key in switches else ())
            for key, text in self._arguments.items()
        )
        return (
            Field("name", "name", choice.name or profile.name),
            Field("device", "device", choice.device or profile.device, tuple(DEVICES)),
            Field("recipe", "recipe", choice.recipe or profile.recipe, tuple(RECIPES)),
            *(Field(SWEEP + key, f"sweep {key}", text) for key, text in self._sweep.items()),
            *arguments,
        )

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
        )

    def launch(self, values: Mapping[str, str]) -> str:
        """Start all its runs, detached, and return the first one's id; a mistake in the last one starts none."""
        from ..core.launching.planning import launch

        launcher = self._launcher
        plans = [self._plan(values, choice, check=True) for choice in self._combinations(values)]
        runs = [launch(made, launcher.home, launcher.environ, launcher.clock()) for made in plans]
        return runs[0]

    def restart(self, snapshot: RunSnapshot, values: Mapping[str, str]) -> Request:
        """Ask for a new attempt with these values."""
        choice = self._chosen(values)
        self._plan(values, choice, check=True)
        return self._launcher.actions.restart(snapshot, choice=choice)

    def save(self, values: Mapping[str, str], name: str) -> Path:
        """Keep the values as a profile of one's own; one that is there already is left alone."""
        from ..core.launching.editing import save_profile

        return save_profile(self._chosen(values), name, self._launcher.home)

    def _chosen(self, values: Mapping[str, str]) -> LaunchChoice:
        given = {key[len(ARGUMENT) :]: text for key, text in values.items() if key.startswith(ARGUMENT)}
        # A swept argument stays said although it equals the profile's: a run without it would be a sweep again.
        swept = self._choice.profile.sweep
        before = {key: text for key, text in _texts(self._choice.profile.args).items() if key not in swept}
        return replace(
            self._choice,
            name=values["name"].strip() or None,
            device=values["device"],
            recipe=values["recipe"],
            sets={key: text for key, text in given.items() if before.get(key) != text},
            sweep={
                key: _split(values[SWEEP + key], key)
                for key, text in self._sweep.items()
                if values[SWEEP + key] != text
            },
        )

    def _combinations(self, values: Mapping[str, str]) -> tuple[LaunchChoice, ...]:
        chosen = self._chosen(values)
        try:
            return combinations(chosen) if self._sweep else (chosen,)
        except UsageError as error:
            raise _at_field(error, values) from error

    def _plan(self, values: Mapping[str, str], choice: LaunchChoice, *, check: bool) -> LaunchPlan:
        from ..core.launching.planning import plan

        launcher = self._launcher
        try:
            return plan(choice, environ=self._environ, machine=launcher.machine, check=check)
        except UsageError as error:
            raise _at_field(error, values) from error


def _texts(arguments: Mapping[str, ArgumentValue]) -> dict[str, str]:
    return {key: _text(value) for key, value in arguments.items()}


def _text(value: ArgumentValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(_text(part) for part in value) if isinstance(value, tuple) else str(value)


def _split(text: str, key: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise UsageError(f"{key} needs at least one value", "such as 1, 2, 3", field=SWEEP + key)
    return found


def _at_field(error: UsageError, values: Mapping[str, str]) -> UsageError:
    """The error with the form's field in place of the profile's key, None where the form has no such field."""
    wrong = error.field or ""
    argument = wrong.removeprefix("args.")
    fields = (ARGUMENT + argument, SWEEP + argument) if argument != wrong else (wrong,)
    field = next((key for key in fields if key in values), None)
    return UsageError(error.sentence, error.hint, field=field, near=error.near)
