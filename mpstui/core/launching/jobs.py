"""Runs that a scheduler starts: how they are submitted, and who answers requests while there is no supervisor."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

from ...wire import rundir, storage
from ...wire.jobs import IN_JOB, RENDEZVOUS, EngineRule, JobRecord
from ...wire.records import ENDS, Ack, QueueRule, Request
from ...wire.rundir import RunDir, event, for_a_job
from ..engines.board import board_of
from ..engines.engine import Engine, JobOptions, ask, engine_named, engine_of
from ..model.errors import OperationError, UsageError
from ..model.jobs import JobPhase, JobView
from ..profiles.model import Profile
from .choice import ACCELERATOR_QUEUE, LaunchChoice
from .supervisors import PROGRAM, require_trust, start_supervisor

KILL_SECONDS = 10.0
"""If a kill is not answered for this long, the scheduler is asked to end the job."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """How the plan of a launch changes if a scheduler starts it."""

    engine: Engine
    options: JobOptions

    @property
    def rule(self) -> EngineRule:
        """What the supervisor inside the job must know."""
        return self.engine.rule(self.options)

    @property
    def accelerator(self) -> str:
        """What ``auto`` will find on the job's nodes, whatever devices this machine has."""
        return "cuda" if self.engine.asks_for_gpus(self.options) else "cpu"

    def fitted(self, profile: Profile, choice: LaunchChoice) -> tuple[Profile, LaunchChoice, JobPlan]:
        """Return the profile and the choice adapted to this job, and the job.

        Raises:
            UsageError: it would also wait in a queue of ours, or nothing would start it on the other nodes.
        """
        engine = self.engine
        if choice.queue.group not in (None, ACCELERATOR_QUEUE) or choice.queue.after:
            hint = f"{engine.title}'s own options do that, such as --job dependency=afterok:17"
            raise UsageError(f"a run that {engine.title} starts waits in no queue of mpstui", hint, field="queue")
        if engine.nodes(self.options) > 1:
            if profile.launcher != "torchrun":
                hint = 'with launcher = "torchrun" its processes are started on all of them'
                raise UsageError("nodes is more than 1, and nothing starts the program on the other nodes", hint)
            # What starts it on every node passes SIGTERM on, but perhaps not SIGINT.
            profile = replace(profile, stop=profile.stop._replace(signal="term"))
        return profile, replace(choice, profile=profile, queue=QueueRule()), self

    def over_nodes(self, argv: Sequence[str]) -> list[str]:
        """Turn torchrun on one node into torchrun on all nodes of the job: one launcher each, meeting on the first."""
        count = self.engine.nodes(self.options)
        if count == 1:
            return list(argv)
        # Without a unique name each launcher would wait for others under the same one, even those of another job.
        meeting = ["--nnodes", str(count), "--rdzv-backend", "c10d", "--rdzv-endpoint", RENDEZVOUS]
        place = list(argv).index("--standalone")
        return self.engine.on_every_node(
            [*argv[:place], *meeting, "--rdzv-id", RENDEZVOUS, *argv[place + 1 :]], self.options
        )


def job_plan(profile: Profile, choice: LaunchChoice) -> tuple[Profile, LaunchChoice, JobPlan | None]:
    """Return the profile and the choice adapted to where it starts, and the plan of its job; None: it starts here.

    Raises:
        UsageError: there is no such scheduler, or an option is wrong.
    """
    found = engine_of(profile.jobs, choice.on, choice.job)
    return JobPlan(*found).fitted(profile, choice) if found is not None else (profile, choice, None)


class Submission:
    """Context manager that submits runs together when it is left, as one array if there are several.

    Raises (on leaving): OperationError: the scheduler refuses them; then all of them are removed.
    """

    def __init__(self, rule: EngineRule) -> None:
        self._rule = rule
        self._runs: list[RunDir] = []
        self._environ: Mapping[str, str] = {}

    def __enter__(self) -> Submission:
        return self

    def start(self, run: RunDir, environ: Mapping[str, str]) -> None:
        """Add a run."""
        require_trust(run)
        self._environ = environ
        self._runs.append(run)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if error is None and self._runs:
                submit(self._rule, self._runs, self._environ)
        except OperationError:
            for run in self._runs:
                shutil.rmtree(run.path, ignore_errors=True)
            raise


