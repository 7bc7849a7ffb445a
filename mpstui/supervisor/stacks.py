"""``dump_stacks``: write where every thread of a training is, even of one that hangs, into its output.

A training process that supports it says so in ``attempts/<n>/stack_signal``: one line with the signal on which
:mod:`faulthandler` writes its stacks, its pid and its start time. The agent and our trainers install this handler; it
works even if Python itself is stuck. For other programs ``py-spy`` is used, if it is installed and permitted.
"""

from __future__ import annotations

import contextlib
import errno
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from ..wire import storage
from ..wire.liveness import ProcessIdentity
from ..wire.records import Request
from .attempt import Attempt
from .family import helpers
from .state import Supervision
from .witnesses import size_of

PATIENCE_SECONDS = 3.0
"""A running or sleeping process needs milliseconds; one in an uninterruptible call does not answer at all."""
PY_SPY_SECONDS = 10.0
MOST_COUNTED_BYTES = 64 << 20
"""In a longer log, lines are not counted: only the byte offset is told."""
_END_OF_DUMP = b"Current thread 0x"
"""Each dump names the thread that received the signal once, and last: only that thread's frames follow."""
_HOW = "`pip install py-spy` and ask again, or run it under the agent"


class _Dump(NamedTuple):
    """A request that is being carried out."""

    request: Request
    output: Path
    begin: int
    """Length of the output before the dump, in bytes."""
    asked: tuple[int, ...]
    deadline: float
    py_spy: tuple[subprocess.Popen[bytes], ...] = ()


class StackDumps:
    """Carries out requests for stacks, one after the other, without ever waiting."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._waiting: list[Request] = []
        self._dump: _Dump | None = None

    @property
    def busy(self) -> bool:
        """True while a request is unanswered."""
        return self._dump is not None or bool(self._waiting)

    def ask(self, request: Request) -> None:
        """Take a request; it is answered when the stacks are in the output, or will not come."""
        self._waiting.append(request)

    def poll(self) -> None:
        """Answer the request in progress if it is done, and begin the next."""
        if self._dump is not None:
            self._finish(self._dump)
        while self._dump is None and self._waiting:
            request, attempt = self._waiting.pop(0), self._supervision.attempt
            if attempt is None or attempt.ending is not None:
                self._reply(request, ok=False, text="the training has ended")
            elif attempt.paused or attempt.is_stopped():
                self._reply(request, ok=False, text="it is paused: continue it first")
            else:
                attempt.refresh()
                output = attempt.run.attempt(attempt.number).output
                if not self._signal(request, attempt, output):
                    self._py_spy(request, attempt, output)

    def _signal(self, request: Request, attempt: Attempt, output: Path) -> bool:
        """Send each process its own stack signal, since any other might end it; False if no process has one."""
        begin, send = size_of(output), self._supervision.machine.signaller.send
        listeners = [item for item in listening(attempt) if item[1] in attempt.family.members]
        asked = tuple(identity.pid for number, identity in listeners if send(identity, number))
        if asked:
            self._dump = _Dump(request, output, begin, asked, self._supervision.now + PATIENCE_SECONDS)
        return bool(asked)

    def _py_spy(self, request: Request, attempt: Attempt, output: Path) -> None:
        begin, leader = size_of(output), attempt.family.leader
        if leader is None:
            self._reply(request, ok=False, text="which of its processes is the program itself is not on record")
            return
        command = ["py-spy", "dump", "--pid", str(leader.pid)]
        try:
            with output.open("ab") as log:
                started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.PIPE)
        except OSError as error:
            text = f"py-spy could not be started: {error}"
            if error.errno == errno.ENOENT:
                text = f"this program does not dump its stacks by itself, and py-spy is not on PATH: {_HOW}"
            self._reply(request, ok=False, text=text)
            return
        helpers.add(started.pid)
        deadline = self._supervision.now + PY_SPY_SECONDS
        self._dump = _Dump(request, output, begin, (leader.pid,), deadline, (started,))

    def _finish(self, dump: _Dump) -> None:
        late = self._supervision.now >= dump.deadline
        if dump.py_spy:
            text = _outcome(dump.py_spy[0], late)
            if text is None:
                return
            ok = not text
        else:
            came = 0
            with contextlib.suppress(OSError), storage.open_file(dump.output) as file:
                file.seek(dump.begin)
                came = file.read(8 << 20).count(_END_OF_DUMP)
            if came < len(dump.asked) and not late and self._supervision.trainer_lives():
                return
            ok = came > 0
            text = "" if ok else f"no stacks came within {PATIENCE_SECONDS:g} s: it may be in an uninterruptible call"
            if 0 < came < len(dump.asked):
                text = f" ({len(dump.asked) - came} did not answer)"
        self._dump = None
        place = f"from byte {dump.begin:,}"
        if dump.begin <= MOST_COUNTED_BYTES:
            with contextlib.suppress(OSError), storage.open_file(dump.output) as file:
                place = f"line {file.read(dump.begin).count(10) + 1:,} ({place})"
        count = f"{len(dump.asked)} processes" if len(dump.asked) > 1 else f"pid {dump.asked[0]}"
        where = f"the stacks of {count} are in the output, {place}"
        self._reply(dump.request, ok=ok, text=where + text if ok else text)

    def _reply(self, request: Request, *, ok: bool, text: str) -> None:
        self._supervision.journal.answer(request, ok=ok, text=text)


def listening(attempt: Attempt) -> list[tuple[int, ProcessIdentity]]:
    """Return the processes of an attempt that can dump their stacks, each after the signal that makes it do so."""
    found: dict[ProcessIdentity, int] = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in storage.read_text(attempt.run.attempt(attempt.number).stack_signal).splitlines():
            with contextlib.suppress(ValueError):
                number, pid, start = map(int, line.split())
                found[ProcessIdentity(pid, start)] = signal.Signals(number).value
    return [(number, identity) for identity, number in found.items()]


def _outcome(process: subprocess.Popen[bytes], late: bool) -> str | None:
    """Return an empty string if py-spy succeeded, else why not; None while it runs."""
    if process.poll() is None:
        if not late:
            return None
        process.kill()
        process.wait()
        return f"py-spy did not finish within {PY_SPY_SECONDS:g} s"
    if process.returncode == 0:
        return ""
    said = process.stderr.read().decode("utf-8", "replace").strip() if process.stderr else ""
    return f"py-spy could not: {said.splitlines()[-1] if said else 'it did not say why'}"
