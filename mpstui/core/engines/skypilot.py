"""SkyPilot's managed jobs, through ``sky jobs``. Written from its documentation and only tested against recordings.

A job is identified by its name, which is its run's id: both its environment and the list of jobs contain it. A job that
SkyPilot restarts after a preemption starts on another machine and resumes from the newest checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ...wire import heartbeat
from ...wire.jobs import EngineRule
from ..model.jobs import JobPhase, JobView
from .engine import LONG_OPTION, JobOptions

_PHASES = {
    "PENDING": JobPhase.PENDING,
    "DEPRECATED_SUBMITTED": JobPhase.PENDING,
    "SUBMITTED": JobPhase.PENDING,
    "STARTING": JobPhase.PENDING,
    "RECOVERING": JobPhase.PENDING,
    "RUNNING": JobPhase.RUNNING,
    "WINDING_DOWN": JobPhase.ENDING,
    "CANCELLING": JobPhase.ENDING,
    "SUCCEEDED": JobPhase.COMPLETED,
    "CANCELLED": JobPhase.CANCELLED,
    "FAILED": JobPhase.FAILED,
    "FAILED_SETUP": JobPhase.FAILED,
    "FAILED_PRECHECKS": JobPhase.FAILED,
    "FAILED_DRIVER": JobPhase.FAILED,
    "FAILED_NO_RESOURCE": JobPhase.FAILED,
    "FAILED_CONTROLLER": JobPhase.FAILED,
}
"""The values of ``status`` in ``sky jobs queue -o json``."""
_OURS = {"name": "--name names the run", "detach-run": "mpstui follows the run itself", "yes": "mpstui says it"}
_NAME, _WORDS = "MPSTUI_JOB_NAME", "MPSTUI_JOB_WORD_"


class SkyPilot:
    """A scheduler across clouds; the run directory must be on storage that the task finds under the same path."""

    name, title, program, index, arrays = "sky", "SkyPilot", "sky", "MPSTUI_JOB_INDEX", False
    refused = (
        "`sky check` tells which clouds there are; `--job OPTION=VALUE` or [sky] of the profile says what is asked"
    )
    usual: ClassVar[Mapping[str, str]] = {"gpus": "A100:1", "infra": "aws", "cpus": "8+"}

    def check(self, options: JobOptions) -> str:
        """See :class:`.engine.Engine`."""
        for key in options:
            if key in _OURS:
                return f"`{key}` cannot be set: {_OURS[key]}"
            if not LONG_OPTION.fullmatch(key):
                return f"`{key}` is no long option of `sky jobs launch`, such as gpus, infra or use-spot"
        if options.get("num-nodes", "1") != "1":
            return "`num-nodes` is 1: SkyPilot starts a program on every node by itself, and a run has one supervisor"
        return ""

    def nodes(self, options: JobOptions) -> int:
        """See :class:`.engine.Engine`."""
        return 1

    def asks_for_gpus(self, options: JobOptions) -> bool:
        """See :class:`.engine.Engine`."""
        return bool(options.get("gpus"))

    def rule(self, options: JobOptions) -> EngineRule:
        """See :class:`.engine.Engine`. SkyPilot gives no notice of a preemption, and restarts a job on its own."""
        return EngineRule(name=self.name, title=self.title, ids=[f"{{{_NAME}}}"], options=dict(options))

    def on_every_node(self, argv: Sequence[str], options: JobOptions) -> list[str]:
        """See :class:`.engine.Engine`."""
        return list(argv)

    def files(self, folder: Path, command: Sequence[str]) -> Mapping[str, str]:
        """See :class:`.engine.Engine`: a task in JSON, which is YAML. Its shell text only has numbered variables."""
        names = [f"{_WORDS}{number}" for number in range(len(command))]
        run = "exec " + " ".join(f'"${name}"' for name in names)
        envs = {_NAME: folder.name, **dict(zip(names, command, strict=True))}
        return {"task.yaml": json.dumps({"envs": envs, "run": run}, indent=1)}

    def submission(self, folder: Path, name: str, command: Sequence[str], options: JobOptions, count: int) -> list[str]:
        """See :class:`.engine.Engine`."""
        words = [f"--{key}={value}" if value else f"--{key}" for key, value in options.items()]
        own = ["--yes", "--detach-run", f"--name={folder.name}"]
        return [self.program, "jobs", "launch", *own, *words, str(folder / "task.yaml")]

    def submitted(self, output: str, folders: Sequence[Path]) -> list[str]:
        """See :class:`.engine.Engine`: its output is meant for people, but the job's name is ours."""
        return [folder.name for folder in folders]

    def listing(self) -> list[str]:
        """See :class:`.engine.Engine`. Without --all: the newest 50 only; without --verbose: no places or reasons."""
        return [self.program, "jobs", "queue", "--all", "--verbose", "-o", "json"]

    def listed(self, output: str) -> list[JobView]:
        """See :class:`.engine.Engine`; of several jobs with the same name, the newest counts."""
        found = json.loads(output)
        jobs = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else None
        if jobs is None:
            raise ValueError("no list of jobs")
        views = map(self._view, sorted(jobs, key=lambda one: heartbeat.integer(one.get("job_id")) or 0))
        return list({view.id: view for view in views}.values())

    def history(self, ids: Sequence[str]) -> list[str]:
        """See :class:`.engine.Engine`."""
        return []

    def remembered(self, output: str) -> list[JobView]:
        """See :class:`.engine.Engine`."""
        return []

    def change(self, action: str, job: str) -> list[str]:
        """See :class:`.engine.Engine`."""
        return [self.program, "jobs", "cancel", "--yes", f"--name={job}"] if action == "cancel" else []

    def offers(self) -> list[str]:
        """See :class:`.engine.Engine`: clouds offer everything."""
        return []

    def offered(self, output: str) -> Mapping[str, str]:
        """See :class:`.engine.Engine`."""
        return {}

    def output_of(self, job: str) -> list[str]:
        """See :class:`.engine.Engine`."""
        return []

    def output_path(self, output: str) -> str:
        """See :class:`.engine.Engine`: its logs are on its own machines."""
        return ""

    def _view(self, told: Mapping[str, Any]) -> JobView:
        text, number = heartbeat.text, heartbeat.number
        state = (text(told.get("status")) or "").rpartition(".")[2]
        waits = {"STARTING": "being provisioned", "RECOVERING": "recovering"}.get(state)
        if told.get("schedule_state") == "ALIVE_BACKOFF":
            waits = "no resources are free, it is tried again"
        where = " ".join(part for part in (text(told.get("cloud")), text(told.get("region"))) if part and part != "-")
        return JobView(
            engine=self.name,
            title=self.title,
            id=text(told.get("job_name")) or str(told.get("job_id")),
            phase=_PHASES.get(state, JobPhase.UNKNOWN),
            state=state or None,
            reason=text(told.get("failure_reason")) or waits,
            nodes=where or None,
            name=text(told.get("job_name")),
            starts=number(told.get("start_at")),
        )
