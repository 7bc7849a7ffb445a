"""The few rules by which a supervisor names the cause of an ending, compiled to plain data."""

from __future__ import annotations

from typing import Any

from .rules import rule
from .text import portable

# Causes a restart may be tied to, the more telling before the more general: the first that holds is the cause.
# NaN is not among them: programs mention it and train on, and the same checkpoint would lead to it again.
RESTART_CAUSES = (
    "disk_full",
    "mps_watermark_invalid",
    "mps_oom",
    "cuda_oom",
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
_CERTAIN = 0.6  # a signal names an ending by itself from here on: SIGABRT alone says nothing


def supervisor_rules() -> list[dict[str, Any]]:
    """Return ``[{"id": str, "patterns": [str], "signals": [int], "codes": [int]}, ...]``, to be tried in this order.

    A rule holds when one of its patterns is found by ``re.search(pattern, tail)`` in the end of the
    attempt's output (64 KiB is plenty; carriage returns turned into newlines, runs of blanks into one space), or when
    the attempt ended by one of ``signals`` or with one of ``codes``. The patterns are plain ``re`` of Python 3.10
    without unbounded repetition across lines. A stop that was asked for has no cause: do not ask the rules then.
    """
    return [_compact(rule_id) for rule_id in RESTART_CAUSES]


def _compact(rule_id: str) -> dict[str, Any]:
    found = rule(rule_id)
    signals = [
        int(clue.removeprefix("signal:")) for clue, worth in found.fires_on.items() if _names_signal(clue, worth)
    ]
    return {
        "id": rule_id,
        "patterns": ["(?i)" + portable(pattern) for pattern in found.patterns],
        "signals": signals,
        "codes": [],
    }


def _names_signal(clue: str, worth: float) -> bool:
    return clue.startswith("signal:") and worth >= _CERTAIN
