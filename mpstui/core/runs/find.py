"""Which run a person means: an id, an unambiguous beginning of one, a name, or a profile (then its newest run)."""

from __future__ import annotations

import stat
from pathlib import Path

from ...wire import labels, storage
from ...wire.rundir import RunDir, run_dirs, slug
from ...wire.storage import UnreadableRecord
from ..model.errors import UsageError
from ..model.home import Home

MOST_CANDIDATES = 8
_SPECS_READ = 200
"""Names are in the specs: this many of the newest are read if an id's slug does not tell."""


class NoSuchRun(UsageError):
    """No run has this id, name or profile."""


def find_run(home: Home, name: str) -> RunDir:
    """The run that ``name`` means.

    Raises:
        UsageError: there is none, or several ids begin like that; the candidates are listed.
    """
    if name.isprintable() and "/" not in name and not name.startswith("."):
        there = storage.stat_of(home.runs / name) if name else None  # no need to search a list of ten thousand
        if there is not None and stat.S_ISDIR(there.st_mode):
            return RunDir(home.runs / name)
    found = run_dirs(home.runs)
    beginnings = [run for run in found if name and run.run.startswith(name)]
    if len(beginnings) == 1:
        return beginnings[0]
    if beginnings:
        raise UsageError(f"{name!r} is the beginning of {len(beginnings)} runs", f"which one? {_listed(beginnings)}")
    of_profile = (run for run in found[:_SPECS_READ] if name and _told_by_spec(run, "profile") == name)
    named = _newest_named(found, name) or _newest_of_one_name(found, name) or next(of_profile, None)
    if named is None:
        path = Path(name.partition("#")[0]).expanduser()
        if "/" in name and path.exists():
            sentence = f"{name} was not started by mpstui, which only reads what lies there"
            raise NoSuchRun(sentence, "ps, show, results, report, export, follow and watch take it", field="run")
        sentence = f"there is no run {name!r}"
        host, _, run = name.rpartition(":")
        elsewhere = f"is it on {host}? Then write {run} --host {host}" if host and run else ""
        if not found:
            none = "no run was ever launched here; see `mpstui profiles`, and --host for those of other machines"
            raise NoSuchRun(sentence, elsewhere or none, field="run")
        from difflib import get_close_matches  # only for a mistyped name; every list of runs imports this module

        words = dict.fromkeys(run_name(run) or run.run for run in found[:_SPECS_READ])
        close = get_close_matches(name, [*words, *(run.run for run in found)], n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else elsewhere or "see `mpstui ps --all`"
        raise NoSuchRun(sentence, hint, field="run", near=next(iter(close), None))
    return named


def run_name(run: RunDir) -> str | None:
    """What a run is called; None if nobody named it and its spec cannot be read."""
    return labels.read(run).name or _told_by_spec(run, "name")


def _told_by_spec(run: RunDir, key: str) -> str | None:
    try:
        spec = storage.read_json(run.spec)
    except (UnreadableRecord, OSError):
        return None
    found = spec.get(key) if spec else None
    return found if isinstance(found, str) else None


def _newest_named(found: list[RunDir], name: str) -> RunDir | None:
    """The newest run of that name; if no run was renamed, the slugs in the ids save reading most specs."""
    wanted = name.casefold()
    for place, run in enumerate(found):
        given = labels.read(run).name if name and place < _SPECS_READ else ""
        if (given or slug(name) in run.run) and (given or run_name(run) or "").casefold() == wanted:
            return run
    return next((run for run in found if name and _slug_of(run) == slug(name)), None)


def _newest_of_one_name(found: list[RunDir], name: str) -> RunDir | None:
    """The newest of the runs whose names begin like that, if they all have the same name.

    Raises:
        UsageError: several names begin like that.
    """
    start = slug(name)
    alike = [run for run in found if name and _slug_of(run).startswith(start)]
    names = {run_name(run): run for run in reversed(alike[:_SPECS_READ])}
    if len(names) > 1:
        raise UsageError(f"{name!r} is the beginning of {len(names)} names", f"which one? {_listed([*names.values()])}")
    return alike[0] if alike else None


def _slug_of(run: RunDir) -> str:
    """The part of an id after its date and time."""
    return run.run.partition("-")[2].partition("-")[2]


def _listed(runs: list[RunDir]) -> str:
    more = f" and {len(runs) - MOST_CANDIDATES} more" if len(runs) > MOST_CANDIDATES else ""
    return ", ".join(run.run for run in runs[:MOST_CANDIDATES]) + more
