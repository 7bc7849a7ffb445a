"""The records of a run directory: what was asked (spec), what is (status), what was started (launch), how it ended.

Reading is tolerant of unknown fields, so that an older program can watch a newer run; a record of a newer schema is
readable but must not be acted upon (:class:`NewerSchema`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from . import atomic, jsontext
from .jsontext import UnreadableRecord
from .processes import ProcessIdentity
from .rundir import SCHEMA
from .values import Value, field

R = TypeVar("R", bound="Record")


class NewerSchema(UnreadableRecord):
    """Written by a newer mpstui: look, but do not touch."""


class Record(Value):
    """Anything that travels as one JSON object, field by field."""

    _nested: ClassVar[Mapping[str, type[Record]]] = {}

    def to_json(self) -> dict[str, Any]:
        """The JSON object, nested records included."""
        return {name: _plain(value) for name, value in vars(self).items()}

    @classmethod
    def from_json(cls: type[R], record: Mapping[str, Any]) -> R:
        """Read a JSON object; unknown fields are ignored.

        Raises:
            NewerSchema: ``schema`` is higher than ours.
            UnreadableRecord: a field without a default is missing.
        """
        schema = record.get("schema", SCHEMA)
        if not isinstance(schema, int) or schema > SCHEMA:
            raise NewerSchema(f"schema {schema!r} is newer than {SCHEMA}")
        values = {name: record[name] for name in cls._fields if name in record}
        for name, kind in cls._nested.items():
            if isinstance(values.get(name), Mapping):
                values[name] = kind.from_json(values[name])
        try:
            return cls(**values)
        except TypeError as error:
            raise UnreadableRecord(str(error)) from error


def _plain(value: Any) -> Any:
    """A copy in which records are JSON objects; what is changed in it later changes no record."""
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


class Variant(Record):
    """How the program is started on one device: the whole command and the environment that goes with it."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)
    """Variables of the supervisor's own environment that the program must not see."""


class LaunchTemplate(Record):
    """All a supervisor must know to start an attempt, on the device asked for or on another one."""

    device: str
    """auto, mps, cuda or cpu: what was asked for."""
    variants: dict[str, Variant]
    """By device; a device that this program cannot be told is absent."""
    cwd: str
    resume_args: list[str] | None = None
    """Appended with ``{checkpoint}`` filled in; None: this program cannot be resumed."""
    checkpoints: str | None = None
    """Glob of checkpoint files, relative to the run directory, else to ``cwd``."""

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> LaunchTemplate:
        """See :meth:`Record.from_json`; the variants are records of their own."""
        found = record.get("variants")
        variants = found if isinstance(found, Mapping) else {}
        return super().from_json({**record, "variants": {name: Variant.from_json(v) for name, v in variants.items()}})


class StopRule(Record):
    """How this program is asked to end."""

    signal: str = "term"
    """term or int: what the main process group gets first."""
    grace_seconds: float = 30.0
    saving_cap_seconds: float = 300.0
    """The grace is extended while a checkpoint is being written, up to this long in all."""


class RestartRule(Record):
    """When a failed attempt is started again without being asked; off unless ``on`` names causes."""

    on: list[str] = field(default_factory=list)
    device: str | None = None
    """The device of the new attempt; None keeps the one it had."""
    delays_seconds: list[float] = field(default_factory=lambda: [10.0, 60.0, 300.0])
    most_per_hour: int = 3


class CauseRule(Record):
    """A cause the supervisor can name by itself: any pattern in the last output, any of the signals or exit codes."""

    id: str
    patterns: list[str] = field(default_factory=list)
    signals: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)


AFTER_CHECKPOINT = "{after.checkpoint}"
"""In a command: the newest complete checkpoint of the first run of :attr:`QueueRule.after`; empty without one."""


class QueueRule(Record):
    """What must be true before the first attempt starts."""

    group: str | None = None
    after: list[dict[str, str]] = field(default_factory=list)
    """``{"run": id, "when": "ok" | "any" | "fail"}``, all of them."""


GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"


def gpu_words(names: Sequence[str]) -> str:
    """``GPU 2``, ``GPUs 0, 1``."""
    return f"{'GPU' if len(names) == 1 else 'GPUs'} {', '.join(names)}"


class GpuRule(Record):
    """The CUDA devices of which a queued run is given some for itself; without this rule a slot is all it waits for."""

    devices: list[str]
    """As ``CUDA_VISIBLE_DEVICES`` names them."""
    takes: int = 1
    """How many it is given."""
    fixed: bool = False
    """The run's own environment names them: they are kept from the others, and nothing is set."""
    env: dict[str, str] = field(default_factory=dict)
    """What the names need to mean what was meant, such as ``CUDA_DEVICE_ORDER``."""

    def sentence(self, given: Sequence[str]) -> str:
        """``GPU 2 of 4``, or ``GPU 3 (of 2, 3)`` where not all of the machine was there to choose from."""
        count = len(self.devices)
        whole = list(self.devices) == [str(number) for number in range(count)]
        named = gpu_words(given)
        if self.fixed:
            return named
        return f"{named} of {count}" if whole else f"{named} (of {', '.join(self.devices)})"


class AlertRule(Record):
    """Whom to tell is in a file of the user's, which may hold secrets: only where it lies is written down."""

    settings: str
    """Path of ``settings.toml``, read anew at every alert; no file, no alert."""
    screen_lock: str
    """Held by every open screen."""


