"""`mpstui bench`: what the device, bf16, compile and loaders are worth on this machine, measured."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from ..core.bench.deviation import STEPS, TOLERANCE
from ..core.bench.measure import (
    DEVICE_GROUP,
    LOADERS,
    BenchConfig,
    BenchPlan,
    BenchProgress,
    Measurement,
    bench_configs,
    run_bench,
)
from ..core.bench.report import BenchReport, Surroundings, report_folder, save
from ..core.bench.training import require_task
from ..core.launching.choice import parse_sets
from ..core.launching.command import argument_words
from ..core.launching.requirements import require_modules
from ..core.machine import DEVICES, Machine, require_device, this_machine, trainer_module
from ..core.model.errors import UsageError
from .main import INTERRUPTED
from .session import Session, one_line, print_json, warn

BUDGET_SECONDS = {"cpu": 120.0}
USUAL_BUDGET_SECONDS = 600.0
_MEASURE_SECONDS = {"cpu": 4.0}
_USUAL_MEASURE_SECONDS = 8.0
_REPEATS = {"cpu": 1}
_USUAL_REPEATS = 3
_LONGEST_CPU_STEP_SECONDS = 0.5
NARROWEST = 40
_NAME = 21
_INDENT = 4
_HEADS = ("step ms", "range", "samples/s", "×", "memory")
_WIDTHS = (8, 15, 10, 6, 9)
_DROPPED_FIRST = ("memory", "range")
"""Columns that a narrow terminal does without."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Trains TASK once in each configuration, each in a process of its own. Ctrl-C keeps what was measured.
Examples:
  mpstui bench cifar
  mpstui bench cifar --compare-devices --steps 50
  mpstui bench --profiles original optimised"""
    parser.add_argument("task", metavar="TASK", nargs="?", help="a task of the shipped trainer, such as cifar")
    parser.add_argument("--device", default="auto", metavar="auto|mps|cuda|cpu", help="fastest device to measure")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the report (default: in the state folder)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="sets",
        help="set an argument of the trainer, or of both profiles; may be repeated",
    )
    parser.add_argument("--budget", type=float, metavar="S", help="seconds in all (600; CPU alone: 120)")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="seconds of steps to time in each process (8; CPU alone: 4)"
    )
    _add_modes(parser)
    configs = parser.add_argument_group("configurations")
    configs.add_argument("--repeat", type=int, metavar="N", help="processes for each configuration (3; CPU alone: 1)")
    configs.add_argument("--no-loaders", action="store_true", help="do not measure data loaders")
    configs.add_argument("--full-size", action="store_true", help="keep the task's batch size on the CPU, however slow")


def _add_modes(parser: argparse.ArgumentParser) -> None:
    wrong = parser.add_argument_group("compare devices")
    wrong.add_argument(
        "--compare-devices",
        action="store_true",
        help="take the same steps on CPU and device; name the first operation that differs",
    )
    wrong.add_argument(
        "--steps", type=int, metavar="N", help=f"steps to take ({STEPS}); with --profiles: step to end at"
    )
    wrong.add_argument(
        "--tolerance", type=float, default=TOLERANCE, metavar="X", help=f"relative difference allowed ({TOLERANCE:g})"
    )
    race = parser.add_argument_group("compare profiles")
    race.add_argument(
        "--profiles", nargs=2, metavar=("A", "B"), help="run two profiles, and compare step time, memory and loss"
    )


def run(args: argparse.Namespace) -> int:
    _require_sense(args)
    # A hangup or SIGTERM ends what was started and keeps what was measured, as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    session, machine = Session(), this_machine()
    if args.profiles:
        from .bench_modes import race

        return race(args, session, machine)
    require_modules([machine.python, "-m", trainer_module()], session.environ, machine)
    require_task(args.task, machine.python, session.environ)
    device, refusals = _device(args.device, session, machine)
    if args.compare_devices:
        from .bench_modes import compare

        return compare(args, session, machine, device, refusals)
    return _BenchCommand(args, session, machine, device, refusals).run()


def _require_sense(args: argparse.Namespace) -> None:
    """Refuse arguments that contradict each other.

    Raises:
        UsageError: no task, two modes, or a number that is not positive.
    """
    if args.profiles and (args.task or args.compare_devices):
        raise UsageError("--profiles takes two profiles and no TASK", "such as `mpstui bench --profiles A B`")
    if args.task is None and not args.profiles:
        raise UsageError("bench needs a TASK", "such as `mpstui bench cifar`")
    if args.steps and not (args.profiles or args.compare_devices):
        raise UsageError("--steps goes with --compare-devices or --profiles", "otherwise --seconds of steps are timed")
    for name in ("budget", "seconds", "repeat", "steps", "tolerance"):
        value = getattr(args, name)
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"--{name} {value:g} is not above 0")


class _BenchCommand:
    """One measurement: the live line, the report on disk after every configuration, the table at the end."""

    def __init__(
        self,
        args: argparse.Namespace,
        session: Session,
        machine: Machine,
        device: str,
        refusals: Mapping[str, str],
    ) -> None:
        self._args = args
        self._session = session
        self._machine = machine
        self._device = device
        self._plan = _plan(args, device, refusals)
        self._found: dict[BenchConfig, Measurement] = {}
        self._started = time.time()
        self._surroundings = surroundings(machine)
        self._width = shutil.get_terminal_size().columns
        self._line = LiveLine(width=self._width)
        self._folder: Path | None = args.out

    def run(self) -> int:
        """Measure, report; the exit code."""
        interrupted = False
        try:
            for one in run_bench(
                self._plan, python=self._machine.python, environ=self._session.environ, watch=self._watch
            ):
                self._found[one.config] = one
                self._keep(complete=False)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._line.clear()
        report = self._keep(complete=not interrupted)
        self._tell(report)
        if interrupted:
            warn("interrupted: the report holds what was measured until then")
            return INTERRUPTED
        return 0 if any(one.step_seconds for one in self._found.values()) else 1

    def _watch(self, progress: BenchProgress) -> None:
        beginning = f"{progress.config.name}: at most {progress.limit_seconds:.0f} s"
        done = sum(1 for one in self._found.values() if not one.config.refusal)
        total = sum(1 for config in self._plan.configs if not config.refusal)
        self._line.show(f"[{done}/{total}] {progress_text(progress)}", f"[{done}/{total}] {beginning}")

    def _keep(self, *, complete: bool) -> BenchReport:
        if self._folder is None:
            self._folder = report_folder(self._session.home, self._plan.task, self._started)
        report = BenchReport(
            plan=self._plan,
            device=self._device,
            machine=self._surroundings,
            started=self._started,
            measurements=self._found,
            complete=complete,
        )
        save(self._folder, report.as_json(), report.svg())
        return report

    def _tell(self, report: BenchReport) -> None:
        if self._args.json:
            print_json({**report.as_json(), "report": places(self._folder)})
            return
        print("\n".join([*report_lines(report, self._width), *place_lines(self._folder)]))


def _plan(args: argparse.Namespace, device: str, refusals: Mapping[str, str]) -> BenchPlan:
    return BenchPlan(
        task=args.task,
        configs=bench_configs(device, refusals, loaders=not args.no_loaders),
        budget_seconds=args.budget or BUDGET_SECONDS.get(device, USUAL_BUDGET_SECONDS),
        measure_seconds=args.seconds or _MEASURE_SECONDS.get(device, _USUAL_MEASURE_SECONDS),
        repeats=args.repeat or _REPEATS.get(device, _USUAL_REPEATS),
        longest_step_seconds=None if args.full_size else _LONGEST_CPU_STEP_SECONDS,
        arguments=tuple(argument_words(parse_sets(args.sets), "options")),
    )


def _device(asked: str, session: Session, machine: Machine) -> tuple[str, dict[str, str]]:
    """The fastest device to measure; where that is the CPU, also why there is no other."""
    if asked not in DEVICES:
        raise UsageError(f"there is no device {asked!r}", f"one of {', '.join(DEVICES)}", field="device")
    if asked != "auto":
        require_device(asked, machine.python, session.environ, machine)
        return asked, {}
    found = machine.interpreter.devices(machine.python, session.environ)
    best = next((device for device in ("cuda", "mps") if found.get(device)), None)
    if best:
        return best, {}
    wanted = "mps" if machine.system == "Darwin" else "cuda"
    return "cpu", {wanted: f"torch in {machine.python} sees no {wanted} device on this machine"}


def report_lines(report: BenchReport, width: int) -> Iterator[str]:
    """Both groups as tables; a row that was not measured has the reason beneath it."""
    columns = _columns(width)
    for group, title in ((DEVICE_GROUP, "device"), (LOADERS, "batches")):
        found = report.group(group)
        if found:
            yield _row(title, [_HEADS[at] for at in columns], columns)
            for one in found:
                yield from _measurement(report, one, columns, width)
            yield ""
    yield from _remarks(report, width)


def progress_text(progress: BenchProgress) -> str:
    """What is being done, for how long, and for how long at most."""
    times = f"{progress.elapsed_seconds:.0f} s of at most {progress.limit_seconds:.0f} s"
    return f"{progress.config.name}: {progress.doing} · {times}"


def paragraph(text: str, width: int, indent: int = 0) -> Iterator[str]:
    """Wrapped to the width, every line indented."""
    yield from textwrap.wrap(
        one_line(text), max(width, NARROWEST), initial_indent=" " * indent, subsequent_indent=" " * indent
    )


def places(folder: Path | None) -> dict[str, str]:
    """Where a report lies, for JSON."""
    return {"json": str(folder / "report.json"), "svg": str(folder / "report.svg")} if folder else {}


def place_lines(folder: Path | None) -> list[str]:
    """Where a report lies, for people; a path is never broken."""
    return [f"report: {folder / 'report.svg'}", f"        {folder / 'report.json'}"] if folder else []


def surroundings(machine: Machine) -> Surroundings:
    """This machine, and how busy it is now."""
    return Surroundings(
        system=machine.system,
        architecture=machine.architecture,
        cores=machine.cores,
        load_average=os.getloadavg()[0],
    )


def busy_lines(found: Surroundings, width: int) -> Iterator[str]:
    """A note when other programs were busy."""
    if found.busy:
        busy = f"load {found.load_average:.1f} on {found.cores} cores"
        text = f"note: other programs were busy at the start ({busy}): times are longer and vary more than when idle"
        yield from paragraph(text, width)


def bytes_text(count: int | None) -> str:
    """Bytes as a person reads them; n/a when unknown."""
    if count is None:
        return "n/a"
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


class LiveLine:
    """One line on standard error that replaces itself on a terminal; elsewhere each new beginning is a line."""

    def __init__(self, stream: TextIO = sys.stderr, width: int = 80) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._width = width
        self._shown = ""

    def show(self, text: str, beginning: str = "") -> None:
        """Show it now; ``beginning`` is what stays the same while a thing is being done."""
        if self._live:
            cut = one_line(text)[: self._width - 1]
            if cut != self._shown:
                self._stream.write(f"\r{cut}\x1b[K")
                self._stream.flush()
        elif beginning != self._shown:
            print(one_line(beginning or text), file=self._stream, flush=True)
        self._shown = cut if self._live else beginning

    def clear(self) -> None:
        """Leave nothing of it behind."""
        if self._live and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._shown = ""


def _columns(width: int) -> list[int]:
    """The columns that fit."""
    kept = list(range(len(_HEADS)))
    for name in _DROPPED_FIRST:
        if _NAME + sum(_WIDTHS[at] for at in kept) > width:
            kept.remove(_HEADS.index(name))
    return kept


def _measurement(report: BenchReport, one: Measurement, columns: Sequence[int], width: int) -> Iterator[str]:
    if one.step_seconds is None:
        yield f"{one.config.name:<{_NAME}} not measured"
        yield from paragraph(one.error or "", width, _INDENT)
        return
    spread, speedup = one.step_seconds, report.speedup(one)
    values = (
        _milliseconds(spread.median),
        f"{_milliseconds(spread.low)} to {_milliseconds(spread.high)}",
        "n/a" if one.samples_per_second is None else f"{one.samples_per_second:,.1f}",
        "n/a" if speedup is None else f"{speedup:.2f}",
        bytes_text(one.memory_bytes),
    )
    yield _row(one.config.name, [values[at] for at in columns], columns)


def _row(name: str, values: Sequence[str], columns: Sequence[int]) -> str:
    cells = "".join(f"{value:>{_WIDTHS[at]}}" for value, at in zip(values, columns, strict=True))
    return f"{name:<{_NAME}}{cells}".rstrip()


def _remarks(report: BenchReport, width: int) -> Iterator[str]:
    notes = dict.fromkeys(note for found in report.measurements.values() for note in found.notes)
    for note in notes:
        yield from paragraph(f"note: {note}", width)
    yield from busy_lines(report.machine, width)
    if not report.complete:
        yield from paragraph("not complete: what is missing was not measured", width)


def _milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
