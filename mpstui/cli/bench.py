"""`mpstui bench`: measure what the device, bf16, compile and data loaders gain on this machine."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

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
from ..core.bench.scaling import ScalingReport
from ..core.bench.training import require_task
from ..core.launching.choice import parse_sets
from ..core.launching.command import argument_words
from ..core.launching.preflight import require_modules
from ..core.machine import DEVICES, Machine, require_device, this_machine, trainer_module, with_trainers
from ..core.model.errors import UsageError
from ..core.present import UNKNOWN, size
from .main import INTERRUPTED
from .session import Session, add_repeatable, one_line, print_json, say_lines, warn

_NAME = 21
_HEADS = ("step ms", "range", "samples/s", "×", "memory")
_WIDTHS = (8, 15, 10, 6, 9)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Trains TASK once in each configuration, each in a process of its own. Ctrl-C keeps what was measured.
Examples:
  mpstui bench cifar
  mpstui bench cifar --gpus 1,2,4 --set batch-size=1024
  mpstui bench cifar --compare-devices --steps 50
  mpstui bench --profiles original optimised"""
    parser.add_argument("task", metavar="TASK", nargs="?", help="a task of the shipped trainer, such as cifar")
    parser.add_argument("--device", default="auto", metavar="auto|mps|cuda|cpu", help="fastest device to measure")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the report (default: in the state folder)")
    add_repeatable(parser, "--set", "KEY=VALUE", "set an argument of the trainer, or of both profiles")
    parser.add_argument("--budget", type=float, metavar="S", help="seconds in all (600; CPU alone: 120)")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="seconds of steps to time in each process (8; CPU alone: 4)"
    )
    configs = parser.add_argument_group("configurations")
    configs.add_argument("--repeat", type=int, metavar="N", help="processes for each configuration (3; CPU alone: 1)")
    configs.add_argument("--no-loaders", action="store_true", help="do not measure data loaders")
    configs.add_argument("--full-size", action="store_true", help="keep the task's batch size on the CPU, however slow")
    scale = parser.add_argument_group("several GPUs")
    scale.add_argument(
        "--gpus",
        metavar="N,N",
        help="train on this many GPUs together, such as 1,2,4, the same batch on each; on the CPU: processes",
    )
    scale.add_argument("--shard", action="store_true", help="with --gpus: divide weights and moments over them")
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
    if args.profiles and (args.task or args.compare_devices):
        raise UsageError("--profiles takes two profiles and no TASK", "such as `mpstui bench --profiles A B`")
    if args.task is None and not args.profiles:
        raise UsageError("bench needs a TASK", "such as `mpstui bench cifar`")
    if args.shard and not args.gpus:
        raise UsageError("--shard goes with --gpus", "such as `mpstui bench cifar --gpus 1,2 --shard`")
    if args.gpus and (args.profiles or args.compare_devices):
        raise UsageError("--gpus goes with neither --profiles nor --compare-devices", "give one of them")
    if args.steps and not (args.profiles or args.compare_devices):
        raise UsageError("--steps goes with --compare-devices or --profiles", "otherwise --seconds of steps are timed")
    for name in ("budget", "seconds", "repeat", "steps", "tolerance"):
        value = getattr(args, name)
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"--{name} {value:g} is not above 0")
    # A hangup or SIGTERM ends what was started and keeps what was measured, just as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, signal.default_int_handler)
    session, machine = Session(), this_machine()
    if args.profiles:
        from .bench_modes import race

        return race(args, session, machine)
    session.environ = with_trainers(session.environ)
    require_modules([machine.python, "-m", trainer_module()], session.environ, machine)
    require_task(args.task, machine.python, session.environ)
    device, refusals = _device(args.device, session, machine)
    if args.compare_devices:
        from .bench_modes import compare

        return compare(args, session, machine, device, refusals)
    if args.gpus:
        from .bench_scaling import scale

        return scale(args, session, machine, device, refusals)
    configs = bench_configs(device, refusals, loaders=not args.no_loaders)
    return measure(args, session, machine, device, plan_of(args, device, configs), BenchReport, report_lines)


def _device(asked: str, session: Session, machine: Machine) -> tuple[str, dict[str, str]]:
    """Return the fastest device and, if that is the CPU, why there is no other."""
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


R = TypeVar("R", BenchReport, ScalingReport)


def plan_of(args: argparse.Namespace, device: str, configs: tuple[BenchConfig, ...]) -> BenchPlan:
    """Return what to measure, and for how long: less if there is only a CPU."""
    alone = device == "cpu"
    return BenchPlan(
        task=args.task,
        configs=configs,
        budget_seconds=args.budget or (120.0 if alone else 600.0),
        measure_seconds=args.seconds or (4.0 if alone else 8.0),
        repeats=args.repeat or (1 if alone else 3),
        longest_step_seconds=None if args.full_size else 0.5,
        arguments=tuple(argument_words(parse_sets(args.set), "options")),
    )


