"""`mpstui bench TASK --gpus 1,2,4`: measure how a training scales over several GPUs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial

from ..core.bench.scaling import ScalingReport, scaling_configs
from ..core.machine import Machine, visible_gpus
from ..core.model.errors import UsageError
from ..core.present import UNKNOWN
from .bench import busy_lines, measure, paragraph, plan_of
from .session import Session

MOST = 1024


def scale(
    args: argparse.Namespace, session: Session, machine: Machine, device: str, refusals: Mapping[str, str]
) -> int:
    """Measure with each number of processes.

    Raises:
        UsageError: ``--gpus`` is not a list of counts.
    """
    words = [word.strip() for word in args.gpus.split(",")]
    if not all(word.isdecimal() and 0 < int(word) <= MOST for word in words):
        raise UsageError(f"--gpus {args.gpus!r} is no list of counts", "such as --gpus 1,2,4", field="gpus")
    available: int | None = machine.cores
    if device == "cuda":
        seen = visible_gpus(session.environ, machine.gpus())
        available = len(seen.names) if seen else None
    counts = [int(word) for word in words]
    configs = scaling_configs(device, counts, available=available, cores=machine.cores, shard=args.shard)
    report = partial(ScalingReport, why_cpu=" and ".join(refusals.values()))
    return measure(args, session, machine, device, plan_of(args, device, configs), report, scaling_lines)


def scaling_lines(report: ScalingReport, width: int) -> Iterator[str]:
    """Yield a row per count; one that was not measured has the reason in place of numbers."""
    yield f"{'':<14}{'step ms':>9}{'samples/s':>12}{'each':>10}{'efficiency':>12}"
    for one in report.rows:
        if one.step_seconds is None:
            yield f"{one.config.name:<14} not measured"
            yield from paragraph(one.error or "", width, indent=4)
            continue
        speed, share = one.samples_per_second, report.efficiency(one)
        each = speed / one.config.processes if speed else None
        shown = f"{speed:>12,.1f}{each:>10,.1f}" if speed and each else f"{UNKNOWN:>12}{UNKNOWN:>10}"
        kept = UNKNOWN if share is None else f"{share:.3f}"
        yield f"{one.config.name:<14}{one.step_seconds.median * 1000:>9,.1f}{shown}{kept:>12}"
    yield ""
    for note in report.notes:
        yield from paragraph(f"note: {note}", width)
    yield from busy_lines(report.machine, width)
    if not report.complete:
        yield from paragraph("not complete: what is missing was not measured", width)
