"""Is what mpstui shows of programs that were never written for it true? ``python -m tests.bench.programs FOLDER``.

FOLDER holds an ``index.json`` of programs and of what a careful person reads in their output; docs/testing.md describes
it. Each program runs under ``mpstui run`` beside a witness of our own, which counts its optimizer's steps by the clock.
Ends with 1 when under 97 % of what can be looked at is right.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GOAL = 97.0
RIGHT, WRONG, MISSING, RIGHTLY_NONE = "right", "wrong", "n/a, though knowable", "n/a, rightly"
_LOOK_SECONDS = 3.0
_RATE_SECONDS = 12.0
"""The witness' rate is that of so many newest seconds."""
_RATE_MAY_BE_OFF = 0.1
_SETTLED_SECONDS = 8.0
"""Of training, before a rate is looked at."""
_STEP_LAG_SECONDS = 4.0
_TOLD_SECONDS = 1.5
"""Between two heartbeats."""
_WITNESS = Path(__file__).parent / "step_witness"

Seen = Mapping[str, Any]


@dataclass
class Look:
    """What ``show --json`` said while the program ran."""

    begun: float
    time: float
    """When it had answered: on a busy machine that takes a while."""
    seen: Seen


@dataclass
class Ran:
    """A program that has ended, and all that was seen of it."""

    name: str
    output: str
    final: Seen
    listed: Seen
    events: Sequence[Seen]
    looks: Sequence[Look]
    steps_at: Sequence[tuple[float, int, float]]
    """Of the witness: when, how many steps of optimizers were done, and for how many seconds it had evaluated."""
    was_stopped: bool = False
    """Its time was up: it has not finished."""


@dataclass
class Verdict:
    fact: str
    how: str
    shown: Any
    true: Any

    def line(self) -> str:
        return f"  {self.how}: {self.fact} is {self.true!r}, shown {self.shown!r}"


@dataclass
class Score:
    by_program: dict[str, list[Verdict]] = field(default_factory=dict)

    def report(self) -> str:
        every = [one for found in self.by_program.values() for one in found]
        lines = []
        for name, found in self.by_program.items():
            counted = Counter(one.how for one in found)
            lines.append(f"{name}: {counted[RIGHT] + counted[RIGHTLY_NONE]}/{len(found)}")
            lines += [one.line() for one in found if one.how in (WRONG, MISSING)]
        counted = Counter(one.how for one in every)
        lines += ["", *(f"{how}: {counted[how]}" for how in (RIGHT, RIGHTLY_NONE, MISSING, WRONG))]
        wrong = Counter(one.fact.partition(":")[0] for one in every if one.how in (WRONG, MISSING))
        lines += [f"  {fact}: {count}" for fact, count in wrong.most_common()]
        return "\n".join([*lines, f"{self.percent():.1f} % of {len(every)} facts right (goal {GOAL:.0f} %)"])

    def percent(self) -> float:
        every = [one.how for found in self.by_program.values() for one in found]
        return 100.0 * sum(how in (RIGHT, RIGHTLY_NONE) for how in every) / max(1, len(every))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="programs whose name matches this expression")
    parser.add_argument(
        "--mpstui", default=_usual_command(), help="the command (default: that of PATH, else of this environment)"
    )
    parser.add_argument("--save", type=Path, help="write every verdict there, as JSON")
    parser.add_argument("--judge-again", action="store_true", help="judge what was kept of the last time; run nothing")
    chosen = parser.parse_args(argv)
    score = Score()
    for entry in json.loads((chosen.folder / "index.json").read_text(encoding="utf-8")):
        if chosen.only is None or re.search(chosen.only, entry["name"]):
            command = str(Path(chosen.mpstui).absolute())  # each program runs in a folder of its own
            kept = chosen.folder / "ran" / f"{entry['name']}.json"
            ran = _kept(kept) if chosen.judge_again else run_program(entry, chosen.folder, command)
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps(vars(ran), default=vars), encoding="utf-8")
            score.by_program[entry["name"]] = list(judged(entry["expected"], ran))
            print(entry["name"], ran.final.get("state"), flush=True)
    print(score.report())
    if chosen.save is not None:
        chosen.save.write_text(json.dumps(score.by_program, default=vars, indent=1), encoding="utf-8")
    return 0 if score.percent() >= GOAL else 1


def _usual_command() -> str:
    return shutil.which("mpstui") or str(Path(sys.executable).with_name("mpstui"))


def _kept(path: Path) -> Ran:
    found = json.loads(path.read_text(encoding="utf-8"))
    return Ran(**{**found, "looks": [Look(**{"begun": one["time"], **one}) for one in found["looks"]]})


