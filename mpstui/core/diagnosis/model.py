"""The input and output of a diagnosis, as frozen values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any, Literal

_RAISES = re.compile(r"\s{0,200}+(?:\[[^\s\]]{1,40}\]:?\s{0,200}+)?raise\b")
"""Matches a ``raise`` at the start of a line, or after the prefix that torchrun puts before each line of a rank."""


class Kind(Enum):
    """What a rule's finding says about a crash. A symptom never outranks a cause or an ending."""

    CAUSE = "cause"  # why it ended
    ENDING = "ending"  # how it ended: a signal; the reason lies further back
    SYMPTOM = "symptom"  # seen along with a crash, or harmless by itself


@dataclass(frozen=True, slots=True)
class LogLine:
    """One screen line of a log, free of control characters.

    ``number`` counts newlines from 1; the redraws of a progress bar, split at carriage returns, share one number.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatEvidence:
    """What the newest heartbeat, and the telemetry up to it, say about the end. None means unknown.

    ``memory_ratio`` is memory in use divided by its limit, ``memory_slope_bytes_per_second`` its growth at the end.
    """

    phase: str | None = None
    step: int | None = None
    device: str | None = None
    precision: str | None = None
    nonfinite: tuple[str, ...] = ()
    memory_ratio: float | None = None
    memory_slope_bytes_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything known about the end of one attempt; what is unknown stays at its default.

    ``signal`` and ``exit_code`` are those of the training itself; a code above 128 or below 0 is read as a signal.
    ``requested_by`` says who requested the end, and ``action`` what was requested: a signal then explains nothing.
    ``environment`` is what the launcher set. ``memory_events`` quotes the system about memory kills (memorystatus log
    lines, JetsamEvent reports), ``no_memory_kill`` quotes it that there was none. ``offers_cpu`` is True if the program
    can be told to use the CPU.
    """

    lines: tuple[LogLine, ...] = ()
    signal: int | None = None
    exit_code: int | None = None
    requested_by: str | None = None
    action: str | None = None
    heartbeat: HeartbeatEvidence | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_events: tuple[str, ...] = ()
    no_memory_kill: str = ""
    machine_memory_ratio: float | None = None
    """The share of the machine's memory in use just before the end, if it was sampled."""
    offers_cpu: bool = False
    project: tuple[str, str] | None = None
    """A module that Python did not find, and the folder in the program's own project that contains it."""


PROJECT = "{project}"
"""Placeholder for the folder in ``Evidence.project``, as the value of a remedy's variable."""


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """One change to the argument that plays ``role`` (batch_size, gradient_accumulation, workers, precision, ...).

    ``scale`` multiplies, rounds down and never goes below 1. With ``before``, it applies only if the argument has that
    value.
    """

    role: str
    operation: Literal["set", "scale", "remove"]
    value: object = None
    before: str | None = None


