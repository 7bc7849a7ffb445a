"""What runs differ in: the settings each was started with, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..model.snapshot import RunSnapshot


class Difference(NamedTuple):
    """One setting and its value in each run; None: that run was started without it."""

    name: str
    values: tuple[str | None, ...]


def differences(snapshots: Sequence[RunSnapshot]) -> list[Difference]:
    """The settings that are not the same in all runs, in the order in which the runs name them."""
    found = [settings_of(snapshot) for snapshot in snapshots]
    names = dict.fromkeys(name for settings in found for name in settings)
    rows = (Difference(name, tuple(settings.get(name) for settings in found)) for name in names)
    return [row for row in rows if len(set(row.values)) > 1]


def settings_of(snapshot: RunSnapshot) -> dict[str, str]:
    """What a run was started with: profile, recipe, device, arguments, and the environment that was added.

    Not the variables of the run itself, which are different by nature.
    """
    plain = {"profile": snapshot.profile, "recipe": snapshot.recipe, "device": snapshot.numbers.device.type}
    known = {name: value for name, value in plain.items() if value}
    added = {name: value for name, value in snapshot.env.items() if not name.startswith("MPSTUI_")}
    return known | _arguments(snapshot.argv) | added


def asked_totals(argv: Sequence[str]) -> dict[str, float]:
    """``epochs`` and ``steps`` among the arguments: ``--epochs 20``, ``max_steps=400``, ``trainer.max_epochs=3``."""
    told = {name.rpartition(".")[2].replace("-", "_").lower(): value for name, value in _arguments(argv).items()}
    if not any(word in name for name in told for word in ("epoch", "step", "iter")):
        return {}
    from ..formats.points import as_number
    from ..formats.records import ALIASES, DONE_OR_PLANNED, EPOCHS, STEPS

    fields = {EPOCHS: EPOCHS, STEPS: STEPS, DONE_OR_PLANNED: STEPS}
    found = [(fields.get(ALIASES.get(name, "")), as_number(value)) for name, value in told.items()]
    return {field: value for field, value in found if field is not None and value is not None and value > 0}


def _arguments(argv: Sequence[str]) -> dict[str, str]:
    """Read ``--key value``, ``--key=value``, ``--flag`` and ``key=value``; other words by their place among such."""
    found: dict[str, str] = {}
    words = list(argv)
    place = 0
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-+").partition("=")
        if equals and name.replace("_", "").replace(".", "").replace("-", "").isalnum():
            found[name] = value
        elif word.startswith("--") and name:
            found[name] = words.pop(0) if words and not words[0].startswith("--") else "yes"
        else:
            found[f"word {place}"] = word
            place += 1
    return found
