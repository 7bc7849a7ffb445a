"""What is chosen for one launch: a profile and the differences from it; and the launches of a sweep."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from ...wire import storage
from ...wire.records import Branch, ChoiceRecord, QueueRule
from ...wire.secrets import without_secrets
from ..model.checks import Scalar, as_text, environment_name, nearest
from ..model.errors import UsageError
from ..model.home import Home
from ..profiles.model import ArgumentValue, Profile
from ..profiles.sweep import MOST_RUNS, Sweep, SweepValue, arguments_of
from ..profiles.written import folded, replace_option, written_options
from ..runs.find import find_run

ACCELERATOR_QUEUE = "auto"
"""The queue named after the accelerator: mps, cuda or cpu. One run at a time in each; in cuda, one per GPU."""
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_COMMENTED = re.compile(r"^#[ \t]*(-?[A-Za-z][\w-]*)[ \t]*=[ \t]*(?:[\"'\[\d.+-]|(?:true|false)\b)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LaunchChoice:
    """A profile and one launch's differences from it. ``sets`` overrides or adds arguments, as texts."""

    profile: Profile
    device: str | None = None
    sets: Mapping[str, str] = field(default_factory=dict)
    sweep: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Argument -> values, in addition to the profile's own: one run per combination; see :func:`combinations`."""
    recipe: str | None = None
    name: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    drop_args: tuple[str, ...] = ()
    """Arguments of the profile that this launch leaves out."""
    drop_env: tuple[str, ...] = ()
    """Variables that this launch must not have, whether recipe, profile or shell sets them."""
    queue: QueueRule = field(default_factory=QueueRule)
    agent: bool | None = None
    """Whether the agent is loaded into the program; None: as the profile says."""
    branch: Branch | None = None
    """The run and checkpoint that a new run begins from."""
    on: str | None = None
    """``local``, or the scheduler that starts it; None: as the profile says."""
    job: Mapping[str, str] = field(default_factory=dict)
    """Options for the scheduler, in addition to those of the profile."""
    command: tuple[str, ...] = ()
    """A command that replaces the profile's own; :attr:`profile` already has it."""

    def with_command(self, words: Sequence[str]) -> LaunchChoice:
        """Return the same launch with another command; options that are in either command are as the new one says."""
        told = {folded(one.key) for command in (self.written_command, words) for one in written_options(command)}
        return replace(
            self,
            profile=rewritten(self.profile, words),
            command=tuple(words),
            sets={key: text for key, text in self.sets.items() if folded(key) not in told},
            drop_args=tuple(key for key in self.drop_args if folded(key) not in told),
        )

    @property
    def written_command(self) -> tuple[str, ...]:
        """The command as written, including this launch's changes to it, without arguments from a profile's file."""
        from .command import argument_words  # only needed with the first form of a run

        words, others = written_words(self, launch_arguments(self)[0])
        return (*words, *(() if self.profile.path else argument_words(others, self.profile.arg_style)))


def rewritten(profile: Profile, words: Sequence[str]) -> Profile:
    """Return the profile with another command, keeping only those arguments that are not in the command."""
    told = {folded(one.key) for one in written_options(words)}
    args = {key: value for key, value in profile.args.items() if profile.path and folded(key) not in told}
    return replace(profile, command=tuple(words), args=args)


def written_words(
    choice: LaunchChoice, arguments: Mapping[str, ArgumentValue]
) -> tuple[list[str], dict[str, ArgumentValue]]:
    """Return the profile's command with the arguments in it changed, and the remaining arguments."""
    words, others = list(choice.profile.command), dict(arguments)
    for key in choice.drop_args:
        replace_option(words, key, False)
    for key, value in arguments.items():
        if key not in choice.profile.args and not isinstance(value, tuple):
            text = value if isinstance(value, bool) else str(value)
            if replace_option(words, key, text):
                del others[key]
    return words, others


def choice_json(choice: LaunchChoice) -> dict[str, Any]:
    """Return the choice as the JSON of a :class:`ChoiceRecord`."""
    shown, _ = without_secrets(choice.env)
    chosen = {name: getattr(choice, name) for name in ChoiceRecord._fields}
    return storage.to_json(ChoiceRecord(**{**chosen, "env": shown}))


def parse_sets(items: Iterable[str], option: str = "--set") -> dict[str, str]:
    """Read ``KEY=VALUE`` texts; ``option`` is the option they were given with.

    Raises:
        UsageError: one has no ``=`` or no key.
    """
    found: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip() or "\0" in item:
            raise UsageError(f"{option} {item!r} is not KEY=VALUE", f"write it as `{option} epochs=3`", field="args")
        found[key.strip()] = value
    return found


