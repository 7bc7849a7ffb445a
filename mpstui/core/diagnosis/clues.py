"""What is known about an ending besides the log, as named clues that rules refer to.

``signal:N``, ``code:N``, ``requested``, ``device:mps|cuda|cpu``, ``precision:bf16|fp16|fp32``, ``phase:train|...``,
``never_stepped``, ``nonfinite_loss``, ``memory_near_limit``, ``memory_growing``, ``memory_event``, ``watermark_off``,
``fallback_on``, ``duplicate_omp_allowed``.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping

from .model import Evidence, HeartbeatEvidence

NEAR_LIMIT = 0.9
GROWING_BYTES_PER_SECOND = 1 << 20  # a leak worth the name: 3.6 GB in an hour
_MEMORY_EVENT = re.compile(
    r"memorystatus: killing|JetsamEvent|largest ?process|low swap|Out of memory: Kill|oom[-_ ]kill"
    r"|killed by \w+ for memory",
    re.IGNORECASE,
)
_MACOS_NAMES = {10: "SIGBUS", 7: "SIGEMT"}


def ending(evidence: Evidence) -> tuple[int | None, int | None]:
    """Return ``(signal, exit code)``; a shell's 128+n and subprocess's -n are the signal n."""
    number, code = evidence.signal, evidence.exit_code
    if number is None and code is not None:
        if -65 < code < 0:
            return -code, None
        if 128 < code < 193:
            return code - 128, None
    return number, code


def signal_name(number: int) -> str:
    """Return the name of a signal; numbers that differ between systems keep the name macOS gives them."""
    if number in _MACOS_NAMES:
        return _MACOS_NAMES[number]
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def clues_of(evidence: Evidence) -> Mapping[str, str]:
    """Return every clue that holds, with the words that show it as evidence."""
    found = dict(_ending_clues(evidence))
    found.update(_heartbeat_clues(evidence.heartbeat))
    found.update(_environment_clues(evidence.environment))
    for event in evidence.memory_events:
        if _MEMORY_EVENT.search(event):
            found["memory_event"] = event
    return found


def _ending_clues(evidence: Evidence) -> Iterator[tuple[str, str]]:
    number, code = ending(evidence)
    if number is not None:
        yield f"signal:{number}", f"ended by signal {number} ({signal_name(number)})"
    elif code is not None:
        yield f"code:{code}", f"ended with exit code {code}"
    if evidence.requested_by:
        yield "requested", f"ended on request of {evidence.requested_by}"


def _heartbeat_clues(heartbeat: HeartbeatEvidence | None) -> Iterator[tuple[str, str]]:
    if heartbeat is None:
        return
    for name in ("phase", "device", "precision"):
        value = getattr(heartbeat, name)
        if value:
            yield f"{name}:{value}", f"last heartbeat: {name} {value}"
    if heartbeat.phase == "setup" or heartbeat.step == 0:
        yield "never_stepped", "last heartbeat: no step was done"
    if any("loss" in name for name in heartbeat.nonfinite):
        yield "nonfinite_loss", f"last heartbeat: {', '.join(heartbeat.nonfinite)} NaN or infinite"
    if heartbeat.memory_ratio is not None and heartbeat.memory_ratio >= NEAR_LIMIT:
        yield "memory_near_limit", f"last heartbeat: memory at {heartbeat.memory_ratio:.0%} of its limit"
    slope = heartbeat.memory_slope_bytes_per_second
    if slope is not None and slope >= GROWING_BYTES_PER_SECOND:
        yield "memory_growing", f"memory grew by {slope / (1 << 20):.1f} MiB a second"


def _environment_clues(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    high = environment.get("PYTORCH_MPS_HIGH_WATERMARK_RATIO", "")
    if re.fullmatch(r"0+(?:\.0*)?", high.strip()):
        yield "watermark_off", f"PYTORCH_MPS_HIGH_WATERMARK_RATIO={high}: the MPS allocator had no cap"
    if environment.get("PYTORCH_ENABLE_MPS_FALLBACK", "0").strip() not in ("", "0"):
        yield "fallback_on", "PYTORCH_ENABLE_MPS_FALLBACK was set"
    if environment.get("KMP_DUPLICATE_LIB_OK", "").upper() in ("TRUE", "1", "YES"):
        yield "duplicate_omp_allowed", "KMP_DUPLICATE_LIB_OK silenced OpenMP's check for a second runtime"