def run_program(entry: Mapping[str, Any], folder: Path, command: str) -> Ran:
    """Run it to its end, or for its ``seconds``, and look at it all the while."""
    steps = (folder / "ran" / entry["name"]).with_suffix(".steps").absolute()
    steps.parent.mkdir(exist_ok=True)
    steps.unlink(missing_ok=True)
    paths = (str(_WITNESS), entry.get("environ", {}).get("PYTHONPATH"))
    environ = {
        **os.environ,
        **entry.get("environ", {}),
        "PYTHONPATH": os.pathsep.join(one for one in paths if one),
        "STEP_WITNESS": str(steps),
    }
    where = folder / entry["folder"]
    for name in entry.get("clean", ()):  # what its last time left
        shutil.rmtree(where / name, ignore_errors=True)
    options = entry.get("options", [])

    def ask(*words: str) -> str:
        asked = [command, *words]
        return subprocess.run(asked, cwd=where, env=environ, capture_output=True, text=True, check=False).stdout

    started = [command, "run", "--name", entry["name"], *options, "--", *entry["command"]]
    told = subprocess.run(started, cwd=where, env=environ, capture_output=True, text=True, check=False)
    if told.returncode:
        raise SystemExit(f"{entry['name']}: {told.stderr}")
    run = told.stdout.split()[-1]
    looks: list[Look] = []
    until = time.time() + entry.get("seconds", 300)
    while True:
        begun = time.time()
        seen = json.loads(ask("show", "--json", run))
        looks.append(Look(begun, time.time(), seen))
        if seen["ended"] is not None:
            break
        if time.time() > until:
            ask("stop", run)
            until = math.inf
        time.sleep(_LOOK_SECONDS)
    return Ran(
        name=entry["name"],
        output="\n".join(ask("logs", run).splitlines()),
        final=json.loads(ask("show", "--json", run)),
        listed=next(one for one in json.loads(ask("ps", "--json")) if one["run"] == run),
        events=[json.loads(line) for line in ask("follow", "--once", "--json", run).splitlines()],
        looks=looks[:-1],
        steps_at=[(at, done, away) for at, done, away in map(json.loads, _lines(steps))],
        was_stopped=until == math.inf,
    )


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def judged(expected: Mapping[str, Any], ran: Ran) -> Iterator[Verdict]:
    """Each fact of a program that its index names."""
    for fact in ("state", "device", "epoch", "epochs", "step", "steps", "loss"):
        if fact in expected:
            stopped = fact == "state" and ran.was_stopped
            yield _verdict(fact, ran.final.get(fact), "stopped" if stopped else _true(expected[fact], ran))
            if fact in ran.listed and ran.listed[fact] != ran.final.get(fact):
                yield Verdict(f"{fact} in the list", WRONG, ran.listed[fact], ran.final.get(fact))
    middle = ran.looks[2 * len(ran.looks) // 3].seen if len(ran.looks) > 4 else {}
    trained = middle.get("step") is not None or middle.get("loss") is not None
    for fact in ("device", "epochs", "steps"):
        if fact in expected and trained:
            yield _verdict(f"{fact} while it runs", middle.get(fact), _true(expected[fact], ran))
    metrics = ran.final.get("metrics", {})
    for names, wanted in expected.get("metrics", {}).items():
        view = _metric(metrics, names)
        yield _verdict(f"metric: {names}", view and view["last"], _true(wanted, ran))
    for names, wanted in expected.get("best", {}).items():
        view = _metric(metrics, names)
        yield _verdict(f"best: {names}", view and view["best"], _true(wanted, ran))
    for names, wanted in expected.get("points", {}).items():
        view = _metric(metrics, names)
        yield _points(names, view, _true(wanted, ran), ran)
    if "checkpoints" in expected:
        found = [Path(one["path"]).name for one in ran.final.get("checkpoints", ())]
        for name in expected["checkpoints"]:
            held = next((one for one in found if re.fullmatch(name, one)), None)
            yield Verdict(f"checkpoint: {name}", RIGHT if held else MISSING, found, name)
        wrong = [one for one in found if not any(re.fullmatch(name, one) for name in expected["checkpoints"])]
        if wrong:
            yield Verdict("checkpoint: others", WRONG, wrong, expected["checkpoints"])
    told = [one["values"]["loss"] for one in ran.events if one["kind"] == "point" and "loss" in one["values"]]
    if expected.get("loss") is not None and told:
        yield _verdict("loss in follow", told[-1], _true(expected["loss"], ran))
    if "each" in expected:
        yield from _by_the_clock(ran, expected["each"])


def _by_the_clock(ran: Ran, each: int) -> Iterator[Verdict]:
    """The rate and the step while it ran, against the witness.

    Args:
        each: steps of optimizers that make one step of the program.
    """
    rates, off, behind = [], [], []
    begun = ran.steps_at[0][0] if ran.steps_at else math.inf
    for look in ran.looks:
        rate, step = look.seen.get("steps_per_second"), look.seen.get("step")
        true = _rate_at(ran.steps_at, look.time)
        if look.time < begun + _SETTLED_SECONDS or true is None or look.seen.get("health") != "training":
            continue
        rates.append((rate, true / each))
        if rate is not None:
            off.append(rate * each / true)
        done = [count / each for at, count, _ in ran.steps_at if look.begun - _STEP_LAG_SECONDS <= at <= look.time]
        if done:
            behind.append(step is not None and done[0] - 1 <= step <= done[-1] + 1)
    if rates:
        typical = sorted(off)[len(off) // 2] if off else None
        known = 2 * len(off) >= len(rates)
        right = known and typical is not None and abs(typical - 1.0) <= _RATE_MAY_BE_OFF
        how = RIGHT if right else WRONG if known else MISSING
        yield Verdict("rate", how, [round(rate or 0.0, 2) for rate, _ in rates], [round(true, 2) for _, true in rates])
    if behind:
        share = sum(behind) / len(behind)
        yield Verdict("step while it runs", RIGHT if share >= 0.9 else WRONG, round(share, 2), 1.0)


def _rate_at(steps_at: Sequence[tuple[float, int, float]], moment: float) -> float | None:
    """Steps a second of the newest seconds, without evaluations between them; None: it made too few."""
    near = [(at - away, done) for at, done, away in steps_at if moment - _RATE_SECONDS <= at <= moment]
    pieces = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(near) if b[1] > a[1]]
    if len(pieces) < 3:
        return None
    usual = sorted(seconds / steps for seconds, steps in pieces)[len(pieces) // 2]
    work = [(seconds, steps) for seconds, steps in pieces if seconds <= max(0.5, 2.5 * usual * steps)]
    return sum(steps for _, steps in work) / sum(seconds for seconds, _ in work)


def _points(names: str, view: Seen | None, true: Any, ran: Ran) -> Verdict:
    """The chart: as many points as were printed; of the loss the agent's own may be more."""
    shown = view and view["count"]
    by_agent = "loss" in names.split("|") and any(
        one["kind"] == "point" and one["source"] == "agent" and "loss" in one["values"] for one in ran.events
    )
    if not shown and not true:
        return Verdict(f"points: {names}", RIGHTLY_NONE, shown, true)
    right = shown is not None and (abs(shown - true) <= max(0, 0.02 * true) or (by_agent and shown > true))
    return Verdict(f"points: {names}", RIGHT if right else MISSING if shown is None else WRONG, shown, true)


def _metric(metrics: Mapping[str, Seen], names: str) -> Seen | None:
    wanted = [_plain(name) for name in names.split("|")]
    return next((view for one in wanted for name, view in metrics.items() if _plain(name) == one), None)


def _plain(name: str) -> str:
    return " ".join(re.findall(r"[^\W_]+|%", name.lower()))


def _true(wanted: Any, ran: Ran) -> Any:
    """What is true: a value of the index, or what the program printed."""
    if isinstance(wanted, list):
        found = (_true(one, ran) for one in wanted)
        return tuple(itertools.chain.from_iterable(one if isinstance(one, tuple) else (one,) for one in found))
    if not isinstance(wanted, Mapping):
        return wanted
    if "witness" in wanted:
        return _counted(ran, wanted["witness"])
    printed = [match.group(1) for match in re.finditer(wanted["printed"], ran.output, re.MULTILINE)]
    take = wanted.get("take", "last")
    if take == "count":
        return len(printed)
    chosen = {"last": printed[-1:], "min": sorted(printed, key=float)[:1], "max": sorted(printed, key=float)[-1:]}[take]
    return Printed(chosen[0]) if chosen else None


def _counted(ran: Ran, each: int) -> Any:
    """What the witness counted; of a run that was stopped the last second is its and the agent's own."""
    if not ran.steps_at:
        return None
    end, done, _ = ran.steps_at[-1]
    if not ran.was_stopped:
        return done // each
    before = next(count for at, count, _ in ran.steps_at if at >= end - _TOLD_SECONDS)
    return tuple(range(before // each, (2 * done - before) // each + 1))


class Printed(float):
    """A number as it was printed: what rounds to it is right."""

    def __new__(cls, text: str) -> Printed:
        made = super().__new__(cls, text)
        digits = re.fullmatch(r"[-+]?\d+(?:\.(\d*))?(?:[eE]([-+]?\d+))?", text)
        made.half = 0.51 * 10.0 ** (int(digits[2] or 0) - len(digits[1] or "")) if digits else 0.0
        return made

    half: float


def _verdict(fact: str, shown: Any, true: Any) -> Verdict:
    if true is None:
        return Verdict(fact, RIGHTLY_NONE if shown is None else WRONG, shown, true)
    if shown is None:
        may_be_none = isinstance(true, tuple) and None in true
        return Verdict(fact, RIGHTLY_NONE if may_be_none else MISSING, shown, true)
    ones = true if isinstance(true, tuple) else (true,)
    return Verdict(fact, RIGHT if any(_alike(shown, one) for one in ones) else WRONG, shown, true)


def _alike(shown: Any, true: Any) -> bool:
    if not isinstance(shown, (int, float)) or not isinstance(true, (int, float)):
        return bool(shown == true)
    return math.isclose(shown, true, abs_tol=true.half if isinstance(true, Printed) else 0.0)


if __name__ == "__main__":
    sys.exit(main())
