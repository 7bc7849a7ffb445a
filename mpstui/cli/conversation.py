"""The near end of ``--host``: what is typed and signalled goes there, what a command prints there comes here."""

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
"""Codes above it say by which."""
_ASKS_AGAIN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Conversation:
    """One command's: what is typed and signalled goes there, what it prints comes here.

    Args:
        told: called with each part of what comes, and its kind.
        terminal: what is a terminal here is one there.
        bring: the command takes ``-o``; what it writes comes here.
        known: of a command that goes on over the next line: how far it had got, and its id; None: it does not.
        holds: print nothing before it is known how far the command is with that.
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
        """How far the command had got with all that was printed here."""
        return self._held.place

    def run(self) -> int:
        """Until it ends; its exit code."""
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
                if self._goes_on and code > _BY_SIGNAL and not self.is_asked_to_end:  # as where a machine shuts down
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
        """Send what is typed, and say now and then that we are there."""
        watched = [sys.stdin] if self._typing else []
        while not self._over.is_set():
            try:
                if not select.select(watched, [], [], STILL_SECONDS)[0]:
                    self._send(STILL_THERE)
                elif os.tcgetpgrp(0) != os.getpgrp():  # in the background, where reading would stop us
                    self._over.wait(STILL_SECONDS)
                    self._send(STILL_THERE)
                else:
                    typed = os.read(0, 1 << 12)
                    self._send(TYPED, typed)
                    watched = watched if typed else []
            except (OSError, ValueError, HostError):
                return  # whoever listens will say so

    def _send(self, kind: bytes, data: bytes = b"") -> None:
        if self._sending.acquire(timeout=1):  # a line that hangs must not hold up a ctrl+c
            try:
                self._line.send(piece(kind, data))
            finally:
                self._sending.release()

    def _pass_on(self, number: int, _: object) -> None:
        """The first time the command is asked to end; who asks again does not wait for it."""
        if self.is_asked_to_end:
            raise KeyboardInterrupt
        self.is_asked_to_end = True
        self._patience = 2 * STILL_SECONDS
        with contextlib.suppress(HostError):
            self._send(SIGNAL, str(number).encode())
