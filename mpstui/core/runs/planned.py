"""The planned epochs and steps of a training, from its arguments and from a file named there (``-c config.json``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.planned_epochs import LAST_EPOCH, instead_of_epochs
from ...wire.records import LaunchRecord
from ..profiles.written import USUAL_NAMES
from .run_settings import arguments_in

MOST_BYTES = 1 << 18
_CONFIGURATIONS = (".json", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".conf", ".config")
_LIKELY = ("epoch", "step", "iter", "itrs", "update", "round")
_COUNT_OF = re.compile(
    r"(?:(?:max|maximum|num|n|nb|number|of|total|train|training)_){1,4}(?:(?P<epochs>epochs)|(?P<steps>iterations?|iters?|itrs?))"
)
"""Names that just mean a number of epochs or steps, too many to list: ``max_num_epochs``, ``n_iter``."""
_ITERATIONS = ("iters", "itrs")
_FEWEST_ITERATIONS = 100
"""A bare ``iters`` below this is not the length of a training, but iterations within a step (as in optical flow)."""
_ONE_DASH = re.compile(r"-[A-Za-z]\w*")
_LINE = re.compile(r"""^[ \t-]*["']?([A-Za-z_]\w*)["']?[ \t]*[:=][ \t]*(\d[\d_]*)[ \t]*(?:[#;].*)?$""", re.MULTILINE)
"""A named integer, which is all that is needed of YAML and INI files."""


def planned_totals(launch: LaunchRecord) -> dict[str, float]:
    """Return the planned ``epochs`` and ``steps``, and the ``batch_size``; arguments take precedence over files."""
    words = {name.replace("-", "_"): value for name, value in arguments_in(launch.argv).items()}
    sizes = {words[name] for name in USUAL_NAMES["batch_size"] if words.get(name, "").isdecimal()}
    batch = {"batch_size": float(sizes.pop())} if len(sizes) == 1 else {}
    return {**totals_in_files(launch.argv, Path(launch.cwd), launch.time), **asked_totals(launch.argv), **batch}


def asked_totals(argv: Sequence[str], settings: Mapping[str, str] | None = None) -> dict[str, float]:
    """Return ``epochs`` and ``steps`` from the arguments: ``--epochs 20``, ``max_steps=400``, ``trainer.max_epochs=3``.

    ``--epoch 20`` or ``-e 20`` is returned as ``epoch`` if no total is given: usually it is the total, or else one.

    Args:
        settings: other configuration; arguments take precedence over it.
    """
    words = {**(settings or {}), **_behind_one_dash(argv), **arguments_in(argv)}
    told = {name.rpartition(".")[2].replace("-", "_").lower(): value for name, value in words.items()}
    if not any(word in name for name in told for word in _LIKELY):
        return {}
    from ..formats.points import as_number
    from ..formats.records import ALIASES, DONE_OR_PLANNED, EPOCH, EPOCHS, STEPS

    if any("timesteps" in name for name in told):  # of an environment: any other steps are those of a rollout
        told = {name: value for name, value in told.items() if "step" not in name}
    fields = {EPOCHS: EPOCHS, STEPS: STEPS, DONE_OR_PLANNED: STEPS}
    usual = {name.lower(): role for role in (EPOCHS, STEPS) for name in USUAL_NAMES[role]}
    usual |= {name: str(count.lastgroup) for name in told if (count := _COUNT_OF.fullmatch(name)) is not None}
    found = [(usual.get(name, fields.get(ALIASES.get(name, ""))), as_number(value)) for name, value in told.items()]
    found += [(STEPS, n) for name in _ITERATIONS if (n := as_number(told.get(name, "")) or 0) >= _FEWEST_ITERATIONS]
    known = [(field, value) for field, value in found if field is not None and value is not None and value > 0]
    totals = dict(sorted(known, key=lambda one: one[1] if one[0] == STEPS else 0))  # the largest number of steps wins
    instead = instead_of_epochs(told)
    if instead is not None:
        totals.pop(EPOCHS, None)
    if EPOCHS not in totals:
        names = [name for name in told if LAST_EPOCH.fullmatch(name)] if instead is None else instead
        planned = {value for name in names if (value := as_number(told[name]) or 0) > 0}
        totals |= {EPOCHS: planned.pop()} if len(planned) == 1 else {}
    epoch = as_number(told.get(EPOCH, ""))
    if EPOCHS in totals or instead is not None or epoch is None or epoch < 2:
        return totals
    return {**totals, EPOCH: epoch}


def _behind_one_dash(argv: Sequence[str]) -> dict[str, str]:
    """Return integer options with a single dash, ``-epochs 20 -e 20``, which some programs use for all arguments."""
    found = {word[1:]: value for word, value in pairwise(argv) if _ONE_DASH.fullmatch(word) and value.isdecimal()}
    return {("epoch" if name == "e" else name): value for name, value in found.items()}


def totals_in_files(argv: Sequence[str], cwd: Path, launched: float) -> dict[str, float]:
    """Return ``epochs`` and ``steps`` from the JSON, TOML, YAML and INI files that a command names.

    A file that was changed since the launch is ignored, and so is a total that occurs with different values: one may
    be the epochs of a pretraining.

    Args:
        launched: Unix seconds.
    """
    from ..formats.records import ALIASES, EPOCHS, STEPS

    found: dict[str, set[int]] = {EPOCHS: set(), STEPS: set()}
    for word in dict.fromkeys(argv):
        path = cwd / word.rpartition("=")[2]
        if path.suffix.lower() in _CONFIGURATIONS:
            for name, value in _numbers(path, launched):
                plain = name.replace("-", "_").lower()
                count = _COUNT_OF.fullmatch(plain)
                field = ALIASES.get(plain, "") if count is None else str(count.lastgroup)
                if field in found and value > 0:
                    found[field].add(value)
    return {field: float(values.pop()) for field, values in found.items() if len(values) == 1}


def _numbers(path: Path, launched: float) -> Iterator[tuple[str, int]]:
    """Yield the integers in a file with the last part of their names; none if the file cannot be read."""
    stamp = storage.stamp(path)
    if stamp is None or stamp[0] / 1e9 > launched:
        return
    try:
        text = storage.read_text(path, MOST_BYTES)
        if not any(word in text for word in _LIKELY):
            return
        if path.suffix.lower() == ".json":
            yield from _named(json.loads(text))
        elif path.suffix.lower() == ".toml":
            import tomllib

            yield from _named(tomllib.loads(text))
        else:
            yield from ((name, int(number)) for name, number in _LINE.findall(text))
    except (OSError, ValueError, RecursionError):
        return


def _named(found: Any) -> Iterator[tuple[str, int]]:
    if isinstance(found, Mapping):
        for name, value in found.items():
            if isinstance(value, int) and not isinstance(value, bool):
                yield str(name), value
            yield from _named(value)
    elif isinstance(found, list):
        for value in found:
            yield from _named(value)
