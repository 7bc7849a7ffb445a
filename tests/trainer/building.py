"""Small trainings for tests, in this process or in a child."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpstui.agent.reporter import Reporter
from mpstui.wire.rundir import RunDir
from tests import standin
from trainer import assemble, options, tasks
from trainer.checkpoint import CheckpointFolder
from trainer.control import Control
from trainer.device import Device
from trainer.distributed import Group, Ranks
from trainer.job import Job
from trainer.run import run

ROOT = Path(__file__).resolve().parents[2]
TINY = ["--model", "tiny", "--width", "4", "--batch-size", "16", "--device", "cpu", "--report-every", "1"]


def parsed(*arguments: str) -> argparse.Namespace:
    """A command line of the cifar task."""
    parser = argparse.ArgumentParser()
    task = tasks.find("cifar")
    task.add_arguments(parser)
    options.add_arguments(parser, task.DEFAULTS)
    return parser.parse_args([*TINY, *arguments])


def train(*arguments: str, run_dir: Path | None = None, control: Control | None = None) -> None:
    """Train in this process."""
    environ = {"MPSTUI_RUN_DIR": str(run_dir)} if run_dir else {}
    run("cifar", parsed(*arguments), environ, control or Control())


def job(*arguments: str, folder: Path, reporter: Reporter | None = None) -> Job:
    """The parts of a training, not yet run."""
    args = parsed(*arguments)
    args.seed = args.seed or 0
    device = Device()
    wish = assemble.Request(
        name="cifar",
        task=tasks.find("cifar")(args),
        options=options.from_namespace(args),
        seed=args.seed,
        device=device,
        group=Group(Ranks(), device),
        folder=CheckpointFolder(folder, 3),
        reporter=reporter or Reporter(None),
        control=Control(),
    )
    return assemble.assemble(wish)


def command(*arguments: str) -> list[str]:
    """A training as a command line."""
    return [sys.executable, "-P", "-m", "trainer", "cifar", *TINY, *arguments]


def torchrun(*arguments: str) -> list[str]:
    """Two processes of a module, as a command line."""
    where = ("--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--local-addr=localhost")  # no name of this machine
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", *where, "-m", *arguments]


def environment(
    run_dir: Path | None = None, *, fault: str | None = None, attempt: int = 1, compiler: bool = False
) -> dict[str, str]:
    """The environment of a child; with ``fault`` (may be empty) it has a stand-in for MPS.

    Without torch's compiler, which several ranks need, it starts in half the time.
    """
    environ = {**os.environ, "PYTHONPATH": f"{standin.FOLDER}{os.pathsep}{ROOT}"}
    if compiler:
        environ["MPSTUI_STANDIN_COMPILER"] = "real"
    if run_dir:
        environ |= {"MPSTUI_RUN_DIR": str(run_dir), "MPSTUI_ATTEMPT": str(attempt)}
    if fault is not None:
        environ["MPSTUI_STANDIN"] = fault
    return environ


def completed(
    arguments: Sequence[str], environ: Mapping[str, str], cwd: Path, timeout: float = 180
) -> subprocess.CompletedProcess[str]:
    """Run a child to its end."""
    return subprocess.run(
        arguments, env=dict(environ), cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
    )


def points(run_dir: Path, name: str = "loss") -> list[Any]:
    """Every reported value of a metric with its step."""
    lines = [json.loads(line) for line in RunDir(run_dir).metrics.read_text().splitlines()]
    return [(line["step"], line[name]) for line in lines if name in line]


def events(run_dir: Path) -> list[str]:
    """The sentences of the events."""
    return [json.loads(line)["text"] for line in RunDir(run_dir).events.read_text().splitlines()]
