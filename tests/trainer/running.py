"""Any task, small, in this process."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mpstui.wire.rundir import RunDir
from trainer import options, tasks
from trainer.__main__ import main
from trainer.control import Control
from trainer.run import run

QUIET = ("--device", "cpu", "--report-every", "1", "--warmup-epochs", "0")


def parsed(task: str, *arguments: str) -> argparse.Namespace:
    """A command line of a task."""
    parser = argparse.ArgumentParser()
    found = tasks.find(task)
    found.add_arguments(parser)
    options.add_arguments(parser, found.DEFAULTS)
    return parser.parse_args([*QUIET, *arguments])


def command(*arguments: str) -> int:
    """The exit code of a command line."""
    return main(arguments)


def made(task: str, *arguments: str) -> Any:
    """The task itself."""
    args = parsed(task, *arguments)
    args.seed = args.seed or 0
    return tasks.find(task)(args)


def train(task: str, *arguments: str, run_dir: Path) -> dict[str, float]:
    """Train to the end; the last validation's metrics."""
    run(task, parsed(task, *arguments), {"MPSTUI_RUN_DIR": str(run_dir)}, Control())
    points = metrics(run_dir)
    return next((point for point in reversed(points) if "val_loss" in point), {})


def metrics(run_dir: Path) -> list[dict[str, Any]]:
    """Every point, without what depends on the clock."""
    clock = {"time", "attempt", "steps_per_second", "samples_per_second"}
    lines = [json.loads(line) for line in RunDir(run_dir).metrics.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in clock} for line in lines]