# Changes that several remedies share.
SMALLER_BATCH = (
    ArgumentChange("batch_size", "scale", 0.5),
    ArgumentChange("gradient_accumulation", "scale", 2),
)
# DataLoader refuses persistent_workers and prefetch_factor with zero workers.
NO_WORKERS = (
    ArgumentChange("workers", "set", 0),
    ArgumentChange("persistent_workers", "remove"),
    ArgumentChange("prefetch_factor", "remove"),
)
FULL_PRECISION = (ArgumentChange("precision", "set", "fp32"),)
EAGER: Mapping[str, str | None] = {"TORCH_COMPILE_DISABLE": "1"}
# For ``fullgraph=True``, which torch refuses if nothing is compiled.
EAGER_GRAPH: Mapping[str, str | None] = {"TORCH_COMPILE_DISABLE": None, "TORCH_COMPILE_OVERRIDE_BACKENDS": ">=0:eager"}
# Both are unset together: the allocator refuses a cap below its soft limit.
DEFAULT_WATERMARKS = {"PYTORCH_MPS_HIGH_WATERMARK_RATIO": None, "PYTORCH_MPS_LOW_WATERMARK_RATIO": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What helps. ``env`` maps variables to values, None unsets one; ``device`` moves the run there.

    ``defeated_by`` is a pattern and a sentence: if the evidence matches the pattern, the remedy is useless and not
    offered, and the sentence says why. ``otherwise`` is the text to offer instead if the remedy is defeated or its
    variables were already set, and ``otherwise_device`` the device to move to then.
    ``risk`` is a sentence that the user must accept before it is applied; None if it can do no harm.
    ``from_checkpoint`` is text to show first if the run has a checkpoint to go back to.
    """

    text: str
    env: Mapping[str, str | None] = field(default_factory=dict)
    args: tuple[ArgumentChange, ...] = ()
    device: str | None = None
    risk: str | None = None
    from_checkpoint: str = ""
    defeated_by: tuple[str, str] | None = None
    otherwise: str = ""
    otherwise_device: str | None = None

    def defeat(self, shown: Iterable[EvidenceLine]) -> str:
        """Return why it is useless for this evidence; empty if it is not."""
        pattern, why = self.defeated_by or ("", "")
        return why if pattern and re.search(pattern, "\n".join(line.text for line in shown)) else ""

    def left_in(self, environment: Mapping[str, str], shown: Iterable[EvidenceLine] = ()) -> Remedy:
        """Return the remedy to offer: ``otherwise`` if its variables were already set and did not help, or if the
        evidence shows that it is useless."""
        why = self.defeat(shown) if self.otherwise else ""
        if not why:
            if not self.env or any(value is None or environment.get(name) != value for name, value in self.env.items()):
                return self
            told = " and ".join(f"{name}={value}" for name, value in self.env.items())
            why = f"{told} was set already and did not help"
        text, device = " ".join(filter(None, (self.otherwise, f"{why}."))), self.otherwise_device
        return replace(self, text=text, env={}, args=(), device=device, risk=None, defeated_by=None)

    def in_project(self, folder: str) -> Remedy:
        """Return the remedy with the project's folder filled in for the placeholder; if it is unknown, without the
        variable."""
        if PROJECT not in self.env.values():
            return self
        env = {name: folder if value == PROJECT else value for name, value in self.env.items()}
        return replace(self, env={name: value for name, value in env.items() if value != ""})

    @property
    def can_be_applied(self) -> bool:
        """True if a launcher can apply it; otherwise only a person can."""
        return bool(self.env or self.args or self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One class of crash: how to recognise it, why it happens, what helps.

    ``patterns`` are case-insensitive regular expressions for text whose whitespace is collapsed; a space also matches a
    line break, ``.`` does not. A match of one of them gives ``confidence``, of one of ``weak_patterns`` only 0.6 of it.
    ``fires_on`` maps a clue (see ``evidence.clues_of``) to the confidence that it gives without any text; ``clues``
    maps a clue to what it adds to, or subtracts from, a confidence already found.

    ``signals`` and ``codes`` are how a process ends if this is the cause: any other ending counts against it.
    ``outranks`` names rules whose text also appears as a consequence of this cause. ``survivable`` marks a failure
    after which a broken training may well keep printing, so that later progress does not rule it out. ``in_warnings``
    lets text on the line of a warning count for a cause, which it otherwise does not, since a warning ends nothing.
    ``passes``: it is over once the same loss is finite again. ``numbers`` are pairs of a pattern and a format for its
    groups (``wanted {0}``), in which a group named ``bytes`` is shown as a size; the first pattern found counts.
    ``sources`` are the issues or files that the rule was derived from.
    """

    id: str
    title: str
    cause: str
    remedy: Remedy
    restart_on_cpu_helps: bool = False
    sources: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    weak_patterns: tuple[str, ...] = ()
    confidence: float = 0.9
    kind: Kind = Kind.CAUSE
    fires_on: Mapping[str, float] = field(default_factory=dict)
    clues: Mapping[str, float] = field(default_factory=dict)
    signals: tuple[int, ...] = ()
    codes: tuple[int, ...] = (1,)
    outranks: tuple[str, ...] = ()
    survivable: bool = False
    in_warnings: bool = False
    passes: bool = False
    numbers: tuple[tuple[str, str], ...] = ()


DeviceRule = partial(Rule, restart_on_cpu_helps=True)
"""A rule for a crash that the same training would not have on the CPU."""


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """What a finding rests on: a log line, or if ``line`` is None, a fact from outside the log."""

    line: int | None
    text: str
    where: str = ""
    """For an exception, the file, line and function that raised it: ``train.py:12 in load``."""
    file: str = ""
    """The path of that file, as written in the traceback."""
    file_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One possible explanation; ``confidence``, from 0 to 1, only ranks findings and is no measured frequency."""

    id: str
    title: str
    kind: Kind
    confidence: float
    evidence: tuple[EvidenceLine, ...]
    cause: str
    remedy: Remedy
    restart_on_cpu_helps: bool
    numbers: str = ""
    """The numbers of the failure itself: ``wanted 512.00 MiB, 17.50 + 2.30 of 20.10 GiB``."""

    @property
    def shown_by(self) -> EvidenceLine | None:
        """The log line that shows it best, else the first fact from outside the log; None without evidence.

        An exception with a place in the code is preferred to other lines, and any line to the ``raise`` that a
        traceback prints before the exception.
        """
        in_log = [line for line in self.evidence if line.line is not None]
        said = [line for line in in_log if not _RAISES.match(line.text)]
        placed = (line for line in said if line.where)
        return next(placed, next(iter((*said, *in_log, *self.evidence)), None))

    @property
    def told(self) -> tuple[EvidenceLine, ...]:
        """The evidence without ``raise`` statements, unless no other line of the log would remain."""
        raised = [line for line in self.evidence if line.line is not None and _RAISES.match(line.text)]
        others = tuple(line for line in self.evidence if line not in raised)
        return others if any(line.line is not None for line in others) else self.evidence

    @property
    def can_be_cured(self) -> bool:
        """True if a launcher can do something about it; treating a symptom would cure nothing."""
        return self.kind is not Kind.SYMPTOM and self.remedy.can_be_applied


def findings_as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return the findings as plain data, in the order given.

    A remedy's text ends with its risk; a variable that is ``null`` is to be unset.
    """
    return [
        {
            "id": finding.id,
            "title": finding.title,
            "confidence": finding.confidence,
            "evidence": [
                {"line": line.line, "text": line.text, "where": line.where or None} for line in finding.evidence
            ],
            "numbers": finding.numbers or None,
            "cause": finding.cause,
            "remedy": {
                "text": " ".join(filter(None, (remedy.from_checkpoint, remedy.text, remedy.risk))),
                "env": dict(remedy.env),
                "args": [{"role": arg.role, "operation": arg.operation, "value": arg.value} for arg in remedy.args],
                "device": remedy.device,
            },
            "restart_on_cpu_helps": finding.restart_on_cpu_helps,
        }
        for finding in findings
        for remedy in (finding.remedy,)
    ]


def whole_number(value: object) -> int | None:
    """Return an argument's value as a whole number, also if it is a text of digits; None if it is neither."""
    return int(str(value)) if str(value).strip().isdecimal() and not isinstance(value, bool) else None
