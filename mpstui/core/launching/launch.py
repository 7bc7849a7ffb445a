"""Launches what was planned: each run gets its directory, its record, and a supervisor or a scheduler's job."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...wire import rundir, storage
from ...wire.liveness import machine_id
from ...wire.records import AlertRule, CauseRule, Origin, Spec
from ...wire.rundir import RunDir, create_run_dir
from ..machine import require_disk_space
from ..model.errors import OperationError
from ..model.home import Home, require_own
from ..profiles.first_run import remember
from .choice import choice_json, launch_arguments
from .editing import frozen_text
from .jobs import Submission
from .planning import LaunchPlan
from .provenance import ProvenanceNotes
from .supervisors import Supervisors, start_supervisor
from .values import require_values


def launch_all(
    plans: Sequence[LaunchPlan], home: Home, environ: Mapping[str, str], clock: Callable[[], float], call: str = ""
) -> list[str]:
    """Start planned runs, detached, in this order; return their ids.

    If there are several, or a scheduler starts it, the program is first asked which arguments it takes: one misspelt
    word would fail them all.

    Args:
        plans: at least one; all for the same scheduler, or none for any.
        call: an id of this request, so that it starts each run only once, however often it arrives.

    Raises: see :func:`launch`.
        UsageError: a value that the program would refuse.
    """
    if len(plans) == 1 and plans[0].engine is None:
        return [launch(plans[0], home, environ, clock(), call=call)]
    for ask, made in zip([True, *[False] * len(plans)], plans, strict=False):
        whole = {**environ, **{line.name: line.value for line in made.env}}
        require_values(made.argv, launch_arguments(made.choice)[0], made.choice.profile.cwd, whole, ask=ask)
    provenance = ProvenanceNotes()
    with Submission(plans[0].engine) if plans[0].engine is not None else Supervisors(home.runs) as supervisors:
        return [
            launch(plan, home, environ, clock(), supervisors.start, provenance, f"{call}.{number}" if call else "")
            for number, plan in enumerate(plans)
        ]


def launch(
    plan: LaunchPlan,
    home: Home,
    environ: Mapping[str, str],
    now: float,
    start: Callable[[RunDir, Mapping[str, str]], None] = start_supervisor,
    provenance: ProvenanceNotes | None = None,
    call: str = "",
) -> str:
    """Start a planned run, detached, and return its id.

    The values of secrets reach the supervisor through its environment and are never written to a file.

    Args:
        now: Unix seconds.
        start: starts its supervisor.
        provenance: shared by runs that are launched together.
        call: an id of this request; if it has already created a run, that one is started, if need be, and returned.

    Raises:
        OperationError: the home cannot be written, the disk is nearly full, or the supervisor gave up.
    """
    if call and (made := _launched_by(call, home)) is not None:
        if not (made.status.exists() or made.job.exists()):
            start(made, {**environ, **plan.choice.env, **plan.secrets})
        return made.run
    require_disk_space(home.runs, plan.choice.profile.min_free_bytes)
    require_own(home)
    try:
        run = create_run_dir(home.runs, plan.name, now)
        try:
            if plan.choice.branch is not None:
                from .branching import brought_along

                plan = brought_along(plan, run)
            storage.write_json(run.spec, spec_json(plan, run, now, home, call))
        except OSError:  # leave no incomplete run behind
            shutil.rmtree(run.path, ignore_errors=True)
            raise
    except OSError as error:
        raise OperationError(
            f"no run can be created in {home.runs}: {error.strerror}", "see `mpstui doctor`, or set MPSTUI_HOME"
        ) from error
    (provenance or ProvenanceNotes()).write(run, Path(plan.template.cwd), plan.argv[0], environ)
    start(run, {**environ, **plan.choice.env, **plan.secrets})
    with contextlib.suppress(OSError):
        remember(plan.choice.profile, home)
    return run.run


def _origin(run: RunDir) -> Origin:
    found = storage.stat_of(run.path)
    return Origin(machine_id(), str(run.path), found.st_ino if found is not None else 0)


def _launched_by(call: str, home: Home) -> RunDir | None:
    for run in rundir.run_dirs(home.runs):
        with contextlib.suppress(OSError, storage.UnreadableRecord):
            if call.encode() in (data := storage.read_bytes(run.spec)) and storage.load_object(data)["call"] == call:
                return run
    return None


def spec_json(plan: LaunchPlan, run: RunDir, now: float, home: Home | None = None, call: str = "") -> dict[str, Any]:
    """Return ``spec.json``: the record, and under ``choice`` the choice, from which the form can be filled again."""
    from ..diagnosis.engine import supervisor_rules

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
        # The supervisor must find causes without this code, so it gets the rules as data.
        causes=[CauseRule(**rule) for rule in supervisor_rules()],
        queue=plan.queue,
        gpus=plan.gpus,
        watch=dict(profile.watch),
        pid_file=profile.pid_file,
        max_log_bytes=profile.max_log_bytes,
        min_free_bytes=profile.min_free_bytes,
        alerts=AlertRule(str(home.settings), str(home.screen_lock)) if home else None,
        origin=_origin(run),
        branch=plan.choice.branch,
        engine=plan.engine,
        call=call or None,
    )
    return {**storage.to_json(spec), "choice": choice_json(plan.choice)}
