"""The records in a run directory: what was asked for (spec), what is (status), what was started (launch), how it ended.

Records are NamedTuples, which add nothing to the supervisor's start; importing ``dataclasses`` alone costs 20 ms of CPU
time. The annotations are the whole declaration: :func:`.storage.read` checks values against them. Defaults are shared:
never change a record, or anything in it, in place.
"""

# No `from __future__ import annotations` here: reading needs the annotations as types, not as texts.
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from .jobs import EngineRule
from .liveness import ProcessIdentity
from .storage import SCHEMA


class Variant(NamedTuple):
    """How the program is started on one device: the whole command and its environment."""

    argv: Sequence[str]
    env: Mapping[str, str] = {}
    unset: Sequence[str] = []
    """Variables of the supervisor's own environment that the program must not see."""


class Totals(NamedTuple):
    """Planned totals according to the command's arguments, the least reliable source. None is unknown."""

    epochs: Optional[int] = None
    steps: Optional[int] = None


class LaunchTemplate(NamedTuple):
    """Everything a supervisor needs to start an attempt, on the requested device or another one."""

    device: str
    """The requested device: auto, mps, cuda or cpu."""
    variants: Mapping[str, Variant]
    """By device, without those that this program cannot be told to use."""
    cwd: str
    resume_args: Optional[Sequence[str]] = None
    """Appended with ``{checkpoint}`` filled in; None: this program cannot be resumed."""
    checkpoints: Optional[str] = None
    """Glob of checkpoint files, relative to the run directory, else to ``cwd``."""
    totals: Totals = Totals()


class StopRule(NamedTuple):
    """How this program is asked to end."""

    signal: str = "term"
    """term or int: the first signal to the main process group."""
    grace_seconds: float = 30.0
    saving_cap_seconds: float = 300.0
    """The grace period is extended while a checkpoint is being written, up to this long in all."""


class RestartRule(NamedTuple):
    """When a failed attempt is restarted automatically; off unless ``on`` names causes."""

    on: Sequence[str] = []
    device: Optional[str] = None
    """The device of the new attempt; None keeps the one it had."""
    delays_seconds: Sequence[float] = [10.0, 60.0, 300.0]
    most_per_hour: int = 3


RESTART_CAUSES = (
    "disk_full",
    "mps_watermark_invalid",
    "mps_oom",
    "cuda_oom",
    "cpu_oom",
    "mps_buffer_too_big",
    "metal_cmdbuf_oom",
    "metal_watchdog",
    "metal_hang",
    "metal_encoder_thread",
    "metal_xpc",
    "metal_cmdbuf",
    "mpsgraph_llvm",
    "mps_assert_ndarray",
    "omp_duplicate",
    "too_many_files",
    "dl_worker_signal",
    "mps_op_missing",
    "compile_mps",
    "bus_error",
    "segfault",
    "killed_os",
)
"""Causes that a restart may depend on, specific before general: the first that applies is the cause.

NaN is not among them: programs mention it and keep training, and the same checkpoint would lead to it again."""


class CauseRule(NamedTuple):
    """A cause that the supervisor itself recognises, by a pattern in the last output, a signal or an exit code."""

    id: str
    patterns: Sequence[str] = []
    signals: Sequence[int] = []
    codes: Sequence[int] = []
    unless: Sequence[str] = []
    """Patterns of failures that print the same words, such as a missing compiler: if one matches, this is no cause."""


AFTER_CHECKPOINT = "{after.checkpoint}"
"""Placeholder: the newest complete checkpoint of the first run in :attr:`QueueRule.after`; empty without such a run."""


class QueueRule(NamedTuple):
    """What must be true before the first attempt starts."""

    group: Optional[str] = None
    after: Sequence[Mapping[str, str]] = []
    """``{"run": id, "when": "ok" | "any" | "fail"}``; all must be met."""


GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
OF_THIS_MACHINE = (GPU_VARIABLE, "CUDA_DEVICE_ORDER", "TMPDIR", "XDG_RUNTIME_DIR")
"""Variables whose values mean nothing on another machine."""


def gpu_words(names: Sequence[str]) -> str:
    """``GPU 2``, ``GPUs 0, 1``."""
    return f"{'GPU' if len(names) == 1 else 'GPUs'} {', '.join(names)}"


