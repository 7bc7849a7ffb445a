"""Turn a launch of one machine into one of another: its folder, its interpreter, and the paths that it names."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ...wire import storage
from ...wire.records import ChoiceRecord, QueueRule
from ..engines.engine import LOCAL, engine_of
from ..launching.choice import LaunchChoice, choice_json
from ..launching.editing import frozen_text, profile_toml, thaw
from ..model.errors import UsageError
from ..profiles.model import ArgumentValue, Profile

_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")


class Places(NamedTuple):
    """Where folders of one machine lie on another: pairs of paths, of which longer ones are looked for first."""

    pairs: Sequence[tuple[str, str]]

    def moved(self, text: str) -> str:
        """The text with every path below a known folder replaced by its path there."""
        if not self.pairs:
            return text
        known = {old.rstrip("/"): new.rstrip("/") for old, new in self.pairs}
        either = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        # A path begins a word, or follows an equals sign, a colon, a comma or a quote within one.
        return re.sub(rf"(?<![^=:,\s\"'])(?:{either})(?=/|$|[:,\s\"'])", lambda found: known[found[0]], text)

    def moved_value(self, value: ArgumentValue) -> ArgumentValue:
        """The same for an argument."""
        if isinstance(value, tuple):
            return tuple(self.moved(one) if isinstance(one, str) else one for one in value)
        return self.moved(value) if isinstance(value, str) else value


def choice_message(choice: LaunchChoice) -> dict[str, Any]:
    """A launch without its secrets, for :func:`relocated` on another machine."""
    return {
        "profile": profile_toml(choice.profile) if choice.command else frozen_text(choice.profile),
        "slug": choice.profile.slug,
        "name": choice.profile.name,
        "choice": choice_json(choice),
    }


def relocated(told: Mapping[str, Any], cwd: Path, places: Places) -> LaunchChoice:
    """The launch as this machine would make it.

    Conditions on other runs are dropped: those runs are not here.

    Raises:
        UsageError: what was received is not a launch.
    """
    profile = thaw(str(told["profile"]), path=None, cwd=cwd)
    try:
        chosen = storage.from_json(ChoiceRecord, told["choice"])
    except storage.UnreadableRecord as error:
        raise UsageError(f"the launch cannot be read: {error}", "both sides need the same mpstui") from error
    moved = replace(
        profile,
        name=str(told["name"]),
        slug=str(told["slug"]),
        command=tuple(_word(word, number, places) for number, word in enumerate(profile.command)),
        python=None,  # it is the other machine's; {python} is the one that the settings name for this one
        args={key: places.moved_value(value) for key, value in profile.args.items()},
        env={key: places.moved(value) for key, value in profile.env.items()},
        watch={key: places.moved(value) for key, value in profile.watch.items()},
        checkpoints=places.moved(profile.checkpoints) if profile.checkpoints else None,
        text="",  # it says where things lie on the other machine
    )
    return LaunchChoice(
        profile=moved,
        device=chosen.device,
        sets={key: places.moved(value) for key, value in chosen.sets.items()},
        recipe=chosen.recipe,
        name=chosen.name,
        env={key: places.moved(value) for key, value in chosen.env.items()},
        drop_args=tuple(chosen.drop_args),
        drop_env=tuple(chosen.drop_env),
        queue=QueueRule(chosen.queue.group),
        agent=chosen.agent,
        **_started_by(moved, chosen),
    )


def _started_by(profile: Profile, chosen: ChoiceRecord) -> dict[str, Any]:
    """The scheduler of a launch if this machine has it; otherwise the launch starts without one."""
    found = engine_of(profile.jobs, chosen.on, chosen.job)
    if found is None or shutil.which(found[0].program) is None:
        return {"on": LOCAL}
    return {"on": found[0].name, "job": chosen.job}


def _word(word: str, number: int, places: Places) -> str:
    moved = places.moved(word)
    if number == 0 and moved == word and _PYTHON.fullmatch(PurePosixPath(word).name):
        return "{python}"
    return moved


def needs_code(profile: Profile) -> bool:
    """True if its program lies in its folder; our own trainers are on every machine."""
    return not any("{trainer}" in word for word in profile.command)
