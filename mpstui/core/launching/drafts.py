"""The launch form: fields made from a profile, and what their values would start.

The list of profiles and the fields must appear as soon as their key is pressed, so the code that plans, starts, fixes
or saves a launch is imported only when it is first needed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ...wire.records import QueueRule
from ...wire.secrets import HIDDEN, masked_words
from ..machine import Machine, this_machine
from ..model.errors import OperationError, UsageError
from ..profiles.first_run import require_own_profile
from ..profiles.library import ProfileEntry, list_profiles, load_profile
from ..profiles.model import RECIPES
from ..profiles.written import folded, written_options
from ..stakes import goes_on_from
from .choice import (
    LaunchChoice,
    combinations,
    commented_arguments,
    known_key,
    open_axes,
    parse_condition,
    parse_sets,
)
from .form_fields import (
    AFTER,
    ARGUMENT,
    COMMAND,
    MORE,
    MORE_SWEPT,
    QUEUE,
    SWEEP,
    VARIABLES,
    Field,
    Preview,
    at_field,
    command_line,
    completed_path,
    device_field,
    named,
    read,
    resuming,
    split,
    variables_of,
)
from .scheduling import require_scheduler, scheduled, scheduler_fields, schedulers_here

if TYPE_CHECKING:
    from ...wire.records import Request
    from ..diagnosis.remedy import Change
    from ..model.home import Home
    from ..model.snapshot import RunSnapshot
    from .actions import Actions
    from .arguments import Argument
    from .cure import Cure
    from .planning import LaunchPlan


class Launcher:
    """Makes forms from the profiles of a home."""

    asks = ""  # the machine that has to be asked for a form; empty: this one

    def __init__(
        self, home: Home, environ: Mapping[str, str], cwd: Path, actions: Actions, clock: Callable[[], float]
    ) -> None:
        self.home, self.environ = home, environ
        self.actions, self.clock = actions, clock
        self.machine: Machine = this_machine()
        self._cwd = cwd
        self.schedulers = schedulers_here()
        """Schedulers that a form offers in addition to those that its profile names."""

    def entries(self, *, waits: bool = True) -> Sequence[ProfileEntry]:
        """Return every profile that can be found from here; without ``waits``, asks no other machine for any."""
        return list_profiles(self.home, self._cwd)

    def draft(self, name: str) -> Draft:
        """Return a form for a profile.

        Raises:
            UsageError: there is no such profile, or it has mistakes.
        """
        profile = load_profile(name, self.home, self._cwd)
        require_own_profile(profile, self.home, self._cwd)
        return Draft(self, LaunchChoice(profile))

    def draft_of(self, snapshot: RunSnapshot, cure: Cure | None = None) -> Draft:
        """Return a form filled in with what a run was started with, changed by a cure if one is given.

        Raises:
            OperationError: the run's record cannot be read.
        """
        from ...wire.rundir import RunDir
        from .editing import environment_of, recorded_choice

        before = recorded_choice(run := RunDir(snapshot.dir))
        choice = cure.choice if cure is not None else before
        environ = environment_of(run, self.environ, self.machine)
        return Draft(self, choice, cure, environ, before=before, goes_on_from=goes_on_from(snapshot))

    def branch_of(self, snapshot: RunSnapshot, step: float) -> Draft:
        """Return a form for a new run that branches off another one at a step.

        Raises:
            OperationError: it cannot branch there, and why.
        """
        from .branching import branch_at, branch_choice

        return Draft(self, branch_choice(snapshot, branch_at(snapshot, step)))


class Draft:
    """One launch that is being filled in. The differences from the profile become the choice.

    A profile with a sweep starts several runs as long as its swept fields hold several values; a new attempt of a run
    is always a single one.
    """

    def __init__(
        self,
        launcher: Launcher,
        choice: LaunchChoice,
        cure: Cure | None = None,
        environ: Mapping[str, str] | None = None,
        known: Sequence[Argument] = (),
        before: LaunchChoice | None = None,
        goes_on_from: str | None = None,
    ) -> None:
        """Make a form for one choice.

        Args:
            cure: the remedy that the choice already contains.
            environ: that of the run whose new attempt this is; None: one or several new runs, in the launcher's.
            known: arguments that the program is known to take; see :meth:`asking_the_program`.
            before: the launch that this one changes.
            goes_on_from: the checkpoint that a new attempt resumes from if its program can.
        """
        self._launcher = launcher
        self._environ = launcher.environ if environ is None else environ
        self._cure = cure
        self._asks = cure.asks if cure else ()
        """Arguments that a remedy changes but whose values are unknown: they have to be filled in."""
        self._note = cure.sentence if cure else ""
        self._choice = choice
        self._before = before
        self._goes_on_from = goes_on_from
        self._words = masked_words(choice.written_command)
        self._starts = environ is None
        self._sweep = {key: ", ".join(one.text for one in values) for key, values in open_axes(choice).items()}
        given = {**named(choice.profile), **choice.sets}
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
        """What a remedy changed, else the profile's own description."""
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
        waits = shlex.join(f"{one['run']}:{one['when']}" for one in choice.queue.after)
        given = [f"{name}={value}" for name, value in choice.env.items()]
        variables = shlex.join([*given, *(f"-{name}" for name in choice.drop_env)])
        command = () if self._starts else (Field(COMMAND, "command", command_line(self._words)),)
        when = (
            Field(MORE_SWEPT, "sweep", "", hint="lr=0.1,0.01 seed=1,2,3"),
            Field(AFTER, "start after", waits, hint="RUN, RUN:any or RUN:fail"),
            Field(QUEUE, "queue", choice.queue.group or "", hint="auto, or a name"),
        )
        return (
            Field("name", "name", choice.name or profile.name),
            *(scheduler_fields(choice, self._launcher.schedulers) if self._starts else ()),
            device_field(choice, lambda: self._plan({}, choice, check=False)),
            Field("recipe", "recipe", choice.recipe or profile.recipe, tuple(RECIPES)),
            *command,
            *(Field(SWEEP + key, f"sweep {key}", text) for key, text in self._sweep.items()),
            *arguments,
            *(Field(ARGUMENT + key, key, "", hint=hint) for key, hint in self._offered.items()),
            Field(MORE, "more arguments", "", hint="KEY=VALUE ..."),
            Field(VARIABLES, "variables", variables, hint="NAME=VALUE ... or -NAME"),
            *(when if self._starts else ()),
        )

    def asking_the_program(self, values: Mapping[str, str]) -> Draft:
        """Return the same form with a field for each argument that the program reports; asking may take a minute.

        Raises:
            UsageError: a value is wrong.
            OperationError: the program does not report its arguments.
        """
        from .arguments import known_arguments

        choice, launcher = self._chosen(values), self._launcher
        planned = self._plan(values, choice, check=False)
        environ = {**self._environ, **{line.name: line.value for line in planned.env}}
        cwd, cache, why = Path(planned.template.cwd), launcher.home.arguments, list[str]()
        known = known_arguments(planned.argv, cwd=cwd, environ=environ, cache=cache, complain=why.append)
        if not known:
            hint = "write them as KEY=VALUE under `more arguments`"
            raise OperationError(": ".join(["this program does not say which arguments it takes", *why]), hint)
        of_run = None if self._starts else self._environ
        return Draft(launcher, choice, self._cure, of_run, known, self._before, self._goes_on_from)

    def preview(self, values: Mapping[str, str]) -> Preview:
        """Return what these values would start; whether the device exists is only checked at the start."""
        from .telling import preview_of, told

        choices = self.choices(values)
        runs, plans = self._launcher.home.runs, (self._plan(values, choice, check=False) for choice in choices)
        found = preview_of([told(one, runs if self._starts else None) for one in plans])
        return replace(
            found,
            warnings=(*([self._note] if self._note else []), *found.warnings),
            command=found.command + resuming(choices[0].profile, self._goes_on_from),
            changes=None if self._before is None else tuple(map(str, self._changes(choices[0]))),
            profile=self._choice.profile.slug if self._choice.profile.path else None,
        )

    def examine(self, values: Mapping[str, str]) -> Preview:
        """:meth:`preview`, for a form about which another machine has to be asked."""
        return self.preview(values)

    def close(self) -> None:
        """The form is no longer being filled in."""

    def launch(self, values: Mapping[str, str], *, call: str = "") -> str:
        """Start all its runs, detached, and return the first one's id; if any has a mistake, none is started.

        Args:
            call: an id of this request, so that it starts each run only once, however often it arrives.
        """
        from .launch import launch_all

        launcher = self._launcher
        plans = [self._plan(values, choice, check=True) for choice in self.choices(values)]
        return launch_all(plans, launcher.home, launcher.environ, launcher.clock, call)[0]

    def restart(
        self, snapshot: RunSnapshot, values: Mapping[str, str], *, rehearse: bool = False, request_id: str = ""
    ) -> Request:
        """Request a new attempt with these values, or a rehearsal: a few steps that leave the run as it is.

        Args:
            request_id: an id for the request, if it was chosen on another machine.
        """
        choice = self._chosen(values)
        self._plan(values, choice, check=True)
        rehearsal = None
        if rehearse:
            from .rehearsal import rehearsal_of

            rehearsal = rehearsal_of(snapshot, self._changes(choice), choice.profile)
        acting = replace(self._launcher.actions, request_id=request_id) if request_id else self._launcher.actions
        return acting.restart(snapshot, choice=choice, rehearsal=rehearsal)

    def _changes(self, choice: LaunchChoice) -> tuple[Change, ...]:
        from .editing import changes_between

        told = self._cure.changes if self._cure else ()
        return changes_between(self._before, choice, told) if self._before is not None else ()

    def save(self, values: Mapping[str, str], name: str, *, again: bool = False) -> Path:
        """Save the values as a profile of the user; an existing one is not overwritten."""
        from .editing import save_profile

        return save_profile(self._chosen(values), name, self._launcher.home, again=again)

    def completed(self, key: str, text: str) -> str | None:
        """Return ``text`` completed to a file or folder that begins like it, if the field holds a path; else None.

        This reads a folder, so do not call it from the thread that draws.
        """
        return completed_path(self._choice.profile.cwd, key, text)

    def _chosen(self, values: Mapping[str, str]) -> LaunchChoice:
        # There is no shell between the form and the program: a `~` would reach it unchanged.
        given = {
            key[len(ARGUMENT) :]: str(Path(text).expanduser()) if text.startswith("~/") else text
            for key, text in values.items()
            if key.startswith(ARGUMENT) and (text or key[len(ARGUMENT) :] not in self._offered)
        }
        more = read(values, MORE, parse_sets)
        swept_too = read(values, MORE_SWEPT, parse_sets)
        home, group = self._launcher.home, values.get(QUEUE, "").strip()
        after = read(values, AFTER, lambda words: [parse_condition(home, word) for word in words])
        for name in self._asks:
            if not given.get(name, "").strip():
                sentence = f"what {name} was is not known, so that the remedy cannot change it"
                raise UsageError(sentence, "give its new value", field=ARGUMENT + name)
        base, changed = self._rewritten(values)
        # A swept argument is set even if it equals the profile's: without it, the run would be a sweep again.
        swept = self._choice.profile.sweep
        before = {key: text for key, text in named(self._choice.profile).items() if key not in swept}
        if changed:  # then options in the command are set there, unless their own fields say otherwise
            told = {folded(one.key) for words in (self._words, base.command) for one in written_options(words)}
            before |= {key: text for key, text in self._arguments.items() if folded(key) in told}
        env, drop_env = read(values, VARIABLES, variables_of)
        return replace(
            base,
            name=values["name"].strip() or None,
            device=values["device"],
            recipe=values["recipe"],
            sets={**{self._certain(key): text for key, text in given.items() if before.get(key) != text}, **more},
            env=env,
            drop_env=drop_env,
            sweep={
                **{
                    key: split(values[SWEEP + key], SWEEP + key)
                    for key, text in self._sweep.items()
                    if values[SWEEP + key] != text
                },
                **{key: split(text, MORE_SWEPT) for key, text in swept_too.items()},
            },
            queue=QueueRule(group or None, after) if self._starts else self._choice.queue,
            **scheduled(values, self._choice),
        )

    def _rewritten(self, values: Mapping[str, str]) -> tuple[LaunchChoice, bool]:
        """Return the choice with the form's command, and whether that command was changed."""
        words = read(values, COMMAND, tuple[str, ...]) if COMMAND in values else self._words
        if not words:
            raise UsageError("there is no command", "such as `python train.py --lr 0.1`", field=COMMAND)
        if words == self._words:
            return self._choice, False
        secrets = dict(zip(pairwise(("", *self._words)), self._choice.written_command, strict=True))
        kept = [secrets.get(pair) if HIDDEN in pair[1] else pair[1] for pair in pairwise(("", *words))]
        if None in kept:
            hint = "leave it and the word before it as they are, or write it again"
            raise UsageError(f"{HIDDEN} stands for a secret of the run", hint, field=COMMAND)
        return self._choice.with_command([word for word in kept if word is not None]), True

    def _certain(self, key: str) -> str:
        """Return the key for ``sets``: one that the program itself names is not mistyped, however close to another."""
        try:
            known_key(key, self._choice.profile)
        except UsageError:
            return f"+{key}"
        return key

    def choices(self, values: Mapping[str, str]) -> tuple[LaunchChoice, ...]:
        """Return the runs that these values ask for, as one choice each.

        Raises:
            UsageError: a value is wrong.
        """
        chosen = self._chosen(values)
        try:
            return combinations(chosen) if self._sweep or chosen.sweep else (chosen,)
        except UsageError as error:
            raise at_field(error, values) from error

    def _plan(self, values: Mapping[str, str], choice: LaunchChoice, *, check: bool) -> LaunchPlan:
        from .planning import plan

        launcher = self._launcher
        try:
            require_scheduler(choice)
            return plan(choice, environ=self._environ, machine=launcher.machine, check=check)
        except UsageError as error:
            raise at_field(error, values) from error
