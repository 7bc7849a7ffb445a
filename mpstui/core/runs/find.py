"""Find the run that a user means: by its id or an unambiguous part of it, its name, or its profile (the newest run)."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from ...wire import labels, storage
from ...wire.rundir import RunDir, run_dirs, slug
from ...wire.storage import UnreadableRecord
from ..model.errors import UsageError
from ..model.home import Home

MOST_CANDIDATES = 8
_SPECS_READ = 200
"""How many of the newest runs are read for their names and profiles, where the slug in an id does not tell."""
_SHORTEST_PART = 3


def is_path(word: str) -> bool:
    """True if a word that may name a run is meant as a path: it contains a slash, or is ``.`` or ``..``."""
    return "/" in word or word in (".", "..")


class NoSuchRun(UsageError):
    """No run has this id, name or profile; ``word`` is what was asked for."""

    def __init__(self, word: str, sentence: str, hint: str, *, near: str | None = None) -> None:
        super().__init__(sentence, hint, field="run", near=near)
        self.word = word


def find_run(home: Home, name: str) -> RunDir:
    """Return the run that ``name`` means; of several with the same name, the newest.

    Raises:
        UsageError: there is none, or it is ambiguous between several ids or names, which are listed.
    """
    return find_runs(home, name)[0]


def find_runs(home: Home, name: str) -> list[RunDir]:
    """Return the run that ``name`` means, or all that have this name or profile, newest first.

    Raises:
        UsageError: as for :func:`find_run`.
    """
    if name.isprintable() and "/" not in name and not name.startswith("."):
        there = storage.stat_of(home.runs / name) if name else None  # saves searching through ten thousand runs
        if there is not None and stat.S_ISDIR(there.st_mode):
            return [RunDir(home.runs / name)]
    found = run_dirs(home.runs) if name else []
    if beginnings := [run for run in found if run.run.startswith(name)]:
        return _only(beginnings, f"{name!r} is the beginning of {len(beginnings)} runs")
    if named := _named(found, name) or _of_one_name(found, name):
        return named
    if of_profile := [run for run in found[:_SPECS_READ] if _told_by_spec(run, "profile") == name]:
        return of_profile
    if len(name) >= _SHORTEST_PART and (parts := [run for run in found if _is_part(name, run)]):
        return _only(parts, f"{name!r} is a part of {len(parts)} runs")
    raise _no_such_run(home, name)


def _only(found: list[RunDir], else_said: str) -> list[RunDir]:
    if len(found) > 1:
        raise UsageError(else_said, f"which one? {_listed(found)}")
    return found


def _is_part(word: str, run: RunDir) -> bool:
    """True if ``word`` is a whole hyphen-separated part of an id, or a name as a narrow list cuts it:
    ``CIFAR-10 …seed=3``.

    Parts of words do not count: a user who stops ``net``, which was removed, does not mean ``resnet``.
    """
    if "…" not in word:
        return f"-{word.casefold()}-" in f"-{run.run.casefold()}-"
    pieces = ".*".join(re.escape(piece) for piece in word.casefold().split("…") if piece)
    return any(re.search(pieces, one.casefold()) for one in (run.run, run_name(run) or ""))


def _no_such_run(home: Home, name: str) -> NoSuchRun:
    path = Path(name.partition("#")[0]).expanduser()
    if is_path(name) and path.exists():
        sentence = f"{name} was not started by mpstui, which only reads what lies there"
        return NoSuchRun(name, sentence, "ps, show, results, report, export, follow and watch take it")
    sentence, found = f"there is no run {name!r}", run_dirs(home.runs)
    host, _, run = name.rpartition(":")
    elsewhere = f"is it on {host}? Then write {run} --host {host}" if host and run else ""
    if not found:
        none = "no run was ever launched here; see `mpstui profiles`, and --host for those of other machines"
        return NoSuchRun(name, sentence, elsewhere or none)
    from difflib import get_close_matches  # imported late: every list of runs imports this module

    words = dict.fromkeys(run_name(run) or run.run for run in found[:_SPECS_READ])
    close = get_close_matches(name, [*words, *(run.run for run in found)], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else elsewhere or "see `mpstui ps --all`"
    return NoSuchRun(name, sentence, hint, near=next(iter(close), None))


def run_name(run: RunDir) -> str | None:
    """Return the name of a run; None if the user gave it none and its spec cannot be read."""
    return labels.read(run).name or _told_by_spec(run, "name")


def _told_by_spec(run: RunDir, key: str) -> str | None:
    try:
        spec = storage.read_json(run.spec)
    except (UnreadableRecord, OSError):
        return None
    found = spec.get(key) if spec else None
    return found if isinstance(found, str) else None


def _named(found: list[RunDir], name: str) -> list[RunDir]:
    """Return the runs of that name. The slugs in the ids save reading most specs."""
    wanted, named = name.casefold(), list[RunDir]()
    for place, run in enumerate(found):
        given = labels.read(run).name if place < _SPECS_READ else ""
        if (given or slug(name) in run.run) and (given or run_name(run) or "").casefold() == wanted:
            named.append(run)
    return named or [run for run in found if _slug_of(run) == slug(name)]


def _of_one_name(found: list[RunDir], name: str) -> list[RunDir]:
    """Return the runs whose names begin with ``name``, if they all have the same name.

    Raises:
        UsageError: several different names begin with it.
    """
    alike = [run for run in found if _slug_of(run).startswith(slug(name))]
    names = {run_name(run): run for run in reversed(alike[:_SPECS_READ])}
    if len(names) > 1:
        raise UsageError(f"{name!r} is the beginning of {len(names)} names", f"which one? {_listed([*names.values()])}")
    return alike


def _slug_of(run: RunDir) -> str:
    """Return the part of an id after its date and time."""
    return run.run.partition("-")[2].partition("-")[2]


def _listed(runs: list[RunDir]) -> str:
    more = f" and {len(runs) - MOST_CANDIDATES} more" if len(runs) > MOST_CANDIDATES else ""
    return ", ".join(run.run for run in runs[:MOST_CANDIDATES]) + more
