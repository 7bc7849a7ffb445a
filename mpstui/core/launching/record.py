"""How a run was started, according to its record; which actions can work on it, and what a restart requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...wire import liveness, storage
from ...wire.records import ChoiceRecord, LaunchTemplate, Rehearsal, Request, Spec, Status
from ...wire.rundir import AGENT_VARIABLE, RunDir
from ...wire.storage import UnreadableRecord
from ..actions import ACTIONS, BY_ID, RunFacts, allowed
from ..model.errors import OperationError, UsageError
from ..model.snapshot import Availability, RunSnapshot
from ..runs.waiting import restart_is_wished

if TYPE_CHECKING:
    from ..machine import Machine
    from .choice import LaunchChoice

_OF_THE_PROGRAM = ("clear_cache", "save", "evaluate")
"""Requests that only the training itself can carry out."""
_REPORTS_ALONE = (
    'this program reports by itself and takes no such request: the agent (agent = true), or report.takes("{}") in its '
    "code, would"
)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """``spec.json``, with the edited launch of the last restart that changed it."""

    spec: Spec
    choice: ChoiceRecord
    """Empty in records that other programs wrote."""
    template: LaunchTemplate
    """What the next attempt starts from."""

    @property
    def has_profile(self) -> bool:
        """Whether it was launched from a profile's file, rather than as a command."""
        return self.spec.profile_path is not None

    def device_refusal(self, device: str) -> str:
        """Return why the next attempt cannot run on ``device``; empty if it can."""
        if device in self.template.variants:
            return ""
        env = next(iter(self.template.variants.values())).env if self.template.variants else {}
        return no_variant(device, profile=self.has_profile, agent=AGENT_VARIABLE in env)

    @property
    def no_resume(self) -> str:
        """Where every restart begins, and why; empty if it resumes from the run's newest checkpoint."""
        if self.template.resume_args is not None:
            return ""
        if self.has_profile:
            return "it will start from step 0: its profile has no [resume] setting"
        from .arguments import resuming_argument

        command = next((one.argv for one in self.template.variants.values()), [])
        way = resuming_argument(command, Path(self.template.cwd))
        if way is None:
            return "it will start from step 0: this command has no way to resume (`mpstui run --resume`)"
        if not {word.partition("=")[0] for word in command}.isdisjoint(way.flags):
            return f"it will start where the {way.flags[-1]} of its command says"
        value = "true" if way.kind == "switch" else "CHECKPOINT"
        how = f"`mpstui restart {self.spec.run} --set {way.name}={value}`, or `mpstui run --resume`"
        return f"it will start from step 0: its {way.flags[-1]} is only used if you say so ({how})"

    def resume_refusal(self, source: str) -> str:
        """Return why the next attempt cannot begin from ``source``; empty if it can, as always from scratch."""
        if source in ("latest", "scratch") or self.template.resume_args is not None:
            return ""
        if not self.has_profile:
            return f"this command cannot resume from {source}: it has no way to (`mpstui run --resume`)"
        return f"this program cannot resume from {source}: its profile has no [resume] args"


def no_variant(device: str, *, profile: bool, agent: bool) -> str:
    """Return why a program cannot be put on ``device``, and what would make that possible.

    Args:
        profile: it was launched from a profile's file, and not as a command.
        agent: it is started with the agent, which hides devices from Python programs.
    """
    what, missing = ("program", f"its profile has no [device_args] {device}, ") if profile else ("command", "")
    why = f"this {what} cannot be told to use {device}: {missing}none of its arguments names a device"
    return why + ("" if agent or device != "cpu" else ", and its agent is off (`--agent` turns it on)")


def read_run(run: RunDir) -> RecordedRun | None:
    """Return the record of a run; None if it cannot be read, in which case nothing may be done to the run."""
    spec = storage.stamp(run.spec)
    return _read_run(run.path, (spec, storage.stamp(run.status))) if spec is not None else None


@lru_cache(maxsize=256)
def _read_run(path: Path, stamps: tuple[object, object]) -> RecordedRun | None:
    run = RunDir(path)
    try:
        record, status = storage.read_json(run.spec), storage.read(Status, run.status)
        spec = storage.from_json(Spec, record) if record is not None else None
        if record is None or spec is None or not spec.launch.variants:
            return None
        edited = status.template if status else None
        template = storage.from_json(LaunchTemplate, edited) if edited else spec.launch
    except (UnreadableRecord, OSError):
        return None
    if not edited:
        return RecordedRun(spec, chosen(record), template)
    # The choice came with the newest restart that asked for this template; request ids sort by time.
    for path in sorted(run.requests.glob("[!.]*.json"), reverse=True):
        request = storage.read_or_none(Request, path)
        if request is not None and request.options.get("launch") == edited:
            return RecordedRun(spec, chosen(request.options), template)
    return RecordedRun(spec, ChoiceRecord(), template)


def chosen(found: Mapping[str, Any]) -> ChoiceRecord:
    """Return the choice in a record or a request; an empty one if it cannot be read."""
    choice = found.get("choice")
    try:
        return storage.from_json(ChoiceRecord, choice) if isinstance(choice, dict) else ChoiceRecord()
    except UnreadableRecord:
        return ChoiceRecord()


