"""The far end of ``--host``: run one command as if it had been typed here, and carry its streams over one line.

The command is a process of its own, with a terminal for output if the caller has one. It ends with the line: if the
caller is gone, or silent for too long, only the runs it started remain, which belong to their supervisors.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..core.hosts.calls import CallBook
from ..core.hosts.pieces import Pieces, piece
from ..core.model.errors import OperationError
from ..core.model.home import resolve_home
from ..wire import storage
from . import resuming
from .session import warn

ASKED, TYPED, SIGNAL, STILL_THERE, OUT, ERR, BROUGHT, PLACE, ENDED = (
    b"R",
    b"I",
    b"S",
    b"P",
    b"O",
    b"E",
    b"F",
    b"L",
    b"X",
)
STILL_SECONDS = 5.0
"""An end that has sent nothing for this long sends a keep-alive."""
SILENT_SECONDS = 45.0
"""An end that has sent nothing for this long counts as gone."""
_PART = 1 << 16
_LAST_WORDS_SECONDS = 0.3
_PLACES = 3
"""The descriptor to which the command writes its places, after its three streams."""
_PASSED_ON = ("TERM", "COLORTERM", "NO_COLOR")


class Streams(NamedTuple):
    """Descriptors of the command's streams."""

    typed: int
    """Our end of what it reads; -1 if it reads nothing."""
    out: int
    err: int
    place: int
    """Where its places arrive; see :mod:`.resuming`."""
    theirs: tuple[int, int, int, int]
    """The command's ends, in the order of the descriptors it will have."""


def main(words: Sequence[str]) -> int:
    """Run one command. Its words come over the line, since anybody can read a process's arguments."""
    arriving = Pieces(lambda most: os.read(0, most) if select.select([0], [], [], SILENT_SECONDS)[0] else None)
    first = arriving.next()
    if first is None or first[0] != ASKED:
        return 2
    asked = json.loads(first[1])
    folder = tempfile.mkdtemp(prefix="mpstui-") if asked["bring"] else None
    asked["words"] += ["-o", folder] if folder else []  # what is written there is brought back
    streams = _streams(asked)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        return _become(asked, streams, parent)
    if folder:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for theirs in {*streams.theirs}:
        os.close(theirs)
    signal.signal(signal.SIGTERM, lambda *_: _end(child))
    signal.signal(signal.SIGHUP, lambda *_: _end(child))
    threading.Thread(target=_listen, args=(arriving, child, streams.typed), daemon=True).start()
    brought: dict[str, int] = {}

    def bring() -> None:
        """Send the files written since the last call."""
        for path in sorted(Path(folder).iterdir()) if folder else ():
            if path.name.startswith(".") or brought.get(path.name) == (written := path.stat().st_mtime_ns):
                continue
            brought[path.name] = written
            with storage.open_file(path) as file:
                _say(BROUGHT, path.name.encode() + b"\0" + zlib.compress(file.read()))

    code = _carry(child, streams, bring if asked["known"] is not None else lambda: None)
    bring()
    _say(ENDED, str(code if code >= 0 else 128 - code).encode())
    return 0


