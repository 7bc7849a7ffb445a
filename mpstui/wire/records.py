"""The records of a run directory: what was asked (spec), what is (status), what was started (launch), how it ended.

A record is a NamedTuple, which costs the supervisor's start nothing; importing ``dataclasses`` alone costs it 20 ms of
CPU time. Its annotations are the whole declaration: :func:`.storage.read` checks by them. Defaults are shared: no
record, nor what it holds, is ever changed in place.
"""

# No `from __future__ import annotations` here: reading needs the annotations as types, not as texts.
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from .jobs import EngineRule
from .liveness import ProcessIdentity
from .storage import SCHEMA


class Variant(NamedTuple):
    """How the program is started on one device: the whole command and the environment that goes with it."""

    argv: Sequence[str]
    env: Mapping[str, str] = {}
    unset: Sequence[str] = []
    """Variables of the supervisor's own environment that the program must not see."""


class Totals(NamedTuple):
    """How much a launch asks for, by its own arguments; the weakest witness of it. None is unknown."""

    epochs: Optional[int] = None
    steps: Optional[int] = None


class LaunchTemplate(NamedTuple):
    """All a supervisor must know to start an attempt, on the device asked for or on another one."""

    device: str
    """auto, mps, cuda or cpu: what was asked for."""
    variants: Mapping[str, Variant]
    """By device; a device that this program cannot be told is absent."""
    cwd: str
    resume_args: Optional[Sequence[str]] = None
    """Appended with ``{checkpoint}`` filled in; None: this program cannot be resumed."""
    checkpoints: Optional[str] = None
    """Glob of checkpoint files, relative to the run directory, else to ``cwd``."""
    totals: Totals = Totals()


class StopRule(NamedTuple):
    """How this program is asked to end."""

    signal: str = "term"
    """term or int: what the main process group gets first."""
    grace_seconds: float = 30.0
    saving_cap_seconds: float = 300.0
    """The grace is extended while a checkpoint is being written, up to this long in all."""


class RestartRule(NamedTuple):
    """When a failed attempt is started again without being asked; off unless ``on`` names causes."""

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
"""Causes a restart may be tied to, the more telling before the more general: the first that holds is the cause.

NaN is not among them: programs mention it and train on, and the same checkpoint would lead to it again."""


class CauseRule(NamedTuple):
    """A cause the supervisor can name by itself: any pattern in the last output, any of the signals or exit codes."""

    id: str
    patterns: Sequence[str] = []
    signals: Sequence[int] = []
    codes: Sequence[int] = []
    unless: Sequence[str] = []
    """Patterns of what drags this one's words along, such as a missing compiler: it is then no cause."""


AFTER_CHECKPOINT = "{after.checkpoint}"
"""In a command: the newest complete checkpoint of the first run of :attr:`QueueRule.after`; empty without one."""


class QueueRule(NamedTuple):
    """What must be true before the first attempt starts."""

    group: Optional[str] = None
    after: Sequence[Mapping[str, str]] = []
    """``{"run": id, "when": "ok" | "any" | "fail"}``, all of them."""


GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
OF_THIS_MACHINE = (GPU_VARIABLE, "CUDA_DEVICE_ORDER", "TMPDIR", "XDG_RUNTIME_DIR")
"""Variables that are wrong on another machine."""


def gpu_words(names: Sequence[str]) -> str:
    """``GPU 2``, ``GPUs 0, 1``."""
    return f"{'GPU' if len(names) == 1 else 'GPUs'} {', '.join(names)}"


class GpuRule(NamedTuple):
    """The CUDA devices of which a queued run is given some for itself; without this rule a slot is all it waits for."""

    devices: Sequence[str]
    """As ``CUDA_VISIBLE_DEVICES`` names them."""
    takes: int = 1
    """How many it is given."""
    fixed: bool = False
    """The run's own environment names them: they are kept from the others, and nothing is set."""
    env: Mapping[str, str] = {}
    """What the names need to mean what was meant, such as ``CUDA_DEVICE_ORDER``."""

    def sentence(self, given: Sequence[str]) -> str:
        """``GPU 2 of 4``, or ``GPU 3 (of 2, 3)`` where not all of the machine was there to choose from."""
        count = len(self.devices)
        whole = list(self.devices) == [str(number) for number in range(count)]
        named = gpu_words(given)
        if self.fixed:
            return named
        return f"{named} of {count}" if whole else f"{named} (of {', '.join(self.devices)})"


class AlertRule(NamedTuple):
    """Whom to tell is in a file of the user's, which may hold secrets: only where it lies is written down."""

    settings: str
    """Path of ``settings.toml``, read anew at every alert; no file, no alert."""
    screen_lock: str
    """Held by every open screen."""


ALERT_EVENTS = ("crash", "stall", "finish")
"""What somebody can be told of."""
ALERT_WHEN = ("always", "no_screen", "never")


def is_safe_address(url: str) -> bool:
    """Whether a webhook's address is https, or this very machine."""
    return url.startswith(("https://", "http://127.0.0.1:", "http://localhost:"))


class Origin(NamedTuple):
    """Where a run was made: it starts by itself only there, and not from a copy of its directory."""

    machine: str
    folder: str
    """The run's directory, as it was called then."""
    inode: int
    """The directory's own number, which a copy does not have and another name for it does."""


