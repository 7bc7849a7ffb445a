"""Describes a launch before it is started: in the form, for ``--dry-run``, and between machines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...wire.secrets import masked_words
from .command import EnvLine, joined_scripts
from .form_fields import Preview, command_line
from .planning import LaunchPlan
from .shared_folders import overwritten


def told(made: LaunchPlan, runs: Path | None = None) -> dict[str, Any]:
    """Return what a plan would start, for JSON; the values of secrets are dots.

    Args:
        runs: the folder of all runs, whose checkpoints a new run might overwrite; None for an attempt of one of them.
    """
    return {
        "name": made.name,
        "device": made.device,
        "command": list(masked_words(made.argv)),
        "cwd": made.template.cwd,
        "environment": [asdict(line) for line in made.env],
        "waits_for": [
            *([f"a slot in queue {made.queue.group}"] if made.queue.group else []),
            *([f"nodes from {made.engine.title}"] if made.engine else []),
            *(f"the end ({one['when']}) of {one['run']}" for one in made.queue.after),
        ],
        "job": {"engine": made.engine.name, "options": dict(made.engine.options)} if made.engine else None,
        "warnings": [*made.warnings, *(overwritten(runs, made.choice, made.template) if runs else ())],
        "epochs": made.template.totals.epochs,
        "script": made.shell(),
    }


def script_of(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the runs described by :func:`told` as one shell script, with the options of a scheduler as a comment."""
    jobs = [one["job"] for one in runs if one["job"]]
    asked = shlex.join(f"{key}={value}" if value else key for key, value in jobs[0]["options"].items()) if jobs else ""
    note = f"# each is a job of {jobs[0]['engine']}: {asked}".rstrip(": ") + "\n" if jobs else ""
    return note + joined_scripts([str(one["script"]) for one in runs])


def preview_of(runs: Sequence[Mapping[str, Any]]) -> Preview:
    """Return the preview in a form of runs described by :func:`told`."""
    first = runs[0]
    return Preview(
        command=command_line(first["command"]),
        environment=tuple(EnvLine(**line) for line in first["environment"]),
        warnings=tuple(dict.fromkeys(warning for one in runs for warning in one["warnings"])),
        runs=tuple(one["name"] for one in runs) if len(runs) > 1 else (),
        cwd=first["cwd"],
        epochs=first["epochs"],
        waits_for=tuple(first["waits_for"]),
    )
