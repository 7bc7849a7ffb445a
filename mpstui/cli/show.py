"""`mpstui show`: everything known about one run."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..core import present as shown
from ..core.model.home import Home
from ..core.model.snapshot import Health, RunSnapshot, State
from ..core.present import can_be_explained, short_paths, why_not_its_own
from ..core.runs.details import code_sentence, provenance
from ..core.runs.monitor import Monitor
from ..core.runs.report import EXPLAINED, as_json
from ..core.runs.story import story
from ..core.series.direction import best_point
from ..wire import rundir
from .session import RUN_OR_PATH_HELP, Session, one_run, print_json, respawn_missing_supervisors, say

_CHECKPOINTS = 3
_LOOK_SECONDS = 1.5
_LONGER_LOOK_SECONDS = 6.0
"""For a program that counts, but slowly: a speed needs three counts."""
_GHOST_SECONDS = 2.0
_LABEL = 10
_WIDTH = 100


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_OR_PATH_HELP)
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    session = Session()
    respawn_missing_supervisors(session)
    home = session.home
    monitor = Monitor(home)
    name = one_run(monitor, home, args.run)
    snapshot, begun = monitor.snapshot(name), time.monotonic()
    first, end = snapshot.numbers, begun + _LOOK_SECONDS
    # The speed of a program that only prints is measured by what it adds while we watch.
    while args.json and _lacks_speed(snapshot) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS / 6)
        snapshot = monitor.snapshot(name)
        now = snapshot.numbers
        if (now.step, now.epoch_step, now.epoch) != (first.step, first.epoch_step, first.epoch):
            end = begun + _LONGER_LOOK_SECONDS
    told = as_json(snapshot, full=True)
    if args.json:
        print_json({**told, "ghost": ghost_of(home, snapshot)})
        return 0
    metrics = []
    for name, view in snapshot.series.items():
        ends = (view.first, view.last, view.minimum, view.maximum)
        told_ends = (shown.NOT_FINITE if value is None else shown.number(value) for value in ends)
        best = best_point(view, name)
        told_best = (shown.number(best.value), _place(view.axis, best.at)) if best else ("–", "–")
        metrics.append((name, shown.whole(view.standing), *told_ends, *told_best))
    blocks = (
        [f"{snapshot.name}  ({snapshot.run})"],
        [f"{label:<{_LABEL}}{text}" for label, text in (*_facts(snapshot, told), *_places(snapshot, told))],
        _why(snapshot, told["diagnosis"]["findings"]),
        _table(("metric", "points", "first", "last", "min", "max", "best", "at"), metrics),
        _table(("checkpoint", "size", "", "written", ""), _checkpoints(snapshot, time.time())),
        _events(snapshot, time.time()),
    )
    for place, block in enumerate(block for block in blocks if block):
        for line in ([""] if place > 1 else []) + block:
            say(line)
    return 0


def ghost_of(home: Home, snapshot: RunSnapshot) -> dict[str, Any] | None:
    """Return the best earlier run like a live one, if it is found quickly."""
    if not snapshot.state.active or snapshot.profile is None:
        return None
    from ..core.runs.ghost import GhostFinder
    from ..core.runs.summaries import Summaries

    others = Monitor(home, kept=Summaries(home.state / "cache" / "runs.jsonl")).refresh()
    found = GhostFinder().find(snapshot, others, _GHOST_SECONDS)
    return found.as_json() if found is not None else None


def _place(axis: str, x: float | None) -> str:
    return f"{axis} {shown.whole(x)}" if x is not None else "–"


def _lacks_speed(snapshot: RunSnapshot) -> bool:
    numbers = snapshot.numbers
    if snapshot.health is not Health.TRAINING:
        return False
    if numbers.step is None and numbers.epoch_step is None:
        return numbers.epoch is not None and numbers.eta_seconds is None
    return numbers.steps_per_second is None and numbers.samples_per_second is None


def _facts(snapshot: RunSnapshot, told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    numbers, device, asked = snapshot.numbers, snapshot.numbers.device, snapshot.device_asked
    doing = shown.FINISHING.word if shown.badge(snapshot) is shown.FINISHING else snapshot.health
    state = snapshot.end_word + (f", {doing}" if doing else "")
    state = shown.badge(snapshot).word if snapshot.state is State.WATCHED else state  # the same word as in the list
    how = snapshot.reason or (snapshot.exit.sentence() if snapshot.exit else "")
    yield "state", f"{state}: {how}" if how else state
    used = f"{device.type or shown.UNKNOWN}" + (f" (asked for: {asked})" if asked and asked != device.type else "")
    yield "device", " · ".join(part for part in (used, device.name, device.precision) if part)
    attempt = f"{snapshot.attempt} of {snapshot.attempts}, " if snapshot.is_ours or snapshot.attempts > 1 else ""
    started = snapshot.attempt_started
    if started is not None:
        end = shown.until(snapshot, snapshot.seen)
        verb = shown.lived(snapshot, end, snapshot.seen) if end is not None else ""
        lasted = f", {verb} {shown.duration(max(0.0, end - started))}" if end is not None else ""
        attempt += f"started {shown.moment_of_day(started, snapshot.seen)}{lasted}"
    if snapshot.is_ours or started is not None:
        yield "attempt" if attempt.partition(" ")[0].isdigit() else "time", attempt.removesuffix(", ")
    counted = (("epoch", shown.epoch_shown(numbers), numbers.epochs), ("step", numbers.step, numbers.steps))
    known = [one for one in counted if one[1:] != (None, None)]
    parts = (
        f"{what} {shown.whole(done)}" + (f" of {shown.whole(of)}" if of is not None else "") for what, done, of in known
    )
    which = (f"training {numbers.beat.training}",) if numbers.beat and numbers.beat.training else ()
    of = f" (told by attempt {numbers.of_attempt})" if numbers.of_attempt else ""
    yield "progress", (", ".join((*which, *parts)) or shown.UNKNOWN) + of
    if not numbers.loss_is_finite:
        yield "loss", shown.NOT_FINITE
    elif "loss" not in snapshot.series:
        yield "loss", shown.number(numbers.loss)
    if snapshot.branch is not None:
        yield "branch", f"from step {shown.whole(snapshot.branch.step)} of {snapshot.branch.left}"
    memory = [f"{name} {shown.size(value)}" for name, value in numbers.memory._asdict().items() if value is not None]
    if memory:
        yield "memory", ", ".join(memory)
    if told["agent"]:
        yield "agent", told["agent"]["text"]
    if snapshot.tags:
        yield "tags", " ".join(f"#{tag}" for tag in snapshot.tags)
    for place, line in enumerate(snapshot.note.splitlines()):
        yield "" if place else "note", line
    origin = provenance(snapshot)
    if origin is not None and (code := code_sentence(origin)):
        yield "code", code


def _places(snapshot: RunSnapshot, told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was started where, and where its records and output are."""
    yield "command", " ".join(snapshot.argv) or shown.UNKNOWN
    if told["cwd"] is not None:
        yield "folder", told["cwd"]
    yield "records" if snapshot.is_ours else "path", str(snapshot.dir)
    if snapshot.output not in (None, snapshot.dir):
        yield "log", str(snapshot.output)


