"""Several launches out of one choice: the profile's ``[sweep]``, and what this launch says about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from ...wire.records import QueueRule
from ..model.errors import UsageError
from ..profiles.model import Profile
from ..profiles.sweep import MOST_RUNS, Sweep, SweepValue, as_text
from .choice import ACCELERATOR_QUEUE, LaunchChoice, known_key


def combinations(choice: LaunchChoice) -> tuple[LaunchChoice, ...]:
    """One choice for each run, in the order of the table, the last argument changing fastest.

    ``choice.sweep`` replaces the profile's values of an argument or adds one; what goes with a value in the profile
    still does. ``choice.sets`` beats both, and leaves an argument one value. Runs of a sweep wait for each other in the
    queue of their accelerator, unless the choice names another; what they are called says what differs.

    Raises:
        UsageError: more runs than anybody means, or a mistyped argument.
    """
    axes = axes_of(choice)
    count = prod(len(values) for values in axes.values())
    if count > MOST_RUNS:
        raise UsageError(f"the sweep asks for {count:,} runs; {MOST_RUNS} is the most", field="sweep")
    left_open = open_axes(choice)
    queue = QueueRule(choice.queue.group or ACCELERATOR_QUEUE, choice.queue.after) if count > 1 else choice.queue
    return tuple(
        replace(
            choice,
            sets={**_arguments(point), **choice.sets},
            sweep={},
            name=_name(choice, {key: one.text for key, one in point.items() if key in left_open}),
            queue=queue,
        )
        for point in _points(axes)
    )


def open_axes(choice: LaunchChoice) -> Sweep:
    """The arguments that are swept and their values, without those that this launch settles."""
    settled = _settled(choice)
    return {key: values for key, values in axes_of(choice).items() if key not in settled}


def axes_of(choice: LaunchChoice) -> Sweep:
    """The arguments that are swept and their values; one value where this launch settles it."""
    profile = choice.profile
    axes = dict(profile.sweep)
    for written, texts in choice.sweep.items():
        key = known_key(written, profile)
        axes[key] = tuple(_value(profile, key, text) for text in texts)
    for key, text in _settled(choice).items():
        if key in axes:
            axes[key] = (_value(profile, key, text),)
    return axes


def _settled(choice: LaunchChoice) -> Mapping[str, str]:
    return {known_key(written, choice.profile): text for written, text in choice.sets.items()}


def _value(profile: Profile, key: str, text: str) -> SweepValue:
    """The profile's own value of that text, with what goes with it; else the bare text."""
    known = {one.text: one for one in profile.sweep.get(key, ())}
    return known.get(text) or SweepValue(text)


def _points(axes: Sweep) -> Iterator[dict[str, SweepValue]]:
    for point in itertools.product(*axes.values()):
        yield dict(zip(axes, point, strict=True))


def _arguments(point: Mapping[str, SweepValue]) -> dict[str, str]:
    along = {key: as_text(item) for one in point.values() for key, item in one.along.items()}
    return {**along, **{key: one.text for key, one in point.items()}}


def _name(choice: LaunchChoice, varied: Mapping[str, str]) -> str | None:
    if not varied:
        return choice.name
    return f"{choice.name or choice.profile.name} {' '.join(f'{key}={text}' for key, text in varied.items())}"
