"""The evidence of how a run ended, from a log file or run directory, and the named clues that rules refer to.

A log may be a gigabyte long. It is read once in large blocks to count its lines and find the first traceback; only a
few hundred kilobytes (its beginning, that traceback, its last lines) are ever decoded.
"""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypeVar

from ...wire import heartbeat, records, storage
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord
from ..follow import after_hole
from ..model.snapshot import RunSnapshot
from ..telemetry.history import machine_memory_used, memory_growth
from .log_text import screen_lines
from .model import Evidence, HeartbeatEvidence, LogLine

HEAD_BYTES = 48 << 10  # settings, versions and warnings at startup
TAIL_BYTES = 256 << 10
TRACEBACK_BYTES = 64 << 10
BLOCK_BYTES = 1 << 20
FIRST_ERROR = b"Traceback (most recent call last)"
NEAR_LIMIT, PLENTIFUL = 0.9, 0.75
"""Shares of memory in use: from the first on, it was nearly full; below the second, there was plenty."""
GROWING_BYTES_PER_SECOND = 1 << 20  # slower growth is not called a leak; this is 3.6 GiB an hour
_NOT_FOUND = re.compile(r"ModuleNotFoundError: No module named '(\w{1,200})")
_LEVELS_UP = 3
_MACOS_NAMES = {10: "SIGBUS", 7: "SIGEMT"}
R = TypeVar("R")


def evidence_from_log(path: Path) -> Evidence:
    """Return the evidence of a log file; raises ``OSError`` if it cannot be read."""
    return Evidence(lines=log_lines(path))


def evidence_of(snapshot: RunSnapshot) -> Evidence:
    """Return what is known about the end of a run; for a foreign run, its output and exit code."""
    if snapshot.is_ours:
        return evidence_from_run_dir(snapshot.dir)
    printed = snapshot.output
    lines = _unless_torn(lambda: log_lines(printed)) if printed is not None else None
    return Evidence(lines=lines or (), exit_code=snapshot.exit.code if snapshot.exit is not None else None)


def evidence_from_run_dir(directory: Path, *, attempt: int | None = None) -> Evidence:
    """Return what a run directory says about the end of an attempt, by default the newest that was not a rehearsal.

    Missing or torn files count as unknown. Without an attempt that has ended, there is no signal or exit code.
    """
    run = RunDir(directory)
    number = attempt if attempt is not None else failed_attempt(run)
    if number is None:
        return Evidence()
    spec = _unless_torn(lambda: storage.read(records.Spec, run.spec))
    folder = run.attempt(number)
    launch = _unless_torn(lambda: storage.read(records.LaunchRecord, folder.launch))
    heard = _heartbeat(folder.heartbeat(), launch.device if launch else None)
    lines = _unless_torn(lambda: log_lines(folder.output)) or ()
    known = Evidence(
        lines=lines,
        project=missing_of_project(lines, launch.argv, Path(launch.cwd)) if launch else None,
        heartbeat=replace(heard, memory_slope_bytes_per_second=memory_growth(run.telemetry, number)),
        environment=launch.env if launch else {},
        offers_cpu=spec is not None and "cpu" in spec.launch.variants,
    )
    exited = _unless_torn(lambda: storage.read(records.ExitRecord, folder.exit))
    if exited is None:
        return known
    return replace(
        known,
        signal=exited.signal,
        exit_code=exited.code,
        requested_by=exited.requested_by,
        action=exited.action,
        memory_events=(*filter(None, [exited.evidence.get("memory")]), *_noted_kills(run, number)),
        no_memory_kill=exited.evidence.get("no_memory_kill", ""),
        machine_memory_ratio=machine_memory_used(run.telemetry, number, exited.ended),
    )


def _noted_kills(run: RunDir, attempt: int) -> Iterator[str]:
    """Yield the memory kills that the supervisor found in the system log after recording the end."""
    for line in (_unless_torn(lambda: storage.read_text(run.events)) or "").splitlines():
        if '"memory_kill"' in line:
            with contextlib.suppress(UnreadableRecord):
                event = storage.load_object(line)
                if event.get("attempt") == attempt and "memory_kill" in event:
                    yield str(event["memory_kill"])


