"""`mpstui bench`: what the device, bf16 and compile are worth on this machine, measured."""

from __future__ import annotations

import argparse
from typing import Any

from ..core.errors import UsageError
from ..core.ladder import STEPS, TIMEOUT_SECONDS, Measurement, climb
from ..core.launching import parse_sets
from ..core.launching.argument_words import argument_words
from ..core.launching.requirements import require_device, require_modules
from ..core.machine import Machine, this_machine
from .session import Session, print_json, say, warn

HELP = "Measure one of the shipped trainings on this machine: CPU, then the device, then with bf16, then with compile."
DEVICES = ("auto", "mps", "cuda", "cpu")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task of the shipped trainer, such as cifar")
    parser.add_argument("--device", default="auto", metavar="auto|mps|cuda|cpu", help="how far up the ladder")
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"steps a rung ({STEPS})")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, metavar="S", help="seconds a rung may take")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="sets",
        help="a further argument of the trainer, the same on every rung",
    )


def run(args: argparse.Namespace) -> int:
    session, machine = Session(), this_machine()
    if args.steps < STEPS // 10:
        raise UsageError(f"--steps {args.steps} is too few to measure", f"at least {STEPS // 10}")
    device = _device(args.device, session, machine)
    words = argument_words(parse_sets(args.sets), "options")
    measured = []
    for one in climb(
        args.task,
        device,
        python=machine.python,
        environ=session.environ,
        steps=args.steps,
        timeout_seconds=args.timeout,
        arguments=words,
    ):
        measured.append(one)
        if not args.json:
            say(_line(one, measured[0]))
        elif one.error:
            warn(f"{one.rung.name}: {one.error}")
    if args.json:
        rungs = [_as_json(one, measured[0]) for one in measured]
        print_json({"task": args.task, "device": device, "steps": args.steps, "rungs": rungs})
    return 0 if any(one.steps_per_second for one in measured) else 1


def _device(asked: str, session: Session, machine: Machine) -> str:
    """The device at the top of the ladder; the trainer must be there too."""
    if asked not in DEVICES:
        raise UsageError(f"there is no device {asked!r}", f"one of {', '.join(DEVICES)}")
    require_modules([machine.python, "-m", "trainer"], session.environ, machine)
    if asked != "auto":
        require_device(asked, machine.python, session.environ, machine)
        return asked
    found = machine.interpreter.devices(machine.python, session.environ)
    return next((device for device in ("cuda", "mps") if found.get(device)), "cpu")


def _line(one: Measurement, first: Measurement) -> str:
    name = f"{one.rung.name:<24}"
    if one.steps_per_second is None:
        return f"{name} not measured: {one.error}"
    speedup = _speedup(one, first)
    factor = f"{speedup:6.2f} x" if speedup else ""
    return f"{name} {_samples(one)} samples/s  {one.steps_per_second:8.2f} steps/s  {factor}"


def _samples(one: Measurement) -> str:
    return f"{'n/a':>9}" if one.samples_per_second is None else f"{one.samples_per_second:9.1f}"


def _as_json(one: Measurement, first: Measurement) -> dict[str, Any]:
    return {
        "rung": one.rung.name,
        "device": one.rung.device,
        "precision": one.rung.precision,
        "compile": one.rung.compile == "on",
        "steps_per_second": one.steps_per_second,
        "samples_per_second": one.samples_per_second,
        "speedup": _speedup(one, first),
        "seconds": one.seconds,
        "error": one.error,
    }


def _speedup(one: Measurement, first: Measurement) -> float | None:
    """Against the first rung, the CPU; None when either was not measured."""
    if not one.steps_per_second or not first.steps_per_second:
        return None
    return one.steps_per_second / first.steps_per_second
