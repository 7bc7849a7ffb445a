"""`mpstui results`: what runs came to, beside the settings in which those of one program differ."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..core import present as shown
from ..core.model.errors import UsageError
from ..core.model.home import Home
from ..core.model.snapshot import RunSnapshot
from ..core.present import badge
from ..core.runs.comparison import differences, settings_of
from ..core.runs.monitor import Monitor
from ..core.runs.query import findable
from ..core.runs.report import as_json, metrics_as_json
from ..core.series.direction import best_point
from ..wire import labels, storage
from ..wire.records import Spec
from ..wire.rundir import RunDir, run_dirs
from .session import FILTER_HELP, Session, print_json, query_of, say

_METRICS = 2
"""Validation metrics that are told when nobody names one."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
A table for each program: its runs, oldest first, the settings in which they differ, and the last and best value of
what they measured. Runs of any program are told, as far as their output is understood. Examples:
  mpstui results                        every run
  mpstui results cifar-optimizers       the runs of a profile, such as those of its sweep
  mpstui results ~/copied/runs --json   runs that lie in a folder"""
    parser.add_argument("what", nargs="?", metavar="PROFILE|NAME|FOLDER", help="which runs: NAME is how theirs begin")
    parser.add_argument("--filter", metavar="WORDS", help=FILTER_HELP)
    parser.add_argument("--metric", metavar="NAME", help="tell this metric (default: loss and those of validation)")
    parser.add_argument("--json", action="store_true", help="print the runs as a JSON array, with all of their metrics")


def run(args: argparse.Namespace) -> int:
    wanted, programs = query_of(args.filter), dict[str, list[RunSnapshot]]()
    found = [one for one in _runs(Session().home, args.what) if wanted is None or wanted.matches(findable(one))]
    if not found and not args.json:
        say("no run matches")
    if args.json:
        more = ({"settings": settings_of(one), "metrics": metrics_as_json(one)} for one in found)
        print_json([{**as_json(one, full=False), **further} for one, further in zip(found, more, strict=True)])
        return 0
    for one in found:
        script = next((Path(word).name for word in one.argv if word.endswith((".py", ".sh"))), one.name)
        programs.setdefault(one.profile or script, []).append(one)
    for program, runs in programs.items():
        say(f"{program}: {len(runs)} run{'s' * (len(runs) > 1)}")
        table = _table(runs, args.metric)
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            say("  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    return 0


def _runs(home: Home, what: str | None) -> list[RunSnapshot]:
    """The runs that are meant, oldest first, each read to its end.

    Raises:
        UsageError: there are none.
    """
    monitor, folder = Monitor(home), Path(what or ".")
    if what and folder.is_dir():
        inside = [one for one in sorted(folder.glob("[!.]*")) if one.is_dir()]
        keys = [monitor.watch(one) for one in ([folder] if (folder / "spec.json").exists() else inside)]
    else:
        keys = [one.run for one in reversed(run_dirs(home.runs)) if not what or _is_meant(one, what)]
    if not keys:
        raise UsageError(f"there are no runs of {what!r}" if what else "there are no runs yet", "see `mpstui ps --all`")
    return [monitor.snapshot(key) for key in keys]


def _is_meant(run: RunDir, what: str) -> bool:
    spec = storage.read_or_none(Spec, run.spec)
    name = labels.name_of(run, spec)
    named = name.casefold().startswith(what.casefold()) or (spec is not None and spec.profile == what)
    return named or run.run.startswith(what)


def _table(runs: Sequence[RunSnapshot], metric: str | None) -> list[list[str]]:
    differing = differences(runs)
    measured = dict.fromkeys(name for one in runs for name, view in one.series.items() if view.evaluation)
    bests = [metric] if metric else list(measured)[:_METRICS]
    heads = ["run", "state", *(one.name for one in differing), *([] if metric else ["loss"])]
    rows = [[*heads, *(text for name in bests for text in (name, "best"))]]
    for place, one in enumerate(runs):
        cells = [one.run, badge(one).word, *(setting.values[place] or "–" for setting in differing)]
        cells += [] if metric else [shown.loss_text(one.numbers)]
        for view, name in ((one.series.get(name), name) for name in bests):
            found = best_point(view, name) if view else None
            cells += [shown.number(view.last if view else None), shown.number(found.value if found else None)]
        rows.append(cells)
    return rows