def failed_attempt(run: RunDir) -> int | None:
    """Return the number of the newest attempt that is not the rehearsal of a remedy; None if there is none."""
    numbers = run.attempt_numbers()
    launches = (
        (number, storage.read_or_none(records.LaunchRecord, run.attempt(number).launch)) for number in numbers[::-1]
    )
    return next((number for number, found in launches if found is None or found.rehearsal is None), None)


def missing_of_project(lines: Sequence[LogLine], argv: Sequence[str], cwd: Path) -> tuple[str, str] | None:
    """Return the last module that Python did not find, and the project folder that contains it.

    Searches the working directory, the script's folder and their parents within the project. None if no module is
    missing, or none of these folders contains it.
    """
    names = (match for line in reversed(lines) if (match := _NOT_FOUND.search(line.text)))
    if (last := next(names, None)) is None:
        return None
    script = next((cwd / word for word in argv if word.endswith(".py")), None)
    searched = script.parent.resolve() if script is not None else cwd.resolve()
    for start in dict.fromkeys((cwd.resolve(), searched)):
        for folder in (start, *start.parents[:_LEVELS_UP]):
            found = (folder / f"{last[1]}.py").is_file() or any((folder / last[1]).glob("*.py"))
            if found and folder != searched:
                return last[1], str(folder)
            if (folder / ".git").exists() or folder == Path.home():
                break
    return None


def _unless_torn(read: Callable[[], R]) -> R | None:
    try:
        return read()
    except (UnreadableRecord, OSError):
        return None


def _heartbeat(path: Path, launched_device: str | None) -> HeartbeatEvidence:
    record = _unless_torn(lambda: storage.read_json(path))
    beat = _unless_torn(lambda: heartbeat.from_json(record)) if record is not None else None
    if beat is None:
        return HeartbeatEvidence(device=launched_device)
    memory = beat.memory
    used = memory.driver if memory.driver is not None else memory.allocated
    return HeartbeatEvidence(
        phase=beat.phase,
        step=beat.step,
        device=beat.device.type or launched_device,
        precision=beat.device.precision,
        nonfinite=beat.nonfinite,
        memory_ratio=used / memory.limit if used is not None and memory.limit else None,
    )


def log_lines(path: Path) -> tuple[LogLine, ...]:
    """Return the screen lines of the parts of a log that matter, in order, numbered from 1 as in an editor."""
    with storage.open_file(path) as file:
        lines: list[LogLine] = []
        for start, end, first_number in _pieces(file, file.seek(0, 2)):
            file.seek(start)
            text = file.read(end - start).decode("utf-8", errors="replace")
            # Not splitlines(): it also splits at characters that no editor counts as a line break.
            lines += screen_lines(text.split("\n"), first_number)
    return tuple(lines)


def _pieces(file: BinaryIO, size: int) -> list[tuple[int, int, int]]:
    """Return (start, end, number of its first line) for each part that matters."""
    if size <= HEAD_BYTES + TRACEBACK_BYTES + TAIL_BYTES:
        return [(0, size, 1)]
    tail_start = size - TAIL_BYTES
    newlines = position = 0
    first_error = None
    file.seek(0)
    # A marker split between two blocks is missed. That costs at most a handled exception: the tail is read whole.
    while position < tail_start:
        position = file.seek(min(after_hole(file.fileno(), position, size), tail_start))
        if not (block := file.read(min(BLOCK_BYTES, tail_start - position))):
            break
        if first_error is None and (found := block.find(FIRST_ERROR)) >= 0:
            start = position + found
            line = newlines + block.count(b"\n", 0, found) + 1
            first_error = start, min(start + TRACEBACK_BYTES, tail_start), line
        newlines += block.count(b"\n")
        position += len(block)
    after_head = [first_error] if first_error is not None and first_error[0] >= HEAD_BYTES else []
    return [(0, HEAD_BYTES, 1), *after_head, (tail_start, size, newlines + 1)]


