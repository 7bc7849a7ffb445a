"""Applying a remedy to one launch: what changes from what to what, and what is unknown or already in place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..model.checks import as_text
from .model import ArgumentChange, Remedy, whole_number

NOT_GIVEN, UNSET = "not given", "unset"
_OF_MPS = ("PYTORCH_MPS_", "PYTORCH_ENABLE_MPS_", "MTL_", "METAL_")
"""Prefixes of variables that have no effect unless an MPS device is used."""
_AS_UNSET = {"PYTORCH_MPS_HIGH_WATERMARK_RATIO": 1.7, "PYTORCH_MPS_LOW_WATERMARK_RATIO": 1.4}
"""Torch's defaults if these are not set: unsetting a variable with such a value changes nothing."""
_FULL_PRECISION = ("fp32", "float32", "32", "32-true", "no", "none", "full", "off")
_DIVISORS = (2, 3, 5, 7)


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a remedy changes; ``before`` and ``after`` as they are shown."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name} {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLaunch:
    """What is known about the attempt that failed.

    ``arguments`` are those it was given. ``roles`` maps a role to the program's name for that argument, ``usual`` a
    role to its value if the argument was not given and the value is known (from the run's heartbeat, or the profile's
    ``[defaults]``), ``choices`` an argument to the words it accepts. ``device`` is where it ran; None: unknown.
    """

    arguments: Mapping[str, object]
    roles: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, object] = field(default_factory=dict)
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    may_be_mps: bool = True

    def value(self, role: str) -> object | None:
        """Return the value of the argument that plays ``role``; None: unknown."""
        return self.arguments.get(self.roles.get(role, ""), self.usual.get(role))


@dataclass(slots=True)
class RemediedLaunch:
    """A launch with a remedy applied.

    ``asks`` are arguments whose value is unknown and must be given by the user. ``notes`` say what could not be done,
    ``risks`` what must be accepted first; ``unnamed`` are the roles that no argument is known to play.
    """

    arguments: dict[str, object]
    env: dict[str, str]
    device: str | None = None
    changes: list[Change] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    risks: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)


def apply_remedy(remedy: Remedy, launch: KnownLaunch) -> RemediedLaunch:
    """Return the launch that ``remedy`` asks for; ``launch`` is not modified, and what is already so is no change.

    A smaller batch keeps the effective batch (batch times accumulation) the same; if that is impossible, it is listed
    as a risk. Removing an argument that was never given is not mentioned.
    """
    found = RemediedLaunch(dict(launch.arguments), dict(launch.env), risks=[remedy.risk] if remedy.risk else [])
    smaller = any(change.role == "batch_size" and change.operation == "scale" for change in remedy.args)
    if smaller:
        _make_batch_smaller(launch, found)
    for change in remedy.args:
        if smaller and change.operation == "scale":
            continue
        if change.role not in launch.roles:
            found.unnamed.append(change.role)
        else:
            _change_argument(change, launch, found)
    # Unset both of the pair or neither: torch refuses a cap below its soft limit.
    set_otherwise = any(
        _number(launch.env.get(name, "")) != _AS_UNSET.get(name) for name in remedy.env if name in launch.env
    )
    for variable, value in remedy.env.items():
        if value is not None or set_otherwise:
            _change_variable(variable, value, launch, found)
    if remedy.device and remedy.device != launch.device:
        found.device = remedy.device
        found.changes.append(Change("device", launch.device or "auto", remedy.device))
    elif remedy.device:
        found.notes.append(f"it ran on {launch.device} already")
    return found


def _make_batch_smaller(launch: KnownLaunch, found: RemediedLaunch) -> None:
    """Divide the batch by its smallest divisor in ``_DIVISORS`` (else by 2), and accumulate that many times more."""
    name, accumulate = launch.roles.get("batch_size"), launch.roles.get("gradient_accumulation")
    if name is None:
        found.unnamed.append("batch_size")
        return
    value = launch.value("batch_size")
    batch = whole_number(value)
    steps = whole_number(launch.value("gradient_accumulation")) if accumulate else None
    if batch == 1:
        found.notes.append(f"{name} is 1 already")
        return
    if batch is None and value is not None:
        found.notes.append(f"{name} has no whole number to scale ({value})")
        return
    if batch is None or (accumulate is not None and steps is None):
        found.asks += [name] if batch is None else []
        found.asks += [accumulate] if accumulate and steps is None else []
        return
    divisor = next((one for one in _DIVISORS if batch % one == 0), 2)
    smaller = max(1, batch // divisor)
    _set(name, smaller, batch, found)
    if accumulate is not None and steps is not None:
        _set(accumulate, steps * divisor, steps, found)
    before, after = batch * (steps or 1), smaller * (steps * divisor if steps else 1)
    if before != after and "whole_batch" not in launch.roles:  # otherwise the program accumulates up to its whole batch
        why = "" if accumulate else ": no argument is known that accumulates gradients ([roles] accumulate)"
        found.risks.append(f"The effective batch changes from {before} to {after}{why}.")


def _change_argument(change: ArgumentChange, launch: KnownLaunch, found: RemediedLaunch) -> None:
    name, before = launch.roles[change.role], launch.value(change.role)
    after = _full_precision(name, before, launch.choices.get(name, ())) if change.value == "fp32" else change.value
    if change.before is not None and str(before) != change.before:
        return
    if change.operation == "remove":
        if found.arguments.pop(name, None) is not None:
            found.changes.append(Change(name, as_text(before), NOT_GIVEN))
    elif change.operation == "set" and after is None:
        found.notes.append(f"{name} knows no word for full precision")
    elif change.operation == "set" and as_text(before) == as_text(after):
        found.notes.append(f"{name} is {as_text(before)} already")
    elif change.operation == "set":
        _set(name, after, before, found)
    elif (number := whole_number(before)) is None:
        found.asks.append(name)
    else:
        scaled = max(1, int(number * float(str(change.value))))
        if scaled == number:
            found.notes.append(f"{name} is {number} already")
        else:
            _set(name, scaled, number, found)


def _full_precision(name: str, before: object, choices: Sequence[str]) -> str | None:
    """Return the program's word for full precision: one of ``choices``, else in the style of the word it was given."""
    if choices:
        return next((word for word in _FULL_PRECISION if word in choices), None)
    text = str(before).lower()
    if text in _FULL_PRECISION:
        return text
    if name.replace("-", "_").endswith("mixed_precision"):
        return "no"
    if text.startswith(("float", "bfloat")):
        return "float32"
    return "32" if text == "16" or text.endswith(("-mixed", "-true")) else "fp32"


def _set(name: str, after: object, before: object, found: RemediedLaunch) -> None:
    found.arguments[name] = str(after) if isinstance(found.arguments.get(name), str) else after
    found.changes.append(Change(name, NOT_GIVEN if before is None else as_text(before), as_text(after)))


def _change_variable(variable: str, value: str | None, launch: KnownLaunch, found: RemediedLaunch) -> None:
    before = launch.env.get(variable)
    if variable.startswith(_OF_MPS) and not launch.may_be_mps:
        found.notes.append(f"{variable} means nothing on {launch.device or 'this machine'}")
    elif value is not None and before == value:
        found.notes.append(f"{variable} was {value} already")
    elif value is not None:
        found.env[variable] = value
        found.changes.append(Change(variable, UNSET if before is None else before, value))
    elif before is not None:
        del found.env[variable]
        found.changes.append(Change(variable, before, UNSET))


def _number(text: str) -> float:
    """Return a variable's value as a number; NaN, which equals nothing, if it is not one."""
    try:
        return float(text)
    except ValueError:
        return math.nan
