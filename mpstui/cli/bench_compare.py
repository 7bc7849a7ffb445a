"""`mpstui bench TASK --compare-devices`: does the device compute what the CPU computes?"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from ..core.bench.deviation import STEPS, WRONG, Comparison, Question, compare_devices, explanation, share
from ..core.bench.report import Curve, curve_chart, report_folder, save
from ..core.launching.choice import parse_sets
from ..core.launching.command import argument_words
from ..core.machine import Machine
from ..core.model.errors import UsageError
from ..core.present.format import NOT_FINITE
from .bench_text import LiveLine, paragraph, place_lines, places, surroundings
from .session import Session, print_json

_MOST_LOSSES = 6
_MOST_NAMED = 5
_USUAL_LIMIT_SECONDS = 600.0


def compare(
    args: argparse.Namespace, session: Session, machine: Machine, device: str, refusals: Mapping[str, str]
) -> int:
    """Compare and tell: 0 when nothing computes wrong, 1 when something does.

    Raises:
        UsageError: there is no device to compare with.
    """
    if refusals:
        why = " and ".join(refusals.values())
        raise UsageError(f"there is nothing to compare the CPU with: {why}", "`--device cpu` compares it with itself")
    started, width = time.time(), shutil.get_terminal_size().columns
    question = Question(
        task=args.task,
        device=device,
        steps=args.steps or STEPS,
        tolerance=args.tolerance,
        limit_seconds=args.budget or _USUAL_LIMIT_SECONDS,
        arguments=tuple(argument_words(parse_sets(args.sets), "options")),
    )
    line = LiveLine(width=width)
    try:
        found = compare_devices(
            question,
            python=machine.python,
            environ=session.environ,
            watch=lambda doing: line.show(doing, doing.partition(" · ")[0]),
        )
    finally:
        line.clear()
    document = {**found.as_json(), "started": started, "machine": asdict(surroundings(machine))}
    document["explanation"] = explanation(found)
    folder = args.out or report_folder(session.home, f"{args.task} compare", started)
    save(folder, document, _picture(found))
    if args.json:
        print_json({**document, "report": places(folder)})
    else:
        print("\n".join([*comparison_lines(found, width), "", *place_lines(folder)]))
    return 1 if found.verdict == WRONG else 0


def comparison_lines(found: Comparison, width: int) -> Iterator[str]:
    """The verdict first, then what it rests on."""
    for sentence in explanation(found):
        yield from paragraph(sentence, width)
    yield ""
    trace, question = found.decisive, found.question
    operations = trace["operations"]
    yield f"operations of step {trace['traced_step']}: {operations['compared']} compared, {operations['parted']} apart"
    for one in operations["first"][:_MOST_NAMED]:
        yield f"  {_apart(one['apart'])}  {one['operation'].rpartition('.')[2]} · {one['layer']}"
    yield ""
    yield from _losses(found)
    for title, name in (("gradients", "gradients"), (f"parameters after step {question.steps}", "parameters")):
        yield ""
        yield f"{title}, the farthest apart"
        for one in trace[name][:_MOST_NAMED]:
            yield f"  {_apart(one['apart'])}  {one['name']}"


def _losses(found: Comparison) -> Iterator[str]:
    """The first losses, the last, and the one that parts."""
    yield f"{'step':>6} {found.question.reference:>12} {found.question.device:>12} {'apart':>9}"
    losses, parts = found.first["losses"], found.parting_step
    shown = {*range(1, _MOST_LOSSES - 1), parts, losses[-1]["step"]}
    for one in losses:
        if one["step"] in shown:
            mark = " <- parts" if one["step"] == parts else ""
            values = f"{_loss(one['reference']):>12} {_loss(one['loss']):>12}"
            yield f"{one['step']:>6} {values} {_apart(one['apart'])}{mark}"


def _apart(value: float | None) -> str:
    return f"{NOT_FINITE if value is None else share(value):>9}"


def _loss(value: float | None) -> str:
    return NOT_FINITE if value is None else f"{value:.6g}"


def _picture(found: Comparison) -> str:
    question, losses = found.question, found.first["losses"]
    steps = [one["step"] for one in losses]
    curves = [
        Curve(question.reference, steps, [one["reference"] for one in losses]),
        Curve(question.device, steps, [one["loss"] for one in losses]),
    ]
    title = f"mpstui bench {question.task}: {question.reference} against {question.device}"
    return curve_chart(title, explanation(found)[0], curves, "step", "loss")