class Spec(Record):
    """``spec.json``: what was asked, frozen at launch."""

    run: str
    name: str
    created: float
    launch: LaunchTemplate
    schema: int = SCHEMA
    profile: str | None = None
    profile_path: str | None = None
    profile_text: str | None = None
    by: str | None = None
    recipe: str | None = None
    secret_env: list[str] = field(default_factory=list)
    """Names of secret variables the run was started with; their values are nowhere on disk."""
    stop: StopRule = field(default_factory=StopRule)
    restart: RestartRule = field(default_factory=RestartRule)
    causes: list[CauseRule] = field(default_factory=list)
    queue: QueueRule = field(default_factory=QueueRule)
    gpus: GpuRule | None = None
    watch: dict[str, str] = field(default_factory=dict)
    """Other files of the program: ``heartbeat``, ``metrics``, ``log``, ``pattern``."""
    pid_file: str | None = None
    max_log_bytes: int = 2 << 30
    min_free_bytes: int = 0
    """No attempt starts by itself, from a queue or after a crash, while less of the disk is free."""
    alerts: AlertRule | None = None

    _nested: ClassVar[Mapping[str, type[Record]]] = {
        "launch": LaunchTemplate,
        "stop": StopRule,
        "restart": RestartRule,
        "queue": QueueRule,
        "gpus": GpuRule,
        "alerts": AlertRule,
    }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Spec:
        """See :meth:`Record.from_json`."""
        causes = [CauseRule.from_json(rule) for rule in record.get("causes", [])]
        return super().from_json({**record, "causes": causes})


class Status(Record):
    """``status.json``: the supervisor's own word, replaced whole."""

    run: str
    phase: str
    """queued, starting, running, stopping, backing_off, ended or stop_failed."""
    attempt: int
    updated: float
    schema: int = SCHEMA
    boot_id: str = ""
    supervisor: list[int] | None = None
    """``[pid, start]``."""
    trainer: list[int] | None = None
    """``[pid, start]``; the trainer leads its own process group and session."""
    tree: list[list[int]] = field(default_factory=list)
    """``[pid, start]`` of the trainer's descendants as last seen."""
    paused: bool = False
    held_for: str | None = None
    """What the supervisor paused it for by itself: ``disk``; None: a person did, or it is not paused."""
    request: str | None = None
    """Id of the request being carried out."""
    action: str | None = None
    asker: str | None = None
    """Who made that request."""
    asked_at: float | None = None
    """When the trainer was asked to end, Unix seconds."""
    adopted: bool = False
    """This supervisor did not start the trainer: its exit code cannot be known."""
    next_start: float | None = None
    """Unix seconds at which the next attempt starts by itself; only while backing off."""
    waiting_for: str | None = None
    """What a queued run waits for: ``runs``, ``group`` (it is paused), ``slot`` or ``disk``."""
    started: float | None = None
    """When the attempt's program was started, Unix seconds."""
    restarts: list[dict[str, Any]] = field(default_factory=list)
    """Automatic restarts so far: ``time``, ``attempt`` (the one that crashed), ``cause``, ``step``."""
    survivors: list[int] = field(default_factory=list)
    message: str | None = None
    template: dict[str, Any] | None = None
    """A launch template that replaced the spec's at a restart; None: the spec's holds."""

    def trainer_identity(self) -> ProcessIdentity | None:
        """The trainer's pid and start time, where known."""
        return ProcessIdentity(*self.trainer) if self.trainer else None

    def tree_identities(self) -> list[ProcessIdentity]:
        """The recorded descendants."""
        return [ProcessIdentity(*pair) for pair in self.tree]


class LaunchRecord(Record):
    """``launch.json``: what was really started for one attempt."""

    attempt: int
    time: float
    argv: list[str]
    cwd: str
    device: str
    env: dict[str, str] = field(default_factory=dict)
    secret_env: list[str] = field(default_factory=list)
    checkpoint: str | None = None
    gpus: list[str] = field(default_factory=list)
    """The CUDA devices it was given for itself; empty: none were chosen for it."""
    reason: str | None = None
    """Why this attempt exists: launched, restarted by whom, after which cause."""
    by: str | None = None


class ExitRecord(Record):
    """``exit.json``: how an attempt ended. Written once."""

    attempt: int
    ended: float
    code: int | None = None
    signal: int | None = None
    cause: str | None = None
    requested_by: str | None = None
    action: str | None = None
    """The request that ended it: stop, kill or restart; None when nobody asked."""
    started: float | None = None
    rusage: dict[str, float] = field(default_factory=dict)
    survivors: list[int] = field(default_factory=list)
    spawn_error: str | None = None
    """The program could not be started at all: why, with the file's name."""
    unknown: bool = False
    """The end was seen, the exit code was not: the trainer was not this supervisor's child."""
    evidence: dict[str, str] = field(default_factory=dict)


ACTIONS = ("stop", "kill", "pause", "continue", "restart", "clear_cache", "save", "dump_stacks")
TRAINER_ACTIONS = frozenset({"clear_cache", "save"})


class Request(Record):
    """``requests/ID.json``: one wish, idempotent, naming its attempt."""

    id: str
    action: str
    attempt: int
    by: str
    time: float
    options: dict[str, Any] = field(default_factory=dict)


class Ack(Record):
    """``requests/ID.ack.json``: the answer of whoever carried it out."""

    id: str
    ok: bool
    by: str
    """supervisor, trainer or agent."""
    time: float
    text: str
    before: int | None = None
    after: int | None = None
    freed: int | None = None


def read(kind: type[R], path: Path) -> R | None:
    """Read one record; None when there is no file.

    Raises:
        UnreadableRecord: there is something else in the file (NewerSchema: of a newer program).
    """
    found = atomic.read_json(path)
    return None if found is None else kind.from_json(found)


def event(moment: float, attempt: int, name: str, text: str, **details: Any) -> dict[str, Any]:
    """One line of ``events.jsonl``."""
    return {"time": moment, "attempt": attempt, "event": name, "text": text, **jsontext.finite(details)}
