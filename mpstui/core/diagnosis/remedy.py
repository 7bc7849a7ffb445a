"""Remedies as data, and the one pure function that applies them to a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Operation = Literal["set", "scale", "remove"]


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """One change to the argument that plays ``role`` (batch_size, gradient_accumulation, workers, precision, ...).

    ``scale`` multiplies, rounds down and never goes below 1; ``default`` is what an argument that was not given is
    taken to be, ``None`` when that cannot be known.
    """

    role: str
    operation: Operation
    value: object = None
    default: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What helps. ``env`` maps a variable to its value, ``None`` removes it; ``device`` moves the run there.

    ``risk`` is the sentence a person must accept before this is applied; ``None`` when it can do no harm.
    """

    text: str
    env: Mapping[str, str | None] = field(default_factory=dict)
    args: tuple[ArgumentChange, ...] = ()
    device: str | None = None
    risk: str | None = None

    @property
    def can_be_applied(self) -> bool:
        """Whether a launcher can do something with it, or only a person can."""
        return bool(self.env or self.args or self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A launch after a remedy. ``applied`` and ``skipped`` say in words what was changed and what could not be;
    ``unnamed`` are the roles that no argument is known to play."""

    arguments: Mapping[str, object]
    env: Mapping[str, str]
    device: str | None
    applied: tuple[str, ...]
    skipped: tuple[str, ...]
    unnamed: tuple[str, ...]


def apply_remedy(
    remedy: Remedy, arguments: Mapping[str, object], roles: Mapping[str, str], env: Mapping[str, str]
) -> Changed:
    """Return the launch that ``remedy`` asks for; nothing passed in is modified.

    ``roles`` maps a role to the name this program gives that argument (``{"batch_size": "train-batch"}``). A role the
    profile does not map, or a value that is no number where one is scaled, is skipped with the reason. An argument that
    is to go and was not given is no news.
    """
    new_arguments = dict(arguments)
    applied: list[str] = []
    skipped: list[str] = []
    for change in remedy.args:
        name = roles.get(change.role)
        if name is not None and (change.operation != "remove" or name in new_arguments):
            done, sentence = _change(change, name, new_arguments)
            (applied if done else skipped).append(sentence)
    new_env = _changed_env(remedy.env, env, applied)
    if remedy.device:
        applied.append(f"device {remedy.device}")
    return Changed(
        arguments=new_arguments,
        env=new_env,
        device=remedy.device,
        applied=tuple(applied),
        skipped=tuple(skipped),
        unnamed=tuple(change.role for change in remedy.args if change.role not in roles),
    )


def _change(change: ArgumentChange, name: str, arguments: dict[str, object]) -> tuple[bool, str]:
    if change.operation == "set":
        arguments[name] = change.value
        return True, f"{name} = {change.value}"
    if change.operation == "remove":
        del arguments[name]
        return True, f"{name} removed"
    return _scale(change, name, arguments)


def _scale(change: ArgumentChange, name: str, arguments: dict[str, object]) -> tuple[bool, str]:
    before = _whole_number(arguments.get(name, change.default))
    if before is None:
        return False, f"{name} has no whole number to scale"
    after = max(1, int(before * float(str(change.value))))
    if after == before:
        return False, f"{name} is {before} already"
    arguments[name] = str(after) if isinstance(arguments.get(name), str) else after
    return True, f"{name} {before} -> {after}"


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return None


def _changed_env(changes: Mapping[str, str | None], env: Mapping[str, str], applied: list[str]) -> dict[str, str]:
    result = dict(env)
    for name, value in changes.items():
        if value is not None:
            result[name] = value
            applied.append(f"{name}={value}")
        elif result.pop(name, None) is not None:
            applied.append(f"{name} unset")
    return result
