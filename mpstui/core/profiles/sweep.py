"""The ``[sweep]`` table: arguments that take several values, one run for each combination of them.

[sweep]
seed = [1, 2, 3]
[sweep.optimizer]                    # a value, and the arguments that go with it
sgd = { epochs = 100 }
muon = { epochs = 60, lr = 0.04 }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ..model import checks
from ..model.checks import KeyPath, Scalar, as_text

MOST_RUNS = 200


@dataclass(frozen=True, slots=True)
class SweepValue:
    """One value of a swept argument, and the other arguments that go with it."""

    value: Scalar
    along: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The value as it is written after ``--set KEY=``."""
        return as_text(self.value)


Sweep = Mapping[str, tuple[SweepValue, ...]]
"""Argument -> its values, in the file's order."""


def read_sweep(table: Mapping[str, Any]) -> Sweep:
    """Read a table in which :func:`sweep_problems` found no problems."""
    return {".".join(path): tuple(_values(found)) for path, found in _axes(table)}


def sweep_toml(values: tuple[SweepValue, ...]) -> Any:
    """Return the values as TOML data: a list, or a table if other arguments go with them."""
    if any(one.along for one in values):
        return {one.text: dict(one.along) for one in values}
    return [one.value for one in values]


def arguments_of(sweep: Sweep) -> set[str]:
    """Return every argument that a sweep sets."""
    return {*sweep, *(key for values in sweep.values() for one in values for key in one.along)}


def sweep_problems(table: Mapping[str, Any], args: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield what is wrong with a ``[sweep]`` table.

    Args:
        args: the profile's ``[args]`` by full key, to check types and spelling.
    """
    axes = dict(_axes(table))
    sound = {}
    for path, found in axes.items():
        wrong = list(_shape(path, found)) or list(_fit(path, found, args))
        yield from ((("sweep", *where), sentence) for where, sentence in wrong)
        if not wrong:
            sound[path] = tuple(_values(found))
    owners = {".".join(path): "is swept itself" for path in sound}
    for path, values in sound.items():
        axis = ".".join(path)
        for key in sorted({key for one in values for key in one.along}):
            if key in owners:
                first = next(one.text for one in values if key in one.along)
                yield ("sweep", *path, first, key), f"`{key}` goes with a value of `{axis}`, but {owners[key]}"
            owners[key] = f"with one of `{axis}` too"
    runs = prod(len(values) for values in sound.values())
    if runs > MOST_RUNS:
        yield ("sweep",), f"[sweep] asks for {runs:,} runs; {MOST_RUNS} is the most"


def _axes(table: Mapping[str, Any], prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the swept arguments, each with a list of values or a table of tables.

    TOML reads ``model.lr = [...]`` as a table ``model`` that holds a list.
    """
    for key, found in table.items():
        path = (*prefix, key)
        if isinstance(found, dict) and found and not any(isinstance(item, dict) for item in found.values()):
            yield from _axes(found, path)
        else:
            yield path, found


def _values(found: Any) -> Iterator[SweepValue]:
    if isinstance(found, dict):
        yield from (SweepValue(value, dict(along)) for value, along in found.items())
    else:
        yield from (SweepValue(value) for value in found)


def _shape(path: KeyPath, found: Any) -> Iterator[tuple[KeyPath, str]]:
    """Yield problems unless it is a list of values, or a table from values to the arguments that go with them."""
    where = f"`{'.'.join(path)}` in [sweep]"
    if not isinstance(found, (list, dict)):
        yield path, f"{where} must be a list of values, not {checks.described(found)}"
    elif not found:
        yield path, f"{where} needs at least one value"
    elif isinstance(found, list):
        wrong = next(((item, expected) for item in found if (expected := checks.scalar(item))), None)
        if wrong:
            yield path, f"{where} must be a list of values; {checks.described(wrong[0])} is not {wrong[1]}"
    else:
        table = f"[sweep.{'.'.join(path)}]"
        for value, along in found.items():
            if not isinstance(along, dict):
                rule = f"must be a table of the arguments that go with it, {{}} for none, not {checks.described(along)}"
                yield (*path, value), f"`{value}` in {table} {rule}"
                continue
            for key, item in along.items():
                if expected := checks.scalar(item):
                    problem = f"must be {expected}, not {checks.described(item)}"
                    yield (*path, value, key), f"`{key}` of {value!r} in {table} {problem}"


def _fit(path: KeyPath, found: Any, args: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield problems unless ``--set`` would accept the keys and values for this profile."""
    key = ".".join(path)
    values = list(_values(found))
    yield from _named(path, key, args)
    twice = [text for text, count in Counter(one.text for one in values).items() if count > 1]
    if twice:
        yield path, f"`{key}` in [sweep] has {twice[0]} twice"
    for one in values:
        yield from _typed(path, key, one.value, args)
        for name, item in one.along.items():
            where = (*path, str(one.value), name)
            yield from _named(where, name, args)
            yield from _typed(where, name, item, args)


def _named(path: KeyPath, key: str, args: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    likely = None if key in args else checks.nearest(key, tuple(args), cutoff=0.75)
    if likely:
        hint = f"did you mean `{likely}`? (if not, add it to [args])"
        yield path, f"`{key}` in [sweep] is none of the profile's [args]; {hint}"


def _typed(path: KeyPath, key: str, value: Scalar, args: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    example = args.get(key)
    if isinstance(example, bool):
        fits, what = as_text(value) in ("true", "false"), "true or false"
    elif isinstance(example, (int, float)):
        fits, what = checks.is_number(value), "a number"
    else:
        return
    if not fits:
        yield path, f"`{key}` in [sweep] must be {what} as in [args], not {checks.described(value)}"
