"""Checks of a launch before it starts: doubtful variables, versions, DataLoader workers, disk space and memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..present import size
from .model import SMALLER_BATCH, ArgumentChange, Remedy, whole_number

_HARMLESS_CALLS = frozenset(
    {
        "getLogger",
        "set_start_method",
        "manual_seed",
        "filterwarnings",
        "simplefilter",
        "basicConfig",
        "append",
        "insert",
    }
)


def starts_work_on_import(source: str) -> bool:
    """Return True if importing a script would run its main part; False if the source cannot be parsed.

    DataLoader workers on macOS import the script. It must not call anything as a statement or loop at its top level,
    unless it has an ``if __name__ == "__main__":``. Imports, definitions and assignments are harmless.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    for statement in module.body:
        if isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare):
            sides = [statement.test.left, *statement.test.comparators]
            if any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides):
                return False
    return any(_does_work(statement) for statement in module.body)


def _does_work(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.For | ast.While | ast.With):
        return True
    if isinstance(statement, ast.If | ast.Try):
        return any(_does_work(inner) for inner in statement.body)
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name not in _HARMLESS_CALLS


HIGH = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
LOW = "PYTORCH_MPS_LOW_WATERMARK_RATIO"
FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
# Defaults from aten/src/ATen/mps/MPSAllocator.h for unified memory.
DEFAULT_HIGH, DEFAULT_LOW, GREATEST_RATIO = 1.7, 1.4, 2.0
_TRUE = ("1", "true", "yes", "on")
# From this torch version on, MPS needs at least that macOS, according to the wheels (2.5.1: pytorch#139425).
_MACOS_NEEDED = (((2, 15), (15, 0)), ((2, 9), (14, 0)), ((2, 6), (13, 0)), ((1, 12), (12, 3)))

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PreflightWarning:
    """A doubtful point about a launch: one sentence, and what to do about it."""

    id: str
    sentence: str
    remedy: Remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """A planned launch and its machine; None means unknown and causes no warning.

    ``arguments`` are the program's own; ``roles`` maps a role (batch size, workers, precision, ...) to an argument's
    name. ``script`` is the source text of the training script. ``expected_memory_bytes`` is what an earlier run needed
    with ``expected_batch_size``; ``checkpoint_bytes`` is the size of one checkpoint.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    script: str | None = None
    torch_version: Version | None = None
    lightning_version: Version | None = None
    macos_version: Version | None = None
    free_disk_bytes: int | None = None
    checkpoint_bytes: int | None = None
    available_memory_bytes: int | None = None
    expected_memory_bytes: int | None = None
    expected_batch_size: int | None = None

    def argument(self, role: str) -> object | None:
        """Return the value of the argument that plays ``role``; None if it is not given."""
        name = self.roles.get(role)
        return self.arguments.get(name) if name is not None else None


def version(text: str | None) -> Version | None:
    """Return the leading numbers of a version, ``(2, 6, 0)`` for ``2.6.0+cu124``; None if there are none."""
    match = re.match(r"\d+(?:\.\d+)*", text or "")
    return tuple(int(part) for part in match[0].split(".")) if match else None


def preflight(launch: LaunchFacts) -> tuple[PreflightWarning, ...]:
    """Return every warning about ``launch``: first what would fail at once, then what may fail later."""
    return tuple(warning for check in _CHECKS for warning in check(launch))


def _environment(launch: LaunchFacts) -> Iterator[PreflightWarning]:
    """Environment variables that would trip up torch or OpenMP."""
    value = launch.environment.get(FALLBACK)
    if value is not None and not re.match(r"\s*[+-]?\d", value):
        yield PreflightWarning(
            "fallback_not_a_number",
            f"{FALLBACK}={value} ends `import torch` with an error: torch reads it as a whole number.",
            Remedy(text=f"Write {FALLBACK}=1.", env={FALLBACK: "1"}),
        )
    high, low = _ratio(launch, HIGH, DEFAULT_HIGH), _ratio(launch, LOW, DEFAULT_LOW)
    unset = Remedy(text="Unset both variables, or set both with LOW not above HIGH.", env={HIGH: None, LOW: None})
    if high is None or low is None or not 0 <= high <= GREATEST_RATIO or low < 0:
        yield PreflightWarning("watermark_invalid", f"{HIGH} and {LOW} must be numbers from 0 to 2.", unset)
    elif low > (high or GREATEST_RATIO):
        yield PreflightWarning(
            "watermark_pair",
            f"The MPS soft limit ({low:g}) lies above the cap ({high:g}): the first use of MPS will fail.",
            unset,
        )
    elif high == 0:
        yield PreflightWarning(
            "watermark_off",
            f"{HIGH}=0.0 removes the cap on MPS memory: instead of an error that can be caught, macOS will swap and "
            "kill the training.",
            Remedy(text="Unset it; the allocator returns cached memory by itself.", env={HIGH: None}),
        )
    if launch.environment.get("KMP_DUPLICATE_LIB_OK", "").lower() in _TRUE:
        yield PreflightWarning(
            "duplicate_omp_allowed",
            "KMP_DUPLICATE_LIB_OK lets two OpenMP runtimes share the process; their vendor warns of crashes and "
            "silently wrong results.",
            Remedy(
                text="Unset it. If OMP Error #15 then appears, remove the second runtime or set OMP_NUM_THREADS=1.",
                env={"KMP_DUPLICATE_LIB_OK": None},
            ),
        )


def _ratio(launch: LaunchFacts, name: str, default: float) -> float | None:
    try:
        return float(launch.environment[name]) if name in launch.environment else default
    except ValueError:
        return None


def _versions(launch: LaunchFacts) -> Iterator[PreflightWarning]:
    """What these versions of torch, Lightning and macOS cannot do together."""
    torch_version, macos_version, on_mps = launch.torch_version, launch.macos_version, launch.device == "mps"
    needed = next((macos for torch, macos in _MACOS_NEEDED if torch_version and torch_version >= torch), None)
    if on_mps and torch_version and macos_version and needed and macos_version < needed:
        yield PreflightWarning(
            "macos_too_old",
            f"torch {_dotted(torch_version)} offers MPS from macOS {_dotted(needed)} on; here is macOS "
            f"{_dotted(macos_version)}.",
            Remedy(text="Upgrade macOS, install an older torch, or run on CPU.", device="cpu"),
        )
    precision = str(launch.argument("precision") or "").lower()
    if precision.endswith("-mixed") and launch.lightning_version and launch.lightning_version < (2,):
        plain = precision.removesuffix("-mixed")
        yield PreflightWarning(
            "lightning_precision",
            f"Lightning {launch.lightning_version[0]}.x does not know precision '{precision}' (known since 2.0).",
            Remedy(text=f"Use precision={plain}.", args=(ArgumentChange("precision", "set", plain),)),
        )
    if on_mps and precision.startswith(("bf16", "bfloat16")):
        old = [f"torch {_dotted(torch_version)}"] if torch_version and torch_version < (2, 6) else []
        old += [f"macOS {_dotted(macos_version)}"] if macos_version and macos_version < (14,) else []
        if old:
            yield PreflightWarning(
                "bf16_on_mps",
                f"bfloat16 autocast on MPS needs torch 2.6 and macOS 14; here is {' and '.join(old)}.",
                Remedy(text="Train in fp32, or upgrade.", args=(ArgumentChange("precision", "set", "fp32"),)),
            )
    if on_mps and _is_on(launch.argument("compile")) and torch_version and torch_version < (2, 7):
        yield PreflightWarning(
            "compile_on_mps",
            f"torch {_dotted(torch_version)} cannot compile for MPS: its compiler has a Metal backend since 2.7.",
            Remedy(text="Run eager, or upgrade torch to 2.8.", env={"TORCH_COMPILE_DISABLE": "1"}),
        )


def _workers(launch: LaunchFacts) -> Iterator[PreflightWarning]:
    workers = whole_number(launch.argument("workers"))
    if workers == 0 and _is_on(launch.argument("persistent_workers")):
        yield PreflightWarning(
            "persistent_without_workers",
            "persistent_workers needs num_workers above 0: the DataLoader will refuse the pair.",
            Remedy(text="Drop persistent_workers.", args=(ArgumentChange("persistent_workers", "remove"),)),
        )
    if workers and launch.macos_version and launch.script is not None and starts_work_on_import(launch.script):
        yield PreflightWarning(
            "no_main_guard",
            f"{workers} DataLoader workers, but the script has no `if __name__ == '__main__':`; on macOS every worker "
            "would run it again.",
            Remedy(text="Add the guard, or load data without workers.", args=(ArgumentChange("workers", "set", 0),)),
        )


def _space(launch: LaunchFacts) -> Iterator[PreflightWarning]:
    """Disk space and memory."""
    # A save writes the new file beside the old one before replacing it.
    if launch.free_disk_bytes is not None and launch.free_disk_bytes < 2 * (launch.checkpoint_bytes or 0):
        yield PreflightWarning(
            "disk_space",
            f"{size(launch.free_disk_bytes)} are free and a checkpoint takes {size(launch.checkpoint_bytes or 0)}: "
            "the second save may fail.",
            Remedy(text="Free space, or keep fewer checkpoints."),
        )
    available, before = launch.available_memory_bytes, launch.expected_memory_bytes
    if available is None or before is None:
        return
    batch, batch_before = whole_number(launch.argument("batch_size")), launch.expected_batch_size
    # Activations grow with the batch, weights do not: scaling in proportion gives an upper bound.
    changed = batch is not None and bool(batch_before) and batch != batch_before
    expected = round(before * batch / batch_before) if changed and batch and batch_before else before
    if available < expected:
        needed = f"this training took {size(before)}" + (f" with batch size {batch_before}" if changed else " before")
        grown = f", so that it may take {size(expected)} with {batch}" if changed else ""
        yield PreflightWarning(
            "memory",
            f"{size(available)} of memory are available and {needed}{grown}.",
            Remedy(
                text="Close other programs, or halve the batch size and double gradient accumulation.",
                args=SMALLER_BATCH,
            ),
        )


_CHECKS = (_environment, _versions, _workers, _space)


def _is_on(value: object) -> bool:
    return value is True or str(value).lower() in _TRUE


def _dotted(numbers: Version) -> str:
    return ".".join(str(number) for number in numbers)
