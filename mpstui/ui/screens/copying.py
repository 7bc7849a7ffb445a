"""What can be copied from a run (value, id, command, paths) or written to a file. Imported by its key only."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot
from ..messages import Toast
from ..rows import clean
from .palette import Entry

if TYPE_CHECKING:
    from .acting import ActingScreen


def entries(screen: ActingScreen, snapshot: RunSnapshot, metric: str) -> Iterator[Entry]:
    """Yield what can be copied or written for a run, the value of the metric in view first.

    Args:
        metric: the metric whose value and chart are offered.
    """
    view = snapshot.series.get(metric)
    value = view.last if view is not None else snapshot.numbers.loss if metric == "loss" else None
    if value is not None:
        yield _copy(screen, f"value of {clean(metric, 40)}", repr(value))
    yield _copy(screen, "id", snapshot.run)
    if snapshot.argv:
        yield _copy(screen, "command", shlex.join(snapshot.argv))
    yield _copy(screen, "folder of the run", str(snapshot.dir))
    if snapshot.output is not None:
        yield _copy(screen, "path of the log", str(snapshot.output))
    whole = [one for one in snapshot.checkpoints if one.complete]
    if whole:
        yield _copy(screen, "newest checkpoint", str(max(whole, key=lambda one: one.time).path))
    best = next((one for one in whole if one.best), None)
    if best is not None:
        yield _copy(screen, "best checkpoint", str(best.path))
    yield report_entry(screen, [snapshot])
    for form in ("svg", "png", "csv"):
        about = "every point of every metric" if form == "csv" else f"the chart of {clean(metric, 40)}"
        why_not = "" if view is not None or form == "csv" else f"{clean(metric, 40)} has no curve here: open the run"
        if form == "png" and not draws_png():
            why_not = "a PNG needs Pillow (pip install pillow); SVG needs nothing"
        make = partial(screen.context.services.export, snapshot, metric, form)
        write = partial(_write, screen, f"{form.upper()} file", make)
        yield Entry(
            f"{form.upper()} file", f"{about}, written to the current folder", write, why_not=why_not, writes=True
        )


@cache
def draws_png() -> bool:
    """True if the library that draws PNG files is installed."""
    return find_spec("PIL") is not None


def _copy(screen: ActingScreen, name: str, text: str) -> Entry:
    def go() -> None:
        screen.app.copy_to_clipboard(text)
        screen.context.say(f"sent the {name} to the terminal's clipboard (OSC 52)")

    return Entry(name, clean(text, 200), go)


def report_entry(screen: ActingScreen, snapshots: Sequence[RunSnapshot]) -> Entry:
    """Return the entry for the report of a run, or of several side by side."""
    host, runs = next((one.host for one in snapshots if one.host), ""), " ".join(one.run for one in snapshots)
    several = f" of these {len(snapshots)} runs" if len(snapshots) > 1 else ""
    about = f"a page{several} to send: curves, settings, events, end of the log; written to the current folder"
    services = screen.context.services
    write = partial(_write, screen, "report", lambda: services.report(snapshots))
    far = f"mpstui report {runs} --host {host} writes it" if host else ""
    return Entry(f"report{several} (HTML)", about, write, why_not=clean(far, 200), writes=True)


def _write(screen: ActingScreen, what: str, make: Callable[[], Path]) -> None:
    """Write a file into the folder where mpstui was opened, on a separate thread."""

    def write() -> Toast:
        return Toast(f"wrote {clean(shown.short_paths(str(make()), Path.cwd()), 300)}")

    screen.context.requests.do(what, write)
