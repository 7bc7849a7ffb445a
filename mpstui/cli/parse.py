"""``mpstui parse FILE``: what the reader understands of a log or metric file."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from ..core.formats.escapes import strip_controls
from ..core.formats.points import ParsedLog
from ..core.formats.sources import read_log

HELP = "Print what the reader understands of a log or metric file, or of the best one in a folder."
_SHOWN_METRICS = 12


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a log, a metric file, or a folder that holds some")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the summary; an unreadable file is an error, a file without training is not."""
    found = read_log(args.file)
    print(json.dumps(as_json(found), ensure_ascii=False) if args.json else as_table(found))
    return 0


def as_json(found: ParsedLog) -> dict[str, object]:
    """The summary in the shape that scripts rely on; unknown is null, non-finite numbers are strings."""
    loss = found.train_loss
    return {
        "format": found.format,
        "epoch": _number(found.epoch),
        "epochs": _number(found.epochs),
        "step": _number(found.step),
        "steps": _number(found.steps),
        "train_loss": None
        if loss is None
        else {"first": _number(loss.first), "last": _number(loss.last), "count": loss.count},
        "metrics": list(found.metrics),
        "learning_rate": _number(found.learning_rate),
    }


def as_table(found: ParsedLog) -> str:
    """The summary for a person."""
    if found == ParsedLog():
        return "nothing in it reads like training; a line such as `step 10 loss 2.31` always does"
    loss = found.train_loss
    more = len(found.metrics) - _SHOWN_METRICS
    rows = [
        ("format", found.format or "n/a"),
        ("epoch", _position(found.epoch, found.epochs)),
        ("step", _position(found.step, found.steps)),
        ("training loss", "n/a" if loss is None else f"{loss.first:g} -> {loss.last:g} ({_readings(loss.count)})"),
        ("learning rate", "n/a" if found.learning_rate is None else f"{found.learning_rate:g}"),
        ("metrics", ", ".join(found.metrics[:_SHOWN_METRICS]) + (f" and {more} more" if more > 0 else "") or "n/a"),
    ]
    if found.runs > 1:
        rows.append(("runs", f"{found.runs} in this file; the last is shown"))
    return strip_controls("\n".join(f"{name:<14} {value}" for name, value in rows))


def _readings(count: int) -> str:
    return f"{count:,} reading{'' if count == 1 else 's'}"


def _number(value: int | float | None) -> int | float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _position(now: int | float | None, planned: int | float | None) -> str:
    if now is None:
        return "n/a" if planned is None else f"n/a of {planned:g}"
    return f"{now}" if planned is None else f"{now} of {planned}"