def plan_restart(
    recorded: RecordedRun,
    device: str | None,
    source: str,
    choice: LaunchChoice | None,
    rehearsal: Rehearsal | None = None,
    *,
    runs: Path,
    environ: Mapping[str, str],
    machine: Callable[[], Machine],
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Check a restart against the run's record and this machine.

    Returns the options of its request, and secrets for the supervisor's environment, which must never be written down.

    Args:
        device: None keeps the current one.
        source: latest, best, scratch, or a checkpoint's path.
        choice: an edited launch, for this and later attempts; None starts the same one again.
        rehearsal: only try it out.
        runs: the folder of all runs, whose disk needs free space.
        environ: the caller's.
        machine: returns this machine; only called if it must be looked at.

    Raises:
        UsageError: the device or checkpoint does not exist, or the edited launch cannot work.
        OperationError: the program cannot be made to use the device, or the disk is nearly full.
    """
    from ..machine import require_device, require_disk_space

    require_disk_space(runs, recorded.spec.min_free_bytes)
    options: dict[str, Any] = {"device": device, "from": _existing(source, Path(recorded.template.cwd))}
    options |= {"rehearsal": storage.to_json(rehearsal)} if rehearsal is not None else {}
    if choice is not None:
        from .choice import choice_json
        from .editing import environment_of
        from .planning import plan

        environ = environment_of(RunDir(runs / recorded.spec.run), environ, machine())
        planned = plan(replace(choice, device=device or choice.device), environ=environ, machine=machine())
        options |= {"launch": storage.to_json(planned.template), "choice": choice_json(choice)}
        return options, planned.secrets
    if why := (recorded.device_refusal(device) if device else "") or recorded.resume_refusal(source):
        raise OperationError(why)
    if device and recorded.spec.engine is None:  # the nodes of a job have devices of their own
        variant = recorded.template.variants[device]
        require_device(device, variant.argv[0], {**environ, **variant.env}, machine())
    return options, {}


def _existing(source: str, cwd: Path) -> str:
    """Return ``latest``, ``best``, ``scratch``, or the full path of a checkpoint, which is a file or a folder."""
    if source in ("latest", "best", "scratch"):
        return source
    for path in ((Path.cwd() / Path(source).expanduser()).absolute(), cwd / source):
        if path.exists():
            return str(path)
    raise UsageError(
        f"there is no checkpoint {source}", "name a file, a folder, or one of latest, best, scratch", field="from"
    )


def availability(snapshot: RunSnapshot, action: str) -> Availability:
    """Return whether ``action`` (an id of :data:`mpstui.core.actions.ACTIONS`) can work for this run.

    If it can, its sentence is a caution, for example that a restart can only begin from scratch.
    """
    return allowed(snapshot, _facts(snapshot), BY_ID[action])


def available(snapshot: RunSnapshot) -> Mapping[str, Availability]:
    """Return, for every action by its id, whether it can work for this run now."""
    facts = _facts(snapshot)
    return {action.id: allowed(snapshot, facts, action) for action in ACTIONS}


def looked_into(snapshots: Iterable[RunSnapshot]) -> list[RunSnapshot]:
    """Complete the snapshots of a list with what a closer look shows: checkpoints, and what can be done with each."""
    from ..runs.checkpoints import CheckpointScanner
    from ..runs.files import WitnessReader
    from ..runs.local_machine import LocalMachine

    machine, found = LocalMachine(table=liveness.system_process_table(), boot_id=liveness.boot_id()), []
    for one in snapshots:
        if one.brief and one.is_ours:
            reader = WitnessReader(RunDir(one.dir), machine)
            reader.poll()
            files = CheckpointScanner().of_run(one.dir, reader.seen, one.numbers, ())
            one = replace(one, checkpoints=files, brief=False)
        found.append(replace(one, available=available(one)))
    return found


def _facts(snapshot: RunSnapshot) -> RunFacts | None:
    """Return what a run's folder says; None if its record cannot be read, or it was not started by mpstui."""
    run = RunDir(snapshot.dir)
    recorded = read_run(run) if snapshot.is_ours else None
    if recorded is None:
        return None
    return RunFacts(
        restart_requested=restart_is_wished(run),
        no_cpu=recorded.device_refusal("cpu"),
        not_resumable=recorded.no_resume,
        unheard=_unheard(run, snapshot.attempt),
    )


def _unheard(run: RunDir, attempt: int) -> dict[str, str]:
    """Return the requests that the trainer itself cannot carry out, and why; a program may report which it takes."""
    folder = run.attempt(attempt)
    try:
        beat = storage.read_json(folder.heartbeat())
    except (OSError, UnreadableRecord):
        return {}  # being written, or from a newer mpstui: let its writer decide
    if beat is not None:
        alone = beat.get("reported") and not folder.stack_signal.exists()  # there is no agent to answer for it
        unheard = [one for one in _OF_THE_PROGRAM if one not in (beat.get("answers") or ())] if alone else []
        return {one: _REPORTS_ALONE.format(one) for one in unheard}
    why = "only the program itself can do that, and it is still starting: try again in a moment"
    if not any(run.attempt(number).heartbeat().exists() for number in range(1, attempt)):
        why = (
            "only the program itself can do that, and it has not reported yet: try again in a moment if it has just "
            "started; else `mpstui show` says why the agent is not loaded in it"
        )
    return dict.fromkeys(_OF_THE_PROGRAM, why)