class GpuRule(NamedTuple):
    """The CUDA devices from which a queued run is given its own; without this rule it waits only for a slot."""

    devices: Sequence[str]
    """Named as in ``CUDA_VISIBLE_DEVICES``."""
    takes: int = 1
    """How many devices it is given."""
    fixed: bool = False
    """The run's own environment names them: they are reserved for it, and no variable is set."""
    env: Mapping[str, str] = {}
    """Variables that give the names their meaning, such as ``CUDA_DEVICE_ORDER``."""

    def sentence(self, given: Sequence[str]) -> str:
        """``GPU 2 of 4``, or ``GPU 3 (of 2, 3)`` if only some of the machine's devices could be chosen from."""
        count = len(self.devices)
        whole = list(self.devices) == [str(number) for number in range(count)]
        named = gpu_words(given)
        if self.fixed:
            return named
        return f"{named} of {count}" if whole else f"{named} (of {', '.join(self.devices)})"


class AlertRule(NamedTuple):
    """Where alerts go is set in a file of the user's that may hold secrets: only its path is recorded."""

    settings: str
    """Path of ``settings.toml``, read again for every alert; without the file there is no alert."""
    screen_lock: str
    """Held by every open screen."""


ALERT_EVENTS = ("crash", "stall", "finish")
"""What an alert can be about."""
ALERT_WHEN = ("always", "no_screen", "never")


def is_safe_address(url: str) -> bool:
    """True if a webhook's address uses https or is on this machine."""
    return url.startswith(("https://", "http://127.0.0.1:", "http://localhost:"))


class Origin(NamedTuple):
    """Where a run was created: it starts automatically only there, and not from a copy of its directory."""

    machine: str
    folder: str
    """The path of the run's directory when it was created."""
    inode: int
    """The directory's inode: a copy has a different one, a renamed directory has the same."""


class Provenance(NamedTuple):
    """``provenance.json``: what a run was launched from; the changes to the code are in ``source.diff``."""

    commit: Optional[str] = None
    """Of the repository that the program was started in; None: there is none, or git failed."""
    branch: Optional[str] = None
    changed_files: int = 0
    """Tracked files that differ from the commit; untracked ones are ignored."""
    diff_is_whole: bool = True
    host: str = ""
    system: str = ""
    python: Optional[str] = None
    """Version of the program's interpreter."""
    packages: Mapping[str, str] = {}
    """Versions of the packages that influence a training, as installed for that interpreter."""


class ChoiceRecord(NamedTuple):
    """What was chosen in addition to the profile, without secrets; the launch form shows it again."""

    device: Optional[str] = None
    sets: Mapping[str, str] = {}
    recipe: Optional[str] = None
    name: Optional[str] = None
    env: Mapping[str, str] = {}
    drop_args: Sequence[str] = []
    drop_env: Sequence[str] = []
    queue: QueueRule = QueueRule()
    agent: Optional[bool] = None
    on: Optional[str] = None
    job: Mapping[str, str] = {}
    command: Sequence[str] = []
    """Replaces the profile's command; empty: the profile's is used."""


class Branch(NamedTuple):
    """Where a run branched off another one, from whose checkpoint it began."""

    run: str
    step: int
    checkpoint: str
    """The checkpoint's path. It belongs to the other run: it is read, never written or deleted."""
    host: Optional[str] = None
    """The machine the other run is on, if not this one; the checkpoint is then a copy in this run's directory."""

    @property
    def left(self) -> str:
        """The run it branched off, as it is written in commands."""
        return f"{self.host}:{self.run}" if self.host else self.run


class Spec(NamedTuple):
    """``spec.json``: what was asked, frozen at launch."""

    run: str
    name: str
    created: float
    launch: LaunchTemplate
    schema: int = SCHEMA
    profile: Optional[str] = None
    profile_path: Optional[str] = None
    profile_text: Optional[str] = None
    by: Optional[str] = None
    recipe: Optional[str] = None
    secret_env: Sequence[str] = []
    """Names of secret variables the run was started with; their values are nowhere on disk."""
    stop: StopRule = StopRule()
    restart: RestartRule = RestartRule()
    causes: Sequence[CauseRule] = []
    queue: QueueRule = QueueRule()
    gpus: Optional[GpuRule] = None
    watch: Mapping[str, str] = {}
    """Other files of the program: ``heartbeat``, ``metrics``, ``log``, ``pattern``."""
    pid_file: Optional[str] = None
    max_log_bytes: int = 2 << 30
    min_free_bytes: int = 0
    """No attempt starts automatically, from a queue or after a crash, while less than this is free on the disk."""
    alerts: Optional[AlertRule] = None
    origin: Optional[Origin] = None
    """None: made by an older mpstui, which did not say."""
    branch: Optional[Branch] = None
    """None: it did not branch off another run."""
    engine: Optional[EngineRule] = None
    """The scheduler it is a job of; None: it runs where it was launched."""
    call: Optional[str] = None
    """The id of the launch request, if it came from another machine."""


