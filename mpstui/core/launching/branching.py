"""Branches: new runs that continue from a checkpoint of another run, with other arguments."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from ...wire.records import Branch, QueueRule
from ...wire.rundir import RunDir
from ..model.errors import OperationError
from ..model.snapshot import RunSnapshot
from ..present import whole
from ..stakes import own_checkpoints
from .choice import LaunchChoice
from .editing import recorded_choice
from .record import read_run

if TYPE_CHECKING:
    from .planning import LaunchPlan


def branch_at(snapshot: RunSnapshot, step: float) -> Branch:
    """Return the newest complete checkpoint of a run at or before this step.

    Raises:
        OperationError: its program cannot resume from a checkpoint, it has none that early, or a branch would save to
            the same folder, over the run's own checkpoints.
    """
    recorded = read_run(RunDir(snapshot.dir))
    refused = f"cannot branch from {snapshot.name}"
    if recorded is None:
        raise OperationError(f"{refused}: it was not started by mpstui, or its record cannot be read")
    if recorded.template.resume_args is None:
        hint = "set it in [resume] of its profile, or with `mpstui run --resume`"
        raise OperationError(f"{refused}: nothing says how its program resumes from a checkpoint", hint)
    own = own_checkpoints(snapshot)
    early = [(one.step, one) for one in own if one.step is not None and one.step <= step]
    if not early:
        known = sorted(one.step for one in own if one.step is not None)
        hint = f"its first is from step {whole(known[0])}" if known else "the step of none of its checkpoints is known"
        where = f"from step {whole(step)} or before" if step < inf else "whose step is known"
        raise OperationError(f"{refused}: it has no complete checkpoint {where}", hint)
    found, checkpoint = max(early, key=lambda one: (one[0], not one[1].best))
    if not checkpoint.path.is_relative_to(snapshot.dir):
        folder = checkpoint.path.parent
        hint = "have the program save below {run_dir}, then each run has a folder of its own (see docs/profiles.md)"
        raise OperationError(f"{refused}: a branch would save to {folder} as well, over its checkpoints", hint)
    return Branch(snapshot.run, found, str(checkpoint.path))


def branch_choice(
    snapshot: RunSnapshot, branch: Branch, sets: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None
) -> LaunchChoice:
    """Return the launch of a branch: that of the run it leaves, with changed arguments and variables.

    Raises:
        OperationError: the run's record cannot be read.
    """
    choice = recorded_choice(RunDir(snapshot.dir))
    return replace(
        choice,
        sets={**choice.sets, **(sets or {})},
        env={**choice.env, **(env or {})},
        name=f"{choice.name or snapshot.name} from {branch.step}",
        queue=QueueRule(choice.queue.group),
        branch=branch,
    )


def brought_along(plan: LaunchPlan, run: RunDir) -> LaunchPlan:
    """Copy a checkpoint that another machine sent into the run, and return the plan with it; other plans are unchanged.

    Raises:
        OSError: it cannot be copied.
    """
    branch = plan.choice.branch
    if branch is None or branch.host is None:
        return plan
    sent = Path(branch.checkpoint).parent
    shutil.copytree(sent, run.brought, copy_function=_linked)
    own = branch._replace(checkpoint=str(run.brought / Path(branch.checkpoint).name))
    return replace(plan, choice=replace(plan.choice, branch=own))


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