def submit(rule: EngineRule, runs: Sequence[RunDir], environ: Mapping[str, str]) -> list[str]:
    """Submit runs to their scheduler, record the ids of their jobs, and return them.

    Args:
        runs: submitted as one array if there are several and the scheduler has arrays.
        environ: the caller's, secrets included: the scheduler passes it to the job.

    Raises:
        OperationError: the scheduler refuses, does not answer, or is not installed here.
    """
    engine, first = engine_named(rule.name), runs[0]
    if len(runs) > 1 and not engine.arrays:
        return [job for run in runs for job in submit(rule, [run], environ)]
    command = [sys.executable, "-I", "-S", str(PROGRAM), IN_JOB, engine.index, *(str(run.path) for run in runs)]
    now = time.time()
    spec = storage.read_json(first.spec) or {}
    argv = engine.submission(first.path, str(spec.get("name") or first.run), command, rule.options, len(runs))
    try:
        for name, text in engine.files(first.path, command).items():
            storage.write_bytes(first.path / name, text.encode())
            (first.path / name).chmod(0o700)
        for run in runs:
            before = storage.read_or_none(JobRecord, run.job)
            earlier = [*before.earlier, *([before.id] if before.id else [])] if before is not None else []
            storage.write_json(run.job, JobRecord(rule.name, now, None, argv, earlier))
    except OSError as error:
        raise OperationError(f"run {first.run} could not be made ready for {engine.title}: {error.strerror}") from error
    ids = engine.submitted(ask(engine, argv, for_a_job(rule, environ)), [run.path for run in runs])
    if len(ids) != len(runs):
        raise OperationError(f"{engine.title} accepted the job, and did not say its number", "see its own list of jobs")
    for run, job in zip(runs, ids, strict=True):
        record = storage.read_or_none(JobRecord, run.job)
        if record is not None and record.id is None:  # a job that started at once may have recorded it
            storage.write_json(run.job, record._replace(id=job))
        text = f"submitted as {engine.title} job {job}"
        with contextlib.suppress(OSError):
            storage.append_line(run.events, event(time.time(), len(run.attempt_numbers()) + 1, "note", text))
    board = board_of(rule.name, first.path.parent.parent)
    if board is not None:
        board.hurry()
    return ids


def job_of(run: RunDir, rule: EngineRule) -> JobView:
    """Return the run's job as its scheduler describes it; it is asked again if something was just changed."""
    record = storage.read_or_none(JobRecord, run.job)
    board = board_of(rule.name, run.path.parent.parent)
    if record is None or record.id is None or board is None:
        return JobView(engine=rule.name, title=rule.title, id="")
    return board.view(record.id, record.submitted)


def attend(run: RunDir, rule: EngineRule, environ: Mapping[str, str], *, submits: bool) -> None:
    """Handle the requests of a run that has no supervisor here.

    A supervisor on a node of the job reads them itself. To end a waiting job, it is cancelled; to restart one that is
    over, it is submitted again. A supervisor here, which starts nothing, answers the rest.

    Args:
        submits: whether to submit a restart, which happens once, and not whenever its answer is looked for.

    Raises:
        OperationError: the scheduler refuses or does not answer; the requests stay.
    """
    waiting = list(rundir.unanswered(run))
    ends = [request for request in waiting if request.action in ENDS]
    job = job_of(run, rule)
    if job.silent_since is not None and ends and not job.phase.has_nodes:
        raise OperationError(
            f"{job.title} does not answer: job {job.id} could not be called off",
            "the request stays and is carried out when the job starts; or ask again when the scheduler is back",
        )
    if job.phase.waits or (job.phase is JobPhase.UNKNOWN and job.id):
        if ends:
            change(run, rule, "cancel")
            start_supervisor(run, environ)
    elif job.phase.has_nodes:
        late = time.time() - KILL_SECONDS
        if any(request.action == "kill" and request.time < late for request in ends):
            change(run, rule, "cancel")
    elif ends:
        start_supervisor(run, environ)
    elif submits and any(request.action == "restart" for request in waiting):
        submit(rule, [run], environ)


def change(run: RunDir, rule: EngineRule, action: str) -> None:
    """Have the scheduler do something to a run's job: cancel, hold, release or top.

    Raises:
        OperationError: it refuses, does not answer, or has no way to.
    """
    engine, job = engine_named(rule.name), job_of(run, rule)
    command = engine.change(action, job.id)
    if not command or not job.id:
        raise OperationError(f"{engine.title} has no way to {action} job {job.id or 'without a number'}")
    ask(engine, command)
    board = board_of(rule.name, run.path.parent.parent)
    if board is not None:
        board.hurry()


def hold(run: RunDir, rule: EngineRule, request: Request) -> Request:
    """Hold a waiting job (``pause``) or release it (``continue``), and write the request with its answer.

    Raises:
        OperationError: the scheduler refuses or does not answer.
    """
    action, said = ("hold", "held") if request.action == "pause" else ("release", "released")
    job = job_of(run, rule)
    change(run, rule, action)
    text = f"{job.title} job {job.id} is {said}" + ("; `mpstui continue` releases it" if action == "hold" else "")
    rundir.submit(run, request)
    rundir.answer(run, Ack(request.id, True, rule.name, time.time(), text))
    return request


def interim_answer(run: RunDir, rule: EngineRule, request: Request) -> Ack | None:
    """Return the answer to a restart whose job is still waiting, perhaps for days; None if there is nothing to say."""
    job = job_of(run, rule)
    if request.action != "restart" or not job.phase.waits:
        return None
    return Ack(
        request.id, True, rule.name, time.time(), f"{job.sentence()}; it continues when the job starts{job.silence()}"
    )