class Status(NamedTuple):
    """``status.json``: the supervisor's own account, always replaced whole."""

    run: str
    phase: str
    """queued, starting, running, stopping, backing_off, ended or stop_failed."""
    attempt: int
    updated: float
    schema: int = SCHEMA
    boot_id: str = ""
    supervisor: Optional[ProcessIdentity] = None
    """``[pid, start]``."""
    trainer: Optional[ProcessIdentity] = None
    """``[pid, start]``; the trainer leads its own process group and session."""
    tree: Sequence[ProcessIdentity] = []
    """``[pid, start]`` of the trainer's descendants as last seen."""
    paused: bool = False
    held_for: Optional[str] = None
    """Why the supervisor paused it: ``disk``. None: a person paused it, or it is not paused."""
    request: Optional[str] = None
    """Id of the request being carried out."""
    action: Optional[str] = None
    asker: Optional[str] = None
    """Who made that request."""
    asked_at: Optional[float] = None
    """When the trainer was asked to end, Unix seconds."""
    adopted: bool = False
    """This supervisor did not start the trainer, and cannot learn its exit code."""
    next_start: Optional[float] = None
    """Unix seconds at which the next attempt starts automatically; only while backing off."""
    waiting_for: Optional[str] = None
    """What a queued run waits for: ``runs``, ``group`` (it is paused), ``slot``, ``disk``, a scheduler's ``job``."""
    started: Optional[float] = None
    """When the attempt's program was started, Unix seconds."""
    restarts: Sequence[Mapping[str, Any]] = []
    """Automatic restarts so far: ``time``, ``attempt`` (the one that crashed), ``cause``, ``step``."""
    survivors: Sequence[int] = []
    message: Optional[str] = None
    template: Optional[Mapping[str, Any]] = None
    """The launch template that replaced the spec's at a restart; None: the spec's is in force."""
    job: Optional[str] = None
    """Which start of the scheduler's job this supervisor belongs to: ``17.0``, then ``17.1`` after a requeue."""


class Rehearsal(NamedTuple):
    """An attempt that only tries out a changed launch: it ends after some steps and leaves the run as it was."""

    of: int
    """The failed attempt to compare it with."""
    steps: int = 20
    seconds: float = 300.0
    """The longest it may take, loading included."""
    changes: str = ""
    """What is being tried, for people to read."""
    before: str = ""
    """The setting before the change, in short: ``batch 64``."""
    after: str = ""
    """And after it: ``32 x 2``."""


class LaunchRecord(NamedTuple):
    """``launch.json``: what was actually started for one attempt."""

    attempt: int
    time: float
    argv: Sequence[str]
    cwd: str
    device: str
    env: Mapping[str, str] = {}
    secret_env: Sequence[str] = []
    checkpoint: Optional[str] = None
    gpus: Sequence[str] = []
    """The CUDA devices reserved for it; empty if none were."""
    reason: Optional[str] = None
    """Why this attempt exists: launched, restarted by whom, after which cause."""
    by: Optional[str] = None
    totals: Totals = Totals()
    rehearsal: Optional[Rehearsal] = None
    """Set if the attempt only tries out a changed launch."""


class ExitRecord(NamedTuple):
    """``exit.json``: how an attempt ended. Written once."""

    attempt: int
    ended: float
    code: Optional[int] = None
    signal: Optional[int] = None
    cause: Optional[str] = None
    requested_by: Optional[str] = None
    action: Optional[str] = None
    """The request that ended it: stop, kill or restart; None if nobody asked."""
    started: Optional[float] = None
    rusage: Mapping[str, float] = {}
    survivors: Sequence[int] = []
    spawn_error: Optional[str] = None
    """Why the program could not be started at all, with the file's name."""
    unknown: bool = False
    """The end was noticed, but not the exit code: the trainer was not this supervisor's child."""
    evidence: Mapping[str, str] = {}


REQUESTS = ("stop", "kill", "pause", "continue", "restart", "clear_cache", "save", "evaluate", "dump_stacks")
"""Every request there is."""
ENDS = frozenset({"stop", "kill"})
"""Requests that must work whatever state the disk and the files are in."""
TRAINER_ACTIONS = frozenset({"clear_cache", "save", "evaluate"})


class Request(NamedTuple):
    """``requests/ID.json``: one request, idempotent, naming its attempt."""

    id: str
    action: str
    attempt: int
    by: str
    time: float
    options: Mapping[str, Any] = {}


class Ack(NamedTuple):
    """``requests/ID.ack.json``: the answer of whoever carried out the request."""

    id: str
    ok: bool
    by: str
    """supervisor, trainer or agent."""
    time: float
    text: str
    before: Optional[int] = None
    after: Optional[int] = None
    freed: Optional[int] = None
