"""`mpstui bench TASK --compare-devices` and `mpstui bench --profiles A B`: compare two devices, or two profiles."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..core.bench.deviation import STEPS, WRONG, Comparison, Question, compare_devices, explanation, share
from ..core.bench.race import Entrant, Race, as_json, common_loss
from ..core.bench.report import Curve, curve_chart
from ..core.bench.training import Spread
from ..core.launching.choice import LaunchChoice, parse_sets
from ..core.launching.command import argument_words
from ..core.launching.planning import plan
from ..core.machine import Machine
from ..core.model.errors import UsageError
from ..core.present import NOT_FINITE, size
from ..core.profiles.library import load_profile
from ..core.telemetry.sampler import default_sampler
from .bench import Output, busy_lines, paragraph
from .launch import introduce
from .session import Session, warn

_MOST_LOSSES = 6
_MOST_NAMED = 5
_BUDGET_SECONDS = 600.0
_LABEL = 18


def compare(
    args: argparse.Namespace, session: Session, machine: Machine, device: str, refusals: Mapping[str, str]
) -> int:
    """Compare two devices; returns 0 if both compute right, 1 if something computes wrong.

    Raises:
        UsageError: there is no device to compare with.
    """
    if refusals:
        why = " and ".join(refusals.values())
        raise UsageError(f"there is nothing to compare the CPU with: {why}", "`--device cpu` compares it with itself")
    question = Question(
        task=args.task,
        device=device,
        steps=args.steps or STEPS,
        tolerance=args.tolerance,
        limit_seconds=args.budget or _BUDGET_SECONDS,
        arguments=tuple(argument_words(parse_sets(args.set), "options")),
    )
    output = Output(args, session, f"{args.task} compare", machine)
    try:
        found = compare_devices(
            question,
            python=machine.python,
            environ=session.environ,
            watch=lambda doing: output.line.show(doing, doing.partition(" · ")[0]),
        )
    finally:
        output.line.clear()
    facts = {"started": output.started, "machine": asdict(output.surroundings), "explanation": explanation(found)}
    document = {**found.as_json(), **facts}
    losses = found.first["losses"]
    steps = [one["step"] for one in losses]
    curves = [
        Curve(question.reference, steps, [one["reference"] for one in losses]),
        Curve(question.device, steps, [one["loss"] for one in losses]),
    ]
    title = f"mpstui bench {question.task}: {question.reference} against {question.device}"
    output.save(document, curve_chart(title, explanation(found)[0], curves, "step", "loss"))
    output.tell(document, [*comparison_lines(found, output.width), ""])
    return 1 if found.verdict == WRONG else 0


def comparison_lines(found: Comparison, width: int) -> Iterator[str]:
    """Yield the verdict, then the evidence for it."""
    for sentence in explanation(found):
        yield from paragraph(sentence, width)
    yield ""
    trace, question = found.decisive, found.question
    operations = trace["operations"]
    yield f"operations of step {trace['traced_step']}: {operations['compared']} compared, {operations['parted']} apart"
    for one in operations["first"][:_MOST_NAMED]:
        yield f"  {_apart(one['apart'])}  {one['operation'].rpartition('.')[2]} · {one['layer']}"
    yield ""
    yield f"{'step':>6} {question.reference:>12} {question.device:>12} {'apart':>9}"
    losses, parts = found.first["losses"], found.parting_step
    shown = {*range(1, _MOST_LOSSES - 1), parts, losses[-1]["step"]}
    for one in losses:
        if one["step"] in shown:
            mark = " <- parts" if one["step"] == parts else ""
            values = (NOT_FINITE if one[name] is None else f"{one[name]:.6g}" for name in ("reference", "loss"))
            yield f"{one['step']:>6} {' '.join(f'{value:>12}' for value in values)} {_apart(one['apart'])}{mark}"
    for title, name in (("gradients", "gradients"), (f"parameters after step {question.steps}", "parameters")):
        yield ""
        yield f"{title}, the farthest apart"
        for one in trace[name][:_MOST_NAMED]:
            yield f"  {_apart(one['apart'])}  {one['name']}"


def _apart(value: float | None) -> str:
    return f"{NOT_FINITE if value is None else share(value):>9}"


def race(args: argparse.Namespace, session: Session, machine: Machine) -> int:
    """Run two profiles, one after the other; returns 0 if the steps of both could be timed.

    Raises:
        UsageError: a profile does not exist or cannot run here; nothing was started.
        OperationError: a run could not be started, or does not end.
    """
    profiles = [load_profile(name, session.home, session.cwd) for name in args.profiles]
    for profile, named in zip(profiles, args.profiles, strict=True):
        introduce(profile, session, named)
    device, sets = None if args.device == "auto" else args.device, parse_sets(args.set)
    choices = [LaunchChoice(profile=profile, device=device, sets=sets, on="local") for profile in profiles]
    plans = [plan(choice, environ=session.environ, machine=machine) for choice in choices]
    for warning in dict.fromkeys(warning for made in plans for warning in made.warnings):
        warn(warning)
    output, sampler = Output(args, session, "profiles", machine), default_sampler()
    limit = (args.budget or _BUDGET_SECONDS) / len(plans)
    contest = Race(
        session.home,
        session.environ,
        seconds=args.seconds or 30.0,
        steps=args.steps,
        limit_seconds=limit,
        sampler=sampler,
        watch=lambda doing: output.line.show(doing, doing.partition(":")[0]),
    )
    found: list[Entrant] = []
    try:
        for made in plans:
            found.append(contest.run(made))
            if contest.interrupted:
                break
    finally:
        output.line.clear()
        sampler.close()
    around = asdict(output.surroundings)
    document = {**as_json(found), "started": output.started, "complete": not contest.interrupted, "machine": around}
    curves = [Curve(one.profile, [x for x, _ in one.losses], [y for _, y in one.losses]) for one in found]
    facts = " · ".join(f"{one.profile}: {_median(one.step_seconds)} a step" for one in found)
    output.save(document, curve_chart("mpstui bench --profiles", facts, curves, "step", "loss"))
    output.tell(document, [*race_lines(found, output.width), *busy_lines(output.surroundings, output.width), ""])
    return output.exit_code(contest.interrupted, all(one.step_seconds for one in found))


def race_lines(found: Sequence[Entrant], width: int) -> Iterator[str]:
    """Yield a table with a column per profile, then the overall result."""
    column = max(14, min(32, (width - _LABEL) // max(1, len(found))))
    for label, cell in _ROWS.items():
        texts = (cell(one) for one in found)
        cells = (text if len(text) < column else f"{text[: column - 2]}…" for text in texts)
        yield f"{label:<{_LABEL}}" + "".join(f"{text:>{column}}" for text in cells).rstrip()
    whole = as_json(found)
    if whole["speedup"]:
        yield from paragraph(f"a step of the second takes {1 / whole['speedup']:.2f} of the first's time", width)
    common = common_loss(found)
    if common:
        losses = " and ".join(f"{loss:.4g}" for loss in common[1])
        yield from paragraph(f"at {common[0]:g}, the last step both reached, the losses are {losses}", width)
    for one in found:
        yield f"run: {one.run}"
        if one.note:
            yield from paragraph(f"{one.profile}: {one.note}", width)
        if one.mps_fallback_operators:
            names = ", ".join(one.mps_fallback_operators)
            text = f"{one.profile}: on the CPU instead of MPS: {names} (torch names the first one of a process only)"
            yield from paragraph(text, width)


def _median(seconds: Spread | None) -> str:
    return "n/a" if seconds is None else f"{seconds.median * 1000:.3g} ms"


def _range(seconds: Spread | None) -> str:
    return "n/a" if seconds is None else f"{seconds.low * 1000:.3g} to {seconds.high * 1000:.3g} ms"


def _known(value: Any, form: str = "") -> str:
    return "n/a" if value is None else format(value, form)


_ROWS: dict[str, Callable[[Entrant], str]] = {
    "profile": lambda one: one.profile,
    "device": lambda one: _known(one.device),
    "step (median)": lambda one: _median(one.step_seconds),
    "step (range)": lambda one: _range(one.step_seconds),
    "samples/s": lambda one: _known(one.samples_per_second, ",.1f"),
    "steps done": lambda one: _known(one.step),
    "loss": lambda one: _known(one.loss, ".4g"),
    "process memory": lambda one: size(one.process_bytes),
    "device memory": lambda one: size(one.device_bytes),
    "MPS fallbacks": lambda one: _known(one.mps_fallbacks),
    "state": lambda one: one.state,
}