def measure(
    args: argparse.Namespace,
    session: Session,
    machine: Machine,
    device: str,
    plan: BenchPlan,
    kind: Callable[..., R],
    lines: Callable[[R, int], Iterable[str]],
) -> int:
    """Measure each configuration in turn, save the report after each, and print the table at the end."""
    output = Output(args, session, args.task, machine)
    found: dict[BenchConfig, Measurement] = {}

    def watch(progress: BenchProgress) -> None:
        limit = f"at most {progress.limit_seconds:.0f} s"
        done, total = (sum(not one.refusal for one in configs) for configs in (found, plan.configs))
        beginning = f"[{done}/{total}] {progress.config.name}: "
        doing = f"{progress.doing} · {progress.elapsed_seconds:.0f} s of {limit}"
        output.line.show(beginning + doing, beginning + limit)

    def report(*, complete: bool) -> R:
        made = kind(
            plan=plan,
            device=device,
            machine=output.surroundings,
            started=output.started,
            measurements=found,
            complete=complete,
        )
        output.save(made.as_json(), made.svg())
        return made

    interrupted = False
    try:
        for one in run_bench(plan, python=machine.python, environ=session.environ, watch=watch):
            found[one.config] = one
            report(complete=False)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        output.line.clear()
    made = report(complete=not interrupted)
    output.tell(made.as_json(), lines(made, output.width))
    return output.exit_code(interrupted, any(one.step_seconds for one in found.values()))


class Output:
    """What all modes have in common: a line of progress, a report on disk, and at the end JSON or text."""

    def __init__(self, args: argparse.Namespace, session: Session, name: str, machine: Machine) -> None:
        self.started = time.time()
        self.width = shutil.get_terminal_size().columns
        self.line = LiveLine(width=self.width)
        self.surroundings = Surroundings(
            system=machine.system,
            architecture=machine.architecture,
            cores=machine.cores,
            load_average=os.getloadavg()[0],
        )
        self._args, self._home, self._name = args, session.home, name
        self._folder: Path | None = args.out

    def save(self, document: dict[str, Any], svg: str) -> None:
        """Write the report, replacing the one that this command wrote before."""
        self._folder = self._folder or report_folder(self._home, self._name, self.started)
        save(self._folder, document, svg)

    def tell(self, document: dict[str, Any], lines: Iterable[str]) -> None:
        """Print the result and where the report is."""
        places = {kind: str(self._folder / f"report.{kind}") for kind in ("json", "svg")} if self._folder else {}
        if self._args.json:
            print_json({**document, "report": places})
        else:
            say_lines("\n".join([*lines, f"report: {places['svg']}", f"        {places['json']}"]))

    def exit_code(self, interrupted: bool, well: bool) -> int:
        """Return the exit code; if Ctrl-C ended the measurement, also say so."""
        if interrupted:
            warn("interrupted: the report holds what was measured until then")
            return INTERRUPTED
        return 0 if well else 1


class LiveLine:
    """A progress line on standard error: redrawn on a terminal; elsewhere, a new line for each new ``beginning``."""

    def __init__(self, stream: TextIO = sys.stderr, width: int = 80) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._width = width
        self._shown = ""

    def show(self, text: str, beginning: str = "") -> None:
        """Show ``text``; ``beginning`` is the part that stays the same until the next task."""
        if self._live:
            cut = one_line(text)[: self._width - 1]
            if cut != self._shown:
                self._stream.write(f"\r{cut}\x1b[K")
                self._stream.flush()
        elif beginning != self._shown:
            self._stream.write(f"{one_line(beginning or text)}\n")
            self._stream.flush()
        self._shown = cut if self._live else beginning

    def clear(self) -> None:
        if self._live and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._shown = ""


def report_lines(report: BenchReport, width: int) -> Iterator[str]:
    """Yield both groups as tables, with the reason below each row that was not measured."""
    shown = list(range(len(_HEADS)))
    for name in ("memory", "range"):  # a narrow terminal does without them
        if _NAME + sum(_WIDTHS[at] for at in shown) > width:
            shown.remove(_HEADS.index(name))

    def row(name: str, values: Sequence[str]) -> str:
        return f"{name:<{_NAME}}{''.join(f'{values[at]:>{_WIDTHS[at]}}' for at in shown)}".rstrip()

    for group, title in ((DEVICE_GROUP, "device"), (LOADERS, "batches")):
        found = report.group(group)
        if found:
            yield row(title, _HEADS)
            for one in found:
                if one.step_seconds is None:
                    yield f"{one.config.name:<{_NAME}} not measured"
                    yield from paragraph(one.error or "", width, indent=4)
                    continue
                speedup, spread = report.speedup(one), one.step_seconds
                median, low, high = (
                    f"{seconds * 1000:,.0f}" if seconds >= 0.1 else f"{seconds * 1000:.3g}"
                    for seconds in (spread.median, spread.low, spread.high)
                )
                samples = UNKNOWN if one.samples_per_second is None else f"{one.samples_per_second:,.1f}"
                times = UNKNOWN if speedup is None else f"{speedup:.2f}"
                yield row(one.config.name, (median, f"{low} to {high}", samples, times, size(one.memory_bytes)))
            yield ""
    for note in dict.fromkeys(note for measured in report.measurements.values() for note in measured.notes):
        yield from paragraph(f"note: {note}", width)
    yield from busy_lines(report.machine, width)
    if not report.complete:
        yield from paragraph("not complete: what is missing was not measured", width)


def paragraph(text: str, width: int, indent: int = 0) -> Iterator[str]:
    """Wrap the text into lines of at most ``width`` characters, each indented."""
    margin = " " * indent
    yield from textwrap.wrap(one_line(text), max(width, 40), initial_indent=margin, subsequent_indent=margin)


def busy_lines(found: Surroundings, width: int) -> Iterator[str]:
    """Yield a note if other programs were busy when the benchmark began."""
    if found.busy:
        busy = f"load {found.load_average:.1f} on {found.cores} cores"
        longer = "times are longer and vary more than when idle"
        yield from paragraph(f"note: other programs were busy at the start ({busy}): {longer}", width)
