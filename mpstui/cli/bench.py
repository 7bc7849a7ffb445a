"""`mpstui bench`: what the device, bf16, compile and loaders are worth on this machine, measured."""

from __future__ import annotations

import argparse
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from ..core.bench.deviation import STEPS, TOLERANCE
from ..core.bench.measure import BenchConfig, BenchPlan, BenchProgress, Measurement, bench_configs, run_bench
from ..core.bench.report import BenchReport, report_folder, save
from ..core.bench.training import require_task
from ..core.launching.choice import parse_sets
from ..core.launching.command import argument_words
from ..core.launching.requirements import require_device, require_modules
from ..core.machine import DEVICES, Machine, this_machine, trainer_module
from ..core.model.errors import UsageError
from .bench_text import LiveLine, place_lines, places, progress_text, report_lines, surroundings
from .session import Session, print_json, warn

HELP = (
    "Measure a shipped training on this machine: CPU, device, bf16, compile and loaders, each in its own process."
    " --compare-devices looks for wrong results instead, --profiles races two profiles. Ctrl-C keeps what was measured."
)
INTERRUPTED = 130
BUDGET_SECONDS = {"cpu": 120.0}
USUAL_BUDGET_SECONDS = 600.0
_MEASURE_SECONDS = {"cpu": 4.0}
_USUAL_MEASURE_SECONDS = 8.0
_REPEATS = {"cpu": 1}
_USUAL_REPEATS = 3
_LONGEST_CPU_STEP_SECONDS = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", nargs="?", help="a task of the shipped trainer, such as cifar")
    parser.add_argument(
        "--device", default="auto", metavar="auto|mps|cuda|cpu", help="the device to measure beside the CPU"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the report goes (default: the state folder)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="sets",
        help="a further argument of the trainer (or of both profiles), the same everywhere",
    )
    parser.add_argument("--budget", type=float, metavar="S", help="seconds for all (cpu alone 120, else 600)")
    parser.add_argument("--seconds", type=float, metavar="S", help="seconds of steps timed a process (cpu 4, else 8)")
    _add_modes(parser)
    configs = parser.add_argument_group("measuring speed")
    configs.add_argument(
        "--repeat", type=int, metavar="N", help="processes for each configuration (cpu alone 1, else 3)"
    )
    configs.add_argument("--no-loaders", action="store_true", help="leave out where batches come from")
    configs.add_argument("--full-size", action="store_true", help="the task's own batch on the CPU, however slow")


def _add_modes(parser: argparse.ArgumentParser) -> None:
    wrong = parser.add_argument_group("instead of speed: wrong results")
    wrong.add_argument(
        "--compare-devices", action="store_true", help="the same steps on the CPU and the device: where do they part?"
    )
    wrong.add_argument("--steps", type=int, metavar="N", help=f"steps to take ({STEPS}); with --profiles: where to end")
    wrong.add_argument("--tolerance", type=float, default=TOLERANCE, metavar="X", help=f"relative ({TOLERANCE:g})")
    race = parser.add_argument_group("instead of a task: two profiles")
    race.add_argument("--profiles", nargs=2, metavar=("A", "B"), help="an original and an optimised one, side by side")


def run(args: argparse.Namespace) -> int:
    _require_sense(args)
    # A lost line or a stop ends what was started and keeps what was measured, as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    session, machine = Session(), this_machine()
    if args.profiles:
        from .bench_race import race

        return race(args, session, machine)
    require_modules([machine.python, "-m", trainer_module()], session.environ, machine)
    require_task(args.task, machine.python, session.environ)
    device, refusals = _device(args.device, session, machine)
    if args.compare_devices:
        from .bench_compare import compare

        return compare(args, session, machine, device, refusals)
    return _BenchCommand(args, session, machine, device, refusals).run()


def _require_sense(args: argparse.Namespace) -> None:
    """Refuse what cannot be meant.

    Raises:
        UsageError: no task, or two modes, or a number that is none.
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
    """One bench as a command: the live line, the report on disk after every configuration, the table in the end."""

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
    """The device to measure, and why there is no accelerator where that is the CPU."""
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