def job_options(items: Iterable[str]) -> dict[str, str]:
    """Read options of a scheduler: ``OPTION=VALUE``, or ``OPTION``."""
    return {key.strip().lstrip("-"): value for key, _, value in (item.partition("=") for item in items)}


def parse_environment(items: Iterable[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` texts.

    Raises:
        UsageError: one has no ``=``, or not the name of a variable.
    """
    found = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or environment_name(name) or "\0" in value:
            raise UsageError(f"--env {item!r} is not NAME=VALUE", "write it as `--env OMP_NUM_THREADS=4`", field="env")
        found[name] = value
    return found


def parse_condition(home: Home, item: str) -> dict[str, str]:
    """Read ``RUN[:ok|any|fail]``: the run to wait for, and how it must have ended.

    Raises:
        UsageError: there is no such run, or the word is none of these.
    """
    name, colon, when = item.rpartition(":")
    if not colon:
        name, when = item, "ok"
    if when not in ("ok", "any", "fail"):
        hint = "such as `--after RUN:any`"
        raise UsageError(f"--after {item!r}: {when!r} is not ok, any or fail", hint, field="queue.after")
    return {"run": find_run(home, name).run, "when": when}


def effective_arguments(profile: Profile, sets: Mapping[str, str]) -> tuple[dict[str, ArgumentValue], list[str]]:
    """Return the profile's arguments with ``sets`` applied, and the keys of those that the profile does not name.

    A key that is nearly one of the profile's is refused; ``+key`` passes it on as written.

    Raises:
        UsageError: a key that looks mistyped, or a value of the wrong type.
    """
    arguments = dict(profile.args)
    swept, written = arguments_of(profile.sweep), _written(profile)
    strangers = []
    for typed, text in sets.items():
        key = known_key(typed, profile)
        if key in profile.args:
            example = profile.args[key]
            if isinstance(example, tuple):
                sample, parts = example[0] if example else "", text.split(",") if text.strip() else []
                arguments[key] = tuple(_scalar(key, part.strip(), sample) for part in parts)
            else:
                arguments[key] = _scalar(key, text, example)
        else:
            # `true` is a bare flag and `false` leaves it out, as in a profile; a flag that takes a value gets the word.
            word = text if profile.arg_style == "equals" or key in written else text.lower()
            arguments[key] = {"true": True, "false": False}.get(word, text)
            if key not in {*swept, *commented_arguments(profile), *profile.roles.values(), *written}:
                strangers.append(key)
    return arguments, strangers


def passed_on(profile: Profile, strangers: Sequence[str], known: Collection[str] = ()) -> list[str]:
    """Return a sentence for each key that the profile does not name, unless the program is ``known`` to take it."""
    whose, taken = "the profile" if profile.path else "the command", {folded(one) for one in known}
    told = (key for key in strangers if folded(key.lstrip("+")) not in taken)
    return [f"{whose} has no argument `{key}`: it is passed on to the program as it is" for key in told]


def launch_arguments(choice: LaunchChoice) -> tuple[dict[str, ArgumentValue], list[str]]:
    """Return :func:`effective_arguments` of a choice, without those it drops.

    Raises:
        UsageError: a key that looks mistyped, or a value of the wrong type.
    """
    arguments, strangers = effective_arguments(choice.profile, choice.sets)
    return {key: value for key, value in arguments.items() if key not in choice.drop_args}, strangers


def given_arguments(choice: LaunchChoice) -> dict[str, ArgumentValue]:
    """Return every argument that has a value in a launch of this choice, including those in its command."""
    found: dict[str, ArgumentValue] = {
        one.key: one.value for one in written_options(choice.profile.command) if one.value is not None
    }
    with contextlib.suppress(UsageError):  # a launch that was started raises none
        found |= launch_arguments(choice)[0]
    return found


def split_device(choice: LaunchChoice) -> LaunchChoice:
    """Treat ``--set device=cpu`` as ``--device cpu`` if the profile sets the device through arguments of its own."""
    wanted = choice.sets.get("device")
    if wanted is None or "device" in choice.profile.args or not choice.profile.device_args:
        return choice
    rest = {key: value for key, value in choice.sets.items() if key != "device"}
    return replace(choice, device=wanted, sets=rest)


def _written(profile: Profile) -> tuple[str, ...]:
    return tuple(option.key for option in written_options(profile.command))


def known_key(written: str, profile: Profile) -> str:
    """Return the argument in the profile's spelling, else as written.

    Raises:
        UsageError: it looks like one of the profile's, mistyped.
    """
    offered = (*profile.args, *commented_arguments(profile), *_written(profile))
    named = {*offered, *arguments_of(profile.sweep)}
    alike = {folded(key): key for key in named}
    if written in named or (written[:1] != "+" and folded(written) in alike):
        return written if written in named else alike[folded(written)]
    if written in profile.roles.values():
        return written
    if written.startswith("+") and profile.arg_style == "options":
        return written.lstrip("+")
    likely = None if written.startswith("+") else nearest(written, offered, cutoff=0.75)
    if likely:
        whose = f"profile {profile.slug}" if profile.path else "this command"
        raise UsageError(
            f"{whose} has no argument {written!r}; did you mean {likely!r}?",
            f"write `--set +{written}=...` to pass it on as it is",
            field=f"args.{written}",
            near=likely,
        )
    return written


def commented_arguments(profile: Profile) -> tuple[str, ...]:
    """Return arguments that are commented out under ``[args]`` in the profile's file: known, but without a value."""
    _, _, section = f"\n{profile.text}".partition("\n[args]")
    spelt = {key.replace("-", "_") for key in profile.args}
    found = _COMMENTED.findall(re.split(r"\n(?:# ?)?\[", section, maxsplit=1)[0])
    return tuple(key for key in found if key.replace("-", "_") not in spelt)


def _scalar(key: str, text: str, example: Scalar) -> Scalar:
    """Return the text as the type that the profile uses for this argument."""
    word = text.strip().lower()
    if isinstance(example, bool):
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise UsageError(f"{key!r} is true or false, {_not(text)}", field=f"args.{key}")
    if isinstance(example, (int, float)):
        try:
            float(text)
        except ValueError:
            sentence = f"{key!r} is a number ({example} so far), {_not(text)}"
            raise UsageError(sentence, field=f"args.{key}") from None
        return text.strip()
    return text


def _not(text: str) -> str:
    return f"not {text!r}" if text.strip() else "and may not be empty"


def combinations(choice: LaunchChoice) -> tuple[LaunchChoice, ...]:
    """Return one choice for each run, in the order of the table, the last argument changing fastest.

    ``choice.sweep`` adds an argument or replaces the profile's values of one; what the profile couples to a value still
    comes with it. ``choice.sets`` overrides both with one value. Runs of a sweep wait for each other in the queue of
    their accelerator, unless the choice names another; their names say how they differ.

    Raises:
        UsageError: more runs than a sweep may have, or a mistyped argument.
    """
    axes = axes_of(choice)
    count = prod(len(values) for values in axes.values())
    if count > MOST_RUNS:
        raise UsageError(f"the sweep asks for {count:,} runs; {MOST_RUNS} is the most", field="sweep")
    settled = _settled(choice)
    queue = QueueRule(choice.queue.group or ACCELERATOR_QUEUE, choice.queue.after) if count > 1 else choice.queue
    runs = []
    for values in itertools.product(*axes.values()):
        point = dict(zip(axes, values, strict=True))
        along = {key: as_text(item) for one in values for key, item in one.along.items()}
        sets = {**along, **{key: one.text for key, one in point.items()}, **choice.sets}
        varied = [f"{key}={one.text}" for key, one in point.items() if key not in settled]
        name = " ".join([choice.name or choice.profile.name, *varied]) if varied else choice.name
        runs.append(replace(choice, sets=sets, sweep={}, name=name, queue=queue))
    return tuple(runs)


def open_axes(choice: LaunchChoice) -> Sweep:
    """Return the swept arguments and their values, without those that this launch sets to one value."""
    settled = _settled(choice)
    return {key: values for key, values in axes_of(choice).items() if key not in settled}


def axes_of(choice: LaunchChoice) -> Sweep:
    """Return the swept arguments and their values; a single value if this launch sets it."""
    profile = choice.profile
    chosen = {known_key(written, profile): texts for written, texts in choice.sweep.items()}
    settled = {key: (text,) for key, text in _settled(choice).items() if key in chosen or key in profile.sweep}
    axes = dict(profile.sweep)
    for key, texts in {**chosen, **settled}.items():
        # A value that is in the profile brings along what the profile couples to it.
        known = {one.text: one for one in profile.sweep.get(key, ())}
        axes[key] = tuple(known.get(text) or SweepValue(text) for text in texts)
    return axes


def _settled(choice: LaunchChoice) -> Mapping[str, str]:
    return {known_key(written, choice.profile): text for written, text in choice.sets.items()}