def _why(snapshot: RunSnapshot, findings: Sequence[dict[str, object]]) -> list[str]:
    """Return the most probable cause and its remedy, or the last exception; `mpstui diagnose` shows the rest."""
    asked_for = snapshot.was_cancelled or (snapshot.exit is not None and snapshot.exit.requested_by is not None)
    if not can_be_explained(snapshot) or snapshot.state not in EXPLAINED or (asked_for and not findings):
        return []
    told: list[tuple[str, object]]
    if findings:
        first, remedy = findings[0], findings[0]["remedy"]
        told = [("why", first["title"]), ("", first["numbers"]), ("", first["cause"])]
        told += [("helps", remedy.get("text"))] if isinstance(remedy, dict) else []
    else:
        from ..core.diagnosis.evidence import evidence_of
        from ..core.diagnosis.log_text import unexplained

        told = [("why", unexplained((), evidence_of(snapshot)))]
    lines = []
    for label, text in [*told, ("more", f"mpstui diagnose {snapshot.run}")]:
        wrapped = textwrap.wrap(str(text or ""), _WIDTH - _LABEL)
        lines += [f"{label if place == 0 else '':<{_LABEL}}{line}" for place, line in enumerate(wrapped)]
    return lines


def _checkpoints(snapshot: RunSnapshot, now: float) -> Iterator[tuple[str, ...]]:
    own_first = sorted(snapshot.checkpoints, key=lambda one: (why_not_its_own(one, snapshot) != "", -one.time))
    for one in own_first[:_CHECKPOINTS]:
        fault = "" if one.complete and one.finite else "holds NaN" if one.complete else "incomplete"
        perhaps = f"perhaps of run {one.rival}" if one.rival is not None else ""
        note = why_not_its_own(one, snapshot) or fault or perhaps or ("best" if one.best else "")
        step = f"step {shown.whole(one.step)}" if one.step is not None else ""
        yield one.path.name, shown.size(one.size_bytes), step, shown.moment_of_day(one.time, now), note
    if len(own_first) > _CHECKPOINTS:
        yield f"and {len(own_first) - _CHECKPOINTS} more", "", "", "", ""


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Align columns under their titles, numbers to the right; nothing without rows."""
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(f"{cell:{'>' if place else '<'}{widths[place]}}" for place, cell in enumerate(line)).rstrip()
        for line in lines[: len(lines) if len(lines) > 1 else 0]
    ]


def _events(snapshot: RunSnapshot, now: float) -> list[str]:
    newest = story(snapshot.events, rundir.asker(), was_cancelled=snapshot.was_cancelled)[-8:]
    moments = [shown.moment_of_day(one.time, now) for one in newest]
    width = max((len(moment) for moment in moments), default=0)
    texts = [short_paths(one.text, snapshot.dir) for one in newest]
    return [f"{moment:<{width}}  {text}" for moment, text in zip(moments, texts, strict=True)]
