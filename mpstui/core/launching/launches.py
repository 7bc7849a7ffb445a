"""Doing what a plan says: the run directory, the frozen record, the supervisor."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from ...wire import records, rundir, storage
from ...wire.records import AlertRule, CauseRule, Spec
from ...wire.rundir import RunDir, create_run_dir
from ..machine import require_disk_space
from ..model.errors import OperationError
from ..model.home import Home
from .actions import start_supervisor
from .choice import choice_json
from .editing import frozen_text
from .planning import LaunchPlan


def launch(plan: LaunchPlan, home: Home, environ: Mapping[str, str], now: float) -> str:
    """Start a planned run, detached, and return its id.

    The values of secrets reach the supervisor through its environment and are written nowhere.

    Raises:
        OperationError: the home cannot be written, the disk is nearly full, or the supervisor gave up.
    """
    require_disk_space(home.runs, plan.choice.profile.min_free_bytes)
    try:
        run = _create(plan, home, now)
    except OSError as error:
        raise OperationError(
            f"no run can be created in {home.runs}: {error.strerror}", "see `mpstui doctor`, or set MPSTUI_HOME"
        ) from error
    start_supervisor(run, {**environ, **plan.choice.env, **plan.secrets})
    return run.run


def _create(plan: LaunchPlan, home: Home, now: float) -> RunDir:
    """The run directory with its record; nothing at all when the record cannot be written (an unreadable run else)."""
    run = create_run_dir(home.runs, plan.name, now)
    try:
        storage.write_json(run.spec, spec_json(plan, run, now, home))
    except OSError:
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    return run


def spec_json(plan: LaunchPlan, run: RunDir, now: float, home: Home | None = None) -> dict[str, Any]:
    """``spec.json``: the record, plus the choice itself under ``choice``, from which the form can be filled again."""
    profile = plan.choice.profile
    spec = Spec(
        run=run.run,
        name=plan.name,
        created=now,
        launch=plan.template,
        profile=profile.slug if profile.path else None,
        profile_path=str(profile.path) if profile.path else None,
        profile_text=frozen_text(profile),
        by=rundir.asker(),
        recipe=plan.recipe,
        secret_env=list(plan.secret_names),
        stop=profile.stop,
        restart=profile.restart,
        causes=_cause_rules(),
        queue=plan.queue,
        gpus=plan.gpus,
        watch=dict(profile.watch),
        pid_file=profile.pid_file,
        max_log_bytes=profile.max_log_bytes,
        min_free_bytes=profile.min_free_bytes,
        alerts=AlertRule(str(home.settings), str(home.screen_lock)) if home else None,
    )
    return {**records.to_json(spec), "choice": choice_json(plan.choice)}


def _cause_rules() -> list[CauseRule]:
    """What the supervisor can name by itself; it must work without us, so the rules travel as data."""
    from ..diagnosis.engine import supervisor_rules

    return [CauseRule(**rule) for rule in supervisor_rules()]
