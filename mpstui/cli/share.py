"""`mpstui report` and `mpstui export`: a page to send, metrics for other programs, charts as pictures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ..core.model.errors import OperationError, UsageError
from ..core.model.snapshot import RunSnapshot
from ..core.runs.monitor import Monitor
from ..wire import storage
from .session import RUN_OR_PATH_HELP, Session, keys_of, one_run, say, warn

T = TypeVar("T")
FOLLOW_SECONDS = 10.0
FOLDERS = ("tensorboard", "wandb", "mlflow", "trackio")
_PICTURES = ("svg", "png")
HERE = (*FOLDERS, *_PICTURES)
"""Formats written on this machine even for another machine's run: folders of several files, and pictures."""
_TO = ("csv", "parquet", *HERE)


def configure_report(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The page needs no server and loads nothing: send it, or put it anywhere. A folder or a log that mpstui did not start
can stand in place of a run. Arguments and environment are shown with their secrets masked. Examples:
  mpstui report RUN                        writes NAME.html here
  mpstui report RUN OTHER -o both.html     two runs, their curves over each other
  mpstui report RUN -o live.html --follow  rewrites it until the run has ended; an open page follows"""
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_OR_PATH_HELP)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the page (default: NAME.html); - prints it")
    parser.add_argument("--title", default="", help="its heading (default: the names)")
    parser.add_argument("--follow", action="store_true", help="keep rewriting it until the runs have ended")
    parser.add_argument(
        "--every", type=float, default=FOLLOW_SECONDS, metavar="S", help="seconds between two writes (default: 10)"
    )


def run_report(args: argparse.Namespace) -> int:
    from ..core.sharing.export import write_file
    from ..core.sharing.page import MOST_RUNS, columns_for, page

    if len(args.runs) > MOST_RUNS:
        raise UsageError(f"{len(args.runs)} runs on one page", f"it holds {MOST_RUNS}; `mpstui results` tabulates more")
    require_place(args)
    if not args.every >= 1:
        raise UsageError(f"--every {args.every:g} is too short", "a page is rewritten every second at most")
    session = Session()
    first = Monitor(session.home)
    keys = _keys(first, session, args.runs)
    if len(keys) > MOST_RUNS:
        raise UsageError(f"{len(keys)} runs on one page", f"it holds {MOST_RUNS}; name some of them")
    curves = sum(len(first.snapshot(key).series) for key in keys)
    monitor = Monitor(session.home, columns=columns_for(curves))
    keys = _keys(monitor, session, args.runs)
    snapshots = [monitor.snapshot(key) for key in keys]
    target = _target(args.output, snapshots, "html")
    reload = args.every if args.follow else None
    while True:
        live = [one for one in snapshots if not one.is_over]
        text = page(snapshots, reload_seconds=reload, title=args.title)
        try:
            write_file(target, text.encode("utf-8", "replace"))
        except BrokenPipeError:
            raise
        except OSError as error:
            if not (args.follow and live):
                raise OperationError(f"{target} cannot be written: {error.strerror or error}") from error
            warn(f"{target} could not be written: {error.strerror or error}; trying again in {args.every:g} s")
        if not args.follow or not live:
            break
        time.sleep(args.every)
        snapshots = [monitor.snapshot(key) for key in keys]
    say_where(target)
    return 0


def _keys(monitor: Monitor, session: Session, words: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(key for word in words for key in keys_of(monitor, session.home, word)))


def configure_export(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
A table has a row for each moment at which something was measured: step, epoch, time (Unix seconds), then a column for
each metric. What a restarted attempt measured again counts once. Examples:
  mpstui export RUN --to csv
  mpstui export RUN --to csv -o - | column -s, -t
  mpstui export RUN OTHER --to csv -o tables/    a file for each
  mpstui export RUN --to tensorboard -o logs/    then: tensorboard --logdir logs
  mpstui export RUN --to wandb                   then: wandb sync wandb/offline-run-*
  mpstui export RUN --to mlflow                  then: mlflow ui --backend-store-uri ./mlruns
  mpstui export RUN --to trackio                 then: TRACKIO_DIR=trackio trackio show
  mpstui export RUN --to svg --metric val_loss   the chart as a picture"""
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_OR_PATH_HELP)
    parser.add_argument("--to", required=True, choices=_TO, help="what to write")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="file, or folder (default: named as the run); - prints a file"
    )
    parser.add_argument("--metric", default="loss", help="which chart, for svg and png (default: loss)")
    parser.add_argument("--theme", choices=("light", "dark"), default="light", help="of a picture (default: light)")
    parser.set_defaults(several=False)
    parser.add_argument("--undrawn", action="store_true", help=argparse.SUPPRESS)  # data that another machine draws


def run_export(args: argparse.Namespace) -> int:
    from ..core.sharing import export

    require_place(args)
    session = Session()
    keys = _exported(session, args.runs)
    require_folder(args, len(keys))
    monitor = Monitor(session.home, columns=None if args.to in _PICTURES else export.MOST_POINTS)

    def write(key: str) -> None:
        watched = one_run(monitor, session.home, key)
        try:
            _export(monitor.snapshot(watched), args)
        finally:
            if (reader := monitor.reader(watched)) is not None:
                reader.rest()  # free it: the next one may be as long

    return 0 if write_each(keys, write) else 1


class Lacks(OperationError):
    """A run has none of what is asked for."""

    def __init__(self, sentence: str, hint: str, exit_code: int) -> None:
        super().__init__(sentence, hint)
        self.exit_code = exit_code