def ending(evidence: Evidence) -> tuple[int | None, int | None]:
    """Return ``(signal, exit code)``; a shell's 128+n and subprocess's -n count as signal n."""
    number, code = evidence.signal, evidence.exit_code
    if number is None and code is not None:
        if -65 < code < 0:
            return -code, None
        if 128 < code < 193:
            return code - 128, None
    return number, code


def signal_name(number: int) -> str:
    """Return the name of a signal; numbers that differ between systems get their macOS name."""
    if number in _MACOS_NAMES:
        return _MACOS_NAMES[number]
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def clues_of(evidence: Evidence) -> Mapping[str, str]:
    """Return every clue that holds, with the text to show as evidence.

    ``signal:N``, ``code:N``, ``requested``, ``device:mps|cuda|cpu``, ``precision:bf16|fp16|fp32``, ``phase:train|...``,
    ``never_stepped``, ``nonfinite_loss``, ``memory_near_limit``, ``memory_growing``, ``memory_event``,
    ``no_memory_kill``, ``memory_plentiful``, ``watermark_off``, ``fallback_on``, ``duplicate_omp_allowed``,
    ``cpu_offered``, ``module_in_project``.
    """
    found = dict(_heartbeat_clues(evidence.heartbeat)) if evidence.heartbeat else {}
    number, code = ending(evidence)
    if number is not None:
        found[f"signal:{number}"] = f"ended by signal {number} ({signal_name(number)})"
    elif code is not None:
        found[f"code:{code}"] = f"ended with exit code {code}"
    if evidence.offers_cpu:
        found["cpu_offered"] = "the program can be told to use the CPU"
    if evidence.project is not None:
        found["module_in_project"] = "{} is in {}".format(*evidence.project)
    if evidence.requested_by:
        found["requested"] = f"ended on request of {evidence.requested_by}"
    high = evidence.environment.get("PYTORCH_MPS_HIGH_WATERMARK_RATIO", "")
    if re.fullmatch(r"0+(?:\.0*)?", high.strip()):
        found["watermark_off"] = f"PYTORCH_MPS_HIGH_WATERMARK_RATIO={high}: the MPS allocator had no cap"
    if evidence.environment.get("PYTORCH_ENABLE_MPS_FALLBACK", "0").strip() not in ("", "0"):
        found["fallback_on"] = "PYTORCH_ENABLE_MPS_FALLBACK was set"
    if evidence.environment.get("KMP_DUPLICATE_LIB_OK", "").upper() in ("TRUE", "1", "YES"):
        found["duplicate_omp_allowed"] = "KMP_DUPLICATE_LIB_OK silenced OpenMP's check for a second runtime"
    if evidence.memory_events:
        found["memory_event"] = evidence.memory_events[-1]
    elif evidence.no_memory_kill:
        found["no_memory_kill"] = evidence.no_memory_kill
    used = evidence.machine_memory_ratio
    if used is not None and used >= NEAR_LIMIT:
        found["memory_near_limit"] = f"the machine's memory was {used:.0%} used just before the end"
    elif used is not None and used < PLENTIFUL:
        found["memory_plentiful"] = f"the machine's memory was {used:.0%} used just before the end"
    return found


def _heartbeat_clues(beat: HeartbeatEvidence) -> Iterator[tuple[str, str]]:
    for name in ("phase", "device", "precision"):
        value = getattr(beat, name)
        if value:
            yield f"{name}:{value}", f"last heartbeat: {name} {value}"
    if beat.phase == "setup" or beat.step == 0:
        yield "never_stepped", "last heartbeat: no step was done"
    if any("loss" in name for name in beat.nonfinite):
        yield "nonfinite_loss", f"last heartbeat: {', '.join(beat.nonfinite)} NaN or infinite"
    if beat.memory_ratio is not None and beat.memory_ratio >= NEAR_LIMIT:
        yield "memory_near_limit", f"last heartbeat: memory at {beat.memory_ratio:.0%} of its limit"
    slope = beat.memory_slope_bytes_per_second
    if slope is not None and slope >= GROWING_BYTES_PER_SECOND:
        yield "memory_growing", f"memory grew by {slope / (1 << 20):.1f} MiB a second"
