"""The list of runs as the user arranged it: its columns, their values, the order, and groups that can be folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ...wire import storage
from ..model.errors import OperationError
from ..model.home import Home
from ..model.snapshot import RunSnapshot, State
from ..present import UNKNOWN, badge, duration, epoch_shown, epoch_text, loss_text, number, rate, size, until
from ..series.direction import Better, better
from ..series.metric_words import is_evaluation, measured
from .run_settings import is_named, settings_of

Value = float | str | None
FEWEST, MOST_OPEN = 3, 6
"""The fewest runs that make a group, and the most in a group that is not folded unless the user opens it."""
_SWEPT_SECONDS = 120
"""The runs of one sweep are created one after another, each within this time of the previous one."""
_SETTING, _LAST, _BEST = "set:", "last:", "best:"
_CREATED = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)")
_COMES_FIRST = {state: place for place, state in enumerate(State)}


class Column(NamedTuple):
    """A column of the list, and how to derive its value from a run."""

    id: str
    title: str
    value: Callable[[RunSnapshot, float], Value]
    """Return the value to sort by, at a time in Unix seconds; None: unknown, which comes last in either direction."""
    text: Callable[[RunSnapshot, float], str]
    rising: bool = True
    """Whether the lowest value comes first when the user first sorts by this column."""


class ListView(NamedTuple):
    """How the user wants to see the list."""

    columns: tuple[str, ...] = ()
    """Column ids; empty: as many columns as fit the width."""
    sort: str = ""
    """The id of the column to sort by; empty: newest first."""
    reverse: bool = False
    folds: Mapping[str, bool] = {}
    """By group id, whether the user folded the group (or opened it)."""


class Group(NamedTuple):
    """Runs that belong together: those of one sweep, or those waiting in one queue."""

    id: str
    title: str
    runs: tuple[RunSnapshot, ...]

    @property
    def live(self) -> int:
        """How many of its runs are live."""
        return sum(one.is_live for one in self.runs)


class Line(NamedTuple):
    """A line of the list: a run, or the heading of a group."""

    key: str
    """The run's id, or the group's."""
    run: RunSnapshot | None
    group: Group | None = None
    """The group that it heads or belongs to."""
    folded: bool = False


# -- columns


def _lasted(run: RunSnapshot, now: float) -> float | None:
    return run.lasted(until(run, now))


def _job_text(run: RunSnapshot, now: float) -> str:
    return run.job.short() if run.job is not None else ""


def moment_of_end(run: RunSnapshot) -> float | None:
    """Return when a run ended, or when a foreign one that is done or silent last wrote, in Unix seconds.

    None if it is still running or that is unknown.
    """
    is_left = run.silent or (run.numbers.done and not run.is_ours)
    return run.ended if run.ended is not None else run.updated if is_left else None


def _memory(run: RunSnapshot, now: float) -> float | None:
    told = run.numbers.memory
    return next((one for one in (told.driver, told.footprint, told.rss, told.allocated) if one is not None), None)


def _since(run: RunSnapshot, now: float) -> float | None:
    return None if run.started is None else max(0.0, now - run.started)


def brief(seconds: float | None) -> str:
    """Format an age in a single unit and at most 4 cells: ``45s``, ``31m``, ``2h``, ``12d``."""
    told = duration(seconds)
    return told if told == UNKNOWN else told.split()[0]


def _best_text(run: RunSnapshot, now: float) -> str:
    found = best_of(run)
    return number(found[1]) if found else UNKNOWN


def _loss(run: RunSnapshot, now: float) -> Value:
    return run.numbers.loss


_BUILT_IN: tuple[Column, ...] = (
    Column("state", "state", lambda run, now: _COMES_FIRST[run.state], lambda run, now: badge(run).word),
    Column("name", "name", lambda run, now: run.name.casefold(), lambda run, now: run.name),
    Column("host", "host", lambda run, now: run.host, lambda run, now: run.host or "local"),
    Column(
        "device", "dev", lambda run, now: run.numbers.device.type, lambda run, now: run.numbers.device.type or UNKNOWN
    ),
    Column(
        "epoch", "epoch", lambda run, now: epoch_shown(run.numbers), lambda run, now: epoch_text(run.numbers), False
    ),
    Column("loss", "loss", _loss, lambda run, now: loss_text(run.numbers)),
    Column("best", "best", lambda run, now: (best_of(run) or (None, None))[1], _best_text),
    Column("trend", "trend", lambda run, now: None, lambda run, now: ""),
    Column(
        "speed",
        "step/s",
        lambda run, now: run.numbers.steps_per_second,
        lambda run, now: rate(run.numbers.steps_per_second),
        False,
    ),
    Column("left", "eta", lambda run, now: run.numbers.eta_seconds, lambda run, now: duration(run.numbers.eta_seconds)),
    Column("age", "age", _since, lambda run, now: brief(_since(run, now))),
    Column("took", "took", _lasted, lambda run, now: duration(_lasted(run, now)), False),
    Column("memory", "memory", _memory, lambda run, now: size(_memory(run, now)), False),
    Column("job", "job", _job_text, _job_text),
    Column("tags", "tags", lambda run, now: " ".join(run.tags) or None, lambda run, now: " ".join(run.tags)),
    Column("note", "note", lambda run, now: run.note.casefold() or None, lambda run, now: run.note),
    Column("profile", "profile", lambda run, now: run.profile, lambda run, now: run.profile or UNKNOWN),
)
BUILT_IN: Mapping[str, Column] = {one.id: one for one in _BUILT_IN}


@lru_cache(256)
def column(name: str) -> Column | None:
    """Return the column with this id, or None."""
    kind, _, of = name.partition(":")
    if name in BUILT_IN or not of:
        return BUILT_IN.get(name)
    falls = better(of) is Better.HIGHER
    if f"{kind}:" == _SETTING:
        return Column(name, of, partial(_setting, of), lambda run, now: settings_of(run).get(of, "–"))
    if f"{kind}:" == _LAST:
        return Column(name, of, partial(_last, of), lambda run, now: number(_last(of, run, now)), not falls)
    if f"{kind}:" == _BEST:
        return Column(name, f"best {of}", partial(_best, of), lambda run, now: number(_best(of, run, now)), not falls)
    return None


def columns_of(runs: Iterable[RunSnapshot]) -> list[Column]:
    """Return every column that these runs can fill: the built-in ones, then their settings and their metrics."""
    known, measures = dict[str, None](), dict[str, None]()
    for run in runs:
        known |= dict.fromkeys(filter(is_named, settings_of(run)))
        measures |= dict.fromkeys([*run.numbers.metrics, *run.extremes])
    names = [_SETTING + name for name in known if name not in ("profile", "device")]
    names += [_LAST + name for name in measures if name != "loss"]
    names += [_BEST + name for name in measures if better(name) is not None]
    return [*BUILT_IN.values(), *filter(None, map(column, names))]


def _setting(name: str, run: RunSnapshot, now: float) -> Value:
    text = settings_of(run).get(name)
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _last(name: str, run: RunSnapshot, now: float) -> float | None:
    return run.numbers.metrics.get(name)


def _best(name: str, run: RunSnapshot, now: float) -> float | None:
    way, ends = better(name), run.extremes.get(name)
    return None if way is None or ends is None else ends[0 if way is Better.LOWER else 1]


# -- the best of a run, and of a group


@lru_cache(1024)
def main_metric(names: tuple[str, ...]) -> str | None:
    """Return the metric that ranks runs that measure these: a validation loss, else another validation metric, else the
    loss, else any metric with a known better direction."""
    told = [name for name in names if better(name) is not None]
    rank = {name: (not is_evaluation(name), measured(name) != "loss") for name in told}
    return min(told, key=lambda name: rank[name], default=None)


def best_of(run: RunSnapshot) -> tuple[str, float] | None:
    """Return the metric that ranks the run and its best value so far, or None if unknown."""
    name = main_metric(tuple(run.extremes))
    value = _best(name, run, 0.0) if name is not None else None
    return None if name is None or value is None else (name, value)


def best_in(runs: Sequence[RunSnapshot]) -> tuple[RunSnapshot, str, float] | None:
    """Return the best run by the metric that ranks most of them, with that metric and its value; None if unknown."""
    judged = [(found[0], found[1], run) for run in runs if (found := best_of(run)) is not None]
    if not judged:
        return None
    names = [name for name, _, _ in judged]
    name = max(dict.fromkeys(names), key=names.count)
    ends = [(value, run) for told, value, run in judged if told == name]
    choose = max if better(name) is Better.HIGHER else min
    value, run = choose(ends, key=lambda one: one[0])
    return run, name, value


# -- order and groups


def varied(name: str) -> list[str]:
    """Return the words of a name that distinguish a run from the others of its sweep: ``lr=0.1``."""
    return [word for word in name.split() if "=" in word[1:]]


def groups_of(runs: Sequence[RunSnapshot]) -> dict[str, Group]:
    """Find the sweeps and queues among runs given newest first; return the group of each grouped run by its id."""
    found: dict[str, list[RunSnapshot]] = {}
    titles: dict[str, str] = {}
    newest: dict[tuple[str | None, str], tuple[str, float]] = {}
    for run in runs:
        own = varied(run.name)
        if own:
            base = " ".join(word for word in run.name.split() if word not in own)
            made, (key, before) = _created(run.run), newest.get((run.profile, base), ("", 0.0))
            key = key if key and abs(before - made) <= _SWEPT_SECONDS else f"sweep {run.profile} {base} {run.run[:15]}"
            newest[run.profile, base] = key, made
            titles[key] = base or run.profile or "sweep"
        elif run.queue is not None and run.queue.group is not None:
            key = f"queue {run.queue.group}"
            titles[key] = f"queue {run.queue.group}"
        else:
            continue
        found.setdefault(key, []).append(run)
    groups = [Group(key, titles[key], tuple(members)) for key, members in found.items() if len(members) >= FEWEST]
    # A sweep is identified by its oldest run: newer ones come and go.
    return {run.run: group for group in (one._replace(id=_lasting(one)) for one in groups) for run in group.runs}


def _lasting(group: Group) -> str:
    return f"{group.id[:6]}{group.runs[-1].run}" if group.id.startswith("sweep ") else group.id


@lru_cache(4096)
def _created(run: str) -> float:
    from calendar import timegm

    match = _CREATED.match(run)
    return float(timegm(tuple(map(int, match.groups())))) if match else 0.0


def is_folded(group: Group, view: ListView) -> bool:
    """True if only the heading of a group is shown."""
    return view.folds.get(group.id, len(group.runs) > MOST_OPEN)


def ordered(runs: Sequence[RunSnapshot], view: ListView, now: float) -> Sequence[RunSnapshot]:
    """Return the runs sorted as the view asks; those with an unknown value come last in either direction."""
    by = column(view.sort) if view.sort else None
    if by is None:
        return runs[::-1] if view.reverse else runs
    told = [(by.value(run, now), run) for run in runs]
    numbers = sorted(((v, r) for v, r in told if isinstance(v, (int, float))), key=_first)
    words = sorted(((v, r) for v, r in told if isinstance(v, str)), key=_first)
    known = [run for _, run in [*numbers, *words]]
    if by.rising == view.reverse:
        known.reverse()
    return [*known, *(run for value, run in told if value is None)]


def _first(item: tuple[Any, RunSnapshot]) -> Any:
    return item[0]


def arranged(runs: Sequence[RunSnapshot], view: ListView, now: float) -> list[Line]:
    """Return the lines of the list, newest run first unless sorted; a group takes the place of its first run."""
    groups, shown = groups_of(runs), set[str]()
    order, lines = ordered(runs, view, now), list[Line]()
    members: dict[str, list[RunSnapshot]] = {}
    for run in order:
        if run.run in groups:
            members.setdefault(groups[run.run].id, []).append(run)
    for run in order:
        group = groups.get(run.run)
        if group is None:
            lines.append(Line(run.run, run))
        elif group.id not in shown:
            shown.add(group.id)
            folded = is_folded(group, view)
            lines.append(Line(group.id, None, group, folded))
            lines += [] if folded else [Line(one.run, one, group) for one in members[group.id]]
    return lines


# -- what is remembered


def load_view(home: Home) -> ListView:
    """Load the view that the user last saved; whatever cannot be read falls back to the default."""
    try:
        found = storage.read_json(home.state / "list.json") or {}
    except (OSError, storage.UnreadableRecord):
        return ListView()
    columns, sort, folds = found.get("columns"), found.get("sort"), found.get("folds")
    return ListView(
        tuple(name for name in columns if isinstance(name, str) and column(name)) if isinstance(columns, list) else (),
        sort if isinstance(sort, str) and column(sort) else "",
        found.get("reverse") is True,
        dict(_flags(folds)) if isinstance(folds, dict) else {},
    )


def _flags(found: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    return ((name, value) for name, value in list(found.items())[-200:] if isinstance(value, bool))


def save_view(home: Home, view: ListView) -> None:
    """Save the view for the next time.

    Raises:
        OperationError: it could not be saved.
    """
    record = {"columns": view.columns, "sort": view.sort, "reverse": view.reverse, "folds": view.folds}
    try:
        storage.make_private_folder(home.state)
        storage.write_json(home.state / "list.json", record, sync=False)
    except OSError as error:
        raise OperationError(f"how the list looks cannot be kept: {error.strerror or error}") from error