class Provenance(NamedTuple):
    """``provenance.json``: what a run was launched from; ``source.diff`` has the changes of the code themselves."""

    commit: Optional[str] = None
    """Of the repository that the program was started in; None: it is in none, or git could not be asked."""
    branch: Optional[str] = None
    changed_files: int = 0
    """Tracked files that differ from the commit; others are not looked at."""
    diff_is_whole: bool = True
    host: str = ""
    system: str = ""
    python: Optional[str] = None
    """Version of the program's interpreter."""
    packages: Mapping[str, str] = {}
    """Versions of those that decide how a training goes, as installed beside that interpreter."""


class ChoiceRecord(NamedTuple):
    """What was chosen beside the profile: for the form that shows a launch again. Without secrets."""

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
    """In place of the profile's; none: as it says."""


class Branch(NamedTuple):
    """Where a run left another one, whose checkpoint it began from."""

    run: str
    step: int
    checkpoint: str
    """Its path. It belongs to the other run: it is read, never written or deleted."""
    host: Optional[str] = None
    """The machine that the other run is on; then the checkpoint is a copy in the directory of this one. None: here."""

    @property
    def left(self) -> str:
        """The run that it left, as commands take it."""
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
    """No attempt starts by itself, from a queue or after a crash, while less of the disk is free."""
    alerts: Optional[AlertRule] = None
    origin: Optional[Origin] = None
    """None: made by an older mpstui, which did not say."""
    branch: Optional[Branch] = None
    """None: it begins by itself."""
    engine: Optional[EngineRule] = None
    """The scheduler whose job it is; None: it runs where it was launched."""
    call: Optional[str] = None
    """The id of the wish that it was launched by, where that came from another machine."""


class Status(NamedTuple):
    """``status.json``: the supervisor's own word, replaced whole."""

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
    """What the supervisor paused it for by itself: ``disk``; None: a person did, or it is not paused."""
    request: Optional[str] = None
    """Id of the request being carried out."""
    action: Optional[str] = None
    asker: Optional[str] = None
    """Who made that request."""
    asked_at: Optional[float] = None
    """When the trainer was asked to end, Unix seconds."""
    adopted: bool = False
    """This supervisor did not start the trainer: its exit code cannot be known."""
    next_start: Optional[float] = None
    """Unix seconds at which the next attempt starts by itself; only while backing off."""
    waiting_for: Optional[str] = None
    """What a queued run waits for: ``runs``, ``group`` (it is paused), ``slot``, ``disk``, a scheduler's ``job``."""
    started: Optional[float] = None
    """When the attempt's program was started, Unix seconds."""
    restarts: Sequence[Mapping[str, Any]] = []
    """Automatic restarts so far: ``time``, ``attempt`` (the one that crashed), ``cause``, ``step``."""
    survivors: Sequence[int] = []
    message: Optional[str] = None
    template: Optional[Mapping[str, Any]] = None
    """A launch template that replaced the spec's at a restart; None: the spec's holds."""
    job: Optional[str] = None
    """The start of the scheduler's job that this supervisor is part of: ``17.0``, and ``17.1`` when it was requeued."""


class Rehearsal(NamedTuple):
    """An attempt that only tries a changed launch: it is ended after some steps, and leaves the run as it was."""

    of: int
    """The attempt that failed, which it is compared with."""
    steps: int = 20
    seconds: float = 300.0
    """It is ended after this time at the latest, loading included."""
    changes: str = ""
    """What is tried, for people."""
    before: str = ""
    """What it takes the place of, in short: ``batch 64``."""
    after: str = ""
    """``32 x 2``"""


class LaunchRecord(NamedTuple):
    """``launch.json``: what was really started for one attempt."""

    attempt: int
    time: float
    argv: Sequence[str]
    cwd: str
    device: str
    env: Mapping[str, str] = {}
    secret_env: Sequence[str] = []
    checkpoint: Optional[str] = None
    gpus: Sequence[str] = []
    """The CUDA devices it was given for itself; empty: none were chosen for it."""
    reason: Optional[str] = None
    """Why this attempt exists: launched, restarted by whom, after which cause."""
    by: Optional[str] = None
    totals: Totals = Totals()
    rehearsal: Optional[Rehearsal] = None
    """It only tries a changed launch."""


class ExitRecord(NamedTuple):
    """``exit.json``: how an attempt ended. Written once."""

    attempt: int
    ended: float
    code: Optional[int] = None
    signal: Optional[int] = None
    cause: Optional[str] = None
    requested_by: Optional[str] = None
    action: Optional[str] = None
    """The request that ended it: stop, kill or restart; None when nobody asked."""
    started: Optional[float] = None
    rusage: Mapping[str, float] = {}
    survivors: Sequence[int] = []
    spawn_error: Optional[str] = None
    """The program could not be started at all: why, with the file's name."""
    unknown: bool = False
    """The end was seen, the exit code was not: the trainer was not this supervisor's child."""
    evidence: Mapping[str, str] = {}


REQUESTS = ("stop", "kill", "pause", "continue", "restart", "clear_cache", "save", "evaluate", "dump_stacks")
"""Every request that somebody carries out."""
ENDS = frozenset({"stop", "kill"})
"""Requests that have to work whatever the disk and the files say."""
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
    """``requests/ID.ack.json``: the answer of whoever carried it out."""

    id: str
    ok: bool
    by: str
    """supervisor, trainer or agent."""
    time: float
    text: str
    before: Optional[int] = None
    after: Optional[int] = None
    freed: Optional[int] = None
