"""Does the reader understand logs it has never seen? ``python -m tests.bench.metric_names FOLDER``.

FOLDER holds logs and an ``index.json`` of what a careful person reads in them; docs/testing.md describes its fields.
Ends with 1 when under 98 % of the values are right, any training loss is invented, or under 95 % of the names shown are
metrics.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpstui.core.formats.files import detect
from mpstui.core.formats.files.console_log import ConsoleLog
from mpstui.core.formats.points import ParsedLog, Point, PointColumns
from mpstui.core.formats.reader import LogReader

FIELDS = (
    *("last_epoch", "total_epochs", "last_step", "total_steps"),
    *("first_train_loss", "last_train_loss", "n_train_loss_points", "learning_rate"),
)
LOSS_FIELDS = FIELDS[4:7]
VALUES_GOAL, NAMES_GOAL = 98.0, 95.0
_SHOWN_ELSEWHERE = ("lr", "learning rate")
_WORD = re.compile(r"[^\W_]+")
_VALIDATION = frozenset(("val", "valid", "vali", "validation", "eval", "evaluation", "dev"))
_TRAINING = frozenset(("train", "training"))
_CHUNK = 1 << 16

Words = tuple[str, ...]
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Reading:
    """What the reader makes of one log, of its newest run."""

    summary: ParsedLog
    names: frozenset[str]
    """Of everything that would get a chart."""
    evaluated: Mapping[str, float]
    """The newest value of each name of an evaluation."""

    def value(self, name: str) -> float | None:
        """A field of the index; the count of a loss that is not there is 0."""
        loss = self.summary.train_loss
        found: dict[str, float | None] = {
            "last_epoch": self.summary.epoch,
            "total_epochs": self.summary.epochs,
            "last_step": self.summary.step,
            "total_steps": self.summary.steps,
            "first_train_loss": loss.first if loss else None,
            "last_train_loss": loss.last if loss else None,
            "n_train_loss_points": loss.count if loss else 0,
            "learning_rate": self.summary.learning_rate,
        }
        return found[name]


@dataclass
class Score:
    """What is right and wrong, of one log or of all."""

    values: int = 0
    right: int = 0
    invented: int = 0
    names: int = 0
    names_right: int = 0
    metrics: int = 0
    missed: int = 0
    devices: int = 0
    devices_right: int = 0
    validations: int = 0
    validations_right: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Score) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def reaches_the_goals(self) -> bool:
        values, names = _percent(self.right, self.values), _percent(self.names_right, self.names)
        return values >= VALUES_GOAL and self.invented == 0 and names >= NAMES_GOAL

    def report(self) -> str:
        return "\n".join(
            (
                f"values right          {_share(self.right, self.values)} (goal {VALUES_GOAL:g} %)",
                f"invented losses       {self.invented} (goal 0)",
                f"names that are metrics {_share(self.names_right, self.names)} (goal {NAMES_GOAL:g} %)",
                f"metrics missed        {_share(self.missed, self.metrics)}",
                f"device right          {_share(self.devices_right, self.devices)}",
                f"validation right      {_share(self.validations_right, self.validations)}",
            )
        )


def read(data: bytes) -> Reading:
    """Read a log as the program does: in pieces, whole blocks at once."""
    reader = LogReader()
    points: list[Point] = []
    for start in range(0, len(data), _CHUNK):
        points += reader.take(data[start : start + _CHUNK])
    points += reader.close()
    return _told(points, reader.summary())


def read_file(path: Path) -> Reading:
    """Read a log, or a metric file by its own format."""
    source = detect(path)
    if isinstance(source, ConsoleLog):
        return read(path.read_bytes())
    points: list[Point] = [*source.poll(), *source.close()]
    return _told(points, source.summary())


def _told(points: Sequence[Point], summary: ParsedLog) -> Reading:
    newest = max((point.newest.run for point in points), default=0)
    names: set[str] = set()
    evaluated: dict[str, float] = {}
    for point in points:
        last = point.newest
        if last.run == newest:
            names.update(point.values if isinstance(point, PointColumns) else (), last.metrics, last.eval_metrics)
            evaluated.update(last.eval_metrics)
    return Reading(summary, frozenset(names), evaluated)


def score(entry: Entry, found: Reading) -> Score:
    """Compare what was read of one log with its entry in the index."""
    result = Score()
    _score_values(entry, found, result)
    _score_names(entry, found, result)
    _score_device(entry, found, result)
    _score_validation(entry, found, result)
    return result


def _score_values(entry: Entry, found: Reading, result: Score) -> None:
    expected, other = entry["expected"], _is_other_series(entry, found)
    for name in FIELDS:
        if name not in expected:
            continue
        result.values += 1
        got = found.value(name)
        if (other and name in LOSS_FIELDS) or _is_right(entry, name, got):
            result.right += 1
        else:
            result.wrong.append(f"{name} {_text(got)}, not {_text(expected[name])}")
    if expected.get("last_train_loss", 0) is None and found.value("last_train_loss") is not None and not other:
        result.invented += 1
        result.wrong.append("a training loss is invented")


def _is_right(entry: Entry, name: str, got: float | None) -> bool:
    if name == "n_train_loss_points":
        low_high = entry.get("n_range")
        if low_high and low_high[0] <= (got or 0.0) <= low_high[1]:
            return True
        return any(_close(got, answer or 0.0, 0.02) for answer in _answers(entry, name))
    exact = 1e-6 if "loss" in name or name == "learning_rate" else 0.0
    return any(_close(got, answer, exact) for answer in _answers(entry, name))


def _answers(entry: Entry, name: str) -> list[float | None]:
    """What the index accepts for a field: what it expects or else names, and counted from 1 what counts from 0."""
    answers = [_number(value) for value in (entry["expected"][name], *_listed(entry.get("accept", {}).get(name, ())))]
    base = {"last_epoch": "epoch_base", "last_step": "step_base"}.get(name)
    if base is not None and entry.get("numbering", {}).get(base) == 0:
        answers += [answer + 1 for answer in answers if answer is not None]
    return answers


def _is_other_series(entry: Entry, found: Reading) -> bool:
    """Whether first, last and count together are another series that a person might chart as well."""
    return any(
        _close(found.value("first_train_loss"), _number(other["first"]), 1e-6)
        and _close(found.value("last_train_loss"), _number(other["last"]), 1e-6)
        and _close(found.value("n_train_loss_points"), _number(other["n"]), 0.02)
        for other in entry.get("alternates", ())
    )


def _score_names(entry: Entry, found: Reading, result: Score) -> None:
    if "metrics" not in entry:
        return
    wanted = [[_words(spelling) for spelling in _listed(spellings)] for spellings in entry["metrics"]]
    tolerated = {_words(name) for name in (*entry.get("tolerated", ()), *_SHOWN_ELSEWHERE)}
    validated = {_words(f"val {name}") for name in entry.get("validation", ())}
    seen: set[Words] = set()
    for name in sorted(found.names):
        words = _readings_of(name, name in found.evaluated)
        seen |= words
        is_metric = any(words & set(spellings) for spellings in wanted) or not validated.isdisjoint(words)
        if is_metric or not words & tolerated:
            result.names += 1
            result.names_right += is_metric
            if not is_metric:
                result.wrong.append(f"{name!r} is no metric")
    for spellings, known in zip(entry["metrics"], wanted, strict=True):
        result.metrics += 1
        if not seen & set(known):
            result.missed += 1
            result.wrong.append(f"{_listed(spellings)[0]!r} is missed")


def _score_device(entry: Entry, found: Reading, result: Score) -> None:
    if "device" not in entry:
        return
    accepted = _listed(entry["device"])
    got = found.summary.standing.device
    result.devices += 1
    if (got or "").partition(":")[0] in {(device or "").partition(":")[0] for device in accepted}:
        result.devices_right += 1
    else:
        result.wrong.append(f"device {got}, not {accepted[0]}")


def _score_validation(entry: Entry, found: Reading, result: Score) -> None:
    """One value for each name that the index tells, under any name that stands for it."""
    spellings = [_listed(names) for names in entry.get("metrics", ())]
    for name, values in entry.get("validation", {}).items():
        known = {_words(name), _words(f"val {name}")}
        for group in spellings:
            words = {_words(spelling) for spelling in group}
            known |= words if known & words else set()
        got = [value for shown, value in found.evaluated.items() if _readings_of(shown, evaluated=True) & known]
        result.validations += 1
        if any(_close(value, _number(answer), 1e-6) for value in got for answer in _listed(values)):
            result.validations_right += 1
        else:
            result.wrong.append(f"validation {name} {', '.join(map(_text, got)) or 'unread'}, not {values}")


def _readings_of(name: str, evaluated: bool) -> set[Words]:
    """What a shown name may stand for: one of an evaluation or of a group need not repeat that it is."""
    readings = {_words(name), _words(name.rpartition("/")[2])}
    if evaluated and not {"val", "test"} & set(_words(name)):
        readings |= {tuple(sorted((*words, scope))) for words in readings for scope in ("val", "test")}
    return readings


def _words(name: str) -> Words:
    """A name without its spelling: ``Valid_Loss``, ``val loss`` and ``loss (validation)`` are one."""
    words = [word for word in _WORD.findall(name.lower()) if word not in _TRAINING]
    return tuple(sorted({"val" if word in _VALIDATION else word for word in words}))


def _close(got: float | None, answer: float | None, relative: float) -> bool:
    if got is None or answer is None:
        return got is answer
    if math.isnan(got) or math.isnan(answer):
        return math.isnan(got) and math.isnan(answer)
    return got == answer or abs(got - answer) <= relative * max(abs(got), abs(answer))


def _number(value: object) -> float | None:
    """A number of the index; nan and inf are strings there."""
    return None if value is None else float(str(value))


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}, {_percent(part, whole):.1f} %"


def measure(folder: Path) -> Iterable[tuple[str, Score]]:
    """The score of each log of a folder, in the order of its index.

    Raises:
        OSError: the index or a log cannot be read.
        ValueError: the index is no JSON.
    """
    for entry in json.loads((folder / "index.json").read_text(encoding="utf-8")):
        yield entry["file"], score(entry, read_file(folder / entry["file"]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="logs and their index.json")
    total = Score()
    for file, one in measure(parser.parse_args(arguments).folder):
        if one.wrong:
            print(f"{file}: {'; '.join(one.wrong)}")
        total.add(one)
    print(total.report())
    return 0 if total.reaches_the_goals() else 1


if __name__ == "__main__":
    sys.exit(main())