def _streams(asked: dict[str, Any]) -> Streams:
    """Open a terminal of the caller's size for the streams that are one there; pipes for the others, and no input."""
    place, theirs_place = os.pipe()
    if not any(asked["terminal"]):
        silent = os.open(os.devnull, os.O_RDWR)
        (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
        return Streams(-1, out, err, place, (silent, theirs_out, theirs_err, theirs_place))
    ours, theirs = os.openpty()
    mode = termios.tcgetattr(theirs)
    mode[1] &= ~termios.OPOST  # leave line ends as the command writes them
    mode[3] &= ~(termios.ECHO | termios.ISIG)  # the caller's terminal has echoed what is typed, and sends signals
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", asked["lines"], asked["columns"], 0, 0))
    reads, out, err = asked["terminal"]
    silent = os.open(os.devnull, os.O_RDWR)
    out_ends = (ours, theirs) if out else os.pipe()
    err_ends = (ours, theirs) if err else os.pipe()
    reads_from = theirs if reads else silent
    return Streams(ours, out_ends[0], err_ends[0], place, (reads_from, out_ends[1], err_ends[1], theirs_place))


def _become(asked: dict[str, Any], streams: Streams, parent: int) -> int:
    """Become the command, in the process just forked; returns its exit code."""
    os.setsid()
    for number, theirs in enumerate(streams.theirs):
        os.dup2(theirs, number, inheritable=number < _PLACES)
    os.closerange(_PLACES + 1, max(*streams[:4], *streams.theirs) + 1)
    for name in _PASSED_ON:
        if name in asked["environ"]:
            os.environ[name] = asked["environ"][name]
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="replace")
    sys.stdout = os.fdopen(1, "w", 1 if os.isatty(1) else -1, asked["encoding"])
    sys.stderr = os.fdopen(2, "w", 1, asked["encoding"])

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3)
        os._exit(1)

    try:
        threading.Thread(target=follow, daemon=True).start()
        from .main import main as command

        resuming.begin(asked["known"] or {}, _PLACES)
        with contextlib.ExitStack() as alone:
            if call := resuming.known("call"):
                book = CallBook(resolve_home(os.environ).state / "calls")
                with contextlib.suppress(OSError):  # a full disk must not prevent stopping a run
                    alone.enter_context(book.holding(call))  # the command of the last line may still be at work
            return command(asked["words"])
    except OperationError as error:
        warn(error.sentence)
        return 1
    except KeyboardInterrupt:  # before the command had begun
        return 128 + signal.SIGINT


def _listen(arriving: Pieces, child: int, typed: int) -> None:
    """Pass on what the caller types and signals; end everything when the caller is gone."""
    while found := arriving.next():
        kind, data = found
        with contextlib.suppress(OSError):  # the command has ended
            if kind == TYPED:
                os.write(typed, data or b"\x04")
            elif kind == SIGNAL:
                _signal(child, int(data))
    _end(child)


def _signal(child: int, number: int) -> None:
    try:
        os.killpg(child, number)
    except ProcessLookupError:  # it has no group yet
        os.kill(child, number)


def _end(child: int) -> None:
    """End the command, giving it a moment, and then this process."""
    reaps = threading.current_thread() is threading.main_thread()  # otherwise `_carry` waits for it there
    with contextlib.suppress(OSError):
        _signal(child, signal.SIGINT)
        until = time.monotonic() + 2
        while time.monotonic() < until and not (reaps and _ended(child) is not None):
            time.sleep(0.05)
        _signal(child, signal.SIGKILL)
    atexit._run_exitfuncs()
    os.kill(os.getpid(), signal.SIGKILL)  # our own exit code would be taken for the command's


def _carry(child: int, streams: Streams, meanwhile: Callable[[], None]) -> int:
    """Send everything the command prints until it ends, and return its exit code. Calls ``meanwhile`` repeatedly."""
    kinds = {streams.err: ERR, streams.out: OUT, streams.place: PLACE}  # one terminal for both is the output
    code: int | None = None
    ended = spoken = 0.0
    while kinds:
        ready = select.select([*kinds], [], [], 0.2)[0]
        now = time.monotonic()
        meanwhile()
        for descriptor in ready:
            try:
                data = os.read(descriptor, _PART)
            except OSError:  # the command has closed its terminal
                data = b""
            if not data:
                del kinds[descriptor]
                continue
            _say(kinds[descriptor], data)
            spoken = now
        if code is None and (code := _ended(child)) is not None:
            ended = now
        if code is not None and not ready and now - ended > _LAST_WORDS_SECONDS:
            break  # a process it started still holds its output open
        if now - spoken > STILL_SECONDS:
            _say(STILL_THERE)
            spoken = now
    if code is None:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code


def _ended(child: int) -> int | None:
    pid, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if pid else None


def _say(kind: bytes, data: bytes = b"") -> None:
    text = memoryview(piece(kind, data))
    while text:
        text = text[os.write(1, text) :]
