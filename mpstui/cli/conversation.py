"""The near end of ``--host``: send what is typed and signalled, and receive what the command prints there."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.hosts.line import HostError, Line
from ..core.hosts.pieces import Pieces, piece
from ..wire import storage
from .relay import (
    ASKED,
    BROUGHT,
    ENDED,
    ERR,
    OUT,
    PLACE,
    SIGNAL,
    SILENT_SECONDS,
    STILL_SECONDS,
    STILL_THERE,
    TYPED,
)
from .resuming import Held

_BY_SIGNAL = 128
"""Exit codes above this are 128 plus a signal's number."""
_ASKS_AGAIN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Conversation:
    """One command's conversation over one line.

    Args:
        told: called with the kind and the bytes of everything that arrives.
        terminal: give the command a terminal for each stream that is one here.
        bring: the command takes ``-o``, and the files it writes are sent here.
        known: for a command that can continue over another line, its place and id so far; None for any other.
        holds: pass on output only up to the last place; see :mod:`.resuming`.
    """

    def __init__(
        self,
        line: Line,
        words: Sequence[str],
        told: Callable[[bytes, bytes], None],
        *,
        terminal: bool = True,
        bring: bool = False,
        known: Mapping[str, Any] | None = None,
        holds: bool = False,
    ) -> None:
        self._line, self._told = line, told
        self._sending, self._over = threading.Lock(), threading.Event()
        self._patience = SILENT_SECONDS if known is None else 3 * STILL_SECONDS
        self._goes_on, self._holds, self._held = known is not None, holds, Held()
        self.is_asked_to_end = False
        self.heard_at = time.time()
        on_terminal = [terminal and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)]
        self._typing = on_terminal[0] and any(on_terminal[1:])
        size = shutil.get_terminal_size()
        asked = {
            "words": list(words),
            "bring": bring,
            "known": known,
            "terminal": [self._typing, *on_terminal[1:]],
            "columns": size.columns,
            "lines": size.lines,
            "encoding": (sys.stdout.encoding if terminal else None) or "utf-8",
            "environ": {name: os.environ[name] for name in ("TERM", "COLORTERM", "NO_COLOR") if name in os.environ},
        }
        self._send(ASKED, storage.dump_bytes(asked))

    @property
    def place(self) -> Mapping[str, Any]:
        """The command's place after everything that was passed on."""
        return self._held.place

    def run(self) -> int:
        """Run until the command ends, and return its exit code."""
        threading.Thread(target=self._attend, daemon=True).start()
        on_main = threading.current_thread() is threading.main_thread()
        heard = [number for number in _ASKS_AGAIN if on_main and signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._pass_on) for number in heard}  # nohup stays nohup
        try:
            return self._listen()
        finally:
            self._over.set()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _listen(self) -> int:
        arriving = Pieces(self._read)
        while found := arriving.next():
            kind, data = found
            self.heard_at = time.time()
            if kind == ENDED:
                code = int(data)
                if self._goes_on and code > _BY_SIGNAL and not self.is_asked_to_end:  # the machine may be shutting down
                    raise HostError(self._line.host, "cut", "its end there was killed", "runs there continue")
                self._show(self._held.rest())
                return code
            if kind == OUT:
                self._show(self._held.take(data) if self._holds else data)
            elif kind == PLACE and self._holds:
                self._show(self._held.take(places=data))
            elif kind in (ERR, BROUGHT):
                self._told(kind, data)
        raise self._line.failure()

    def _show(self, data: bytes) -> None:
        if data:
            self._told(OUT, data)

    def _read(self, most: int) -> bytes | None:
        reads, patience = self._line.reads, self._patience
        if not select.select([reads], [], [], patience)[0]:
            raise HostError(self._line.host, "frozen", f"nothing was heard for {patience:.0f} s", "runs there continue")
        return reads.read(most)

    def _attend(self) -> None:
        """Send what is typed, and keep-alives in between."""
        watched = [sys.stdin] if self._typing else []
        while not self._over.is_set():
            try:
                if not select.select(watched, [], [], STILL_SECONDS)[0]:
                    self._send(STILL_THERE)
                elif os.tcgetpgrp(0) != os.getpgrp():  # in the background, where reading would suspend us
                    self._over.wait(STILL_SECONDS)
                    self._send(STILL_THERE)
                else:
                    typed = os.read(0, 1 << 12)
                    self._send(TYPED, typed)
                    watched = watched if typed else []
            except (OSError, ValueError, HostError):
                return  # `_listen` reports it

    def _send(self, kind: bytes, data: bytes = b"") -> None:
        if self._sending.acquire(timeout=1):  # a line that hangs must not delay ctrl+c
            try:
                self._line.send(piece(kind, data))
            finally:
                self._sending.release()

    def _pass_on(self, number: int, _: object) -> None:
        """Pass a signal on the first time; a second one ends this program without waiting."""
        if self.is_asked_to_end:
            raise KeyboardInterrupt
        self.is_asked_to_end = True
        self._patience = 2 * STILL_SECONDS
        with contextlib.suppress(HostError):
            self._send(SIGNAL, str(number).encode())
