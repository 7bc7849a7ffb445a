"""What a supervisor needs from the machine, as parameters; and what only macOS needs.

On macOS the machine may fall asleep during a training, and a kill for lack of memory appears in reports and the log.
The parsers are pure and tested; the thin calls around them need a real Mac.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from ..wire import storage
from ..wire.liveness import ProcessTable, boot_id, output_of, system_process_table
from .family import Signaller, SystemSignaller

REPORTS = Path("/Library/Logs/DiagnosticReports")
ON_MACOS = os.uname().sysname == "Darwin"


class Clock(NamedTuple):
    """Two clocks. Waiting goes by ``monotonic`` alone: a wall clock set back by an hour stops nothing."""

    wall: Callable[[], float] = time.time
    """Unix seconds."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds; on macOS it stands still while the machine sleeps (CPython issue 86273)."""
    sleep: Callable[[float], None] = time.sleep


class Machine(NamedTuple):
    """Clocks, the process table, signals and this boot's id."""

    clock: Clock
    table: ProcessTable
    signaller: Signaller
    boot_id: str
    adopts: bool = False
    """Orphans of the trainer become children of this process."""
    in_job: bool = False
    """This process is the first one of a scheduler's job."""


def this_machine() -> Machine:
    """The machine this runs on."""
    table = system_process_table()
    return Machine(Clock(), table, SystemSignaller(table), boot_id())


def rendezvous() -> str:
    """Return ``host:port`` at which a multi-node job's processes meet: this node, and a port that is free now."""
    import socket  # few runs need it, and it takes 2 ms

    with socket.socket() as probe:
        probe.bind(("", 0))
        return f"{socket.gethostname()}:{probe.getsockname()[1]}"


def caffeinate_command(pid: int) -> list[str]:
    """Keep the machine (``-i``, ``-s`` on AC power) and its disks (``-m``) awake as long as ``pid`` lives.

    Never ``-d``: keeping the display on during training has been linked to kernel panics of the GPU watchdog.
    """
    return ["/usr/bin/caffeinate", "-i", "-m", "-s", "-w", str(pid)]


def stay_awake(pid: int) -> None:
    """Start caffeinate for a trainer; if that fails, the training runs all the same."""
    if not ON_MACOS:
        return
    with contextlib.suppress(OSError):
        subprocess.Popen(
            caffeinate_command(pid), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def memory_kill_report(pid: int, since: float) -> str | None:
    """Return what a JetsamEvent report written after ``since`` says about ``pid``; fast enough for the exit record."""
    if not ON_MACOS:
        return None
    with contextlib.suppress(OSError):
        found = [(path.stat().st_mtime, path) for path in REPORTS.glob("JetsamEvent-*.ips")]
        for moment, path in sorted(found, reverse=True):
            if moment >= since and (text := parse_jetsam(storage.read_text(path), pid)):
                return text
    return None


def memory_kill_log(pid: int) -> str | None:
    """Return the kernel's log line about a kill for lack of memory in the last two minutes; takes seconds."""
    if not ON_MACOS:
        return None
    predicate = 'eventMessage contains "memorystatus"'
    text = output_of("/usr/bin/log", "show", "--last", "2m", "--style", "compact", "--predicate", predicate)
    return parse_memorystatus(text.splitlines(), pid)


def parse_jetsam(text: str, pid: int) -> str | None:
    """Return what a JetsamEvent ``.ips`` says about ``pid``. It is one line of JSON, then an object with all processes.

    Killed processes have a ``reason`` (``per-process-limit``, ``vm-pageshortage`` ...), the others have none.
    """
    _, _, body = text.partition("\n")
    try:
        report = json.loads(body)
        found = next((item for item in report["processes"] if item.get("pid") == pid), None)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if found is None or not found.get("reason"):
        return None
    return f"killed by macOS for memory ({found['reason']}); largest process: {report.get('largestProcess', 'unknown')}"


def parse_memorystatus(lines: Iterable[str], pid: int) -> str | None:
    """Return the last log line in which the kernel reports killing ``pid`` for lack of memory."""
    wanted = re.compile(rf"memorystatus.*kill.*\b(?:pid )?{pid}\b", re.IGNORECASE)
    return next((line.strip() for line in reversed(list(lines)) if wanted.search(line)), None)
