"""`mpstui results`: the results of runs, next to the settings in which the runs of one program differ."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.formats.stores import find_runs
from ..core.model.errors import UsageError
from ..core.model.home import Home
from ..core.model.snapshot import RunSnapshot
from ..core.present import badge
from ..core.runs.comparison import BROKEN_MARK, Column, columns, metrics_of, of_one_teller
from ..core.runs.find import NoSuchRun
from ..core.runs.listing import main_metric
from ..core.runs.monitor import Monitor
from ..core.runs.query import findable
from ..core.runs.report import as_json, metrics_as_json
from ..core.runs.run_settings import settings_of
from ..core.series.direction import Better, better
from ..wire import labels, storage
from ..wire.records import Spec
from ..wire.rundir import RunDir, run_dirs
from .session import FILTER_HELP, Session, keys_of_path, print_json, query_of, say

_SEEN = "loss (agent)"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Prints a table for each program, as the screen's comparison does: its runs, the best first, with the best and the last
value of one metric, the settings that differ, and the best of other metrics. A best is a single value as it was
reported. Runs that are equal, or have none, are in the order they began, as all are with --json. The output of any
program counts, as far as it is understood. Examples:
  mpstui results                        every run
  mpstui results cifar-optimizers       the runs of a profile, such as those of its sweep
  mpstui results ~/copied/runs --json   the runs in a folder
  mpstui results ./wandb                those of another tracker"""
    parser.add_argument(
        "what", nargs="?", metavar="PROFILE|NAME|PATH", help="which runs: NAME is the beginning of theirs"
    )
    parser.add_argument("--filter", metavar="WORDS", help=FILTER_HELP)
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="the one to rank by (default: a loss on validation data, else the loss)",
    )
    parser.add_argument("--json", action="store_true", help="print the runs as a JSON array, with all of their metrics")


def run(args: argparse.Namespace) -> int:
    wanted, programs = query_of(args.filter), dict[tuple[str, str], list[RunSnapshot]]()
    found = [one for one in _runs(Session().home, args.what) if wanted is None or wanted.matches(findable(one))]
    if not found and not args.json:
        say("no run matches")
    for one in found:
        programs.setdefault(_program(one), []).append(one)
    programs = {program: of_one_teller(runs) for program, runs in programs.items()}
    if args.json:
        alike = {one.run: one for runs in programs.values() for one in runs}
        found = [alike[one.run] for one in found]
        more = ({"settings": settings_of(one), "metrics": metrics_as_json(one)} for one in found)
        print_json([{**as_json(one, full=False), **further} for one, further in zip(found, more, strict=True)])
        return 0
    names = [name for name, _ in programs]
    for (name, folder), runs in programs.items():
        metric = args.metric or main_metric(tuple(metrics_of(runs)))
        way = better(metric) if metric else None
        by = f" by {metric}" + (f", {way} is better" if way else "") if metric else ""
        title = _title(name, folder if names.count(name) > 1 else "", runs)
        say(f"{title}: {len(runs)} run{'s' * (len(runs) > 1)}{by}")
        table, remarks = _table(runs, metric or "loss")
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            say("  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
        for remark in remarks:
            say(f"  {remark}")
    return 0


def _title(program: str, folder: str, runs: Sequence[RunSnapshot]) -> str:
    """Return a table's title: its program, or a single run's own name if its program is unknown."""
    if len(runs) == 1 and not runs[0].is_ours and not runs[0].argv:
        return runs[0].name
    return f"{program} in {folder}" if folder else program


def _program(one: RunSnapshot) -> tuple[str, str]:
    """Return what tells the programs of runs apart: a name, and the folder if it matters and is known."""
    script = next((Path(word) for word in one.argv if word.endswith((".py", ".sh"))), None)
    if script is None and not one.is_ours:  # found beside others; what wrote them is unknown
        return Path(one.run).parent.name, str(Path(one.run).parent)
    if one.profile or script is None:
        return one.profile or one.name, ""
    spec = storage.read_or_none(Spec, RunDir(one.dir).spec) if one.is_ours else None
    folder = os.path.normpath(Path(spec.launch.cwd if spec else "", script).parent)
    return script.name, "" if folder == "." else folder


def _runs(home: Home, what: str | None) -> list[RunSnapshot]:
    """Return the runs asked for, oldest first, each read to its end.

    Raises:
        UsageError: there are none.
    """
    monitor, folder = Monitor(home), Path(what or ".")
    if what and folder.is_dir():
        inside = [one for one in sorted(folder.glob("[!.]*")) if one.is_dir()]
        of_ours = any((one / "spec.json").exists() for one in inside)
        if of_ours or (folder / "spec.json").exists() or find_runs(folder.absolute()):
            keys = [key for one in (inside if of_ours else [folder]) for key in monitor.watch_all(one)]
        else:  # a folder for each run, or the files of one; whatever has no numbers is not a run
            keys = _that_tell(monitor, inside) or _that_tell(monitor, [folder])
    elif what and "/" in what:
        keys = keys_of_path(monitor, what)
    else:
        keys = [one.run for one in reversed(run_dirs(home.runs)) if not what or _is_meant(one, what)]
    if not keys:
        if what:
            raise NoSuchRun(what, f"there are no runs of {what!r}", "see `mpstui ps --all`")
        raise UsageError("there are no runs yet", "`mpstui launch` and `mpstui run` start them")
    return [monitor.snapshot(key) for key in keys]


def _that_tell(monitor: Monitor, folders: Iterable[Path]) -> list[str]:
    keys = (key for one in folders for key in monitor.watch_all(one))
    return [key for key in keys if monitor.snapshot(key).updated is not None]


def _is_meant(run: RunDir, what: str) -> bool:
    spec = storage.read_or_none(Spec, run.spec)
    name = labels.name_of(run, spec)
    named = name.casefold().startswith(what.casefold()) or (spec is not None and spec.profile == what)
    return named or run.run.startswith(what)


def _table(runs: Sequence[RunSnapshot], metric: str) -> tuple[list[list[str]], list[str]]:
    """Return the table, headings first, and remarks about it."""
    told = columns(runs, metric)
    best = next((one for one in told if one.kind == "best"), None)
    order = list(range(len(runs))) if best is None else sorted(range(len(runs)), key=lambda place: _rank(best, place))
    rows = [["run", "state", *(one.name for one in told)]]
    rows += [[runs[place].run, badge(runs[place]).word, *(column.text(place) for column in told)] for place in order]
    broken = best.broken if best is not None else {}
    remarks = [f"{BROKEN_MARK} {runs[place].run}: {words}" for place, words in broken.items()]
    if metric == "loss" and any(_SEEN in one.series for one in runs):
        remarks.append(f"loss is what the program prints or reports, {_SEEN} what goes into backward")
    return rows, remarks


def _rank(best: Column, place: int) -> tuple[bool, float]:
    """Sort key: the best run first, those without a finite value last."""
    value = best.values[place]
    if not isinstance(value, float | int) or not math.isfinite(value):
        return True, 0.0
    return False, -value if best.better is Better.HIGHER else value
