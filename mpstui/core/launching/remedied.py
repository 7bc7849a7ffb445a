"""A run's launch with a remedy applied: what would be restarted, and in words what is different about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..diagnosis.model import Finding
from ..diagnosis.remedy import Remedy, apply_remedy
from ..profiles.recipes import RECIPES
from .choice import LaunchChoice, launch_arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedied:
    """``applied`` and ``skipped`` are phrases, ``unnamed`` the roles that the profile gives no argument for; ``risk``
    is what a person must accept before it is started."""

    choice: LaunchChoice
    applied: tuple[str, ...]
    skipped: tuple[str, ...]
    unnamed: tuple[str, ...]
    risk: str | None

    @property
    def sentence(self) -> str:
        """What the remedy changed and what it could not, in plain sentences on one line."""
        changed = ", ".join(self.applied)
        told = [f"Changed by the remedy: {changed}." if changed else "The remedy changes nothing here."]
        if self.skipped:
            told.append(f"It cannot do more: {', '.join(self.skipped)}.")
        if self.unnamed:
            roles = _listed([role.replace("_", " ") for role in self.unnamed])
            told.append(f"This profile does not say which argument sets {roles}; [roles] can.")
        return " ".join(told)


def finding_to_apply(findings: Iterable[Finding]) -> Finding | None:
    """The most probable finding whose remedy a launcher can apply."""
    return next((item for item in findings if item.can_be_cured), None)


def remedied(choice: LaunchChoice, remedy: Remedy, environ: Mapping[str, str]) -> Remedied:
    """The launch that ``remedy`` asks for; ``choice`` is how the run was started, ``environ`` the caller's environment.

    A variable that the remedy removes is kept from the program whoever sets it: recipe, profile or shell.

    Raises:
        UsageError: the choice itself cannot be read (an argument of the wrong type).
    """
    before, _ = launch_arguments(choice)
    changed = apply_remedy(remedy, before, choice.profile.roles, _environment(choice, environ))
    sets = {key: _text(value) for key, value in changed.arguments.items() if before.get(key) != value}
    gone = set(before) - set(changed.arguments)
    set_here = {name: value for name, value in remedy.env.items() if value is not None}
    unset = {name for name, value in remedy.env.items() if value is None}
    edited = replace(
        choice,
        device=changed.device or choice.device,
        sets={key: value for key, value in {**choice.sets, **sets}.items() if key not in gone},
        env={name: value for name, value in {**choice.env, **set_here}.items() if name not in unset},
        drop_args=tuple(sorted({*choice.drop_args, *gone} - set(sets))),
        drop_env=tuple(sorted({*choice.drop_env, *unset} - set(set_here))),
    )
    return Remedied(
        choice=edited, applied=changed.applied, skipped=changed.skipped, unnamed=changed.unnamed, risk=remedy.risk
    )


def _environment(choice: LaunchChoice, environ: Mapping[str, str]) -> dict[str, str]:
    """Everything the program would see, so that removing a variable is noticed wherever it comes from."""
    recipe = {one.name: one.value for one in RECIPES[choice.recipe or choice.profile.recipe].variables}
    layers = {**environ, **recipe, **choice.profile.env, **choice.env}
    return {name: value for name, value in layers.items() if name not in choice.drop_env}


def _listed(words: Sequence[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _text(value: object) -> str:
    """A value as ``--set`` writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, tuple) else str(value)