def write_each(runs: Sequence[T], write: Callable[[T], None]) -> bool:
    """Write each run; of several, those that lack what is asked for are skipped. True if all were written.

    Raises:
        Lacks: the only run lacks it.
    """
    lacking = 0
    for one in runs:
        try:
            write(one)
        except Lacks as error:
            if len(runs) == 1:
                raise
            lacking += 1
            warn(f"{error.sentence}; {error.hint}")
    return not lacking


def _exported(session: Session, words: Sequence[str]) -> list[str]:
    """Return the keys of the runs that the words mean, each once; a path that is itself a run means that one."""
    from ..core.runs.stored_once import meant

    monitor = Monitor(session.home)
    found = [key for word in words for key in meant(Path(word), keys_of(monitor, session.home, word))]
    if not found:
        one_run(monitor, session.home, words[0])
    return list(dict.fromkeys(found))


def _export(snapshot: RunSnapshot, args: argparse.Namespace) -> None:
    from ..core.sharing import export

    if not snapshot.series:
        raise Lacks(f"{snapshot.name} has no metrics to export", "`mpstui logs` prints its output", 1)
    thinned: Sequence[str] = ()
    target = _target(args.output, [snapshot], args.to)
    try:
        if args.undrawn:
            export.write_file(target, _told(snapshot))
        elif args.to in _PICTURES:
            export.write_file(target, picture_of(snapshot, args))
        elif args.to in export.TABLES:
            table = export.table_of(snapshot)
            export.TABLES[args.to](table, target)
            thinned = table.thinned
        else:
            target, thinned = write_tracked(snapshot, args)
        for name in thinned:
            warn(f"{name} has more points than {export.MOST_POINTS:,}: every few of them are one row")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OperationError(f"{error.filename or target} cannot be written: {error.strerror or error}") from error
    say_where(target)


def require_folder(args: argparse.Namespace, count: int) -> None:
    """Make sure that several files go to a folder, and that TensorBoard finds each run in its own.

    Raises:
        UsageError: they cannot. OperationError: the folder cannot be made.
    """
    if count < 2:
        return
    if args.output is not None and (str(args.output) == "-" or (args.output.exists() and not args.output.is_dir())):
        raise UsageError(f"{count} runs are {count} files, which {args.output} cannot take", "name a folder: -o FOLDER")
    args.several = True
    if args.output is not None:
        try:
            args.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OperationError(f"{args.output} cannot be made: {error.strerror or error}") from error


def say_where(target: Path) -> None:
    """Say what was written, unless that would end up in the written output."""
    from ..core.sharing.export import is_standard_output

    if not is_standard_output(target):
        say(str(target))


def require_place(args: argparse.Namespace) -> None:
    """Refuse to write to standard output what is not a single file, or is rewritten."""
    if str(args.output) != "-":
        return
    if getattr(args, "to", None) in FOLDERS:
        raise UsageError(f"--to {args.to} makes a folder, which the standard output cannot take", "name it: -o FOLDER")
    if getattr(args, "follow", False):
        raise UsageError("--follow rewrites a file, which the standard output is not", "name it: -o FILE")


def _target(chosen: Path | None, snapshots: Sequence[RunSnapshot], ending: str) -> Path:
    """Return the file to write: a chosen one replaces what is there, a name of our own never does."""
    from ..core.sharing.export import unused_path

    if chosen is not None and not chosen.is_dir():
        return chosen
    more = f"-and-{len(snapshots) - 1}-more" if len(snapshots) > 1 else ""
    return unused_path(chosen or Path(), snapshots[0].name + more, ending)


def _event_file(chosen: Path | None, snapshot: RunSnapshot, *, several: bool) -> Path:
    """Return where to write events: TensorBoard takes each folder for a run, and knows event files by name."""
    from ..core.sharing.export import file_stem, run_stem

    folder = chosen or Path("tensorboard" if several else f"{file_stem(snapshot.name)}-tensorboard")
    folder = folder / run_stem(snapshot) if several else folder
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"events.out.tfevents.{int(snapshot.started or 0)}.{run_stem(snapshot)}"


def picture_of(snapshot: RunSnapshot, args: argparse.Namespace) -> bytes:
    """Return the requested chart as a file's content.

    Raises:
        Lacks: the run has no such metric.
    """
    from ..ui.charting.picture import as_png, as_svg

    if args.metric not in snapshot.series:
        known = ", ".join(list(snapshot.series)[:8])
        raise Lacks(f"{snapshot.name} has no metric {args.metric!r}", f"it has {known}", 2)
    make = as_svg if args.to == "svg" else as_png
    return make(snapshot, args.metric, dark=args.theme == "dark")


def write_tracked(snapshot: RunSnapshot, args: argparse.Namespace) -> tuple[Path, Sequence[str]]:
    """Write a run in a tracker's format, with all that is known; returns its place, and which metrics were thinned."""
    from ..core.sharing import trackers

    run = trackers.tracked(snapshot)
    if args.to == "tensorboard":
        from ..core.sharing.event_file import write_event_file

        target = _event_file(args.output, snapshot, several=args.several)
        write_event_file(snapshot, run, target)
    else:
        target = trackers.write(run, args.to, args.output or Path(trackers.FOLDERS[args.to]))
    return target, run.thinned


def told_run(data: bytes) -> RunSnapshot:
    """Decode another machine's run, to be drawn or written here: over there, there is nothing to draw with."""
    from ..core.hosts.codec import form_of
    from ..core.hosts.forms import EXACT

    found: RunSnapshot = form_of(RunSnapshot).decode(storage.load_object(data), EXACT)
    return found


def _told(snapshot: RunSnapshot) -> bytes:
    from ..core.hosts.codec import form_of
    from ..core.hosts.forms import EXACT

    return storage.dump_bytes(form_of(RunSnapshot).encode(snapshot, EXACT))
