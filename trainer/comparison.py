"""Runs that differ in a few options, as a table: one row for each setting, mean and spread over its seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import UsageError

_REPEATED = "seed"
"""The option averaged over unless asked for: runs that differ only in it are the same experiment."""
_MOST_COLUMNS = 8
_UNFINISHED = "*"


@dataclass(frozen=True)
class Outcome:
    """One run: its options and its result."""

    options: Mapping[str, str]
    value: float | None
    finished: bool


def compared(outcomes: Sequence[Outcome], by: Sequence[str] | None = None) -> tuple[list[tuple[str, ...]], list[str]]:
    """Rows of cells, the headers first, and remarks below; no rows if nothing differs.

    Args:
        by: options whose combinations make the rows; None: all that differ, except those that follow from others.

    Raises:
        UsageError: no run has an option of ``by``.
    """
    for key in by or ():
        if not any(key in outcome.options for outcome in outcomes):
            raise UsageError(f"--by {key}: none of these runs was started with --{key}")
    keys = list(by) if by else differing(outcomes)
    if not keys:
        return [], []
    seeds = [] if _REPEATED in keys else _distinct(outcomes, _REPEATED)
    columns = seeds if 1 < len(seeds) <= _MOST_COLUMNS else []
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(tuple(outcome.options.get(key, "-") for key in keys), []).append(outcome)
    headers = (*keys, *(f"{_REPEATED} {seed}" for seed in columns), "mean", "+-", "runs")
    rows = [_row(setting, group, columns) for setting, group in groups.items()]
    unfinished = sum(not outcome.finished for outcome in outcomes)
    notes = [f"{_UNFINISHED} not finished: {unfinished} runs, in no mean"] if unfinished else []
    return [headers, *rows], notes


def differing(outcomes: Sequence[Outcome]) -> list[str]:
    """Options with several values, those with the most first; the repeated one only if it is the only one.

    An option that follows from another is left out: the number of epochs, where each optimizer has its own.
    """
    names = list(dict.fromkeys(key for outcome in outcomes for key in outcome.options))
    varied = [key for key in names if len(_distinct(outcomes, key)) > 1]
    settings = [key for key in varied if key != _REPEATED]
    settings.sort(key=lambda key: -len(_distinct(outcomes, key)))
    kept: list[str] = []
    for key in settings:
        if not kept or not _settled(outcomes, key, kept):
            kept.append(key)
    return kept or varied


def _settled(outcomes: Sequence[Outcome], key: str, others: Sequence[str]) -> bool:
    """Whether runs that agree in the other options agree in this one."""
    known: dict[tuple[str | None, ...], str | None] = {}
    for outcome in outcomes:
        setting = tuple(outcome.options.get(other) for other in others)
        if known.setdefault(setting, outcome.options.get(key)) != outcome.options.get(key):
            return False
    return True


def _distinct(outcomes: Sequence[Outcome], key: str) -> list[str]:
    """Values in the order of the runs; a run without the option has ``-``."""
    return list(dict.fromkeys(outcome.options.get(key, "-") for outcome in outcomes))


def _row(setting: tuple[str, ...], group: Sequence[Outcome], seeds: Sequence[str]) -> tuple[str, ...]:
    cells = [_cell([one for one in group if one.options.get(_REPEATED, "-") == seed]) for seed in seeds]
    values = [one.value for one in group if one.finished and one.value is not None]
    mean = f"{statistics.fmean(values):.4f}" if values else "n/a"
    spread = f"{statistics.stdev(values):.4f}" if len(values) > 1 else "n/a"
    return (*setting, *cells, mean, spread, f"{len(values)}/{len(group)}")


def _cell(group: Sequence[Outcome]) -> str:
    """The value of the newest run with a setting and seed, marked if the run is not finished."""
    if not group or group[-1].value is None:
        return "n/a"
    return f"{group[-1].value:.4f}{'' if group[-1].finished else _UNFINISHED}"
