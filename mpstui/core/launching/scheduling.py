"""The fields of a launch form for a scheduler that starts the run, and for its options."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from ..engines.engine import ENGINES, LOCAL, engine_named, engine_of
from ..engines.offers import ask_aside
from ..engines.offers import offered as offered_by
from ..model.errors import UsageError
from .choice import LaunchChoice, job_options
from .form_fields import ENGINE, JOB, MORE_JOB, Field, read

NONE = "none"


def schedulers_here() -> tuple[str, ...]:
    """Return the schedulers whose command is found on this machine; asks them in the background what they offer."""
    found = tuple(name for name in ENGINES if shutil.which(engine_named(name).program))
    for name in found:
        ask_aside(name)
    return found


def require_scheduler(choice: LaunchChoice) -> None:
    """Refuse a launch whose scheduler is not on this machine.

    Raises:
        UsageError: it is not.
    """
    found = engine_of(choice.profile.jobs, choice.on, choice.job)
    if found is not None and shutil.which(found[0].program) is None:
        hint = "launch it on a login node, or without a scheduler"
        raise UsageError(f"there is no {found[0].title}: no program {found[0].program} is found", hint, field=ENGINE)


def scheduler_fields(choice: LaunchChoice, offered: Sequence[str]) -> tuple[Field, ...]:
    """Return fields for which scheduler starts it, and for the usual options of each; none if there is no scheduler.

    Args:
        offered: schedulers in addition to those that the profile names.
    """
    jobs = choice.profile.jobs
    found = engine_of(jobs, choice.on, choice.job)
    chosen = found[0].name if found is not None else NONE
    names = tuple(dict.fromkeys((*jobs, *offered, *([chosen] if found is not None else []))))
    if not names:
        return ()
    fields = [Field(ENGINE, "scheduler", chosen, (NONE, *names))]
    for name in names:
        given = {**jobs.get(name, {}), **(choice.job if name == chosen else {})}
        usual, there = dict(engine_named(name).usual), offered_by(name)
        for option in (*usual, *(key for key, text in given.items() if text and key not in usual)):
            hint = there.get(option) or (f"such as {usual[option]}" if option in usual else "")
            fields.append(Field(f"{JOB}{name}:{option}", option, given.get(option, ""), (), hint, (ENGINE, (name,))))
    return (*fields, Field(MORE_JOB, "more options", "", (), "OPTION=VALUE ...", (ENGINE, names)))


def scheduled(values: Mapping[str, str], choice: LaunchChoice) -> dict[str, Any]:
    """Return ``on`` and ``job`` of the launch that a form describes.

    Raises:
        UsageError: an option of the profile was emptied: a launch can change it, but not leave it out.
    """
    if ENGINE not in values:
        return {"on": choice.on, "job": choice.job}
    chosen, jobs = values[ENGINE], choice.profile.jobs
    if chosen == NONE:
        return {"on": LOCAL if jobs else None, "job": {}}
    told, prefix = jobs.get(chosen, {}), f"{JOB}{chosen}:"
    given = {key.removeprefix(prefix): text.strip() for key, text in values.items() if key.startswith(prefix)}
    for option, text in given.items():
        if not text and told.get(option):
            sentence = f"{option} cannot be left out: the profile says {told[option]}"
            raise UsageError(sentence, "give it another value", field=prefix + option)
    flags = {
        key: text for key, text in choice.job.items() if not text and chosen == (choice.on or next(iter(jobs), ""))
    }
    changed = {key: text for key, text in given.items() if text and told.get(key) != text}
    on = None if chosen == next(iter(jobs), None) else chosen
    return {"on": on, "job": {**flags, **changed, **read(values, MORE_JOB, job_options)}}
